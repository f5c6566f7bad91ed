"""Opening the gates of ``adjudge.toml``.

The keys that ``[gates]`` may have are in ``file.py`` (``_GATE_KEYS``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from adjudge.config.file import ASK, Config
from adjudge.config.judges import Opener
from adjudge.config.layers import ConfiguredLayers, open_layers
from adjudge.config.ledger import CommandRecorder, open_recorder
from adjudge.config.modules import find_code, importing
from adjudge.errors import Argument, UsageError
from adjudge.formats.text import flatten, show
from adjudge.guards.audit import Audit
from adjudge.guards.gate import Gate
from adjudge.judges.chain import list_judges
from adjudge.ledger.signature import is_public_key
from adjudge.rubric.rubric import Rubric
from adjudge.rules.rule import Rule
from adjudge.rules.shipped import as_rule

if TYPE_CHECKING:
    from adjudge.guards.approval.approvals import Approvals
    from adjudge.guards.approval.webhook import MakeLink
    from adjudge.ledger.ledger import Ledger


def read_terms(config: Config, ask: Mapping[str, Any]) -> dict[str, Any]:
    """Read whom a gate asks, and how: its own ``ask`` over ``[approvals]``.

    ``show_content`` is among them, and ``first`` is opened: a judge of the file, or a model.

    Raises ``UsageError`` where nobody is named.
    """
    terms = {**{key: value for key, value in config.approvals.items() if key in ASK}, **ask}
    if not terms.get("approvers"):
        raise UsageError(
            'it asks people, and nobody is named; write approvers under [approvals], or ask = {approvers = ["ana"]}'
        )
    if "first" in terms:
        terms["first"] = Opener(config=config, named_in=config.folder).open(
            terms["first"], timeout=config.defaults.get("timeout")
        )
    return terms


def open_approvals(
    config: Config, ledger: Ledger, *, quiet: bool = True, make_link: MakeLink | None = None
) -> Approvals:
    """Open the approvals beside a ledger, with the webhook of ``[approvals]``, which gets the links that are made.

    ``quiet`` leaves out one whose secret is not here, for somebody who only decides; else that is a ``UsageError``.
    """
    from adjudge.guards.approval.approvals import Approvals

    table, keep_for = config.approvals.get("webhook"), config.approvals.get("keep_for")
    if table is None or (quiet and is_secret_missing(config)):
        return _name_file(config, lambda: Approvals(ledger, keep_for=keep_for))
    from adjudge.guards.approval.webhook import Webhook

    where = f"{config.path}: [approvals] webhook"
    name = table["secret_env"]
    if is_secret_missing(config):
        raise UsageError(f"{where}: the environment variable {show(name)} is not set; it holds the webhook's secret")
    try:
        webhook = Webhook(table["url"], secret=os.environ[name])
    except UsageError as error:
        raise error.within(where) from None
    return _name_file(config, lambda: Approvals(ledger, webhook=webhook, make_link=make_link, keep_for=keep_for))


def _name_file(config: Config, make: Callable[[], Approvals]) -> Approvals:
    try:
        return make()
    except UsageError as error:
        raise error.within(f"{config.path}: [approvals]") from None


def is_secret_missing(config: Config) -> bool:
    """Return whether there is a webhook whose secret is not in this process's environment."""
    table = config.approvals.get("webhook")
    return table is not None and not os.environ.get(table["secret_env"])


def list_webhook_hosts(config: Config) -> list[str]:
    """List the host that the webhook of ``[approvals]`` goes to, for lists of what can be contacted."""
    table = config.approvals.get("webhook")
    if table is None:
        return []
    try:
        parts = urlsplit(table["url"])
        return [parts.netloc.rpartition("@")[2]] if parts.hostname else []
    except ValueError:  # said when it is opened
        return []


_STEP_OPTIONS = ("on_failed", "on_rule", "on_undecided", "on_tampering")

_POLICIES = (*_STEP_OPTIONS, "mode", "sample")

_BARS = ("allow_unsigned", "max_age", "min_sensitivity", "min_specificity")


def open_gate(
    name: str,
    config: Config,
    *,
    recorder: CommandRecorder | None = None,
    approvals: Approvals | None = None,
    demanded: Mapping[str, Any] | None = None,
) -> Gate:
    """Open the gate of this name in the file; raises ``UsageError`` naming the table for what is wrong with it.

    ``recorder`` keeps its decisions, and beside its ledger people are asked; ``None`` is for a gate that is only
    looked at. It never waits for a person: what it held back is resumed. ``approvals`` are those that are open already.
    ``demanded`` is what a command line demands of a certificate, over what the table does.
    """
    if name not in config.gates:
        raise UsageError(_explain_missing(name, config))
    table = {**config.gates[name], **(demanded or {})}
    where = f"{config.path}: [gates.{flatten(name, 120)}]"
    try:
        rubric = _open_rubric(table.get("rubric"), config)
        return Gate(
            name,
            rubric=rubric,
            judge=_open_layers(table, config).apply(_open_judge(table.get("judge"), rubric, config)),
            rules=_open_rules(table, config),
            ledger=recorder if recorder is not None and recorder.ledger is not None else None,
            config=config.digest,
            wait=False,
            audit=_open_audit(table),
            **_open_ask_arguments(table, config, recorder, approvals),
            **{key: table[key] for key in _POLICIES if key in table},
            **_read_demand(table, config),
        )
    except UsageError as error:
        raise error if str(error).startswith(str(config.path)) else error.within(where) from None


def open_gate_rules(name: str, config: Config) -> tuple[Rule, ...]:
    """Open the rules of the gate of this name, and nothing else of it; raises ``UsageError`` as ``open_gate``."""
    if name not in config.gates:
        raise UsageError(_explain_missing(name, config))
    try:
        return tuple(_open_rules(config.gates[name], config))
    except UsageError as error:
        raise error.within(f"{config.path}: [gates.{flatten(name, 120)}]") from None


