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
from adjudge.config.judge_layers import ConfiguredLayers, open_layers
from adjudge.config.judges import JudgeOpener
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
    """Read the terms of a gate's requests for approval: its own ``ask``, and for the rest ``[approvals]``.

    ``show_content`` is one of them, and ``first`` becomes an opened judge.

    Raises ``UsageError`` if no approvers are named.
    """
    terms = {**{key: value for key, value in config.approvals.items() if key in ASK}, **ask}
    if not terms.get("approvers"):
        raise UsageError(
            'it asks people, and nobody is named; write approvers under [approvals], or ask = {approvers = ["ana"]}'
        )
    if "first" in terms:
        terms["first"] = JudgeOpener(config=config, named_in=config.folder).open(
            terms["first"], timeout=config.defaults.get("timeout")
        )
    return terms


def open_approvals(
    config: Config, ledger: Ledger, *, quiet: bool = True, make_link: MakeLink | None = None
) -> Approvals:
    """Open the approvals of a ledger, with the webhook of ``[approvals]``, which gets the links of ``make_link``.

    With ``quiet`` a webhook whose secret is not set is left out, for a command that only decides requests. Without it
    a missing secret raises ``UsageError``.
    """
    from adjudge.guards.approval.approvals import Approvals

    table, keep_for = config.approvals.get("webhook"), config.approvals.get("keep_for")
    if table is None or (quiet and is_secret_missing(config)):
        return _open_with_context(config, lambda: Approvals(ledger, keep_for=keep_for))
    from adjudge.guards.approval.webhook import Webhook

    where = f"{config.path}: [approvals] webhook"
    name = table["secret_env"]
    if is_secret_missing(config):
        raise UsageError(f"{where}: the environment variable {show(name)} is not set; it holds the webhook's secret")
    try:
        webhook = Webhook(table["url"], secret=os.environ[name])
    except UsageError as error:
        raise error.within(where) from None
    return _open_with_context(
        config, lambda: Approvals(ledger, webhook=webhook, make_link=make_link, keep_for=keep_for)
    )


def _open_with_context(config: Config, make: Callable[[], Approvals]) -> Approvals:
    """Call ``make``, and name the file and the table ``[approvals]`` in its ``UsageError``."""
    try:
        return make()
    except UsageError as error:
        raise error.within(f"{config.path}: [approvals]") from None


def is_secret_missing(config: Config) -> bool:
    """Return whether a webhook is configured and its secret is not in this process's environment."""
    table = config.approvals.get("webhook")
    return table is not None and not os.environ.get(table["secret_env"])


def list_webhook_hosts(config: Config) -> list[str]:
    """List the host of the webhook of ``[approvals]``, for lists of the hosts that may be contacted."""
    table = config.approvals.get("webhook")
    if table is None:
        return []
    try:
        parts = urlsplit(table["url"])
        return [parts.netloc.rpartition("@")[2]] if parts.hostname else []
    except ValueError:  # an invalid address; opening the webhook reports it
        return []


_OUTCOME_OPTIONS = ("on_failed", "on_rule", "on_undecided", "on_tampering")

_GATE_OPTIONS = (*_OUTCOME_OPTIONS, "mode", "sample")

_CERTIFICATE_OPTIONS = ("allow_unsigned", "max_age", "min_sensitivity", "min_specificity")


def open_gate(
    name: str,
    config: Config,
    *,
    recorder: CommandRecorder | None = None,
    approvals: Approvals | None = None,
    demanded: Mapping[str, Any] | None = None,
) -> Gate:
    """Open the gate of this name in the file; raises ``UsageError`` that names the table.

    ``recorder`` records its decisions, and its ledger has the requests to people; ``None`` is for a gate that is only
    examined. The gate never waits for a person; a content that it held back is resumed later. ``approvals`` are used if
    they are open already. ``demanded`` are the certificate options of a command line, which replace those of the table.
    """
    if name not in config.gates:
        raise UsageError(_explain_missing_gate(name, config))
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
            **{key: table[key] for key in _GATE_OPTIONS if key in table},
            **_read_certificate_options(table, config),
        )
    except UsageError as error:
        raise error if str(error).startswith(str(config.path)) else error.within(where) from None


def open_gate_rules(name: str, config: Config) -> tuple[Rule, ...]:
    """Open only the rules of the gate of this name; raises ``UsageError`` as ``open_gate`` does."""
    if name not in config.gates:
        raise UsageError(_explain_missing_gate(name, config))
    try:
        return tuple(_open_rules(config.gates[name], config))
    except UsageError as error:
        raise error.within(f"{config.path}: [gates.{flatten(name, 120)}]") from None


def check_gate_ready(gate: Gate) -> None:
    """Raise ``UsageError`` for a judge that cannot be asked, for example without its key: it would block everything."""
    if gate.rubric is not None and not all(criterion.rule for criterion in gate.rubric.criteria):
        check_judge_ready(gate.judge)


