"""Semantic probes, each with an input, the output that was good for it, and a contract; and the levels of drift.

The outcome of a probe is decided in ``evaluate.py`` (``_decide``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_flag, check_share
from adjudge.formats.record import write_record
from adjudge.formats.text import show, suggest
from adjudge.question.score import reaches

Drift = Literal["none", "low", "medium", "high"]


_ALIASES = {
    "readOnly": "read_only",
    "systemRules": "rules",
    "system_rules": "rules",
    "schemaKeys": "schema_keys",
}
"""Other names of members that a contract in a file or mapping may use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeContract:
    """The promises of a tool. Members that you leave out are not shown to the judge.

    Args:
        description: The work that the tool does.
        read_only: True if the tool changes nothing.
        destructive: True if it may destroy what it works on.
        rules: Rules that every output must keep, a sentence each.
        schema_keys: The keys that an output has.
    """

    description: str = ""
    """The work that the tool does."""
    read_only: bool | None = None
    """True if the tool changes nothing."""
    destructive: bool | None = None
    """True if it may destroy what it works on."""
    rules: tuple[str, ...] = ()
    """Rules that every output must keep, a sentence each."""
    schema_keys: tuple[str, ...] = ()
    """The keys that an output has."""

    def __post_init__(self) -> None:
        if not isinstance(self.description, str):
            raise UsageError(f"a contract's description must be a text, got {show(self.description)}")
        for name in ("read_only", "destructive"):
            value = getattr(self, name)
            if value is not None:
                check_flag(name, value, where="a contract")
        for name in ("rules", "schema_keys"):
            value = getattr(self, name)
            if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
                raise UsageError(f"a contract's {name} must be a list of texts, got {show(value)}")
            object.__setattr__(self, name, tuple(value))
        if not self.list_stated():
            raise UsageError("the contract says nothing; state a description or rules, or leave it out")
        content_text(self.list_stated(), label="contract")

    def list_stated(self) -> dict[str, Any]:
        """List what the contract states, without what it leaves open."""
        stated: dict[str, Any] = {}
        for member in fields(self):
            value = getattr(self, member.name)
            if value is not None and value not in ("", ()):
                stated[member.name] = list(value) if isinstance(value, tuple) else value
        return stated


ContractSource = ProbeContract | Mapping[str, Any] | str | None


def read_contract(source: ContractSource) -> ProbeContract | None:
    """Read a contract from a mapping, a text (its description) or a contract; raise ``UsageError`` for others."""
    if source is None or isinstance(source, ProbeContract):
        return source
    if isinstance(source, str):
        return ProbeContract(description=source)
    if not isinstance(source, Mapping):
        raise UsageError(f"a contract must be a mapping or a text, got {show(source)}")
    names = [member.name for member in fields(ProbeContract)]
    members: dict[str, Any] = {}
    for key, value in source.items():
        name = _ALIASES.get(key, key) if isinstance(key, str) else key
        if name not in names:
            hint = suggest(key, names) or f"; it has {', '.join(names)}"
            raise UsageError(f"a contract has no key {show(key)}{hint}")
        if name in members:
            raise UsageError(f"the contract says {name} twice, the second time as {show(key)}; keep one")
        members[name] = value
    return ProbeContract(**members)


@dataclass(frozen=True, slots=True, kw_only=True)
class SemanticProbe:
    """An input for a tool, and the output that was good for it.

    ``input`` and ``expected`` are text, JSON values, or anything that ``evaluate`` takes as content; ``contract`` is a
    ``ProbeContract``, a mapping with its members, or a text. Raises ``UsageError`` for a value that cannot be shown to
    a judge.

    Args:
        name: The probe's name in reports.
        input: The input that the tool is called with.
        expected: The baseline: the output that was good.
        contract: A ``ProbeContract``, or ``None`` where nothing is promised.
    """

    name: str
    """The probe's name in reports."""
    input: Any = field(repr=False)
    """The input that the tool is called with."""
    expected: Any = field(repr=False)
    """The baseline: the output that was good."""
    contract: ProbeContract | None = field(default=None, repr=False)
    """A ``ProbeContract``, or ``None`` where nothing is promised."""
    texts: tuple[str, str] = field(init=False, repr=False, compare=False)
    """Input and baseline as a judge is shown them. Kept from the start: a tool may change what it is given."""

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            name: str,
            input: Any,  # noqa: A002
            expected: Any,
            contract: ProbeContract | Mapping[str, Any] | str | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise UsageError(f"a probe needs a name that is not empty, got {show(self.name)}")
        content_text(self.name, label="name of a probe")
        where = f"of probe {show(self.name)}"
        texts = tuple(content_text(getattr(self, part), label=f"{part} {where}") for part in ("input", "expected"))
        object.__setattr__(self, "texts", texts)
        try:
            object.__setattr__(self, "contract", read_contract(self.contract))
        except UsageError as error:
            raise UsageError(f"the contract {where}: {error}") from None

    def render_contract(self) -> str:
        """Render the contract as a judge is shown it; empty where there is none."""
        return json.dumps(self.contract.list_stated(), ensure_ascii=False, indent=2) if self.contract else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeThresholds:
    """The lowest similarity for the drift ``none``, ``low`` and ``medium``; below all of them the drift is ``high``.

    The levels are tried in this order, so with a ``low`` above ``none`` the drift is never ``low``. Raises
    ``UsageError`` for a number outside 0 to 1, and for a ``medium`` above ``low``, because then the two were probably
    confused.

    Args:
        none: The lowest similarity that counts as no drift.
        low: The lowest similarity that counts as low drift.
        medium: The lowest similarity that counts as medium drift.
    """

    none: float = 0.95
    """The lowest similarity that counts as no drift."""
    low: float = 0.75
    """The lowest similarity that counts as low drift."""
    medium: float = 0.5
    """The lowest similarity that counts as medium drift."""

    def __post_init__(self) -> None:
        for level in fields(self):
            check_share(level.name, getattr(self, level.name), where="the thresholds")
        if self.medium > self.low:
            raise UsageError(
                f"the threshold 'medium' ({self.medium:g}) lies above 'low' ({self.low:g}); a similarity from 'low' on "
                "passes, so 'medium' must not be higher"
            )

    @property
    def passing(self) -> float:
        """The similarity from which on drift is none or low, which passes."""
        return min(self.none, self.low)

    def find_drift(self, similarity: float) -> Drift:
        """Return the level of drift of a similarity.

        Args:
            similarity: The similarity to the baseline, in 0 to 1.
        """
        if reaches(similarity, self.none):
            return "none"
        if reaches(similarity, self.low):
            return "low"
        return "medium" if reaches(similarity, self.medium) else "high"

    def to_dict(self) -> dict[str, Any]:
        """Write the thresholds as plain data."""
        return write_record(self)


DEFAULT_THRESHOLDS = ProbeThresholds()
