"""What can go wrong, and whose turn it is to act.

    AdjudgeError
    ├── UsageError      your input is wrong: nothing was asked, a retry cannot help
    │   ├── DecisionRefused  a person's decision on an approval does not count
    │   └── ToolRefused  a forged tool may not be used, registered or promoted as it is
    ├── ModelError      the world failed: a server, a network, a provider's refusal to serve
    ├── ReplyError      a model answered and the answer cannot be read
    ├── LedgerError     the store of a ledger failed: nothing is known to be recorded
    ├── JudgmentFailed  asked for with ``throw_on_fail`` or ``raise_if_failed``
    ├── Blocked         a gate's guard stopped a function
    └── InputRejected   an input firewall's guard stopped a function

A failed judgement is a result and not an error; only ``JudgmentFailed``, ``Blocked`` and ``InputRejected``, which a
caller asks for by name, turn one into an exception. Messages name the thing, the value and the remedy in one sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from adjudge._decision import Decision
    from adjudge.firewall import InputVerdict, Threat
    from adjudge.result import JudgeResult, Reason


class AdjudgeError(Exception):
    """The root of every error adjudge raises on purpose."""


class UsageError(AdjudgeError, ValueError):
    """What the caller handed in cannot be used; nothing was asked of any model."""


class DecisionRefused(UsageError):
    """A decision on an approval that does not count; that it was tried is recorded.

    ``because`` says why: ``unauthorised``, ``double``, ``closed`` or ``expired``.
    """

    def __init__(self, message: str, *, because: Literal["unauthorised", "double", "closed", "expired"]) -> None:
        super().__init__(message)
        self.because: Literal["unauthorised", "double", "closed", "expired"] = because


class ToolRefused(UsageError):
    """A forged tool may not be used, registered or promoted as it is; nothing was asked, run or changed.

    ``because`` says why in a word, the message in a sentence. It is raised where neither waiting nor further uses
    would help, such as ``unknown``, ``demoted``, ``unreviewed``, ``scope`` or ``agent_cap``.
    """

    def __init__(self, message: str, *, because: str) -> None:
        super().__init__(message)
        self.because = because


class ModelError(AdjudgeError):
    """A model could not be reached or would not serve the request.

    ``status`` is the HTTP status when there was one, else ``None``. ``sent`` is false when it is certain that no part
    of a request left this machine, so that nothing can have been charged for it.
    """

    def __init__(self, message: str, *, status: int | None = None, sent: bool = True) -> None:
        super().__init__(message)
        self.status = status
        self.sent = sent


class ReplyError(AdjudgeError):
    """A reply was received and cannot be read as the form that was asked for.

    ``because`` is the reason an undecided result will carry, ``detail`` one sentence for a person.
    """

    def __init__(self, because: Reason, detail: str) -> None:
        super().__init__(detail)
        self.because: Reason = because
        self.detail = detail


class LedgerError(AdjudgeError):
    """A ledger's store failed: a disk, a lock or a server; what was to be recorded must be taken as not recorded."""


class JudgmentFailed(AdjudgeError):
    """The content did not pass; ``result`` says whether it failed or stayed undecided, and why."""

    def __init__(self, result: JudgeResult) -> None:
        super().__init__(result.explain())
        self.result = result


class Blocked(AdjudgeError):
    """A gate did not let something through; ``decision`` says who decided and why, and whether a person was asked."""

    def __init__(self, decision: Decision) -> None:
        super().__init__(decision.explain())
        self.decision = decision


class InputRejected(AdjudgeError):
    """An input firewall did not let a function run; ``verdict`` says what was found.

    ``code`` is the firewall's error code and ``recovery`` one sentence on what the caller can do. The text of this
    error holds nothing that the arguments or a judge said, so it may be shown to whoever sent them, a model included;
    ``threats`` and ``verdict`` quote both, and may not.
    """

    recovery: str = (
        "Send the call again with plain values: no instructions, no code, no paths outside the task, nothing encoded."
    )

    def __init__(self, verdict: InputVerdict, *, code: str, tool: str) -> None:
        super().__init__(f"{code}: the arguments of {tool} were not accepted, and it did not run. {self.recovery}")
        self.verdict = verdict
        self.code = code
        self.tool = tool

    @property
    def threats(self) -> tuple[Threat, ...]:
        """What the judges named; empty when they named nothing, or could not be asked."""
        return self.verdict.threats
