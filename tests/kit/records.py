"""One or two example values of every record of the package, the same on every machine.

A member is filled by its type (a text holds its own name); where a record has rules of its own, ``OVERRIDES`` gives
the members that keep them.
"""

from __future__ import annotations

import dataclasses
import pkgutil
import types
import typing
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import cache
from typing import Any, Literal

import adjudge
from adjudge.rules import Rules
from kit import house

NOW = datetime(2026, 1, 31, 12, 0, 0, 250000, tzinfo=UTC)


@cache
def find_records() -> Mapping[str, type[Any]]:
    """Every dataclass of the package that has ``to_dict``, by its name; the adapters for other packages have none."""
    records: dict[str, type[Any]] = {}
    for module in pkgutil.walk_packages(adjudge.__path__, "adjudge."):
        if module.name.endswith("__main__") or module.name.startswith("adjudge.integrations."):
            continue
        loaded = house.load_module(module.name)
        if loaded is None:
            continue
        for kind in vars(loaded).values():
            if isinstance(kind, type) and kind.__module__ == loaded.__name__ and "to_dict" in vars(kind):
                assert records.setdefault(kind.__name__, kind) is kind, f"two records are called {kind.__name__}"
    del records["Run"]  # writes the manifest of its folder, and no members of its own
    return dict(sorted(records.items()))


def make_example(kind: type[Any], *, full: bool = True) -> Any:
    """A value of a record: every member filled, or only those without a default."""
    hints = typing.get_type_hints(kind)
    chosen: dict[str, Any] = {}
    fixed = OVERRIDES.get(kind.__name__, {})
    frozen = kind.__dataclass_params__.frozen
    for item in dataclasses.fields(kind):
        if not item.init:
            continue
        # What counts begins at its defaults, and nobody leaves one of its members out.
        has_default = frozen and (
            item.default is not dataclasses.MISSING or item.default_factory is not dataclasses.MISSING
        )
        if item.name in fixed:
            if full or not has_default or item.name in ALWAYS:
                value = fixed[item.name]
                chosen[item.name] = value() if callable(value) else value
        elif full or not has_default or item.name in ALWAYS:
            chosen[item.name] = fill(hints[item.name], item.name, full=full)
    return kind(**chosen)


ALWAYS = frozenset({"id", "created_at", "at", "registered_at"})
"""Members whose default is another one each time."""


def fill(hint: Any, name: str, *, full: bool) -> Any:
    """A value of a type."""
    origin, parts = typing.get_origin(hint), typing.get_args(hint)
    if origin is None:
        return make_example(hint, full=full) if dataclasses.is_dataclass(hint) else _LEAVES[hint](name)
    if origin is Literal:
        return parts[0]
    if origin in (typing.Union, types.UnionType):
        return None if type(None) in parts and not full else fill(parts[0], name, full=full)
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(fill(part, name, full=full) for part in parts)
    if issubclass(origin, Mapping):
        return {fill(parts[0], "key", full=full): fill(parts[1], name, full=full)} if full else {}
    return (fill(parts[0], name, full=full),) if full else ()


_LEAVES: Mapping[Any, Callable[[str], Any]] = {
    str: lambda name: f"{name} é",
    bool: lambda _name: True,
    int: lambda _name: 3,
    float: lambda _name: 0.25,
    datetime: lambda _name: NOW,
    date: lambda _name: NOW.date(),
    type(None): lambda _name: None,
    Any: lambda name: {name: [1, 2.5, None, "x"]},
    object: lambda name: f"{name} é",
}

DIGEST = "0123456789abcdef" * 4

REGEX = Rules({"polite": {"regex": "please|thanks"}}).list()[0]


def example(name: str, *, full: bool = True, **changes: Any) -> Any:
    """An example of the record of this name, with some members changed."""
    return dataclasses.replace(make_example(find_records()[name], full=full), **changes)


def _measure() -> Any:
    return example("Measurement", full=False)


