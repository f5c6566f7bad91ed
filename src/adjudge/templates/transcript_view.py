"""The view of a conversation, or of an agent's run: a row for each step, and folded rows for many steps.

The author of a run may want something to be overlooked. So what is folded or cut is counted and named in
``unshown_parts``, and texts that belong to no step are shown beside the steps. Long runs have thousands of steps, so
texts that are not shown are not read, except to find the quotations of the judge.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from adjudge.agents.conversation import Conversation
from adjudge.agents.parts import list_parts
from adjudge.agents.rendering import count_characters
from adjudge.agents.run import AgentRun
from adjudge.agents.step import AgentCall, Step
from adjudge.templates.call_values import Finding, PlacedFinding
from adjudge.templates.evidence import MOST_QUOTATIONS, QuotedPlace, clip_places, cut_passages
from adjudge.templates.opened_parts import Opened
from adjudge.templates.transcript_values import FoldRow, RunHead, ShownChange, ShownText, StepRow, TranscriptView

LONGEST_SHOWN = 20_000
"""Characters of one transcript that are shown at first."""

_LONG_WORDS, _LONG_CALL, _LONG_RESULT = 2_000, 2_000, 600
"""Characters of one text that are shown at first."""

_MOST_WHOLE = 40
"""Steps that are never folded: that many are read faster than they are opened."""

_FIRST_STEPS, _LAST_STEPS = 2, 3
"""Steps at both ends of a long transcript that are not folded."""

_MOST_MARKED = 100
"""Steps with an error or a fault that are not folded; of more, the first."""

_LONG_NAME = 500
"""Characters of a name that are shown of a run that is too long to be drawn at once."""

_CHARACTERS_AROUND_TEXT = 100
"""Characters that the page draws around each text, roughly, such as names and buttons."""

_MOST_NAMES = 5

_MOST_BESIDE = 50

_MOST_IN_FILE = 500
"""The most steps of a run whose folded steps are written into a file, in which nothing can be loaded later."""


def make_transcript_view(
    conversation: Conversation,
    *,
    key: int = 1,
    opened: Opened | None = None,
    quotations: Sequence[str] = (),
    names_unseen: bool = True,
    findings: Sequence[PlacedFinding] = (),
    most_drawn: int | None = None,
) -> TranscriptView:
    """Make the view of a conversation, the ``key``-th one of its page.

    ``quotations`` are marked where they first occur in a step. ``findings`` are shown at the steps that they are
    about; show all of them elsewhere too. ``names_unseen=False`` does not say which steps of a run were left out for
    its judge. ``most_drawn`` bounds the characters that are drawn, whatever is opened; ``None`` does not.
    """
    run, opened = conversation.run, opened or Opened()
    rendered = run.render() if conversation.kind == "run" and names_unseen else None
    builder = _TranscriptViewBuilder(
        opened=opened,
        key=key,
        conversation=conversation,
        findings=_list_findings(conversation, findings),
        unseen={} if rendered is None else rendered.missing,
        drawn_left=most_drawn,
    )
    builder.find_quotations(quotations)
    rows = tuple(builder.list_rows())
    head = None if conversation.kind == "messages" else builder.make_head()
    beside = tuple(builder.list_beside())
    numbers = {text: number for number, text in enumerate(quotations, 1) if number in builder.marked}
    found_numbers = builder.quoted_texts.keys()
    numbered_quotations = [(number, text) for number, text in enumerate(quotations[:MOST_QUOTATIONS], 1) if text]
    return TranscriptView(
        key=key,
        rows=rows,
        is_numbered=conversation.kind != "excerpt",
        total=len(run.steps),
        calls=len(run.calls),
        errors=tuple(number for number, step in enumerate(run.steps, 1) if _has_error(step)),
        found=tuple(sorted(place + 1 for place in builder.faulty)),
        head=head,
        beside=beside,
        beside_total=builder.beside_total,
        unread=() if head is not None else run.problems,
        left_out=builder.describe_left_out(),
        unshown_parts=tuple(builder.list_unshown()),
        numbers=numbers,
        missing=tuple(text for number, text in numbered_quotations if number not in found_numbers),
        unshown=tuple(text for number, text in numbered_quotations if number in found_numbers - builder.marked),
    )


def _has_error(step: Step) -> bool:
    """Return whether a step is a call that ended with an error."""
    return step.call is not None and step.call.error is not None


_FINDING_PLACE = re.compile(r"(steps|calls|turns|messages|)\[(\d{1,7})\]")


def _list_findings(conversation: Conversation, findings: Sequence[PlacedFinding]) -> Mapping[int, Sequence[Finding]]:
    """List findings by the index of the step that they are about.

    A finding names a step, a call or a turn of a run, or a message, by its number among those. One about a turn or a
    message of several steps belongs to the first of them.
    """
    steps = conversation.run.steps
    first_steps: Mapping[str, Sequence[int]] = {
        "steps": range(len(steps)),
        "calls": [part.begin for part in list_parts(conversation.run, "call")],
        "turns": [part.begin for part in list_parts(conversation.run, "turn")],
        "messages": conversation.begins,
        "": conversation.begins,
    }
    findings_by_step: dict[int, list[Finding]] = {}
    for placed in findings:
        match = _FINDING_PLACE.match(placed.place)
        if match is None:
            continue
        list_name, number = match.groups()
        step_indexes = first_steps[list_name]
        if int(number) < len(step_indexes):
            findings_by_step.setdefault(step_indexes[int(number)], []).append(placed.finding)
    return findings_by_step


@dataclass(slots=True)
class _TranscriptViewBuilder:
    """Makes the view of one conversation, and keeps count of what was shown, folded, left out and marked so far."""

    opened: Opened
    key: int
    conversation: Conversation
    findings: Mapping[int, Sequence[Finding]]
    """The findings about steps, by the index of the step."""
    characters_left: int = LONGEST_SHOWN
    """Characters that can still be shown at first."""
    unshown_characters: dict[int, int] = field(default_factory=dict)
    """Characters that are not shown, by the number of the step; 0 is for what is shown beside the steps."""
    folded: list[FoldRow] = field(default_factory=list)
    quoted_texts: dict[int, tuple[int, str]] = field(default_factory=dict)
    """By the number of a quotation: the index of the step, and the text in it, in which it first occurs."""
    marked: set[int] = field(default_factory=set)
    """The numbers of the quotations that are marked."""
    quoted_steps: set[int] = field(default_factory=set)
    """The indexes of the steps in which quotations first occur."""
    quotations_by_text: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    """By the text in which quotations first occur: their numbers, and how each is spelled there."""
    unseen: Mapping[int, int] = field(default_factory=dict)
    """Characters of steps that the judge was not shown, by the index of the step."""
    beside_total: int = 0
    """The number of texts that belong to no step."""
    beside_left: int = 0
    """The number of these that are not shown."""
    files_left: int = 0
    """The number of changed files that are not shown."""
    drawn_left: int | None = None
    """Characters that can still be drawn; ``None`` where there is no bound."""

    @property
    def run(self) -> AgentRun:
        """The run of the conversation; messages are read as a run too."""
        return self.conversation.run

    @property
    def faulty(self) -> Collection[int]:
        """The indexes of the steps with a finding that is not ``passed``."""
        return {
            index for index, findings in self.findings.items() if any(finding.state != "passed" for finding in findings)
        }

    # ------------------------------------------------------------ which steps

    def list_rows(self) -> Iterator[StepRow | FoldRow]:
        """Yield a row for each step that is shown, and one for each group of steps that are folded."""
        steps = self.run.steps
        total = len(steps)
        open_numbers = self.opened.list_steps(self.key, total)
        kept = self._choose_kept_steps(total)
        # Steps have numbers from 1, and indexes from 0.
        for is_shown, group in groupby(range(total), key=lambda index: index in kept or index + 1 in open_numbers):
            indexes = list(group)
            if not is_shown and len(indexes) > 1:
                yield self._make_fold(indexes)
                continue
            for done, index in enumerate(indexes):
                if self._has_drawn_all:
                    yield self._make_fold(indexes[done:])
                    break
                yield self._make_step(index, whole=index + 1 in open_numbers)

    @property
    def _has_drawn_all(self) -> bool:
        """True if as many characters are drawn as a page may draw."""
        return self.drawn_left is not None and self.drawn_left <= 0

    def _choose_kept_steps(self, total: int) -> Collection[int]:
        """Choose the indexes of the steps that are not folded: the first, the last, faulty and quoted ones."""
        if total <= _MOST_WHOLE:
            return range(total)
        faulty = self.faulty
        marked = [index for index, step in enumerate(self.run.steps) if _has_error(step) or index in faulty]
        return {*range(_FIRST_STEPS), *range(total - _LAST_STEPS, total), *marked[:_MOST_MARKED], *self.quoted_steps}

    def _make_fold(self, indexes: Sequence[int]) -> FoldRow:
        """Make one row of several steps, which says how many calls of which tools they are.

        On a page it has a link that opens them. In a file, in which no link can do so, it holds their rows, unless the
        run is too long.
        """
        steps = [self.run.steps[index] for index in indexes]
        calls = Counter(step.call.tool for step in steps if step.call is not None)
        frequent = calls.most_common(_MOST_NAMES)
        others = calls.total() - sum(times for _, times in frequent)
        holds_rows = not self.opened.path and len(self.run.steps) <= _MOST_IN_FILE
        row = FoldRow(
            first=indexes[0] + 1,
            last=indexes[-1] + 1,
            calls=(*frequent, *([("others", others)] if others else [])),
            messages=sum(step.call is None for step in steps),
            errors=sum(map(_has_error, steps)),
            path=self.opened.make_link(self.key, indexes[0] + 1, indexes[-1] + 1),
            rows=tuple(self._make_step(index, whole=False) for index in indexes) if holds_rows else (),
        )
        if not holds_rows:
            self.folded.append(row)
        return row

    # ------------------------------------------------------------ one step

    def _make_step(self, index: int, *, whole: bool) -> StepRow:
        """Make the row of a step; with ``whole``, its texts are cut only by the limit of all that a page draws."""
        step, number = self.run.steps[index], index + 1
        findings = tuple(self.findings.get(index, ()))
        who = {"assistant": "agent"}.get(step.role, step.role)
        row = StepRow(
            number=number,
            who=self._shorten(number, self.conversation.speakers.get(index, who)),
            remark=self._describe_unseen(index, step),
            findings=findings,
            is_marked=index in self.faulty or _has_error(step) or index in self.quoted_steps,
        )
        if step.call is None:
            return replace(row, text=self._show_text(number, step.text, _LONG_WORDS, whole=whole))
        return self._add_call(row, step.call, whole=whole)

    def _add_call(self, row: StepRow, call: AgentCall, *, whole: bool) -> StepRow:
        """Add to a step's row the call: its arguments, and its result or error."""
        number = row.number
        # The arguments take their share of the limit first, because they tell more than what came back.
        arguments = tuple(self._list_arguments(number, call, whole=whole))
        result: ShownText | None = None
        error: ShownText | None = None
        if call.result is not None:
            result = self._show_text(number, call.result, _LONG_RESULT, whole=whole)
        if call.error is not None:
            error = self._show_text(number, call.error, _LONG_RESULT, whole=whole)
        return replace(
            row,
            tool=self._shorten(number, call.tool),
            agent=self._shorten(number, call.agent or ""),
            arguments=arguments,
            result=result,
            error=error,
            duration_ms=call.duration_ms,
        )

    def _list_arguments(self, number: int, call: AgentCall, *, whole: bool) -> Iterator[tuple[str, ShownText]]:
        """Yield the names and values of a call's arguments; those that the page cannot draw any more are counted."""
        for name, text in _list_arguments(call.arguments):
            if self._has_drawn_all:
                self._count_unshown(number, len(name) + len(text))
            else:
                yield self._shorten(number, name), self._show_text(number, text, _LONG_CALL, whole=whole)

    def _shorten(self, number: int, name: str) -> str:
        """Shorten a name if there is a limit of what is drawn, and count the characters that are not shown."""
        shown = name if self.drawn_left is None else name[:_LONG_NAME]
        self._count_unshown(number, len(name) - len(shown))
        return shown

    def _count_unshown(self, number: int, characters: int) -> None:
        """Count characters of a step that are not shown."""
        if characters:
            self.unshown_characters[number] = self.unshown_characters.get(number, 0) + characters

    def _describe_unseen(self, index: int, step: Step) -> str:
        """Write a remark on how much of a step the judge was not shown; empty if it was shown all."""
        missing = self.unseen.get(index, 0)
        if self.unseen and step.role == "system":
            return "the judge is shown no system messages"
        return f"{missing:,} characters of it were left out for the judge" if missing else ""

    def _show_text(self, number: int, text: str, most: int, *, whole: bool) -> ShownText:
        """Make what is shown of a text, and count what is not shown: at first it shows at most ``most`` characters.

        With ``whole``, or if everything is opened, only the limit of all that a page draws cuts it.
        """
        if whole or self.opened.whole:
            shown = text
        else:
            # Even when nothing is left to show at first, 200 characters are shown, which tell what the text is.
            shown = text[: max(min(most, self.characters_left), 200)] if len(text) > 300 else text
            self.characters_left -= min(len(shown), max(self.characters_left, 0))
        if self.drawn_left is not None:
            shown = shown[: max(self.drawn_left, 0)]
            self.drawn_left -= len(shown) + _CHARACTERS_AROUND_TEXT
        rest = len(text) - len(shown)
        self._count_unshown(number, rest)
        places = clip_places(self._take_quoted_places(text), 0, len(shown))  # of the quotations that are in it
        self.marked.update(place.number for place in places)
        passages = cut_passages(shown, places)
        return ShownText(passages=passages, lines=text.count("\n") + 1, length=len(text), rest=rest)

    # ------------------------------------------------------------ what the judge quoted

    def find_quotations(self, quotations: Sequence[str]) -> None:
        """Find the first step with each quotation, as the judge wrote it or without JSON escapes; else the answer."""
        unfound = {number: _list_spellings(text) for number, text in enumerate(quotations[:MOST_QUOTATIONS], 1) if text}
        for index, step in enumerate(self.run.steps):
            if not unfound:
                return
            for text in _list_texts(step):
                for number, spelling in _find_spellings(text, unfound):
                    del unfound[number]
                    self.quoted_texts[number] = (index, text)
                    self.quoted_steps.add(index)
                    self.quotations_by_text.setdefault(text, []).append((number, spelling))
        answer = self.run.answer or ""
        for number, spelling in _find_spellings(answer, unfound):
            self.quoted_texts[number] = (len(self.run.steps), answer)
            self.quotations_by_text.setdefault(answer, []).append((number, spelling))

    def _take_quoted_places(self, text: str) -> list[QuotedPlace]:
        """Return the places of the quotations that first occur in this text, and forget them.

        So they are marked once, where the text is shown for the first time.
        """
        spellings = self.quotations_by_text.pop(text, ()) if self.quotations_by_text else ()
        places = []
        for number, spelling in spellings:
            start = text.find(spelling)
            places.append(QuotedPlace(number=number, start=start, end=start + len(spelling)))
        return places

    # ------------------------------------------------------------ beside the steps

    def make_head(self) -> RunHead:
        """Make the head of a run: its outcome, problems, answer, changed files, cost and duration."""
        run = self.run
        files = run.files if self.opened.whole else run.files[:_MOST_BESIDE]
        self.files_left = len(run.files) - len(files)
        # Nearly every run ends with its answer as the last step, which is not shown twice.
        is_last_step = bool(run.steps) and run.steps[-1].call is None and run.steps[-1].text == run.answer
        return RunHead(
            outcome=run.outcome,
            exit_code=run.exit_code,
            problems=run.problems or (() if run.complete else ("nothing says what is missing",)),
            unknown=run.unknown,
            answer=None
            if run.answer is None or is_last_step
            else self._show_text(0, run.answer, _LONG_WORDS, whole=False),
            files=tuple(self._make_shown_change(change.path, change.kind, change.diff) for change in files),
            files_total=len(run.files),
            cost=run.cost,
            duration_ms=run.duration_ms,
            tokens=None if run.usage is None else run.usage.input_tokens + run.usage.output_tokens,
        )

    def _make_shown_change(self, path: str, kind: str, diff: str) -> ShownChange:
        """Make what is shown of a changed file."""
        return ShownChange(
            path=path, kind=kind, diff=self._show_text(0, diff, _LONG_CALL, whole=False) if diff else None
        )

    def list_beside(self) -> Iterator[tuple[str, ShownText]]:
        """Yield the texts that belong to no step, with their names: members of messages, or metadata of a run."""
        beside = list(self.conversation.beside)
        if self.conversation.kind == "messages":
            beside = [(_name_place_in_messages(place), text) for place, text in beside]
        else:
            beside += [(f"metadata.{name}", _write_argument(value)) for name, value in self.run.metadata.items()]
        self.beside_total = self.beside_left = len(beside)
        for place, text in beside if self.opened.whole else beside[:_MOST_BESIDE]:
            # Checked for each text, because a place repeats names of the author's, and can be longer than the text.
            if self._has_drawn_all:
                return
            self.beside_left -= 1
            yield self._shorten(0, place), self._show_text(0, text, _LONG_RESULT, whole=False)

    # ------------------------------------------------------------ what is not shown

    def list_unshown(self) -> Iterator[str]:
        """Yield the parts that are not shown, each in a few words."""
        if self.folded:
            number, first = sum(row.total for row in self.folded), self.folded[0]
            yield (
                f"folded steps {first.first:,} to {first.last:,}"
                if len(self.folded) == 1
                else f"{number:,} folded steps"
            )
        if self.unshown_characters:
            characters = sum(self.unshown_characters.values())
            steps = sorted(number for number in self.unshown_characters if number)
            steps_text = f" of step {steps[0]:,}" if len(steps) == 1 else f" of {len(steps):,} steps" if steps else ""
            yield f"{characters:,} characters{steps_text}"
        if self.beside_left:
            yield f"{self.beside_left:,} members beside the steps"
        if self.files_left:
            yield f"{self.files_left:,} files"

    def describe_left_out(self) -> str:
        """Write in a sentence how many steps of a run the judge was not shown; empty if it was shown all."""
        if not self.unseen:
            return ""
        steps = self.run.steps
        # Some steps were left out as a whole, and parts of others.
        whole_steps = sum(count_characters(steps[index]) == missing for index, missing in self.unseen.items())
        parts = [f"{whole_steps:,} of {len(steps):,} steps"] if whole_steps else []
        parts += [f"parts of {len(self.unseen) - whole_steps:,} others"] if len(self.unseen) > whole_steps else []
        return f"Left out for the judge, because they do not fit into the run's budget: {' and '.join(parts)}."


