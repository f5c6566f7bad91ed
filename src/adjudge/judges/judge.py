"""One model as a judge: question, request, reply, reading, result, in five visible steps.

A ``Judge`` holds configuration only. Whatever is about one call is in the result, so one judge answers any number of
questions at once. A reply that cannot be read for one of the reasons in ``_REASKED_REASONS`` is asked for again.

How a reply is read is in ``question/reply.py``, and what its scores come to, passed or failed, in
``question/score.py``.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal, Self, TypeGuard, TypeVar, get_args

from adjudge.concurrency import Timeout, describe_error
from adjudge.content import check_size, content_text
from adjudge.errors import AdjudgeError, Argument, FunctionError, ModelError, Reason, ReplyError, UsageError
from adjudge.formats.arguments import (
    ReadOnly,
    check_choice,
    check_flag,
    check_functions,
    check_timeout,
    check_whole_number,
    read_options,
)
from adjudge.formats.text import show
from adjudge.hooks import call_safely, notify
from adjudge.judges.evaluate import Evaluates, JudgeLike, RubricSource, log_result, make_result, measure_ms
from adjudge.judges.part_results import answer_parts
from adjudge.models.function import FunctionModel, as_model
from adjudge.models.model import Model, Reply, Request, find_function
from adjudge.models.open import open_model, resolve_model
from adjudge.models.replies.missing_recording import MissingRecording
from adjudge.models.usage import drop_impossible_usage
from adjudge.question.code_judge import make_function_input
from adjudge.question.prompt import render_system
from adjudge.question.question import Answer, Part, Question
from adjudge.question.reply import make_undecided, read_reply
from adjudge.question.reply_object import read_object
from adjudge.question.reply_style import ADJUDGE_FORM, ReplyStyle, check_reader
from adjudge.question.token import make_token
from adjudge.result import JudgeResult
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric

Structured = Literal["auto", "schema", "text"]

Scoring = Literal["stated", "expected"]


ModelSource = Model | str | Callable[..., Any] | tuple[str, Callable[..., Any]] | object


_REASKED_REASONS: tuple[Reason, ...] = ("unparseable", "missing_criterion", "off_scale")

_REMINDER = (
    "\n\nAn earlier reply to this could not be read. Reply with exactly one JSON object of the shape described, "
    "complete, with every score on its scale, and write nothing after it."
)

_STYLE_REMINDER = (
    "\n\nAn earlier reply to this could not be read. Reply again, and end as described above, in exactly that style."
)


TOKEN_REMEDY = "for a model that never copies it: --no-token (token=False in Python)"  # noqa: S105 - the remedy, and no token
"""The end of a detail where the reply could be read without the token; ``remedies.py`` looks for it."""


class Judge(ReadOnly, Evaluates[JudgeResult]):
    """A judge: it asks one model, and computes the outcome from the reply.

    Its arguments are attributes, read and checked: ``model`` is a ``Model`` and ``rubric`` a ``Rubric``. A judge is not
    changed once it is made; ``replace`` makes another.

    Raises ``UsageError`` for a name or an option that cannot be used.

    Args:
        model: A name (``"openai:gpt-6.1-terra"``), a function, a ``(name, function)`` pair, an object with ``name`` and
            ``evaluate(prompt)``, or a ``Model``. A function with a parameter ``content``, ``output``, ``answer``,
            ``response`` or ``completion``, or one that says that it returns a bool or a number, judges by itself, as
            with ``judge_function``. Any other function is a model: it is given the prompt and returns the text of a
            reply, as with ``model_function``.
        rubric: The judge's own rubric: a ``Rubric``, a path or a shipped name. A rubric given to a call replaces it.
        name: The judge's name in results; by default the model's name.
        timeout: Seconds for one judgement, including retries and asking again; ``None`` means no limit.
        reask: How often to ask again after a reply that cannot be read, from 0 to 5.
        structured: ``auto`` uses structured output if the provider has it, ``schema`` sends the JSON Schema of the
            reply to any model, ``text`` to none.
        token: Ask the model to copy eight characters, which tell its answer from text it quotes. Turn this off only for
            a model that cannot copy them (``adjudge doctor`` finds out), or for a function that calls no model.
        scoring: ``stated`` uses the score that the model wrote. ``expected`` weighs all scores it considered by their
            probability, if the model offers log-probabilities.
        logprobs: Ask for log-probabilities, which give ``result.confidence``; replies are several times larger. Always
            on with ``scoring="expected"`` and in a cascade, because they need them.
        reader: How to read replies in another form than adjudge's own, such as ``"Rating: [[7]]"``.
        reader_labels: Names for the reader. For ``name``, ``ordered_models`` and ``json winner``: the names of the two
            contents, in the order shown. For ``label`` and ``GRADE: C``: every label offered. For ``Rating: 7``: the
            words before the number.
        reader_passes: The labels that pass, for ``label`` and ``GRADE: C``, unless the call has ``passes=``.
        temperature: The temperature that the model is asked with; ``None`` leaves it to the provider.
        seed: The seed that the model is asked with, if its provider takes one.
        max_output_tokens: The most tokens of a reply; ``None`` leaves it to the provider.
        redact: A function, sync or async, from text to what may be sent. Applied to every piece of data (content, task,
            context, reference, findings, a ready-made prompt). If it fails, nothing is sent and the result is
            ``undecided: error``.
        on_result: Called with every result; sync or async, and awaited. What it raises is logged and not raised.
    """

    def __init__(
        self,
        model: ModelSource,
        *,
        rubric: RubricSource | None = None,
        name: str = "",
        timeout: float | None = 60.0,
        reask: int = 1,
        structured: Structured = "auto",
        token: bool = True,
        scoring: Scoring = "stated",
        logprobs: bool = False,
        reader: str = "adjudge",
        reader_labels: Sequence[str] = (),
        reader_passes: Sequence[str] = (),
        temperature: float | None = 0.0,
        seed: int | None = None,
        max_output_tokens: int | None = 2048,
        redact: Callable[[str], Any] | None = None,
        on_result: Callable[[JudgeResult], Any] | None = None,
    ) -> None:
        self.model: Model = open_model(model) if isinstance(model, str) else as_model(model, name=name or None)
        """The model that is asked unless the call or its rubric names another."""
        self.name = name or self.model.name
        self.rubric: Rubric | None = None if rubric is None else load_rubric(rubric)
        self.timeout = timeout
        self.reask = reask
        self.structured: Structured = structured
        self.token = token
        self.scoring: Scoring = scoring
        self.logprobs = logprobs
        self.reader = reader
        self.reader_labels = _read_names("reader_labels", reader_labels)
        self.reader_passes = _read_names("reader_passes", reader_passes)
        self.temperature = temperature
        self.seed = seed
        self.max_output_tokens = max_output_tokens
        self.redact = redact
        self.on_result = on_result
        self._style = ReplyStyle(reader=reader, labels=self.reader_labels, passes=self.reader_passes)
        self._named_models: dict[str, Model] = {}
        """The models that rubrics and calls named, by name; they are opened here."""
        self._check_options()
        self._is_made = True

    def replace(self, **changes: Any) -> Self:
        """Return a judge like this one with other arguments.

        Args:
            changes: Arguments of ``Judge``; those that are left out stay as they are.
        """
        return type(self)(**(read_options(self, Judge) | changes))

    async def ask(self, question: Question | str, /) -> JudgeResult:
        """Answer a question. A text is a complete yes/no prompt, which is sent as it is.

        A model that fails, a reply that cannot be read and a timeout give undecided results, not exceptions. Raises
        ``UsageError`` for mistakes that are found before the model is asked (content too long, no key).

        Args:
            question: What is asked.
        """
        result = await self._answer(convert_question(question))
        if self.on_result is not None:
            await notify(self.on_result, result, name="on_result")
        return result

    async def _answer(self, question: Question) -> JudgeResult:
        """Answer a question, and the questions about parts that belong to it, without calling the hook.

        A chain calls the hooks of its seats when its outcome is settled, so that no slow hook makes a seat late.
        """
        model = self.check(question)
        if question.each:
            started = time.perf_counter()
            total = await answer_parts(lambda posed: self._answer_single(posed, model), question)
            return replace(total, duration_ms=measure_ms(started))
        return await self._answer_single(question, model)

    async def _answer_single(self, question: Question, model: Model) -> JudgeResult:
        """Answer one question within the time limit; if anything goes wrong, the result is undecided, with a reason."""
        started = time.perf_counter()
        limit = Timeout(self.timeout)
        call = _JudgeCall(self, question, model, limit)
        try:
            answer = await limit.run(call.run(), name=f"judge {self.name!r}")
        except TimeoutError as error:
            if limit.late:
                detail = f"no answer within {self.timeout:g} s; raise the timeout of the judge"
                answer = make_undecided("timeout", detail, question)
            else:
                answer = call.explain_error(error)
        except FunctionError:
            raise
        except Exception as error:  # noqa: BLE001 - a model that fails leaves the judgement undecided
            answer = call.explain_error(error)
        result = call.conclude(answer, measure_ms(started))
        log_result(result)
        return result

    def check(self, question: Question) -> Model:
        """Return the model that will be asked; raise ``UsageError`` for mistakes that can be found before asking.

        Args:
            question: What is asked.
        """
        for posed in question.posed:
            check_reader(self._style, posed)
        model = self._choose_model(question)
        check = getattr(model, "check", None)
        if check is not None:
            check()
        size = max(sum([len(part.text) for part in posed.parts]) for posed in question.posed)
        limit = getattr(model, "max_input_characters", 1_000_000)
        if size > limit:  # compared here too, because some models build their name each time it is read
            check_size(size, limit, model=model.name)
        return model

    def preview(self, question: Question) -> Request:
        """Return the request that would be sent for a question, before any ``redact``, without sending it.

        Where the parts of a run are judged, it is the first of several.

        Args:
            question: What is asked.
        """
        return _JudgeCall(self, question.posed[0], self._choose_model(question), Timeout(None)).make_request()

    def map_models(self, change: Callable[[Model], Model]) -> Judge:
        """Return a judge like this one, with the same name, whose model is ``change(model)``.

        A subclass that overrides ``ask`` is returned unchanged, because the model it asks is not known here.

        Args:
            change: A function from a model to the one in its place.
        """
        return self.replace(model=change(self.model)) if asks_as(self, Judge) else self

    async def close_named_models(self) -> None:
        """Close the models that rubrics and calls named; the judge's own model stays open."""
        for model in self._named_models.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()

    async def aclose(self) -> None:
        """Close the connections of this judge's models."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()
        await self.close_named_models()

    def __repr__(self) -> str:
        return f"Judge({self.name!r})"

    def _check_options(self) -> None:
        """Raise ``UsageError`` for an option that is not valid, or that can do nothing for a judge in code."""
        check_timeout("timeout", self.timeout)
        check_flag("token", self.token)
        check_choice("structured", self.structured, get_args(Structured))
        check_choice("scoring", self.scoring, get_args(Scoring))
        self._style.check()
        check_functions(f"judge {self.name!r}", redact=self.redact, on_result=self.on_result)
        check_whole_number("reask", self.reask, least=0, most=5)
        if find_function(self.model) is not None:
            self._check_function()

    def _check_function(self) -> None:
        """Raise ``UsageError`` for an option about the text of a reply, which has no effect on a judge in code."""
        if self.reader != ADJUDGE_FORM:
            option = "reader"
        elif self.scoring != "stated":
            option = "scoring"
        elif self.logprobs:
            option = "logprobs"
        else:
            return
        raise UsageError(
            f"judge {self.name!r} is a function that is given the content, so there is no text of a reply: leave out ",
            Argument(option, repr(getattr(self, option))),
            ", or hand the function in as a model, by model_function",
            argument=option,
        )

    def _get_default_rubric(self) -> Rubric | None:
        return self.rubric

    def _choose_model(self, question: Question) -> Model:
        """Return the model that a question names, which is opened at first use; by default the judge's own."""
        name = question.model
        if name is None:
            return self.model
        if name not in self._named_models:
            self._named_models[name] = resolve_model(name, self.model)
        return self._named_models[name]

    def _make_result_of_rules(self, question: Question, answer: Answer, duration_ms: float) -> JudgeResult:
        """Make the result when rules decided and the model was not asked."""
        return make_result(question, answer, judge="rules", attempts=0, duration_ms=duration_ms)


