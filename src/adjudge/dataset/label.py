"""A label: one rater's verdict on one case.

What several labels of a case come to is decided in ``case_labels.py`` (``find_truth``) and ``labels/truth.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Literal, get_args

from adjudge.dataset.contents import ContentSet
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice, check_digest, check_flag, check_whole_number, is_finite
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show, suggest

LabelKind = Literal["person", "model", "override", "adjudication"]

LabelOrder = Literal["ab", "ba"]

_KINDS = get_args(LabelKind)

_VALUES = frozenset(("first", "second", "tie", CANNOT_TELL))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelDesign:
    """The draw of a case for labelling, and the contents it was drawn from, so that rates can speak for other cases.

    A draw belongs to the contents it was made from and not to a run: it holds for every run of the same contents,
    whatever their order and whichever judge.

    Args:
        plan: The plan that drew it.
        stratum: The plan's stratum that the case is in.
        p: The probability with which the case was drawn, above 0 and up to 1.
        size: The number of cases in the stratum, drawn or not; ``None`` is unknown.
        contents: The digest of the contents it was drawn from, as ``ContentSet`` has it; without one it was drawn from
            nothing that is known, and no rate relies on it.
        cases: The number of contents.
    """

    _layout: ClassVar[Layout] = Layout(omitted=("size", "contents", "cases"))

    plan: str
    """The plan that drew it."""
    stratum: str
    """The plan's stratum that the case is in."""
    p: float
    """The probability with which the case was drawn, above 0 and up to 1."""
    size: int | None = None
    """The number of cases in the stratum, drawn or not; ``None`` is unknown."""
    contents: str | None = None
    """The digest of the contents it was drawn from, as ``ContentSet`` has it; without one it was drawn from nothing
    that is known, and no rate relies on it."""
    cases: int | None = None
    """The number of contents."""

    def __post_init__(self) -> None:
        for name in ("plan", "stratum"):
            _check_name(name, getattr(self, name), where="design")
        if not is_finite(self.p) or not 0 < self.p <= 1:
            raise UsageError(
                f"p is the probability of being drawn, above 0 and up to 1; got {show(self.p)}",
                argument="p",
                where="design",
            )
        for name, value in (("size", self.size), ("cases", self.cases)):
            if value is not None:
                check_whole_number(name, value, least=1, where="design")
        if self.contents is not None:
            check_digest("contents", self.contents, where="design")

    @property
    def drawn_from(self) -> ContentSet | None:
        """The contents it was drawn from; ``None`` is unknown."""
        if self.contents is None or self.cases is None:
            return None
        return ContentSet(digest=self.contents, cases=self.cases)

    def to_dict(self) -> dict[str, Any]:
        """Return this value as plain data, without what is unknown."""
        return write_record(self)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """One rater's verdict on one case. Raises ``UsageError`` for a value that a label cannot have.

    Args:
        case: The id of the case.
        rater: The rater who gave the label: one name for each person, or the name of a model.
        value: True, false, a number, ``first``, ``second``, ``tie``, or ``cannot_tell``: looked, and cannot decide.
        kind: ``person`` looked for themselves. ``override`` is a person who overruled a judge, and so knew its verdict.
            ``adjudication`` is a person who saw what the others said and settled the case, so it decides over them.
        criterion: The criterion it is about; ``None`` is the case as a whole.
        run: The run whose judgement the rater saw, if any.
        order: The order in which a pair was shown; ``value`` always names the case's own sides.
        at: The time, with its zone; ``None`` is unknown.
        blind: True if the rater is known to have seen no verdict of a judge.
        subject: SHA-256 of the content that was read, as results have it; ``None`` is unknown. A label counts for no
            other content, and one whose content is unknown never counts as drawn at random.
        design: The way in which the case was drawn; ``None`` if no plan drew it.
        comment: The rater's words about it.
    """

    schema: ClassVar[str] = "adjudge/label/1"
    _layout: ClassVar[Layout] = Layout(
        members=LABEL_KEYS,
        omitted=("run", "criterion", "order", "subject", "design", "comment"),
        computed={"at": lambda label: None if label.at is None else label.at.astimezone(UTC)},
    )

    case: str
    """The id of the case."""
    rater: str
    """The rater who gave the label: one name for each person, or the name of a model."""
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
    """The order in which a pair was shown; ``value`` always names the case's own sides."""
    at: datetime | None = None
    """The time, with its zone; ``None`` is unknown."""
    blind: bool = False
    """True if the rater is known to have seen no verdict of a judge."""
    subject: str | None = None
    """SHA-256 of the content that was read, as results have it; ``None`` is unknown. A label counts for no other
    content, and one whose content is unknown never counts as drawn at random."""
    design: LabelDesign | None = None
    """The way in which the case was drawn; ``None`` if no plan drew it."""
    comment: str | None = None
    """The rater's words about it."""

    def __post_init__(self) -> None:
        _check_name("case", self.case)
        _check_name("rater", self.rater)
        for name, value in (("criterion", self.criterion), ("run", self.run), ("comment", self.comment)):
            if value is not None:
                _check_name(name, value)
        if not _is_value(self.value):
            raise UsageError(
                f"value must be true, false, a number, 'first', 'second', 'tie' or {CANNOT_TELL!r}, got "
                f"{show(self.value)}; say what it means with ",
                Argument("label_map"),
                ", such as WORD=true",
                argument="value",
            )
        check_choice("kind", self.kind, _KINDS)
        if self.order is not None:
            check_choice("order", self.order, get_args(LabelOrder))
        check_flag("blind", self.blind)
        if self.subject is not None:
            check_digest("subject", self.subject)
        if self.at is not None and (not isinstance(self.at, datetime) or self.at.utcoffset() is None):
            raise UsageError(
                f"at must be a time with its zone, like 2026-11-20T12:00:00Z, got {show(self.at)}", argument="at"
            )
        if not isinstance(self.design, LabelDesign | None):
            raise UsageError(f"design must be a LabelDesign, got {show(self.design)}", argument="design")

    def to_dict(self) -> dict[str, Any]:
        """Return the label as a row of a label file, without missing members; ``at`` is null if unknown."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Label:
        """Read ``data``, a row of a label file. Raises ``UsageError`` for what is no label, or has a later schema.

        Args:
            data: The row, as ``to_dict`` writes it.
        """
        # Not by ``read_record``: rows come from tables of other tools as well, where an id may be a number, null means
        # that a member is missing, and a key that is nearly right is worth naming.
        if not isinstance(data, Mapping):
            raise UsageError(f"a label is read from a dictionary, got {show(data)}")
        if not data.keys() <= _KNOWN:
            key, names = next(key for key in data if key not in _KNOWN), ", ".join(LABEL_KEYS)
            raise UsageError(f"a label has no {show(key)}{suggest(key, LABEL_KEYS)}; it has {names}")
        if data.get("schema", cls.schema) != cls.schema:
            raise UsageError(f"the schema is {show(data['schema'])}, and a label is {cls.schema!r}; update adjudge")
        members = {key: value for key, value in data.items() if value is not None and key != "schema"}
        if members.get("comment") == "":
            del members["comment"]
        for key in ("case", "rater", "value"):
            if key not in members:
                raise UsageError(f"a label needs {key!r}, and there is none")
        # As with the id of a case: a number in a table or in somebody's JSON is the name that it looks like.
        members["case"] = _read_id(members["case"])
        if "at" in members:
            members["at"] = _read_time(members["at"])
        if "design" in members:
            members["design"] = _read_design(members["design"])
        return cls(**members)


_KNOWN = frozenset((*LABEL_KEYS, "schema"))

DESIGN_KEYS = tuple(field.name for field in fields(LabelDesign))

_DESIGN_NEEDED = frozenset(("plan", "stratum", "p"))


def _check_name(name: str, value: object, *, where: str | None = None) -> None:
    """Raise ``UsageError`` for the argument ``name`` unless its value is a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise UsageError(f"{name} must be a text that is not empty, got {show(value)}", argument=name, where=where)


def _is_value(value: object) -> bool:
    """Return whether a label may have this value."""
    if isinstance(value, str):
        return value in _VALUES
    return isinstance(value, bool) or is_finite(value)


def _read_id(value: Any) -> Any:
    """Return the id of a case, a number as text; ``Label`` checks anything else."""
    return str(value) if is_finite(value) else value


def _read_time(text: Any) -> Any:
    """Parse the time in a text; any other value is returned as it is, and ``Label`` checks it.

    Raises ``UsageError`` for a text that is no time.
    """
    if not isinstance(text, str):
        return text
    try:
        moment = datetime.fromisoformat(text)
        moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise UsageError(
            f"at must be a time with its zone, like 2026-11-20T12:00:00Z, got {show(text)}", argument="at"
        ) from None
    return moment


def _read_design(design: Any) -> Any:
    """Return the design of a label. Raises ``UsageError`` for an object with unknown or missing members."""
    if isinstance(design, LabelDesign):
        return design
    if not isinstance(design, Mapping) or not _DESIGN_NEEDED <= set(design) <= set(DESIGN_KEYS):
        raise UsageError(
            f"design must be an object with {', '.join(DESIGN_KEYS)}, got {show(design)}", argument="design"
        )
    return LabelDesign(**design)
