"""A forged tool and what is known of it: the candidate, the tool, and how it has been used.

Everything in a candidate is somebody else's: a model wrote it, and may have been told to. These are values that hold
it as data; nothing here, or anywhere in adjudge, runs it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import Enum
from typing import Any, ClassVar, Final, Literal, Self, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag, check_whole_number, is_finite
from adjudge.formats.json import find_non_json, is_json, to_json_value
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import flatten, show
from adjudge.tools.reuse import ToolHistory
from adjudge.tools.verdict import CreationVerdict, PromotionVerdict, ToolReviewVerdict

ToolMode = Literal["compose", "sandbox"]

ToolTier = Literal["session", "agent", "shared"]


TIERS: tuple[ToolTier, ...] = get_args(ToolTier)
"""The tiers, lowest first."""

_MODES: tuple[ToolMode, ...] = get_args(ToolMode)

MOST_VALUES = 100_000
"""Values in one schema, step, input or output of a candidate; what has more is not reviewed."""

_LARGEST = 2**53 - 1
"""The largest integer RFC 8785 has a form for."""


class Missing(Enum):
    """The type of ``MISSING``."""

    MISSING = "missing"

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING: Final = Missing.MISSING
"""The mark that no output was expected, which is not the same as expecting ``None``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolTest:
    """One recorded run of a candidate: its input, its output, and the output that its author expected.

    Args:
        input: The arguments it was called with.
        output: The output that it returned.
        success: True if the run ended without an error.
        expected: The expected output; ``MISSING`` if none is known, and then nothing is compared.
        error: The error that it raised; ``None`` if nothing.
    """

    _layout: ClassVar[Layout] = Layout(last=("expected",), omitted=("expected",), strict=True)

    input: Any
    """The arguments it was called with."""
    output: Any
    """The output that it returned."""
    success: bool
    """True if the run ended without an error."""
    expected: Any = MISSING
    """The expected output; ``MISSING`` if none is known, and then nothing is compared."""
    error: str | None = None
    """The error that it raised; ``None`` if nothing."""

    def __post_init__(self) -> None:
        check_flag("success", self.success, where="a test")
        if self.error is not None:
            _check_text("the error of a test", self.error)

    def to_dict(self) -> dict[str, Any]:
        """Write this test as plain data; without ``expected`` where nothing was expected."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCandidate:
    """A tool that a program made, to be reviewed: its claims, its code or steps, and its test results.

    Raises ``UsageError`` for an invalid name, and for a schema of the wrong type. Everything else that is wrong with a
    candidate (no source, no tests, outputs that do not fit) is left to the review, so that it can be recorded.

    Args:
        name: Its name, which is not empty.
        description: The work that it does, for the reviewer and for agents.
        input_schema: JSON Schema of the arguments: a dictionary, or true or false.
        output_schema: JSON Schema of what comes out; ``None`` where none is declared.
        source: Its code; empty in the mode ``compose``.
        mode: ``compose`` combines existing tools by ``steps``; ``sandbox`` is code of its own, in ``source``.
        allowlist: The functions and hosts the tool asks to use.
        tests: The recorded runs that show that it works.
        steps: For ``compose``: the steps, as JSON.
    """

    writes_plain: ClassVar[bool] = True
    schema: ClassVar[str] = "adjudge/tool-candidate/1"
    _layout: ClassVar[Layout] = Layout(last=("tests",), strict=True)

    name: str
    """Its name, which is not empty."""
    description: str
    """The work that it does, for the reviewer and for agents."""
    input_schema: Mapping[str, Any] | bool
    """JSON Schema of the arguments: a dictionary, or true or false."""
    output_schema: Mapping[str, Any] | bool | None = None
    """JSON Schema of what comes out; ``None`` where none is declared."""
    source: str = ""
    """Its code; empty in the mode ``compose``."""
    mode: ToolMode
    """``compose`` combines existing tools by ``steps``; ``sandbox`` is code of its own, in ``source``."""
    allowlist: tuple[str, ...] = ()
    """The functions and hosts the tool asks to use."""
    tests: tuple[ToolTest, ...] = ()
    """The recorded runs that show that it works."""
    steps: tuple[Any, ...] = ()
    """For ``compose``: the steps, as JSON."""

    def __post_init__(self) -> None:
        for name in ("name", "description", "source"):
            _check_text(name, getattr(self, name))
        if not self.name.strip():
            raise UsageError("a tool needs a name that is not empty")
        check_choice("mode", self.mode, _MODES, where="a tool")
        set_field = object.__setattr__
        # Copied, so that nobody who holds the originals can change a candidate after it was reviewed.
        set_field(self, "input_schema", _copy_schema("input_schema", self.input_schema))
        if self.output_schema is not None:
            set_field(self, "output_schema", _copy_schema("output_schema", self.output_schema))
        set_field(self, "steps", tuple(_copy_json("steps", step) for step in _check_list("steps", self.steps)))
        set_field(self, "allowlist", tuple(_check_list("allowlist", self.allowlist)))
        set_field(self, "tests", tuple(_check_list("tests", self.tests)))
        for entry in self.allowlist:
            _check_text("an entry of the allowlist", entry)
        for test in self.tests:
            if not isinstance(test, ToolTest):
                raise UsageError(f"the tests of a tool are ToolTest values, got {show(test)}")

    def to_dict(self) -> dict[str, Any]:
        """Write this candidate as plain data, which ``from_dict`` reads back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolUsage:
    """Statistics of how a tool was used. It is a value: ``add`` returns a new one.

    Args:
        uses: The number of times that it was used.
        successes: Uses that did not raise and whose output fits the schema.
        failures: All other uses.
        mean_ms: Mean duration of a use in milliseconds.
        last_used_at: Aware UTC.
        history: Sizes and shapes of the outputs so far.
    """

    schema: ClassVar[str] = "adjudge/tool-usage/1"
    _layout: ClassVar[Layout] = Layout(
        required=("uses", "successes", "failures", "mean_ms", "last_used_at", "history"), strict=True
    )

    uses: int = 0
    """The number of times that it was used."""
    successes: int = 0
    """Uses that did not raise and whose output fits the schema."""
    failures: int = 0
    """All other uses."""
    mean_ms: float = 0.0
    """Mean duration of a use in milliseconds."""
    last_used_at: datetime | None = None
    """Aware UTC."""
    history: ToolHistory = field(default_factory=ToolHistory)
    """Sizes and shapes of the outputs so far."""

    def __post_init__(self) -> None:
        for name in ("uses", "successes", "failures"):
            check_whole_number(name, getattr(self, name), least=0)
        if self.successes + self.failures != self.uses:
            counts = f"{show(self.uses)} uses, {show(self.successes)} and {show(self.failures)}"
            raise UsageError(f"uses must be successes and failures together; got {counts}", argument="uses")
        if not is_finite(self.mean_ms) or self.mean_ms < 0:
            raise UsageError(
                f"mean_ms is a number of milliseconds from 0, got {show(self.mean_ms)}", argument="mean_ms"
            )
        at = self.last_used_at
        if at is not None and (not isinstance(at, datetime) or at.utcoffset() is None):
            raise UsageError(
                f"last_used_at is an aware time, or None before the first use; got {show(at)}", argument="last_used_at"
            )

    @property
    def success_rate(self) -> float:
        """Successes over uses; 0 before the first use."""
        return self.successes / self.uses if self.uses else 0.0

    def add(
        self, *, success: bool, duration_ms: float, at: datetime | None = None, output: object = MISSING
    ) -> ToolUsage:
        """Return the usage with one more use. ``output``, where given, joins the history: give it when it was valid.

        Args:
            success: True if the output was right.
            duration_ms: The duration in milliseconds.
            at: The time of the use; by default now.
            output: What the tool returned, which joins the history: give it when it was valid. Left out, nothing joins.
        """
        return ToolUsage(
            uses=self.uses + 1,
            successes=self.successes + (1 if success else 0),
            failures=self.failures + (0 if success else 1),
            mean_ms=self.mean_ms + (duration_ms - self.mean_ms) / (self.uses + 1),
            last_used_at=at if at is not None else datetime.now(UTC),
            history=self.history if output is MISSING else self.history.add(output),
        )

    def to_dict(self) -> dict[str, Any]:
        """Write this usage as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergentTool:
    """A tool that was approved: the candidate, its tier, its usage, and every verdict on it.

    Args:
        id: The id by which a registry knows it.
        candidate: The candidate that was approved.
        tier: The tier in which it may be used: in its ``session``, by its ``agent``, or ``shared`` by all.
        agent: The agent whose tool it is.
        session: The session in which it was made; matched exactly, never by parts.
        usage: ``None`` where nothing is known of its use.
        verdicts: Oldest first.
    """

    writes_plain: ClassVar[bool] = True
    schema: ClassVar[str] = "adjudge/emergent-tool/1"
    _layout: ClassVar[Layout] = Layout(required=("tier", "agent", "session", "usage", "verdicts"), strict=True)

    id: str
    """The id by which a registry knows it."""
    candidate: ToolCandidate
    """The candidate that was approved."""
    tier: ToolTier = "session"
    """The tier in which it may be used: in its ``session``, by its ``agent``, or ``shared`` by all."""
    agent: str = ""
    """The agent whose tool it is."""
    session: str = ""
    """The session in which it was made; matched exactly, never by parts."""
    usage: ToolUsage | None = None
    """``None`` where nothing is known of its use."""
    verdicts: tuple[ToolReviewVerdict, ...] = ()
    """Oldest first."""

    def __post_init__(self) -> None:
        for name in ("id", "agent", "session"):
            _check_text(name, getattr(self, name))
        if not self.id:
            raise UsageError("a tool needs an id that is not empty")
        check_choice("tier", self.tier, TIERS, where="a tool")
        if not isinstance(self.candidate, ToolCandidate):
            raise UsageError(f"a tool's candidate is a ToolCandidate, got {show(self.candidate)}")
        if self.usage is not None and not isinstance(self.usage, ToolUsage):
            raise UsageError(f"a tool's usage is a ToolUsage or None, got {show(self.usage)}")
        object.__setattr__(self, "verdicts", tuple(_check_list("verdicts", self.verdicts)))
        for verdict in self.verdicts:
            if not isinstance(verdict, CreationVerdict | PromotionVerdict):
                raise UsageError(
                    f"a tool's verdicts are CreationVerdict or PromotionVerdict values, got {show(verdict)}"
                )

    @property
    def digest(self) -> str:
        """The digest that verdicts on this tool are bound to: ``tool_digest`` of its candidate."""
        return tool_digest(self.candidate)

    @property
    def current_verdicts(self) -> tuple[ToolReviewVerdict, ...]:
        """The verdicts on exactly what the tool is now, and none on what it was before a change."""
        digest = self.digest
        return tuple(verdict for verdict in self.verdicts if verdict.tool_digest == digest)

    def to_dict(self) -> dict[str, Any]:
        """Write this tool as plain data, which ``from_dict`` reads back."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; raises ``UsageError`` for anything else.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