class _JudgeCall:
    """One judgement under way: its question, the replies and the number of attempts. It lives as long as the call."""

    __slots__ = (
        "asks_token", "attempts", "function", "judge", "limit", "model", "question", "replies", "text_after", "token"
    )  # fmt: skip

    def __init__(self, judge: Judge, question: Question, model: Model, limit: Timeout) -> None:
        self.judge, self.question, self.model, self.limit = judge, question, model, limit
        self.token = make_token(question.digest, question.call.secret)
        self.function = find_function(model)
        """The identity of a judge in code. It is known from the judge alone, whatever a reply says of itself."""
        asks = judge.token and judge.reader == ADJUDGE_FORM and question.wording is not None
        self.asks_token = asks and self.function is None
        self.replies: list[Reply] = []
        self.attempts = self.text_after = 0

    async def run(self) -> Answer:
        """Redact the question, ask it, and ask again as often as ``reask`` allows if a reply cannot be read."""
        if self.judge.redact is not None:
            try:
                self.question = await _redact_parts(self.judge.redact, self.question)
                self.judge.check(self.question)  # it may have become too long
            except AdjudgeError as error:
                return make_undecided("error", str(error), self.question)
        if self.question.wording is not None and any(self.token in part.text for part in self.question.parts):
            # The token cannot be guessed. Whoever wrote this data knows the secret, and could end any fence.
            return make_undecided("tampering", "the token of this question is already in its data", self.question)
        answer = await self._ask_once()
        if self.function is not None:  # a judge in code is not asked again: a reminder of the form tells it nothing
            return answer
        while answer.because in _REASKED_REASONS and not answer.final and self.attempts <= self.judge.reask:
            try:
                answer = await self._ask_once()
            except MissingRecording:
                # When this was recorded, the model was not asked again. So the answer stays: the reply cannot be read.
                self.attempts -= 1
                break
        return answer

    async def _ask_once(self) -> Answer:
        """Send one request to the model, and read its reply."""
        if self.limit.over:
            # The model swallowed the cancellation. Nobody waits for this call any more, so another request would be
            # paid for nothing.
            raise asyncio.CancelledError
        request = self.make_request()
        self.attempts += 1
        reply = await self.model.complete(request)
        if not isinstance(reply, Reply):
            raise ModelError(f"{self.model.name!r} returned {type(reply).__name__}, not a Reply")
        reply = drop_impossible_usage(reply, self.model.name)
        self.replies.append(reply)
        token = self.token if self.asks_token else None
        style = self.judge._style  # noqa: SLF001 - a call is the judge's own
        answer = read_reply(
            reply, self.question, token=token, style=style, scoring=self.judge.scoring, function=self.function
        )
        self.text_after += answer.text_after
        return self._add_advice(answer, reply, token)

    def _add_advice(self, answer: Answer, reply: Reply, token: str | None) -> Answer:
        """Add to the detail of an answer what may help, if the reply could not be read because it has no token.

        Turning the token off helps if the reply can be read without one. It is not advised if the reply has a wrong
        token, because then the content may have made the model leave out the right one.
        """
        text = reply.text or ""
        if answer.because != "unparseable" or token is None or '"token"' in text:
            return answer
        remedies = []
        with suppress(ReplyError):
            read_object(text, None)  # raises unless the reply could be read without a token
            remedies.append(TOKEN_REMEDY)
        if isinstance(self.model, FunctionModel):
            remedies.append(f"{self.model.name} was given the prompt; to judge in code, {self.model.in_code}")
        return replace(answer, detail="; ".join([answer.detail, *remedies]))

    def make_request(self) -> Request:
        """Make the request for the next attempt; from the second on, it ends with a reminder of the form."""
        judge, question, is_model = self.judge, self.question, self.function is None
        structured = is_model and (
            judge.structured == "schema"
            or (judge.structured == "auto" and bool(getattr(self.model, "structured", False)))
        )
        style = judge._style  # noqa: SLF001
        system, form = render_system(question, structured=structured, token=self.asks_token, style=style)
        user = question.render_user(self.token, ask_token=self.asks_token)
        reminder = _REMINDER if judge.reader == ADJUDGE_FORM else _STYLE_REMINDER
        return Request(
            system=system,
            user=user if self.attempts == 0 else user + reminder,
            form=form,
            temperature=judge.temperature,
            seed=judge.seed,
            max_output_tokens=judge.max_output_tokens,
            logprobs=is_model and (judge.logprobs or judge.scoring == "expected" or question.wants_confidence),
            token=self.token if question.wording is not None else None,
            case=question.case,
            subject=question.subject,
            order=question.order,
            attempt=self.attempts + 1,
            sample=question.sample,
            call=question.call,
            function_input=None if is_model else make_function_input(question),
        )

    def explain_error(self, error: Exception) -> Answer:
        """Make the undecided answer for an exception that the model raised."""
        if isinstance(error, ReplyError):
            return make_undecided(error.because, error.detail, self.question)
        detail = str(error) if isinstance(error, ModelError) else describe_error(error)
        return make_undecided("error", detail, self.question)

    def conclude(self, answer: Answer, duration_ms: float) -> JudgeResult:
        """Make the result: the answer, and everything about this one call."""
        return make_result(
            self.question,
            answer,
            # When a rubric or the call named another model, this judge's own name would say who did not answer.
            judge=self.judge.name if self.question.model is None else self.model.name,
            attempts=self.attempts,
            duration_ms=duration_ms,
            replies=self.replies,
            text_after=self.text_after,
        )


