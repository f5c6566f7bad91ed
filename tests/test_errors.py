"""The tree of errors: what one name catches, and what a program finds on them. Messages are in test_messages.py."""

from __future__ import annotations

import pickle

from adjudge import AdjudgeError, JudgeResult, JudgmentFailed, ModelError, ReplyError, UsageError
from adjudge.errors import Argument
from adjudge.guards import DecisionRefused
from adjudge.ledger import LedgerError
from kit.judges import names


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


def test_an_error_names_its_argument():
    """As text in Python's words, and as others spell it; a key in a file is named as it stands there."""
    error = UsageError("quorum needs ", Argument("strategy", "'quorum'"), argument="quorum")

    assert (str(error), error.args, error.argument) == ("quorum needs strategy='quorum'", (str(error),), "quorum")
    assert error.spell(lambda name, _value: f"<{name}>") == "<quorum> needs <strategy>"
    assert UsageError("quorums differ", argument="quorum").spell(lambda _name, _value: "-") == "quorums differ"

    placed = error.within("a.toml: [judges.x]", "; or leave out ", Argument("judge"))
    assert str(placed) == "a.toml: [judges.x]: quorum needs strategy='quorum'; or leave out judge"
    assert placed.spell(lambda name, _value: name.upper()).startswith("a.toml: [judges.x]: quorum needs STRATEGY")
    assert (placed.argument, placed.where, error.where) == ("quorum", "a.toml: [judges.x]", None)
    assert str(UsageError("port is taken", argument="port", where="[server]")) == "[server]: port is taken"


def test_an_error_keeps_what_is_on_it_in_another_process():
    """Ray and process pools pickle errors; what is raised with a reason has it there too."""
    usage = UsageError("seed is ", Argument("seed", "1"), argument="seed", where="run 7")
    refused = DecisionRefused("ana decided: ", usage, because="double", argument="by")
    for error in (usage, refused, refused.within("approval 3"), ModelError("busy", status=503)):
        copied = pickle.loads(pickle.dumps(error))

        assert (type(copied), str(copied), copied.args, vars(copied)) == (
            type(error),
            str(error),
            error.args,
            vars(error),
        )
