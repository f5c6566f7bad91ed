"""The fate of a tool's call that an agent wanted to make, in the metadata of the case that it is.

A person who labels is shown no metadata of a case, and no model is sent any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.record import read_record, write_record

CallOutcome = Literal["ran", "asked", "refused", "unknown"]
"""The act of the harness on a call: it made it, asked and got no answer, or it or its user refused."""

RulesVerdict = Literal["passed", "failed"]
"""The verdict of a gate's rules: whether one with the severity ``error`` failed."""

KEY = "call"
"""The member of a case's metadata that holds the record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """The acts of the harness on a call, and the results of a gate's rules for it. Equal calls are one case."""

    outcomes: Mapping[CallOutcome, int]
    """The number of times that the call was made, asked about, refused, or nobody knows."""
    rules: RulesVerdict | None = None
    """``None`` where no rules were asked about it."""
    failed_rules: tuple[str, ...] = ()
    """The names of those that failed."""
    sources: tuple[str, ...] = field(default=())
    """The sources of the record: ``ledger``, or the agent whose transcript has it, such as ``claude``."""

    def __post_init__(self) -> None:
        for name, times in self.outcomes.items():
            check_choice("outcomes", name, get_args(CallOutcome))
            check_whole_number("outcomes", times, least=1)

    @property
    def times(self) -> int:
        """The number of times that the agent wanted to make it."""
        return sum(self.outcomes.values())

    @property
    def outcome(self) -> CallOutcome:
        """The outcome that counts: a call that was made once was let through, and else one unknown leaves it open."""
        order: tuple[CallOutcome, ...] = ("ran", "unknown", "refused", "asked")
        return next((name for name in order if name in self.outcomes), "unknown")

    def merge(self, later: Self) -> Self:
        """Return the record of this call and a later one that is equal."""
        names = dict.fromkeys((*self.outcomes, *later.outcomes))
        outcomes = {name: self.outcomes.get(name, 0) + later.outcomes.get(name, 0) for name in names}
        rules = self if later.rules is None else later
        return type(self)(
            outcomes=outcomes,
            rules=rules.rules,
            failed_rules=rules.failed_rules,
            sources=tuple(dict.fromkeys((*self.sources, *later.sources))),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)


def read_call_record(metadata: Mapping[str, Any]) -> CallRecord | None:
    """Read the record in the metadata of a case; ``None`` for a case that has none, or whose ``call`` is another."""
    described = metadata.get(KEY)
    if not isinstance(described, Mapping):
        return None
    try:
        return CallRecord.from_dict(described)
    except UsageError:
        return None
