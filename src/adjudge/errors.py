"""What can go wrong, and whose turn it is to act.

    AdjudgeError
    ├── UsageError      your input is wrong: nothing was asked, a retry cannot help
    │   ├── DecisionRefused  a person's decision on an approval does not count
    │   └── ToolRefused  a forged tool may not be used, registered or promoted as it is
    ├── ModelError      a server or the network failed, or a provider refused to serve
    ├── ReplyError      a model answered and the answer cannot be read
    ├── LedgerError     the store of a ledger failed: nothing is known to be recorded
    ├── ServerError     a server of adjudge cannot be reached, or failed: nothing is known to be decided
    ├── JudgmentFailed  asked for with ``throw_on_fail`` or ``raise_if_failed``
    ├── Blocked         a gate's guard stopped a function
    └── InputRejected   an input firewall's guard stopped a function

A failed judgement is a result and not an error; only ``JudgmentFailed``, ``Blocked`` and ``InputRejected``, which a
caller asks for by name, turn one into an exception. Messages name the thing, the value and the remedy in one sentence.
"""

from __future__ import annotations

from typing import Literal


class AdjudgeError(Exception):
    """The root of every error adjudge raises on purpose."""


class UsageError(AdjudgeError, ValueError):
    """An argument or a file cannot be used. No model was asked."""


RefusedBecause = Literal["unauthorised", "double", "closed", "expired", "incomplete", "changed", "final"]


class DecisionRefused(UsageError):
    """A decision on an approval does not count. The attempt is recorded.

    ``because`` says why: ``unauthorised``, ``double``, ``closed`` or ``expired``; of an approval also ``incomplete``
    (something is missing or cut off) or ``changed`` (it is not what people were asked, or were shown); ``final`` where
    a vote can no longer be taken back.
    """

    def __init__(self, message: str, *, because: RefusedBecause) -> None:
        super().__init__(message)
        self.because: RefusedBecause = because


class ToolRefused(UsageError):
    """A forged tool may not be used, registered or promoted as it is; nothing was asked, run or changed.

    ``because`` gives the reason in a word, the message in a sentence. It is raised if neither waiting nor further uses
    can help, as for ``unknown``, ``demoted``, ``unreviewed``, ``scope`` and ``agent_cap``.
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
    """A ledger's store failed: a disk, a lock or a server; treat the entry as not recorded."""


class ServerError(AdjudgeError):
    """A server of adjudge could not be reached, or failed; nothing is known to be decided or recorded.

    ``status`` is the HTTP status when there was one, else ``None``.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


Reason = Literal[
    "tampering",
    "contradiction",
    "refused",
    "truncated",
    "off_scale",
    "missing_criterion",
    "unparseable",
    "error",
    "timeout",
    "budget",
    "split",
    "unsure",
    "cancelled",
]
