"""Logs of the open-source framework ``evals`` (``oaieval``), as rows of an export of OpenAI's platform.

Source: ``evals/record.py`` of openai/evals: a line with the ``spec``, one for each event, one with a ``final_report``.
Events of one sample stand anywhere, so a log is read as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from adjudge.dataset.formats import LARGEST_JSON
from adjudge.errors import UsageError
from adjudge.formats.text import show

_KEPT = ("match", "metrics", "error")
"""Events that say how the framework judged a sample."""


def is_log(row: object) -> bool:
    """Whether a first line is that of a log."""
    return isinstance(row, Mapping) and isinstance(row.get("spec"), Mapping)


def group_events(name: str, rows: Iterable[Mapping[str, Any] | UsageError]) -> Iterator[dict[str, Any] | UsageError]:
    """The samples of a log in the order of their first events, and what is no event.

    The answer is what was sampled first: where a model grades, what it says is sampled after it.
    """
    if Path(name).is_file() and Path(name).stat().st_size > LARGEST_JSON:
        raise UsageError(f"{name} is a log of more than {LARGEST_JSON // 1_000_000} MB; split it by its samples")
    found: dict[str, dict[str, Any]] = {}
    for row in rows:
        if isinstance(row, UsageError):
            yield row
            continue
        data = row.get("data")
        if "sample_id" not in row or not isinstance(data, Mapping):
            if "final_report" not in row and "spec" not in row:
                yield UsageError(
                    f"a line of a log must be an event with a 'sample_id' and 'data', got {show(dict(row))}"
                )
            continue
        sample = found.setdefault(str(row["sample_id"]), {"item": {}, "datasource_item_id": str(row["sample_id"])})
        _add_event(sample, str(row.get("type")), data)
        sample.setdefault("run_id", row.get("run_id"))
    yield from found.values()


def _add_event(sample: dict[str, Any], kind: str, data: Mapping[str, Any]) -> None:
    if kind == "sampling" and "sample" not in sample:
        sampled = data.get("sampled")
        answer = sampled[0] if isinstance(sampled, list) and sampled else sampled
        sample["sample"] = {"input": data.get("prompt"), "output_text": answer}
    if kind in _KEPT:
        sample.setdefault("results", []).append({"type": kind, **data})
    if kind == "match" and data.get("expected") is not None:
        sample["item"].setdefault("expected", data["expected"])
