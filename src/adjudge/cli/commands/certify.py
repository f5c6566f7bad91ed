"""``adjudge certify``: write a signed certificate of what was measured about a judge, bound to exactly that judge."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.exit_status import DONE
from adjudge.cli.measurement_options import check_target, read_labels
from adjudge.cli.option_sets import Only
from adjudge.cli.output import note, print_line, show_progress, write_json
from adjudge.config.file import read_config
from adjudge.config.ledger import open_recorder
from adjudge.formats.numbers import format_decimal, format_points, format_range

if TYPE_CHECKING:
    from adjudge.dataset.label import Label
    from adjudge.guards.certificate.certificate import Certificate, CertifiedShare
    from adjudge.ledger.ledger import Ledger


def certify_run(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    measuring: Annotated[option.MeasureOptions, Only("labels", "labels_are")],
    recording: option.LedgerOptions,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The file to write; one that is there is replaced.")
    ] = Path("certificate.json"),
    policy: Annotated[
        Path | None,
        typer.Option("--policy", metavar="FILE", help="A release policy of the same judge, which it vouches for too."),
    ] = None,
    as_json: option.AsJson = False,
    config: option.ConfigFile = None,
) -> int:
    """Certify what was measured about the judge of a run: one file, which a gate can demand.

    $ adjudge certify runs/monday

    RUN is a finished run of `adjudge run` whose labels are a random sample of it, as `adjudge plan` and `adjudge label`
    draw them. The certificate holds the counts, the limits, who labelled, and digests of judge, rubric, prompt,
    contents and labels. It speaks of these contents and these dates, and of no others.

    It is signed with the key of [ledger] in adjudge.toml, and recorded there. Without one it is not signed, and gates
    accept it only with allow_unsigned.

    Needs the extras: pip install 'adjudge[trust,sign]'.

    Exit status: 0 written, 2 wrong usage, or a run that cannot be certified, 3 not recorded.
    """
    check_target("run", measuring.labels_are)
    configuration = read_config(config)
    recorder = open_recorder(configuration, recording.ledger, off=recording.no_ledger)
    labels = read_labels(measuring.labels)
    with show_progress("measuring"):
        certificate = asyncio.run(
            _certify(run, labels, recorder.ledger, out, policy, are_random=measuring.labels_are == "random")
        )
    if as_json:
        write_json(certificate.to_dict())
    else:
        for line in list_lines(certificate):
            print_line(line)
    note(f"wrote {out}")
    if certificate.signature is None:
        note("it is not signed: name a ledger with a key under [ledger], or gates need allow_unsigned")
    return DONE


async def _certify(
    run: Path,
    labels: tuple[Label, ...] | None,
    ledger: Ledger | None,
    out: Path,
    policy: Path | None,
    *,
    are_random: bool,
) -> Certificate:
    """Certify a run, and close the ledger, also where it cannot be certified."""
    from adjudge.measurement.certification import certify

    try:
        return await certify(
            run,
            labels=labels,
            labels_are_random=are_random,
            release_policy=policy,
            ledger=ledger,
            out=out,
            by="certify",
        )
    finally:
        if ledger is not None:
            await ledger.aclose()


def list_lines(certificate: Certificate) -> Iterator[str]:
    """Yield what a certificate says as lines of text, its statement first."""
    labels = certificate.labels
    yield certificate.statement
    yield f"good ones kept (sensitivity)   {_describe(certificate.sensitivity)}"
    yield f"bad ones caught (specificity)  {_describe(certificate.specificity)}"
    yield f"people would pass              {_describe(certificate.pass_rate)}"
    samples = {"census": "every case", "plan": "a recorded draw", "random": "a random sample, as the author says"}
    sample = samples[labels.sampling]
    yield f"labels                         {labels.settled:,} settled of {labels.labelled:,}, {sample}"
    yield f"limits hold for                {labels.looks}: {labels.because}"
    people = ", ".join(labels.people) or "the data set's own labels"
    blind = "all blind" if not labels.not_blind else f"{labels.not_blind:,} cases not known to be blind"
    yield f"labelled by                    {people} ({blind})"
    if labels.kappa is not None:
        yield f"kappa of people                {format_decimal(labels.kappa.value, 2)} on {labels.kappa.of:,} cases"
    if certificate.flips is not None:
        yield f"flipped when judged again      {certificate.flips.flipped:,} of {certificate.flips.of:,}"
    yield f"digest                         {certificate.digest}"
    yield f"signed by                      {certificate.public_key or 'nobody'}"


def _describe(share: CertifiedShare | None) -> str:
    """Describe a share in percent with its limits and the number of cases; ``None`` is one that was not measured."""
    if share is None:
        return "not measured: no such case has a label"
    limits = "no limits" if share.low is None or share.high is None else format_range(share.low, share.high)
    return f"{format_points(share.value)} % ({limits}) of {share.of:,}"
