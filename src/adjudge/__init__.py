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
    from adjudge.chain import JudgeChain
    from adjudge.errors import (
        AdjudgeError,
        Blocked,
        JudgmentFailed,
        LedgerError,
        ModelError,
        ReplyError,
        ToolRefused,
        UsageError,
    )
    from adjudge.gate import Gate
    from adjudge.ledger import Ledger
    from adjudge.models import Form, Model, Reply, Request, open_model
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
    from adjudge.tools import (
        CreationVerdict,
        EmergentJudge,
        EmergentTool,
        ForgeResult,
        PromotionVerdict,
        ReuseVerdict,
        ReviewVerdict,
        ToolCandidate,
        ToolRegistry,
        ToolTest,
        forge,
    )

__all__ = [
    "AdjudgeError",
    "Blocked",
    "CreationVerdict",
    "Criterion",
    "CriterionResult",
    "Decision",
    "EmergentJudge",
    "EmergentTool",
    "Example",
    "ForgeResult",
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
    "PromotionVerdict",
    "Question",
    "Reply",
    "ReplyError",
    "Request",
    "ReuseVerdict",
    "ReviewVerdict",
    "Row",
    "Rubric",
    "Rule",
    "RuleResult",
    "ToolCandidate",
    "ToolRefused",
    "ToolRegistry",
    "ToolTest",
    "Usage",
    "UsageError",
    "forge",
    "improve",
    "judge",
    "load_rubric",
    "open_model",
    "read_result",
    "read_rows",
]

__version__ = "0.1.0"

_HOMES = {
    "AdjudgeError": "adjudge.errors",
    "Blocked": "adjudge.errors",
    "CreationVerdict": "adjudge.tools",
    "Criterion": "adjudge.rubric",
    "CriterionResult": "adjudge.result",
    "Decision": "adjudge._decision",
    "EmergentJudge": "adjudge.tools",
    "EmergentTool": "adjudge.tools",
    "Example": "adjudge.rubric",
    "ForgeResult": "adjudge.tools",
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
    "PromotionVerdict": "adjudge.tools",
    "Question": "adjudge.question",
    "Reply": "adjudge.models",
    "ReplyError": "adjudge.errors",
    "Request": "adjudge.models",
    "ReuseVerdict": "adjudge.tools",
    "ReviewVerdict": "adjudge.tools",
    "Row": "adjudge.rows",
    "Rubric": "adjudge.rubric",
    "Rule": "adjudge.rules",
    "RuleResult": "adjudge.result",
    "ToolCandidate": "adjudge.tools",
    "ToolRefused": "adjudge.errors",
    "ToolRegistry": "adjudge.tools",
    "ToolTest": "adjudge.tools",
    "Usage": "adjudge.result",
    "UsageError": "adjudge.errors",
    "forge": "adjudge.tools",
    "improve": "adjudge._improve",
    "judge": "adjudge._short",
    "load_rubric": "adjudge.rubric_file",
    "open_model": "adjudge.models",
    "read_result": "adjudge.result",
    "read_rows": "adjudge.rows",
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
