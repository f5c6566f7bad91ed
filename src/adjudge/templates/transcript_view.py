"""A conversation, or an agent's run, made into what is shown of it.

Its author may want something to be overlooked. So what is folded or cut is counted and named in
``unshown_parts``, and what no step holds is shown beside the steps. Long runs have thousands of steps: nothing here
looks at a text that is not shown, but for the quotations of the judge.
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
from adjudge.templates.opened import Opened
from adjudge.templates.transcript_values import FoldRow, RunHead, ShownChange, ShownText, StepRow, TranscriptView

LONGEST_SHOWN = 20_000
"""Characters of one transcript that are shown at first."""

_LONG_WORDS, _LONG_CALL, _LONG_RESULT = 2_000, 2_000, 600
"""Characters of one text that are shown at first."""

_MOST_WHOLE = 40
"""Steps that are never folded: that many are read faster than they are opened."""

_FIRST, _LAST = 2, 3
"""Steps at both ends of a long transcript that are not folded."""

_MOST_MARKED = 100
"""Steps with an error or a fault that are not folded; of more, the first."""

_LONG_NAME = 500
"""Characters of a name that are shown of a run that is too long to be drawn at once."""

_AROUND = 100
"""Characters, about, that the page draws around each text."""

_MOST_NAMES = 5

_MOST_BESIDE = 50

_MOST_IN_FILE = 500
"""Steps that a file, in which nothing can be opened later, holds folded."""


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
    builder = _Builder(
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
    is_known = builder.quoted.keys()
    asked = [(number, text) for number, text in enumerate(quotations[:MOST_QUOTATIONS], 1) if text]
    return TranscriptView(
        key=key,
        rows=rows,
        is_numbered=conversation.kind != "excerpt",
        total=len(run.steps),
        calls=len(run.calls),
        errors=tuple(number for number, step in enumerate(run.steps, 1) if _failed(step)),
        found=tuple(sorted(place + 1 for place in builder.faulty)),
        head=head,
        beside=beside,
        beside_total=builder.beside_total,
        unread=() if head is not None else run.problems,
        left_out=builder.describe_left_out(),
        unshown_parts=tuple(builder.list_unshown()),
        numbers=numbers,
        missing=tuple(text for number, text in asked if number not in is_known),
        unshown=tuple(text for number, text in asked if number in is_known - builder.marked),
    )


def _failed(step: Step) -> bool:
    return step.call is not None and step.call.error is not None


_PLACE = re.compile(r"(steps|calls|turns|messages|)\[(\d{1,7})\]")


def _list_findings(conversation: Conversation, findings: Sequence[PlacedFinding]) -> Mapping[int, Sequence[Finding]]:
    """List findings by the place of their step: they name steps, calls and turns of a run, or messages.

    One about a turn is at its first step.
    """
    steps = conversation.run.steps
    begins: Mapping[str, Sequence[int]] = {
        "steps": range(len(steps)),
        "calls": [part.begin for part in list_parts(conversation.run, "call")],
        "turns": [part.begin for part in list_parts(conversation.run, "turn")],
        "messages": conversation.begins,
        "": conversation.begins,
    }
    by_step: dict[int, list[Finding]] = {}
    for placed in findings:
        match = _PLACE.match(placed.place)
        if match is None:
            continue
        list_name, number = match.groups()
        places = begins[list_name]
        if int(number) < len(places):
            by_step.setdefault(places[int(number)], []).append(placed.finding)
    return by_step


@dataclass(slots=True)
class _Builder:
    """The state of one view while it is made."""

    opened: Opened
    key: int
    conversation: Conversation
    findings: Mapping[int, Sequence[Finding]]
    left: int = LONGEST_SHOWN
    cut: dict[int, int] = field(default_factory=dict)
    """Characters that are not shown, by the number of the step; of the run itself with 0."""
    folded: list[FoldRow] = field(default_factory=list)
    quoted: dict[int, tuple[int, str]] = field(default_factory=dict)
    """The place of the step, and the text in it, in which each quotation first occurs."""
    marked: set[int] = field(default_factory=set)
    quoted_steps: set[int] = field(default_factory=set)
    numbered: dict[str, list[tuple[int, str]]] = field(default_factory=dict)
    unseen: Mapping[int, int] = field(default_factory=dict)
    """Characters of steps that the judge was not shown, by their places."""
    beside_total: int = 0
    beside_left: int = 0
    """Members beside the steps that are not shown."""
    files_left: int = 0
    drawn_left: int | None = None
    """Characters that can still be drawn; ``None`` where there is no bound."""

    @property
    def run(self) -> AgentRun:
        return self.conversation.run

    @property
    def faulty(self) -> Collection[int]:
        """The places of the steps about which something was found that is not in order."""
        return {place for place, findings in self.findings.items() if any(one.state != "passed" for one in findings)}

    # ------------------------------------------------------------ which steps

    def list_rows(self) -> Iterator[StepRow | FoldRow]:
        """Yield the steps, and lines that stand for several."""
        steps = self.run.steps
        total = len(steps)
        open_steps = self.opened.list_steps(self.key, total)
        kept = self._choose(total)
        for is_shown, group in groupby(range(total), key=lambda place: place in kept or place + 1 in open_steps):
            places = list(group)
            if not is_shown and len(places) > 1:
                yield self._fold(places)
                continue
            for done, place in enumerate(places):
                if self._is_full:
                    yield self._fold(places[done:])
                    break
                yield self._make_step(place, whole=place + 1 in open_steps)

    @property
    def _is_full(self) -> bool:
        return self.drawn_left is not None and self.drawn_left <= 0

    def _choose(self, total: int) -> Collection[int]:
        if total <= _MOST_WHOLE:
            return range(total)
        faulty = self.faulty
        marked = [place for place, step in enumerate(self.run.steps) if _failed(step) or place in faulty]
        return {*range(_FIRST), *range(total - _LAST, total), *marked[:_MOST_MARKED], *self.quoted_steps}

    def _fold(self, places: Sequence[int]) -> FoldRow:
        """Fold steps into one row, which says what is in it; they are in it, or behind a link if there are many."""
        steps = [self.run.steps[place] for place in places]
        calls = Counter(step.call.tool for step in steps if step.call is not None)
        named = calls.most_common(_MOST_NAMES)
        others = calls.total() - sum(times for _, times in named)
        is_here = not self.opened.path and len(self.run.steps) <= _MOST_IN_FILE
        row = FoldRow(
            first=places[0] + 1,
            last=places[-1] + 1,
            calls=(*named, *([("others", others)] if others else [])),
            messages=sum(step.call is None for step in steps),
            errors=sum(map(_failed, steps)),
            path=self.opened.make_link(self.key, places[0] + 1, places[-1] + 1),
            rows=tuple(self._make_step(place, whole=False) for place in places) if is_here else (),
        )
        self.folded += [] if is_here else [row]
        return row

    # ------------------------------------------------------------ one step

    def _make_step(self, place: int, *, whole: bool) -> StepRow:
        """Make the row of a step; with ``whole``, only the bound on all that is drawn cuts its texts."""
        step, number = self.run.steps[place], place + 1
        findings = tuple(self.findings.get(place, ()))
        who = {"assistant": "agent"}.get(step.role, step.role)
        row = StepRow(
            number=number,
            who=self._shorten(number, self.conversation.speakers.get(place, who)),
            remark=self._describe_unseen(place, step),
            findings=findings,
            is_marked=place in self.faulty or _failed(step) or place in self.quoted_steps,
        )
        if step.call is None:
            return replace(row, text=self._show(number, step.text, _LONG_WORDS, whole=whole))
        return self._add_call(row, step.call, whole=whole)

    def _add_call(self, row: StepRow, call: AgentCall, *, whole: bool) -> StepRow:
        """Add to a step's row the call: its arguments, and its result or error."""
        number = row.number
        # The arguments first: what was asked for is worth more than what came back.
        arguments = tuple(self._list_arguments(number, call, whole=whole))
        came = {
            name: self._show(number, text, _LONG_RESULT, whole=whole)
            for name in ("result", "error")
            if (text := getattr(call, name)) is not None
        }
        return replace(
            row,
            tool=self._shorten(number, call.tool),
            agent=self._shorten(number, call.agent or ""),
            arguments=arguments,
            result=came.get("result"),
            error=came.get("error"),
            duration_ms=call.duration_ms,
        )

    def _list_arguments(self, number: int, call: AgentCall, *, whole: bool) -> Iterator[tuple[str, ShownText]]:
        for name, text in _list_arguments(call.arguments):
            if self._is_full:
                self._count_cut(number, len(name) + len(text))
            else:
                yield self._shorten(number, name), self._show(number, text, _LONG_CALL, whole=whole)

    def _shorten(self, number: int, name: str) -> str:
        """Shorten a name where what is drawn is bounded, and count the rest."""
        shown = name if self.drawn_left is None else name[:_LONG_NAME]
        self._count_cut(number, len(name) - len(shown))
        return shown

    def _count_cut(self, number: int, characters: int) -> None:
        if characters:
            self.cut[number] = self.cut.get(number, 0) + characters

    def _describe_unseen(self, place: int, step: Step) -> str:
        missing = self.unseen.get(place, 0)
        if self.unseen and step.role == "system":
            return "the judge is shown no system messages"
        return f"{missing:,} characters of it were left out for the judge" if missing else ""

    def _show(self, number: int, text: str, most: int, *, whole: bool) -> ShownText:
        """Show a text, or as much of it as there is room for, and count the rest."""
        if whole or self.opened.whole:
            shown = text
        else:
            # Of what comes after much, a line is shown: it says what it is.
            shown = text[: max(min(most, self.left), 200)] if len(text) > 300 else text
            self.left -= min(len(shown), max(self.left, 0))
        if self.drawn_left is not None:
            shown = shown[: max(self.drawn_left, 0)]
            self.drawn_left -= len(shown) + _AROUND
        rest = len(text) - len(shown)
        self._count_cut(number, rest)
        places = clip_places(self._find_places(text), 0, len(shown))
        self.marked.update(place.number for place in places)
        passages = cut_passages(shown, places)
        return ShownText(passages=passages, lines=text.count("\n") + 1, length=len(text), rest=rest)

    # ------------------------------------------------------------ what the judge quoted

    def find_quotations(self, quotations: Sequence[str]) -> None:
        """Find the first step that holds each quotation, as it is written or as JSON writes it."""
        some = quotations[:MOST_QUOTATIONS]
        waiting = {number: _list_spellings(text) for number, text in enumerate(some, 1) if text}
        for place, step in enumerate(self.run.steps):
            if not waiting:
                return
            for text in _list_texts(step):
                for number in [number for number, forms in waiting.items() if any(form in text for form in forms)]:
                    form = next(form for form in waiting.pop(number) if form in text)
                    self.quoted[number] = (place, text)
                    self.quoted_steps.add(place)
                    self.numbered.setdefault(text, []).append((number, form))
        answer = self.run.answer or ""
        for number, forms in waiting.items():
            form = next((form for form in forms if form in answer), None)
            if form is not None:
                self.quoted[number] = (len(self.run.steps), answer)
                self.numbered.setdefault(answer, []).append((number, form))

    def _find_places(self, text: str) -> list[QuotedPlace]:
        """Find the quotations that were found in this very text, where it is shown for the first time."""
        numbered = self.numbered.pop(text, ()) if self.numbered else ()
        starts = [(number, text.find(form), len(form)) for number, form in numbered]
        return [QuotedPlace(number=number, start=start, end=start + length) for number, start, length in starts]

    # ------------------------------------------------------------ beside the steps

    def make_head(self) -> RunHead:
        """Make what is known of a run beside its steps."""
        run = self.run
        files = run.files if self.opened.whole else run.files[:_MOST_BESIDE]
        self.files_left = len(run.files) - len(files)
        is_last = bool(run.steps) and run.steps[-1].call is None and run.steps[-1].text == run.answer
        return RunHead(
            outcome=run.outcome,
            exit_code=run.exit_code,
            problems=run.problems or (() if run.complete else ("nothing says what is missing",)),
            unknown=run.unknown,
            # Not twice: nearly every run ends with it.
            answer=None if run.answer is None or is_last else self._show(0, run.answer, _LONG_WORDS, whole=False),
            files=tuple(self._show_change(change.path, change.kind, change.diff) for change in files),
            files_total=len(run.files),
            cost=run.cost,
            duration_ms=run.duration_ms,
            tokens=None if run.usage is None else run.usage.input_tokens + run.usage.output_tokens,
        )

    def _show_change(self, path: str, kind: str, diff: str) -> ShownChange:
        return ShownChange(path=path, kind=kind, diff=self._show(0, diff, _LONG_CALL, whole=False) if diff else None)

    def list_beside(self) -> Iterator[tuple[str, ShownText]]:
        """Yield what the messages have that is in no step; of a run, what its source added to it."""
        beside = list(self.conversation.beside)
        if self.conversation.kind == "messages":
            beside = [(_name_message(place), text) for place, text in beside]
        else:
            beside += [(f"metadata.{name}", _write_argument(value)) for name, value in self.run.metadata.items()]
        self.beside_total = self.beside_left = len(beside)
        for place, text in beside if self.opened.whole else beside[:_MOST_BESIDE]:
            # A place repeats names that the author chose, so places can be longer than the text itself.
            if self._is_full:
                return
            self.beside_left -= 1
            yield self._shorten(0, place), self._show(0, text, _LONG_RESULT, whole=False)

    # ------------------------------------------------------------ what is not shown

    def list_unshown(self) -> Iterator[str]:
        """Yield what is not shown, each part in a few words."""
        if self.folded:
            number, first = sum(row.total for row in self.folded), self.folded[0]
            yield (
                f"folded steps {first.first:,} to {first.last:,}"
                if len(self.folded) == 1
                else f"{number:,} folded steps"
            )
        if self.cut:
            characters = sum(self.cut.values())
            steps = sorted(number for number in self.cut if number)
            named = f" of step {steps[0]:,}" if len(steps) == 1 else f" of {len(steps):,} steps" if steps else ""
            yield f"{characters:,} characters{named}"
        if self.beside_left:
            yield f"{self.beside_left:,} members beside the steps"
        if self.files_left:
            yield f"{self.files_left:,} files"

    def describe_left_out(self) -> str:
        """Say what the judge was not shown of a run."""
        if not self.unseen:
            return ""
        steps = self.run.steps
        whole = sum(count_characters(steps[place]) == missing for place, missing in self.unseen.items())
        parts = [f"{whole:,} of {len(steps):,} steps"] if whole else []
        parts += [f"parts of {len(self.unseen) - whole:,} others"] if len(self.unseen) > whole else []
        return f"Left out for the judge, because they do not fit into the run's budget: {' and '.join(parts)}."


