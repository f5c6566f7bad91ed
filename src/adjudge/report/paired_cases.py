"""The cases of two runs side by side, for a page that shows both."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from adjudge.errors import UsageError
from adjudge.report.case_blocks import TEXTS
from adjudge.report.cases import ShownCase, make_shown_case
from adjudge.report.run_diff import CaseDiff, Diff, join_runs
from adjudge.runs.folder import Run

MOST_CASES = 2_000
"""Cases in one file; each is there twice, with all that was said of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCase:
    """One case as it is in both runs."""

    before: ShownCase
    after: ShownCase
    change: CaseDiff | None
    """``None`` where it came out as before."""
    differing: tuple[str, ...] = ()
    """The names of its texts that differ, also where only a part that is cut off differs."""


def pair_cases(compared: Diff, before: Run, after: Run, *, most: int = MOST_CASES) -> Iterator[PairedCase]:
    """Yield the compared cases as they are in both runs: ``compared.listed``, then those that came out as before.

    Raises ``UsageError``.
    """
    if not 0 <= most <= MOST_CASES:
        raise UsageError(f"a diff shows 0 to {MOST_CASES} cases, and {most} were asked for", argument="most")
    changes = {change.case: change for change in compared.listed}
    for name, case_change in list(changes.items())[:most]:
        yield pair_case(name, before, after, case_change)
    room = most - len(changes)
    # Where more changed than are listed, what is not listed need not be as before.
    if room <= 0 or compared.changed > len(changes):
        return
    for joined in join_runs(before, after):
        if not joined.is_comparable or joined.case in changes:
            continue
        yield pair_case(joined.case, before, after, None)
        room -= 1
        if not room:
            return


def pair_case(name: str, before: Run, after: Run, change: CaseDiff | None) -> PairedCase:
    """Read one case as it is in both runs; ``change`` is ``None`` where it came out as before."""
    first, second = before.read_case(name), after.read_case(name)
    old, new = first[0].case, second[0].case
    differing = tuple(part for part in TEXTS if getattr(old, part) != getattr(new, part))
    return PairedCase(before=make_shown_case(first), after=make_shown_case(second), change=change, differing=differing)
