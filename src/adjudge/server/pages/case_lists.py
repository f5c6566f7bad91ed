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
"""Characters of an id in an address; a case with a longer id is named by its position in the run."""


def link_case(run: str, case: str, place: int, values: Mapping[str, object]) -> str:
    """Write the address of a case of a run. ``values`` are the filters of the list that its reader comes from."""
    # The id is in the query and not in the path, because an id such as ".." or "a/b" would lead to another page.
    name: dict[str, object] = {"id": case} if 0 < len(case) <= _LONGEST_ID else {"place": str(place)}
    return write_address(f"/runs/{quote(run, safe='')}/case", name | dict(values))


# ---------------------------------------------------------------- of one run


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCaseFilters:
    """The filters and the order of a run's cases, as the query of an address has them."""

    outcome: str = ""
    reason: str = ""
    group: str = ""
    q: str = ""
    differ: str = ""
    """The way in which the judge and people differ on the cases; empty for no condition, as for all texts here."""
    wrong: bool = False
    split: bool = False
    order: CaseOrder = "worst"

    @property
    def values(self) -> Mapping[str, object]:
        """The members of the query of an address with these filters; the default order is empty."""
        values = asdict(self) | {"order": "" if self.order == "worst" else self.order}
        return {name: "yes" if value is True else value for name, value in values.items()}

    @property
    def is_narrowed(self) -> bool:
        """Return whether any filter is set."""
        return any(value for name, value in self.values.items() if name != "order")

    @property
    def tells_verdicts(self) -> bool:
        """Return whether it depends on the verdicts which cases are listed, or in which order."""
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
        """List the cases that match, by their positions in the run, in the order of the list.

        ``differing`` says how the judge and people differ on a case, by its position. Cases that are withheld from the
        reader come last, or are left out: being in a list of failed cases, or before another case in the order of
        scores, would tell their verdicts.
        """
        filters = self._filters
        places = list_places(run, filters)
        if self.differ:
            places = [place for place in places if differing.get(place) == self.differ]
        if not withheld:
            return places
        withheld_places = set(find_places(run, withheld))
        shown = [place for place in places if place not in withheld_places]
        if filters.tells_verdicts or self.differ:
            return shown
        if self.order == "data":  # the order of the data set tells nothing
            return places
        return [*shown, *sorted(withheld_places & set(places))]


def find_places(run: Run, cases: frozenset[str]) -> list[int]:
    """Find the positions of cases in a run by their ids."""
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
) -> RunCaseFilters:
    """Read the filters in the query of an address; an unknown order is replaced by the first."""
    return RunCaseFilters(
        outcome=choose_word(outcome, ("passed", "failed", "undecided"), ""),
        reason=reason,
        group=group,
        q=q,
        differ=differ,
        wrong=bool(wrong),
        split=bool(split),
        order=choose_word(order, ORDERS, ORDERS[0]),
    )


RunFilters = Annotated[RunCaseFilters, Depends(read_run_list)]


# ---------------------------------------------------------------- of two runs


SHOWN = ("changed", "answer", "score", "same", "all")
"""The cases of a comparison that are listed: another outcome, another answer with the same outcome, another score
alone, nothing changed, all."""