OVERRIDES: dict[str, dict[str, Any]] = {
    "ShownSeat": {"remark": "said é"},  # its name in the data
    "AgentRun": {"problems": ("cut é",), "complete": False, "budget": 3000},
    "Approval": {
        "result_id": "id é",
        "first": lambda: example("JudgeChainResult"),
        "decided_by": None,
        "closed_at": None,
    },
    "Candidate": {"measurement": _measure},
    "Case": {"criteria": None, "rubric": lambda: example("Rubric"), "rules": (REGEX,), "threshold": None},
    "CertifiedJudge": {"judge": DIGEST, "rubric": DIGEST, "prompt": DIGEST},
    "Confusion": {"categories": (False, True), "counts": ((3, 1), (0, 5))},
    "ContentSet": {"digest": DIGEST},
    "CreationVerdict": {"chain_result": lambda: example("JudgeChainResult")},
    "Criterion": {"rule": REGEX, "levels": ((0.0, "bad"), (0.5, "fair"), (1.0, "good"))},
    "Decision": {"allowed": False, "pending": False, "result": lambda: example("JudgeChainResult")},
    "Diff": {"measured": lambda: (_measure(), _measure())},
    "ErrorsElsewhere": {"measurement": _measure},
    "Head": {"hash": DIGEST},
    "InputVerdict": {"passed": False},
    "JudgeChainResult": {
        "undecided_because": None,
        "results": lambda: (example("JudgeResult"), example("JudgeChainResult", full=False)),
    },
    "JudgeResult": {"undecided_because": None},
    "Label": {"subject": DIGEST},
    "LabelDesign": {"contents": DIGEST},
    "LabelTask": {"results": lambda: (example("JudgeChainResult"), example("PairResult"))},
    "Measurement": {"criteria": lambda: (_measure(),), "measured_on": lambda: example("ErrorsElsewhere")},
    "PairOrder": {"result": lambda: example("JudgeChainResult", value="first")},
    "PairResult": {"preferred": "first", "orders": lambda: (example("PairOrder"),), "undecided_because": None},
    "Pins": {
        "tools": ({"name": "add", "description": "Add é.", "inputSchema": {"type": "object"}, "x": [1, 2.5, True]},),
        "prompts": ({"name": "sums"},),
    },
    "ProbeResult": {"undecided_because": None, "contract_violated": False},
    "PromotionVerdict": {"confidence": 0.25},
    "ReleasePolicy": {
        "confidence": 0.95,
        "level": 0.97,
        "p_value": 0.02,
        **dict.fromkeys(
            ("grid_digest", "judge_digest", "rubric_digest", "asked_digest", "contents_digest", "labels_digest"), DIGEST
        ),
    },
    "Report": {"measurement": _measure},
    "ReuseVerdict": {"valid": False},
    "ReviewVerdict": {"chain_result": lambda: example("JudgeChainResult")},
    "Rubric": {"criteria": lambda: (example("Criterion"),), "scale": (0.0, 1.0)},
    "Slices": {"slices": lambda: (example("Slice"),)},
    "Step": {"role": "assistant", "text": ""},
    "Replacement": {"measurement": _measure},
    "ToolRecord": {"approved_by": None},
    "ToolUsage": {"successes": 2, "failures": 1},
    "Verification": {"code": None},
}
"""Members that a record checks against one another, and values that its type alone does not name."""


def make_examples(name: str) -> list[Any]:
    """The examples of a record: every member, only what is needed, and the shapes that differ from both."""
    if name == "Rules":
        return [Rules([REGEX]), Rules()]
    kind = find_records()[name]
    return [make_example(kind), make_example(kind, full=False), *[make() for make in FURTHER.get(name, ())]]


FURTHER: Mapping[str, tuple[Callable[[], Any], ...]] = {
    "Approval": (
        lambda: example(
            "Approval",
            status="approved",
            decided_by="human",
            approvers=("ann",),
            required=1,
            votes=(example("Vote", by="ann"),),
            closed_by=("ann",),
            closed_at=NOW,
        ),
    ),
    "AuditEntry": (lambda: example("AuditEntry", metadata={"large": 2**60, "half": "\ud800"}),),
    "Case": (lambda: example("Case", rubric=None, rules=(), threshold=0.5),),
    "Decision": (
        lambda: example("Decision", allowed=True),
        lambda: example("Decision", pending=True, decided_by="policy"),
    ),
    "JudgeResult": (
        lambda: example("JudgeResult", outcome="undecided", undecided_because="split", score=None, value=float("nan")),
        lambda: example("JudgeResult", outcome="failed", metadata={"at": NOW, "set": (1, 2), "inf": float("inf")}),
    ),
    "Label": (lambda: example("Label", value="first", criterion=None), lambda: example("Label", value=2.5)),
    "Measurement": (lambda: example("Measurement", rate=example("Refusal")),),
    "PairResult": (lambda: example("PairResult", preferred=None, undecided_because="error", orders=()),),
    "ToolTest": (lambda: example("ToolTest", expected=None),),
    "Verification": (lambda: example("Verification", valid=False, code="hash"),),
}
