"""The folder of a run: its lock, its manifest, whether it may be resumed (``check_resumable``), and ``Run``.

The tables of items and replies are in ``store.py``.
"""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Self

from adjudge.dataset.case import Case
from adjudge.dataset.contents import ContentSet, make_content_set, read_content_set
from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.formats.msgspec_types import read_typed
from adjudge.formats.plain_data import to_plain
from adjudge.formats.private_file import write_private
from adjudge.formats.sqlite import open_sqlite
from adjudge.judges.description import name_functions
from adjudge.judges.pair import PREFERENCES, PairResult
from adjudge.judges.pair_summary import PairSummary, summarise_pairs
from adjudge.models.retirement import Retirement
from adjudge.result import Usage, make_id
from adjudge.rubric.rubric import Rubric
from adjudge.runs.case_terms import Terms, read_terms
from adjudge.runs.item import RunItem
from adjudge.runs.store import RunStore

LOCK_FILE = "run.lock"


class RunLock:
    """A lock on a run's folder: a locked SQLite file. Every platform has these, and a process that dies releases it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._connection: sqlite3.Connection | None = None
        self._has_created = False
        """True if the file was not there before."""

    def acquire(self) -> None:
        """Acquire the lock. Raises ``UsageError`` if another process, or another run in this process, has it."""
        path = self.folder / LOCK_FILE
        try:
            while True:
                self._has_created = not path.exists()
                # Wait a moment: another process may hold the lock only to find out whether it is held.
                self._connection = _open_lock(path, patience=1.0)
                if path.exists():
                    return
                self._connection.close()  # the file was deleted by ``undo`` meanwhile, so its lock is worthless
        except sqlite3.OperationalError as error:
            if _is_disk_full(error):
                raise AdjudgeError(f"the run {self.folder} cannot be written: {error}; make room for it") from None
            raise UsageError(
                f"the run {self.folder} is being written by another process; wait for it, or name another folder"
            ) from None
        except sqlite3.Error:
            raise UsageError(
                f"{self.folder / LOCK_FILE} is no lock of a run; delete it if nobody writes to that run, "
                "or name another"
            ) from None

    def release(self) -> None:
        """Release the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def undo(self) -> None:
        """Release the lock, and delete its file if ``acquire`` has created it."""
        if self._has_created and self._connection is not None:
            with suppress(OSError):  # Windows deletes no open file
                (self.folder / LOCK_FILE).unlink()
        self.release()


def is_locked(folder: Path) -> bool:
    """Return whether a process holds the lock of a run, which means that it writes to it."""
    if not (folder / LOCK_FILE).is_file():
        return False
    try:
        _open_lock(folder / LOCK_FILE).close()
    except sqlite3.Error as error:
        return not _is_disk_full(error)
    return False


def _is_disk_full(error: sqlite3.Error) -> bool:
    """Return whether SQLite failed because the disk is full, and not because another process holds the lock."""
    return error.sqlite_errorname in ("SQLITE_FULL", "SQLITE_IOERR_WRITE")


def _open_lock(path: Path, *, patience: float = 0.0) -> sqlite3.Connection:
    """Open a file and lock it, after at most ``patience`` seconds. Raises ``sqlite3.Error`` if it cannot be locked."""
    return open_sqlite(path, mode="make", patience=patience, prepare=lambda opened: opened.execute("BEGIN EXCLUSIVE"))


MANIFEST_FILE = "run.json"

SCHEMA = "adjudge/run/1"

LARGEST = 50_000_000
"""Bytes of the largest manifest that is read; one has some thousand."""


_MOST_COMPARED = 20_000
"""Ids among which the nearest to an unknown one is looked for."""

_CASE_HINT = "adjudge report RUN lists ids, --json all of them; adjudge view RUN finds a case by its words"

_OUTCOMES = ("passed", "failed", "undecided")

_SUMMARY_MEMBERS = ("items", "cases", "undecided_because", "mean_score", "calls", "input_tokens", "output_tokens",
            "known_cost_usd", "unknown_costs", "labelled", "agreed")  # fmt: skip

_DIGEST_NOUNS = {"judge": "the judge", "rubric": "the rubric", "asked": "what is asked"}