def _name_place_in_messages(place: str) -> str:
    """Name a place such as ``messages[2].name`` by the number of the message, from 1: ``message 3: name``."""
    number, _, rest = place.removeprefix("messages").removeprefix("[").partition("]")
    return f"message {int(number) + 1:,}: {rest.lstrip('.')}" if number.isdecimal() and rest else place


def _list_texts(step: Step) -> Iterable[str]:
    """List the texts of a step as they are shown: its words, or the arguments, the result and the error of its call."""
    if step.call is None:
        return (step.text,)
    call = step.call
    results = [text for text in (call.result, call.error) if text is not None]
    return (*(text for _, text in _list_arguments(call.arguments)), *results)


def _list_arguments(arguments: Any) -> list[tuple[str, str]]:
    """List the names and values of a call's arguments as texts.

    The name is empty for arguments that are no object, and for a single text whose name says nothing more, such as a
    ``command``.
    """
    if not isinstance(arguments, dict):
        return [("", _write_argument(arguments))]
    if len(arguments) == 1:
        name, value = next(iter(arguments.items()))
        if isinstance(value, str) and name in _SELF_EXPLAINING_NAMES:
            return [("", value)]
    return [(name, _write_argument(value)) for name, value in arguments.items()]


_SELF_EXPLAINING_NAMES = frozenset({"command", "cmd", "code", "query", "sql", "script", "path", "file_path"})
"""Names that need not be shown of a single argument, because its value tells what it is."""


