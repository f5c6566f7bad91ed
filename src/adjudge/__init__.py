"""adjudge: ask language models whether something is good enough, and act on the answer safely.

This is the table of contents. A name is imported from its module when it is first used, because asyncio alone costs
more than everything a program needs that imports adjudge and judges nothing in this run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adjudge._decision import Decision
    from adjudge._evaluate import JudgeLike
    from adjudge._improve import Improvement, improve
    from adjudge._judge import Judge
    from adjudge._short import judge
    from adjudge._wire import wire
    from adjudge.chain import JudgeChain
    from adjudge.errors import (
        AdjudgeError,
        Blocked,
        JudgmentFailed,
        LedgerError,
        ModelError,
        ReplyError,
        UsageError,
    )
    from adjudge.gate import Gate
    from adjudge.ledger import Ledger
    from adjudge.models import Form, Model, Reply, Request, open_model
    from adjudge.models._budget import Budget
    from adjudge.models._priced import Price
    from adjudge.models._reply_cache import ReplyCache
    from adjudge.question import Question
    from adjudge.result import (
        CriterionResult,
        JudgeChainResult,
        JudgeResult,
        Outcome,
        RuleResult,
        Usage,
        read_result,
    )
    from adjudge.rows import Row, read_rows
    from adjudge.rubric import Criterion, Example, Rubric
    from adjudge.rubric_file import load_rubric
    from adjudge.rules import Rule

__all__ = [
    "AdjudgeError",
    "Blocked",
    "Budget",
    "Criterion",
    "CriterionResult",
    "Decision",
    "Example",
    "Form",
    "Gate",
    "Improvement",
    "Judge",
    "JudgeChain",
    "JudgeChainResult",
    "JudgeLike",
    "JudgeResult",
    "JudgmentFailed",
    "Ledger",
    "LedgerError",
    "Model",
    "ModelError",
    "Outcome",
    "Price",
    "Question",
    "Reply",
    "ReplyCache",
    "ReplyError",
    "Request",
    "Row",
    "Rubric",
    "Rule",
    "RuleResult",
    "Usage",
    "UsageError",
    "improve",
    "judge",
    "load_rubric",
    "open_model",
    "read_result",
    "read_rows",
    "wire",
]

__version__ = "0.1.0"

_HOMES = {
    "AdjudgeError": "adjudge.errors",
    "Blocked": "adjudge.errors",
    "Budget": "adjudge.models._budget",
    "Criterion": "adjudge.rubric",
    "CriterionResult": "adjudge.result",
    "Decision": "adjudge._decision",
    "Example": "adjudge.rubric",
    "Form": "adjudge.models",
    "Gate": "adjudge.gate",
    "Improvement": "adjudge._improve",
    "Judge": "adjudge._judge",
    "JudgeChain": "adjudge.chain",
    "JudgeChainResult": "adjudge.result",
    "JudgeLike": "adjudge._evaluate",
    "JudgeResult": "adjudge.result",
    "JudgmentFailed": "adjudge.errors",
    "Ledger": "adjudge.ledger",
    "LedgerError": "adjudge.errors",
    "Model": "adjudge.models",
    "ModelError": "adjudge.errors",
    "Outcome": "adjudge.result",
    "Price": "adjudge.models._priced",
    "Question": "adjudge.question",
    "Reply": "adjudge.models",
    "ReplyCache": "adjudge.models._reply_cache",
    "ReplyError": "adjudge.errors",
    "Request": "adjudge.models",
    "Row": "adjudge.rows",
    "Rubric": "adjudge.rubric",
    "Rule": "adjudge.rules",
    "RuleResult": "adjudge.result",
    "Usage": "adjudge.result",
    "UsageError": "adjudge.errors",
    "improve": "adjudge._improve",
    "judge": "adjudge._short",
    "load_rubric": "adjudge.rubric_file",
    "open_model": "adjudge.models",
    "read_result": "adjudge.result",
    "read_rows": "adjudge.rows",
    "wire": "adjudge._wire",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'adjudge' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
