"""``adjudge label`` for one person: the next question, the action of each key, and the texts about the progress.

The order of the cases is decided in ``labels/store.py`` (``find_position``). The screen is drawn in
``commands/label.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TYPE_CHECKING, Literal

from adjudge.cli.error_messages import format_error
from adjudge.cli.output import format_seconds
from adjudge.cli.text_columns import Passage
from adjudge.dataset.case_ids import shorten_case_id
from adjudge.dataset.label_map import CANNOT_TELL
from adjudge.errors import UsageError
from adjudge.formats.display import describe_outcome
from adjudge.formats.numbers import format_points, format_range, format_score
from adjudge.formats.text import clean
from adjudge.judges.pair import PairResult

if TYPE_CHECKING:
    from adjudge.dataset.label import Label
    from adjudge.labels.live_estimate import LiveEstimate
    from adjudge.labels.queue import LabelQueue
    from adjudge.labels.task import LabelProgress, LabelTask
    from adjudge.result import JudgeResult
    from adjudge.rubric.rubric import Rubric

ANSWERS: Mapping[str, bool | str] = {"1": True, "2": False, "0": CANNOT_TELL}
"""The answer that each key gives about a case that is no pair."""

PREFERENCES: Mapping[str, Literal["first", "second", "tie", "cannot_tell"]] = {
    "1": "first", "2": "second", "3": "tie", "0": "cannot_tell",
}  # fmt: skip
"""The answer that each key gives about a pair: its contents are first and second as they are shown."""

_VALUE_WORDS = {"True": "good", "False": "bad", CANNOT_TELL: "cannot tell", "tie": "equal"}

_LONGEST_ID = 60
"""Characters of an id in a line about something else."""

KEYS = (
    ("1", "good; of a pair: A is better"),
    ("2", "bad; of a pair: B is better"),
    ("3", "of a pair: A and B are equally good"),
    ("0", "cannot tell: you looked, and cannot decide"),
    ("s", "skip: put it off until the end"),
    ("u", "undo your last answer or skip, and show its case again"),
    ("c", "write a comment; it goes with your answer"),
    ("space, b", "next page, page before (or PgDn, PgUp)"),
    ("j, k", "line down, line up (or the arrows)"),
    ("g, G", "beginning, end"),
    ("q", "quit; every answer is kept already"),
)


def describe_value(value: object) -> str:
    """Describe the value of a label in the words of the keys, such as "good" for ``True``."""
    return _VALUE_WORDS.get(str(value), clean(str(value), keep_lines=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellingOptions:
    """The options of ``adjudge label`` about who labels what, and how."""

    rater: str
    blind: bool = True
    """False shows the judge's verdict."""
    adjudicate: bool = False
    """True settles the cases on which people differ, in place of labelling."""
    source: str = "RUN"
    """The run or the data set as the user named it."""


