"""The lists of cases that pages show and walk through: those of one run, and those of two runs compared."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Annotated
from urllib.parse import quote

from fastapi import Depends, Query

from adjudge.errors import UsageError
from adjudge.formats.text import flatten
from adjudge.report.diff_document import fits_verdict
from adjudge.report.diff_words import find_kind
from adjudge.report.run_diff import CaseDiff, ComparedCase, Diff, diff_cases
from adjudge.runs.case_list import ORDERS, CaseFilters, CaseOrder, list_places
from adjudge.runs.folder import Run
from adjudge.server.pages.paging import Word, choose_word, write_address
from adjudge.server.problem import Problem
from adjudge.server.run_folders import RESULT_FILES
from adjudge.server.run_library import RunLibrary

_LONGEST_ID = 300
"""Characters of an id in an address; a case with a longer one is named by its place."""


def link_case(run: str, case: str, place: int, values: Mapping[str, object]) -> str:
    """Write the address of a case of a run, with the list that its reader comes from."""
    # In the query: a path with such an id could lead elsewhere, for an id may be "..", or hold slashes.
    name: dict[str, object] = {"id": case} if 0 < len(case) <= _LONGEST_ID else {"place": str(place)}
    return write_address(f"/runs/{quote(run, safe='')}/case", name | dict(values))


# ---------------------------------------------------------------- of one run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunList:
    """The filters of a run's cases, as an address has them."""

    outcome: str = ""
    reason: str = ""
    group: str = ""
    q: str = ""
    differ: str = ""
    """The way in which the judge and people differ on them."""
    wrong: bool = False
    split: bool = False
    order: CaseOrder = "worst"

    @property
    def values(self) -> Mapping[str, object]:
        """The query of the address."""
        values = asdict(self) | {"order": "" if self.order == "worst" else self.order}
        return {name: "yes" if value is True else value for name, value in values.items()}

    @property
    def is_narrowed(self) -> bool:
        """Return whether any filter is set."""
        return any(value for name, value in self.values.items() if name != "order")

    @property
    def tells_verdicts(self) -> bool:
        """Return whether being in the list, or one's place in it, says something of a case's verdict."""
        return self._filters.tells_verdicts or bool(self.differ) or self.order != "data"

    @property
    def _filters(self) -> CaseFilters:
        """The filters that one run alone can apply: all but ``differ``, which needs another run."""
        return CaseFilters(
            outcome=self.outcome,
            reason=self.reason,
            group=self.group,
            words=self.q,
            wrong=self.wrong,
            split=self.split,
            order=self.order,
        )

    def list_places(self, run: Run, differing: Mapping[int, str], withheld: frozenset[str]) -> list[int]:
        """List the places of the cases; those that are withheld come last, or not at all.

        Being in a list of failed cases, or before another in the order of scores, would tell their verdicts.
        """
        filters = self._filters
        places = list_places(run, filters)
        if self.differ:
            places = [place for place in places if differing.get(place) == self.differ]
        if not withheld:
            return places
        hidden = set(find_places(run, withheld))
        shown = [place for place in places if place not in hidden]
        if filters.tells_verdicts or self.differ:
            return shown
        return places if self.order == "data" else [*shown, *sorted(hidden & set(places))]


def find_places(run: Run, cases: frozenset[str]) -> list[int]:
    """Find the places of cases by their ids."""
    query = "SELECT place FROM cases WHERE id IN (SELECT value FROM json_each(:ids))"
    return run.store.list_places(query, ids=json.dumps(sorted(cases)))


def read_run_list(
    *,
    outcome: Word = "",
    reason: Word = "",
    group: Word = "",
    q: Word = "",
    differ: Word = "",
    wrong: Word = "",
    split: Word = "",
    order: Word = "",
) -> RunList:
    """Read the filters of an address; an order that there is not is the first."""
    return RunList(
        outcome=choose_word(outcome, ("passed", "failed", "undecided"), ""),
        reason=reason,
        group=group,
        q=q,
        differ=differ,
        wrong=bool(wrong),
        split=bool(split),
        order=choose_word(order, ORDERS, ORDERS[0]),
    )


RunFilters = Annotated[RunList, Depends(read_run_list)]


# ---------------------------------------------------------------- of two runs


SHOWN = ("changed", "answer", "score", "same", "all")
"""The cases of a comparison that are listed: another outcome, another answer with the same outcome, another score
alone, nothing changed, all."""

