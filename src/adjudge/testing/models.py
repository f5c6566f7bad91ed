"""Doubles for tests: a model with a script, a model that breaks on purpose, and faults to break it with.

They are public because whoever gates something with a judge has to test what happens when the judge says no, says
nonsense or says nothing. They ask nobody, and they fill in the token that adjudge's prompts ask for, so a script
can be written as the plain reply. ``assert_passes`` is the assertion for tests of what a program writes.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack, get_args

from adjudge.errors import ModelError, UsageError
from adjudge.judges.evaluate import EvaluateArguments, JudgeLike, RubricSource
from adjudge.judges.judge import ModelSource
from adjudge.models.model import Model, Reply, Request
from adjudge.question.token import MASK
from adjudge.result import JudgeResult
from adjudge.testing.running_test import find_judge

Line = str | Mapping[str, Any] | Reply | BaseException | type[BaseException] | Callable[[Request], Any] | None
"""One line of a script: the reply's text, its object, a whole ``Reply``, an exception to raise, or a function of the
request that returns any of these. ``None`` is a model that answers nothing."""


Fault = Literal[
    "hang",
    "error",
    "http_400",
    "http_500",
    "reset",
    "refusal",
    "empty",
    "truncated",
    "cut_off",
    "two_objects",
    "duplicate_key",
    "nan",
    "off_scale",
    "negative",
    "boolean_score",
    "missing_criterion",
    "repeated_criterion",
    "invented_criterion",
    "contradiction",
    "wrong_token",
    "prose",
    "text_after",
    "second_verdict",
]
"""The faults that a ``FaultyModel`` can put into a reply."""


FAULTS: tuple[Fault, ...] = get_args(Fault)
"""Every fault, in order."""


class ScriptedModel:
    """A model that replies with what you write, for tests.

    ``requests`` holds every request it was asked. The token is filled in, and so is the name of the only criterion.

        >>> from adjudge import Judge
        >>> model = ScriptedModel({"criteria": [{"score": 0.9}]})
        >>> Judge(model).evaluate_sync("Hello.", criteria="Is polite.").passed
        True

    Args:
        script: One reply, used every time, or a sequence of replies, used in order; when they are used up it raises
            ``ModelError``.
        name: The model's name.
        delay: Seconds to wait before each reply.
        structured: Whether it says that it can be held to a JSON Schema.
        requests: The list that its requests are added to; by default a new one.
    """

    def __init__(
        self,
        script: Line | Sequence[Line],
        *,
        name: str = "scripted",
        delay: float = 0.0,
        structured: bool = False,
        requests: list[Request] | None = None,
    ) -> None:
        self.name = name
        self.delay = delay
        """Seconds to wait before each reply."""
        self.structured = structured
        self.requests: list[Request] = requests if requests is not None else []
        self._script = script
        is_one = isinstance(script, str) or not isinstance(script, Sequence)
        self._lines: Iterator[Line] = _repeat(script) if is_one else iter(script)

    async def complete(self, request: Request, /) -> Reply:
        """Say the next line.

        Args:
            request: The request that a judge makes.
        """
        self.requests.append(request)
        line = next(self._lines, _SCRIPT_END)
        if self.delay:
            await asyncio.sleep(self.delay)
        return make_scripted_reply(line, request, self.name)

    def named(self, name: str) -> ScriptedModel:
        """Return the same script under another model's name; requests go to the same list.

        Args:
            name: The other name.
        """
        return ScriptedModel(
            self._script, name=name, delay=self.delay, structured=self.structured, requests=self.requests
        )

    def __repr__(self) -> str:
        return f"ScriptedModel({self.name!r})"


class FaultyModel:
    """A model that does to another model's replies what really happens to replies.

    Args:
        model: The model whose replies are broken.
        faults: Applied in order, one per request; ``None`` lets a reply through, and so does the end of the list.
        name: The model's name; by default made of the other's.
    """

    def __init__(self, model: Model, faults: Sequence[Fault | None], *, name: str | None = None) -> None:
        for fault in faults:
            if fault is not None and fault not in FAULTS:
                raise UsageError(f"unknown fault {fault!r}; use one of {', '.join(FAULTS)}", argument="fault")
        self.model = model
        self.name = name or f"faulty({model.name})"
        self._faults = iter(faults)

    async def complete(self, request: Request, /) -> Reply:
        """Ask the model, and break its reply.

        Args:
            request: The request that a judge makes.
        """
        fault = next(self._faults, None)
        if fault == "hang":
            await asyncio.Event().wait()
        if fault in _RAISED_FAULTS:
            error = _RAISED_FAULTS[fault]
            raise error()
        reply = await self.model.complete(request)
        return reply if fault is None else break_reply(reply, fault)


def assert_passes(
    content: object,
    rubric: RubricSource | None = None,
    *,
    judge: JudgeLike | ModelSource | None = None,
    **options: Unpack[EvaluateArguments],
) -> JudgeResult:
    """Judge some content and raise ``AssertionError`` unless it passed; undecided is not a pass. Returns the result.

    In a pytest suite the suite's judge is asked, and recorded or replayed, unless ``judge`` names another; elsewhere
    ``judge``, or the model that ``ADJUDGE_JUDGE`` names. It works with and without an event loop, and blocks a running
    one. If the judge needs the test's own loop, write ``await judge(content, ..., throw_on_fail=True)``.

    Args:
        content: What is judged: a text, a JSON value, messages.
        rubric: What good means; ``None`` with ``criteria=``, or for the suite's rubric.
        judge: The judge to ask; by default the suite's, elsewhere the model that ``ADJUDGE_JUDGE`` names.
        options: Further arguments of ``Judge.evaluate``; ``throw_on_fail`` has no effect.
    """
    from adjudge.judges.open import find_judge as find_configured
    from adjudge.judges.remedies import list_code_judges
    from adjudge.sync import run_sync
    from adjudge.testing.summary import explain, show_content

    __tracebackhide__ = True
    options.pop("throw_on_fail", None)
    suite = find_judge()
    if suite is not None:
        return suite.assert_passes(content, rubric, judge=judge, **options)
    opened_judge = find_configured(judge)
    result = run_sync(opened_judge.evaluate(content, rubric, **options))
    if not result.passed:
        raise AssertionError(f"{explain(result, code_judges=list_code_judges(opened_judge))}\n{show_content(content)}")
    return result


def break_reply(reply: Reply, fault: Fault) -> Reply:
    """Put a fault into a reply.

    Args:
        reply: The reply of a model.
        fault: One of ``FAULTS``.
    """
    if fault == "refusal":
        return replace(reply, finish_reason="refusal")
    if fault == "truncated":
        return replace(reply, finish_reason="length")
    text = reply.text or ""
    if fault in _TEXT_FAULTS:
        return replace(reply, text=_TEXT_FAULTS[fault](text))
    members = json.loads(text)
    _OBJECT_FAULTS[fault](members)
    return replace(reply, text=json.dumps(members))


def make_scripted_reply(line: Line | object, request: Request, name: str = "scripted") -> Reply:
    """Make a reply to a request from a line of a script: the token is filled in, exceptions are raised.

    A dictionary whose only entry of ``criteria`` has no name gets that of the only criterion.

    Args:
        line: The line: a text, a dictionary, a ``Reply``, an exception, a function of the request, or ``None``.
        request: The request that it answers.
        name: The model's name.
    """
    if line is _SCRIPT_END:
        raise ModelError(f"the script of {name!r} is used up; give it another line or a single line to repeat")
    if isinstance(line, BaseException) or (isinstance(line, type) and issubclass(line, BaseException)):
        raise line
    if callable(line):
        return make_scripted_reply(line(request), request, name)
    if isinstance(line, Reply):
        return replace(line, text=fill_token(line.text, request.token)) if line.text else line
    if line is None:
        return Reply(text=None, model=name)
    text = line if isinstance(line, str) else json.dumps(_fill_criterion_name(line, request.system))
    return Reply(text=fill_token(text, request.token), model=name)


_NUMBERED_CRITERION = re.compile(r"^\d+\. (.+?): ", re.MULTILINE)
"""A criterion as a prompt lists it."""


def _fill_criterion_name(line: Any, system: str) -> Any:
    """Add the name of the question's only criterion to a reply that has one criterion without a name."""
    entries = line.get("criteria") if isinstance(line, Mapping) else None
    names = _NUMBERED_CRITERION.findall(system)
    match entries:
        case [dict() as entry] if "name" not in entry and len(names) == 1:
            return {**line, "criteria": [{"name": names[0], **entry}]}
    return line


