"""One person's labelling on the command line: the questions, what each key does, and the message about it.

The order of the cases is decided in ``labels/store.py`` (``find_position``), and what is drawn on the screen in
``commands/label.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from shlex import quote
from typing import TYPE_CHECKING, Literal

from adjudge.cli.output import format_seconds
from adjudge.cli.spelling import spell
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

PREFERENCES: Mapping[str, Literal["first", "second", "tie", "cannot_tell"]] = {
    "1": "first", "2": "second", "3": "tie", "0": "cannot_tell",
}  # fmt: skip
"""The answer that each key gives about a pair, in the order in which it is shown."""

_WORDS = {"True": "good", "False": "bad", CANNOT_TELL: "cannot tell", "tie": "equal"}

_SHORT = 60
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
    """An answer in the words of the keys."""
    return _WORDS.get(str(value), clean(str(value), keep_lines=False))


@dataclass(frozen=True, slots=True, kw_only=True)
class LabellingOptions:
    """The way in which somebody labels."""

    rater: str
    blind: bool = True
    adjudicate: bool = False
    source: str = "RUN"
    """The run or the data set as it was named."""


@dataclass(slots=True, kw_only=True)
class Labelling:
    """Somebody at work on a queue."""

    queue: LabelQueue
    options: LabellingOptions
    estimate: Callable[[LabelQueue], LiveEstimate | None]
    task: LabelTask | None = None
    message: str = ""
    """The outcome of the last key, which the person is shown."""
    answered: int = 0
    """Answers less those that were taken back, which may be of an earlier session."""
    _revisits: bool = False
    _again: set[str] = field(default_factory=set)
    _estimated: tuple[int, LiveEstimate | None] = (-1, None)

    def fetch(self) -> LabelTask | None:
        """The next question; ``None`` when there is none any more."""
        rater, blind = self.options.rater, self.options.blind
        if self.options.adjudicate:
            self.task = self.queue.next_difference(rater, blind=blind)
            return self.task
        task = None if self._revisits else self.queue.next(rater, blind=blind)
        if task is None and self.queue.progress(rater).skipped:
            if not self._revisits:
                self.message = "only what you skipped is left"
            self._revisits = True
            task = self.queue.next(rater, blind=blind, skipped=True)
        # What was skipped once more in this second round is enough for today.
        self.task = None if task is None or task.case in self._again else task
        return self.task

    def press(self, key: str) -> bool:
        """Do what a key asks for; false where it asks for nothing here."""
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
        """Put the case off; in the second round it is remembered, so that ``fetch`` ends when it comes once more."""
        if self.options.adjudicate:
            self.queue.skip_difference(self.options.rater, task.case)
        else:
            self.queue.skip(self.options.rater, task.case)
        if self._revisits:
            self._again.add(task.case)
        self.message = f"{_shorten(shorten_case_id(task.case))}: skipped"

    def _undo(self) -> None:
        """Take back the rater's last answer or skip; its case is the next one that is shown."""
        undo = self.queue.undo_difference if self.options.adjudicate else self.queue.undo
        undone = undo(self.options.rater)
        if undone is None:
            self.message = "there is nothing to undo"
            return
        self._again.discard(undone.case)
        self._revisits = False
        if undone.label is not None:
            self.answered -= 1
        undone_answer = "the skip" if undone.label is None else describe_value(undone.label.value)
        self.message = f"{_shorten(shorten_case_id(undone.case))}: {undone_answer} is undone"

    def _answer(self, task: LabelTask, key: str) -> None:
        """Keep the answer of a key; for a pair, the side that was shown becomes the case's own side."""
        value: bool | str = PREFERENCES[key] if task.is_pair else ANSWERS[key]
        if value in ("first", "second"):
            value = task.name_shown("first" if value == "first" else "second")
        keep = self.queue.adjudicate if self.options.adjudicate else self.queue.record
        name = None if task.criterion is None else task.criterion.name
        keep(self.options.rater, task.case, value, criterion=name)
        self.answered += 1
        shown = {"1": "A is better", "2": "B is better"}.get(key) if task.is_pair else None
        about = "" if name is None else f", {_shorten(name)}"
        self.message = f"{_shorten(shorten_case_id(task.case))}{about}: {shown or describe_value(value)}"

    def comment(self, text: str) -> None:
        """Keep a comment for the question; ``message`` says what is wrong with it, and nothing ends."""
        if self.task is None:
            return
        name = None if self.task.criterion is None else self.task.criterion.name
        # Half a character, as a terminal of another encoding sends it, has no place in any file.
        written = text.strip().encode(errors="replace").decode()
        try:
            self.queue.comment(self.options.rater, self.task.case, written, criterion=name)
            self.task = replace(self.task, comment=written or None)
            self.message = "comment kept" if written else "no comment"
        except UsageError as error:
            self.message = spell(error)

    # ---------------------------------------------------------------- words

    def describe_head(self) -> str:
        """Describe who labels what, and how."""
        kind = "differences" if self.options.adjudicate else "labels"
        hidden = "without the judge's verdict" if self.options.adjudicate else "blind"
        seen = hidden if self.options.blind else "with the judge's verdict"
        return f"{kind} of {self.options.source} as {self.options.rater}; {seen}"

    def describe_progress(self) -> str:
        """Describe how far it is, and how fast."""
        if self.options.adjudicate:
            left = len(self.queue.list_differences())
            return f"{left:,} difference{'s' * (left != 1)} to settle"
        progress = self.queue.progress(self.options.rater)
        parts = [_describe_done(progress)]
        parts += [f"{progress.skipped:,} skipped"] if progress.skipped else []
        parts += _describe_pace(progress)
        return "; ".join(parts)

    def describe_rate(self) -> str | None:
        """Describe how well the rate of good cases is known; ``None`` where that is not known at all."""
        if self.options.adjudicate:
            return None
        done = self.queue.progress(self.options.rater).mine
        estimated_at, live = self._estimated
        if estimated_at != done:
            live = self.estimate(self.queue)
            self._estimated = (done, live)
        return None if live is None else describe_live(live)

    def describe_question(self) -> str:
        """Write the question in one line."""
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
        """The keys, in one line; only those with an answer are explained where there is no room."""
        pair = self.task is not None and self.task.is_pair
        answers = "1 A  2 B  3 equal  0 cannot tell" if pair else "1 good  2 bad  0 cannot tell"
        whole = f"{answers}   s skip  u undo  c comment  ? keys  q quit"
        return whole if len(whole) <= columns else f"{answers}  s u c q, ? keys"

    def list_text(self) -> list[Passage]:
        """List what is judged, after what people said of it where they differ."""
        if self.task is None:
            return []
        parts = [Passage(name, text or "(empty)") for name, text in self.task.parts]
        labels = "\n".join(map(_describe_label, self.task.others))
        others = [Passage("what people said", labels)] if labels else []
        return [Passage(f"case {_shorten(shorten_case_id(self.task.case))}"), *others, *parts]

    def list_notes(self) -> list[Passage]:
        """List what it is judged by, and what the judge made of it where that is shown."""
        if self.task is None:
            return []
        task = self.task
        notes = [] if task.rubric is None else list(_list_rubric(task.rubric, task))
        for result in task.results:
            notes.append(Passage("what the judge made of it", _describe_result(result)))
        return notes + ([Passage("your comment", task.comment)] if task.comment else [])

    def describe_end(self) -> list[str]:
        """Describe what somebody did, where it is kept, and what to do next."""
        progress = self.queue.progress(self.options.rater)
        what = "settlement" if self.options.adjudicate else "answer"
        number = abs(self.answered)
        ending = "taken back" if self.answered < 0 else "kept"
        sentences = [f"{number:,} {what}{'s' * (number != 1)} {ending} in {self.queue.path}"]
        if not self.options.adjudicate:
            sentences[0] += f"; {_describe_done(progress)}"
        open_ones = len(self.queue.list_differences())
        if open_ones and not self.options.adjudicate:
            again = f"adjudge label {quote(self.options.source)} --adjudicate"
            many = "difference is" if open_ones == 1 else "differences are"
            sentences.append(f"{open_ones:,} {many} open between people; to settle: {again}")
        elif open_ones:
            sentences.append(f"{open_ones:,} left open")
        return sentences

    def describe_nothing(self) -> str:
        """Explain why no question comes."""
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


