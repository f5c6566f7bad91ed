"""``adjudge agree``: measure how well a judge agrees with people, and what people would pass."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.exit_status import DONE, UNDECIDED
from adjudge.cli.measurement_options import check_target, read_labels, read_limits
from adjudge.cli.option_sets import Only
from adjudge.cli.output import note, print_document, print_line, show_progress, write_file, write_json
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number

if TYPE_CHECKING:
    from adjudge.measurement.measurement import Measurement

_LISTED = 10
"""Disagreements of each sort that are shown without ``--top``."""

_MOST_LISTED = 2_000
"""Disagreements of each sort that a measurement keeps at most."""


def agree(
    source: Annotated[Path, typer.Argument(metavar="RUN|FILE", hidden=True)],
    measuring: Annotated[option.MeasureOptions, Only("labels_are", "target", "limits")],
    labels: option.LabelFiles = None,
    criterion: Annotated[
        str | None, typer.Option("--criterion", metavar="NAME", help="Compare this criterion instead of the whole.")
    ] = None,
    by: Annotated[
        str | None,
        typer.Option("--by", metavar="FIELD", help="Compare kinds of cases: group, or a key of the metadata."),
    ] = None,
    judge: Annotated[
        str | None, typer.Option("--judge", metavar="NAME", help="Of a FILE: the rater who is the judge.")
    ] = None,
    alternative: Annotated[
        bool, typer.Option("--alternative", help="Make the alternative annotator test: may the judge replace people?")
    ] = False,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", metavar="E", help="Its handicap; 0.2 for experts, 0.1 for a crowd.")
    ] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write one HTML file, to read.")] = None,
    markdown: Annotated[bool, typer.Option("--markdown", help="Write Markdown, for a pull request.")] = False,
    as_json: option.AsJson = False,
    top: Annotated[
        int | None, typer.Option("--top", metavar="N", help="How many disagreements of each sort to list.")
    ] = None,
) -> int:
    """Measure a judge against people: what it catches, what it keeps, and what people would pass.

    $ adjudge agree runs/monday

    RUN is a folder of `adjudge run`. Without --labels it is compared with the labels of `adjudge label RUN`, and with
    those in its data set. FILE is a file of labels in which a row of the kind "model" is a verdict, or a data set of
    which --judge names the rater who is the judge.

    The rate that people would pass is given where the labels allow it: if they were drawn from this run (by
    `adjudge plan` or `adjudge label`, or as --labels-are random says), nothing has to be assumed about the judge.

    Needs the extra: pip install 'adjudge[trust]'.

    Exit status: 0 measured, 2 wrong usage, no run or unreadable labels, 3 no judged case has a label.
    """
    _check(html, top, epsilon, as_json=as_json, markdown=markdown, alternative=alternative)
    check_target(measuring.target, measuring.labels_are)
    interval_method = read_limits(measuring.limits)
    most_disagreements = _MOST_LISTED if top is None else top
    with show_progress("comparing"):
        handicap = {} if epsilon is None else {"epsilon": epsilon}
        options = {"criterion": criterion, "by": by, "target": measuring.target, "alternative": alternative, **handicap}
        options |= {
            "labels_are_random": measuring.labels_are == "random",
            "limits": interval_method,
            "most_disagreements": min(most_disagreements, _MOST_LISTED),
        }
        measurements = _measure(source, labels, judge, **options)
    if html is not None:
        from adjudge.report.render import render_measurement_html

        write_file(html, [render_measurement_html(measurements)])
    if as_json:
        write_json(measurements[0].to_dict() if len(measurements) == 1 else _gather(measurements))
    elif markdown:
        from adjudge.report.render import render_measurement_markdown

        print_line(render_measurement_markdown(measurements, most=_LISTED if top is None else top).rstrip("\n"))
    else:
        from adjudge.report.measurement_document import make_measurement_document

        document = make_measurement_document(measurements, top=_LISTED if top is None else top)
        print_document(document, more="--top shows more, --html FILE those to read")
    if not any(measurement.labelled for measurement in measurements):
        note("no judged case has a label; label some (adjudge label RUN), or name a file (--labels FILE)")
        return UNDECIDED
    return DONE


def _check(
    html: Path | None, top: int | None, epsilon: float | None, *, as_json: bool, markdown: bool, alternative: bool
) -> None:
    """Raise ``UsageError`` for options that have a wrong value or contradict each other."""
    if as_json and markdown:
        raise UsageError("give --json or --markdown, not both")
    if html == Path("-"):
        raise UsageError("--html writes a file, and - is standard output; name a file")
    if top is not None:
        check_whole_number("top", top, least=0, most=_MOST_LISTED)
    if epsilon is not None and not alternative:
        raise UsageError("--epsilon is the handicap of --alternative; give both, or leave it out")


def _measure(source: Path, labels: list[Path] | None, judge: str | None, **options: object) -> tuple[Measurement, ...]:
    """Measure the judge of a run, or the judges whose verdicts are in a file, with the options of the measurement.

    That somebody looked at a run's measurement is recorded in its folder. Raises ``UsageError`` for ``--judge`` with a
    run.
    """
    from adjudge.measurement.decision import record_look
    from adjudge.measurement.measure import make_measurement
    from adjudge.measurement.verdict_file import measure_file
    from adjudge.runs.folder import open_run

    people_labels = read_labels(labels)
    if source.is_dir():
        if judge is not None:
            raise UsageError("--judge is for a FILE: the verdicts of a run are those of its own judge; leave it out")
        with open_run(source) as run:
            measurement = make_measurement(run, labels=people_labels, **options)  # type: ignore[arg-type] - checked by name
            record_look(run, measurement, by="agree")
        return (measurement,)
    return measure_file(source, judge=judge, labels=people_labels or (), **options)  # type: ignore[arg-type] - checked by name


def _gather(measurements: Sequence[Measurement]) -> dict[str, object]:
    """Return the measurements of several judges as one JSON document."""
    return {"schema": "adjudge/measurements/1", "measurements": [measurement.to_dict() for measurement in measurements]}
