"""adjudge: ask language models whether something is good enough, and act on the answer safely.

This is the table of contents. A name is imported from its module when it is first used, because asyncio alone costs
more than everything a program needs that imports adjudge and judges nothing in this run.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from adjudge._decision import Decision
    from adjudge._evaluate import JudgeLike
    from adjudge._guard import GuardEvent
    from adjudge._improve import Improvement, improve
    from adjudge._judge import Judge
    from adjudge._short import judge
    from adjudge.approval import Approval, Approvals, Vote
    from adjudge.audit import AuditEntry, AuditQuery, derive_audit, parse_audit, write_audit
    from adjudge.chain import JudgeChain
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
    from adjudge.probe import ProbeReport, ProbeResult, ProbeThresholds, SemanticProbe, evaluate_probe, evaluate_probes
    from adjudge.question import Question
    from adjudge.result import CriterionResult, JudgeChainResult, JudgeResult, Outcome, RuleResult, Usage, read_result
    from adjudge.rows import Row, read_rows
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
    "CreationVerdict",
    "Criterion",
    "CriterionResult",
    "Decision",
    "DecisionRefused",
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
    "ProbeReport",
    "ProbeResult",
    "ProbeThresholds",
    "PromotionVerdict",
    "PromptFirewall",
    "Question",
    "RejectedRule",
    "Reply",
    "ReplyError",
    "Request",
    "ReuseVerdict",
    "ReviewVerdict",
    "Row",
    "Rubric",
    "Rule",
    "RuleResult",
    "Rules",
    "SemanticProbe",
    "Threat",
    "ToolCandidate",
    "ToolRefused",
    "ToolRegistry",
    "ToolTest",
    "Usage",
    "UsageError",
    "Vote",
    "derive_audit",
    "evaluate_probe",
    "evaluate_probes",
    "forge",
    "improve",
    "judge",
    "load_rubric",
    "load_rules",
    "open_model",
    "parse_audit",
    "read_result",
    "read_rows",
    "write_audit",
]

__version__ = "0.1.0"

_HOMES = {
    "AdjudgeError": "adjudge.errors",
    "Approval": "adjudge.approval",
    "Approvals": "adjudge.approval",
    "AuditEntry": "adjudge.audit",
    "AuditQuery": "adjudge.audit",
    "Blocked": "adjudge.errors",
    "CreationVerdict": "adjudge.tools",
    "Criterion": "adjudge.rubric",
    "CriterionResult": "adjudge.result",
    "Decision": "adjudge._decision",
    "DecisionRefused": "adjudge.errors",
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
    "ProbeReport": "adjudge.probe",
    "ProbeResult": "adjudge.probe",
    "ProbeThresholds": "adjudge.probe",
    "PromotionVerdict": "adjudge.tools",
    "PromptFirewall": "adjudge.firewall",
    "Question": "adjudge.question",
    "RejectedRule": "adjudge.firewall",
    "Reply": "adjudge.models",
    "ReplyError": "adjudge.errors",
    "Request": "adjudge.models",
    "ReuseVerdict": "adjudge.tools",
    "ReviewVerdict": "adjudge.tools",
    "Row": "adjudge.rows",
    "Rubric": "adjudge.rubric",
    "Rule": "adjudge.rules",
    "RuleResult": "adjudge.result",
    "Rules": "adjudge.rules",
    "SemanticProbe": "adjudge.probe",
    "Threat": "adjudge.firewall",
    "ToolCandidate": "adjudge.tools",
    "ToolRefused": "adjudge.errors",
    "ToolRegistry": "adjudge.tools",
    "ToolTest": "adjudge.tools",
    "Usage": "adjudge.result",
    "UsageError": "adjudge.errors",
    "Vote": "adjudge.approval",
    "derive_audit": "adjudge.audit",
    "evaluate_probe": "adjudge.probe",
    "evaluate_probes": "adjudge.probe",
    "forge": "adjudge.tools",
    "improve": "adjudge._improve",
    "judge": "adjudge._short",
    "load_rubric": "adjudge.rubric_file",
    "load_rules": "adjudge.rules_file",
    "open_model": "adjudge.models",
    "parse_audit": "adjudge.audit",
    "read_result": "adjudge.result",
    "read_rows": "adjudge.rows",
    "write_audit": "adjudge.audit",
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
