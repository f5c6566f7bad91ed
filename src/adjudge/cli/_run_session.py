"""One ``adjudge run``: progress, interrupts, the summary at the end, and the exit status."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from adjudge import Run
from adjudge._pair_summary import PairSummary, Share
from adjudge._run import Progress, Running
from adjudge.cli._expected import Expected
from adjudge.cli._output import add_row, make_table, note, show, watch, write_json
from adjudge.errors import UsageError

DONE, MISSED, UNKNOWN, INTERRUPTED = 0, 1, 3, 130

GRACE = 5.0
"""Seconds that an interrupted run gives to what is under way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSession:
    """One run of the command."""

    running: Running
    judge: Any
    folder: Path
    as_json: bool
    fail_under: float | None
    expected: Expected | None = None
    """How many judgements there may be, where the run does not know."""

    async def go(self) -> int:
        """Judge, show what it came to, and return the exit status."""
        interrupted, done = asyncio.Event(), None
        try:
            with watch(self._describe), _catching(self.running, interrupted):
                done = await self._finish(interrupted)
        except asyncio.CancelledError:
            if not interrupted.is_set():
                raise
        finally:
            await self.judge.aclose()
        if done is None or done.status == "interrupted" or interrupted.is_set():
            self._explain_going_on(done)
            return INTERRUPTED
        if not sum(done.counts.values()):
            # Exit status 0 for nothing judged would look like a pass.
            raise UsageError("the data set holds no case, so there is nothing to judge")
        if self.as_json:
            pairs = {"pairs": done.sum_up_pairs().to_dict()} if done.compares else {}
            write_json(done.to_dict() | {"folder": str(done.folder)} | pairs)
        else:
            print_summary(done)
        return find_status(done.counts, self.fail_under)

    async def _finish(self, interrupted: asyncio.Event) -> Run | None:
        """The run at its end; ``None`` when it was interrupted before it had begun."""
        finishing, stopping = asyncio.ensure_future(self.running), asyncio.ensure_future(interrupted.wait())
        try:
            await asyncio.wait({finishing, stopping}, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait({finishing}, timeout=GRACE if interrupted.is_set() else None)
        finally:
            # Waited for: when this is left, nobody is asked any more and what was finished is in the file.
            stopping.cancel()
            finishing.cancel()
            await asyncio.wait({finishing, stopping})
        if not finishing.cancelled():
            return finishing.result()
        try:
            return await self.running
        except UsageError:  # interrupted before there was a folder
            return None

    def _describe(self) -> str:
        progress = self.running.progress
        if progress is None:
            return "reading the data set"
        guess = self.expected.number if self.expected is not None else None
        about = progress.total is None and guess is not None and guess >= progress.done
        return describe(replace(progress, total=guess), about=True) if about else describe(progress)

    def _explain_going_on(self, done: Run | None) -> None:
        kept = f"{sum(done.counts.values()):,} results are" if done is not None else "what was finished is"
        note(f"{kept} kept in {self.folder}; to go on, repeat the command with:")
        note(f"  --out {quote(str(self.folder))} --resume")


@contextmanager
def _catching(running: Running, interrupted: asyncio.Event) -> Iterator[None]:
    """A block in which the first interrupt sets the event and begins nothing more; a second cancels the program."""
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def stop() -> None:
        if interrupted.is_set() and task is not None:
            task.cancel()
            return
        running.wind_down()
        interrupted.set()
        note(f"interrupted: what is under way has {GRACE:g} seconds to finish; interrupt again to stop at once")

    caught = []
    for number in (signal.SIGINT, signal.SIGTERM):
        # Not on every platform, and not outside the main thread; asyncio's own handling then cancels at once.
        with suppress(NotImplementedError, RuntimeError, ValueError):
            loop.add_signal_handler(number, stop)
            caught.append(number)
    try:
        yield
    finally:
        for number in caught:
            loop.remove_signal_handler(number)


def describe(progress: Progress, *, about: bool = False) -> str:
    """How far a run is, in one line; ``about`` when the total is a guess."""
    said = f"judged {progress.done:,}"
    if progress.total:
        said += f" of {'about ' * about}{progress.total:,} ({100 * progress.done / progress.total:.0f} %)"
    said += f", {progress.per_second:,.1f}/s"
    left = progress.seconds_left
    said += f", {write_duration(left)} left" if left is not None else ""
    said += "; " + ", ".join(f"{number:,} {outcome}" for outcome, number in sorted(progress.outcomes.items()))
    return said + (f"; ${progress.cost_usd:,.2f}" if progress.cost_usd else "")


def write_duration(seconds: float) -> str:
    """A duration as a person reads it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def find_status(counts: Any, fail_under: float | None) -> int:
    """The exit status: whether enough passed, as far as that can be said."""
    total = sum(counts.values())
    if fail_under is None:
        return UNKNOWN if counts["undecided"] == total else DONE
    if counts["passed"] >= fail_under * total - 1e-9:
        return DONE
    # What is undecided did not pass. Whether it would have is not known, and only that keeps this from being a miss.
    could = counts["passed"] + counts["undecided"]
    return UNKNOWN if could >= fail_under * total - 1e-9 else MISSED


def print_summary(done: Run) -> None:
    """What a run came to: outcomes, reasons, score, labels, tokens and cost, and what can be done next."""
    found = done.summary
    pairs = done.sum_up_pairs() if done.compares else None
    judged = f"judgements of {found['cases']:,} cases" if pairs is None else "comparisons of pairs"
    table = make_table(f"{found['items']:,} {judged}", ("", "", ""))
    for outcome, number in (found["counts"] if pairs is None else _count_preferences(pairs)).items():
        add_row(table, outcome, f"{number:,}", f"{100 * number / found['items']:.1f} %")
    for reason, number in found["undecided_because"].items():
        add_row(table, f"  {reason}", f"{number:,}", "")
    if pairs is not None:
        _add_shares(table, pairs)
    elif found["mean_score"] is not None:
        add_row(table, "mean score", f"{found['mean_score']:.3f}", "")
    if found["labelled"] and pairs is None:
        share = f"{100 * found['agreed'] / found['labelled']:.1f} %"
        add_row(table, "agree with the label", f"{found['agreed']:,} of {found['labelled']:,}", share)
    if found["input_tokens"] is not None:
        add_row(table, "tokens", f"{found['input_tokens']:,} in", f"{found['output_tokens']:,} out")
    add_row(table, "cost", _write_cost(found), "")
    show(table)
    note(f"kept in {done.folder}; see it with: adjudge report {quote(str(done.folder))}")
    _note_what_is_missing(done)


def _count_preferences(found: PairSummary) -> dict[str, int]:
    counts = {"first is better": found.wins, "second is better": found.losses, "tie": found.ties}
    return counts | {"undecided": found.undecided}


def _add_shares(table: Any, found: PairSummary) -> None:
    shares = {"win rate of the first": found.win_rate, "orders agree": found.agreement, "orders disagree": found.flips}
    if found.labelled:
        shares |= {"agree with the label": found.accuracy, "  first shown first": found.accuracy_ab}
        shares |= {"  second shown first": found.accuracy_ba, "  in both orders": found.both_right}
    for name, share in shares.items():
        add_row(table, name, f"{share.count:,g} of {share.of:,}", _write_share(share))


def _write_share(share: Share) -> str:
    if share.rate is None or share.interval is None:
        return ""
    low, high = share.interval
    return f"{100 * share.rate:.1f} % ({100 * low:.1f} to {100 * high:.1f})"


def _note_what_is_missing(done: Run) -> None:
    budget, cut_off = done.manifest.get("budget"), done.summary["undecided_because"].get("budget", 0)
    if budget is not None:
        note(f"spent ${budget['spent']:,.4f} of the budget of ${budget['usd']:,.4f}")
    if cut_off:
        note(f"{cut_off:,} were cut off by the budget; judge them with --out, --resume and a higher --budget")
    for said in _list_remedies(done.summary["undecided_because"], quote(str(done.folder))):
        note(said)
    skipped = done.manifest["dataset"].get("skipped")
    if skipped:
        note(f"{skipped:,} of the data set's rows were skipped, because they are no cases; run.json lists them")


def _list_remedies(reasons: Any, folder: str) -> Iterator[str]:
    again = [name for name in ("error", "timeout") if reasons.get(name)]
    if again:
        number, flags = sum(reasons[name] for name in again), " ".join(f"--retry {name}" for name in again)
        said = f"{number:,} are undecided because of {' or '.join(again)}"
        yield f"{said}; judge them again with --out {folder} --resume {flags}"
    if unread := reasons.get("unparseable"):
        said = f"{unread:,} unparseable; adjudge doctor --judge says why, and whether --no-token helps"
        yield f"{said}; --out {folder} --resume --retry unparseable asks again"


def _write_cost(found: Any) -> str:
    known, unknown = found["known_cost_usd"], found["unknown_costs"]
    if not unknown:
        return "none" if not known and not found["calls"] else f"${known:,.4f}"
    return "unknown" if not known else f"${known:,.4f} and more (unknown for {unknown:,})"
