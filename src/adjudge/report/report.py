"""The report of a run as a value: the description of the run, and the summary of its results.

It is counted in ``report_tally.py`` and ``report_tables.py``, and put into words in ``run_words.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, ClassVar

from adjudge.formats.numbers import format_points
from adjudge.formats.record import Layout, write_record
from adjudge.judges.pair_summary import PairSummary
from adjudge.measurement.measurement import Measurement
from adjudge.report.cases import ShownCase
from adjudge.report.report_tables import (
    CostSummary,
    CriterionSummary,
    GroupSummary,
    LabelSummary,
    ModelChange,
    NumberSummary,
    OwnSummary,
    RepeatSummary,
    RubricSummary,
    RuleSummary,
    SeatPair,
    SeatSummary,
)
from adjudge.report.run_diff import Diff
from adjudge.report.spread import Spread
from adjudge.trust.intervals import Share

_LONGEST = 300
"""Characters of a text of the manifest that are read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDescription:
    """The run that the report is about. A text is empty if the manifest does not have it."""

    id: str = ""
    """The id of the run."""
    status: str = "unknown"
    """``finished``, ``interrupted``, ``running``, or ``unknown``."""
    created_at: str = ""
    """The time at which it began, in UTC."""
    adjudge: str = ""
    """The version that judged."""
    dataset: str = ""
    """The name of the data set."""
    expected: int | None = None
    """Cases the data set has, or that were drawn from it, where that is known."""
    skipped: int = 0
    """Rows of the data set that could not be read and were left out."""
    judge: str = ""
    """The name of the judge."""
    models: tuple[str, ...] = ()
    """The models that were asked."""
    rubric: str = ""
    """The name of the rubric."""
    threshold: float | None = None
    """The rubric's passing threshold."""
    repeat: int = 1
    """The number of times that each case is judged."""
    sample: int | None = None
    """The number of cases that were drawn; ``None`` when all are judged."""
    command: tuple[str, ...] = ()
    """The command line that started it; empty for a run from Python."""
    paid_again: int = 0
    """Requests of batches that were sent again with ``pay_again``, so that the provider may charge for each twice."""
    paid_again_usd: float | None = None
    """At most so many dollars were charged for them that no other figure has; ``None`` where that is not known."""

    @property
    def title(self) -> str:
        """The run in a few words."""
        return " judged by ".join(filter(None, (self.dataset or "A run", self.judge)))

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def read_description(manifest: Mapping[str, Any], *, status: str = "") -> RunDescription:
    """Read the description of a run from its manifest; a member that is absent, or of another type, is left empty."""
    dataset, judge, rubric, options = [
        _read_mapping(manifest, name) for name in ("dataset", "judge", "rubric", "options")
    ]
    command = manifest.get("command")
    sample = _read_count(options, "sample")
    cases = _read_count(dataset, "cases")
    is_sampled = sample is not None and (cases is None or sample < cases)
    return RunDescription(
        id=_read_text(manifest, "id"),
        status=_read_status(status or _read_text(manifest, "status")),
        created_at=_read_text(manifest, "created_at"),
        adjudge=_read_text(_read_mapping(manifest, "versions"), "adjudge"),
        # The name and not the path: a report is handed on, and its reader needs nothing of the machine it was made on.
        dataset=_read_text(dataset, "name") or PurePath(_read_text(dataset, "path")).name,
        expected=sample if is_sampled else cases,
        skipped=_read_count(dataset, "skipped") or 0,
        judge=_read_text(judge, "name"),
        models=tuple(dict.fromkeys(_list_models(judge)))[:20],
        rubric=_read_text(rubric, "name"),
        threshold=_read_number(rubric, "passing_threshold"),
        repeat=_read_count(options, "repeat") or 1,
        sample=sample,
        command=tuple(map(str, command)) if isinstance(command, list) else (),
        paid_again=_read_count(_read_mapping(manifest, "paid_again"), "requests") or 0,
        paid_again_usd=_read_number(_read_mapping(manifest, "paid_again"), "at_most_usd"),
    )


def _read_status(status: str) -> str:
    """Return a status of a run that adjudge writes; ``unknown`` for any other text."""
    # It becomes a part of our own sentences, where nothing is escaped, so that a text of a stranger must not get there.
    return status if status in {"finished", "interrupted", "running"} else "unknown"


def _list_models(judge: Mapping[str, Any], depth: int = 0) -> list[str]:
    """List the names of the models of a judge, and of the seats of a chain, from the judge's description.

    Seats at a depth of more than 20 are ignored, because a manifest may be from anywhere.
    """
    name = _read_text(_read_mapping(judge, "model"), "name")
    models = [name] if name else []
    seats = judge.get("seats")
    if isinstance(seats, list) and depth < 20:
        for seat in seats:
            if isinstance(seat, Mapping):
                models += _list_models(seat, depth + 1)
    return models


