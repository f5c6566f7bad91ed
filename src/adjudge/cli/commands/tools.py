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
from adjudge.cli.commands.ledger import LedgerPlace, LedgerUrl, find_user, use_ledger
from adjudge.cli.error_messages import format_error
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED, USAGE
from adjudge.cli.input import InputItem, list_inputs, read_text_file
from adjudge.cli.judge_output import name_item
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

ReviewedItem = tuple[InputItem, "CreationVerdict | None"]
"""A file of a candidate and the verdict on it; ``None`` where there is none, and the item's ``error`` says why."""


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
    reviewed_items: list[ReviewedItem] = [(item, None) for item in items]
    if any(item.error is None for item in items):  # else no judge is needed to say what is wrong
        chosen = choose(make_panel(judging), read_config(config))
        if chosen.reason and not as_json:
            note(f"reviewing with {chosen.judge.name}, because {chosen.reason}; name another with --judge")
        reviewed_items = asyncio.run(_review_all(chosen.judge, items, concurrency))
    (_write_reviewed if as_json else _print_reviewed)(reviewed_items)
    complain_once(item.error for item, _ in reviewed_items if item.error is not None)
    return find_status([verdict for _, verdict in reviewed_items])


def find_status(verdicts: Sequence[CreationVerdict | None]) -> int:
    """Find the exit status for several files: unreadable (``None``) beats rejected beats undecided beats approved."""
    if any(verdict is None for verdict in verdicts):
        return USAGE
    not_approved = [verdict for verdict in verdicts if verdict is not None and not verdict.approved]
    if any(not _is_undecided(verdict) for verdict in not_approved):
        return FAILED
    return UNDECIDED if not_approved else DONE


def _is_undecided(verdict: CreationVerdict) -> bool:
    """Return whether a verdict without approval is undecided, and not rejected by a judge or by checks in code."""
    return verdict.chain_result is not None and verdict.chain_result.outcome != "failed"


async def _review_all(judge: Any, items: Sequence[InputItem], concurrency: int) -> list[ReviewedItem]:
    """Review the candidates, several at once, and return each with its verdict, or ``None`` if it could not be read."""
    from adjudge.tools.review import EmergentJudge

    reviewer = EmergentJudge(judge)

    async def work(item: InputItem) -> ReviewedItem:
        try:
            return item, await reviewer.review_creation(item.content) if item.error is None else None
        finally:
            progress.step()

    try:
        with show_progress("reviewed", len(items)) as progress:
            return await map_concurrently(items, work, concurrency, give_up=_leave_out)
    finally:
        await reviewer.aclose()


def _leave_out(item: InputItem) -> ReviewedItem:
    """Return an item for which the review gave no verdict, with an error that says so."""
    return replace(item, error=item.error or f"{item.label}: the review ended without a verdict; run it again"), None


def _read_candidate(path: str) -> InputItem:
    """Read a candidate from a file; an item of a file that cannot be read has the error in place of the content."""
    from adjudge.tools.candidate_file import load_candidate

    try:
        return InputItem(name=path, content=load_candidate(path))
    except UsageError as error:
        return InputItem(name=path, error=format_error(error))


def _write_reviewed(reviewed_items: Sequence[ReviewedItem]) -> None:
    """Write the verdicts as JSON; a single one by itself, and nothing where its file could not be read."""
    entries = [
        name_item(item) | (verdict.to_dict() if verdict is not None else {"error": item.error})
        for item, verdict in reviewed_items
    ]
    if len(entries) > 1:
        write_json({"schema": "adjudge/creation-verdicts/1", "verdicts": entries})
        return
    _, only_verdict = reviewed_items[0]
    if only_verdict is not None:
        write_json(entries[0])


def _print_reviewed(reviewed_items: Sequence[ReviewedItem]) -> None:
    """Print a line for each verdict, with the file's name if there are several files."""
    for item, verdict in reviewed_items:
        if verdict is not None:
            explanation = _explain_creation(verdict)
            print_line(explanation if len(reviewed_items) == 1 else f"{item.label}: {explanation}")


def _explain_creation(verdict: CreationVerdict) -> str:
    """Explain a verdict in one line: approved, undecided or rejected, the criteria that did not pass, and why."""
    outcome = "approved" if verdict.approved else "undecided" if _is_undecided(verdict) else "rejected"
    result = verdict.chain_result
    if result is None and verdict.reasoning.startswith(outcome):  # no judge was asked, and adjudge wrote the reasoning
        return " ".join(verdict.reasoning.split())
    confidence, failures = "", ""
    if result is not None and result.value is not None:
        confidence = f" with confidence {format_score(verdict.confidence)}"
        failed_criteria = [_describe_criterion(criterion) for criterion in result.criteria if not criterion.passed]
        failures = f", not {', '.join(failed_criteria)}" if failed_criteria else ""
    return f"{outcome}{confidence}{failures}: {' '.join(verdict.reasoning.split())}"


