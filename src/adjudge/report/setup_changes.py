"""The ways in which two runs decide differently: whatever may change an outcome and is not the content."""

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
    """Yield a sentence for each option of the two runs that differs."""
    old, new = before["options"], after["options"]
    # Where there is a rubric, the threshold is in it; cases with a rubric of their own take the run's.
    if before.get("own") or after.get("own") or before.get("rubric") is None:
        was, now = old.get("threshold"), new.get("threshold")
        if was != now:
            yield f"the threshold changed ({_write_value(was)} before, {_write_value(now)} now)"
    was, now = _read_policy(before, "all_cases"), _read_policy(after, "all_cases")
    if bool(was) != bool(now):
        words = ("kept", "ignored")
        yield f"criteria of cases are {words[bool(now)]} now (they were {words[bool(was)]} before)"
    for name in ("result_format", "passes"):
        was, now = [_read_policy(manifest, name) or manifest["asked"].get(name) for manifest in (before, after)]
        if _find_last(was) != _find_last(now):
            yield f"{name} changed ({_write_value(was)} before, {_write_value(now)} now)"
    was, now = old.get("repeat", 1), new.get("repeat", 1)
    if was != now:
        yield f"how often each case was judged changed ({was} before, {now} now)"


def _list_models(before: Collection[tuple[str, str]], after: Collection[tuple[str, str]]) -> Iterator[str]:
    """Yield the first judge that entirely other models answered; a provider may answer by several in turn."""
    for judge in sorted({name for name, _ in before} & {name for name, _ in after}):
        was, now = [sorted({model for name, model in side if name == judge}) for side in (before, after)]
        if not {*was} & {*now}:
            yield f"the model that answers the judge {show(judge)} changed ({show(was[0])} before, {show(now[0])} now)"
            return


def _read_policy(manifest: Mapping[str, Any], name: str) -> Any:
    redecided = manifest.get("redecided")
    policy = redecided.get("policy") if isinstance(redecided, Mapping) else None
    return policy.get(name) if isinstance(policy, Mapping) else None


def _find_last(value: Any) -> Any:
    """Find the last part of a dotted name: a redecision records the name alone, a run its module too."""
    return value.rpartition(".")[2] if isinstance(value, str) else value


def _write_value(value: Any) -> str:
    return "none" if value is None else show(value)
