"""A case: one item to judge with what belongs to it, and how it is made from plain data, strictly."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from adjudge.agents.run import AgentRun
from adjudge.content import content_text, digest_text
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.json_size import MOST_DEPTH, MOST_WRITTEN, measure_excess
from adjudge.formats.record import Layout, list_members
from adjudge.formats.text import list_names, show
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric, make_rubric
from adjudge.rules.rule import Rule
from adjudge.rules.ruleset import AnyRule, Rules

_OPTIONAL_KEYS = ("reference", "task", "context", "label", "labels", "group", "metadata")

KEYS = ("id", "content", *_OPTIONAL_KEYS)
"""The members of a case, in the order in which they are written."""

OWN_KEYS = ("criteria", "rubric", "rules", "threshold")
"""The members by which a case may say how it is judged; in a file they count only when asked for."""


_KNOWN = frozenset((*KEYS, "schema"))

_ALWAYS = frozenset(("id", "content", "schema"))

_OPPOSITES = (
    ("passed", "failed"),
    ("pass", "fail"),
    ("good", "bad"),
    ("yes", "no"),
    ("correct", "incorrect"),
    ("accept", "reject"),
)
"""Words for a label whose meaning nobody disputes: the one that is true first."""

LabelValue = bool | float | str | None
"""The value of a label: true, false, a number, ``first``, ``second`` or ``tie``; ``None`` is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One item to judge, with its reference, task, context, labels and metadata.

    Args:
        content: The content that is judged: a text, a JSON value, an ``AgentRun``; a pair to compare is ``{"a": ...,
            "b": ...}``.
        id: Unique in its data set. A case of a file without an id gets the SHA-256 of its content, or of its task,
            reference and context too where an earlier case has that content.
        reference: A known good answer, to compare with.
        task: The task that was asked for.
        context: The facts that the answer may rely on, such as retrieved texts.
        label: A person's verdict: true, false, a number, ``first``, ``second`` or ``tie``; ``None`` means unknown.
        labels: Each rater's verdict, by the rater's name.
        group: The name of the group that the case belongs to, such as a conversation; cases of a group are not
            independent.
        metadata: Copied to the result, never sent to a model.
        criteria: Judge this case by these criteria instead of the call's rubric: a sentence, a list of sentences, or a
            mapping of names to sentences.
        rubric: Judge this case by this rubric instead of the call's: a ``Rubric``, a mapping, a path (read when the
            case is created) or a shipped name.
        rules: Rules for this case, in addition to the call's: a list of rules, or a mapping of names to rules.
        threshold: The passing threshold of this case, in 0 to 1; it replaces the call's.
    """

    schema: ClassVar[str] = "adjudge/case/1"
    _layout: ClassVar[Layout] = Layout(
        members=(*KEYS, *OWN_KEYS),
        omitted=(*_OPTIONAL_KEYS, *OWN_KEYS),
        computed={
            "content": lambda case: case.content.to_dict() if isinstance(case.content, AgentRun) else case.content,
            "criteria": lambda case: list(case.criteria) if isinstance(case.criteria, tuple) else case.criteria,
            "rubric": lambda case: None if case.rubric is None else case.rubric.to_dict(),
            "rules": lambda case: {rule.name: dict(rule.spec) for rule in case.rules},
        },
    )

    content: Any
    """The content that is judged: a text, a JSON value, an ``AgentRun``; a pair to compare is
    ``{"a": ..., "b": ...}``."""
    id: str
    """Unique in its data set. A case of a file without an id gets the SHA-256 of its content, or of its task, reference
    and context too where an earlier case has that content."""
    reference: Any = None
    """A known good answer, to compare with."""
    task: Any = None
    """The task that was asked for."""
    context: Any = None
    """The facts that the answer may rely on, such as retrieved texts."""
    label: LabelValue = None
    """A person's verdict: true, false, a number, ``first``, ``second`` or ``tie``; ``None`` means unknown."""
    labels: Mapping[str, LabelValue] = field(default_factory=dict)
    """Each rater's verdict, by the rater's name."""
    group: str | None = None
    """The name of the group that the case belongs to, such as a conversation; cases of a group are not independent."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Copied to the result, never sent to a model."""
    criteria: str | Sequence[str] | Mapping[str, str] | None = None
    """Judge this case by these criteria instead of the call's rubric: a sentence, a list of sentences, or a mapping of
    names to sentences."""
    rubric: Rubric | None = None
    """Judge this case by this rubric instead of the call's: a ``Rubric``, a mapping, a path (read when the case is
    created) or a shipped name."""
    rules: tuple[Rule, ...] = ()
    """Rules for this case, in addition to the call's: a list of rules, or a mapping of names to rules."""
    threshold: float | None = None
    """The passing threshold of this case, in 0 to 1; it replaces the call's."""

    if TYPE_CHECKING:  # what may be handed in is wider than what is then there

        def __init__(
            self,
            *,
            content: Any,
            id: str,  # noqa: A002 - the word for it
            reference: Any = None,
            task: Any = None,
            context: Any = None,
            label: LabelValue = None,
            labels: Mapping[str, LabelValue] = ...,
            group: str | None = None,
            metadata: Mapping[str, Any] = ...,
            criteria: str | Sequence[str] | Mapping[str, str] | None = None,
            rubric: Rubric | Mapping[str, Any] | str | os.PathLike[str] | None = None,
            rules: Sequence[AnyRule] | Mapping[str, AnyRule] = (),
            threshold: float | None = None,
        ) -> None: ...

    def __post_init__(self) -> None:
        if self.criteria is None and self.rubric is None and self.threshold is None and self.rules == ():
            return  # nearly always
        if self.criteria is not None and self.rubric is not None:
            raise UsageError("a case has criteria or a rubric, not both; keep one")
        set_field = object.__setattr__
        if self.threshold is not None:
            set_field(self, "threshold", check_share("threshold", self.threshold))
        if self.criteria is not None:
            make_rubric(self.criteria, self.threshold)  # only to refuse criteria of which no rubric can be made
            set_field(self, "criteria", _copy_criteria(self.criteria))
        if self.rubric is not None:
            set_field(self, "rubric", load_rubric(self.rubric))
        set_field(self, "rules", tuple(Rules(self.rules)))

    @property
    def brings_own(self) -> bool:
        """Return whether the case has criteria, a rubric, rules or a threshold of its own."""
        return not (self.criteria is None and self.rubric is None and self.threshold is None and not self.rules)

    @property
    def own_terms(self) -> tuple[str, ...]:
        """The names of those that the case has of its own: ``criteria``, ``rubric``, ``rules``, ``threshold``."""
        return tuple([name for name in OWN_KEYS if getattr(self, name) not in (None, ())])

    def to_dict(self) -> dict[str, Any]:
        """Return the case as a row of a data set, without the members it does not have.

        A rule that is a function is only described (``{"python": ...}``) and cannot be read back.
        """
        return list_members(self)


