"""adjudge: ask language models whether something is good enough, and act on the answer safely.

This is the table of contents. A name is imported from its module when it is first used, because asyncio alone costs
more than everything a program needs that imports adjudge and judges nothing in this run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adjudge._compare import compare, compare_sync
    from adjudge._decision import Decision
    from adjudge._evaluate import JudgeLike
    from adjudge._guard import GuardEvent
    from adjudge._improve import Improvement, improve
    from adjudge._judge import Judge
    from adjudge._pair import PairResult
    from adjudge._run import Run, RunItem, open_run, run
    from adjudge._run._redecide import Redecision, redecide
    from adjudge._short import judge
    from adjudge._wire import wire
    from adjudge.approval import Approval, Approvals, Vote
    from adjudge.audit import AuditEntry, AuditQuery, derive_audit, parse_audit, write_audit
    from adjudge.chain import JudgeChain
    from adjudge.dataset import Case, Dataset, open_dataset, write_cases
    from adjudge.errors import (
        AdjudgeError,
        Blocked,
        DecisionRefused,
        InputRejected,
        JudgmentFailed,
        LedgerError,
        ModelError,
        ReplyError,
        ToolRefused,
        UsageError,
    )
    from adjudge.firewall import FirewallVerdict, InputFirewall, InputVerdict, PromptFirewall, RejectedRule, Threat
    from adjudge.gate import Gate
    from adjudge.ledger import Ledger
    from adjudge.models import Form, Model, Reply, Request, open_model
    from adjudge.models._budget import Budget
    from adjudge.models._priced import Price
    from adjudge.models._reply_cache import ReplyCache
    from adjudge.probe import ProbeReport, ProbeResult, ProbeThresholds, SemanticProbe, evaluate_probe, evaluate_probes
    from adjudge.question import Question
    from adjudge.report._diff import Diff, diff
    from adjudge.result import CriterionResult, JudgeChainResult, JudgeResult, Outcome, RuleResult, Usage, read_result
    from adjudge.rubric import Criterion, Example, Rubric
    from adjudge.rubric_file import load_rubric
    from adjudge.rules import Rule, Rules
    from adjudge.rules_file import load_rules
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
    "Approval",
    "Approvals",
    "AuditEntry",
    "AuditQuery",
    "Blocked",
    "Budget",
    "Case",
    "CreationVerdict",
    "Criterion",
    "CriterionResult",
    "Dataset",
    "Decision",
    "DecisionRefused",
    "Diff",
    "EmergentJudge",
    "EmergentTool",
    "Example",
    "FirewallVerdict",
    "ForgeResult",
    "Form",
    "Gate",
    "GuardEvent",
    "Improvement",
    "InputFirewall",
    "InputRejected",
    "InputVerdict",
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
    "PairResult",
    "Price",
    "ProbeReport",
    "ProbeResult",
    "ProbeThresholds",
    "PromotionVerdict",
    "PromptFirewall",
    "Question",
    "Redecision",
    "RejectedRule",
    "Reply",
    "ReplyCache",
    "ReplyError",
    "Request",
    "ReuseVerdict",
    "ReviewVerdict",
    "Rubric",
    "Rule",
    "RuleResult",
    "Rules",
    "Run",
    "RunItem",
    "SemanticProbe",
    "Threat",
    "ToolCandidate",
    "ToolRefused",
    "ToolRegistry",
    "ToolTest",
    "Usage",
    "UsageError",
    "Vote",
    "compare",
    "compare_sync",
    "derive_audit",
    "diff",
    "evaluate_probe",
    "evaluate_probes",
    "forge",
    "improve",
    "judge",
    "load_rubric",
    "load_rules",
    "open_dataset",
    "open_model",
    "open_run",
    "parse_audit",
    "read_result",
    "redecide",
    "run",
    "wire",
    "write_audit",
    "write_cases",
]

__version__ = "0.1.0"

_HOMES = {
    "AdjudgeError": "adjudge.errors",
    "Approval": "adjudge.approval",
    "Approvals": "adjudge.approval",
    "AuditEntry": "adjudge.audit",
    "AuditQuery": "adjudge.audit",
    "Blocked": "adjudge.errors",
    "Budget": "adjudge.models._budget",
    "Case": "adjudge.dataset",
    "CreationVerdict": "adjudge.tools",
    "Criterion": "adjudge.rubric",
    "CriterionResult": "adjudge.result",
    "Dataset": "adjudge.dataset",
    "Decision": "adjudge._decision",
    "DecisionRefused": "adjudge.errors",
    "Diff": "adjudge.report._diff",
    "EmergentJudge": "adjudge.tools",
    "EmergentTool": "adjudge.tools",
    "Example": "adjudge.rubric",
    "FirewallVerdict": "adjudge.firewall",
    "ForgeResult": "adjudge.tools",
    "Form": "adjudge.models",
    "Gate": "adjudge.gate",
    "GuardEvent": "adjudge._guard",
    "Improvement": "adjudge._improve",
    "InputFirewall": "adjudge.firewall",
    "InputRejected": "adjudge.errors",
    "InputVerdict": "adjudge.firewall",
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
    "PairResult": "adjudge._pair",
    "Price": "adjudge.models._priced",
    "ProbeReport": "adjudge.probe",
    "ProbeResult": "adjudge.probe",
    "ProbeThresholds": "adjudge.probe",
    "PromotionVerdict": "adjudge.tools",
    "PromptFirewall": "adjudge.firewall",
    "Question": "adjudge.question",
    "Redecision": "adjudge._run._redecide",
    "RejectedRule": "adjudge.firewall",
    "Reply": "adjudge.models",
    "ReplyCache": "adjudge.models._reply_cache",
    "ReplyError": "adjudge.errors",
    "Request": "adjudge.models",
    "ReuseVerdict": "adjudge.tools",
    "ReviewVerdict": "adjudge.tools",
    "Rubric": "adjudge.rubric",
    "Rule": "adjudge.rules",
    "RuleResult": "adjudge.result",
    "Rules": "adjudge.rules",
    "Run": "adjudge._run",
    "RunItem": "adjudge._run",
    "SemanticProbe": "adjudge.probe",
    "Threat": "adjudge.firewall",
    "ToolCandidate": "adjudge.tools",
    "ToolRefused": "adjudge.errors",
    "ToolRegistry": "adjudge.tools",
    "ToolTest": "adjudge.tools",
    "Usage": "adjudge.result",
    "UsageError": "adjudge.errors",
    "Vote": "adjudge.approval",
    "compare": "adjudge._compare",
    "compare_sync": "adjudge._compare",
    "derive_audit": "adjudge.audit",
    "diff": "adjudge.report._diff",
    "evaluate_probe": "adjudge.probe",
    "evaluate_probes": "adjudge.probe",
    "forge": "adjudge.tools",
    "improve": "adjudge._improve",
    "judge": "adjudge._short",
    "load_rubric": "adjudge.rubric_file",
    "load_rules": "adjudge.rules_file",
    "open_dataset": "adjudge.dataset",
    "open_model": "adjudge.models",
    "open_run": "adjudge._run",
    "parse_audit": "adjudge.audit",
    "read_result": "adjudge.result",
    "redecide": "adjudge._run._redecide",
    "run": "adjudge._run",
    "wire": "adjudge._wire",
    "write_audit": "adjudge.audit",
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