def tool_digest(candidate: ToolCandidate) -> str:
    """Compute the SHA-256 of source, mode, steps, schemas and allowlist (RFC 8785 JSON), which verdicts are bound to.

    Name, description and tests are not part of it, so two candidates with the same digest do the same.

    Args:
        candidate: The candidate.
    """
    import rfc8785

    large_integers: list[Any] = []
    members = {
        "allowlist": list(candidate.allowlist),
        "input_schema": candidate.input_schema,
        "mode": candidate.mode,
        "output_schema": candidate.output_schema,
        "source": candidate.source,
        "steps": list(candidate.steps),
    }
    plain = {name: _replace_large(value, (name,), large_integers) for name, value in members.items()}
    # RFC 8785 has no integers beyond 2^53, so they are listed beside the rest, each with its path. If they were made
    # texts instead, a changed schema, {"const": "9007199254740993"}, could have the digest of a reviewed one.
    return hashlib.sha256(rfc8785.dumps({**plain, "large": large_integers} if large_integers else plain)).hexdigest()


def _replace_large(value: Any, path: tuple[str | int, ...], large_integers: list[Any]) -> Any:
    """Copy a value with ``None`` in place of each integer beyond 2^53.

    For each of these, its path and its value in hexadecimal are added to ``large_integers``.
    """
    if type(value) is int and abs(value) > _LARGEST:
        large_integers.append([list(path), hex(value)])
        return None
    if isinstance(value, dict):
        # Sorted, because equal schemas with their members in another order must have the same digest.
        return {name: _replace_large(value[name], (*path, name), large_integers) for name in sorted(value)}
    if isinstance(value, list):
        return [_replace_large(member, (*path, index), large_integers) for index, member in enumerate(value)]
    return value


