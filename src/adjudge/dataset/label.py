"""A label: what one rater said of one case."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, get_args

from adjudge.dataset.contents import ContentSet
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_digest, check_flag, check_whole_number, is_finite
from adjudge.formats.text import show, suggest

LabelKind = Literal["person", "model", "override", "adjudication"]

LabelOrder = Literal["ab", "ba"]

_KINDS = get_args(LabelKind)

_VALUES = frozenset(("first", "second", "tie", CANNOT_TELL))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDesign:
    """How a case was drawn for labelling, and from which contents. Rates need this to speak for the other cases.

    A draw belongs to the contents it was made from and not to a run: it holds for every run of the same contents,
    whatever their order and whichever judge.
    """

    plan: str
    """Which plan drew it."""
    stratum: str
    """Which of the plan's strata the case is in."""
    p: float
    """The probability with which the case was drawn, above 0 and up to 1."""
    size: int | None = None
    """How many cases the stratum has, drawn or not; ``None`` is unknown."""
    contents: str | None = None
    """The digest of the contents it was drawn from, as ``ContentSet`` has it; without one it was drawn from nothing
    that is known, and no rate relies on it."""
    cases: int | None = None
    """How many contents there were."""

    def __post_init__(self) -> None:
        for name in ("plan", "stratum"):
            _check_name(f"design.{name}", getattr(self, name))
        if not is_finite(self.p) or not 0 < self.p <= 1:
            raise UsageError(f"design.p is the probability of being drawn, above 0 and up to 1; got {show(self.p)}")
        for name, value in (("size", self.size), ("cases", self.cases)):
            if value is not None:
                check_whole_number(f"design.{name}", value, least=1)
        if self.contents is not None:
            check_digest("design.contents", self.contents)

    @property
    def drawn_from(self) -> ContentSet | None:
        """The contents it was drawn from; ``None`` is unknown."""
        if self.contents is None or self.cases is None:
            return None
        return ContentSet(digest=self.contents, cases=self.cases)

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data, without what is unknown."""
        return {name: value for name in DESIGN_KEYS if (value := getattr(self, name)) is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One rater's verdict on one case. Raises ``UsageError`` for a value that a label cannot have."""

    schema: ClassVar[str] = "adjudge/label/1"

    case: str
    """The id of the case."""
    rater: str
    """Who gave the label: one name for each person, or the name of a model."""
    value: bool | float | str
    """True, false, a number, ``first``, ``second``, ``tie``, or ``cannot_tell``: looked, and cannot decide."""
    kind: LabelKind = "person"
    """``person`` looked for themselves. ``override`` is a person who overruled a judge, and so knew its verdict.
    ``adjudication`` is a person who saw what the others said and settled the case, so it decides over them."""
    criterion: str | None = None
    """The criterion it is about; ``None`` is the case as a whole."""
    run: str | None = None
    """The run whose judgement the rater saw, if any."""
    order: LabelOrder | None = None
    """In which order a pair was shown; ``value`` always names the case's own sides."""
    at: datetime | None = None
    """When, with its zone; ``None`` is unknown."""
    blind: bool = False
    """Whether the rater is known to have seen no verdict of a judge."""
    subject: str | None = None
    """SHA-256 of the content that was read, as results have it; ``None`` is unknown. A label counts for no other
    content, and one whose content is unknown never counts as drawn at random."""
    design: LabelDesign | None = None
    comment: str | None = None

    def __post_init__(self) -> None:
        _check_name("case", self.case)
        _check_name("rater", self.rater)
        for name, value in (("criterion", self.criterion), ("run", self.run), ("comment", self.comment)):
            if value is not None:
                _check_name(name, value)
        if not _is_value(self.value):
            raise UsageError(
                f"value must be true, false, a number, 'first', 'second', 'tie' or {CANNOT_TELL!r}, got "
                f"{show(self.value)}; say what it means (--label-map WORD=true, or label_map=)"
            )
        check_choice("kind", self.kind, _KINDS)
        if self.order is not None:
            check_choice("order", self.order, get_args(LabelOrder))
        check_flag("blind", self.blind)
        if self.subject is not None:
            check_digest("subject", self.subject)
        if self.at is not None and (not isinstance(self.at, datetime) or self.at.utcoffset() is None):
            raise UsageError(f"at must be a time with its zone, like 2026-11-20T12:00:00Z, got {show(self.at)}")
        if not isinstance(self.design, LabelDesign | None):
            raise UsageError(f"design must be a LabelDesign, got {show(self.design)}")

    def to_dict(self) -> dict[str, Any]:
        """Return the label as a row of a label file, without missing members; ``at`` is null if unknown."""
        said: dict[str, Any] = {"schema": self.schema} | {name: getattr(self, name) for name in LABEL_KEYS}
        said["at"] = None if self.at is None else self.at.astimezone(UTC).isoformat()
        said["design"] = None if self.design is None else self.design.to_dict()
        return {name: value for name, value in said.items() if value is not None or name == "at"}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Label:
        """Read a row of a label file. Raises ``UsageError`` for a row that is not a label, or has a later schema."""
        if not data.keys() <= _KNOWN:
            key, known = next(key for key in data if key not in _KNOWN), ", ".join(LABEL_KEYS)
            raise UsageError(f"a label has no {show(key)}{suggest(key, LABEL_KEYS)}; it has {known}")
        if data.get("schema", cls.schema) != cls.schema:
            raise UsageError(f"the schema is {show(data['schema'])}, and a label is {cls.schema!r}; update adjudge")
        given = {key: value for key, value in data.items() if value is not None and key != "schema"}
        if given.get("comment") == "":
            del given["comment"]
        for key in ("case", "rater", "value"):
            if key not in given:
                raise UsageError(f"a label needs {key!r}, and there is none")
        # As with the id of a case: a number in a table or in somebody's JSON is the name that it looks like.
        given["case"] = _read_id(given["case"])
        if "at" in given:
            given["at"] = _read_time(given["at"])
        if "design" in given:
            given["design"] = _read_design(given["design"])
        return cls(**given)


LABEL_KEYS = (
    "case",
    "run",
    "rater",
    "kind",
    "value",
    "criterion",
    "order",
    "at",
    "blind",
    "subject",
    "design",
    "comment",
)

_KNOWN = frozenset((*LABEL_KEYS, "schema"))

DESIGN_KEYS = tuple(item.name for item in fields(LabelDesign))

_DESIGN_NEEDED = frozenset(("plan", "stratum", "p"))


def _check_name(what: str, value: object) -> None:
    if not isinstance(value, str) or not value:
        raise UsageError(f"{what} must be a text that is not empty, got {show(value)}")


def _is_value(value: object) -> bool:
    if isinstance(value, str):
        return value in _VALUES
    return isinstance(value, bool) or is_finite(value)


def _read_id(value: Any) -> Any:
    return str(value) if is_finite(value) else value


def _read_time(said: Any) -> Any:
    if not isinstance(said, str):
        return said
    try:
        moment = datetime.fromisoformat(said)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(f"at must be a time with its zone, like 2026-11-20T12:00:00Z, got {show(said)}") from None
    return moment


def _read_design(said: Any) -> Any:
    if isinstance(said, LabelDesign):
        return said
    if not isinstance(said, Mapping) or not _DESIGN_NEEDED <= set(said) <= set(DESIGN_KEYS):
        raise UsageError(f"design must be an object with {', '.join(DESIGN_KEYS)}, got {show(said)}")
    return LabelDesign(**said)
