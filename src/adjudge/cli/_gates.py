"""Opening the gates of ``adjudge.toml``."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from adjudge import Gate, Rubric, Rule
from adjudge.cli._config import Config
from adjudge.cli._seats import Opener, importing
from adjudge.errors import AdjudgeError, UsageError
from adjudge.gate import Recorder
from adjudge.rules import as_rule
from adjudge.rules._words import flatten, show

_POLICIES = ("on_failed", "on_undecided", "on_tampering", "mode", "sample")


class Nobody:
    """Stands where approvals will: asking fails, so what a person would be asked about stays blocked."""

    async def request(self, *_given: object, **_how: object) -> str:
        """Raise."""
        raise UsageError("no approvals are configured, so nobody can be asked")

    async def wait(self, approval: str, /) -> tuple[bool, str | None, str]:
        """Raise."""
        raise AdjudgeError(f"there is no request {approval!r}")


def open_gate(name: str, config: Config, *, ledger: Recorder | None = None) -> Gate:
    """The gate of this name in the file; raises ``UsageError`` naming the table for what is wrong with it."""
    table = config.gates.get(name)
    if table is None:
        raise UsageError(_explain_missing(name, config))
    where = f"{config.path}: [gates.{flatten(name, 120)}]"
    try:
        rubric = _open_rubric(table.get("rubric"), config)
        return Gate(
            name,
            rubric=rubric,
            judge=_open_judge(table.get("judge"), rubric, config),
            rules=[_open_rule(item) for item in table.get("rules", [])],
            approvals=Nobody(),
            ledger=ledger,
            config=config.digest,
            **{key: table[key] for key in _POLICIES if key in table},
        )
    except UsageError as error:
        said = str(error)
        raise UsageError(said if said.startswith(str(config.path)) else f"{where}: {said}") from None


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
