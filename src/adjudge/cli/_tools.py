"""``adjudge tools``: look at the forged tools kept beside a ledger, raise one a tier, or take one out of use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from adjudge.cli import _options as option
from adjudge.cli._choose import Panel, choose
from adjudge.cli._config import read_config
from adjudge.cli._ledger import Key, Place, find_user, use_ledger
from adjudge.cli._output import add_row, make_table, note, say, show, write_json

if TYPE_CHECKING:
    from adjudge.ledger import Ledger
    from adjudge.tools import Promotion, ToolRecord, ToolRegistry, ToolVerdict

tools_app = typer.Typer(
    help="Look at forged tools, raise one a tier, or take one out of use.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
T = TypeVar("T")

Id = Annotated[str, typer.Argument(metavar="ID", hidden=True)]
By = Annotated[
    str | None, typer.Option("--by", metavar="NAME", help="Who says so; by default the user of this machine.")
]


def _name(name: str, metavar: str, what: str) -> Any:
    return typer.Option(f"--{name}", metavar=metavar, help=what)


@tools_app.command("list")
def list_tools(
    ledger: Place = None,
    tier: Annotated[str | None, _name("tier", "TIER", "Only of this tier: session, agent or shared.")] = None,
    status: Annotated[str | None, _name("status", "S", "Only active, unreviewed or demoted.")] = None,
    agent: Annotated[str | None, _name("agent", "A", "Only of this agent.")] = None,
    session: Annotated[str | None, _name("session", "S", "Only of this session, by its whole name.")] = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """List tools in the order in which they were registered."""
    wanted: dict[str, Any] = {"tier": tier, "status": status, "agent": agent, "session": session}
    records = _use(ledger, config, lambda registry: registry.list(**wanted))
    if as_json:
        write_json({"schema": "adjudge/tool-records/1", "tools": [item.to_dict() for item in records]})
        return
    if not records:
        note("no tools")
        return
    table = make_table("", ("id", "name", "tier", "status", "uses", "succeeded", "agent", "session"))
    for item in records:
        own = item.tool
        add_row(table, item.id, item.name, item.tier, item.status, *_count(item), own.agent, own.session)
    show(table)


@tools_app.command("show")
def show_tool(
    ident: Id, ledger: Place = None, config: option.ConfigFile = None, as_json: option.AsJson = False
) -> None:
    """Show one tool, and what reviewers said of it.

    ID is what `adjudge tools list` shows.
    """
    record = _use(ledger, config, lambda registry: registry.get(ident))
    if as_json:
        write_json(record.to_dict())
        return
    made, (uses, rate) = record.tool.candidate, _count(record)
    lines = {"id": record.id, "name": record.name, "tier": record.tier, "status": record.status}
    lines |= {"reason": record.reason, "approved by": record.approved_by, "agent": record.tool.agent}
    lines |= {"session": record.tool.session, "uses": f"{uses}, {rate} succeeded", "refusals": record.cooling.refusals}
    lines |= {"digest": record.digest, "mode": made.mode, "allowlist": ", ".join(made.allowlist)}
    lines |= {"description": made.description}
    for name, said in lines.items():
        # On one line each: a description of several could pass for further fields.
        say(f"{name:<13}{' '.join(str(said).split()) if said not in (None, '') else '-'}")
    for verdict in record.tool.own_verdicts:
        say(f"{'verdict':<13}{_explain(verdict)}")
    say("source")
    say("\n".join(f"    {line}" for line in made.source.splitlines()) or "    -")


@tools_app.command("promote")
def promote_tool(
    ident: Id,
    to: Annotated[str, _name("to", "TIER", "The tier to rise to, agent or shared: always the next one.")] = "agent",
    by: By = None,
    judges: option.Judges = None,
    strategy: option.StrategyName = None,
    timeout: option.Timeout = None,
    quorum: option.Quorum = None,
    no_token: option.NoToken = False,
    record: option.Record = None,
    ledger: Place = None,
    key: Key = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> int:
    """Put a tool before the panel, and raise it one tier.

    ID is what `adjudge tools list` shows. Two reviewers are asked, for safety and for correctness; nobody is before 5
    uses of which 0.8 succeeded, nor while it cools down after a refusal. Who shares a tool is recorded as having
    approved it.

    Exit status: 0 promoted, or of that tier already; 1 refused; 2 wrong usage, a tool that does not run, or a cap;
    3 undecided, which raises nothing, or under review elsewhere.
    """
    from adjudge.tools import EmergentJudge

    given = {"strategy": strategy, "quorum": quorum}
    panel = Panel(
        judges=tuple(judges or ()),
        timeout=timeout,
        chain=tuple((name, value) for name, value in given.items() if value is not None),
        token=not no_token,
        record=record,
    )
    chosen = choose(panel, read_config(config))
    if chosen.reason and not as_json:
        note(f"reviewing with {chosen.judge.name}, because {chosen.reason}; name another with --judge")

    async def work(registry: ToolRegistry) -> Promotion:
        judge, name = EmergentJudge(chosen.judge), by if by is not None else find_user()
        try:
            return await registry.promote(ident, judge, to=to, approved_by=name)  # type: ignore[arg-type]
        finally:
            await judge.aclose()

    done = _use(ledger, config, work, key=key, writes=True)
    if as_json:
        _write(done)
    elif done:
        say(f"promoted to {to}")
    else:
        say(f"not promoted ({done.because}): {' '.join(done.detail.split())}")
    return _find_status(done)


@tools_app.command("demote")
def demote_tool(
    ident: Id,
    reason: Annotated[str, _name("reason", "TEXT", "Why; it is recorded as it is.")],
    by: By = None,
    ledger: Place = None,
    key: Key = None,
    config: option.ConfigFile = None,
    as_json: option.AsJson = False,
) -> None:
    """Take a tool out of use, at once and everywhere.

    ID is what `adjudge tools list` shows. A new tool that does the same is refused from now on.
    """
    name = by if by is not None else find_user()
    done = _use(ledger, config, lambda registry: registry.demote(ident, reason, by=name), key=key, writes=True)
    if as_json:
        write_json(done.to_dict())
    else:
        say(f"demoted: {done.id}")


def _use(
    url: str | None,
    config: Path | None,
    work: Callable[[ToolRegistry], Awaitable[T]],
    *,
    key: str | None = None,
    writes: bool = False,
) -> T:
    """What some work makes of the registry beside the ledger that was named, which has to be there."""

    async def run(ledger: Ledger) -> T:
        from adjudge.tools import ToolRegistry

        await ledger.head()  # so that a mistyped address makes nothing, and is no empty registry either
        async with ToolRegistry(ledger) as registry:
            return await work(registry)

    return use_ledger(url, config, run, key=key, writes=writes)


def _find_status(done: Promotion) -> int:
    if done or done.because == "already":
        return 0
    if done.because == "busy":
        return 3
    verdict = done.verdict
    if done.because != "rejected" or verdict is None:
        return 1
    asked = [item.chain_result for item in (verdict.safety, verdict.correctness) if item.chain_result is not None]
    return 1 if not asked or any(item.outcome == "failed" for item in asked) else 3


def _write(done: Promotion) -> None:
    said: dict[str, Any] = {"schema": "adjudge/promotion/1", "promoted": done.promoted, "because": done.because}
    said |= {"detail": done.detail, "verdict": done.verdict.to_dict() if done.verdict is not None else None}
    write_json(said | {"tool": done.record.to_dict() if done.record is not None else None})


def _count(record: ToolRecord) -> tuple[str, str]:
    usage = record.tool.usage
    return ("0", "-") if usage is None or not usage.uses else (str(usage.uses), f"{usage.success_rate:.2f}")


def _explain(verdict: ToolVerdict) -> str:
    from adjudge.tools import PromotionVerdict

    what = "promotion" if isinstance(verdict, PromotionVerdict) else "creation"
    word = "approved" if verdict.approved else "refused"
    return f"{what} {word} with confidence {verdict.confidence:.2f}: {' '.join(verdict.reasoning.split())}"