def check_gate_ready(gate: Gate) -> None:
    """Raise ``UsageError`` for a judge that cannot be asked at all (no key): every content would be blocked by it."""
    if gate.rubric is not None and not all(criterion.rule for criterion in gate.rubric.criteria):
        check_judge_ready(gate.judge)


def check_judge_ready(judge: Any) -> None:
    """Raise ``UsageError`` where a model of a judge cannot be asked at all, as it is without its key."""
    for leaf in list_judges(judge):
        ready = getattr(leaf.model, "check", None)
        if ready is not None:
            ready()


async def close_gate(gate: Gate) -> None:
    """Close what a gate holds open; webhooks under way are waited for."""
    await gate.aclose()
    first = gate.ask.get("first")
    if first is not None:
        await first.aclose()
    if gate.approvals is not None:
        await gate.approvals.aclose()  # type: ignore[attr-defined]


def _open_ask_arguments(
    table: Mapping[str, Any], config: Config, recorder: CommandRecorder | None, approvals: Approvals | None
) -> dict[str, Any]:
    """Open what a gate needs to ask people, as arguments of ``Gate``; none where nobody is asked.

    People are asked by a step that is ``ask``, by audits, and where no certificate covers a result.
    Raises ``UsageError`` for a gate that asks and has no ledger, and for ``ask`` where it asks nobody.
    """
    if "ask" not in [table.get(key) for key in _STEP_OPTIONS] and not {"audit", "require_certificate"} & set(table):
        if "ask" in table:
            raise UsageError('ask says who is asked, and nothing is; write on_failed = "ask", or take it out')
        return {}
    ledger = (recorder if recorder is not None else open_recorder(config, None, off=False)).ledger
    if ledger is None:
        raise UsageError(
            "it asks people, and requests are kept beside a ledger; write url under [ledger], or give ",
            Argument("ledger"),
        )
    terms = read_terms(config, _find_audit_approvers(table) | table.get("ask", {}))
    shows = terms.pop("show_content", False)
    opened = approvals if approvals is not None else open_approvals(config, ledger, quiet=False)
    return {"approvals": opened, "ask": terms, "show_content": shows}


def _read_demand(table: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """Read what a gate demands of a certificate, as arguments of ``Gate``; files are named from the configuration."""
    demand: dict[str, Any] = {name: table[name] for name in _BARS if name in table}
    files = [name for name in ("require_certificate", "release_policy", "certificate_key") if name in table]
    demand |= {name: config.resolve_path(table[name]) for name in files}
    key = table.get("certificate_key")
    return demand | {"certificate_key": key} if key is not None and is_public_key(key) else demand


def _open_audit(table: Mapping[str, Any]) -> float | Audit | None:
    audit = table.get("audit")
    return Audit(**audit) if isinstance(audit, dict) else audit


def _find_audit_approvers(table: Mapping[str, Any]) -> dict[str, Any]:
    """Find who answers audits, where they are named and nobody else is asked: then no others need to be named."""
    audit = table.get("audit")
    approvers = audit.get("approvers") if isinstance(audit, dict) else None
    return {"approvers": approvers} if approvers and "ask" not in [table.get(key) for key in _STEP_OPTIONS] else {}


def _open_rubric(name: str | None, config: Config) -> Rubric | None:
    if name is None:
        return None
    rubric = config.find_named_rubric(name)
    # The file says who judges; a rubric's model must not take the place of a consensus that it names.
    return replace(rubric, model=None) if rubric.model is not None else rubric


def _open_judge(name: str | None, rubric: Rubric | None, config: Config) -> Any:
    """Open the judge of a gate; ``None`` without a rubric, and where each criterion has a rule and no judge is named.

    Raises ``UsageError`` for a judge without a rubric, and for a rubric that needs a judge and has none.
    """
    if rubric is None:
        if name is not None:
            raise UsageError("it has a judge and no rubric to judge by; give rubric", argument="rubric")
        return None
    if name is None and all(criterion.rule for criterion in rubric.criteria):
        return None
    # Never what the environment or this machine happens to offer: who decides is in the file, under its digest.
    chosen = name if name is not None else config.defaults.get("judge")
    if chosen is None:
        raise UsageError(f"rubric {rubric.name!r} needs a judge; give judge, here or in [defaults]", argument="judge")
    return Opener(config=config, named_in=config.folder).open(chosen, timeout=config.defaults.get("timeout"))


def _open_layers(table: Mapping[str, Any], config: Config) -> ConfiguredLayers:
    cache = table.get("cache")
    return open_layers(
        cache=None if cache is None else config.resolve_path(cache),
        expires_in=table.get("cache_expires_in"),
        budget=table.get("budget"),
        per=table.get("budget_per"),
        prices=config.prices,
    )


def _open_rules(table: Mapping[str, Any], config: Config) -> list[Rule]:
    return [_open_rule(rule, config) for rule in table.get("rules", [])]


def _open_rule(spec: str | dict[str, Any], config: Config) -> Rule:
    code = find_code(spec) if isinstance(spec, dict) else None
    with nullcontext() if code is None else importing(f"rule {show(spec)}", code, config.folder):
        return as_rule(spec, allow_python=True)


def _explain_missing(name: str, config: Config) -> str:
    if not config.gates:
        where = config.path or "this directory, which has no adjudge.toml"
        return f"there is no gate {show(name)}: {where} names none; write [gates.NAME], or give --config"
    near = get_close_matches(name, config.gates, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {flatten(', '.join(config.gates), 400)}"
    return f"there is no gate {show(name)} in {config.path}; {hint}"
