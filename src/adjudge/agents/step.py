"""The parts of an agent's run: its steps, the calls of tools, and the files that it changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, is_finite
from adjudge.formats.json import to_json_value
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import show

Role = Literal["user", "assistant", "system"]

ChangeKind = Literal["added", "modified", "deleted"]

NotMade = Literal["asked", "refused", "unclear"]
"""The act of the harness in place of making a call: it asked and nobody answered, it or its user refused, or the call
was cut short, so that nobody can say whether it was made."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """One call of a tool, and what came of it. Without a ``result`` and an ``error`` nobody knows.

    Args:
        tool: The name of the tool.
        arguments: The arguments as JSON, by name; a text where the agent wrote arguments that cannot be read.
        call_id: The id that the agent gave the call; ``None`` if it gave none.
        result: The result that the tool returned, as text without the line ends after it.
        error: The text that the tool gave when it failed; ``None`` if it did not.
        duration_ms: The time that it took, in milliseconds; ``None`` is unknown.
        agent: The sub-agent that made the call; ``None`` for the agent itself.
        not_made: The act of the harness in place of making the call: it ``asked`` and nobody answered, or it or its
            user ``refused``; ``unclear`` if the call was cut short. ``None`` if the source says nothing of that.
    """

    writes_plain: ClassVar[bool] = True
    _layout: ClassVar[Layout] = Layout(omitted=("call_id", "result", "error", "duration_ms", "agent", "not_made"))

    tool: str
    """The name of the tool."""
    arguments: Any = field(default_factory=dict, hash=False)
    """The arguments as JSON, by name; a text where the agent wrote arguments that cannot be read."""
    call_id: str | None = None
    """The id that the agent gave the call; ``None`` if it gave none."""
    result: str | None = None
    """The result that the tool returned, as text without the line ends after it."""
    error: str | None = None
    """The text that the tool gave when it failed; ``None`` if it did not."""
    duration_ms: float | None = None
    """The time that it took, in milliseconds; ``None`` is unknown."""
    agent: str | None = None
    """The sub-agent that made the call; ``None`` for the agent itself."""
    not_made: NotMade | None = None
    """The act of the harness in place of making the call: it ``asked`` and nobody answered, or it or its user
    ``refused``; ``unclear`` if the call was cut short. ``None`` if the source says nothing of that."""

    def __post_init__(self) -> None:
        if not isinstance(self.tool, str) or not self.tool.strip():
            raise UsageError(f"tool must be the name of a tool, got {show(self.tool)}", argument="tool")
        for name in ("call_id", "result", "error", "agent"):
            check_text(name, getattr(self, name), optional=True)
        check_number("duration_ms", self.duration_ms)
        if self.not_made is not None:
            check_choice("not_made", self.not_made, get_args(NotMade))
        try:
            object.__setattr__(self, "arguments", to_json_value(self.arguments))
        except (ValueError, RecursionError) as error:
            raise UsageError(f"arguments must be plain JSON: {error}", argument="arguments") from None

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that happened: somebody's words, or a call of a tool.

    Args:
        role: The one who acted: ``user``, ``assistant`` (every call, too) or ``system``.
        text: The words; empty for a call.
        call: The call; ``None`` for words.
        turn: The number of the agent's reply that it belongs to, from 0. Calls of one reply are made at once: none of
            them has seen what another returned.
    """

    writes_plain: ClassVar[bool] = True
    _layout: ClassVar[Layout] = Layout(omitted=("text", "call", "turn"))

    role: Role
    """The one who acted: ``user``, ``assistant`` (every call, too) or ``system``."""
    text: str = ""
    """The words; empty for a call."""
    call: AgentCall | None = None
    """The call; ``None`` for words."""
    turn: int = 0
    """The number of the agent's reply that it belongs to, from 0. Calls of one reply are made at once: none of them
    has seen what another returned."""

    def __post_init__(self) -> None:
        check_choice("role", self.role, get_args(Role))
        check_text("text", self.text)
        if self.call is not None and (not isinstance(self.call, AgentCall) or self.role != "assistant" or self.text):
            raise UsageError("call is an AgentCall in a step of the assistant without text", argument="call")
        if isinstance(self.turn, bool) or not isinstance(self.turn, int) or self.turn < 0:
            raise UsageError(f"turn must be a whole number of at least 0, got {show(self.turn)}", argument="turn")

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """A file that is not as it was before the run.

    Args:
        path: Its path in the workspace, with ``/`` between the parts.
        kind: ``added``, ``modified`` or ``deleted``.
        diff: The change as a unified diff; empty where there is none to show.
    """

    writes_plain: ClassVar[bool] = True
    _layout: ClassVar[Layout] = Layout(omitted=("diff",))

    path: str
    """Its path in the workspace, with ``/`` between the parts."""
    kind: ChangeKind
    """``added``, ``modified`` or ``deleted``."""
    diff: str = ""
    """The change as a unified diff; empty where there is none to show."""

    def __post_init__(self) -> None:
        check_text("path", self.path)
        check_text("diff", self.diff)
        check_choice("kind", self.kind, get_args(ChangeKind))

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


def check_text(name: str, value: object, *, optional: bool = False) -> None:
    """Raise ``UsageError`` unless a value is a text, or ``None`` where that is allowed."""
    if not isinstance(value, str) and not (optional and value is None):
        raise UsageError(f"{name} must be a text{' or None' if optional else ''}, got {show(value)}", argument=name)


def check_number(name: str, value: Any) -> None:
    """Raise ``UsageError`` unless a value is ``None`` or a finite number of at least 0."""
    if value is not None and (not is_finite(value) or value < 0):
        raise UsageError(f"{name} must be a finite number of at least 0, or None; got {show(value)}", argument=name)