def _read_mapping(members: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Read a member that is a mapping; empty if it is absent or of another type."""
    value = members.get(name)
    return value if isinstance(value, Mapping) else {}


def _read_text(members: Mapping[str, Any], name: str) -> str:
    """Read a member that is a text, cut to 300 characters; empty if it is absent or of another type."""
    value = members.get(name)
    return value[:_LONGEST] if isinstance(value, str) else ""


def _read_count(members: Mapping[str, Any], name: str) -> int | None:
    """Read a member that is a whole number of 0 or more; ``None`` if it is absent or something else."""
    value = members.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def _read_number(members: Mapping[str, Any], name: str) -> float | None:
    """Read a member that is a number; ``None`` if it is absent or of another type."""
    value = members.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The summary of a run; made by ``make_report``."""

    schema: ClassVar[str] = "adjudge/report/1"
    _layout: ClassVar[Layout] = Layout(
        last=("cases_shown",), omitted=("against",), computed={"cases_shown": lambda report: len(report.shown)}
    )

    about: RunDescription
    """The run: who judged what by which rubric."""
    cases: int
    """The number of cases."""
    judgements: int
    """The number of judgements; more than ``cases`` if cases are judged repeatedly."""
    outcomes: Mapping[str, int]
    """Judgements that ``passed``, ``failed`` and are ``undecided``."""
    case_outcomes: Mapping[str, int]
    """Cases by the worst of their judgements."""
    passed: Share
    """Cases that passed, of all cases. A case judged repeatedly counts by the share of its judgements that passed."""
    undecided_because: Mapping[str, int]
    """Undecided judgements by reason."""
    text_after: int
    """Replies that could not be read because text followed the answer, those before a re-ask included."""
    decided_by: Mapping[str, int]
    """Judgements by who decided."""
    scores: Spread | None
    """The scores of all judgements; ``None`` without scores."""
    threshold: float | None
    """The passing threshold, where all judgements have the same."""
    criteria: tuple[CriterionSummary, ...]
    """The lowest mean first; where cases bring their own, those of the run's rubric alone."""
    rules: tuple[RuleSummary, ...]
    """The rules, each with the number of times that it found something."""
    groups: tuple[GroupSummary, ...]
    """The lowest share first; empty when no case has a group."""
    seats: tuple[SeatSummary, ...]
    """The judges of a chain, one by one."""
    seat_pairs: tuple[SeatPair, ...]
    """The pairs of judges of a chain, each with the number of times that they differ."""
    split: Share | None
    """Judgements in which judges of the chain decided differently; ``None`` without a chain."""
    labels: LabelSummary | None
    """Agreement with labels of true and false; ``None`` without such labels."""
    numbers: NumberSummary | None
    """Agreement with labels that are numbers; ``None`` without such labels."""
    pairs: PairSummary | None
    """For comparisons: win rate, flips, and accuracy."""
    repeats: RepeatSummary | None
    """The agreement of repeated judgements; ``None`` if none were repeated."""
    cost: CostSummary
    """Tokens and dollars."""
    durations: Spread | None
    """Milliseconds for each judgement."""
    shown: tuple[ShownCase, ...] = field(repr=False)
    """At most 2,000 cases, failures first."""
    model_changes: tuple[ModelChange, ...] = ()
    """Replies of other models than were asked for."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Names beyond the report's limits (``criteria``, ``rules``, ``groups``, ``seats``, ``models``, ``rubrics``),
    counted together.
    """
    own: OwnSummary | None = None
    """The number of cases that bring their own criteria, rules or threshold; ``None`` if none does."""
    measurement: Measurement | None = None
    """The judge compared with people, if labels were given or the run was labelled."""

    @property
    def is_measured(self) -> bool:
        """Return whether the judge is compared with people: then that is the agreement to show, and to lead with."""
        return self.measurement is not None and self.measurement.labelled > 0

    rubrics: tuple[RubricSummary, ...] = ()
    """Each rubric that applied, that of most cases first; empty where every case was judged by the run's."""
    against: Diff | None = None
    """An earlier run compared with this one, without the cases; ``None`` where none was named."""

    def _repr_html_(self) -> str:
        from adjudge.formats.notebook import list_counts, render_fragment

        facts = {
            "passed": f"{format_points(self.passed.rate)} %" if self.passed.rate is not None else None,
            "undecided": list_counts(self.undecided_because) if self.undecided_because else None,
            "mean score": self.scores.mean if self.scores is not None else None,
            "dollars": None if self.cost.unknown else self.cost.known_usd,
        }
        others = [case for case in self.shown if case.outcome != "passed"]
        rows = [(case.id, case.outcome, case.worst.why) for case in others]
        title = f"{self.cases:,} cases: {list_counts(self.case_outcomes)}"
        return render_fragment(title, facts=facts, columns=("case", "outcome", "why"), rows=rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data that JSON can hold. ``cases_shown`` has at most 2,000 cases."""
        return write_record(self)