def make_manifest(**members: Any) -> dict[str, Any]:
    """Make the manifest of a run that begins now."""
    now = datetime.now(UTC).isoformat()
    # The package is looked up and not imported, because it is above this module.
    versions = {"adjudge": sys.modules["adjudge"].__version__, "python": platform.python_version()}
    head = {"schema": SCHEMA, "id": make_id(), "created_at": now, "updated_at": now, "status": "running"}
    return head | {"versions": versions} | to_plain(members)


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Write a manifest in one step, readable by its owner alone: there is the old one or the new one."""
    write_document(folder, MANIFEST_FILE, manifest)


def write_document(folder: Path, name: str, document: Mapping[str, Any]) -> None:
    """Write a JSON document of a run in one step, readable by its owner alone. Raises ``AdjudgeError``."""
    try:
        write_private(folder / name, json.dumps(document, indent=2).encode() + b"\n")
    except OSError as error:
        raise AdjudgeError(f"the run {folder} cannot be written: {error.strerror}") from None


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read and check the manifest of a run. Raises ``UsageError`` if there is none, or a damaged one."""
    path = folder / MANIFEST_FILE
    with suppress(OSError):  # opening the file below raises a better message
        if path.exists() and not path.is_file():  # opening a pipe would wait
            raise UsageError(f"{path} is not a regular file; name a folder of `adjudge run`")
    try:
        with path.open("rb") as file:
            manifest = json.loads(file.read(LARGEST))
    except FileNotFoundError:
        raise UsageError(
            f"{folder} holds no run: there is no {MANIFEST_FILE} in it; name a folder of `adjudge run`"
        ) from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; name a folder of `adjudge run`") from None
    except (ValueError, RecursionError):
        raise UsageError(f"{path} is not JSON, so it is no run's; name a folder of `adjudge run`") from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA:
        raise UsageError(f"{path} is of the schema {schema!r}, not {SCHEMA!r}; name a folder of `adjudge run`")
    _check_shape(path, manifest)
    return manifest


