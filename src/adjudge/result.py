"""The results of judgements: the values everything else talks about.

A result's outcome is ``passed``, ``failed`` or ``undecided``, and ``passed`` is true for the first alone, so code
that only asks ``if result.passed`` fails closed by the shape of the type. Results are data: they hold no model, no
connection and no clock, and go to and from plain dictionaries; only the Python types of ``value`` and ``metadata``
are lost on the way.

The reasons for which a judgement is undecided are listed in ``errors.py`` (``Reason``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from numbers import Real
from random import Random
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

from adjudge.errors import AdjudgeError, Reason, UsageError
from adjudge.formats.display import describe_left_out, describe_models
from adjudge.formats.model_name import is_same_model
from adjudge.formats.msgspec_types import read_typed
from adjudge.formats.numbers import describe_needed
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import clean
from adjudge.formats.times import get_now


class JudgmentFailed(AdjudgeError):
    """The content did not pass.

    Args:
        result: Whether it failed or is undecided, and why.
    """

    def __init__(self, result: JudgeResult) -> None:
        super().__init__(result.explain())
        self.result = result


Outcome = Literal["passed", "failed", "undecided"]

DecidedBy = Literal["judge", "rule", "policy", "human"]

Severity = Literal["error", "warning", "info"]


REASONS: tuple[Reason, ...] = get_args(Reason)
"""The reasons why a result is undecided, gravest first; a chain shows the gravest of its seats' reasons."""


_OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

_LOW, _HIGH = -1e-9, 1 + 1e-9
"""0 and 1, with room for the last digit of a weighted mean."""

_GRAVITY = {reason: place for place, reason in enumerate(REASONS)}


_SHARES = ("score", "threshold", "confidence")


def is_share(value: object) -> bool:
    """Return whether a value is ``None``, or a number in 0 to 1: no boolean, no text, and false for NaN."""
    if value is None:
        return True
    if type(value) is not float and (isinstance(value, bool) or not isinstance(value, Real)):
        return False
    return bool(_LOW <= value <= _HIGH)  # type: ignore[operator]


def find_gravest(reasons: list[Reason]) -> Reason | None:
    """Return the gravest of some reasons, or ``None`` when there are none."""
    return min(reasons, key=_GRAVITY.__getitem__, default=None)


_VERSION_BITS = 0x7 << 76 | 0x2 << 62  # version and variant of a UUIDv7

_RANDOM_BITS = (1 << 80) - 1 & ~(0xF << 76 | 0x3 << 62)
"""The lower 80 bits of a UUID without those of version and variant."""

# Our own, so that a program that seeds the module's generator, as evaluations do, does not repeat ids; seeded anew in
# a forked child, which would go on with its parent's.
_random = Random()  # noqa: S311 - ids are to be unique, and nothing rests on their being secret

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_random.seed)


