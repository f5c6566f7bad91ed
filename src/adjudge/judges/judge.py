"""One model as a judge: question, request, reply, reading, result, in five visible steps.

A ``Judge`` holds configuration only. Whatever is about one call is in the result, so one judge answers any number of
questions at once.
"""

from __future__ import annotations

import asyncio
import time
from asyncio import CancelledError
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard, TypeVar, get_args

from adjudge.concurrency import Timeout, describe_error, is_for_us
from adjudge.content import check_size, content_text
from adjudge.errors import AdjudgeError, ModelError, Reason, ReplyError, UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_functions, check_timeout, check_whole_number
from adjudge.hooks import call_safely, notify
from adjudge.judges.evaluate import Evaluates, JudgeLike, RubricSource, log_result, make_result, since
from adjudge.models.function import FunctionModel, as_model
from adjudge.models.model import Model, Reply, Request, find_function
from adjudge.models.open import open_model, resolve_model
from adjudge.models.replay import MissingRecording
from adjudge.models.usage import believe_usage
from adjudge.question.code_judge import make_given
from adjudge.question.prompt import render_system
from adjudge.question.question import Answer, Part, Question
from adjudge.question.reply import make_undecided, read_reply
from adjudge.question.reply_style import OWN, ReplyStyle, check_reader
from adjudge.question.token import make_token
from adjudge.result import JudgeResult
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric

Structured = Literal["auto", "schema", "text"]

Scoring = Literal["stated", "expected"]


ModelSource = Model | str | Callable[..., Any] | tuple[str, Callable[..., Any]] | object


_REASKED: tuple[Reason, ...] = ("unparseable", "missing_criterion", "off_scale")

_REMINDER = (
    "\n\nAn earlier reply to this could not be read. Reply with exactly one JSON object of the shape described, "
    "complete, with every score on its scale, and write nothing after it."
)

