"""The tree of errors: what one name catches, and what a program finds on them. Messages are in test_messages.py."""

from __future__ import annotations

from adjudge import AdjudgeError, JudgeResult, JudgmentFailed, ModelError, ReplyError, UsageError
from adjudge.ledger import LedgerError
from judge_support import names


def test_every_error_is_an_adjudge_error():
    """One name catches all, and ``UsageError`` is a ``ValueError`` too."""
    assert issubclass(UsageError, AdjudgeError)
    assert issubclass(UsageError, ValueError)
    assert {ModelError, ReplyError, LedgerError, JudgmentFailed} <= set(AdjudgeError.__subclasses__())


def test_errors_carry_what_a_program_needs():
    """The HTTP status, the reason, the result."""
    result = JudgeResult(outcome="undecided", undecided_because="refused", judge="j", detail="it would not")

    assert ModelError("busy", status=503).status == 503
    assert ModelError("gone").status is None
    assert (ReplyError("truncated", "cut").because, str(ReplyError("truncated", "cut"))) == ("truncated", "cut")
    assert JudgmentFailed(result).result is result
    assert names(JudgmentFailed(result), "undecided", "refused", "it would not")