def _write_argument(value: Any) -> str:
    """Write the value of an argument: a text as it is, and any other value as JSON, in lines if it is long."""
    if isinstance(value, str):
        # A text that could be taken for another value is written as JSON writes it.
        return json.dumps(value, ensure_ascii=False) if _looks_like_other_value(value) else value
    flat = json.dumps(value, ensure_ascii=False)
    return flat if len(flat) <= 100 else json.dumps(value, ensure_ascii=False, indent=2)


def _looks_like_other_value(text: str) -> bool:
    """Return whether a text is empty, or would be read as another value if it stood without quotation marks."""
    if text[:1] not in '{["-0123456789tfn' and text:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return not text
    return True


def _find_spellings(text: str, spellings_by_number: Mapping[int, Sequence[str]]) -> list[tuple[int, str]]:
    """List the quotations that a text holds: the number of each, and the first of its spellings that is in the text."""
    matches = []
    for number, spellings in spellings_by_number.items():
        match = next((spelling for spelling in spellings if spelling in text), None)
        if match is not None:
            matches.append((number, match))
    return matches


def _list_spellings(quotation: str) -> tuple[str, ...]:
    """List the spellings under which a quotation is searched: as it is, and without escapes if it is a part of JSON."""
    if "\\" not in quotation:
        return (quotation,)
    try:
        unescaped = json.loads(f'"{quotation}"')
    except ValueError:
        return (quotation,)
    return (quotation, unescaped)
