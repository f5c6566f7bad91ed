"""The error rates of three deciders on tool calls, as a document: the harness's own approval, the rules, the judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from adjudge.formats.numbers import format_range, format_rate
from adjudge.measurement.call_rates import CallRates, CallStep, Decider, DeciderRates
from adjudge.measurement.people import describe_uncounted
from adjudge.report.document import (
    Block,
    Cell,
    Column,
    Document,
    Facts,
    Lead,
    Panel,
    Panels,
    RateRow,
    Table,
    Words,
)
from adjudge.report.measurement_panels import find_axis, list_ticks
from adjudge.report.measurement_words import format_estimate
from adjudge.templates.figures import format_count, format_share
from adjudge.trust.intervals import Estimate

_DECIDER_NAMES: dict[Decider, str] = {"harness": "the harness", "rules": "the rules", "judge": "the judge"}


def make_call_rates_document(rates: CallRates) -> Document:
    """Make the document of how often each decider wrongly lets a tool call through, or wrongly stops one."""
    return Document(
        name=("Calls of tools, judged by ", Words(text=rates.judge or "a judge"), ", and what people say of them"),
        headline="Who lets what through",
        title="Who lets what through",
        blocks=list(list_call_rates_blocks(rates)),
        foot=[
            (
                "Equal calls count once. Intervals are at 95 %: Wilson's, put together by MOVER. What waits for a "
                "person, and what a judge leaves undecided, counts as stopped."
            )
        ],
    )


def list_call_rates_blocks(rates: CallRates) -> Iterator[Block]:
    """Yield the sentence with its chart, then the tables of rates and of counts, and the facts behind them."""
    yield _make_lead(rates)
    panels = [
        Panel(title="How often each is wrong", blocks=[_make_rate_table(rates)], whole=True),
        Panel(title="All calls", blocks=[_make_call_table(rates)]),
        Panel(title="Labelled calls", blocks=[_make_label_table(rates)]),
        Panel(title="What this rests on", blocks=[Facts(pairs=list(_list_facts(rates)))], whole=True),
    ]
    yield Panels(panels=panels)


def describe_call_rates(rates: CallRates) -> str:
    """Describe which share of the calls that people would stop each decider lets through: one sentence."""
    known = [decider for decider in rates.deciders if decider.wrong_passes_of_bad.value is not None]
    if not known:
        reason = rates.because if rates.limit is None else "no labelled call is one that people would stop"
        return f"Who lets through what people would stop is not known: {reason}."
    clauses = [f"{_DECIDER_NAMES[decider.name]} {_describe_estimate(decider.wrong_passes_of_bad)}" for decider in known]
    listed = clauses[0] if len(clauses) == 1 else f"{', '.join(clauses[:-1])} and {clauses[-1]}"
    return f"Of the calls that people would stop, these let through: {listed}."


def _describe_estimate(estimate: Estimate) -> str:
    """Describe a share with its limits; one that was counted has none."""
    has_limits = estimate.value is not None and estimate.method != "counted"
    return format_estimate(estimate, share=True) if has_limits else format_rate(estimate.value)


def _make_lead(rates: CallRates) -> Lead:
    """Make the beginning of the page: the sentence, the warnings, and each decider's rate drawn on one axis."""
    rows = list(_list_rate_rows(rates))
    sentence, warnings = describe_call_rates(rates), tuple(_list_warnings(rates))
    if not rows:
        return Lead(criterion=None, sentence=sentence, warnings=warnings)
    axis = find_axis([limit for row in rows for limit in (row.low, row.high)])
    return Lead(
        criterion=None,
        sentence=sentence,
        warnings=warnings,
        rows=tuple(rows),
        axis=axis,
        ticks=tuple(list_ticks(axis)),
        about="The share of the calls that people would stop which each lets through.",
    )


def _list_rate_rows(rates: CallRates) -> Iterator[RateRow]:
    """Yield the share of calls to stop that each decider lets through, where it has limits.

    Limits that are equal are drawn and not written.
    """
    for decider in rates.deciders:
        share = decider.wrong_passes_of_bad
        if share.value is None or share.low is None or share.high is None:
            continue
        yield RateRow(
            name=_DECIDER_NAMES[decider.name],
            value=share.value,
            low=share.low,
            high=share.high,
            figure=format_rate(share.value),
            limits=format_range(share.low, share.high) if share.low < share.high else "",
            kind="judge" if decider.name == "judge" else "people",
        )