COMPARED_ORDERS = ("worst", "score", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedList:
    """The filters of a comparison's cases, as an address has them, with the two runs."""

    a: str = ""
    b: str = ""
    show: str = ""
    before: str = ""
    after: str = ""
    criterion: str = ""
    q: str = ""
    order: str = "worst"

    @property
    def shown(self) -> str:
        """The cases that are listed: the changed ones, unless a filter asks about others."""
        return self.show or ("all" if self.before or self.after or self.criterion or self.q else "changed")

    @property
    def values(self) -> Mapping[str, object]:
        """The query of the address."""
        return asdict(self) | {"order": "" if self.order == "worst" else self.order}

    @property
    def tells_verdicts(self) -> bool:
        """Return whether being in the list, or one's place in it, says something of a case's verdicts."""
        return (
            self.shown != "all" or bool(self.before or self.after or self.criterion or self.q) or self.order != "data"
        )

    def select(self, compared: Compared, runs: tuple[Run, Run], withheld: frozenset[str]) -> list[ComparedCase]:
        """Select the cases, in their order; one that is withheld only where nothing tells its verdicts."""
        cases = [case for case in compared.cases if self._fits(case)]
        if self.q:
            matching = [set(list_places(run, CaseFilters(words=self.q, order="data"))) for run in runs]
            cases = [
                case
                for case in cases
                if any(place in places for place, places in zip(case.places, matching, strict=True))
            ]
        if withheld and self.tells_verdicts:
            cases = [case for case in cases if case.change.case not in withheld]
        if self.order == "worst":
            cases.sort(key=lambda case: _RANKS[find_kind(compared.diff, case.change if case.changed else None)])
        elif self.order == "score":
            cases.sort(key=_rank_move)
        return cases

    def _fits(self, case: ComparedCase) -> bool:
        """Return whether a case is in the list as it is filtered."""
        change = case.change
        same = change.before == change.after
        fits = {
            "changed": not same,
            "answer": same and change.content_changed,
            "score": same and case.changed,
            "same": not case.changed and not change.content_changed,
        }
        return (
            fits.get(self.shown, True)
            and fits_verdict(change.before, self.before)
            and fits_verdict(change.after, self.after)
            and (not self.criterion or _has_moved(change, self.criterion))
        )


def _has_moved(change: CaseDiff, criterion: str) -> bool:
    """Return whether both runs scored a criterion, and not alike."""
    return any(name == criterion and None not in (old, new) for name, old, new in change.criteria)


_RANKS = {"regressed": 0, "lost": 0, "improved": 1, "gained": 1, "outcome": 2, "score": 3, "same": 4}


def _rank_move(case: ComparedCase) -> float:
    before, after = case.change.score_before, case.change.score_after
    return -abs(after - before) if before is not None and after is not None else 0.0


def read_compared_list(
    *,
    a: Annotated[str, Query(max_length=300)] = "",
    b: Annotated[str, Query(max_length=300)] = "",
    show: Word = "",
    before: Word = "",
    after: Word = "",
    criterion: Word = "",
    q: Word = "",
    order: Word = "",
) -> ComparedList:
    """Read the filters of an address; a word that is not known counts as left out."""
    return ComparedList(
        a=a,
        b=b,
        show=choose_word(show, SHOWN, ""),
        before=before,
        after=after,
        criterion=criterion,
        q=q,
        order=choose_word(order, COMPARED_ORDERS, "worst"),
    )


ComparedFilters = Annotated[ComparedList, Depends(read_compared_list)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """Two runs compared, with every case: a difference alone has no cases, and pages list, filter and walk them."""

    diff: Diff
    cases: Sequence[ComparedCase]
    remark: str = ""
    """The reason why what people said is left out, where it is."""


def load_comparison(library: RunLibrary, a: str, b: str, *, measured: bool = True) -> Compared:
    """Compare two runs, with what people said of them unless ``measured`` is false.

    Raises ``Problem`` for what cannot be compared (409) and for a run that is not here (404).
    """
    folder_a, folder_b = library.find(a), library.find(b)

    def is_finished(diff: Diff) -> bool:
        return diff.before.status == diff.after.status == "finished"

    def compare_cases() -> tuple[Diff, Sequence[ComparedCase]]:
        with library.open(a) as before, library.open(b) as after:
            return diff_cases(before, after)

    def compare() -> Compared:
        try:
            # Apart from the labels, which change with every case that somebody opens to label.
            diff, cases = library.keep(
                ("cases", a, b),
                [folder_a, folder_b],
                compare_cases,
                lasts=lambda made: is_finished(made[0]),
                files=RESULT_FILES,
            )
            remark = ""
            if measured:
                with library.open(a) as before, library.open(b) as after:
                    diff, remark = library.measure_diff(diff, before, after)
        except UsageError as error:
            detail = str(error).replace(f"{folder_b}", b).replace(f"{folder_a}", a)
            raise Problem(409, flatten(detail, 500), code="unreadable_run") from None
        # By their names: whose machine it is and where the runs lie on it is nobody's business.
        named = {
            "before": replace(diff.before, folder=a),
            "after": replace(diff.after, folder=b),
        }
        return Compared(diff=replace(diff, **named), cases=cases, remark=remark)

    return library.keep(
        ("comparison", a, b, measured),
        [folder_a, folder_b],
        compare,
        lasts=lambda made: is_finished(made.diff),
    )
