"""``adjudge tools``: review forged tools, check their outputs, and manage those that are kept beside a ledger.

Whether a candidate is good enough is decided in ``tools/review.py`` (``EmergentJudge``), and whether a tool rises a
tier in ``tools/promotion.py`` (``find_promotion_obstacle``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from adjudge.cli import options as option
from adjudge.cli.command_groups import make_group
from adjudge.cli.commands.ledger import LedgerPlace, Place, find_user, use_ledger
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED, USAGE
from adjudge.cli.input import InputItem, list_inputs, read_text_file
from adjudge.cli.judging import make_panel
from adjudge.cli.option_sets import Only
from adjudge.cli.output import (
    add_row,
    complain_once,
    make_table,
    note,
    print_line,
    show_drawing,
    show_progress,
    write_json,
)
from adjudge.cli.results import name_item
from adjudge.cli.spelling import spell
from adjudge.concurrency import map_concurrently
from adjudge.config.file import read_config
from adjudge.config.judges import choose
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.numbers import format_score
from adjudge.formats.text import flatten

if TYPE_CHECKING:
    from adjudge.ledger.ledger import Ledger
    from adjudge.result import CriterionResult
    from adjudge.tools.promotion import Promotion
    from adjudge.tools.record import ToolRecord
    from adjudge.tools.registry import ToolRegistry
    from adjudge.tools.verdict import CreationVerdict, ReuseVerdict, ToolReviewVerdict


Candidates = Annotated[list[str], typer.Argument(metavar="CANDIDATE", hidden=True)]

PanelOptions = Annotated[option.JudgeOptions, Only("judges", "strategy", "timeout", "quorum", "no_token", "record")]
"""The reviewers of a tool."""

Reviewed = tuple[InputItem, "CreationVerdict | None"]
"""A file and the verdict on what it holds; ``None`` where it could not be read, and the item says why."""


def review(
    paths: Candidates,
    judging: PanelOptions,
    as_json: option.AsJson = False,
    concurrency: option.Concurrency = 8,
    config: option.ConfigFile = None,
) -> int:
    """Review forged tools: safe, correct, deterministic and bounded?

    $ adjudge tools review add.yaml --judge openai:gpt-6.1-terra

    CANDIDATE is a file of schema adjudge/tool-candidate/1 in YAML, JSON or TOML: name, description, schemas, mode,
    source or steps, and recorded tests. Nothing in it is run. Recorded tests, expected outputs and schemas are
    checked in code first; a candidate that fails there is rejected without asking a judge.

    Exit status: 0 approved, 1 rejected, 2 wrong usage or unreadable file, 3 undecided, so not approved. Of
    several files, 2 beats 1 beats 3 beats 0.
    """
    check_whole_number("concurrency", concurrency, least=1)
    items = [_read_candidate(path) for path in paths]
    done: list[Reviewed] = [(item, None) for item in items]
    if any(item.error is None for item in items):  # else no judge is needed to say what is wrong
        chosen = choose(make_panel(judging), read_config(config))
        if chosen.reason and not as_json:
            note(f"reviewing with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
        done = asyncio.run(_review_all(chosen.judge, items, concurrency))
    (_write_reviewed if as_json else _print_reviewed)(done)
    complain_once(item.error for item, _ in done if item.error is not None)
    return find_status([verdict for _, verdict in done])


def find_status(verdicts: Sequence[CreationVerdict | None]) -> int:
    """The exit status of several files: unreadable beats rejected beats undecided beats approved."""
    if any(verdict is None for verdict in verdicts):
        return USAGE
    refused = [verdict for verdict in verdicts if verdict is not None and not verdict.approved]
    if any(not _is_undecided(verdict) for verdict in refused):
        return FAILED
    return UNDECIDED if refused else DONE


def _is_undecided(verdict: CreationVerdict) -> bool:
    return verdict.chain_result is not None and verdict.chain_result.outcome != "failed"


async def _review_all(judge: Any, items: Sequence[InputItem], concurrency: int) -> list[Reviewed]:
    """Review all candidates, several at once; ``None`` beside one that could not be read."""
    from adjudge.tools.review import EmergentJudge

    reviewer = EmergentJudge(judge)

    async def work(item: InputItem) -> Reviewed:
        try:
            return item, await reviewer.review_creation(item.content) if item.error is None else None
        finally:
            progress.step()

    try:
        with show_progress("reviewed", len(items)) as progress:
            return await map_concurrently(items, work, concurrency, give_up=_leave_out)
    finally:
        await reviewer.aclose()


def _leave_out(item: InputItem) -> Reviewed:
    """Say of a file that no verdict came."""
    return replace(item, error=item.error or f"{item.label}: the review ended without a verdict; run it again"), None


def _read_candidate(path: str) -> InputItem:
    """Read a candidate from a file; an item that says why where it cannot be read."""
    from adjudge.tools.file import load_candidate

    try:
        return InputItem(name=path, content=load_candidate(path))
    except UsageError as error:
        return InputItem(name=path, error=spell(error))


def _write_reviewed(done: Sequence[Reviewed]) -> None:
    """Write the verdicts as JSON; a single one by itself, and nothing where its file could not be read."""
    entries = [
        name_item(item) | (verdict.to_dict() if verdict is not None else {"error": item.error})
        for item, verdict in done
    ]
    if len(entries) > 1:
        write_json({"schema": "adjudge/creation-verdicts/1", "verdicts": entries})
        return
    _, only_verdict = done[0]
    if only_verdict is not None:
        write_json(entries[0])


def _print_reviewed(done: Sequence[Reviewed]) -> None:
    for item, verdict in done:
        if verdict is not None:
            explanation = _explain_creation(verdict)
            print_line(explanation if len(done) == 1 else f"{item.label}: {explanation}")


def _explain_creation(verdict: CreationVerdict) -> str:
    """The verdict on one line, whatever a judge wrote."""
    word = "approved" if verdict.approved else "undecided" if _is_undecided(verdict) else "rejected"
    result = verdict.chain_result
    if result is None and verdict.reasoning.startswith(word):  # nobody was asked, and the words are ours
        return " ".join(verdict.reasoning.split())
    marks = ""
    if result is not None and result.value is not None:
        low = [_describe_reason(criterion) for criterion in result.criteria if not criterion.passed]
        marks = f" with confidence {format_score(verdict.confidence)}" + (f", not {', '.join(low)}" if low else "")
    return f"{word}{marks}: {' '.join(verdict.reasoning.split())}"


def _describe_reason(criterion: CriterionResult) -> str:
    """A dimension that did not pass, and what the reviewer found there."""
    reason = flatten(criterion.reasoning, 200)
    return f"{criterion.name} ({reason})" if reason else criterion.name


T = TypeVar("T")


Id = Annotated[str, typer.Argument(metavar="ID", hidden=True)]

By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides.  [default: the user of this machine]")
]


def _make_option(name: str, metavar: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=what)


def list_tools(
    ledger: Place = None,
    tier: Annotated[str | None, _make_option("tier", "TIER", "Only of this tier: session, agent or shared.")] = None,
    status: Annotated[str | None, _make_option("status", "S", "Only active, unreviewed or demoted.")] = None,
    agent: Annotated[str | None, _make_option("agent", "A", "Only of this agent.")] = None,
    session: Annotated[str | None, _make_option("session", "S", "Only of this session, by its whole name.")] = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """List tools in the order in which they were registered.

    $ adjudge tools list
    """
    filters: dict[str, Any] = {"tier": tier, "status": status, "agent": agent, "session": session}
    records = _run_with_registry(ledger, config, lambda registry: registry.list(**filters))
    if as_json:
        write_json({"schema": "adjudge/tool-records/1", "tools": [record.to_dict() for record in records]})
        return
    if not records:
        note("no tools")
        return
    table = make_table("", ("id", "name", "tier", "status", "uses", "succeeded", "agent", "session"))
    for record in records:
        tool = record.tool
        add_row(
            table, record.id, record.name, record.tier, record.status, *_format_usage(record), tool.agent, tool.session
        )
    show_drawing(table)


def show_tool(
    ident: Id, ledger: Place = None, config: option.ConfigFile = None, as_json: option.AsJson = False
) -> None:
    """Show one tool, and what reviewers said about it.

    $ adjudge tools show 3f9a

    ID is what `adjudge tools list` shows.
    """
    record = _run_with_registry(ledger, config, lambda registry: registry.get(ident))
    if as_json:
        write_json(record.to_dict())
        return
    candidate, (uses, rate) = record.tool.candidate, _format_usage(record)
    lines = {"id": record.id, "name": record.name, "tier": record.tier, "status": record.status}
    lines |= {"reason": record.reason, "approved by": record.approved_by, "agent": record.tool.agent}
    lines |= {"session": record.tool.session, "uses": f"{uses}, {rate} succeeded", "refusals": record.cooling.refusals}
    lines |= {"digest": record.digest, "mode": candidate.mode, "allowlist": ", ".join(candidate.allowlist)}
    lines |= {"description": candidate.description}
    for name, value in lines.items():
        # On one line each: a description of several could pass for further fields.
        print_line(f"{name:<13}{' '.join(str(value).split()) if value not in (None, '') else '-'}")
    for verdict in record.tool.current_verdicts:
        print_line(f"{'verdict':<13}{_explain(verdict)}")
    print_line("source")
    print_line("\n".join(f"    {line}" for line in candidate.source.splitlines()) or "    -")


def promote_tool(
    ident: Id,
    judging: PanelOptions,
    to: Annotated[
        str, _make_option("to", "TIER", "The tier to rise to, agent or shared: always the next one.")
    ] = "agent",
    by: By = None,
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> int:
    """Have a panel review a tool, and promote it one tier if both reviewers approve.

    $ adjudge tools promote 3f9a --judge openai:gpt-6.1-terra

    ID is what `adjudge tools list` shows. Two reviewers are asked, for safety and for correctness. They are asked only
    after 5 uses of which 0.8 succeeded, and not during the cool-down after a refusal. The person who shares a tool is
    recorded as having approved it.

    Exit status: 0 promoted, or of that tier already; 1 refused; 2 wrong usage, a tool that does not run, or a cap;
    3 undecided, so not promoted, or under review elsewhere.
    """
    from adjudge.tools.review import EmergentJudge

    chosen = choose(make_panel(judging), read_config(place.config))
    if chosen.reason and not as_json:
        note(f"reviewing with {chosen.judge.name}, because {chosen.reason}; name another with --judge")

    async def work(registry: ToolRegistry) -> Promotion:
        judge, name = EmergentJudge(chosen.judge), by if by is not None else find_user()
        try:
            return await registry.promote(ident, judge, to=to, approved_by=name)  # type: ignore[arg-type]
        finally:
            await judge.aclose()

    done = _run_with_registry(place.ledger, place.config, work, key=place.key, writes=True)
    if as_json:
        _write_promotion(done)
    elif done:
        print_line(f"promoted to {to}")
    else:
        print_line(f"not promoted ({done.because}): {' '.join(done.detail.split())}")
    return _find_status(done)


def demote_tool(
    ident: Id,
    reason: Annotated[str, _make_option("reason", "TEXT", "Why; it is recorded as it is.")],
    by: By = None,
    *,
    place: LedgerPlace,
    as_json: option.AsJson = False,
) -> None:
    """Take a tool out of use, at once and everywhere.

    $ adjudge tools demote 3f9a --reason "It rounds wrongly."

    ID is what `adjudge tools list` shows. From now on, a new tool with the same digest is refused.
    """
    name = by if by is not None else find_user()
    done = _run_with_registry(
        place.ledger, place.config, lambda tools: tools.demote(ident, reason, by=name), key=place.key, writes=True
    )
    if as_json:
        write_json(done.to_dict())
    else:
        print_line(f"demoted: {done.id}")


def _run_with_registry(
    url: str | None,
    config: Path | None,
    work: Callable[[ToolRegistry], Awaitable[T]],
    *,
    key: str | None = None,
    writes: bool = False,
) -> T:
    """Return what some work makes of the registry beside the ledger that was named, which has to be there."""

    async def run(ledger: Ledger) -> T:
        from adjudge.tools.registry import ToolRegistry

        await ledger.head()  # so that a mistyped address makes nothing, and is no empty registry either
        async with ToolRegistry(ledger) as registry:
            return await work(registry)

    return use_ledger(url, config, run, key=key, writes=writes)


def _find_status(done: Promotion) -> int:
    """Find the exit status of ``promote``: 0 promoted, 1 refused, 3 undecided or busy.

    A tool that has the tier already counts as promoted. A rejection counts as undecided where reviewers gave results
    and none of them is ``failed``.
    """
    if done or done.because == "already":
        return DONE
    if done.because == "busy":
        return UNDECIDED
    verdict = done.verdict
    if done.because != "rejected" or verdict is None:
        return FAILED
    reviews = (verdict.safety, verdict.correctness)
    results = [review.chain_result for review in reviews if review.chain_result is not None]
    return FAILED if not results or any(result.outcome == "failed" for result in results) else UNDECIDED


def _write_promotion(done: Promotion) -> None:
    document: dict[str, Any] = {"schema": "adjudge/promotion/1", "promoted": done.promoted, "because": done.because}
    document |= {"detail": done.detail, "verdict": done.verdict.to_dict() if done.verdict is not None else None}
    write_json(document | {"tool": done.record.to_dict() if done.record is not None else None})


def _format_usage(record: ToolRecord) -> tuple[str, str]:
    """Format the number of uses and the success rate."""
    usage = record.tool.usage
    return ("0", "-") if usage is None or not usage.uses else (str(usage.uses), format_score(usage.success_rate))


def _explain(verdict: ToolReviewVerdict) -> str:
    from adjudge.tools.verdict import PromotionVerdict

    what = "promotion" if isinstance(verdict, PromotionVerdict) else "creation"
    word = "approved" if verdict.approved else "refused"
    return f"{what} {word} with confidence {format_score(verdict.confidence)}: {' '.join(verdict.reasoning.split())}"


SchemaFile = Annotated[str, typer.Option("--schema", metavar="S", help="File with the JSON Schema, in JSON or YAML.")]

StrictProperties = Annotated[bool, typer.Option("--strict-properties", help="Require every declared property.")]

_YAML = (".yaml", ".yml")


Validated = tuple[InputItem, "ReuseVerdict | None"]
"""An output and the verdict on it; ``None`` where it could not be read, and the item says why."""


def validate(
    schema: SchemaFile,
    paths: option.Contents = None,
    strict_properties: StrictProperties = False,
    as_json: option.AsJson = False,
) -> int:
    """Check outputs against a JSON Schema; no model is asked.

    $ adjudge tools validate output.json --schema output.schema.json

    PATH is a file with one output in JSON, or, ending in .yaml or .yml, in YAML. Without PATH, or with -, JSON is read
    from standard input. The schema is draft 2020-12, or the draft its $schema names; references stay inside it.

    Exit status: 0 valid, 1 not valid, 2 wrong usage, or a file or schema that cannot be read. Of several outputs, 2
    beats 1 beats 0.
    """
    checked_schema = _read_schema(schema)
    done = [_validate_output(item, checked_schema, strict=strict_properties) for item in _list_outputs(paths)]
    (_write_validated if as_json else _print_validated)(done)
    complain_once(item.error for item, _ in done if item.error is not None)
    if any(verdict is None for _, verdict in done):
        return USAGE
    return DONE if all(verdict is not None and verdict.valid for _, verdict in done) else FAILED


def _read_schema(path: str) -> Any:
    """Read a JSON Schema, in JSON or YAML.

    An empty output is checked by it only to find errors of the schema itself. Raises ``UsageError`` for a file that
    cannot be read, and a schema that cannot be used.
    """
    from adjudge.tools.reuse import validate_reuse

    try:
        schema = _parse(read_text_file(Path(path), what="--schema"), path)
    except ValueError as error:
        raise error if isinstance(error, UsageError) else UsageError(f"--schema: {path} {error}") from None
    errors = validate_reuse("", None, schema).schema_errors
    fault = next((error for error in errors if error.startswith("schema: ")), None)
    if fault is not None:
        raise UsageError(f"--schema: {path} is not a JSON Schema that can be used: {fault.removeprefix('schema: ')}")
    return schema


def _list_outputs(paths: Sequence[str] | None) -> list[InputItem]:
    """List the outputs to validate. Raises ``UsageError`` for a file of rows."""
    # A row of a data set is a content and not an output, so .jsonl means nothing here.
    for path in paths or ():
        if path.lower().endswith(".jsonl"):
            raise UsageError(f"{path} holds rows; name a file with one output, or write one to standard input")
    return list(list_inputs(paths).items)


def _validate_output(item: InputItem, schema: Any, *, strict: bool) -> Validated:
    """Return an output with its verdict; ``None`` where it could not be read.

    Text that was read and cannot be parsed has the verdict that it is not valid.
    """
    from adjudge.tools.reuse import validate_reuse
    from adjudge.tools.verdict import ReuseVerdict

    if item.error is not None:
        return item, None
    try:
        output = _parse(item.content, item.name)
    except ValueError as error:
        # It was read, and what the tool put out is no JSON: that is what is asked here.
        return item, ReuseVerdict(valid=False, schema_errors=(f"the output: {error}",))
    return item, validate_reuse("", output, schema, strict_properties=strict)


def _parse(text: str, path: str) -> Any:
    """Parse a text, as YAML where the name of its file says so, else as JSON.

    Raises ``ValueError`` with the rest of a sentence that begins with a name.
    """
    from adjudge.formats.json import read_json
    from adjudge.formats.yaml import read_yaml

    in_yaml = path.lower().endswith(_YAML)
    try:
        return read_yaml(text)[0] if in_yaml else read_json(text)
    except ValueError as error:
        raise ValueError(f"is not {'YAML' if in_yaml else 'JSON'}: {' '.join(str(error).split())}") from None


def _write_validated(done: Sequence[Validated]) -> None:
    """Write the verdicts as JSON; a single one by itself, and nothing where its output could not be read."""
    entries = [
        name_item(item) | (verdict.to_dict() if verdict is not None else {"error": item.error})
        for item, verdict in done
    ]
    if len(entries) > 1:
        write_json({"schema": "adjudge/reuse-verdicts/1", "verdicts": entries})
        return
    _, only_verdict = done[0]
    if only_verdict is not None:
        write_json(entries[0])


def _print_validated(done: Sequence[Validated]) -> None:
    for item, verdict in done:
        if verdict is None:
            continue
        name = "" if len(done) == 1 else f"{item.label}: "
        for error in verdict.schema_errors or ("valid",):
            print_line(f"{name}{error}")


tools_app = make_group(
    "tools",
    "Review forged tools and check their outputs; list, show, promote and demote them.",
    {
        "review": review,
        "validate": validate,
        "list": list_tools,
        "show": show_tool,
        "promote": promote_tool,
        "demote": demote_tool,
    },
)