def _copy_schema(label: str, value: Any) -> Any:
    """Copy a JSON Schema. Raises ``UsageError`` for a value that is neither a dictionary nor a boolean."""
    if not isinstance(value, dict | bool):
        raise UsageError(f"{label} is a JSON Schema: a dictionary, true or false; got {show(value)}")
    return _copy_json(label, value)


def _copy_json(label: str, value: Any) -> Any:
    """Copy a JSON value; raises ``UsageError`` for anything else, and for more than ``MOST_VALUES`` values."""
    # Checked before it is copied: a value that contains itself would be copied for ever.
    if not is_json((value,), most=MOST_VALUES):
        raise UsageError(f"{label} is not JSON that can be reviewed: {find_non_json(value, most=MOST_VALUES)}")
    try:
        return to_json_value(value)
    except ValueError as error:
        raise UsageError(f"{label} is not JSON: {flatten(str(error), 200)}") from None


def _check_text(label: str, value: object) -> None:
    """Raise ``UsageError`` for a value that is no text, or a text with half a surrogate pair."""
    if not isinstance(value, str):
        raise UsageError(f"{label} must be a text, got {show(value)}", argument=label if label.isidentifier() else None)
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"{label} is not valid Unicode: a lone surrogate at character {error.start}") from None


def _check_list(label: str, value: Any) -> Iterable[Any]:
    """Return a list or a tuple as it is. Raises ``UsageError`` for any other value."""
    if not isinstance(value, list | tuple):
        raise UsageError(f"{label} must be a list, got {show(value)}", argument=label if label.isidentifier() else None)
    return value
