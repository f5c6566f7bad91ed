"""A call of a tool that an agent wants to make, and the answer of a guard, as values. Pure.

Whether a call may be made is decided in ``guard.py`` (``ToolGuard._check_question``), where the sentences are too that
an agent reads after a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice
from adjudge.guards.decision import Decision

LONGEST_ID = 200
"""Characters of the id of a run or a call."""


def shorten_id(text: str, most: int = LONGEST_ID) -> str:
    """Return an id as it is, or its digest if it is longer than ``most`` or not printable ASCII.

    Frameworks give ids of any form to runs and calls, and a ``ToolCall`` takes only short ones.
    """
    if len(text) <= most and text.isascii() and text.isprintable():
        return text
    return f"sha256:{sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()}"


ToolVerdictKind = Literal["allow", "refuse", "pending"]

CallRefusedBecause = Literal["refused", "not_listed", "refused_before", "denied", "expired", "used", "waits", "stopped"]
"""The reason for which a call was not made. ``refused`` stands for a rule, a judge and a check that could not be made
alike, so that an agent under attack cannot learn from the answer which of them it was."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool that an agent wants to make.

    Raises ``UsageError`` for a tool, run or call whose name is no text, and for a run without a name.

    Args:
        tool: The tool's name. Of a tool of an MCP server, the name that the server has for it.
        arguments: The arguments, or the JSON text of them.
        call_id: The framework's name of this call, the same when the run is resumed; not used with ``match="content"``.
        run_id: The session, thread or conversation; calls are unique within one only, and so are approvals.
        server: The MCP server that has the tool; ``None`` for a tool of the agent's own.
        cwd: The absolute path of the folder in which the call would run; files that it names there, and
            those that its commands name elsewhere, are bound to it.
        agent: The agent, or sub-agent, that calls.
        files: SHA-256 of the files that the call names, by path, where another machine has read them; ``None`` reads
            them in ``cwd``.
        remarks: The remarks that the agent makes about the call and the tool never reads, such as a description: shown
            to people, not judged, and no part of what an approval is bound to.
    """

    tool: str
    """The tool's name. Of a tool of an MCP server, the name that the server has for it."""
    arguments: Mapping[str, Any] | str
    """The arguments, or the JSON text of them."""
    call_id: str
    """The framework's name of this call, the same when the run is resumed; not used with ``match="content"``."""
    run_id: str
    """The session, thread or conversation; calls are unique within one only, and so are approvals."""
    server: str | None = None
    """The MCP server that has the tool; ``None`` for a tool of the agent's own."""
    cwd: str | None = None
    """The absolute path of the folder in which the call would run; files that it names there, and those that its
    commands name elsewhere, are bound to it."""
    agent: str | None = None
    """The agent, or sub-agent, that calls."""
    files: Mapping[str, str] | None = None
    """SHA-256 of the files that the call names, by path, where another machine has read them; ``None`` reads them in
    ``cwd``."""
    remarks: Mapping[str, Any] = field(default_factory=dict)
    """The remarks that the agent makes about the call and the tool never reads, such as a description: shown to people,
    not judged, and no part of what an approval is bound to."""

    def __post_init__(self) -> None:
        for name in ("tool", "call_id", "run_id"):
            text = getattr(self, name)
            if not isinstance(text, str):
                raise UsageError(f"{name} must be a text, got {type(text).__name__}", argument=name, where="a call")
        for name in ("call_id", "run_id"):
            text = getattr(self, name)
            if len(text) > LONGEST_ID or not (text.isprintable() and text.isascii()):
                problem = f"{name} must be at most {LONGEST_ID} printable ASCII characters, got {text[:80]!r}"
                raise UsageError(problem, argument=name, where="a call")
        if not self.run_id.strip():
            # Ids of calls repeat in other runs. Without the run, an approval of one call would let another one through.
            raise UsageError(
                "run_id must name the session, thread or conversation, got an empty text",
                argument="run_id",
                where="a call",
            )


@dataclass(frozen=True, slots=True)
class ToolVerdict:
    """The answer whether a call may be made; true exactly when it may."""

    kind: ToolVerdictKind
    """``allow``, ``refuse`` or ``pending``."""
    message: str = ""
    """The sentence for the agent: one of eight, never a judge's words, a rule's pattern or the content."""
    decision: Decision | None = None
    """The gate's decision; ``None`` where the guard itself could not make one."""
    approval_id: str | None = None
    """The request for approval that the call waits for. It is not for the agent, who could try to approve it."""
    because: CallRefusedBecause | None = None
    """The reason for which it was not made, in a word; ``None`` with ``allow``."""
    word: str | None = None
    """The word by which people find the request that it waits for; ``None`` if it waits for nobody."""

    def __post_init__(self) -> None:
        check_choice("kind", self.kind, get_args(ToolVerdictKind), where="a verdict")
        if (self.kind == "allow") != (self.because is None):
            raise UsageError(f"a verdict says why it does not allow, and only then; got {self.kind} {self.because!r}")

    def __bool__(self) -> bool:
        # Without this every verdict is true, and `if await guard.check(call)` makes every call.
        return self.kind == "allow"
