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
"""Cases in one file; each is in it twice, as it is in either run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedCase:
    """One case as it is in both runs."""

    before: ShownCase
    """The case in the earlier run."""
    after: ShownCase
    """The case in the later run."""
    change: CaseDiff | None
    """The change of its outcome or scores; ``None`` where they are the same."""
    differing: tuple[str, ...] = ()
    """The names of its texts that differ, also where only a part that is cut off differs."""


def pair_cases(compared: Diff, before: Run, after: Run, *, most: int = MOST_CASES) -> Iterator[PairedCase]:
    """Yield at most ``most`` cases as they are in both runs: first those in ``compared.listed``, then unchanged ones.

    Raises ``UsageError`` if ``most`` is not in 0 to 2,000.
    """
    if not 0 <= most <= MOST_CASES:
        raise UsageError(f"a diff shows 0 to {MOST_CASES} cases, and {most} were asked for", argument="most")
    changes = {change.case: change for change in compared.listed}
    for name, case_change in list(changes.items())[:most]:
        yield pair_case(name, before, after, case_change)
    room = most - len(changes)
    # If more cases changed than the diff lists, a case that is not listed may be a changed one.
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
    """Read the case with the id ``name`` from both runs; ``change`` is ``None`` where nothing changed."""
    items_before, items_after = before.read_case(name), after.read_case(name)
    case_before, case_after = items_before[0].case, items_after[0].case
    differing = tuple(text for text in TEXTS if getattr(case_before, text) != getattr(case_after, text))
    return PairedCase(
        before=make_shown_case(items_before), after=make_shown_case(items_after), change=change, differing=differing
    )
