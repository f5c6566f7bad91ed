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
"""The characters that count as one token."""

_LEAST_BUDGET, _MOST_BUDGET = 1_000, 1_000_000

_LAST_KEPT = 3
"""The number of last steps, which are never left out."""

_MOST_NAMES = 8
"""The most tools that a gap names; calls of other tools are counted together."""

_LONGEST_NAME = 80

_GAP_CHARACTERS = 60
"""The characters that are set aside, for each step that is kept, for the text of a gap beside it."""


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


class _RenderableRun(Protocol):
    """A run, as far as it is rendered."""

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
    """Return a budget in tokens. Raises ``UsageError`` for one that is no number, too small, or too large."""
    if isinstance(budget, bool) or not isinstance(budget, int) or not _LEAST_BUDGET <= budget <= _MOST_BUDGET:
        raise UsageError(
            f"budget must be a whole number of tokens from {_LEAST_BUDGET:,} to {_MOST_BUDGET:,}, got {show(budget)}",
            argument="budget",
        )
    return budget


def render_run(run: _RenderableRun, budget: int) -> RenderedRun:
    """Render a run as JSON for a judge, within a budget of tokens."""
    room = budget * CHARACTERS
    return _render_within(run.steps, room, run)


def render_steps(steps: Sequence[Step], room: int) -> RenderedRun:
    """Render steps as JSON within ``room`` characters, at least 4,000.

    Unlike ``render_run``, without a run's outcome, answer and files.
    """
    return _render_within(steps, room, None)


def cut_steps(steps: Sequence[Step], limit: int) -> tuple[list[dict[str, Any]], int]:
    """Render all of some steps with texts of at most ``limit`` characters, and count the characters left out."""
    cutter = _TextCutter()
    return [_render_step(step, limit, limit, cutter) for step in steps], cutter.missing


