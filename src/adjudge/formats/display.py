"""The look of a result: a panel in a terminal, a table in a notebook.

A judge or an author who wants to pass wrote the texts, so they are shown as plain data: no markup is interpreted, no
control character reaches a terminal (``clean`` in ``text.py``), no character reaches HTML unescaped.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from adjudge.formats.numbers import describe_needed, format_distinct
from adjudge.formats.text import clean

if TYPE_CHECKING:
    from rich.console import RenderableType

R = TypeVar("R", bound="DrawnResult")

COLOURS = {"passed": "green", "failed": "red", "undecided": "yellow"}

SIGNS = {"passed": "✓", "failed": "✗", "undecided": "?"}


class DrawnCriterion(Protocol):
    """The drawn part of a criterion's result."""

    @property
    def name(self) -> str: ...
    @property
    def score(self) -> float | None: ...
    @property
    def passed(self) -> bool: ...
    @property
    def reasoning(self) -> str: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def rule(self) -> str | None: ...


class DrawnRule(Protocol):
    """The drawn part of a rule's result."""

    @property
    def name(self) -> str: ...
    @property
    def passed(self) -> bool: ...
    @property
    def severity(self) -> str: ...
    @property
    def message(self) -> str: ...


class DrawnResult(Protocol):
    """The drawn part of a result. A protocol, so that this module does not import the classes that it draws."""

    @property
    def outcome(self) -> str: ...
    @property
    def undecided_because(self) -> str | None: ...
    @property
    def detail(self) -> str: ...
    @property
    def decided_by(self) -> str: ...
    @property
    def score(self) -> float | None: ...
    @property
    def threshold(self) -> float | None: ...
    @property
    def criteria(self) -> Sequence[DrawnCriterion]: ...
    @property
    def rule_results(self) -> Sequence[DrawnRule]: ...
    @property
    def reasoning(self) -> str: ...
    @property
    def suggestions(self) -> Sequence[str]: ...
    @property
    def judge(self) -> str: ...
    @property
    def model(self) -> str | None: ...
    @property
    def model_requested(self) -> str | None: ...
    @property
    def model_expected(self) -> str | None: ...
    @property
    def model_differs(self) -> bool: ...
    @property
    def duration_ms(self) -> float: ...


class DrawnOrder(Protocol):
    """The drawn part of one order of a comparison."""

    @property
    def order(self) -> str: ...
    @property
    def preferred(self) -> str | None: ...
    @property
    def result(self) -> DrawnResult: ...


class DrawnPair(Protocol):
    """The drawn part of a comparison."""

    @property
    def preferred(self) -> str | None: ...
    @property
    def outcome(self) -> str: ...
    @property
    def undecided_because(self) -> str | None: ...
    @property
    def detail(self) -> str: ...
    @property
    def decided_by(self) -> str: ...
    @property
    def judge(self) -> str: ...
    @property
    def orders(self) -> Sequence[DrawnOrder]: ...
    @property
    def model_differs(self) -> bool: ...
    @property
    def duration_ms(self) -> float: ...


def find_pass_mark(criterion: DrawnCriterion) -> str | None:
    """Return ``passed`` or ``failed`` for a criterion with a score and its own threshold or a rule, else ``None``.

    Without a threshold there is nothing to reach: a ✓ beside 0.60 of a content that needed 0.80 would be read as praise
    for what made it fail. Without a score nothing was decided, so a ✗ would be as wrong.
    """
    if criterion.score is None or (criterion.threshold is None and criterion.rule is None):
        return None
    return "passed" if criterion.passed else "failed"


def describe_pass_mark(criterion: DrawnCriterion, default: str = "") -> str:
    """Return ``pass`` or ``fail`` for a criterion with a mark, and ``default`` for one without."""
    return {"passed": "pass", "failed": "fail"}.get(find_pass_mark(criterion) or "", default)


def format_criterion_score(criterion: DrawnCriterion) -> str:
    """Format a criterion's score, after ✓ or ✗ if the criterion has a mark."""
    (score, _), mark = format_criterion(criterion), find_pass_mark(criterion)
    return score if mark is None else f"{SIGNS[mark]} {score}"


def format_criterion(criterion: DrawnCriterion) -> tuple[str, str]:
    """Format a criterion's score and its threshold; the second text is empty without a threshold."""
    score, needed = format_distinct(criterion.score, criterion.threshold)
    return score, "" if criterion.threshold is None else needed


def describe_outcome(result: DrawnResult) -> str:
    """Describe an outcome with its sign, score, threshold and reason, in one line."""
    text = f"{SIGNS[result.outcome]} {result.outcome}"
    if result.undecided_because:
        text += f" ({result.undecided_because})"
    if result.score is not None:
        score, needed = describe_needed(result.score, result.threshold)
        text += f" {score}" + (f" of {needed} needed" if needed else "")
    missed = [
        criterion.name for criterion in result.criteria if criterion.threshold is not None and not criterion.passed
    ]
    text += f", below their own threshold: {clean(', '.join(missed), keep_lines=False)}" if missed else ""
    return text if result.decided_by == "judge" else f"{text}, decided by {clean(result.decided_by, keep_lines=False)}"