def describe_live(live: LiveEstimate) -> str:
    """Describe how well the rate is known, and how many labels are still needed."""
    aim = f"± {live.within * 100:g} points"
    rate = f"people pass {format_points(live.value)} % ({format_range(live.low, live.high).removesuffix(' %')})"
    if live.ignored_groups:
        # Drawn one by one, they are a random sample of these cases, and no sample of groups.
        rate += "; of these cases, groups ignored"
    if live.more is None:
        return rate
    if live.more:
        return f"{rate}; about {live.more:,} more until {aim}"
    if live.left:
        is_or_are = "is" if live.left == 1 else "are"
        return f"{rate}; within {aim}, and {live.left:,} of the plan {is_or_are} missing for adjudge agree"
    return f"{rate}; enough for {aim}"


def _describe_done(progress: LabelProgress) -> str:
    if progress.per_case == 1:
        return f"{progress.complete:,} of {progress.total:,} labelled"
    both = f"{progress.complete:,} have {progress.per_case} labels"
    return f"{progress.mine:,} of {progress.total:,} labelled by you; {both}"


def _describe_pace(progress: LabelProgress) -> list[str]:
    pace = progress.seconds_per_answer
    done = progress.complete if progress.per_case == 1 else progress.mine
    if pace is None or done >= progress.total:
        return []
    return [f"{format_seconds(pace)} each, {format_seconds(pace * (progress.total - done))} left"]


def _list_rubric(rubric: Rubric, task: LabelTask) -> list[Passage]:
    """List the criteria that are asked about: all of the rubric, or the one that the question names."""
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
    """Describe a judgement in lines: its outcome, the scores with their reasons, and the reasoning of the whole."""
    if isinstance(result, PairResult):
        return f"preferred: {result.preferred or 'undecided'} (of the case's own sides)"
    lines = [describe_outcome(result)]
    for criterion in result.criteria:
        score = "-" if criterion.score is None else format_score(criterion.score)
        lines.append(f"{score}  {criterion.name}" + (f": {criterion.reasoning}" if criterion.reasoning else ""))
    return "\n".join([*lines, *([result.reasoning] if result.reasoning else [])])


def _shorten(text: str) -> str:
    shown = clean(text[: _SHORT + 1], keep_lines=False)
    return shown if len(text) <= _SHORT else f"{shown[:_SHORT]}…"