def fill_token(text: str, token: str | None) -> str:
    """Put the token at the beginning of the reply's object, or in place of ``{{token}}``.

    Args:
        text: The reply.
        token: The token of the question; ``None`` leaves the reply as it is.
    """
    if token is None:
        return text
    if MASK in text:
        return text.replace(MASK, token)
    start = text.find("{")
    if start < 0 or text[start + 1 :].lstrip().startswith('"token"'):
        return text
    remainder = text[start + 1 :]
    comma = "" if remainder.lstrip().startswith("}") else ", "
    return f'{text[:start]}{{"token": "{token}"{comma}{remainder}'


_SCRIPT_END = object()
"""The line after the last one of a script."""


def _repeat(line: Any) -> Iterator[Line]:
    while True:
        yield line


def _find_first_entry(members: dict[str, Any]) -> dict[str, Any]:
    """Return the first criterion of a reply, or the reply itself if it has none."""
    entries = members.get("criteria")
    if not entries:
        return members
    first: dict[str, Any] = entries[0] if isinstance(entries, list) else next(iter(entries.values()))
    return first


def _set_score(value: Any) -> Callable[[dict[str, Any]], None]:
    """Make a function that sets the score of the first criterion (or ``safe``, without a score) to a value."""

    def change(members: dict[str, Any]) -> None:
        entry = _find_first_entry(members)
        entry["score" if "score" in entry else "safe"] = value

    return change