_MOST_NOTES = 5
"""The most sentences about other models that are shown."""


def describe_left_out(metadata: Any) -> str:
    """Describe how much of an agent's run a judge was not shown, by the counts in ``metadata["left_out"]``.

    Returns an empty text if nothing was left out.
    """
    left_out = metadata.get("left_out") if isinstance(metadata, Mapping) else None
    if not isinstance(left_out, Mapping):
        return ""
    names = [name for name in ("steps", "files", "characters") if type(left_out.get(name)) is int]
    counts = " and ".join([f"{left_out[name]:,} {name}" for name in names])
    line = f"; the judge was not shown {counts} of the run" if counts else ""
    parts = left_out.get("parts")
    return f"{line}; for {parts:,} of its parts something was left out" if type(parts) is int else line


def describe_models(result: DrawnResult | DrawnPair) -> list[str]:
    """Write a sentence for each judge that another model answered than the requested one; equal sentences once."""
    if not result.model_differs:
        return []
    sentences = list(dict.fromkeys(_list_model_changes(result)))
    omitted = len(sentences) - _MOST_NOTES
    if omitted <= 0:
        return sentences
    return [*sentences[:_MOST_NOTES], f"and {omitted} more judges were answered by other models"]


def describe_model_change(judge: str, expected: str, reported: str, *, requested: bool) -> str:
    """Write the sentence that another model answered a judge than expected.

    ``requested`` is true if the expected model was asked for, and false if it is the one that answered before.
    """
    judge_name, answered, other = [repr(clean(name, keep_lines=False)[:100]) for name in (judge, reported, expected)]
    return f"judge {judge_name}: {answered} answered, " + (f"not {other}" if requested else f"and {other} before")


def _list_model_changes(result: DrawnResult | DrawnPair) -> Iterator[str]:
    """Yield a sentence for each single judge that another model answered than expected."""
    for answer in list_answers(result):
        if answer.model_differs:
            expected = answer.model_expected or answer.model_requested or ""
            yield describe_model_change(answer.judge, expected, answer.model or "", requested=not answer.model_expected)


def list_answers(result: R | DrawnPair) -> Iterator[R]:
    """List the results of single judges that a result consists of, at any depth; for one judge, the result itself."""
    parts = [order.result for order in getattr(result, "orders", ())] or getattr(result, "results", ())
    for part in parts:
        yield from list_answers(part)
    if not parts:
        yield result  # type: ignore[misc] - a comparison has orders


def draw_result(result: DrawnResult) -> RenderableType:
    """Draw a result for a rich console."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.text import Text

    parts: list[Any] = [_draw_criteria(result)] if result.criteria else []
    for text in (result.reasoning, result.detail):
        parts += [Text(clean(text))] if text else []
    parts += [Text(f"→ {clean(suggestion)}") for suggestion in result.suggestions]
    parts += [Text(note, style="yellow") for note in describe_models(result)]
    for rule in result.rule_results:
        if not rule.passed:
            parts.append(Text(clean(f"{rule.severity}: {rule.name}: {rule.message}"), style="yellow"))
    parts += [_draw_seats(result)] if getattr(result, "results", ()) else []
    title = Text(describe_outcome(result), style=COLOURS[result.outcome])
    foot = Text(f"{clean(result.judge, keep_lines=False)} · {result.duration_ms:.0f} ms")
    return Panel(Group(*parts), title=title, subtitle=foot, title_align="left", subtitle_align="right")


def _draw_criteria(result: DrawnResult) -> RenderableType:
    """Draw a table of the criteria of a result."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name, alignment in (("criterion", "left"), ("score", "right"), ("needs", "right"), ("reasoning", "left")):
        table.add_column(name, justify=alignment)  # type: ignore[arg-type]
    for criterion in result.criteria:
        score = Text(format_criterion_score(criterion), style=COLOURS.get(find_pass_mark(criterion) or "", ""))
        _, needs = format_criterion(criterion)
        name = Text(clean(criterion.name, keep_lines=False))
        table.add_row(name, score, needs, Text(clean(criterion.reasoning)))
    return table


def _draw_seats(result: Any) -> RenderableType:
    """Draw a table of a chain's seats, each with the first 200 characters of its detail or reasoning."""
    from rich.table import Table
    from rich.text import Text

    # A ``Text``, because rich would read a string as markup, and a result may come from a file.
    title = Text(clean(f"{result.strategy}: {len(result.results)} asked", keep_lines=False))
    table = Table(title=title, title_justify="left", box=None)
    for name in ("judge", "outcome", "said"):
        table.add_column(name)
    for seat in result.results:
        colour = COLOURS[seat.outcome]
        name, reason = clean(seat.judge, keep_lines=False), clean((seat.detail or seat.reasoning)[:200])
        table.add_row(Text(name), Text(describe_outcome(seat), style=colour), Text(reason))
    return table


