"""``adjudge calls``: collect an agent's tool calls as a data set, and show who lets through what people would stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.commands.ledger import LedgerUrl, name_option, read_time, use_ledger
from adjudge.cli.exit_status import DONE, UNDECIDED
from adjudge.cli.measurement_options import check_target, read_labels
from adjudge.cli.option_sets import Only
from adjudge.cli.output import note, print_document, print_line, show_progress, write_json
from adjudge.config.file import read_config
from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.formats.text import flatten, show

if TYPE_CHECKING:
    from adjudge.agents.run import AgentRun
    from adjudge.config.file import Config
    from adjudge.harness.observed_calls import CallCollection
    from adjudge.rules.rule import Rule


_MOST_LISTED = 10
"""Calls that the rules would have stopped, of which so many are listed at most."""


def collect(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help="The data set to write: a new .jsonl or .jsonl.gz file.")
    ],
    transcripts: Annotated[list[Path] | None, typer.Argument(metavar="TRANSCRIPT", hidden=True)] = None,
    gate: Annotated[
        str | None,
        typer.Option("--gate", metavar="NAME", help="Only calls that this gate checks; its rules are asked too."),
    ] = None,
    ledger: LedgerUrl = None,
    since: Annotated[str | None, name_option("since", "Of the ledger: from this time on.")] = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """Collect calls of tools, each with what the harness did with it: from transcripts, or from a hook's ledger.

    $ adjudge calls collect ~/.claude/projects --gate shell --out calls.jsonl

    TRANSCRIPT is a file, or a folder, of Claude Code or Codex, or anything else that `adjudge run` reads as an agent's
    run. Without one, the calls of a ledger are read whose hook observes (mode = "observe" or "enforce_when_certified");
    it has to keep what was judged: store_content = "full" under [ledger].

    Equal calls are one case. What the harness did, and what the rules said, are in its metadata, which nobody is shown
    who labels. Judge the file with `adjudge run`, label with `adjudge plan` and `adjudge label`, and see with `adjudge
    calls rates` who lets through what people would stop.

    Of a ledger the rules are those that the gate asked then; of transcripts those that the gate has now, for the tools
    that [hook] gives to it.

    Only its owner can read the file.

    Exit status: 0 written, 2 no call, or wrong usage, 3 the ledger cannot be read.
    """
    from adjudge.dataset.write import check_new_file
    from adjudge.harness.observed_calls import CallCollection, add_ledger, explain_no_calls

    _check_file_name(out)
    check_new_file(out)
    collection = CallCollection()
    with show_progress("collecting"):
        if transcripts:
            if ledger is not None or since is not None:
                raise UsageError("--ledger and --since are for the calls of a ledger; leave out the transcripts")
            asyncio.run(_collect_transcripts(collection, transcripts, gate, config))
        else:
            start_time = read_time("--since", since)
            use_ledger(ledger, config, lambda opened: add_ledger(collection, opened, gate=gate, since=start_time))
    if not collection.cases:
        raise explain_no_calls(collection.notes)
    _write_cases(collection, out)
    if as_json:
        write_json(_to_dict(collection))
    else:
        for line in _describe_collection(collection):
            print_line(line)
        for text, count in collection.notes.items():
            note(f"{text}: {count:,}")
    note(f"wrote {out}")
    return DONE


def _check_file_name(out: Path) -> None:
    if not out.name.endswith((".jsonl", ".jsonl.gz")):
        raise UsageError(f"--out is a .jsonl or .jsonl.gz file, got {show(out.name)}")


async def _collect_transcripts(
    collection: CallCollection, transcripts: list[Path], gate: str | None, config: Path | None
) -> None:
    """Add the calls in transcripts to a collection; with a gate, only those that it checks, with what its rules say."""
    from adjudge.harness.observed_calls import add_transcripts

    rules, is_checked = (None, None) if gate is None else _read_gate(gate, read_config(config))
    await add_transcripts(collection, _read_runs(collection, transcripts), rules=rules, checks=is_checked)


def _read_runs(collection: CallCollection, transcripts: list[Path]) -> Iterator[AgentRun]:
    """Yield the agents' runs in transcripts: files, and all transcripts below folders.

    A file in a folder that is no transcript is left out, and counted in the collection's notes. Raises ``UsageError``
    for a file that was named itself and is no transcript.
    """
    from adjudge.agents.read import read_run
    from adjudge.dataset.transcripts import list_transcripts

    for path in transcripts:
        if not path.is_dir():
            yield read_run(path)
            continue
        for _, case in list_transcripts(str(path), collection.notes):
            if isinstance(case, UsageError):
                collection.notes["files that are no transcript are left out"] += 1
            else:
                yield case.content


def _read_gate(gate: str, config: Config) -> tuple[tuple[Rule, ...], Callable[[str, str | None], bool]]:
    """Return the rules of a gate, and a function that tells whether [hook] has the gate check a tool of a server."""
    from adjudge.config.gates import open_gate_rules
    from adjudge.config.hook import list_tool_gates, read_hook_settings
    from adjudge.guards.tool_guard.tool_patterns import ToolPatterns

    rules = open_gate_rules(gate, config)
    patterns = ToolPatterns(list_tool_gates(read_hook_settings(config)))

    def is_checked(tool: str, server: str | None) -> bool:
        match = patterns.find(tool, server)
        return match is not None and match.value == gate

    return rules, is_checked


def _write_cases(collection: CallCollection, out: Path) -> None:
    """Write the cases of a collection to a file that only its owner may read."""
    from adjudge.dataset.write import begin_file, encode_case, open_text

    with begin_file(out, mode=0o600), open_text(out, gz=out.suffix == ".gz") as file:
        for case in collection.cases.values():
            file.write(f"{encode_case(case)}\n")


def _to_dict(collection: CallCollection) -> dict[str, Any]:
    """Describe a collection as plain data; ``calls`` counts every call, and ``cases`` equal ones once."""
    records = collection.list_records()
    return {
        "schema": "adjudge/collected-calls/1",
        "calls": sum(record.times for record in records),
        "cases": len(records),
        "harness": dict(Counter(record.outcome for record in records)),
        "rules": dict(Counter(record.rules or "not asked" for record in records)),
        "left_out": dict(collection.notes),
    }


def _describe_collection(collection: CallCollection) -> Iterator[str]:
    """Yield lines about a collection: how many calls it has, by what the harness and the rules did with them.

    The first calls that the rules would have stopped are listed.
    """
    document = _to_dict(collection)
    yield f"{document['calls']:,} calls, {document['cases']:,} different ones"
    for member, label in (("harness", "the harness"), ("rules", "rules")):
        counts = ", ".join(f"{outcome}: {count:,}" for outcome, count in sorted(document[member].items()))
        yield f"{label:<12} {counts}"
    yield from _list_stopped(collection)


def _list_stopped(collection: CallCollection) -> Iterator[str]:
    """Yield a line for each of the first calls that the rules would have stopped, with the rules that failed."""
    stopped = [
        (case, record)
        for case, record in zip(collection.cases.values(), collection.list_records(), strict=True)
        if record.rules == "failed"
    ]
    for case, record in stopped[:_MOST_LISTED]:
        rules = ", ".join(record.failed_rules)
        yield f"  {case.id[:8]}  {rules}: {flatten(content_text(case.content), 120)}"
    if len(stopped) > _MOST_LISTED:
        yield f"  and {len(stopped) - _MOST_LISTED:,} more, with metadata.call.rules = failed in the file"


def show_rates(
    run: Annotated[Path, typer.Argument(metavar="RUN", hidden=True)],
    measuring: Annotated[option.MeasureOptions, Only("labels", "labels_are")],
    as_json: option.AsJson = False,
) -> int:
    """Show how often the harness, the rules and the judge each let through what people would stop.

    $ adjudge calls rates runs/calls

    RUN is a run of calls that `adjudge calls collect` wrote, judged with `adjudge run` and labelled with `adjudge plan`
    and `adjudge label`. It also says how often each stops what people would allow, with intervals at 95 %. Where the
    run has rules of its own, they are the rules, and the judge was not asked what they stopped; judge without rules to
    measure both on every call.

    Needs the extra: pip install 'adjudge[trust]'.

    Exit status: 0 shown, 2 wrong usage, or a run without such calls, 3 the labels allow no interval.
    """
    from adjudge.measurement.call_rates import make_call_rates
    from adjudge.measurement.look_record import write_look_record
    from adjudge.runs.folder import open_run

    check_target("run", measuring.labels_are)
    labels = read_labels(measuring.labels)
    with show_progress("comparing"), open_run(run) as opened:
        rates = make_call_rates(opened, labels=labels, labels_are_random=measuring.labels_are == "random")
        write_look_record(opened, rates.draw, rates.limit, by="calls rates", labels=sum(rates.labelled.values()))
    if as_json:
        write_json(rates.to_dict())
    else:
        from adjudge.report.call_rates_document import make_call_rates_document

        print_document(make_call_rates_document(rates))
    return DONE if rates.limit is not None else UNDECIDED


calls_app = make_group(
    "calls",
    "Collect calls of tools that an agent wanted to make, and see who lets what through.",
    {"collect": collect, "rates": show_rates},
)
