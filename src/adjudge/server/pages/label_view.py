"""The values that the pages *Labels* and *Disagreements* show beside tasks and labels themselves.

A task that a queue hands out to somebody who labels holds nothing that a judge or another person said of the case.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from adjudge.dataset.case import LabelValue
from adjudge.dataset.label import Label
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.formats.numbers import format_score
from adjudge.judges.pair import PairResult
from adjudge.labels.task import LabelProgress, LabelTask, UndoneAnswer
from adjudge.result import JudgeResult
from adjudge.templates.call_view import make_call_view

ANSWERS: dict[str, bool | str] = {"good": True, "bad": False, "cannot-tell": CANNOT_TELL}

ANSWER_SIDES = {"a": "first", "b": "second"}
"""The side on which an answer of a pair is shown, by the label that a form sends for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRun:
    """A run that can be labelled, without the number of differences where that would tell what others said."""

    name: str
    started: bool
    """True if anybody labelled it, or its labelling was opened."""
    progress: LabelProgress | None = None
    left: int = 0
    """Cases that are left for the reader."""
    differences: int | None = None
    """The number of open ones; ``None`` for somebody who does not settle them, or is still labelling what others label.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredCase:
    """A case that the reader has labelled, with their labels and those of other people."""

    case: str
    mine: tuple[Label, ...]
    others: tuple[Label, ...]
    differs: bool


def asks_about_call(parts: Iterable[tuple[str, str]], criterion: str | None = None) -> bool:
    """Return whether a label is about a tool call as a whole, and not about one criterion of it.

    ``parts`` are the texts of a case by name; the case is a tool call if its ``content`` is one.
    """
    content = dict(parts).get("content")
    return criterion is None and content is not None and make_call_view(content) is not None


def describe_question(task: LabelTask, *, is_call: bool = False) -> str:
    """Write the question that a task asks a rater, in one line."""
    if is_call:
        return "Should this have run?"
    suffix = "" if task.criterion is None else f" on “{task.criterion.name}”"
    return f"Which is better{suffix}?" if task.is_pair else f"Is it good{suffix}?"


def describe_value(value: LabelValue) -> tuple[str, str]:
    """Describe a label's value by a state, which has a colour and an icon, and a word."""
    if isinstance(value, bool):
        return ("passed", "good") if value else ("failed", "bad")
    if value == CANNOT_TELL:
        return "undecided", "cannot tell"
    return "info", {"first": "the first is better", "second": "the second is better", "tie": "equal"}.get(
        str(value), str(value)
    )


def describe_undoable_answer(last: UndoneAnswer | None, *, is_pair: bool = False, is_call: bool = False) -> str:
    """Describe the answer that undo would take back; empty if there is none.

    Of a pair it does not say which side was better, because the sides change their order.
    """
    if last is None:
        return ""
    if last.label is None:
        word = "skipped"
    elif is_pair or last.label.order is not None:
        word = "answered"
    elif is_call and isinstance(last.label.value, bool):
        word = "yes" if last.label.value else "no"
    else:
        _, word = describe_value(last.label.value)
    return f"Case {last.case}: {word}"


def describe_judged(result: JudgeResult | PairResult) -> tuple[str, str, str]:
    """Describe a judge's result of a case: who judged, the state, and the outcome in words."""
    if isinstance(result, PairResult):
        return "the judge", "info", result.explain()
    score = "" if result.score is None else f" {format_score(result.score)}"
    return f"judge {result.judge}", result.outcome, f"{result.outcome}{score}"


def list_answered(labels: Sequence[Label], rater: str, cases: Iterable[str]) -> list[AnsweredCase]:
    """List the cases that a rater has labelled, with everybody's labels; cases on which others differ come first."""
    labels_by_case: dict[str, list[Label]] = {}
    for label in labels:
        if label.kind in ("person", "adjudication"):
            labels_by_case.setdefault(label.case, []).append(label)
    rows = []
    for case in cases:
        case_labels = labels_by_case.get(case, [])
        own_labels = [label for label in case_labels if label.rater == rater and label.kind == "person"]
        others = [label for label in case_labels if label not in own_labels]
        own_values = {label.criterion: label.value for label in own_labels}
        differs = any(label.criterion in own_values and label.value != own_values[label.criterion] for label in others)
        rows.append(AnsweredCase(case=case, mine=tuple(own_labels), others=tuple(others), differs=differs))
    return sorted(rows, key=lambda row: not row.differs)


def explain_no_case(progress: LabelProgress) -> str:
    """Explain why there is no case to label for a rater."""
    if progress.total == 0:
        return "There is no case to label."
    left = progress.total - progress.complete
    if left:
        return f"Nothing is left for you. {left:,} of {progress.total:,} wait for another person, or are with one now."
    return "Nothing is left: every case has its labels."


def estimate_seconds_left(progress: LabelProgress) -> float | None:
    """Estimate the seconds that a rater's remaining cases take at their pace; ``None`` if the pace is not known."""
    if progress.seconds_per_answer is None:
        return None
    return max(0, progress.total - progress.mine) * progress.seconds_per_answer
