"""A run that can be read: its folder, what it says of itself, and its items."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from adjudge._pair import PREFERENCES, PairResult
from adjudge._pair_summary import PairSummary, summarise_pairs
from adjudge._run._items import RunItem
from adjudge._run._lock import is_locked
from adjudge._run._manifest import read_manifest
from adjudge._run._store import RunStore
from adjudge.errors import UsageError
from adjudge.result import Usage


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Run:
    """A data set that was judged, on disk; ``open_run`` opens one. Reading streams, whatever its size."""

    folder: Path
    manifest: Mapping[str, Any]
    """``run.json``: versions, digests, the judge, the rubric, options, and what the items come to."""
    store: RunStore = field(repr=False)
    """The file with the cases, the results and the replies."""
    kept_alive: Any = field(default=None, repr=False)
    """What owns the folder of a run without a place of its own: it is removed with the last reference to it."""

    @property
    def id(self) -> str:
        """The run's id, a UUIDv7."""
        return str(self.manifest["id"])

    @property
    def status(self) -> str:
        """``running``, ``interrupted`` or ``finished``; a run whose process was killed is interrupted."""
        said = str(self.manifest["status"])
        return "interrupted" if said == "running" and not is_locked(self.folder) else said

    @property
    def counts(self) -> Mapping[str, int]:
        """How many items passed, failed and are undecided."""
        return dict(self.summary["counts"])

    @property
    def summary(self) -> Mapping[str, Any]:
        """What the items come to: ``counts``, ``undecided_because``, ``mean_score``, tokens, costs and labels.

        As the manifest says it; counted anew while a run has not ended in order. ``labelled`` counts items whose
        case has true or false as its label, ``agreed`` those of them that passed or failed as it says.
        """
        if self.manifest["status"] == "finished":
            return {"counts": self.manifest["counts"], **self.manifest["summary"]}
        return self.store.sum_up()

    @property
    def usage(self) -> Usage:
        """Tokens of all items, and their cost where the cost of every one is known."""
        found = self.summary
        known = found["known_cost_usd"] if not found["unknown_costs"] else None
        return Usage(
            input_tokens=found["input_tokens"] or 0,
            output_tokens=found["output_tokens"] or 0,
            calls=found["calls"] or 0,
            cost_usd=known,
        )

    @property
    def compares(self) -> bool:
        """Whether the cases are pairs that were compared."""
        return bool((self.manifest.get("asked") or {}).get("pairs"))

    def sum_up_pairs(self) -> PairSummary:
        """What the comparisons of a run of pairs come to; reads every item.

        Labels other than ``first``, ``second`` and ``tie`` are no preferences and count as unknown.
        """
        return summarise_pairs(
            (item.result, item.case.label if item.case.label in PREFERENCES else None)
            for item in self.items()
            if isinstance(item.result, PairResult)
        )

    def items(self, outcome: str | None = None) -> Iterator[RunItem]:
        """The items in the order of the data set; with ``outcome``, those that ``passed``, say."""
        if outcome not in (None, "passed", "failed", "undecided"):
            raise UsageError(f"an outcome is passed, failed or undecided; got {outcome!r}")
        return self._read("1" if outcome is None else f"r.outcome = '{outcome}'")

    def _read(self, where: str) -> Iterator[RunItem]:
        # A generator of ours, and not the store's: it holds this run, whose folder may go when nobody does.
        yield from self.store.items(where=where)

    def to_dict(self) -> dict[str, Any]:
        """The manifest, with the status and the summary of this moment."""
        summary = dict(self.summary)
        counts = summary.pop("counts")
        return {**self.manifest, "status": self.status, "counts": counts, "summary": summary}

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __repr__(self) -> str:
        said = ", ".join(f"{number} {outcome}" for outcome, number in self.counts.items())
        return f"<{type(self).__name__} {str(self.folder)!r} {self.status}: {said}>"


def open_run(folder: str | os.PathLike[str]) -> Run:
    """Open the folder of a run; raises ``UsageError`` when it holds none."""
    path = Path(folder)
    manifest = read_manifest(path)
    return Run(folder=path, manifest=manifest, store=RunStore(path).open())
