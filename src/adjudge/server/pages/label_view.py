"""The views of the pages *Labels* and *Disagreements*: values made from what a queue of labelling hands out.

The value for somebody who labels holds nothing that a judge or another person said of the case, so the page cannot
show it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from adjudge.dataset.case import LabelValue
from adjudge.dataset.label import Label
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.formats.numbers import format_score
from adjudge.judges.pair import PairResult
from adjudge.labels.agreement import LabelAgreement
from adjudge.labels.live import LiveEstimate
from adjudge.labels.queue import list_asked
from adjudge.labels.task import LabelProgress, LabelTask, UndoneAnswer
from adjudge.labels.truth import Truth
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Rubric
from adjudge.server.pages.approval_view import count_unseen

ANSWERS: dict[str, bool | str] = {"good": True, "bad": False, "cannot-tell": CANNOT_TELL}

SIDES = {"a": "first", "b": "second"}
"""The side of a pair that was shown in each place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run that can be labelled."""

    name: str
    started: bool
    """Whether anybody labelled it, or its labelling was opened."""
    progress: LabelProgress | None
    differences: int | None
    """How many are open; ``None`` for somebody who does not settle them, or is still labelling what others label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelsView:
    """The runs that can be labelled."""

    runs: tuple[RunRow, ...]
    is_configured: bool
    is_named: bool
    """Whether the reader has a name to label under."""
    can_label: bool
    can_settle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TextView:
    """A text to read: content, task, context or reference."""

    name: str
    text: str
    unseen: int
    """Characters that cannot be seen, and are shown by their codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricRow:
    """A criterion of the rubric."""

    name: str
    description: str
    by_rule: bool
    """Whether a rule decides it, so that nobody is asked."""
    asked: bool
    """Whether it is the one that is asked for now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskView:
    """A case to label."""

    case: str
    subject: str
    """Of the content that is shown; it comes back with the answer, which is refused if the case has another by then."""
    question: str
    is_pair: bool
    criterion: str | None
    before: tuple[TextView, ...]
    """Task and context."""
    sides: tuple[TextView, ...]
    """The content, or the two of a pair as A and B."""
    after: tuple[TextView, ...]
    """The reference."""
    rubric: str
    rows: tuple[RubricRow, ...]
    comment: str
    until: datetime
    skipped: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LastView:
    """The answer that undo would take back."""

    case: str
    said: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelView:
    """One case to label, and how far one is."""

    run: str
    task: TaskView | None
    why_none: str
    """Why there is no case; empty where there is one."""
    progress: LabelProgress
    to_go: float | None
    """Seconds until all cases are labelled, at one's pace; ``None`` is not known yet."""
    live: LiveEstimate | None
    is_live_later: bool
    """Whether the rate is kept back until one has nothing left to label, because others' labels are in it."""
    last: LastView | None
    agreement: LabelAgreement | None
    """How far people agree; only for somebody who has nothing left to label."""
    can_settle: bool
    error: str = ""
    typed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpinionView:
    """Somebody's opinion of a case."""

    who: str
    state: str
    word: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenView:
    """A difference that is open."""

    case: str
    criterion: str | None
    people: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferencesView:
    """One case on which people differ, and how far they agree."""

    run: str
    task: TaskView | None
    said: tuple[OpinionView, ...]
    shows_judge: bool
    others: tuple[OpenView, ...]
    open: int
    agreement: LabelAgreement
    error: str = ""
    typed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredRow:
    """A case that one has labelled, with what others said of it."""

    case: str
    mine: tuple[OpinionView, ...]
    others: tuple[OpinionView, ...]
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class OthersView:
    """Everybody's labels of the cases that one has labelled; to read, not to change."""

    run: str
    cases: tuple[AnsweredRow, ...]
    """Those on which people differ first."""
    case: str | None
    texts: tuple[TextView, ...]
    said: tuple[OpinionView, ...]


def make_task_view(task: LabelTask, *, settles: bool = False) -> TaskView:
    """Make the view of a case as its rater sees it."""
    texts = [TextView(name=name, text=text, unseen=count_unseen(text)) for name, text in task.parts]
    name = None if task.criterion is None else task.criterion.name
    return TaskView(
        case=task.case,
        subject=task.subject or "",
        question=describe_question(task, settles=settles),
        is_pair=task.is_pair,
        criterion=name,
        before=tuple(text for text in texts if text.name in ("task", "context")),
        sides=tuple(text for text in texts if text.name in ("content", "A", "B")),
        after=tuple(text for text in texts if text.name == "reference"),
        rubric="" if task.rubric is None else task.rubric.name,
        rows=() if task.rubric is None else tuple(_list_rows(task.rubric, name)),
        comment=task.comment or "",
        until=task.until,
        skipped=task.skipped,
    )


