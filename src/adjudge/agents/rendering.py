"""A run as the text that a judge reads: within a budget, and with a count of everything that is not in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from adjudge.agents.step import AgentCall, FileChange, Step
from adjudge.errors import UsageError
from adjudge.formats.text import show

BUDGET = 12_000
"""Tokens of a run that a judge is shown unless the run says otherwise."""

CHARACTERS = 4
"""Characters that are taken for one token."""

_LEAST, _MOST = 1_000, 1_000_000

_ALWAYS = 3
"""The last steps, which always stay."""

_MOST_NAMES = 8
"""Tools that a gap names; the rest is counted together."""

_LONGEST_NAME = 80

_GAP = 60
"""Characters, about, that are set aside for the gap beside a step that stays."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderedRun:
    """The text of a run, and what is not in it."""

    text: str
    """JSON of at most ``budget`` tokens."""
    left_out: Mapping[str, Any] = field(default_factory=dict)
    """``steps`` and ``files`` that are missing, ``calls`` among the steps by tool, and the ``characters`` that are
    missing altogether; empty if the whole run is in the text."""
    missing: Mapping[int, int] = field(default_factory=dict)
    """Characters that are missing of a step, by its place from 0; all of them of one that is left out."""

    @property
    def is_whole(self) -> bool:
        """True if nothing is left out."""
        return not self.left_out


class _Run(Protocol):
    """The parts of a run that are rendered."""

    @property
    def steps(self) -> tuple[Step, ...]: ...
    @property
    def calls(self) -> tuple[AgentCall, ...]: ...
    @property
    def answer(self) -> str | None: ...
    @property
    def files(self) -> tuple[FileChange, ...]: ...
    @property
    def outcome(self) -> str: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def complete(self) -> bool: ...
    @property
    def problems(self) -> tuple[str, ...]: ...
    @property
    def unknown(self) -> Sequence[str]: ...


def check_budget(budget: Any) -> int:
    """Return a budget in tokens; raises ``UsageError`` for one in which no run could be shown."""
    if isinstance(budget, bool) or not isinstance(budget, int) or not _LEAST <= budget <= _MOST:
        raise UsageError(
            f"budget must be a whole number of tokens from {_LEAST:,} to {_MOST:,}, got {show(budget)}",
            argument="budget",
        )
    return budget


def render_run(run: _Run, budget: int) -> RenderedRun:
    """Render a run within a budget of tokens."""
    room = budget * CHARACTERS
    return _render_within(run.steps, room, run)


def render_steps(steps: Sequence[Step], room: int) -> RenderedRun:
    """Render steps in order, without a run's outcome, answer and files, within so many characters, at least 4,000."""
    return _render_within(steps, room, None)


def cut_steps(steps: Sequence[Step], limit: int) -> tuple[list[dict[str, Any]], int]:
    """Render every one of some steps with texts of at most ``limit`` characters, and count what is missing of them."""
    cut = _Cut()
    return [_render_step(step, limit, limit, cut) for step in steps], cut.missing


