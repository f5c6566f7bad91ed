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
    from adjudge._run import Run, RunItem, open_run, run
    from adjudge._run._redecide import Redecision, redecide
    from adjudge._short import judge
    from adjudge.chain import JudgeChain
    from adjudge.dataset import Case, Dataset, open_dataset, write_cases
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
    from adjudge.question import Question
    from adjudge.report._diff import Diff, diff
    from adjudge.result import (
        CriterionResult,
        JudgeChainResult,
        JudgeResult,
        Outcome,
        RuleResult,
        Usage,
        read_result,
    )
    from adjudge.rubric import Criterion, Example, Rubric
    from adjudge.rubric_file import load_rubric
    from adjudge.rules import Rule

__all__ = [
    "AdjudgeError",
    "Blocked",
    "Case",
    "Criterion",
    "CriterionResult",
    "Dataset",
    "Decision",
    "Diff",
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
    "Question",
    "Redecision",
    "Reply",
    "ReplyError",
    "Request",
    "Rubric",
    "Rule",
    "RuleResult",
    "Run",
    "RunItem",
    "Usage",
    "UsageError",
    "diff",
    "improve",
    "judge",
    "load_rubric",
    "open_dataset",
    "open_model",
    "open_run",
    "read_result",
    "redecide",
    "run",
    "write_cases",
]

__version__ = "0.1.0"

_HOMES = {
    "AdjudgeError": "adjudge.errors",
    "Blocked": "adjudge.errors",
    "Criterion": "adjudge.rubric",
    "CriterionResult": "adjudge.result",
    "Dataset": "adjudge.dataset",
    "Decision": "adjudge._decision",
    "Diff": "adjudge.report._diff",
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
    "Question": "adjudge.question",
    "Redecision": "adjudge._run._redecide",
    "Reply": "adjudge.models",
    "ReplyError": "adjudge.errors",
    "Request": "adjudge.models",
    "Case": "adjudge.dataset",
    "Rubric": "adjudge.rubric",
    "Rule": "adjudge.rules",
    "RuleResult": "adjudge.result",
    "Run": "adjudge._run",
    "RunItem": "adjudge._run",
    "Usage": "adjudge.result",
    "UsageError": "adjudge.errors",
    "diff": "adjudge.report._diff",
    "improve": "adjudge._improve",
    "judge": "adjudge._short",
    "load_rubric": "adjudge.rubric_file",
    "open_dataset": "adjudge.dataset",
    "open_model": "adjudge.models",
    "open_run": "adjudge._run",
    "read_result": "adjudge.result",
    "redecide": "adjudge._run._redecide",
    "run": "adjudge._run",
    "write_cases": "adjudge.dataset",
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
