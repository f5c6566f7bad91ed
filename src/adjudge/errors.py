"""What can go wrong, and whose turn it is to act.

    AdjudgeError
    ├── UsageError      your input is wrong: nothing was asked, a retry cannot help
    │   └── ToolRefused  a forged tool may not be used, registered or promoted as it is
    ├── ModelError      the world failed: a server, a network, a provider's refusal to serve
    ├── ReplyError      a model answered and the answer cannot be read
    ├── LedgerError     the store of a ledger failed: nothing is known to be recorded
    ├── JudgmentFailed  asked for with ``throw_on_fail`` or ``raise_if_failed``
    └── Blocked         a gate's guard stopped a function

A failed judgement is a result and not an error; only ``JudgmentFailed`` and ``Blocked``, which a caller asks for by
name, turn one into an exception. Messages name the thing, the value and the remedy in one sentence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from adjudge._decision import Decision
    from adjudge.result import JudgeResult, Reason


class AdjudgeError(Exception):
    """The root of every error adjudge raises on purpose."""


class UsageError(AdjudgeError, ValueError):
    """What the caller handed in cannot be used; nothing was asked of any model."""


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

    ``status`` is the HTTP status when there was one, else ``None``.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


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