def render_result_html(result: DrawnResult) -> str:
    """Render a result as an HTML fragment for a notebook; no script, no style sheet, everything escaped."""
    rows = "".join(_render_row(criterion) for criterion in result.criteria[:_MOST_DRAWN])
    table = f"<table><tr><th>criterion<th>score<th>needs<th>reasoning</tr>{rows}</table>" if rows else ""
    seats = "".join(
        f"<li>{_escape_html(seat.judge)}: {_escape_html(describe_outcome(seat))}"
        for seat in getattr(result, "results", ())[:_MOST_DRAWN]
    )
    texts = (result.reasoning, result.detail, *describe_models(result))
    paragraphs = "".join(f"<p>{_escape_html(text)}</p>" for text in texts if text)
    hints = "".join(f"<li>{_escape_html(suggestion)}" for suggestion in result.suggestions[:_MOST_DRAWN])
    return (
        f"<div><p><b>{_escape_html(describe_outcome(result))}</b> · {_escape_html(result.judge)} · "
        f"{result.duration_ms:.0f} ms</p>"
        f"{table}{paragraphs}{f'<ul>{hints}</ul>' if hints else ''}{f'<ol>{seats}</ol>' if seats else ''}</div>"
    )


_PREFERRED = {"first": "✓ the first is preferred", "second": "✗ the second is preferred", "tie": "= a tie"}


def describe_preference(pair: DrawnPair) -> str:
    """Describe a preference with its sign, or why there is none, in one line."""
    if pair.preferred is None:
        return f"? undecided ({pair.undecided_because})"
    text = _PREFERRED[pair.preferred]
    return text if pair.decided_by == "judge" else f"{text}, decided by {clean(pair.decided_by, keep_lines=False)}"


def draw_pair(pair: DrawnPair) -> RenderableType:
    """Draw a comparison for a rich console: the preference, and the result of each order."""
    from rich.console import Group
    from rich.panel import Panel
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False)
    for name in ("order", "preferred", "reasoning"):
        table.add_column(name)
    for order in pair.orders:
        table.add_row(
            _name_order(order), _describe_order(order), Text(clean(order.result.reasoning or order.result.detail))
        )
    title = Text(describe_preference(pair), style=COLOURS[pair.outcome])
    foot = Text(f"{clean(pair.judge, keep_lines=False)} · {pair.duration_ms:.0f} ms")
    parts = [table, Text(clean(pair.detail)), *[Text(note, style="yellow") for note in describe_models(pair)]]
    return Panel(Group(*parts), title=title, subtitle=foot, title_align="left", subtitle_align="right")


def render_pair_html(pair: DrawnPair) -> str:
    """Render a comparison as an HTML fragment for a notebook; no script, no style sheet, everything escaped."""
    rows = "".join(
        f"<tr><td>{_name_order(order)}<td>{_escape_html(_describe_order(order))}"
        f"<td>{_escape_html(order.result.reasoning or order.result.detail)}</tr>"
        for order in pair.orders
    )
    head = f"<b>{_escape_html(describe_preference(pair))}</b> · {_escape_html(pair.judge)} · {pair.duration_ms:.0f} ms"
    table = f"<table><tr><th>order<th>preferred<th>reasoning</tr>{rows}</table>"
    paragraphs = "".join(f"<p>{_escape_html(text)}</p>" for text in (pair.detail, *describe_models(pair)))
    return f"<div><p>{head}</p>{table}{paragraphs}</div>"


def _name_order(order: DrawnOrder) -> str:
    """Name the order in which a judge saw the two texts of a comparison."""
    return "first, second" if order.order == "ab" else "second, first"


def _describe_order(order: DrawnOrder) -> str:
    """Return the text that was preferred in one order, or why none was."""
    return order.preferred or f"undecided ({order.result.undecided_because})"


def _render_row(criterion: DrawnCriterion) -> str:
    """Render a criterion as a row of the HTML table."""
    score, (_, needs) = format_criterion_score(criterion), format_criterion(criterion)
    return f"<tr><td>{_escape_html(criterion.name)}<td>{score}<td>{needs}<td>{_escape_html(criterion.reasoning)}</tr>"


_MOST_DRAWN = 100
"""The most criteria, seats and suggestions that a notebook shows."""

_MOST_CHARACTERS = 5_000
"""The most characters of a text that a notebook shows; the texts of a judge have no other limit."""


def _escape_html(text: str) -> str:
    cut = text[:_MOST_CHARACTERS] + ("…" if len(text) > _MOST_CHARACTERS else "")
    return html.escape(clean(cut), quote=True)
