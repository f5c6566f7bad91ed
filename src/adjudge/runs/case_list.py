"""The cases of a run that somebody wants to read, and their order: a query, so that no run is too long for it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from adjudge.dataset.case_ids import FEWEST_NAMED
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.runs.folder import Run

CaseOrder = Literal["worst", "data"]
"""``worst``: failed, undecided, passed, and within each the lowest scores first. ``data``: as in the data set."""

ORDERS: tuple[CaseOrder, ...] = ("worst", "data")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseFilters:
    """The cases to list; an empty filter lets all through."""

    outcome: str = ""
    """The worst of a case's judgements."""
    reason: str = ""
    """The reason why one of them is undecided."""
    group: str = ""
    words: str = ""
    """A text that the id, one of the texts of the case, or a judge's reason holds, in any case of ASCII letters."""
    wrong: bool = False
    """True for cases whose label in the data set says otherwise than the judge."""
    split: bool = False
    """True for cases on which judges of a chain, the orders of a pair or repeated judgements differ."""
    order: CaseOrder = "worst"

    @property
    def tells_verdicts(self) -> bool:
        """Return whether being in the list says something of a case's verdict."""
        return bool(self.outcome or self.reason or self.wrong or self.split or self.words)


def find_case(run: Run, name: str) -> str:
    """Find the id of the case that somebody names by it, or by its beginning as a report shows that.

    A beginning has at least 12 characters, and ``…`` may follow it. Of the repeats of a content, the number at the end
    chooses one. Raises ``UsageError`` where several ids begin so; what no id begins with is returned as it is.
    """
    if run.store.find_place(name) is not None:
        return name
    for pattern in _list_patterns(name):
        ids = run.store.list_ids(2, pattern)
        if len(ids) > 1:
            some = " and ".join(map(show, ids))
            raise UsageError(
                f"the id of several cases of {run.folder} begins with {show(name)}: {some}; give more of it"
            )
        if ids:
            return ids[0]
    return name


def _list_patterns(name: str) -> Iterator[str]:
    """Yield what an id looks like that somebody names so, for GLOB of SQLite: first one made from a content."""
    shown = re.fullmatch(rf"(?P<digits>[0-9a-f]{{{FEWEST_NAMED},64}})…?(?P<repeat>-[0-9]+)?", name)
    if shown is not None:
        digits, repeat = shown["digits"], shown["repeat"] or ""
        yield f"{digits}{'[0-9a-f]' * (64 - len(digits))}{repeat}"
    beginning = name.removesuffix("…")
    if len(beginning) >= FEWEST_NAMED:
        yield re.sub(r"([*?[])", r"[\1]", beginning) + "*"


def list_places(run: Run, filters: CaseFilters) -> list[int]:
    """List the places of the cases that match all filters, in their order; memory grows by some bytes for each."""
    conditions = " AND ".join(_list_conditions(filters)) or "1"
    order = "j.worst, j.score IS NULL, j.score, j.place" if filters.order == "worst" else "j.place"
    query = f"{_JUDGED} WHERE {conditions} ORDER BY {order}"
    return run.store.list_places(
        query,
        outcome=_RANKS.get(filters.outcome, -1),
        reason=filters.reason,
        group=filters.group,
        words=_write_pattern(filters.words),
        # As it is written in the body: quickly tells most cases that cannot hold it, before their texts are read.
        written=_write_pattern(json.dumps(filters.words, ensure_ascii=False)[1:-1]),
    )


_RANKS = {"failed": 0, "undecided": 1, "passed": 2}

_JUDGED = """
    WITH j AS (
        SELECT place, min(CASE outcome WHEN 'failed' THEN 0 WHEN 'undecided' THEN 1 ELSE 2 END) AS worst,
            avg(score) AS score, count(DISTINCT outcome) > 1 AS flipped
        FROM results GROUP BY place)
    SELECT j.place FROM j JOIN cases c USING (place)"""

# As text: SQLite would take a blob for its own binary form of JSON.
_TEXT = "CASE WHEN json_valid(CAST({0}.body AS TEXT)) THEN CAST({0}.body AS TEXT) END"

_CASE, _RESULT = _TEXT.format("c"), _TEXT.format("r")

_OUTCOMES_OF_SEATS = (
    f"(SELECT count(DISTINCT json_extract(s.value, '$.outcome')) FROM json_each({_RESULT}, '$.results') s "  # noqa: S608
    "WHERE json_extract(s.value, '$.outcome') IN ('passed', 'failed'))"
)


def _list_conditions(filters: CaseFilters) -> Iterator[str]:
    """Yield a condition for each filter; what somebody typed is a parameter of the query, and never a part of it."""
    if filters.outcome:
        yield "j.worst = :outcome"
    if filters.reason:
        yield "EXISTS (SELECT 1 FROM results r WHERE r.place = j.place AND r.because = :reason)"
    if filters.group:
        yield f"json_extract({_CASE}, '$.group') = :group"
    if filters.wrong:
        label = f"CASE json_type({_CASE}, '$.label') WHEN 'true' THEN 'passed' WHEN 'false' THEN 'failed' END"
        yield f"EXISTS (SELECT 1 FROM results r WHERE r.place = j.place AND r.outcome <> {label})"  # noqa: S608
    if filters.split:
        parts = f"{_OUTCOMES_OF_SEATS} > 1 OR json_extract({_RESULT}, '$.flipped') = 1"
        yield f"(j.flipped OR EXISTS (SELECT 1 FROM results r WHERE r.place = j.place AND ({parts})))"  # noqa: S608
    if filters.words:
        yield f"({_make_search()})"


def _make_search() -> str:
    """The condition that an id, a text of a case or a reason holds the words."""
    texts = "SELECT 1 FROM json_tree({}) t WHERE t.type = 'text' AND t.atom LIKE :words ESCAPE '\\'{}"
    case = texts.format(_CASE, " AND t.key <> 'schema'")
    # Not every text of a result: the name of the judge would be found in all.
    result = texts.format(_RESULT, " AND t.key IN ('reasoning', 'detail', 'message')")
    is_written = "CAST({}.body AS TEXT) LIKE :written ESCAPE '\\'"
    in_case = f"{is_written.format('c')} AND EXISTS ({case})"
    in_result = f"r.place = j.place AND {is_written.format('r')} AND EXISTS ({result})"
    exists = f"EXISTS (SELECT 1 FROM results r WHERE {in_result})"  # noqa: S608 - what is looked for is a parameter
    return f"c.id LIKE :words ESCAPE '\\' OR ({in_case}) OR {exists}"


def _write_pattern(words: str) -> str:
    """Write the pattern of ``LIKE`` that matches a text with these words in it, letter for letter."""
    escaped = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