def _render_within(steps: Sequence[Step], room: int, run: _Run | None) -> RenderedRun:
    """Render within ``room`` characters: whole, else with texts cut, else with steps left out as well."""
    if sum(map(count_characters, steps)) <= room:  # else it is long, and need not be written to know that
        whole = _Attempt(steps, run, room, limit=room)
        if whole.fits:
            return whole.render()
    # Texts first, because a call that is cut still says that it was made; then whole steps.
    limit = max(300, room // (2 * max(1, len(steps))))
    attempt = _Attempt(steps, run, room, limit=min(room // 4, limit))
    while not attempt.fits:
        if not attempt.drop() and attempt.limit:
            attempt = _Attempt(steps, run, room, limit=attempt.limit // 2, keep_least=True)
    return attempt.render()


class _Attempt:
    """One way of cutting a run: texts to a limit, then steps left out, the least important first."""

    def __init__(
        self, steps: Sequence[Step], run: _Run | None, room: int, *, limit: int, keep_least: bool = False
    ) -> None:
        self.room, self.limit = room, limit
        self.places = [place for place, step in enumerate(steps) if step.role != "system"]
        self.steps = [steps[place] for place in self.places]
        self.cut = _Cut()
        self.head = {} if run is None else self._render_head(run, limit)
        self.items = [
            _render_step(step, limit, limit if limit == room else limit // 2, self.cut) for step in self.steps
        ]
        self.sizes = [_measure_item(item) for item in self.items]
        self.kept = set(range(len(self.items)))
        if keep_least:
            self.kept = set(self._rank_steps()[:_ALWAYS])
        elif limit < room:
            self._keep_what_fits()

    @property
    def fits(self) -> bool:
        size = _measure_item(self.head) + sum(self.sizes[place] for place in self.kept)
        return size <= self.room and len(self._write_run()) <= self.room

    def drop(self) -> bool:
        """Leave out the least important tenth of the steps that may go; false if none may."""
        ranked = [place for place in self._rank_steps()[_ALWAYS:] if place in self.kept]
        if not ranked:
            return False
        self.kept -= set(ranked[-max(1, len(ranked) // 10) :])
        return True

    def render(self) -> RenderedRun:
        return RenderedRun(text=self._write_run(), left_out=self._count_left_out(), missing=dict(self._list_missing()))

    def _list_missing(self) -> Iterator[tuple[int, int]]:
        """Yield the place of each step that is not shown whole, and how many of its characters are missing."""
        for number, (place, step) in enumerate(zip(self.places, self.steps, strict=True)):
            missing = self.cut.by_step.get(id(step), 0) if number in self.kept else count_characters(step)
            if missing:
                yield place, missing

    def _keep_what_fits(self) -> None:
        """Keep the most important steps, as many as there is room for, and some in any case."""
        left = self.room - _measure_item(self.head)
        kept = set()
        for place in self._rank_steps():
            left -= self.sizes[place] + _GAP
            if left < 0 and len(kept) >= _ALWAYS:
                break
            kept.add(place)
        self.kept = kept

    def _rank_steps(self) -> list[int]:
        """Rank the steps: the last ones, then calls that failed, then the others from the beginning."""
        count = len(self.steps)
        last = list(range(max(0, count - _ALWAYS), count))
        others = range(count - len(last))
        failed = [place for place in others if (call := self.steps[place].call) is not None and call.error is not None]
        is_failed = set(failed)
        return [*last, *failed, *(place for place in others if place not in is_failed)]

    def _render_head(self, run: _Run, limit: int) -> dict[str, Any]:
        """Render the outcome, problems, answer and files of a run within their share of the room."""
        hidden = len(run.steps) - len(self.steps)
        share = self.room // 4 if limit < self.room else self.room
        head: dict[str, Any] = {"outcome": run.outcome, "complete": run.complete}
        head |= (
            {"problems": [self.cut(problem, min(300, limit)) for problem in run.problems[:5]]} if run.problems else {}
        )
        head |= {"not_recorded": list(run.unknown)} if run.unknown else {}
        head |= {"exit_code": run.exit_code} if run.exit_code is not None else {}
        head |= {"tool_calls": len(run.calls), "answer": self.cut(run.answer, min(share, limit * 4))}
        head |= {"system_messages_not_shown": hidden} if hidden else {}
        return head | self._render_files(run.files, limit)

    def _render_files(self, files: Sequence[FileChange], limit: int) -> dict[str, Any]:
        """Render the files that the run changed, as many as there is room for; count the others as left out."""
        if not files:
            return {}
        room = self.room // 3 if limit < self.room else self.room
        share = max(200, room // len(files))
        rendered: list[dict[str, Any]] = []
        for change in files:
            before = self.cut.missing
            item = {"path": self.cut(change.path, min(300, limit)), "kind": change.kind}
            item |= {"diff": self.cut(change.diff, min(share, limit * 4))} if change.diff else {}
            room -= _measure_item(item)
            if room < 0 and limit < self.room:
                self.cut.missing = before
                break
            rendered.append(item)
        for change in files[len(rendered) :]:
            self.cut.missing += len(change.path) + len(change.diff)
        missing = len(files) - len(rendered)
        return {"files": rendered} | ({"files_left_out": missing} if missing else {})

    def _write_run(self) -> str:
        """Write the run as JSON; each gap between steps that are kept lists what is left out there."""
        steps: list[dict[str, Any]] = []
        gap: Counter[str] = Counter()
        for place, item in enumerate(self.items):
            if place not in self.kept:
                call = self.steps[place].call
                gap["(text)" if call is None else call.tool[:_LONGEST_NAME]] += 1
                continue
            _close_gap(steps, gap)
            steps.append(item)
        _close_gap(steps, gap)
        return _dump({**self.head, "steps": steps})

    def _count_left_out(self) -> dict[str, Any]:
        """Count what is missing, in the form of ``RenderedRun.left_out``."""
        missing = [step for place, step in enumerate(self.steps) if place not in self.kept]
        characters = self.cut.missing + sum(count_characters(step) for step in missing)
        # What was cut of a step that is left out altogether is counted once.
        characters -= sum(self.cut.by_step.get(id(step), 0) for step in missing)
        calls = Counter(step.call.tool[:_LONGEST_NAME] for step in missing if step.call is not None)
        files = self.head.get("files_left_out", 0)
        counts: dict[str, Any] = {"steps": len(missing)} if missing else {}
        counts |= {"calls": dict(calls.most_common(_MOST_NAMES))} if calls else {}
        counts |= {"files": files} if files else {}
        return counts | ({"characters": characters} if characters or counts else {})


class _Cut:
    """Cuts texts in their middle, and counts what is missing."""

    def __init__(self) -> None:
        self.missing = 0
        self.by_step: dict[int, int] = {}

    def __call__(self, text: str | None, most: int) -> str | None:
        if text is None or len(text) <= most:
            return text
        begin, end = most // 2, most - most // 2
        missing = len(text) - begin - end
        self.missing += missing
        return f"{text[:begin]}\n[... {missing:,} characters left out ...]\n{text[len(text) - end :]}"


def _render_step(step: Step, limit: int, limit_of_result: int, cut: _Cut) -> dict[str, Any]:
    """Render a step, and note in ``cut`` how many of its characters were left out."""
    before = cut.missing
    call = step.call
    if call is None:
        item: dict[str, Any] = {"role": step.role, "text": cut(step.text, limit)}
    else:
        item = {"turn": step.turn, "call": cut(call.tool, min(_LONGEST_NAME, limit))}
        item |= {"agent": cut(call.agent, min(_LONGEST_NAME, limit))} if call.agent is not None else {}
        item["arguments"] = _render_arguments(call.arguments, limit, cut)
        if call.error is not None:
            item["error"] = cut(call.error, limit)
        else:
            # Of a call, what was asked for is worth more than what came back.
            item["result"] = cut(call.result, limit_of_result)
    cut.by_step[id(step)] = cut.missing - before
    return item


def _render_arguments(arguments: Any, limit: int, cut: _Cut) -> Any:
    if isinstance(arguments, str):
        return cut(arguments, limit)
    text = json.dumps(arguments, ensure_ascii=False)
    return arguments if len(text) <= limit else cut(text, limit)


def count_characters(step: Step) -> int:
    """Count the characters of a step's texts and arguments."""
    if step.call is None:
        return len(step.text)
    call = step.call
    texts = (call.tool, call.result or "", call.error or "", json.dumps(call.arguments, ensure_ascii=False))
    return sum(map(len, texts))


def _close_gap(steps: list[dict[str, Any]], gap: Counter[str]) -> None:
    if not gap:
        return
    named = dict(gap.most_common(_MOST_NAMES))
    others = gap.total() - sum(named.values())
    steps.append({"left_out": named | ({"(others)": others} if others else {})})
    gap.clear()


_dump: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, indent=1).encode


def _measure_item(item: Mapping[str, Any]) -> int:
    """Measure an item as it stands in the text, with what indents it."""
    return len(json.dumps(item, ensure_ascii=False)) + 6 * len(item) + 12