@dataclass(slots=True, kw_only=True)
class Labelling:
    """The session of a person who answers the questions of a queue."""

    queue: LabelQueue
    options: LabellingOptions
    estimate: Callable[[LabelQueue], LiveEstimate | None]
    """Estimates the rate of good cases from the labels of the queue."""
    task: LabelTask | None = None
    """The current question."""
    message: str = ""
    """The outcome of the last key, which the person is shown."""
    answered: int = 0
    """Answers of this session, less the answers that were undone. It can be below 0: an undone answer may be older."""
    _in_second_round: bool = False
    """True once only skipped cases are left, which are then shown again."""
    _skipped_twice: set[str] = field(default_factory=set)
    """Cases that were skipped in the second round too."""
    _last_estimate: tuple[int, LiveEstimate | None] = (-1, None)
    """The number of the rater's answers when the rate was last estimated (-1: never), and that estimate."""

    def fetch(self) -> LabelTask | None:
        """Fetch the next question, keep it as ``task``, and return it; ``None`` when there is none left."""
        rater, blind = self.options.rater, self.options.blind
        if self.options.adjudicate:
            self.task = self.queue.next_difference(rater, blind=blind)
            return self.task
        task = None if self._in_second_round else self.queue.next(rater, blind=blind)
        if task is None and self.queue.progress(rater).skipped:
            if not self._in_second_round:
                self.message = "only what you skipped is left"
            self._in_second_round = True
            task = self.queue.next(rater, blind=blind, skipped=True)
        # The skipped cases come round and round. One that was skipped in the second round too ends the session.
        self.task = None if task is None or task.case in self._skipped_twice else task
        return self.task

    def press(self, key: str) -> bool:
        """Skip, undo or answer the current question, as a key says; return false for a key that does none of these."""
        task = self.task
        if task is None:
            return False
        if key == "s":
            self._skip(task)
        elif key == "u":
            self._undo()
        elif key in (PREFERENCES if task.is_pair else ANSWERS):
            self._answer(task, key)
        else:
            return False
        return True

    def _skip(self, task: LabelTask) -> None:
        """Put the case off until the end; in the second round, remember that it was skipped twice."""
        if self.options.adjudicate:
            self.queue.skip_difference(self.options.rater, task.case)
        else:
            self.queue.skip(self.options.rater, task.case)
        if self._in_second_round:
            self._skipped_twice.add(task.case)
        self.message = f"{_shorten(shorten_case_id(task.case))}: skipped"

    def _undo(self) -> None:
        """Take back the rater's last answer or skip; its case is the next one that is shown."""
        undo = self.queue.undo_difference if self.options.adjudicate else self.queue.undo
        undone = undo(self.options.rater)
        if undone is None:
            self.message = "there is nothing to undo"
            return
        self._skipped_twice.discard(undone.case)
        self._in_second_round = False
        if undone.label is not None:
            self.answered -= 1
        undone_answer = "the skip" if undone.label is None else describe_value(undone.label.value)
        self.message = f"{_shorten(shorten_case_id(undone.case))}: {undone_answer} is undone"

    def _answer(self, task: LabelTask, key: str) -> None:
        """Keep the answer that a key gives.

        Of a pair, ``A`` and ``B`` are as the person was shown them. The label says which of the case's own contents
        that was, because the order on the screen is drawn by chance.
        """
        value: bool | str = PREFERENCES[key] if task.is_pair else ANSWERS[key]
        if value in ("first", "second"):
            value = task.name_shown("first" if value == "first" else "second")
        keep_answer = self.queue.adjudicate if self.options.adjudicate else self.queue.record
        criterion_name = None if task.criterion is None else task.criterion.name
        keep_answer(self.options.rater, task.case, value, criterion=criterion_name)
        self.answered += 1
        preference = {"1": "A is better", "2": "B is better"}.get(key) if task.is_pair else None
        about = "" if criterion_name is None else f", {_shorten(criterion_name)}"
        self.message = f"{_shorten(shorten_case_id(task.case))}{about}: {preference or describe_value(value)}"

    def comment(self, text: str) -> None:
        """Keep a comment for the current question; one that cannot be kept is explained in ``message``."""
        if self.task is None:
            return
        criterion_name = None if self.task.criterion is None else self.task.criterion.name
        # A terminal of another encoding can send half a character, which cannot be written to a file.
        comment = text.strip().encode(errors="replace").decode()
        try:
            self.queue.comment(self.options.rater, self.task.case, comment, criterion=criterion_name)
            self.task = replace(self.task, comment=comment or None)
            self.message = "comment kept" if comment else "no comment"
        except UsageError as error:
            self.message = format_error(error)

    # ---------------------------------------------------------------- texts for the person

    def describe_head(self) -> str:
        """Describe for the head of the screen who labels what, and whether the judge's verdict is shown."""
        kind = "differences" if self.options.adjudicate else "labels"
        without_verdict = "without the judge's verdict" if self.options.adjudicate else "blind"
        mode = without_verdict if self.options.blind else "with the judge's verdict"
        return f"{kind} of {self.options.source} as {self.options.rater}; {mode}"

    def describe_progress(self) -> str:
        """Describe how many cases are labelled or left, and the rater's pace."""
        if self.options.adjudicate:
            left = len(self.queue.list_differences())
            return f"{left:,} difference{'s' * (left != 1)} to settle"
        progress = self.queue.progress(self.options.rater)
        parts = [_describe_done(progress)]
        parts += [f"{progress.skipped:,} skipped"] if progress.skipped else []
        parts += _describe_pace(progress)
        return "; ".join(parts)

    def describe_rate(self) -> str | None:
        """Describe the rate of good cases, with its limits; ``None`` where it cannot be estimated yet.

        It is estimated again only after another answer, because that takes a while.
        """
        if self.options.adjudicate:
            return None
        answers = self.queue.progress(self.options.rater).mine
        estimated_after, estimate = self._last_estimate
        if estimated_after != answers:
            estimate = self.estimate(self.queue)
            self._last_estimate = (answers, estimate)
        return None if estimate is None else describe_live(estimate)

    def describe_question(self) -> str:
        """Write the current question in one line, such as "Is it good?"."""
        task = self.task
        if task is None:
            return ""
        subject = "this" if task.criterion is None else f"“{clean(task.criterion.name, keep_lines=False)}”"
        if self.options.adjudicate:
            return f"How is {'it' if task.criterion is None else subject} settled?"
        if task.is_pair:
            return "Which is better?" if task.criterion is None else f"Which is better on {subject}?"
        return "Is it good?" if task.criterion is None else f"Is it good on {subject}?"

    def describe_keys(self, columns: int = 1_000) -> str:
        """Describe the keys in one line; where it is too narrow, only the keys that answer are explained."""
        is_pair = self.task is not None and self.task.is_pair
        answers = "1 A  2 B  3 equal  0 cannot tell" if is_pair else "1 good  2 bad  0 cannot tell"
        full_line = f"{answers}   s skip  u undo  c comment  ? keys  q quit"
        return full_line if len(full_line) <= columns else f"{answers}  s u c q, ? keys"

    def list_text(self) -> list[Passage]:
        """List the passages to read: the case, other people's labels where differences are settled, and its texts."""
        if self.task is None:
            return []
        texts = [Passage(name, text or "(empty)") for name, text in self.task.parts]
        labels = "\n".join(map(_describe_label, self.task.others))
        other_labels = [Passage("what people said", labels)] if labels else []
        return [Passage(f"case {_shorten(shorten_case_id(self.task.case))}"), *other_labels, *texts]

    def list_notes(self) -> list[Passage]:
        """List the passages beside the case: the rubric, the judge's results where they are shown, and the comment."""
        if self.task is None:
            return []
        task = self.task
        notes = [] if task.rubric is None else list(_list_rubric(task.rubric, task))
        for result in task.results:
            notes.append(Passage("what the judge made of it", _describe_result(result)))
        return notes + ([Passage("your comment", task.comment)] if task.comment else [])

    def describe_end(self) -> list[str]:
        """Describe at the end of a session how many answers were kept and where, and how to settle differences."""
        progress = self.queue.progress(self.options.rater)
        noun = "settlement" if self.options.adjudicate else "answer"
        number = abs(self.answered)
        verb = "taken back" if self.answered < 0 else "kept"
        sentences = [f"{number:,} {noun}{'s' * (number != 1)} {verb} in {self.queue.path}"]
        if not self.options.adjudicate:
            sentences[0] += f"; {_describe_done(progress)}"
        differences = len(self.queue.list_differences())
        if differences and not self.options.adjudicate:
            command = f"adjudge label {quote(self.options.source)} --adjudicate"
            subject = "difference is" if differences == 1 else "differences are"
            sentences.append(f"{differences:,} {subject} open between people; to settle: {command}")
        elif differences:
            sentences.append(f"{differences:,} left open")
        return sentences

    def describe_nothing(self) -> str:
        """Explain why there is no question for this rater."""
        if self.options.adjudicate:
            return "no difference is left for you to settle"
        progress = self.queue.progress(self.options.rater)
        if progress.skipped:
            return f"nothing is left but the {progress.skipped:,} that you skipped; label again to see them"
        if progress.total == 0:
            return "there is no case to label"
        left = progress.total - progress.complete
        if left:
            return f"nothing is left for you; {left:,} of {progress.total:,} wait for another rater or are with one now"
        return "nothing is left: every case has its labels"


