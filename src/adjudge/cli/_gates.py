"""Opening the gates of ``adjudge.toml``."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from adjudge import Gate, Rubric, Rule
from adjudge.cli._config import Config
from adjudge.cli._layers import Layers, open_layers
from adjudge.cli._ledgers import Recorder, open_recorder
from adjudge.cli._people import open_approvals, read_terms
from adjudge.cli._seats import Opener, importing
from adjudge.errors import UsageError
from adjudge.rules import as_rule
from adjudge.rules._words import flatten, show

if TYPE_CHECKING:
    from adjudge import Approvals

_ASKING = ("on_failed", "on_undecided", "on_tampering")
_POLICIES = (*_ASKING, "mode", "sample")


def open_gate(
    name: str, config: Config, *, recorder: Recorder | None = None, approvals: Approvals | None = None
) -> Gate:
    """The gate of this name in the file; raises ``UsageError`` naming the table for what is wrong with it.

    ``recorder`` keeps its decisions, and beside its ledger people are asked; ``None`` is for a gate that is only
    looked at. It never waits for a person: what it held back is resumed. ``approvals`` are those that are open already.
    """
    table = config.gates.get(name)
    if table is None:
        raise UsageError(_explain_missing(name, config))
    where = f"{config.path}: [gates.{flatten(name, 120)}]"
    try:
        rubric = _open_rubric(table.get("rubric"), config)
        return Gate(
            name,
            rubric=rubric,
            judge=_open_layers(table, config).wire(_open_judge(table.get("judge"), rubric, config)),
            rules=[_open_rule(item) for item in table.get("rules", [])],
            ledger=recorder if recorder is not None and recorder.ledger is not None else None,
            config=config.digest,
            wait=False,
            **_open_asking(table, config, recorder, approvals),
            **{key: table[key] for key in _POLICIES if key in table},
        )
    except UsageError as error:
        said = str(error)
        raise UsageError(said if said.startswith(str(config.path)) else f"{where}: {said}") from None


async def close_gate(gate: Gate) -> None:
    """Close what a gate holds open; webhooks under way are waited for."""
    await gate.aclose()
    first = gate.ask.get("first")
    if first is not None:
        await first.aclose()
    if gate.approvals is not None:
        await gate.approvals.aclose()  # type: ignore[attr-defined]


def _open_asking(
    table: Mapping[str, Any], config: Config, recorder: Recorder | None, approvals: Approvals | None
) -> dict[str, Any]:
    """Who is asked, where a policy of the gate says so."""
    if "ask" not in [table.get(key) for key in _ASKING]:
        if "ask" in table:
            raise UsageError('ask says who is asked, and nothing is; write on_failed = "ask", or take it out')
        return {}
    ledger = (recorder if recorder is not None else open_recorder(config, None, off=False)).ledger
    if ledger is None:
        raise UsageError(
            "it asks people, and requests are kept beside a ledger; write url under [ledger], or give --ledger"
        )
    terms = read_terms(config, table.get("ask", {}))
    shows = terms.pop("show_content", False)
    opened = approvals if approvals is not None else open_approvals(config, ledger, quiet=False)
    return {"approvals": opened, "ask": terms, "show_content": shows}


def _open_rubric(name: str | None, config: Config) -> Rubric | None:
    if name is None:
        return None
    rubric = config.find_own_rubric(name)
    # The file says who judges; a rubric's model must not take the place of a consensus that stands there.
    return replace(rubric, model=None) if rubric.model is not None else rubric


def _open_judge(name: str | None, rubric: Rubric | None, config: Config) -> Any:
    if rubric is None:
        if name is not None:
            raise UsageError("it has a judge and no rubric to judge by; give rubric")
        return None
    if name is None and all(item.rule for item in rubric.criteria):
        return None
    # Never what the environment or this machine happens to offer: who decides stands in the file, under its digest.
    chosen = name if name is not None else config.defaults.get("judge")
    if chosen is None:
        raise UsageError(f"rubric {rubric.name!r} needs a judge; give judge, here or in [defaults]")
    return Opener(config=config).open(chosen, timeout=config.defaults.get("timeout"))


def _open_layers(table: Mapping[str, Any], config: Config) -> Layers:
    cache = table.get("cache")
    return open_layers(
        cache=None if cache is None else config.beside(cache),
        expires_in=table.get("cache_expires_in"),
        budget=table.get("budget"),
        per=table.get("budget_per"),
        prices=config.prices,
    )


def _open_rule(spec: str | dict[str, Any]) -> Rule:
    runs_code = isinstance(spec, dict) and "python" in (*spec, spec.get("name"))
    with importing(f"rule {show(spec)}") if runs_code else nullcontext():
        return as_rule(spec, allow_python=True)


def _explain_missing(name: str, config: Config) -> str:
    if not config.gates:
        where = config.path or "this directory, which has no adjudge.toml"
        return f"there is no gate {show(name)}: {where} names none; write [gates.NAME], or give --config"
    near = get_close_matches(name, config.gates, 1)
    hint = f"did you mean {near[0]!r}?" if near else f"it has {flatten(', '.join(config.gates), 400)}"
    return f"there is no gate {show(name)} in {config.path}; {hint}"