def check_judge_ready(judge: Any) -> None:
    """Raise ``UsageError`` if a model of a judge cannot be asked at all, for example without its key."""
    for single_judge in list_judges(judge):
        check = getattr(single_judge.model, "check", None)
        if check is not None:
            check()


async def close_gate(gate: Gate) -> None:
    """Close a gate with its first judge and its approvals; webhooks that are being sent are waited for."""
    await gate.aclose()
    first = gate.ask.get("first")
    if first is not None:
        await first.aclose()
    if gate.approvals is not None:
        await gate.approvals.aclose()  # type: ignore[attr-defined]


def _open_ask_arguments(
    table: Mapping[str, Any], config: Config, recorder: CommandRecorder | None, approvals: Approvals | None
) -> dict[str, Any]:
    """Open the approvals of a gate and read its terms, as arguments of ``Gate``; no arguments if it asks nobody.

    People are asked if an outcome's option is ``ask``, for audits, and if no certificate covers a result. Raises
    ``UsageError`` for a gate that asks people and has no ledger, and for a table ``ask`` in a gate that asks nobody.
    """
    asks_for_outcome = "ask" in [table.get(key) for key in _OUTCOME_OPTIONS]
    if not asks_for_outcome and not {"audit", "require_certificate"} & set(table):
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
    show_content = terms.pop("show_content", False)
    used_approvals = approvals if approvals is not None else open_approvals(config, ledger, quiet=False)
    return {"approvals": used_approvals, "ask": terms, "show_content": show_content}


def _read_certificate_options(table: Mapping[str, Any], config: Config) -> dict[str, Any]:
    """Read a gate's requirements on certificates, as arguments of ``Gate``; paths start from the file's folder.

    ``certificate_key`` is a path, or the public key itself.
    """
    options: dict[str, Any] = {name: table[name] for name in _CERTIFICATE_OPTIONS if name in table}
    path_names = [name for name in ("require_certificate", "release_policy", "certificate_key") if name in table]
    options |= {name: config.resolve_path(table[name]) for name in path_names}
    key = table.get("certificate_key")
    return options | {"certificate_key": key} if key is not None and is_public_key(key) else options


def _open_audit(table: Mapping[str, Any]) -> float | Audit | None:
    """Read the audit of a gate: a share, or a table of options."""
    audit = table.get("audit")
    return Audit(**audit) if isinstance(audit, dict) else audit


def _find_audit_approvers(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return the approvers of audits as ``{"approvers": ...}``, for a gate that asks people only in audits.

    Such a gate needs no other approvers. For any other gate the result is empty.
    """
    audit = table.get("audit")
    approvers = audit.get("approvers") if isinstance(audit, dict) else None
    asks_for_outcome = "ask" in [table.get(key) for key in _OUTCOME_OPTIONS]
    return {"approvers": approvers} if approvers and not asks_for_outcome else {}


def _open_rubric(name: str | None, config: Config) -> Rubric | None:
    if name is None:
        return None
    rubric = config.find_named_rubric(name)
    # The file names the judge. A model in the rubric would replace it, even if it is a consensus of several.
    return replace(rubric, model=None) if rubric.model is not None else rubric


def _open_judge(name: str | None, rubric: Rubric | None, config: Config) -> Any:
    """Open the judge of a gate; ``None`` without a rubric, or if each criterion has a rule and no judge is named.

    Raises ``UsageError`` for a judge without a rubric, and for a rubric that needs a judge and has none.
    """
    if rubric is None:
        if name is not None:
            raise UsageError("it has a judge and no rubric to judge by; give rubric", argument="rubric")
        return None
    if name is None and all(criterion.rule for criterion in rubric.criteria):
        return None
    # Never a judge that the environment or this machine offers: the file, and so its digest, must say who decides.
    chosen = name if name is not None else config.defaults.get("judge")
    if chosen is None:
        raise UsageError(f"rubric {rubric.name!r} needs a judge; give judge, here or in [defaults]", argument="judge")
    return JudgeOpener(config=config, named_in=config.folder).open(chosen, timeout=config.defaults.get("timeout"))


def _open_layers(table: Mapping[str, Any], config: Config) -> ConfiguredLayers:
    """Open the cache, the budget and the prices of a gate."""
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
    """Make a rule of a gate; a function that it names is imported from the file's folder."""
    code = find_code(spec) if isinstance(spec, dict) else None
    with nullcontext() if code is None else importing(f"rule {show(spec)}", code, config.folder):
        return as_rule(spec, allow_python=True)


def _explain_missing_gate(name: str, config: Config) -> str:
    """Write the message for a gate that is not in the file."""
    if not config.gates:
        where = config.path or "this directory, which has no adjudge.toml"
        return f"there is no gate {show(name)}: {where} names none; write [gates.NAME], or give --config"
    near = get_close_matches(name, config.gates, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {flatten(', '.join(config.gates), 400)}"
    return f"there is no gate {show(name)} in {config.path}; {hint}"
