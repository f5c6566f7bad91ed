"""The style of a judge's replies: the reader, its labels, and the questions that it can answer.

The readers themselves are in ``readers.py`` (``READERS``): another style of reply is added there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from adjudge.errors import Argument, UsageError
from adjudge.question.question import Question

if TYPE_CHECKING:
    from adjudge.question.readers import Reader

ADJUDGE_FORM = "adjudge"
"""The name of adjudge's own reply form."""


_READERS_WITH_LABELS = ("label", "name", "ordered_models", "json winner", "GRADE: C", "Rating: 7")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStyle:
    """The style of a judge's replies: the reader, and the labels that it needs."""

    reader: str = ADJUDGE_FORM
    labels: tuple[str, ...] = ()
    """For a comparison the names of the two contents, beginning with the one that is shown first; for a reader of
    labels every label that is offered."""
    passes: tuple[str, ...] = ()
    """The labels that pass, for a reader of labels."""

    def check(self, question: Question | None = None) -> None:
        """Raise ``UsageError`` for an unknown reader, wrong labels, or a reader that cannot answer the question."""
        if self != ReplyStyle():
            _check_labels(self)
        check_reader(self, question)


def _check_labels(style: ReplyStyle) -> None:
    """Raise ``UsageError`` for wrong labels.

    They are wrong if the reader takes none or needs two, if one that passes was not offered, or if all of them pass.
    """
    from adjudge.question.readers import GRADES, check_offered_labels, find_reader

    check_offered_labels(style.labels)
    reader_name, labels, passes = style.reader, style.labels, style.passes
    named_reader = None if reader_name == ADJUDGE_FORM else find_reader(reader_name)
    if labels and (named_reader is None or named_reader.name not in _READERS_WITH_LABELS):
        names = ", ".join(repr(name) for name in _READERS_WITH_LABELS)
        raise UsageError(
            f"reader {reader_name!r} takes no labels, got {labels!r}; readers that do: {names}",
            argument="reader_labels",
        )
    if (named_reader is None or named_reader.kind != "label") and passes:
        raise UsageError(
            f"reader_passes {passes!r} says which labels pass, and reader {reader_name!r} reads no label",
            argument="reader_passes",
        )
    if named_reader is not None and named_reader.kind == "preference" and labels and len(labels) != 2:
        raise UsageError(
            f"the reader {reader_name!r} needs the two names compared, the one shown first first, as reader_labels; "
            f"got {labels!r}",
            argument="reader_labels",
        )
    offered = labels or GRADES
    for label in passes:
        if label not in offered:
            raise UsageError(
                f"reader_passes has {label!r}, which is none of the labels offered: {', '.join(offered)}",
                argument="reader_passes",
            )
    if passes and set(passes) == set(offered):
        raise UsageError(
            f"reader_passes names every label ({', '.join(passes)}), so that nothing could fail",
            argument="reader_passes",
        )


def check_reader(style: ReplyStyle, question: Question | None = None) -> None:
    """Raise ``UsageError`` for an unknown reader, or one that cannot answer the question."""
    reader = style.reader
    if reader == ADJUDGE_FORM:
        if question is not None and question.passes is not None and question.value_type is None:
            raise UsageError("passes needs result_format: give the type whose instances it looks at", argument="passes")
        return
    # Here, and not for adjudge's own reply form: the patterns of the others take long to compile.
    from adjudge.question.readers import find_reader

    named_reader = find_reader(reader)
    if question is None:
        return
    if question.wording is None or question.value_type is not None:
        raise UsageError(
            f"reader {reader!r} reads replies about a rubric, not ready-made prompts or a result_format",
            argument="reader",
        )
    if question.choices:
        if named_reader.kind != "preference":
            raise UsageError(
                f"reader {reader!r} reads a {named_reader.kind}; a comparison needs a reader of preferences",
                argument="reader",
            )
        return
    _check_rubric_reader(named_reader, style, question)


def _check_rubric_reader(named_reader: Reader, style: ReplyStyle, question: Question) -> None:
    """Raise ``UsageError`` for a reader that cannot answer this question, which has a rubric and compares nothing."""
    if named_reader.kind == "score" and len(question.open_criteria) != 1:
        raise UsageError(
            f"reader {named_reader.name!r} reads one score, so it needs a rubric with one criterion for the model",
            argument="reader",
        )
    if named_reader.kind == "preference":
        raise UsageError(
            f"reader {named_reader.name!r} says which of two is better; it answers comparisons, not a rubric",
            argument="reader",
        )
    if named_reader.name == "label" and not style.labels:
        raise UsageError(
            "reader 'label' needs the labels that were offered; give them as ",
            Argument("reader_labels"),
            argument="reader_labels",
        )
    if named_reader.kind == "label" and question.decided_by_rules:
        raise UsageError(
            f"reader {named_reader.name!r} reads one label for the whole, so the rubric cannot have rules",
            argument="reader",
        )
    if named_reader.kind == "label" and question.passes is not None and style.passes:
        raise UsageError(
            "passes and ", Argument("reader_passes"), " both say which labels pass; give one of them", argument="passes"
        )
    if named_reader.kind == "label" and question.passes is None and not style.passes:
        raise UsageError(
            f"reader {named_reader.name!r} reads a label; say which pass with ", Argument("passes"), argument="passes"
        )