def _check_shape(path: Path, manifest: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for a member of a manifest that is missing or of another type."""
    kinds = dict.fromkeys(("dataset", "judge", "asked", "digests", "options"), dict) | {"id": str, "status": str}
    if manifest.get("status") == "finished":  # only then are the counts and the summary read from the manifest
        kinds |= {"counts": dict, "summary": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(manifest.get(name), kind)]
    if not isinstance(manifest.get("rubric", 0), dict | None):
        wrong.append("rubric")
    if not wrong and type(manifest["options"].get("repeat", 1)) is not int:
        wrong.append("options.repeat")
    if not wrong and manifest["status"] == "finished":
        counts, summary = manifest["counts"], manifest["summary"]
        if set(counts) != set(_OUTCOMES) or any(type(count) is not int or count < 0 for count in counts.values()):
            wrong.append("counts")
        wrong += [f"summary.{name}" for name in _SUMMARY_MEMBERS if name not in summary]
    if wrong:
        raise UsageError(f"{path} is damaged: the manifest has no {wrong[0]} to go by; name a folder of `adjudge run`")


def check_resumable(folder: Path, recorded: Mapping[str, Any], manifest: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` if a run cannot be resumed, because old and new results would not be comparable.

    ``recorded`` is the manifest in the folder, ``manifest`` the one that the resumed run would have.
    """
    for changed in list_changes(recorded, manifest):
        raise UsageError(
            f"the run {folder} cannot be resumed: {changed}; resume with what it began with, or begin another run"
        )
    redecided = recorded.get("redecided")
    policy = redecided.get("policy") if isinstance(redecided, Mapping) else None
    if isinstance(policy, Mapping) and policy.get("all_cases"):
        raise UsageError(
            f"the run {folder} cannot be resumed: it was redecided with all_cases, and cases that are judged now would "
            "use their own criteria and thresholds; begin another run"
        )
    recorded_options, options = recorded["options"], manifest["options"]
    for name in ("sample", "seed"):
        if recorded_options.get(name) != options[name]:
            raise UsageError(
                f"the run {folder} cannot be resumed: it has ",
                Argument(name, repr(recorded_options.get(name))),
                f", not {options[name]!r}",
                argument=name,
            )
    # With another number of cases, other cases would be drawn for the sample.
    if options["sample"] is not None and recorded["dataset"]["cases"] != manifest["dataset"]["cases"]:
        raise UsageError(
            f"the run {folder} cannot be resumed: it was a sample of {recorded['dataset']['cases']} cases, and the "
            f"data set has {manifest['dataset']['cases']} now"
        )
    # The threshold also applies to the criteria of cases, which are not in the digest of the run's rubric.
    if (recorded.get("own") or recorded.get("rubric") is None) and recorded_options.get("threshold") != options[
        "threshold"
    ]:
        raise UsageError(
            f"the run {folder} cannot be resumed: it has ",
            Argument("threshold", repr(recorded_options.get("threshold"))),
            f", not {options['threshold']!r}",
            argument="threshold",
        )
    if recorded_options.get("repeat", 1) > options["repeat"]:
        raise UsageError(
            f"the run {folder} cannot be resumed: it has ",
            Argument("repeat", repr(recorded_options["repeat"])),
            f", and you asked for fewer, {options['repeat']}",
            argument="repeat",
        )


def list_changes(recorded: Mapping[str, Any], manifest: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence about each of judge, rubric and question that differs between two manifests."""
    changed = [name for name in _DIGEST_NOUNS if recorded["digests"].get(name) != manifest["digests"].get(name)]
    for name in changed:
        old, new = recorded.get(name), manifest.get(name)
        if name == "asked" and "rubric" in changed:  # another rubric always changes the wording: not worth a sentence
            old, new = _drop_wording(old), _drop_wording(new)
            if old == new:
                continue
        yield f"{_DIGEST_NOUNS[name]} changed ({_find_change(old, new)})"


def _drop_wording(question: Any) -> Any:
    """Return a described question without the digest of its wording."""
    if not isinstance(question, dict):
        return question
    return {name: value for name, value in question.items() if name != "wording"}


def _find_change(recorded: Any, current: Any, path: str = "") -> str:
    """Describe the first difference between two descriptions; ``path`` names the member that they are."""
    if isinstance(recorded, dict) and isinstance(current, dict):
        if path.endswith("model.function") and {**recorded, "code": None} == {**current, "code": None}:
            return _shorten_value(
                f"the code of the function {current.get('module')}.{current.get('qualname')}", bare=True
            )
        for name in [*recorded, *(name for name in current if name not in recorded)]:
            if recorded.get(name) != current.get(name):
                return _find_change(recorded.get(name), current.get(name), f"{path}.{name}" if path else str(name))
    if isinstance(recorded, list) and isinstance(current, list):
        for number, (recorded_member, current_member) in enumerate(zip(recorded, current, strict=False), 1):
            if recorded_member != current_member:
                return _find_change(recorded_member, current_member, f"{path} {number}")
    return f"{path}: {_shorten_value(recorded)} before, {_shorten_value(current)} now".removeprefix(": ")


def _shorten_value(value: Any, *, bare: bool = False) -> str:
    """Write a value as JSON, shortened for a message; with ``bare``, a text as it is."""
    from adjudge.formats.text import clean

    text = clean(value if bare else json.dumps(value, ensure_ascii=False), keep_lines=False)
    return text if len(text) <= 80 or bare else f"{text[:77]}..."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Run:
    """A judged data set on disk; ``open_run`` opens one. Items are streamed, so a run may be larger than memory."""

    folder: Path
    """The folder of the run."""
    manifest: Mapping[str, Any]
    """``run.json``: versions, digests, the judge, the rubric, options, and the summary of the items."""
    store: RunStore = field(repr=False)
    """The file with the cases, the results and the replies."""
    kept_alive: object = field(default=None, repr=False)
    """The owner of a temporary folder, which is removed with the last reference to it."""

    @property
    def id(self) -> str:
        """The run's id, a UUIDv7."""
        return str(self.manifest["id"])

    @property
    def status(self) -> str:
        """``running``, ``interrupted`` or ``finished``; a run whose process was killed is interrupted."""
        recorded = str(self.manifest["status"])
        return "interrupted" if recorded == "running" and not is_locked(self.folder) else recorded

    @property
    def counts(self) -> Mapping[str, int]:
        """The number of items that passed, failed and are undecided."""
        return dict(self.summary["counts"])

    @property
    def summary(self) -> Mapping[str, Any]:
        """The totals of the items: ``counts``, ``undecided_because``, ``mean_score``, tokens, costs and labels.

        Read from the manifest; counted again if the run did not end normally. ``labelled`` counts items whose case has
        the label true or false, ``agreed`` those of them whose outcome agrees with it.
        """
        if self.manifest["status"] == "finished":
            return {"counts": self.manifest["counts"], **self.manifest["summary"]}
        return self.store.sum_up(name_functions(self.manifest["judge"]))

    @property
    def usage(self) -> Usage:
        """Tokens of all items, and their cost if the cost of every item is known."""
        summary = self.summary
        cost = summary["known_cost_usd"] if not summary["unknown_costs"] else None
        return Usage(
            input_tokens=summary["input_tokens"] or 0,
            output_tokens=summary["output_tokens"] or 0,
            calls=summary["calls"] or 0,
            cost_usd=cost,
        )

    @property
    def retirements(self) -> tuple[Retirement, ...]:
        """The retirements of the run's models, as providers stated them during the run; empty where none did."""
        try:
            return read_typed(self.manifest.get("retirements", []), tuple[Retirement, ...])
        except ValueError:  # a manifest that was changed by hand: the run is read all the same
            return ()

    @property
    def contents(self) -> ContentSet | None:
        """The contents that were judged, as a finished run recorded them; ``None`` for a run that is not finished."""
        return read_content_set(self.manifest["dataset"].get("contents")) if self.status == "finished" else None

    def find_contents(self) -> ContentSet | None:
        """The contents that are kept, read case by case; ``None`` for a run that is not finished.

        They differ from ``contents`` where somebody changed one of the run's files.
        """
        return make_content_set(self.store.list_contents()) if self.status == "finished" else None

    @property
    def compares(self) -> bool:
        """Return whether the cases are pairs that were compared."""
        return bool((self.manifest.get("asked") or {}).get("pairs"))

    def sum_up_pairs(self) -> PairSummary:
        """Summarise the comparisons of a run of pairs; reads every item.

        Labels other than ``first``, ``second`` and ``tie`` are no preferences and count as unknown.
        """
        return summarise_pairs(
            (item.result, item.case.label if item.case.label in PREFERENCES else None)
            for item in self.items()
            if isinstance(item.result, PairResult)
        )

    def items(self, outcome: str | None = None) -> Iterator[RunItem]:
        """Yield the items in the order of the data set.

        Raises ``UsageError`` for another outcome, and for a folder that cannot be read.

        Args:
            outcome: Only items with this outcome: ``passed``, ``failed`` or ``undecided``; ``None`` is all.
        """
        if outcome not in (None, "passed", "failed", "undecided"):
            raise UsageError(f"an outcome is passed, failed or undecided; got {outcome!r}", argument="outcome")
        return self._read_items("1" if outcome is None else f"r.outcome = '{outcome}'")

    def read_place(self, place: int) -> list[RunItem]:
        """Return every judgement of the case at a place; none where there is none.

        Args:
            place: The number of the case in the data set, from 0.
        """
        return list(self._read_items(f"r.place = {place:d}"))

    def read_case(self, case: str) -> list[RunItem]:
        """Return every judgement of this case. Raises ``UsageError``, naming the nearest id, if there is none.

        Args:
            case: The id of the case.
        """
        place = self.store.find_place(case)
        if place is not None:
            return self.read_place(place)
        from adjudge.formats.text import clean, find_nearest, show

        # Only the first ids of a huge run, because comparing with a million ids would take long.
        ids = self.store.list_ids(_MOST_COMPARED)
        # A terminal shows an id without its special characters, so the user may have copied it like that.
        same_as_shown = next((known_id for known_id in ids if clean(known_id, keep_lines=False) == case), None)
        nearest = same_as_shown or find_nearest(case, ids)
        hint = f"did you mean {show(nearest)}?" if nearest is not None else _CASE_HINT
        raise UsageError(f"{self.folder} has no case {show(case)}; {hint}")

    def _read_items(self, where: str) -> Iterator[RunItem]:
        """Yield the items that match a condition in SQL, each with the rubric that it was judged by."""
        # This generator keeps a reference to the run: a temporary folder is deleted when nothing refers to its run.
        terms = read_terms(self.manifest)
        for item in self.store.items(where=where):
            yield replace(item, rubric=_find_rubric(terms, item.case))

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest, with the current status and summary."""
        # The manifest is returned as the file has it, also with members that a later version of adjudge added.
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
        counts = ", ".join(f"{number} {outcome}" for outcome, number in self.counts.items())
        return f"<{type(self).__name__} {str(self.folder)!r} {self.status}: {counts}>"

    def _repr_html_(self) -> str:
        """Return the run as HTML for a notebook: its figures, and the first items that failed or are undecided."""
        from adjudge.formats.notebook import MOST_ROWS, list_counts, render_fragment

        summary = self.summary
        facts = {
            "judge": self.manifest["judge"].get("name"),
            "undecided": list_counts(summary["undecided_because"]) if summary["undecided_because"] else None,
            "mean score": summary["mean_score"],
            "dollars": None if summary["unknown_costs"] else summary["known_cost_usd"],
        }
        not_passed = (item for outcome in ("failed", "undecided") for item in self.items(outcome))
        shown_items = islice(not_passed, MOST_ROWS + 1)
        rows = [(item.case.id, item.result.outcome, item.result.explain()) for item in shown_items]
        title = f"{self.folder.name}, {self.status}: {list_counts(self.counts)}"
        return render_fragment(title, facts=facts, columns=("case", "outcome", "why"), rows=rows)

    def to_pandas(self) -> Any:
        """Return a pandas ``DataFrame`` with one row for each item; see ``list_rows``.

        Raises ``UsageError`` if pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError:
            raise UsageError("to_pandas needs pandas; run pip install pandas, or use list_rows") from None
        return pd.DataFrame(self.list_rows())

    def list_rows(self) -> list[dict[str, Any]]:
        """List the items as flat rows, for a frame of pandas or polars; holds the whole run in memory.

        A row has the ``case``, its ``sample`` among repeated judgements, ``content``, ``task``, ``reference``,
        ``label``, ``outcome``, ``score``, ``undecided_because``, ``why`` in one line, ``duration_ms`` and ``cost_usd``,
        and ``criteria.NAME`` with the score of each criterion. Of a comparison it has ``preferred`` and no scores.
        """
        return [_make_item_row(item) for item in self.items()]


def _make_item_row(item: RunItem) -> dict[str, Any]:
    """Make the row of ``list_rows`` for one item."""
    case, result = item.case, item.result
    usage = result.usage
    row: dict[str, Any] = {
        "case": case.id,
        "sample": item.sample,
        "content": case.content,
        "task": case.task,
        "reference": case.reference,
        "label": case.label,
        "outcome": result.outcome,
        "undecided_because": result.undecided_because,
        "why": result.explain(),
        "duration_ms": result.duration_ms,
        "cost_usd": usage.cost_usd if usage is not None else None,
    }
    if isinstance(result, PairResult):
        return row | {"preferred": result.preferred}
    scores = {f"criteria.{criterion.name}": criterion.score for criterion in result.criteria}
    return row | {"score": result.score} | scores


def _find_rubric(terms: Terms, case: Case) -> Rubric | None:
    """Return the rubric that a case was judged by; ``None`` if what the case brings cannot be used."""
    try:
        return terms.find_rubric(case)
    except UsageError:  # perhaps the reason why the case is undecided; the run can be read all the same
        return None


def open_run(folder: str | os.PathLike[str]) -> Run:
    """Open the folder of a run. Raises ``UsageError`` if the folder has no run.

    Args:
        folder: The folder of the run.
    """
    path = Path(folder)
    manifest = read_manifest(path)
    return Run(folder=path, manifest=manifest, store=RunStore(path).open())