async def _redact_parts(redact: Callable[[str], Any], question: Question) -> Question:
    """Redact every part of a question's data. The digests stay, because it is still the same question.

    Raises ``AdjudgeError`` if ``redact`` fails.
    """
    parts: list[Part] = []
    for part in question.parts:
        redacted, error = await call_safely(redact, part.text)
        if not isinstance(redacted, str):
            # The message names only the type: the text of the error may quote what should be hidden.
            kind = type(redacted if error is None else error).__name__
            raise AdjudgeError(f"the redaction of the {part.label} gave {kind}; nothing was sent")
        parts.append(replace(part, text=content_text(redacted, label=part.label)))
    return replace(question, parts=tuple(parts))


J = TypeVar("J", bound=Evaluates[Any])


def asks_as(judge: object, kind: type[J]) -> TypeGuard[J]:
    """Return whether a judge is an instance of ``kind``, ``Judge`` or ``JudgeChain``, and does not override ``ask``.

    Which model a subclass with its own ``ask`` calls is not known. So its models cannot be wrapped, and a budget, a
    recording or a description cannot cover them.
    """
    return isinstance(judge, kind) and getattr(type(judge), "ask", None) is kind.ask


def as_seat(source: object, *, limited: bool = True) -> JudgeLike:
    """Make a seat of a chain: an object with ``ask`` stays as it is, anything else is the model of a new ``Judge``.

    A new judge has its default timeout, or none with ``limited=False``. Raises ``UsageError`` for a pair of a name and
    a judge, for an object with ``ask`` that has no name, and for anything that ``Judge`` does not take. Use
    ``open.as_judge`` to make a judge or a chain.
    """
    if isinstance(source, tuple) and len(source) == 2 and hasattr(source[1], "ask"):
        # As a model, the judge's ``evaluate`` would be called with a prompt, and fail at every call.
        raise UsageError(
            f"a pair is (name, function), and ({show(source[0])}, ...) holds a judge, which has a name of its own; "
            "hand in the judge, and name it with Judge(..., name=...)"
        )
    if not hasattr(source, "ask"):
        return Judge(source) if limited else Judge(source, timeout=None)
    if not isinstance(getattr(source, "name", None), str):
        raise UsageError(
            f"a judge needs a name beside its ask, a text, or no result could say who answered; got {source!r:.100}"
        )
    return source  # type: ignore[return-value]


def convert_question(question: Question | str) -> Question:
    """Return a question as it is, or make one of a ready-made prompt."""
    if isinstance(question, Question):
        return question
    from adjudge.judges.evaluate import make_prompt

    return make_prompt(question)


def _read_names(name: str, names: object) -> tuple[str, ...]:
    """Return the names that the option ``name`` has. Raises ``UsageError`` unless they are a list of texts."""
    # A bare text is a sequence as well: "mM" would be the two names m and M.
    if isinstance(names, list | tuple) and all(isinstance(text, str) for text in names):
        return tuple(names)
    raise UsageError(f"{name} must be a list of texts, like ['m', 'M'], got {names!r}", argument=name)