def describe_question(task: LabelTask, *, settles: bool = False) -> str:
    """Write the question in one line."""
    suffix = "" if task.criterion is None else f" on “{task.criterion.name}”"
    if settles:
        return f"How is it settled{suffix}?"
    return f"Which is better{suffix}?" if task.is_pair else f"Is it good{suffix}?"


def describe_value(value: LabelValue) -> tuple[str, str]:
    """Describe a label's value by a state and a word."""
    if isinstance(value, bool):
        return ("passed", "good") if value else ("failed", "bad")
    if value == CANNOT_TELL:
        return "undecided", "cannot tell"
    return "info", {"first": "the first is better", "second": "the second is better", "tie": "equal"}.get(
        str(value), str(value)
    )


def make_last_view(last: UndoneAnswer | None, *, is_pair: bool = False) -> LastView | None:
    """Describe the answer that undo would take back; of a pair not which side, because sides change their order."""
    if last is None:
        return None
    if last.label is None:
        word = "skipped"
    elif is_pair or last.label.order is not None:
        word = "answered"
    else:
        word = describe_value(last.label.value)[1]
    return LastView(case=last.case, said=word)


def make_opinion_view(label: Label) -> OpinionView:
    """Describe a person's label."""
    state, word = describe_value(label.value)
    person = f"{label.rater} (settled it)" if label.kind == "adjudication" else label.rater
    return OpinionView(who=person, state=state, word=word, why=label.comment or "")


def list_answered_rows(labels: Sequence[Label], rater: str, cases: Iterable[str]) -> tuple[AnsweredRow, ...]:
    """List the cases that a rater has labelled, those on which others said something else first."""
    by_case: dict[str, list[Label]] = {}
    for label in labels:
        if label.kind in ("person", "adjudication"):
            by_case.setdefault(label.case, []).append(label)
    rows = []
    for case in cases:
        case_labels = by_case.get(case, [])
        mine = [label for label in case_labels if label.rater == rater and label.kind == "person"]
        others = [label for label in case_labels if label not in mine]
        answers = {label.criterion: label.value for label in mine}
        differs = any(label.criterion in answers and label.value != answers[label.criterion] for label in others)
        rows.append(
            AnsweredRow(
                case=case,
                mine=tuple(map(make_opinion_view, mine)),
                others=tuple(map(make_opinion_view, others)),
                differs=differs,
            )
        )
    return tuple(sorted(rows, key=lambda row: not row.differs))


def make_judge_opinions(results: Iterable[JudgeResult | PairResult]) -> tuple[OpinionView, ...]:
    """Describe the judge's results of a case."""
    views = []
    for result in results:
        if isinstance(result, PairResult):
            views.append(OpinionView(who="the judge", state="info", word=result.explain(), why=""))
        else:
            score = "" if result.score is None else f" {format_score(result.score)}"
            reason = result.detail or result.reasoning
            word = f"{result.outcome}{score}"
            views.append(OpinionView(who=f"judge {result.judge}", state=result.outcome, word=word, why=reason))
    return tuple(views)


def make_open_view(truth: Truth) -> OpenView:
    """Describe a difference in one line."""
    people = ", ".join(f"{label.rater}: {describe_value(label.value)[1]}" for label in truth.labels)
    return OpenView(case=truth.case, criterion=truth.criterion, people=people)


def explain_none(progress: LabelProgress) -> str:
    """Explain why there is no case to label."""
    if progress.total == 0:
        return "There is no case to label."
    left = progress.total - progress.complete
    if left:
        return f"Nothing is left for you. {left:,} of {progress.total:,} wait for another person, or are with one now."
    return "Nothing is left: every case has its labels."


def find_to_go(progress: LabelProgress) -> float | None:
    """Compute the seconds that one's cases take at one's pace."""
    if progress.seconds_per_answer is None:
        return None
    return max(0, progress.total - progress.mine) * progress.seconds_per_answer


def _list_rows(rubric: Rubric, current: str | None) -> Iterable[RubricRow]:
    people = {criterion.name for criterion in list_asked(rubric)}
    for criterion in rubric.criteria:
        yield RubricRow(
            name=criterion.name,
            description=criterion.description,
            by_rule=criterion.name not in people,
            asked=criterion.name == current,
        )