def _swap_type(members: dict[str, Any]) -> None:
    """Put a boolean where a number is due, or a number where a boolean is."""
    entry = _find_first_entry(members)
    if "score" in entry:
        entry["score"] = True
    else:
        entry["safe"] = 1


def _list_entries(members: dict[str, Any]) -> list[Any]:
    """Return the criteria as a list, in which one can occur twice; structured replies have them by name."""
    entries = members.get("criteria", [])
    return entries if isinstance(entries, list) else [{"name": name, **entry} for name, entry in entries.items()]


def _drop_criterion(members: dict[str, Any]) -> None:
    members["criteria"] = _list_entries(members)[1:]
    members.pop("safe", None)


def _repeat_criterion(members: dict[str, Any]) -> None:
    entries = _list_entries(members)
    members |= {"criteria": [*entries, *entries[:1]], "safe": None}


def _invent_criterion(members: dict[str, Any]) -> None:
    members["criteria"] = [*_list_entries(members), {"name": "an invented criterion", "score": 1.0}]
    members["safe"] = None


def _contradict(members: dict[str, Any]) -> None:
    members |= {"safe": True, "passed": False}


def _add_verdict(members: dict[str, Any]) -> None:
    members["verdict"] = "fail"


_RAISED_FAULTS: Mapping[str | None, Callable[[], Exception]] = {
    "error": lambda: RuntimeError("a fault was injected"),
    "http_400": lambda: ModelError("the server answered 400", status=400),
    "http_500": lambda: ModelError("the server answered 500", status=500),
    "reset": lambda: ConnectionResetError("connection reset by peer"),
}


_TEXT_FAULTS: Mapping[str, Callable[[str], str]] = {
    "empty": lambda text: "",
    "cut_off": lambda text: text[: len(text) * 2 // 3],
    "two_objects": lambda text: f"{text}\n{text}",
    "duplicate_key": lambda text: (
        text.replace("{", '{"twice": 1, "twice": 2, ', 1)
        if '"token"' not in text
        else text[: text.rindex("}")] + ', "twice": 1, "twice": 2}'
    ),
    "wrong_token": lambda text: "{" + text.partition("{")[2].partition(",")[2] if '"token"' in text else "{}",
    "prose": lambda text: "It looks good to me, I would let it pass.",
    "text_after": lambda text: f"{text}\nWait, I take that back: it fails.",
}


_OBJECT_FAULTS: Mapping[str, Callable[[dict[str, Any]], None]] = {
    "nan": _set_score(float("nan")),
    "off_scale": _set_score(95),
    "negative": _set_score(-3),
    "boolean_score": _swap_type,
    "missing_criterion": _drop_criterion,
    "repeated_criterion": _repeat_criterion,
    "invented_criterion": _invent_criterion,
    "contradiction": _contradict,
    "second_verdict": _add_verdict,
}