def _render_within(steps: Sequence[Step], room: int, run: _RenderableRun | None) -> RenderedRun:
    """Render steps, and a run if there is one, within ``room`` characters.

    If the whole does not fit, texts are cut; if it still does not, steps are left out as well.
    """
    if sum(map(count_characters, steps)) <= room:  # a quick check, without which a long run would be written in vain
        whole = _RenderAttempt(steps, run, room, limit=room)
        if whole.fits:
            return whole.render()
    # Texts are cut first, because a call with cut texts still shows that it was made. Then whole steps are left out.
    limit = max(300, room // (2 * max(1, len(steps))))
    attempt = _RenderAttempt(steps, run, room, limit=min(room // 4, limit))
    while not attempt.fits:
        if not attempt.drop() and attempt.limit:
            attempt = _RenderAttempt(steps, run, room, limit=attempt.limit // 2, keep_least=True)
    return attempt.render()


class _RenderAttempt:
    """One attempt to fit a run into its room: with texts cut to a limit, and the least important steps left out.

    ``kept`` has the indexes of the steps that are kept. Steps of the system are never shown.
    """

    def __init__(
        self, steps: Sequence[Step], run: _RenderableRun | None, room: int, *, limit: int, keep_least: bool = False
    ) -> None:
        """Render all steps, with texts cut to ``limit`` characters, and choose those that are kept.

        If ``limit`` is the whole room, all are kept. With ``keep_least``, only the last ones are.
        """
        self.room, self.limit = room, limit
        self.step_indexes = [index for index, step in enumerate(steps) if step.role != "system"]
        self.steps = [steps[index] for index in self.step_indexes]
        self.cutter = _TextCutter()
        self.head = {} if run is None else self._render_head(run, limit)
        self.items = [
            _render_step(step, limit, limit if limit == room else limit // 2, self.cutter) for step in self.steps
        ]
        self.sizes = [_measure_item(item) for item in self.items]
        self.kept = set(range(len(self.items)))
        if keep_least:
            self.kept = set(self._rank_steps()[:_LAST_KEPT])
        elif limit < room:
            self._keep_what_fits()

    @property
    def fits(self) -> bool:
        """True if the text is within the room; it is written to know that only if its estimated size is."""
        size = _measure_item(self.head) + sum(self.sizes[index] for index in self.kept)
        return size <= self.room and len(self._write_run()) <= self.room

    def drop(self) -> bool:
        """Leave out the least important tenth of the steps that may be left out; return false if there are none."""
        droppable = [index for index in self._rank_steps()[_LAST_KEPT:] if index in self.kept]
        if not droppable:
            return False
        self.kept -= set(droppable[-max(1, len(droppable) // 10) :])
        return True

    def render(self) -> RenderedRun:
        """Render the steps that are kept, with a count of everything that is missing."""
        return RenderedRun(text=self._write_run(), left_out=self._count_left_out(), missing=dict(self._list_missing()))

    def _list_missing(self) -> Iterator[tuple[int, int]]:
        """Yield the index of each step that is not shown whole, and how many of its characters are missing."""
        for number, (step_index, step) in enumerate(zip(self.step_indexes, self.steps, strict=True)):
            missing = self.cutter.by_step.get(id(step), 0) if number in self.kept else count_characters(step)
            if missing:
                yield step_index, missing

    def _keep_what_fits(self) -> None:
        """Keep as many of the most important steps as there is room for, and the last ones in any case."""
        room_left = self.room - _measure_item(self.head)
        kept = set()
        for index in self._rank_steps():
            room_left -= self.sizes[index] + _GAP_CHARACTERS
            if room_left < 0 and len(kept) >= _LAST_KEPT:
                break
            kept.add(index)
        self.kept = kept

    def _rank_steps(self) -> list[int]:
        """Rank the steps by importance: the last ones, then calls that failed, then the others from the first on."""
        count = len(self.steps)
        last = list(range(max(0, count - _LAST_KEPT), count))
        failed: list[int] = []
        others: list[int] = []
        for index in range(count - len(last)):
            call = self.steps[index].call
            has_failed = call is not None and call.error is not None
            if has_failed:
                failed.append(index)
            else:
                others.append(index)
        return [*last, *failed, *others]

    def _render_head(self, run: _RenderableRun, limit: int) -> dict[str, Any]:
        """Render the outcome, the problems, the answer and the files of a run, within their shares of the room."""
        hidden = len(run.steps) - len(self.steps)
        share = self.room // 4 if limit < self.room else self.room
        head: dict[str, Any] = {"outcome": run.outcome, "complete": run.complete}
        if run.problems:
            head["problems"] = [self.cutter(problem, min(300, limit)) for problem in run.problems[:5]]
        head |= {"not_recorded": list(run.unknown)} if run.unknown else {}
        head |= {"exit_code": run.exit_code} if run.exit_code is not None else {}
        head |= {"tool_calls": len(run.calls), "answer": self.cutter(run.answer, min(share, limit * 4))}
        head |= {"system_messages_not_shown": hidden} if hidden else {}
        return head | self._render_files(run.files, limit)

    def _render_files(self, files: Sequence[FileChange], limit: int) -> dict[str, Any]:
        """Render the files that the run changed, as many as there is room for, and count those that are left out."""
        if not files:
            return {}
        room = self.room // 3 if limit < self.room else self.room
        share = max(200, room // len(files))
        rendered: list[dict[str, Any]] = []
        for change in files:
            missing_before = self.cutter.missing
            item = {"path": self.cutter(change.path, min(300, limit)), "kind": change.kind}
            item |= {"diff": self.cutter(change.diff, min(share, limit * 4))} if change.diff else {}
            room -= _measure_item(item)
            if room < 0 and limit < self.room:
                self.cutter.missing = missing_before  # the file is left out, and counted below
                break
            rendered.append(item)
        for change in files[len(rendered) :]:
            self.cutter.missing += len(change.path) + len(change.diff)
        missing = len(files) - len(rendered)
        return {"files": rendered} | ({"files_left_out": missing} if missing else {})

    def _write_run(self) -> str:
        """Write the run as JSON; where steps are left out between others, a gap counts them by tool."""
        steps: list[dict[str, Any]] = []
        gap: Counter[str] = Counter()
        for index, item in enumerate(self.items):
            if index not in self.kept:
                call = self.steps[index].call
                gap["(text)" if call is None else call.tool[:_LONGEST_NAME]] += 1
                continue
            _close_gap(steps, gap)
            steps.append(item)
        _close_gap(steps, gap)
        return _encode_json({**self.head, "steps": steps})

    def _count_left_out(self) -> dict[str, Any]:
        """Count what is missing from the text, in the form of ``RenderedRun.left_out``."""
        missing = [step for index, step in enumerate(self.steps) if index not in self.kept]
        characters = self.cutter.missing + sum(count_characters(step) for step in missing)
        # Characters that were cut from a step which is left out altogether must not be counted twice.
        characters -= sum(self.cutter.by_step.get(id(step), 0) for step in missing)
        calls = Counter(step.call.tool[:_LONGEST_NAME] for step in missing if step.call is not None)
        files = self.head.get("files_left_out", 0)
        counts: dict[str, Any] = {"steps": len(missing)} if missing else {}
        counts |= {"calls": dict(calls.most_common(_MOST_NAMES))} if calls else {}
        counts |= {"files": files} if files else {}
        return counts | ({"characters": characters} if characters or counts else {})


class _TextCutter:
    """Cuts texts in their middle, and counts the characters that are left out, also for each step by its id()."""

    def __init__(self) -> None:
        self.missing = 0
        self.by_step: dict[int, int] = {}

    def __call__(self, text: str | None, most: int) -> str | None:
        """Return a text with at most ``most`` of its characters, and a note on the others in its middle."""
        if text is None or len(text) <= most:
            return text
        begin, end = most // 2, most - most // 2
        missing = len(text) - begin - end
        self.missing += missing
        return f"{text[:begin]}\n[... {missing:,} characters left out ...]\n{text[len(text) - end :]}"


def _render_step(step: Step, limit: int, result_limit: int, cutter: _TextCutter) -> dict[str, Any]:
    """Render a step, the result of a call with its own limit, and note in ``cutter`` how much was left out."""
    missing_before = cutter.missing
    call = step.call
    if call is None:
        item: dict[str, Any] = {"role": step.role, "text": cutter(step.text, limit)}
    else:
        item = {"turn": step.turn, "call": cutter(call.tool, min(_LONGEST_NAME, limit))}
        item |= {"agent": cutter(call.agent, min(_LONGEST_NAME, limit))} if call.agent is not None else {}
        item["arguments"] = _render_arguments(call.arguments, limit, cutter)
        if call.error is not None:
            item["error"] = cutter(call.error, limit)
        else:
            # The arguments of a call say more about the agent than its result, which may have a lower limit.
            item["result"] = cutter(call.result, result_limit)
    cutter.by_step[id(step)] = cutter.missing - missing_before
    return item


def _render_arguments(arguments: Any, limit: int, cutter: _TextCutter) -> Any:
    """Return the arguments of a call; as a cut text if they are longer than ``limit`` characters of JSON."""
    if isinstance(arguments, str):
        return cutter(arguments, limit)
    text = json.dumps(arguments, ensure_ascii=False)
    return arguments if len(text) <= limit else cutter(text, limit)


def count_characters(step: Step) -> int:
    """Count the characters of the texts and the arguments of a step."""
    if step.call is None:
        return len(step.text)
    call = step.call
    texts = (call.tool, call.result or "", call.error or "", json.dumps(call.arguments, ensure_ascii=False))
    return sum(map(len, texts))


def _close_gap(steps: list[dict[str, Any]], gap: Counter[str]) -> None:
    """Add the gap, if there is one, to the rendered steps: how many calls of which tool it has. Then empty it."""
    if not gap:
        return
    counts_by_tool = dict(gap.most_common(_MOST_NAMES))
    other_count = gap.total() - sum(counts_by_tool.values())
    steps.append({"left_out": counts_by_tool | ({"(others)": other_count} if other_count else {})})
    gap.clear()


_encode_json: Callable[[Any], str] = json.JSONEncoder(ensure_ascii=False, indent=1).encode


def _measure_item(item: Mapping[str, Any]) -> int:
    """Estimate the characters of an item in the text, with its indentation."""
    return len(json.dumps(item, ensure_ascii=False)) + 6 * len(item) + 12
