"""Logs of the open-source framework ``evals`` (``oaieval``), as rows of an export of OpenAI's platform.

Source: ``evals/record.py`` of openai/evals: a line with the ``spec``, one for each event, one with a ``final_report``.
Events of one sample stand anywhere, so a log is read as a whole.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from adjudge.dataset.formats import LARGEST_JSON
from adjudge.errors import UsageError
from adjudge.formats.text import show

_VERDICTS = ("match", "metrics", "error")
"""The types of events that say how the framework judged a sample."""


def is_log(row: object) -> bool:
    """Return whether a file is a log, by its first row."""
    return isinstance(row, Mapping) and isinstance(row.get("spec"), Mapping)


def group_events(name: str, rows: Iterable[Mapping[str, Any] | UsageError]) -> Iterator[dict[str, Any] | UsageError]:
    """Yield the samples of a log in the order of their first events, and an error for a line that is no event.

    Each is a row as the platform exports it. The answer is the first text that was sampled, because a model that grades
    is asked after it.
    """
    samples: dict[str, dict[str, Any]] = {}
    characters_left = LARGEST_JSON
    for row in rows:
        if isinstance(row, UsageError):
            yield row
            continue
        event = row.get("data")
        if "sample_id" not in row or not isinstance(event, Mapping):
            if "final_report" not in row and "spec" not in row:
                yield UsageError(
                    f"a line of a log must be an event with a 'sample_id' and 'data', got {show(dict(row))}"
                )
            continue
        # The events are measured, and not the file: a packed one may hold two hundred times its size, and the size of a
        # pipe is not known.
        characters_left -= len(json.dumps(row, ensure_ascii=False, separators=(",", ":")))
        if characters_left < 0:
            raise UsageError(f"{name} is a log of more than {LARGEST_JSON // 1_000_000} MB; split it by its samples")
        sample_id = str(row["sample_id"])
        sample_row = samples.setdefault(sample_id, {"item": {}, "datasource_item_id": sample_id})
        _add_event(sample_row, str(row.get("type")), event)
        sample_row.setdefault("run_id", row.get("run_id"))
    yield from samples.values()


def _add_event(sample_row: dict[str, Any], kind: str, event: Mapping[str, Any]) -> None:
    """Add one event of a sample to the sample's row, in the members that an export of the platform has."""
    if kind == "sampling":
        sample_row.setdefault("sample", {"input": event.get("prompt"), "output_text": _find_sampled_text(event)})
    if kind in _VERDICTS:
        sample_row.setdefault("results", []).append({"type": kind, **event})
    if kind == "match" and event.get("expected") is not None:
        sample_row["item"].setdefault("expected", event["expected"])


def _find_sampled_text(event: Mapping[str, Any]) -> Any:
    """Return the first text that was sampled; some versions record one text, others a list."""
    sampled = event.get("sampled")
    return sampled[0] if isinstance(sampled, list) and sampled else sampled
