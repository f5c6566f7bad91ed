"""``adjudge calibrate``: find the score from which on the judge of a run may decide alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.measurement_options import check_target, read_labels
from adjudge.cli.option_sets import Only
from adjudge.cli.output import complain, complain_once, note, print_document, show_progress, write_json
from adjudge.config.file import read_config
from adjudge.config.ledger import CommandRecorder, open_recorder
from adjudge.errors import UsageError

if TYPE_CHECKING:
    from adjudge.guards.release_policy import ReleasePolicy
    from adjudge.measurement.calibration import Calibration
    from adjudge.measurement.cascade_calibration import CascadeCalibration

EXIT_STATUSES = {"kept": DONE, "none can": FAILED, "cannot tell": UNDECIDED}
"""The exit status of each outcome of a calibration: the promise is kept, cannot be kept, or the labels cannot tell."""


def calibrate(
    promise: Annotated[
        str,
        typer.Option(
            "--promise", metavar="P", help="wrong_pass<=0.05, wrong_given_pass<=0.1; lost<=0.05 of a cascade."
        ),
    ],
    measuring: Annotated[option.MeasureOptions, Only("labels", "labels_are")],
    recording: option.LedgerOptions,
    run: Annotated[Path | None, typer.Argument(metavar="RUN", hidden=True)] = None,
    cascade: Annotated[
        tuple[Path, Path] | None,
        typer.Option("--cascade", metavar="CHEAP STRONG", help="Runs of two judges on the same cases, and no RUN."),
    ] = None,
    confidence: Annotated[
        float, typer.Option("--confidence", metavar="C", help="Share of calibrations in which the promise is kept.")
    ] = 0.95,
    write: Annotated[
        Path | None, typer.Option("--write", metavar="FILE", help="Write the threshold as a release policy, JSON.")
    ] = None,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Find from which score on the judge of a run may decide alone, so that a promise is kept.

    $ adjudge calibrate runs/monday --promise "wrong_pass<=0.05"

    RUN is a folder of `adjudge run` whose cases people labelled in random order (`adjudge label RUN`). A case is
    released if the judge passed it with at least the threshold; people decide the others. wrong_pass is the share of
    all cases that is released and wrong, wrong_given_pass the share of the released ones that is wrong. What people
    could not tell, or do not agree on, counts as wrong.

    The thresholds are fixed before any label is read. Each further look at a run is stricter, so decide beforehand how
    many labels you want. A stratified plan (`adjudge plan`) is no simple random sample, and is refused.

    With --cascade it finds from which confidence on a cheap judge may decide before a strong one is asked: `lost` is
    the share of all cases that the cheap one decides wrongly and the strong one would decide rightly. It says so where
    the cheap judge alone is better, and where a cascade does not pay.

    Needs the extra: pip install 'adjudge[trust]'.

    Exit status: 0 a threshold keeps the promise, 1 the labels show that no threshold can, 2 wrong usage or no simple
    random sample, 3 these labels cannot tell, or the ledger could not be written.
    """
    from adjudge.measurement.calibration import calibrate as find_calibration
    from adjudge.measurement.cascade_calibration import calibrate_cascade
    from adjudge.report.calibration_document import make_calibration_document, make_cascade_document

    _check_options(run, cascade, write)
    check_target("run", measuring.labels_are)
    recorder = open_recorder(read_config(config), recording.ledger, off=recording.no_ledger)
    options: dict[str, Any] = {
        "labels": read_labels(measuring.labels),
        "labels_are_random": measuring.labels_are == "random",
        "confidence": confidence,
        "by": "calibrate",
    }
    calibration: Calibration | CascadeCalibration
    with show_progress("calibrating"):
        if run is not None:
            calibration = find_calibration(run, promise, **options)
            document, policy = make_calibration_document(calibration, str(run)), calibration.policy
        else:
            cheap, strong = cascade or (Path(), Path())
            calibration = calibrate_cascade(cheap, strong, promise, **options)
            document, policy = make_cascade_document(calibration, str(cheap), str(strong)), None
    asyncio.run(_record_calibration(recorder, calibration))
    if as_json:
        write_json(calibration.to_dict())
    else:
        print_document(document)
    if write is not None:
        _write_policy(policy, write)
    complain_once(recorder.troubles)
    return UNDECIDED if recorder.troubles else EXIT_STATUSES[calibration.outcome]


def _check_options(run: Path | None, cascade: tuple[Path, Path] | None, write: Path | None) -> None:
    """Raise ``UsageError`` for options that contradict each other."""
    if (run is None) == (cascade is None):
        raise UsageError("name one RUN, or the runs of two judges with --cascade CHEAP STRONG")
    if write is not None and cascade is not None:
        raise UsageError("--write writes a release policy; of a cascade the number for escalate_below is all there is")
    if write == Path("-"):
        raise UsageError("--write writes a file, and - is standard output; name a file, or give --json")


async def _record_calibration(recorder: CommandRecorder, calibration: Calibration | CascadeCalibration) -> None:
    """Record a calibration in the ledger, and close the recorder."""
    try:
        await recorder.keep(calibration, kind="calibration", subject=calibration.contents_digest)
    finally:
        await recorder.aclose()


def _write_policy(policy: ReleasePolicy | None, path: Path) -> None:
    """Write a release policy; without one, complain, and leave the file of an earlier one as it is."""
    from adjudge.guards.release_policy import write_release_policy

    if policy is None:
        left = f"; {path} is left as it is, with an earlier policy" if path.exists() else ""
        complain(f"no policy was written, because no threshold is certified{left}")
        return
    write_release_policy(policy, path)
    note(f"wrote {path}")
