"""The record of a tool call that an agent wanted to make: what the harness did with it, and what a gate's rules found.

Each call is a case, whose metadata has the record. A person who labels is shown no metadata, and no model is sent any.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self, get_args

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.record import read_record, write_record

CallOutcome = Literal["ran", "asked", "refused", "unknown"]
"""The act of the harness, the program that runs the agent, on a call: it made the call, it asked its user and got no
answer, or it or its user refused."""

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
        """The outcome that counts for the case: ``ran`` if the call was ever made, else ``unknown`` if it may be."""
        by_precedence: tuple[CallOutcome, ...] = ("ran", "unknown", "refused", "asked")
        return next((name for name in by_precedence if name in self.outcomes), "unknown")

    def merge(self, later: Self) -> Self:
        """Merge this record with that of a later equal call: outcomes add up, and the later verdict of rules counts."""
        names = dict.fromkeys((*self.outcomes, *later.outcomes))
        outcomes = {name: self.outcomes.get(name, 0) + later.outcomes.get(name, 0) for name in names}
        latest_with_rules = self if later.rules is None else later
        return type(self)(
            outcomes=outcomes,
            rules=latest_with_rules.rules,
            failed_rules=latest_with_rules.failed_rules,
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
    members = metadata.get(KEY)
    if not isinstance(members, Mapping):
        return None
    try:
        return CallRecord.from_dict(members)
    except UsageError:
        return None
