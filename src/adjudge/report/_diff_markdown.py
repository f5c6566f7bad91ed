"""A ``Diff`` as Markdown, for a comment on a pull request."""

from __future__ import annotations

import re
from collections.abc import Iterator

from adjudge._display import clean
from adjudge.report._diff import CaseDiff, Diff
from adjudge.report._paired import Means

MARK = "<!-- adjudge/diff/1 -->"
"""The first line, by which a script finds its own comment to update it."""
MOST_ROWS = 50
"""Cases in the table; a comment has room for about as many."""
_LONGEST = 160

# Whatever Markdown or HTML could act on, and @, which would call people by name.
_ACTIVE = re.compile(r"[\\`*_{}\[\]()#+!|<>~&@:-]")


def write_markdown(found: Diff) -> str:
    """What changed, as tables. Ids and reasons are text in it, whatever they hold."""
    return "\n".join(_list_lines(found)) + "\n"


def write_p(value: float | None) -> str:
    """A p-value as people read it."""
    if value is None:
        return "-"
    return "< 0.0001" if value < 0.0001 else f"{value:.4f}"


def say_p(value: float | None) -> str:
    """A p-value in a sentence."""
    if value is None:
        return "no case went either way"
    return "p < 0.0001" if value < 0.0001 else f"p = {value:.4f}"


def list_facts(found: Diff) -> Iterator[tuple[str, int]]:
    """What kept cases from being compared, and how many it kept."""
    facts = (
        ("only in the earlier run", found.only_before),
        ("only in the later run", found.only_after),
        (f"with another {'reference, task or context' if found.new_contents else 'content'}", found.content_changed),
    )
    yield from ((said, number) for said, number in facts if number)


def show_score(value: float | None) -> str:
    """A score as it is shown everywhere."""
    return "-" if value is None else f"{value:.3f}"


def show_change(before: float | None, after: float | None) -> str:
    """A score before and after, once where it reads the same: an arrow is for what moved."""
    said = (show_score(before), show_score(after))
    return said[0] if said[0] == said[1] else " → ".join(said)


def show_delta(value: float | None) -> str:
    """A difference with its sign."""
    return "-" if value is None else f"{value:+.3f}"


def say_cases(number: int) -> str:
    """A number of cases, in words that fit one too."""
    return f"{number:,} case{'' if number == 1 else 's'}"


def _list_lines(found: Diff) -> Iterator[str]:
    yield MARK
    compared = f"{say_cases(found.cases)} in both runs"
    yield f"**{found.regressions:,} regressed, {found.improvements:,} improved**, of {compared}"
    yield ""
    yield f"McNemar's exact test of passed against not passed: {say_p(found.p_value)}"
    for said, number in list_facts(found):
        yield ""
        yield f"{say_cases(number)} {said}"
    yield from ("", "| before | after | cases |", "|---|---|--:|")
    for (old, new), number in found.transitions.items():
        yield f"| {old} | {new} | {number:,} |"
    yield from ("", "| mean | before | after | difference | cases | p |", "|---|--:|--:|--:|--:|--:|")
    yield _write_means("score", found.score)
    for name, means in found.criteria.items():
        yield _write_means(_escape(name), means)
    yield from _list_cases(found)


def _write_means(name: str, means: Means) -> str:
    before, after, delta = show_score(means.before), show_score(means.after), show_delta(means.delta)
    return f"| {name} | {before} | {after} | {delta} | {means.cases:,} | {write_p(means.p_value)} |"


def _list_cases(found: Diff) -> Iterator[str]:
    moved = [item for item in found.listed if item.before != item.after]
    if not moved:
        return
    rows = [("case", "before", "after", "score", "criteria", "why"), *map(_write_case, moved[:MOST_ROWS])]
    yield ""
    for number, row in enumerate(drop_empty(rows)):
        yield f"| {' | '.join(row)} |"
        if not number:
            yield f"|{'---|' * len(row)}"
    total = sum(number for (old, new), number in found.transitions.items() if old != new)
    if total > MOST_ROWS:
        yield from ("", f"{MOST_ROWS} of {total:,} cases with another outcome are shown, regressions first")


def drop_empty(rows: list[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Rows, a heading first, without the columns in which nobody has anything: the others want the width."""
    kept = [number for number in range(len(rows[0])) if any(row[number] for row in rows[1:])]
    return (tuple(row[number] for number in kept) for row in rows)


def list_criteria(item: CaseDiff) -> str:
    """The first three criteria whose score moved."""
    said = [f"{name[:30]} {show_change(old, new)}" for name, old, new in item.criteria[:3]]
    return ", ".join(said) + (f" and {len(item.criteria) - 3} more" if len(item.criteria) > 3 else "")


def _write_case(item: CaseDiff) -> tuple[str, ...]:
    scores = show_change(item.score_before, item.score_after)
    criteria = _escape(list_criteria(item))
    return (_escape(item.case), item.before, item.after, scores, criteria, _escape(item.detail))


def _escape(text: str) -> str:
    flat = clean(" ".join(text.split()), keep_lines=False)
    short = flat if len(flat) <= _LONGEST else f"{flat[: _LONGEST - 3]}..."
    return _ACTIVE.sub(lambda found: f"&#{ord(found[0])};", short)