def describe_live(estimate: LiveEstimate) -> str:
    """Describe the rate of good cases with its limits, and how many labels are still needed for the width aimed at."""
    aim = f"± {estimate.within * 100:g} points"
    limits = format_range(estimate.low, estimate.high).removesuffix(" %")
    rate = f"people pass {format_points(estimate.value)} % ({limits})"
    if estimate.ignored_groups:
        # Cases that are drawn one by one are a random sample of these cases, and no sample of groups.
        rate += "; of these cases, groups ignored"
    if estimate.more is None:
        return rate
    if estimate.more:
        return f"{rate}; about {estimate.more:,} more until {aim}"
    if estimate.left:
        is_or_are = "is" if estimate.left == 1 else "are"
        return f"{rate}; within {aim}, and {estimate.left:,} of the plan {is_or_are} missing for adjudge agree"
    return f"{rate}; enough for {aim}"


def _describe_done(progress: LabelProgress) -> str:
    """Describe how many cases are labelled, and, if cases need several raters, how many have all their labels."""
    if progress.per_case == 1:
        return f"{progress.complete:,} of {progress.total:,} labelled"
    complete = f"{progress.complete:,} have {progress.per_case} labels"
    return f"{progress.mine:,} of {progress.total:,} labelled by you; {complete}"