def _name_message(place: str) -> str:
    """Name a place in messages by the number of the message, counted from 1 as the steps are."""
    number, _, rest = place.removeprefix("messages").removeprefix("[").partition("]")
    return f"message {int(number) + 1:,}: {rest.lstrip('.')}" if number.isdecimal() and rest else place


def _list_texts(step: Step) -> Iterable[str]:
    """List the texts of a step as they are shown."""
    if step.call is None:
        return (step.text,)
    call = step.call
    came = [text for text in (call.result, call.error) if text is not None]
    return (*(text for _, text in _list_arguments(call.arguments)), *came)


def _list_arguments(arguments: Any) -> list[tuple[str, str]]:
    """List the names and values of a call's arguments; one text alone needs no name."""
    if not isinstance(arguments, dict):
        return [("", _write_argument(arguments))]
    if len(arguments) == 1 and isinstance(only := next(iter(arguments.values())), str):
        name = next(iter(arguments))
        return [("", only)] if name in _PLAIN else [(name, _write_argument(only))]
    return [(name, _write_argument(value)) for name, value in arguments.items()]


_PLAIN = frozenset({"command", "cmd", "code", "query", "sql", "script", "path", "file_path"})
"""Names of a single argument that its value says by itself."""


def _write_argument(value: Any) -> str:
    if isinstance(value, str):
        # A text that could be taken for another value is written as JSON writes it.
        return json.dumps(value, ensure_ascii=False) if _looks_other(value) else value
    flat = json.dumps(value, ensure_ascii=False)
    return flat if len(flat) <= 100 else json.dumps(value, ensure_ascii=False, indent=2)


def _looks_other(text: str) -> bool:
    """Return whether a text is empty, or would be read as another value if it stood without quotation marks."""
    if text[:1] not in '{["-0123456789tfn' and text:
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return not text
    return True


def _list_spellings(quotation: str) -> tuple[str, ...]:
    """Return a quotation as it is written, and without escapes where it was taken from JSON."""
    if "\\" not in quotation:
        return (quotation,)
    try:
        unescaped = json.loads(f'"{quotation}"')
    except ValueError:
        return (quotation,)
    return (quotation, unescaped)