def _copy_criteria(criteria: str | Sequence[str] | Mapping[str, str]) -> str | Sequence[str] | Mapping[str, str]:
    """Copy criteria, so that a case that was checked does not change when their owner changes them later."""
    if isinstance(criteria, str):
        return criteria
    return dict(criteria) if isinstance(criteria, Mapping) else tuple(criteria)


def open_inline(content: Any) -> Any:
    """Convert a content that is an agent's run as plain data to an ``AgentRun``; return any other content as it is."""
    if isinstance(content, Mapping) and content.get("schema") == AgentRun.schema:
        return AgentRun.from_dict(content)
    return content


def make_case(row: Mapping[str, Any], criteria: Mapping[str, Any] | None = None) -> Case:
    """Make a case from a row with the names of ``KEYS``; raises ``UsageError`` saying what is wrong with the row.

    ``criteria`` are the criteria, rubric, rules and threshold of the case itself, checked, as arguments of ``Case``.
    """
    # Not by ``read_record``: a person wrote the row, so each error names the key, what the row has, and the remedy.
    if row.get("content") is None:
        has = f"the row has no 'content'; it has {list_names(row)}"
        raise UsageError("the 'content' is null" if "content" in row else has)
    if not row.keys() <= _KNOWN:
        raise UsageError(_explain_unknown(next(key for key in row if key not in _KNOWN)))
    if row.get("schema", Case.schema) != Case.schema:
        raise UsageError(
            f"the schema is {show(row['schema'])}, and a case is {Case.schema!r}; update adjudge, or fix it"
        )
    for key in ("labels", "metadata"):
        if key in row and not isinstance(row[key] or {}, Mapping):
            raise UsageError(f"{key!r} must be an object, got {show(row[key])}")
    for label in (row.get("label"), *(row.get("labels") or {}).values()):
        if label is not None and type(label) is not bool:
            _check_label(label)
    members = {key: value for key, value in row.items() if value is not None and key not in _ALWAYS}
    if "group" in members:
        members["group"] = _read_name("group", members["group"])
    content = open_inline(row["content"])
    return Case(content=content, id=_find_id(row, content), **members, **(criteria or {}))