def _describe_criterion(criterion: CriterionResult) -> str:
    """Describe a criterion that did not pass, with the reviewer's reason if there is one."""
    reason = flatten(criterion.reasoning, 200)
    return f"{criterion.name} ({reason})" if reason else criterion.name


T = TypeVar("T")


Id = Annotated[str, typer.Argument(metavar="ID", hidden=True)]

By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who decides.  [default: the user of this machine]")
]


def _make_option(name: str, metavar: str, help_text: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=help_text)


def list_tools(
    ledger: LedgerUrl = None,
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
    ident: Id, ledger: LedgerUrl = None, config: option.ConfigFile = None, as_json: option.AsJson = False
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
        # Each value is on one line, because the lines of a description could look like other fields.
        print_line(f"{name:<13}{' '.join(str(value).split()) if value not in (None, '') else '-'}")
    for verdict in record.tool.current_verdicts:
        print_line(f"{'verdict':<13}{_describe_verdict(verdict)}")
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
        reviewer = EmergentJudge(chosen.judge)
        name = by if by is not None else find_user()
        try:
            return await registry.promote(ident, reviewer, to=to, approved_by=name)  # type: ignore[arg-type]
        finally:
            await reviewer.aclose()

    promotion = _run_with_registry(place.ledger, place.config, work, key=place.key, writes=True)
    if as_json:
        _write_promotion(promotion)
    elif promotion:
        print_line(f"promoted to {to}")
    else:
        print_line(f"not promoted ({promotion.because}): {' '.join(promotion.detail.split())}")
    return _find_promotion_status(promotion)


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
    record = _run_with_registry(
        place.ledger, place.config, lambda tools: tools.demote(ident, reason, by=name), key=place.key, writes=True
    )
    if as_json:
        write_json(record.to_dict())
    else:
        print_line(f"demoted: {record.id}")


def _run_with_registry(
    url: str | None,
    config: Path | None,
    work: Callable[[ToolRegistry], Awaitable[T]],
    *,
    key: str | None = None,
    writes: bool = False,
) -> T:
    """Open the registry of tools beside the ledger that the options name, and return the result of ``work`` with it.

    Raises ``LedgerError`` or ``UsageError`` if there is no such ledger.
    """

    async def run(ledger: Ledger) -> T:
        from adjudge.tools.registry import ToolRegistry

        await ledger.head()  # raises for a mistyped address; else an empty registry would be made there
        async with ToolRegistry(ledger) as registry:
            return await work(registry)

    return use_ledger(url, config, run, key=key, writes=writes)


def _find_promotion_status(promotion: Promotion) -> int:
    """Find the exit status of ``promote``: 0 promoted, 1 refused, 3 undecided, or the tool is under review elsewhere.

    A tool that has the tier already counts as promoted. A rejection counts as undecided if reviewers gave results, and
    none of them is ``failed``.
    """
    if promotion or promotion.because == "already":
        return DONE
    if promotion.because == "busy":
        return UNDECIDED
    verdict = promotion.verdict
    if promotion.because != "rejected" or verdict is None:
        return FAILED
    reviews = (verdict.safety, verdict.correctness)
    results = [review.chain_result for review in reviews if review.chain_result is not None]
    return FAILED if not results or any(result.outcome == "failed" for result in results) else UNDECIDED


def _write_promotion(promotion: Promotion) -> None:
    """Write the outcome of a promotion as JSON."""
    verdict, record = promotion.verdict, promotion.record
    document: dict[str, Any] = {"schema": "adjudge/promotion/1"}
    document |= {"promoted": promotion.promoted, "because": promotion.because, "detail": promotion.detail}
    document["verdict"] = verdict.to_dict() if verdict is not None else None
    document["tool"] = record.to_dict() if record is not None else None
    write_json(document)


def _format_usage(record: ToolRecord) -> tuple[str, str]:
    """Format the number of uses and the success rate."""
    usage = record.tool.usage
    return ("0", "-") if usage is None or not usage.uses else (str(usage.uses), format_score(usage.success_rate))


def _describe_verdict(verdict: ToolReviewVerdict) -> str:
    """Describe in one line whether reviewers approved the creation or a promotion of a tool, and why."""
    from adjudge.tools.verdict import PromotionVerdict

    event = "promotion" if isinstance(verdict, PromotionVerdict) else "creation"
    outcome = "approved" if verdict.approved else "refused"
    return (
        f"{event} {outcome} with confidence {format_score(verdict.confidence)}: {' '.join(verdict.reasoning.split())}"
    )


SchemaFile = Annotated[str, typer.Option("--schema", metavar="S", help="File with the JSON Schema, in JSON or YAML.")]

StrictProperties = Annotated[bool, typer.Option("--strict-properties", help="Require every declared property.")]

_YAML = (".yaml", ".yml")


ValidatedOutput = tuple[InputItem, "ReuseVerdict | None"]
"""A tool's output and the verdict on it; ``None`` where it could not be read, and the item's ``error`` says why."""


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
    validated_outputs = [
        _validate_output(item, checked_schema, strict=strict_properties) for item in _list_outputs(paths)
    ]
    (_write_validated if as_json else _print_validated)(validated_outputs)
    complain_once(item.error for item, _ in validated_outputs if item.error is not None)
    if any(verdict is None for _, verdict in validated_outputs):
        return USAGE
    return DONE if all(verdict is not None and verdict.valid for _, verdict in validated_outputs) else FAILED


def _read_schema(path: str) -> Any:
    """Read a JSON Schema from a file in JSON or YAML.

    Raises ``UsageError`` for a file that cannot be read, and for a schema that cannot be used.
    """
    from adjudge.tools.reuse import validate_reuse

    try:
        schema = _parse_text(read_text_file(Path(path), described_as="--schema"), path)
    except ValueError as error:
        raise error if isinstance(error, UsageError) else UsageError(f"--schema: {path} {error}") from None
    # An empty output is validated only to find errors of the schema itself, which begin with "schema: ".
    errors = validate_reuse("", None, schema).schema_errors
    schema_error = next((error for error in errors if error.startswith("schema: ")), None)
    if schema_error is not None:
        problem = schema_error.removeprefix("schema: ")
        raise UsageError(f"--schema: {path} is not a JSON Schema that can be used: {problem}")
    return schema


def _list_outputs(paths: Sequence[str] | None) -> list[InputItem]:
    """List the outputs to validate; raises ``UsageError`` for a data set (.jsonl), whose rows are no outputs."""
    for path in paths or ():
        if path.lower().endswith(".jsonl"):
            raise UsageError(f"{path} holds rows; name a file with one output, or write one to standard input")
    return list(list_inputs(paths).items)


def _validate_output(item: InputItem, schema: Any, *, strict: bool) -> ValidatedOutput:
    """Validate an output by a schema, and return it with its verdict, or ``None`` if it could not be read.

    An output that was read and cannot be parsed is not valid.
    """
    from adjudge.tools.reuse import validate_reuse
    from adjudge.tools.verdict import ReuseVerdict

    if item.error is not None:
        return item, None
    try:
        output = _parse_text(item.content, item.name)
    except ValueError as error:
        # Not an error of reading: whether a tool's output is JSON at all is part of the question.
        return item, ReuseVerdict(valid=False, schema_errors=(f"the output: {error}",))
    return item, validate_reuse("", output, schema, strict_properties=strict)


def _parse_text(text: str, path: str) -> Any:
    """Parse the text of a file, as YAML where its name says so, else as JSON.

    Raises ``ValueError``, whose message is the end of a sentence, such as "is not JSON: ...".
    """
    from adjudge.formats.json import read_json
    from adjudge.formats.yaml import read_yaml

    is_yaml = path.lower().endswith(_YAML)
    try:
        return read_yaml(text)[0] if is_yaml else read_json(text)
    except ValueError as error:
        raise ValueError(f"is not {'YAML' if is_yaml else 'JSON'}: {' '.join(str(error).split())}") from None


def _write_validated(validated_outputs: Sequence[ValidatedOutput]) -> None:
    """Write the verdicts as JSON; a single one by itself, and nothing where its output could not be read."""
    entries = [
        name_item(item) | (verdict.to_dict() if verdict is not None else {"error": item.error})
        for item, verdict in validated_outputs
    ]
    if len(entries) > 1:
        write_json({"schema": "adjudge/reuse-verdicts/1", "verdicts": entries})
        return
    _, only_verdict = validated_outputs[0]
    if only_verdict is not None:
        write_json(entries[0])


def _print_validated(validated_outputs: Sequence[ValidatedOutput]) -> None:
    """Print each error of an output in a line, or "valid", with the file's name if there are several outputs."""
    for item, verdict in validated_outputs:
        if verdict is None:
            continue
        name = "" if len(validated_outputs) == 1 else f"{item.label}: "
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