def make_id() -> str:
    """Make a new UUIDv7 (RFC 9562): sortable by time, random in its lower 74 bits."""
    milliseconds = time.time_ns() // 1_000_000
    text = f"{milliseconds << 80 | _random.getrandbits(80) & _RANDOM_BITS | _VERSION_BITS:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """The usage of a judgement: tokens, calls and, where the price is known, dollars.

    Args:
        input_tokens: Tokens of the prompts.
        output_tokens: Tokens of the replies.
        cached_tokens: Input tokens the provider took from its own prompt cache; part of ``input_tokens``.
        written_tokens: Input tokens it wrote to that cache, which some charge more for; part of ``input_tokens`` too.
        calls: Requests that were answered; retries of refused connections are not among them.
        cost_usd: ``None`` means unknown, never free.
    """

    writes_flat: ClassVar[bool] = True
    writes_plain: ClassVar[bool] = True

    input_tokens: int = 0
    """Tokens of the prompts."""
    output_tokens: int = 0
    """Tokens of the replies."""
    cached_tokens: int = 0
    """Input tokens the provider took from its own prompt cache; part of ``input_tokens``."""
    written_tokens: int = 0
    """Input tokens it wrote to that cache, which some charge more for; part of ``input_tokens`` too."""
    calls: int = 1
    """Requests that were answered; retries of refused connections are not among them."""
    cost_usd: float | None = None
    """``None`` means unknown, never free."""

    def __add__(self, other: Usage) -> Usage:
        has_cost = self.cost_usd is not None and other.cost_usd is not None
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cached_tokens=self.cached_tokens + other.cached_tokens,
            written_tokens=self.written_tokens + other.written_tokens,
            calls=self.calls + other.calls,
            cost_usd=(self.cost_usd or 0.0) + (other.cost_usd or 0.0) if has_cost else None,
        )

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return _convert_members(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """The result of one deterministic rule."""

    writes_plain: ClassVar[bool] = True

    name: str
    """The rule's name."""
    passed: bool
    """True if the content keeps the rule."""
    severity: Severity = "error"
    """The meaning of a failure: ``error`` decides, ``warning`` is shown to the judge, ``info`` is only recorded."""
    message: str = ""
    """One sentence: what was found, or what was missing."""
    score: float | None = None
    """A degree in 0 to 1 for rules that measure one (similarity), else ``None``."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The details that the rule adds, such as the places it found."""

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return _convert_members(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class CriterionResult:
    """The result on one criterion of a rubric."""

    writes_flat: ClassVar[bool] = True
    writes_plain: ClassVar[bool] = True

    name: str
    """The criterion's name."""
    score: float | None
    """A share in 0 to 1, on any scale of the rubric; ``None`` if the judge gave no score."""
    passed: bool
    """True if the score reaches the criterion's threshold; without a threshold, if it is at least 0.5, which has
    no effect on the outcome.
    """
    reasoning: str = ""
    """The judge's reason for the score."""
    weight: float = 1.0
    """The criterion's weight in the total score."""
    threshold: float | None = None
    """The criterion's own threshold, in 0 to 1; ``None`` if it has none, and so cannot fail the content."""
    rule: str | None = None
    """The kind of rule that decided (``regex``), if no model was asked about this criterion."""
    evidence: tuple[str, ...] = ()
    """Quotations that were found in the content."""

    def __post_init__(self) -> None:
        for name in ("score", "threshold"):
            if not is_share(getattr(self, name)):
                value = getattr(self, name)
                raise UsageError(
                    f"the {name} of criterion {self.name!r} is in 0 to 1, or None; got {value!r}", argument=name
                )

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return _convert_members(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartResult:
    """The result on one criterion for one call or turn of an agent's run."""

    writes_flat: ClassVar[bool] = True
    writes_plain: ClassVar[bool] = True

    part: str
    """The part, such as ``call 3``, counted from 1."""
    criterion: str
    """The name of the criterion."""
    score: float | None
    """A share in 0 to 1."""
    passed: bool
    """As in ``CriterionResult``."""
    reasoning: str = ""
    """The judge's reason for the score."""
    evidence: tuple[str, ...] = ()
    """Quotations that were found in the part."""

    def __post_init__(self) -> None:
        if not is_share(self.score):
            raise UsageError(
                f"the score of criterion {self.criterion!r} is in 0 to 1, or None; got {self.score!r}", argument="score"
            )

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return _convert_members(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeResult:
    """A judge's answer to one question, computed in code from the judge's reply.

    Scores are in 0 to 1, durations in milliseconds, digests are hexadecimal SHA-256.
    """

    schema: ClassVar[str] = "adjudge/result/1"
    writes_plain: ClassVar[bool] = True
    """``to_dict`` always returns plain JSON values, so callers need not check them again."""
    _layout: ClassVar[Layout] = Layout(last=("passed", "model_differs"), omitted=("parts",))

    outcome: Outcome
    """``passed``, ``failed`` or ``undecided``."""
    judge: str
    """The name of the judge that answered."""
    undecided_because: Reason | None = None
    """Set exactly when the outcome is undecided."""
    detail: str = ""
    """One sentence about what decided, or what could not be read."""
    decided_by: DecidedBy = "judge"
    """The one who decided: ``judge``, ``rule``, ``human`` or ``policy``."""
    score: float | None = None
    """``None`` when undecided, never 0 for "could not tell"."""
    threshold: float | None = None
    """The passing threshold that was in force."""
    confidence: float | None = None
    """A share from token probabilities or votes; ``None`` is unknown, and never what a model says about itself."""
    criteria: tuple[CriterionResult, ...] = ()
    """The result on each criterion, in the rubric's order."""
    parts: tuple[PartResult, ...] = ()
    """Each call or turn of an agent's run that a criterion was judged for, in order; empty without such criteria."""
    rule_results: tuple[RuleResult, ...] = ()
    """The result of each rule that was checked."""
    reasoning: str = ""
    """The judge's reasoning about the content as a whole."""
    suggestions: tuple[str, ...] = ()
    """The improvements that the judge suggests."""
    value: Any = None
    """The instance of ``result_format``, or the reading of a named reply form; ``None`` when undecided. Under a
    firewall, what the judge rejected."""
    model: str | None = None
    """The model as the provider reports it."""
    model_requested: str | None = None
    """The model that the provider was asked for; ``None`` for functions, which have no model name."""
    model_expected: str | None = None
    """If a provider may report any name (``azure:``, ``openrouter:``, your own servers): the name that it reported
    first, with which ``model`` is compared. Otherwise ``None``, and ``model_requested`` is expected.
    """
    raw_response: str | None = None
    """The reply as it was received; after a re-ask, the last one."""
    earlier_responses: tuple[str, ...] = ()
    """Replies that could not be read and were followed by a re-ask, and those about the parts of a run before the
    last one; oldest first."""
    text_after: int = 0
    """The number of replies that were ``unparseable`` because text followed the answer, also before a re-ask."""
    finish_reason: str | None = None
    """The reason for which the model stopped, as its provider names it (``stop``, ``length``)."""
    request_id: str | None = None
    """The provider's id of the last request, for its support and its logs: one line of at most 200 characters. For a
    recorded or cached reply, the id of the original request.
    """
    attempts: int = 1
    """The number of times that the model was asked; 2 after a re-ask, 0 when a rule decided."""
    duration_ms: float = 0.0
    """The time until the answer, with retries and asking again."""
    usage: Usage | None = None
    """Tokens, calls and dollars; ``None`` is unknown."""
    question: str | None = None
    """Digest of the question, computed with the token masked, so it is the same on every machine."""
    subject: str | None = None
    """Digest of the content that was judged."""
    qualification: str | None = None
    """The statement of a certificate about the judge that decided; ``None`` if there is none."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Yours: the ``metadata`` of the call."""
    id: str = field(default_factory=make_id)
    """The id of this result."""
    created_at: datetime = field(default_factory=get_now)
    """The time at which it was made, in UTC."""

    def __post_init__(self) -> None:
        if self.outcome not in _OUTCOMES:
            raise UsageError(f"an outcome is one of {', '.join(_OUTCOMES)}; got {self.outcome!r}", argument="outcome")
        if self.undecided_because is not None and self.undecided_because not in REASONS:
            raise UsageError(
                f"undecided_because is one of {', '.join(REASONS)}; got {self.undecided_because!r}",
                argument="undecided_because",
            )
        # Guarding these two here means that no reader, strategy or policy, present or future, can build a result
        # that says "passed" while it carries a reason for not having decided.
        if (self.outcome == "undecided") != (self.undecided_because is not None):
            raise UsageError(
                f"a result that is {self.outcome!r} cannot have undecided_because={self.undecided_because!r}; "
                "set the reason exactly when the outcome is 'undecided'",
                argument="undecided_because",
            )
        if self.outcome == "undecided" and self.score is not None:
            raise UsageError(
                f"an undecided result has no score, but was given {self.score!r}; leave it None", argument="score"
            )
        # NaN is neither above nor below a threshold, so whoever compares it decides by accident.
        for name in _SHARES:
            if not is_share(getattr(self, name)):
                raise UsageError(f"a result's {name} is in 0 to 1, or None; got {getattr(self, name)!r}", argument=name)

    @property
    def passed(self) -> bool:
        """True only when the outcome is ``passed``; failed and undecided are both false."""
        return self.outcome == "passed"

    @property
    def model_differs(self) -> bool:
        """True if another model answered than the one asked for; a dated snapshot counts as the same model.

        If a provider may report any name, true if it now reports another name than at first. For a chain, true if this
        is so for any of its seats.
        """
        return _is_other_model(self)

    def __bool__(self) -> bool:
        # Without this every result is true, and `if judge.evaluate_sync(...)` lets everything through.
        return self.passed

    def criterion(self, name: str) -> CriterionResult:
        """Return the result for this criterion. Raises ``KeyError``, naming the criteria, if there is none.

        Args:
            name: The name of the criterion.
        """
        for result in self.criteria:
            if result.name == name:
                return result
        raise KeyError(f"no criterion {name!r} in this result; it has {[result.name for result in self.criteria]}")

    def raise_if_failed(self) -> Self:
        """Raise ``JudgmentFailed`` unless the content passed (failed and undecided alike); else return this result."""
        if not self.passed:
            raise JudgmentFailed(self)
        return self

    def explain(self) -> str:
        """Return the outcome in one line: score and threshold or the reason, who decided, and the detail."""
        line = f"{self.outcome}: {self.undecided_because}" if self.undecided_because else str(self.outcome)
        if self.score is not None:
            score, threshold = describe_needed(self.score, self.threshold)
            line += f" with {score}" + (f" (needs {threshold})" if threshold else "")
        failed_names = [result.name for result in self.criteria if result.threshold is not None and not result.passed]
        # Where a rule decided, the detail may name these criteria already.
        are_named = self.decided_by == "rule" and all(name in self.detail for name in failed_names)
        line += f"; below their own threshold: {', '.join(failed_names)}" if failed_names and not are_named else ""
        line += "".join(f"; {note}" for note in describe_models(self))
        line += describe_left_out(self.metadata)
        # Criteria are named by files and details quote replies; a log's reader may sit at a terminal.
        return clean(f"{line}; {self.detail}" if self.detail else line, keep_lines=False)

    def to_dict(self) -> dict[str, Any]:
        """Write this result as plain data that JSON can hold; ``from_dict`` reads it back.

        In ``value`` and ``metadata``, NaN and the infinities are written as text (``"nan"``, ``"inf"``), and so are
        values that are nested deeper than 200 levels or have no plain form.
        """
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` when it is something else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return _read_result_as(data, (cls,), 0)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.judge!r} {self.explain()}>"

    def __rich__(self) -> Any:
        from adjudge.formats.display import draw_result

        return draw_result(self)

    def _repr_html_(self) -> str:
        from adjudge.formats.display import render_result_html

        return render_result_html(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JudgeChainResult(JudgeResult):
    """A chain's answer, with one result for every seat that was asked."""

    schema: ClassVar[str] = "adjudge/chain-result/1"
    _layout: ClassVar[Layout] = Layout(
        last=("passed", "model_differs", "results", "fallback_triggered", "total_duration_ms"), omitted=("parts",)
    )

    strategy: str
    """The strategy that combined the seats."""
    results: tuple[JudgeResult, ...] = ()
    """The results in the order of seats. A seat never asked is absent; one cut short is undecided: cancelled."""
    cut_short: bool = False
    """True if a limit, or the chain around this one, ended it while seats were still running. Those seats are
    ``cancelled`` for that reason, and not because this chain was settled without them.
    """

    @property
    def fallback_triggered(self) -> bool:
        """True exactly when a policy decided and not a judge."""
        return self.decided_by == "policy"

    @property
    def model_differs(self) -> bool:
        """True if, in any seat, another model answered than the one asked for; see ``JudgeResult``."""
        return _is_other_model(self) or any(seat.model_differs for seat in self.results)

    @property
    def total_duration_ms(self) -> float:
        """The duration of the chain, in milliseconds: another name for ``duration_ms``."""
        return self.duration_ms

    def to_dict(self) -> dict[str, Any]:
        """Write this result and those of its seats as plain data."""
        return write_record(self)


def _is_other_model(result: JudgeResult) -> bool:
    """Return whether the model that a result reports is another one than was expected or asked for."""
    expected, reported = result.model_expected or result.model_requested, result.model
    # Some servers report an empty name, which says nothing about who answered.
    if not expected or not reported:
        return False
    return not is_same_model(expected, reported)


R = TypeVar("R", bound=JudgeResult)

V = TypeVar("V")


def read_result(data: Mapping[str, Any]) -> JudgeResult:
    """Read a result of either kind from what its ``to_dict`` wrote; raise ``UsageError`` for anything else.

    Args:
        data: What ``to_dict`` wrote.
    """
    return _read_result_as(data, _KINDS, 0)


_KINDS: tuple[type[JudgeResult], ...] = (JudgeChainResult, JudgeResult)

_ALWAYS_WRITTEN = ("id", "created_at", "outcome", "judge")
"""Members that every written result has; a default would make up an identity, or a time."""

_MOST_NESTED = 50
"""Levels of chains in each other that a file may hold; each is read by a few calls inside each other."""


def _read_result_as(members: object, kinds: tuple[type[R], ...], depth: int) -> R:
    """Read a result of one of these classes, by its schema, with the results of its seats.

    Raises ``UsageError`` for what ``to_dict`` did not write.
    """
    if not isinstance(members, Mapping):
        raise UsageError(f"a result is read from a dictionary that to_dict wrote, got {type(members).__name__}")
    if depth > _MOST_NESTED:
        raise UsageError(f"the results of chains stand more than {_MOST_NESTED} levels deep in each other")
    schema = members.get("schema")
    kind = next((kind for kind in kinds if schema == kind.schema), None)
    if kind is None:
        schemas = ", ".join(kind.schema for kind in kinds)
        shown = repr(schema)[:60] if schema is None or isinstance(schema, str) else type(schema).__name__
        raise UsageError(f"a result has one of the schemas {schemas}; this dictionary has {shown}")
    for name in _ALWAYS_WRITTEN:
        if name not in members:
            raise UsageError(f"this is not a dictionary that {kind.__name__}.to_dict wrote: it has no {name!r}")
    result = _convert_members(kind, {name: value for name, value in members.items() if name != "results"})
    return _add_seats(result, members, depth) if isinstance(result, JudgeChainResult) else result


def _add_seats(result: R, members: Mapping[str, Any], depth: int) -> R:
    """Return a chain's result with the results of its seats, which are read from ``members["results"]``.

    Raises ``UsageError`` for what ``to_dict`` did not write.
    """
    seats = members.get("results", ())
    if not isinstance(seats, list | tuple):
        raise UsageError(f"the results of a chain are a list, got {type(seats).__name__}")
    return replace(result, results=tuple([_read_result_as(seat, _KINDS, depth + 1) for seat in seats]))  # type: ignore[call-arg]


def _convert_members(kind: type[V], members: Mapping[str, Any]) -> V:
    """Make an instance of a class from plain data, with every member of exactly its type; ignore unknown members.

    It is read as a whole and not by ``read_record``, because a run has hundreds of thousands of results.

    Raises ``UsageError`` for a member that is missing or of another type.
    """
    try:
        return read_typed(dict(members.items()), kind)
    except (AttributeError, TypeError, ValueError) as error:
        problem = clean(" ".join(str(error).split())[:200], keep_lines=False)
        raise UsageError(f"this is not a dictionary that {kind.__name__}.to_dict wrote: {problem}") from None
