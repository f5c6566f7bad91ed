"""The differences in the setup of two runs: judge, models, question and options, all but the judged contents."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from adjudge.formats.text import show
from adjudge.runs.folder import list_changes


def list_setup_changes(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    models_before: Collection[tuple[str, str]] = (),
    models_after: Collection[tuple[str, str]] = (),
) -> Iterator[str]:
    """Yield a clause for each difference between two manifests, and between the models that answered their judges.

    Of each judge and model there is a pair; a judge counts only if none of its models answered in both runs.
    """
    changes = list(list_changes(before, after))
    yield from changes
    yield from _list_options(before, after)
    if before["digests"].get("judge") == after["digests"].get("judge"):
        yield from _list_models(models_before, models_after)


def _list_options(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[str]:
    """Yield a clause for each option of the two manifests that differs."""
    options_before, options_after = before["options"], after["options"]
    # A rubric has its threshold in it. The option matters without one, and to cases with a rubric of their own.
    if before.get("own") or after.get("own") or before.get("rubric") is None:
        old, new = options_before.get("threshold"), options_after.get("threshold")
        if old != new:
            yield f"the threshold changed ({_write_value(old)} before, {_write_value(new)} now)"
    ignored_before = bool(_read_redecision_option(before, "all_cases"))
    ignored_after = bool(_read_redecision_option(after, "all_cases"))
    if ignored_before != ignored_after:
        words = {False: "kept", True: "ignored"}
        yield f"criteria of cases are {words[ignored_after]} now (they were {words[ignored_before]} before)"
    for name in ("result_format", "passes"):
        old, new = [
            _read_redecision_option(manifest, name) or manifest["asked"].get(name) for manifest in (before, after)
        ]
        if _drop_module(old) != _drop_module(new):
            yield f"{name} changed ({_write_value(old)} before, {_write_value(new)} now)"
    old, new = options_before.get("repeat", 1), options_after.get("repeat", 1)
    if old != new:
        yield f"how often each case was judged changed ({old} before, {new} now)"


def _list_models(before: Collection[tuple[str, str]], after: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield a clause on the first judge that no model answered in both runs.

    One common model is enough for no change, because a provider may answer by several models in turn.
    """
    for judge in sorted({name for name, _ in before} & {name for name, _ in after}):
        old = sorted({model for name, model in before if name == judge})
        new = sorted({model for name, model in after if name == judge})
        if not {*old} & {*new}:
            yield f"the model that answers the judge {show(judge)} changed ({show(old[0])} before, {show(new[0])} now)"
            return


def _read_redecision_option(manifest: Mapping[str, Any], name: str) -> Any:
    """Read an option by which the results of a run were decided again; ``None`` if they were not, or without it."""
    redecided = manifest.get("redecided")
    policy = redecided.get("policy") if isinstance(redecided, Mapping) else None
    return policy.get(name) if isinstance(policy, Mapping) else None


def _drop_module(value: Any) -> Any:
    """Return the last part of a dotted name: a redecision records a function's name alone, a run its module too."""
    return value.rpartition(".")[2] if isinstance(value, str) else value


def _write_value(value: Any) -> str:
    return "none" if value is None else show(value)
