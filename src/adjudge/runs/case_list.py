"""The list of a run's cases that match some filters, found by a query in SQL, so that it works for runs of any size."""

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
        """Return whether a filter is set by which the list reveals the verdicts on its cases."""
        return bool(self.outcome or self.reason or self.wrong or self.split or self.words)


def find_case(run: Run, name: str) -> str:
    """Find the id of the case with this name: the id, or the beginning of it, as a report shows it.

    A beginning has at least 12 characters, and ``…`` may follow it. If the same content is in the data set several
    times, a number at the end chooses one. Raises ``UsageError`` if several ids begin with the name. A name that no id
    begins with is returned unchanged.
    """
    if run.store.find_place(name) is not None:
        return name
    for pattern in _list_patterns(name):
        ids = run.store.list_ids(2, pattern)
        if len(ids) > 1:
            shown_ids = " and ".join(map(show, ids))
            raise UsageError(
                f"the id of several cases of {run.folder} begins with {show(name)}: {shown_ids}; give more of it"
            )
        if ids:
            return ids[0]
    return name


def _list_patterns(name: str) -> Iterator[str]:
    """Yield the patterns, for GLOB of SQLite, of the ids that a name may be the beginning of.

    The first is for an id that was made from a content: 64 hexadecimal digits, and a number for a repeated content.
    """
    digest_name = re.fullmatch(rf"(?P<digits>[0-9a-f]{{{FEWEST_NAMED},64}})…?(?P<repeat>-[0-9]+)?", name)
    if digest_name is not None:
        digits, repeat = digest_name["digits"], digest_name["repeat"] or ""
        yield f"{digits}{'[0-9a-f]' * (64 - len(digits))}{repeat}"
    beginning = name.removesuffix("…")
    if len(beginning) >= FEWEST_NAMED:
        yield re.sub(r"([*?[])", r"[\1]", beginning) + "*"  # with the special characters of GLOB escaped


def list_places(run: Run, filters: CaseFilters) -> list[int]:
    """List the places in the data set of the cases that match all filters, in the order of ``filters.order``."""
    conditions = " AND ".join(_list_conditions(filters)) or "1"
    order = "j.worst, j.score IS NULL, j.score, j.place" if filters.order == "worst" else "j.place"
    query = f"{_CASE_QUERY} WHERE {conditions} ORDER BY {order}"
    return run.store.list_places(
        query,
        outcome=_RANKS.get(filters.outcome, -1),
        reason=filters.reason,
        group=filters.group,
        words=_write_pattern(filters.words),
        # The words as JSON writes them. A search for them in the raw body quickly excludes most cases.
        written=_write_pattern(json.dumps(filters.words, ensure_ascii=False)[1:-1]),
    )


_RANKS = {"failed": 0, "undecided": 1, "passed": 2}

_CASE_QUERY = """
    WITH j AS (
        SELECT place, min(CASE outcome WHEN 'failed' THEN 0 WHEN 'undecided' THEN 1 ELSE 2 END) AS worst,
            avg(score) AS score, count(DISTINCT outcome) > 1 AS flipped
        FROM results GROUP BY place)
    SELECT j.place FROM j JOIN cases c USING (place)"""

# As text: SQLite would take a blob for its own binary form of JSON.
_JSON_TEXT = "CASE WHEN json_valid(CAST({0}.body AS TEXT)) THEN CAST({0}.body AS TEXT) END"

_CASE_JSON, _RESULT_JSON = _JSON_TEXT.format("c"), _JSON_TEXT.format("r")

_SEAT_OUTCOME_COUNT = (
    f"(SELECT count(DISTINCT json_extract(s.value, '$.outcome')) FROM json_each({_RESULT_JSON}, '$.results') s "  # noqa: S608
    "WHERE json_extract(s.value, '$.outcome') IN ('passed', 'failed'))"
)


def _list_conditions(filters: CaseFilters) -> Iterator[str]:
    """Yield a condition in SQL for each filter that is set; values from the user are parameters of the query."""
    if filters.outcome:
        yield "j.worst = :outcome"
    if filters.reason:
        yield "EXISTS (SELECT 1 FROM results r WHERE r.place = j.place AND r.because = :reason)"
    if filters.group:
        yield f"json_extract({_CASE_JSON}, '$.group') = :group"
    if filters.wrong:
        label = f"CASE json_type({_CASE_JSON}, '$.label') WHEN 'true' THEN 'passed' WHEN 'false' THEN 'failed' END"
        yield f"EXISTS (SELECT 1 FROM results r WHERE r.place = j.place AND r.outcome <> {label})"  # noqa: S608
    if filters.split:
        parts = f"{_SEAT_OUTCOME_COUNT} > 1 OR json_extract({_RESULT_JSON}, '$.flipped') = 1"
        yield f"(j.flipped OR EXISTS (SELECT 1 FROM results r WHERE r.place = j.place AND ({parts})))"  # noqa: S608
    if filters.words:
        yield f"({_make_words_condition()})"


def _make_words_condition() -> str:
    """Write the condition in SQL that the words are in the id, a text of the case, or a reason of a judge."""
    texts = "SELECT 1 FROM json_tree({}) t WHERE t.type = 'text' AND t.atom LIKE :words ESCAPE '\\'{}"
    case = texts.format(_CASE_JSON, " AND t.key <> 'schema'")
    # Only some texts of a result: the name of the judge, for example, is in all results.
    result = texts.format(_RESULT_JSON, " AND t.key IN ('reasoning', 'detail', 'message')")
    is_written = "CAST({}.body AS TEXT) LIKE :written ESCAPE '\\'"
    in_case = f"{is_written.format('c')} AND EXISTS ({case})"
    in_result = f"r.place = j.place AND {is_written.format('r')} AND EXISTS ({result})"
    exists = f"EXISTS (SELECT 1 FROM results r WHERE {in_result})"  # noqa: S608 - what is looked for is a parameter
    return f"c.id LIKE :words ESCAPE '\\' OR ({in_case}) OR {exists}"


def _write_pattern(words: str) -> str:
    """Write the pattern of ``LIKE`` that matches a text with these words in it, letter for letter."""
    escaped = words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return f"%{escaped}%"