_REMINDER_OF_STYLE = (
    "\n\nAn earlier reply to this could not be read. Reply again, and end as described above, in exactly that style."
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Judge(Evaluates[JudgeResult]):
    """A judge: it asks one model, and computes the outcome from the reply.

    ``model`` is a name (``"openai:gpt-6.1-terra"``), a function, a ``(name, function)`` pair, an object with ``name``
    and ``evaluate(prompt)``, or a ``Model``. A function with a parameter ``content`` judges by itself, as with
    ``judge_function``. Any other function is a model: it is given the prompt and returns the text of a reply, as with
    ``model_function``.

    Raises ``UsageError`` for a name or an option that cannot be used.
    """

    model: ModelSource = field(kw_only=False)
    rubric: RubricSource | None = None
    """The judge's own rubric: a ``Rubric``, a path or a shipped name. A rubric given to a call replaces it."""
    name: str = ""
    """The judge's name in results; by default the model's name."""
    timeout: float | None = 60.0
    """Seconds for one judgement, including retries and asking again; ``None`` means no limit."""
    reask: int = 1
    """How often to ask again after a reply that cannot be read, from 0 to 5."""
    structured: Structured = "auto"
    """``auto`` uses structured output if the provider has it, ``schema`` sends the JSON Schema of the reply to any
    model, ``text`` to none."""
    token: bool = True
    """Ask the model to copy eight characters, which tell its answer from text it quotes. Turn this off only for a
    model that cannot copy them (``adjudge doctor`` finds out), or for a function that calls no model."""
    scoring: Scoring = "stated"
    """``stated`` uses the score that the model wrote. ``expected`` weighs all scores it considered by their
    probability, if the model offers log-probabilities."""
    logprobs: bool = False
    """Ask for log-probabilities, which give ``result.confidence``; replies are several times larger. Always on with
    ``scoring="expected"`` and in a cascade, because they need them."""
    reader: str = "adjudge"
    """How to read replies in another form than adjudge's own, such as ``"Rating: [[7]]"``."""
    reader_labels: Sequence[str] = ()
    """Names for the reader. For ``name``, ``ordered_models`` and ``json winner``: the names of the two contents, in
    the order shown. For ``label`` and ``GRADE: C``: every label offered. For ``Rating: 7``: the words before the
    number."""
    reader_passes: Sequence[str] = ()
    """The labels that pass, for ``label`` and ``GRADE: C``, unless the call has ``passes=``."""
    temperature: float | None = 0.0
    seed: int | None = None
    max_output_tokens: int | None = 2048
    redact: Callable[[str], Any] | None = None
    """A function, sync or async, from text to what may be sent. Applied to every piece of data (content, task,
    context, reference, findings, a ready-made prompt). If it fails, nothing is sent and the result is
    ``undecided: error``."""
    on_result: Callable[[JudgeResult], Any] | None = None
    """Called with every result; sync or async, and awaited. What it raises is logged and not raised."""
    _model: Model = field(init=False)
    """``model`` once more, with the type that it has when the judge is made."""
    _others: dict[str, Model] = field(default_factory=dict, init=False)
    _style: ReplyStyle = field(init=False)
    """The three that begin with ``reader``, made and checked once: every judgement looks at them."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__
        own = open_model(self.model) if isinstance(self.model, str) else as_model(self.model, name=self.name or None)
        set_field(self, "model", own)
        set_field(self, "_model", own)
        set_field(self, "name", self.name or own.name)
        if self.rubric is not None:
            set_field(self, "rubric", load_rubric(self.rubric))
        check_timeout("timeout", self.timeout)
        check_flag("token", self.token)
        check_choice("structured", self.structured, get_args(Structured))
        check_choice("scoring", self.scoring, get_args(Scoring))
        for what in ("reader_labels", "reader_passes"):
            set_field(self, what, _read_names(what, getattr(self, what)))
        style = ReplyStyle(reader=self.reader, labels=tuple(self.reader_labels), passes=tuple(self.reader_passes))
        style.check()
        set_field(self, "_style", style)
        check_functions(f"judge {self.name!r}", redact=self.redact, on_result=self.on_result)
        check_whole_number("reask", self.reask, least=0, most=5)
        if find_function(own) is not None:
            self._check_function()

    @property
    def own_model(self) -> Model:
        """The model that is asked unless the call or its rubric names another."""
        return self._model

    async def ask(self, question: Question | str, /) -> JudgeResult:
        """Answer a question. A text is a complete yes/no prompt, which is sent as it is.

        A model that fails, a reply that cannot be read and a timeout give undecided results, not exceptions. Raises
        ``UsageError`` for mistakes that are found before the model is asked (content too long, no key).
        """
        result = await self._answer(make_question(question))
        if self.on_result is not None:
            await notify(self.on_result, result, what="on_result")
        return result

    async def _answer(self, posed: Question) -> JudgeResult:
        """The result, and nobody told of it: a chain tells its seats' hooks once they can make no seat late."""
        model = self.check(posed)
        started = time.perf_counter()
        limit = Timeout(self.timeout)
        call = _Call(self, posed, model, limit)
        try:
            answer = await limit.run(call.run(), what=f"judge {self.name!r}")
        except TimeoutError as error:
            late = limit.late
            said = f"no answer within {self.timeout:g} s; raise the timeout of the judge"
            answer = make_undecided("timeout", said, posed) if late else call.fail(error)
        except BaseException as error:
            if is_for_us(error) or isinstance(error, CancelledError):  # a model's own as well: it is for the task
                raise
            answer = call.fail(error)  # whatever else a model raises, the judgement is undecided
        try:
            result = call.conclude(answer, since(started))
        except Exception as error:  # noqa: BLE001 - what a model reports beside its replies cannot be added up
            del call.replies[:-1]
            result = call.conclude(call.fail(error), since(started))
        log_result(result)
        return result

    def check(self, question: Question) -> Model:
        """Return the model that will be asked; raise ``UsageError`` for mistakes that can be found before asking."""
        check_reader(self._style, question)
        model = self._choose_model(question)
        ready = getattr(model, "check", None)
        if ready is not None:
            ready()
        size = sum([len(part.text) for part in question.parts])
        limit = getattr(model, "max_input_characters", 1_000_000)
        if size > limit:  # asked here too, since a model may have to put its name together
            check_size(size, limit, model=model.name)
        return model

    def preview(self, question: Question) -> Request:
        """Return the request that would be sent for a question, before any ``redact``, without sending it."""
        return _Call(self, question, self._choose_model(question), Timeout(None)).make_request()

    def map_models(self, change: Callable[[Model], Model]) -> Judge:
        """Return a judge like this one, with the same name, whose model is ``change(model)``.

        A subclass that overrides ``ask`` is returned unchanged, because the model it asks is not known here.
        """
        return replace(self, model=change(self.own_model), name=self.name) if asks_as(self, Judge) else self

    async def close_others(self) -> None:
        """Close the models that rubrics and calls named; the judge's own model stays open."""
        for model in self._others.values():
            close = getattr(model, "aclose", None)
            if close is not None:
                await close()

    async def aclose(self) -> None:
        """Close the connections of this judge's models."""
        close = getattr(self.model, "aclose", None)
        if close is not None:
            await close()
        await self.close_others()

    def __repr__(self) -> str:
        return f"Judge({self.name!r})"

    def _check_function(self) -> None:
        """Refuse what is about the text of a reply, where there is none: it would do nothing, and look as if it did."""
        wrong = "reader" if self.reader != OWN else "scoring" if self.scoring != "stated" else ""
        wrong = wrong or ("logprobs" if self.logprobs else "")
        if wrong:
            raise UsageError(
                f"judge {self.name!r} is a function that is given the content, so there is no text of a reply: leave "
                f"out {wrong}={getattr(self, wrong)!r}, or hand in model_function(function)"
            )

    def _own_rubric(self) -> Rubric | None:
        return self.rubric if isinstance(self.rubric, Rubric) else None

    def _choose_model(self, question: Question) -> Model:
        name = question.model
        if name is None:
            return self._model
        if name not in self._others:
            self._others[name] = resolve_model(name, self._model)
        return self._others[name]

    def _settle(self, question: Question, answer: Answer, duration_ms: float) -> JudgeResult:
        return make_result(question, answer, judge="rules", attempts=0, duration_ms=duration_ms)


class _Call:
    """One judgement under way: what was asked, what came back, how often. It lives as long as the call."""

    __slots__ = (
        "asked", "asks_token", "function", "judge", "limit", "model", "question", "replies", "text_after", "token"
    )  # fmt: skip

    def __init__(self, judge: Judge, question: Question, model: Model, limit: Timeout) -> None:
        self.judge, self.question, self.model, self.limit = judge, question, model, limit
        self.token = make_token(question.digest, question.call.secret)
        self.function = find_function(model)
        """Which judge in code is asked. It is known from the judge alone, whatever a reply says of itself."""
        asks = judge.token and judge.reader == OWN and question.wording is not None
        self.asks_token = asks and self.function is None
        self.replies: list[Reply] = []
        self.asked = self.text_after = 0

    async def run(self) -> Answer:
        """Ask, read, and ask once more when the reply could not be read."""
        if self.judge.redact is not None:
            try:
                self.question = await _redact(self.judge.redact, self.question)
                self.judge.check(self.question)  # it may have become too long
            except AdjudgeError as error:
                return make_undecided("error", str(error), self.question)
        if self.question.wording is not None and any(self.token in part.text for part in self.question.parts):
            # It cannot be guessed: whoever wrote this has seen the secret, and could close any fence.
            return make_undecided("tampering", "the token of this question is already in its data", self.question)
        answer = await self._ask_once()
        if self.function is not None:  # it was shown no form, so it would not be told anything by a reminder of it
            return answer
        while answer.because in _REASKED and not answer.final and self.asked <= self.judge.reask:
            try:
                answer = await self._ask_once()
            except MissingRecording:
                # Whoever was recorded was asked once, and what was said then stands: it could not be read.
                self.asked -= 1
                break
        return answer

    async def _ask_once(self) -> Answer:
        if self.limit.over:
            # Whatever was awaited swallowed that it was cancelled. Nobody waits for this call any more, and each
            # further request would be paid for nothing.
            raise asyncio.CancelledError
        request = self.make_request()
        self.asked += 1
        reply = await self.model.complete(request)
        if not isinstance(reply, Reply):
            raise ModelError(f"{self.model.name!r} returned {type(reply).__name__}, not a Reply")
        reply = believe_usage(reply, self.model.name)
        self.replies.append(reply)
        token = self.token if self.asks_token else None
        style = self.judge._style  # noqa: SLF001 - a call is the judge's own
        answer = read_reply(
            reply, self.question, token=token, style=style, scoring=self.judge.scoring, function=self.function
        )
        self.text_after += answer.text_after
        return self._advise(answer, reply, token)

    def _advise(self, answer: Answer, reply: Reply, token: str | None) -> Answer:
        """Tell whoever wrote a function that answers without the token what it is missing.

        Not said of other models: there a missing token can be an attack, and going without it is no remedy.
        """
        alone = token is not None and token not in (reply.text or "") and (reply.text or "").lstrip().startswith("{")
        if answer.because != "unparseable" or not alone or not isinstance(self.model, FunctionModel):
            return answer
        remedy = (
            "a function has to copy it, or be judged with token=False (--no-token; token = false in adjudge.toml); one "
            "that judges by itself names its parameter content, and needs none"
        )
        return replace(answer, detail=f"{answer.detail}; {remedy}")

    def make_request(self) -> Request:
        judge, question, is_model = self.judge, self.question, self.function is None
        structured = is_model and (
            judge.structured == "schema"
            or (judge.structured == "auto" and bool(getattr(self.model, "structured", False)))
        )
        style = judge._style  # noqa: SLF001
        system, form = render_system(question, structured=structured, token=self.asks_token, style=style)
        user = question.user(self.token, ask_token=self.asks_token)
        return Request(
            system=system,
            user=user if self.asked == 0 else user + (_REMINDER if judge.reader == OWN else _REMINDER_OF_STYLE),
            form=form,
            temperature=judge.temperature,
            seed=judge.seed,
            max_output_tokens=judge.max_output_tokens,
            logprobs=is_model and (judge.logprobs or judge.scoring == "expected" or question.wants_confidence),
            token=self.token if question.wording is not None else None,
            case=question.case,
            order=question.order,
            attempt=self.asked + 1,
            sample=question.sample,
            call=question.call,
            given=None if is_model else make_given(question),
        )

    def fail(self, error: BaseException) -> Answer:
        """The answer when the model raised."""
        if isinstance(error, ReplyError):
            return make_undecided(error.because, error.detail, self.question)
        if isinstance(error, CancelledError):
            return make_undecided("error", "the judge cancelled itself", self.question)
        said = describe_error(error)
        if isinstance(error, ModelError):
            said = said.partition(": ")[2]
        return make_undecided("error", said, self.question)

    def conclude(self, answer: Answer, duration_ms: float) -> JudgeResult:
        """The result: the answer, and everything about this one call."""
        return make_result(
            self.question,
            answer,
            # When a rubric or the call named another model, this judge's own name would say who did not answer.
            judge=self.judge.name if self.question.model is None else self.model.name,
            attempts=self.asked,
            duration_ms=duration_ms,
            replies=self.replies,
            text_after=self.text_after,
        )


async def _redact(redact: Callable[[str], Any], question: Question) -> Question:
    """The question with every piece of its data redacted, and its digests as they were: it is still that question."""
    parts: list[Part] = []
    for part in question.parts:
        said, error = await call_safely(redact, part.text)
        if not isinstance(said, str):
            # Its type alone: what a redaction raises is likely to quote what it should have hidden.
            found = type(said if error is None else error).__name__
            raise AdjudgeError(f"the redaction of the {part.label} gave {found}; nothing was sent")
        parts.append(replace(part, text=content_text(said, what=part.label)))
    return replace(question, parts=tuple(parts))


J = TypeVar("J", bound=Evaluates[Any])


def asks_as(judge: object, kind: type[J]) -> TypeGuard[J]:
    """Whether a judge is of a class of ours and asks as that class does.

    A subclass with an ``ask`` of its own is somebody's own judge: whom it asks is not seen from here, so nothing may be
    put between it and its models, and nothing (a budget, a recording, a description) promised of what it asks.
    """
    return isinstance(judge, kind) and getattr(type(judge), "ask", None) is kind.ask


def as_seat(source: object, **options: Any) -> JudgeLike:
    """Whatever was handed in to be asked: what has ``ask`` as it is, anything else as the model of a new ``Judge``.

    ``options`` are those of a new judge. Raises ``UsageError`` for what is neither. ``open.as_judge`` is the door for
    whoever needs a judge or a chain; a chain takes its seats here.
    """
    if not hasattr(source, "ask"):
        return Judge(source, **options)
    if not isinstance(getattr(source, "name", None), str):
        raise UsageError(
            f"a judge needs a name beside its ask, a text, or no result could say who answered; got {source!r:.100}"
        )
    return source  # type: ignore[return-value]


def make_question(question: Question | str) -> Question:
    """A question as it is, or a ready-made prompt as one."""
    if isinstance(question, Question):
        return question
    from adjudge.judges.evaluate import make_prompt

    return make_prompt(question)


def _read_names(what: str, given: object) -> tuple[str, ...]:
    # A bare text is a sequence as well: "mM" would be the two names m and M.
    if isinstance(given, list | tuple) and all(isinstance(item, str) for item in given):
        return tuple(given)
    raise UsageError(f"{what} must be a list of texts, like ['m', 'M'], got {given!r}")
