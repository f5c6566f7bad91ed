"""``adjudge certificate``: verify the certificate of a judge, for which its file is enough."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.commands.certify import list_lines
from adjudge.cli.exit_status import DONE, FAILED
from adjudge.cli.measurement_options import read_labels
from adjudge.cli.option_sets import Only
from adjudge.cli.output import complain, note, print_line, write_json
from adjudge.errors import UsageError


def verify(
    file: Annotated[Path, typer.Argument(metavar="FILE", hidden=True)],
    measuring: Annotated[option.MeasureOptions, Only("labels")],
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="PUBLIC", help="The public key to trust: hexadecimal, or a file of it."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="FOLDER", help="Compute it again from this run, and compare.")
    ] = None,
    as_json: option.AsJson = False,
) -> int:
    """Check that no bit of a certificate was changed, and who signed it; needs no ledger and no network.

    $ adjudge certificate verify certificate.json --key ledger.pub

    Without --key the signature is checked with the key that the file itself names: that shows that nothing was changed
    since, and not who made it. With --run, everything that it says is computed again from the run and its labels.

    Exit status: 0 it verifies, 1 it was changed, is not signed, or differs from the run, 2 wrong usage, or no file.
    """
    from adjudge.guards.certificate.certificate import parse_certificate
    from adjudge.guards.certificate.certificate_file import read_certificate_bytes
    from adjudge.guards.certificate.signing import find_signature_problem

    raw = read_certificate_bytes(file)
    try:
        certificate = parse_certificate(raw)
    except UsageError as error:
        complain(f"{file}: {error}")
        return FAILED
    problem = find_signature_problem(certificate, key)
    if problem is None and run is not None:
        from adjudge.measurement.certification import find_run_problem

        problem = find_run_problem(certificate, run, labels=read_labels(measuring.labels))
    if as_json:
        write_json({"schema": "adjudge/certificate-check/1", "valid": problem is None, "problem": problem,
                    "certificate": certificate.to_dict()})  # fmt: skip
    else:
        for line in list_lines(certificate):
            print_line(line)
    if problem is not None:
        complain(f"{file}: {problem}")
        return FAILED
    if key is None:
        note("nothing was changed since it was signed; give --key to see whether the key is the one that you trust")
    return DONE


certificate_app = make_group("certificate", "Verify what was certified about a judge.", {"verify": verify})