COMPARED_ORDERS = ("worst", "score", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCaseFilters:
    """The two runs of a comparison, and the filters and the order of its cases, as the query of an address has them."""

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
        """The members of the query of an address with these filters; the default order is empty."""
        return asdict(self) | {"order": "" if self.order == "worst" else self.order}

    @property
    def tells_verdicts(self) -> bool:
        """Return whether it depends on the verdicts which cases are listed, or in which order."""
        return (
            self.shown != "all" or bool(self.before or self.after or self.criterion or self.q) or self.order != "data"
        )

    def select_cases(
        self, comparison: Comparison, runs: tuple[Run, Run], withheld: frozenset[str]
    ) -> list[ComparedCase]:
        """Select the cases that match, in the order of the list.

        Cases that are withheld from the reader are left out if being in the list, or the order, would tell their
        verdicts.
        """
        cases = [case for case in comparison.cases if self._matches(case)]
        if self.q:
            # The positions of the cases that hold the words, in each of the two runs; one of them is enough.
            places_in_a, places_in_b = [set(list_places(run, CaseFilters(words=self.q, order="data"))) for run in runs]
            cases = [case for case in cases if case.places[0] in places_in_a or case.places[1] in places_in_b]
        if withheld and self.tells_verdicts:
            cases = [case for case in cases if case.change.case not in withheld]
        if self.order == "worst":
            cases.sort(key=lambda case: _KIND_RANKS[find_kind(comparison.diff, case.change if case.changed else None)])
        elif self.order == "score":
            cases.sort(key=_rank_score_change)  # the largest change first
        return cases

    def _matches(self, case: ComparedCase) -> bool:
        """Return whether a case passes all filters but the search for words."""
        change = case.change
        has_same_outcome = change.before == change.after
        matches_shown = {
            "changed": not has_same_outcome,
            "answer": has_same_outcome and change.content_changed,
            "score": has_same_outcome and case.changed,
            "same": not case.changed and not change.content_changed,
        }
        return (
            matches_shown.get(self.shown, True)
            and fits_verdict(change.before, self.before)
            and fits_verdict(change.after, self.after)
            and (not self.criterion or _has_other_score(change, self.criterion))
        )


def _has_other_score(change: CaseDiff, criterion: str) -> bool:
    """Return whether both runs scored a criterion, and with different scores."""
    return any(name == criterion and None not in (old, new) for name, old, new in change.criteria)


_KIND_RANKS = {"regressed": 0, "lost": 0, "improved": 1, "gained": 1, "outcome": 2, "score": 3, "same": 4}


def _rank_score_change(case: ComparedCase) -> float:
    """Return a sort key: the larger the change of the score, the smaller the key; 0 if a score is missing."""
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
) -> ComparedCaseFilters:
    """Read the two runs and the filters in the query of an address; an unknown word counts as left out."""
    return ComparedCaseFilters(
        a=a,
        b=b,
        show=choose_word(show, SHOWN, ""),
        before=before,
        after=after,
        criterion=criterion,
        q=q,
        order=choose_word(order, COMPARED_ORDERS, "worst"),
    )


ComparedFilters = Annotated[ComparedCaseFilters, Depends(read_compared_list)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Two runs compared, with every case: pages list and filter cases and lead from one to the next."""

    diff: Diff
    cases: Sequence[ComparedCase]
    remark: str = ""
    """The reason why people's labels are left out of the comparison; empty if they are not."""


def load_comparison(library: RunLibrary, a: str, b: str, *, measured: bool = True) -> Comparison:
    """Compare two runs, with what people said of them unless ``measured`` is false.

    Raises ``Problem`` for what cannot be compared (409) and for a run that is not here (404).
    """
    folder_a, folder_b = library.find(a), library.find(b)

    def is_finished(diff: Diff) -> bool:
        """Return whether both runs are finished, so that the comparison does not change and can be cached."""
        return diff.before.status == diff.after.status == "finished"

    def compare_cases() -> tuple[Diff, Sequence[ComparedCase]]:
        """Compare the results of both runs, without labels."""
        with library.open(a) as before, library.open(b) as after:
            return diff_cases(before, after)

    def compare() -> Comparison:
        """Compare both runs, with labels if ``measured`` is true."""
        try:
            # Cached apart from the labels, which change with every case that somebody opens to label.
            diff, cases = library.get_cached(
                ("cases", a, b),
                [folder_a, folder_b],
                compare_cases,
                can_cache=lambda diff_and_cases: is_finished(diff_and_cases[0]),
                files=RESULT_FILES,
            )
            remark = ""
            if measured:
                with library.open(a) as before, library.open(b) as after:
                    diff, remark = library.measure_diff(diff, before, after)
        except UsageError as error:
            detail = str(error).replace(f"{folder_b}", b).replace(f"{folder_a}", a)
            raise Problem(409, flatten(detail, 500), code="unreadable_run") from None
        # Names take the place of paths, which tell the user's name and where the runs are on this machine.
        runs_by_name = {
            "before": replace(diff.before, folder=a),
            "after": replace(diff.after, folder=b),
        }
        return Comparison(diff=replace(diff, **runs_by_name), cases=cases, remark=remark)

    return library.get_cached(
        ("comparison", a, b, measured),
        [folder_a, folder_b],
        compare,
        can_cache=lambda comparison: is_finished(comparison.diff),
    )
