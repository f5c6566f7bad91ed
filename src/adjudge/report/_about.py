"""What a report says of its run, read from the manifest without trusting it to be whole."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import PurePath
from typing import Any

_LONGEST = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class About:
    """The run that is reported: an empty text is what the manifest does not say."""

    id: str = ""
    status: str = "unknown"
    """``finished``, ``interrupted``, ``running``, or ``unknown``."""
    created_at: str = ""
    adjudge: str = ""
    """The version that judged."""
    dataset: str = ""
    expected: int | None = None
    """Cases the data set has, or that were drawn from it, where that is known."""
    skipped: int = 0
    """Rows of the data set that could not be read and were left out."""
    judge: str = ""
    models: tuple[str, ...] = ()
    rubric: str = ""
    threshold: float | None = None
    """The rubric's passing threshold."""
    repeat: int = 1
    sample: int | None = None
    """How many cases were drawn; ``None`` when all are judged."""
    command: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The run in a few words."""
        return " judged by ".join(filter(None, (self.dataset or "A run", self.judge)))

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        data = {item.name: getattr(self, item.name) for item in fields(self)}
        return data | {"models": list(self.models), "command": list(self.command)}


def read_about(manifest: Mapping[str, Any], *, status: str = "") -> About:
    """What a manifest says; a member that is absent, or of another type, is left empty."""
    dataset, judge, rubric, options = [_mapping(manifest, name) for name in ("dataset", "judge", "rubric", "options")]
    command = manifest.get("command")
    sample = _whole(options, "sample")
    cases = _whole(dataset, "cases")
    return About(
        id=_text(manifest, "id"),
        status=_read_status(status or _text(manifest, "status")),
        created_at=_text(manifest, "created_at"),
        adjudge=_text(_mapping(manifest, "versions"), "adjudge"),
        # The name and not the path: a report is handed on, and whose machine it was is nobody's business.
        dataset=_text(dataset, "name") or PurePath(_text(dataset, "path")).name,
        expected=sample if sample is not None and (cases is None or sample < cases) else cases,
        skipped=_whole(dataset, "skipped") or 0,
        judge=_text(judge, "name"),
        models=tuple(dict.fromkeys(_list_models(judge)))[:20],
        rubric=_text(rubric, "name"),
        threshold=_number(rubric, "passing_threshold"),
        repeat=_whole(options, "repeat") or 1,
        sample=sample,
        command=tuple(map(str, command)) if isinstance(command, list) else (),
    )


def _read_status(said: str) -> str:
    # One of ours or none: it stands in sentences of ours, where nothing is escaped.
    return said if said in {"finished", "interrupted", "running"} else "unknown"


def _list_models(judge: Mapping[str, Any], depth: int = 0) -> list[str]:
    name = _text(_mapping(judge, "model"), "name")
    seats = judge.get("seats")
    inner = [item for item in seats if isinstance(item, Mapping)] if isinstance(seats, list) and depth < 20 else []
    return [name] * bool(name) + [found for seat in inner for found in _list_models(seat, depth + 1)]


def _mapping(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = data.get(name)
    return found if isinstance(found, Mapping) else {}


def _text(data: Mapping[str, Any], name: str) -> str:
    found = data.get(name)
    return found[:_LONGEST] if isinstance(found, str) else ""


def _whole(data: Mapping[str, Any], name: str) -> int | None:
    found = data.get(name)
    return found if isinstance(found, int) and not isinstance(found, bool) and found >= 0 else None


def _number(data: Mapping[str, Any], name: str) -> float | None:
    found = data.get(name)
    return float(found) if isinstance(found, int | float) and not isinstance(found, bool) else None