def _list_warnings(rates: CallRates) -> Iterator[str]:
    """Yield warnings of labels that do not count, of calls on which a decider's step is unknown, and of bias."""
    if rates.other_contents:
        yield f"{describe_uncounted(rates.other_contents)}."
    for decider in rates.deciders:
        unknown_calls = decider.calls["unknown"]
        if unknown_calls:
            pronoun = "their" if decider.name == "rules" else "its"
            yield (
                f"Of {format_count(unknown_calls, 'call')} it is not known what {_DECIDER_NAMES[decider.name]} did: "
                f"{pronoun} rates are about the others alone."
            )
    if rates.not_blind:
        yield (
            f"Labels of {format_count(rates.not_blind, 'call')} are not known to be blind: who sees a verdict tends to "
            "agree with it."
        )


def _make_rate_table(rates: CallRates) -> Table:
    """Make the table of the four rates of each decider."""
    columns = [
        Column(""),
        Column("wrongly let through, of all calls", "number"),
        Column("of the calls to stop", "number"),
        Column("wrongly stopped, of all calls", "number"),
        Column("of the calls to allow", "number"),
    ]
    rows: list[list[Cell]] = [
        [
            decider.name,
            *(
                _describe_estimate(share)
                for share in (
                    decider.wrong_passes,
                    decider.wrong_passes_of_bad,
                    decider.wrong_stops,
                    decider.wrong_stops_of_good,
                )
            ),
        ]
        for decider in rates.deciders
    ]
    return Table(columns=columns, rows=rows, caption="Wrong is what people would decide otherwise.")


def _make_call_table(rates: CallRates) -> Table:
    """Make the table of how many calls each decider let through and stopped."""
    columns = [Column(""), *(Column(name, "number") for name in ("lets through", "stops", "not known"))]
    rows: list[list[Cell]] = [
        [decider.name, *(f"{decider.calls[step]:,}" for step in ("passed", "stopped", "unknown"))]
        for decider in rates.deciders
    ]
    return Table(columns=columns, rows=rows, caption="All calls, labelled or not.")


def _make_label_table(rates: CallRates) -> Table:
    """Make the table of labelled calls by what each decider did and what people say."""
    columns = [Column(""), Column("did"), *(Column(name, "number") for name in ("allow", "stop", "not settled"))]
    rows: list[list[Cell]] = [
        [decider.name, step, *(f"{counts[truth]:,}" for truth in ("allow", "stop", "open"))]
        for decider in rates.deciders
        for step, counts in _list_label_counts(decider)
    ]
    return Table(columns=columns, rows=rows, caption="Labelled calls, by what people say of them.")


_STEP_WORDS: Mapping[CallStep, str] = {"passed": "lets through", "stopped": "stops", "unknown": "not known"}


def _list_label_counts(decider: DeciderRates) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield each step of a decider in words, with its labelled calls counted by what people say of them.

    Calls on which the step is unknown are left out where there are none.
    """
    for step, word in _STEP_WORDS.items():
        counts = dict(decider.labelled[step])
        if any(counts.values()) or step != "unknown":
            yield word, counts


def _list_facts(rates: CallRates) -> Iterator[tuple[str, str]]:
    """Yield the counts behind the rates, each with its name."""
    wanted = f", wanted {format_count(rates.times, 'time')}" if rates.times != rates.calls else ""
    yield "calls", f"{format_count(rates.calls, 'different one')}{wanted}"
    counts = rates.labelled
    settled = f"{counts['allow']:,} to allow, {counts['stop']:,} to stop"
    settled += f", {counts['open']:,} not settled" if counts["open"] else ""
    yield "labelled", f"{format_count(sum(counts.values()), 'call')}: {settled}"
    yield "people would stop", _describe_estimate(rates.bad)
    yield "people", ", ".join(rates.people) or "nobody"
    if rates.agreed.of:
        yield "two people say the same", format_share(rates.agreed)
    undecided = next((decider.undecided for decider in rates.deciders if decider.name == "judge"), 0)
    if undecided:
        yield "undecided by the judge", format_count(undecided, "call")
    looks = {None: "none", "count": "counted", "one look": "for one look", "every look": "for every look"}
    yield "limits", f"{looks[rates.limit]}: {rates.because}"
