"""What a command says of batches: its options, what they save, where the requests are, and how to go on without it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

from adjudge.cli.output import note
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_above_zero, check_choice, check_whole_number
from adjudge.formats.numbers import format_points
from adjudge.judges.chain import list_judges
from adjudge.models.price import find_batch_share
from adjudge.models.providers.base import HttpModel
from adjudge.models.wrapper import find_innermost
from adjudge.runs.batch.options import BatchOptions, read_recorded
from adjudge.runs.folder import MANIFEST_FILE, read_manifest
from adjudge.runs.options import Progress

if TYPE_CHECKING:
    from adjudge.runs.batch.session import BatchProgress

_BATCH_OPTIONS = ("--batch-check", "--batch-then", "--batch-size", "--batch-tokens", "--batch-poll")


def read_batch(
    folders: Sequence[Path | None], said: Mapping[str, Any], *, batch: bool, resume: bool, pay_again: bool
) -> BatchOptions | None:
    """What was said of batches; raises ``UsageError`` in the words of the command line.

    ``folders`` are those of the runs that are begun or resumed. Where one of them began by batches, all go on so.
    """
    kept = (_recall_batch(folder) for folder in folders if resume)
    before = next((options for options in kept if options is not None), None)
    given = {name: value for name, value in said.items() if value is not None}
    if not batch and before is None:
        if given or pay_again:
            named = [option_name for option_name in _BATCH_OPTIONS if option_name.removeprefix("--batch-") in given]
            raise UsageError(f"{(*named, '--pay-again')[0]} belongs to --batch")
        return None
    if pay_again and not resume:
        raise UsageError("--pay-again belongs to --resume: it sends again what an earlier process may have sent")
    check_choice("--batch-then", given.get("then", "batch"), ("batch", "live"))
    for name in ("check", "size", "tokens"):
        if name in given:
            check_whole_number(f"--batch-{name}", given[name], least=0 if name == "check" else 1)
    if "poll" in given:
        check_above_zero("--batch-poll", given["poll"])
    return replace(before or BatchOptions(), **given, pay_again=pay_again)


def _recall_batch(folder: Path | None) -> BatchOptions | None:
    """The options of the run by batches in a folder, if there is one."""
    if folder is None or not (folder / MANIFEST_FILE).exists():
        return None
    return read_recorded(read_manifest(folder)["options"].get("batch"), folder)


def list_batch_prices(judge: Any, prices: Any) -> Iterator[str]:
    """What a batch saves, of each model of which it is not half: said before anything is sent."""
    own = set(prices or ())
    met: set[str] = set()
    for leaf in list_judges(judge):
        model = find_innermost(leaf.own_model)
        if not isinstance(model, HttpModel) or model.name in met:
            continue
        met.add(model.name)
        if own & {model.name, model.model}:
            yield f"{model.name}: your own price is used, and not halved; give the price of its batches"
            continue
        share = find_batch_share(model)
        if share is None:
            yield f"{model.name}: it is not known what its batches save"
        elif share > 0.995:
            yield f"{model.name}: a batch costs as much as asking live"
        elif share > 0.505:
            yield f"{model.name}: a batch costs {format_points(share, digits=0)} % of asking live, and not half"


def describe_batches(found: BatchProgress) -> str:
    """Where the requests of a run by batches are, in a few words."""
    from adjudge.runs.batch.store import OPEN

    if found.checking:
        return "; the first cases are judged live"
    under_way = sum(number for state, number in found.requests.items() if state in OPEN)
    parts = [f"{found.unsent:,} to send"] if found.unsent else []
    if found.batches:
        one = "batch" if found.batches == 1 else "batches"
        done = f", {found.done:,} answered" if found.done else ""
        parts.append(f"{under_way:,} in {found.batches:,} {one}{done}")
    if doubtful := found.requests.get("doubtful"):
        parts.append(f"{doubtful:,} doubtful")
    back = sum(found.requests.get(state, 0) for state in ("reply", "again", "never"))
    parts += [f"{back:,} collected"] if back else []
    return f"; by batch: {', '.join(parts) or 'nothing yet'}"


def note_batches_left(progress: Progress | None, folder: Path) -> None:
    """Say what can be done about the batches that an interrupted run leaves at its providers, if it does."""
    if progress is None or progress.batch is None or not progress.batch.batches:
        return
    number = progress.batch.batches
    going = "batch goes on at its provider" if number == 1 else "batches go on at their providers"
    note(f"{number:,} {going}, and what they answer is paid for")
    note(f"  adjudge batch collect {quote(str(folder))}    keeps what has come back")
    note(f"  adjudge batch cancel {quote(str(folder))}     ends what has not been answered")
