"""``adjudge run --estimate``: estimate the requests that a run would send, and their cost."""

from __future__ import annotations

import asyncio
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from adjudge.cli.exit_status import DONE
from adjudge.cli.output import note, print_document, show_status, write_json
from adjudge.config.judges import Choice
from adjudge.dataset.dataset import Dataset
from adjudge.errors import UsageError
from adjudge.runs.estimate.kept_estimate import keep_estimate
from adjudge.runs.folder import open_run

if TYPE_CHECKING:
    # Imported where it is used, because adjudge run imports this module, and mostly estimates nothing.
    from adjudge.runs.estimate.estimate import RunEstimate
    from adjudge.runs.estimate.recorded_usage import RecordedUsage


def estimate_data(
    dataset: Dataset,
    chosen: Choice,
    arguments: dict[str, Any],
    *,
    recorded: Path | None,
    out: Path | None,
    as_json: bool,
) -> int:
    """Estimate what a run would ask and cost, print the estimate, and return the exit status.

    ``recorded`` is a run, a recording or a cache from which averages are taken. With ``out``, the estimate is kept in
    the folder of the run to come. Raises ``UsageError`` for a data set without a case.
    """
    estimate = asyncio.run(_estimate(dataset, chosen, arguments, recorded))
    if not estimate.cases:
        raise UsageError("the data set has no case, so there is nothing to judge")
    estimate_file = keep_estimate(out, estimate.to_dict()) if out is not None else None
    if as_json:
        write_json(estimate.to_dict())
        return DONE
    from adjudge.report.estimate_document import make_estimate_document

    print_document(make_estimate_document(estimate))
    if estimate_file is not None and out is not None:
        note(f"kept in {estimate_file}; the summary of the run shows it, if it is judged with --out {quote(str(out))}")
    return DONE


async def _estimate(dataset: Dataset, chosen: Choice, arguments: dict[str, Any], recorded: Path | None) -> RunEstimate:
    """Estimate a run with the chosen judge, which is closed afterwards."""
    from adjudge.runs.estimate.estimate import estimate_run

    try:
        with show_status(lambda: "counting what would be asked"):
            usage = await _read_recorded(recorded)
            return await estimate_run(dataset, chosen.judge, chosen.rubric, recorded=usage, **arguments)
    finally:
        await chosen.judge.aclose()


async def _read_recorded(recorded: Path | None) -> RecordedUsage | None:
    """Read the tokens that were used in a recording, a cache or a run; ``None`` where none is named."""
    if recorded is None:
        return None
    file_usage = _read_file_usage(recorded)
    if file_usage is not None:
        return file_usage
    from adjudge.runs.estimate.recorded_usage import read_usage

    with open_run(recorded) as run:
        return await read_usage(run)


def _read_file_usage(path: Path) -> RecordedUsage | None:
    """Read the tokens that were used in a recording or a cache; ``None`` for a folder, which is a run."""
    if not path.is_file():
        return None
    from adjudge.runs.estimate.recorded_file import read_usage_of_file

    return read_usage_of_file(path)