def _describe_pace(progress: LabelProgress) -> list[str]:
    """Describe the rater's pace and the time left, in a list of one text; empty where the pace is not known yet."""
    pace = progress.seconds_per_answer
    done = progress.complete if progress.per_case == 1 else progress.mine
    if pace is None or done >= progress.total:
        return []
    return [f"{format_seconds(pace)} each, {format_seconds(pace * (progress.total - done))} left"]


def _list_rubric(rubric: Rubric, task: LabelTask) -> list[Passage]:
    """List the rubric's name and the criteria of the question: all of the rubric, or the one that it is about."""
    criteria = rubric.criteria if task.criterion is None else (task.criterion,)
    passages = [Passage(f"rubric: {rubric.name}")]
    for criterion in criteria:
        levels = "".join(f"\n{score:g}: {meaning}" for score, meaning in criterion.levels)
        rule = "\n(a rule decides this)" if criterion.rule is not None else ""
        weight = f" (weight {criterion.weight:g})" if criterion.weight != 1 and task.criterion is None else ""
        passages.append(Passage(f"{criterion.name}{weight}", f"{criterion.description}{levels}{rule}"))
    return passages


def _describe_label(label: Label) -> str:
    comment = f" — {clean(label.comment, keep_lines=False)}" if label.comment else ""
    return f"{clean(label.rater, keep_lines=False)}: {describe_value(label.value)}{comment}"


def _describe_result(result: JudgeResult | PairResult) -> str:
    """Describe a judgement in lines: its outcome, each criterion's score and reasoning, and the overall reasoning."""
    if isinstance(result, PairResult):
        return f"preferred: {result.preferred or 'undecided'} (of the case's own sides)"
    lines = [describe_outcome(result)]
    for criterion in result.criteria:
        score = "-" if criterion.score is None else format_score(criterion.score)
        lines.append(f"{score}  {criterion.name}" + (f": {criterion.reasoning}" if criterion.reasoning else ""))
    return "\n".join([*lines, *([result.reasoning] if result.reasoning else [])])


def _shorten(text: str) -> str:
    """Return a text as one short line: without control characters, and cut with an ellipsis where it is long."""
    shown = clean(text[: _LONGEST_ID + 1], keep_lines=False)
    return shown if len(text) <= _LONGEST_ID else f"{shown[:_LONGEST_ID]}…"