def make_id(content: Any) -> str:
    """Make the id of a case that has none: the SHA-256 of its content as text."""
    return digest_text(content_text(content))


def _find_id(row: Mapping[str, Any], content: Any) -> str:
    """Return the id of a row, else one made from the content; raise ``UsageError`` for an empty one."""
    if row.get("id") is None:
        return make_id(content)
    name = _read_name("id", row["id"])
    if not name:
        raise UsageError("the 'id' is empty; leave it out, or give each row an id of its own")
    return name


def _read_name(key: str, value: Any) -> str:
    """Read an id or the name of a group, which may be a number; raise ``UsageError`` for anything else."""
    # Most often a column that was mistaken for another.
    if isinstance(value, str | int | float) and not isinstance(value, bool):
        return str(value)
    raise UsageError(f"{key!r} must be a text or a number, got {show(value)}")


def _check_label(label: object) -> None:
    """Raise ``UsageError`` for a label of no known meaning, with an example of a label map that gives it one."""
    if label is None or isinstance(label, bool | int | float) or label in ("first", "second", "tie"):
        return
    raise UsageError(
        f"label must be true, false, a number, 'first', 'second' or 'tie', got {show(label)}; say what it means with ",
        Argument("label_map"),
        f", such as {_suggest_map(label)}",
    )


def _suggest_map(label: object) -> str:
    """Write a label map as an example: with the label's word and its opposite where its meaning is plain.

    Otherwise with placeholders, because a wrong guess that somebody copies would swap the labels.
    """
    word = label.strip().lower() if isinstance(label, str) else ""
    true_word, false_word = next((pair for pair in _OPPOSITES if word in pair), ("WORD", "OTHER"))
    return f"{true_word}=true,{false_word}=false"


def _explain_unknown(key: object) -> str:
    """Write the error for a key of a row that no case has."""
    if key == "role":
        return "this is one message; a conversation is a list of messages, so put the list into content"
    return f"unknown key {show(key)}; a row has {', '.join(KEYS)}; put more into metadata, or say which field is which"


def check_text(value: Any) -> None:
    """Raise ``UsageError`` for a value that cannot be written as JSON in UTF-8, or is too deep or too long for it."""
    excess = measure_excess(value)
    if excess == "deep":
        raise UsageError(
            f"it is nested more than {MOST_DEPTH} levels deep, or endlessly; hand in less, and nothing that holds "
            "itself"
        )
    if excess == "long":
        raise UsageError(
            f"it cannot be written as JSON of at most {MOST_WRITTEN:,} characters, where what it holds several "
            "times is written each time; hand in less"
        )
    try:
        json.dumps(value, ensure_ascii=False, default=str).encode()
    except UnicodeEncodeError:
        raise UsageError("it holds half of a surrogate pair, which is no character") from None
    except (ValueError, TypeError, RecursionError):
        raise UsageError("it cannot be written as JSON; use text keys, and nothing that holds itself") from None
