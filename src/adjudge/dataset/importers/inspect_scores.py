"""Scores that people gave in Inspect, as labels: edits of a log's scores, and files of ``precomputed_scores``.

Source: ``inspect_ai`` 0.3.285 (``scorer/_metric.py``, ``log/_edit.py``, ``scorer/_precomputed.py``), whose own logs are
in the tests. A scorer is no person: its score is a label only under a name that the caller says is one of people.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.dataset.dataset import Notes, add_note
from adjudge.dataset.formats import LARGEST_JSON, find_format, read_rows, read_whole
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_whole_number, is_finite
from adjudge.formats.json import read_json
from adjudge.formats.text import flatten, show

Verdict = bool | float

_UNCHANGED = "UNCHANGED"
"""The value of an edit in a log that left the score's value as it was."""

_WORDS: Mapping[str, bool] = {"C": True, "I": False}
"""The letters of Inspect for correct and incorrect; partial credit (P) and no answer (N) are no verdict."""


def read_verdict(value: Any) -> Verdict | None:
    """Read the value of a score as a label: ``C`` is true, ``I`` false; ``None`` for a value that is no label."""
    if isinstance(value, str):
        return _WORDS.get(value)
    return value if isinstance(value, bool) or is_finite(value) else None


def list_verdicts(scores: Any, name: str | None, notes: Notes) -> dict[str, Verdict]:
    """List each person's verdict on a sample, by the names of the people.

    The verdicts are the edits of the score ``name``; without a name, of the one score that people have edited. Of
    several edits by one person the last that changed the value counts. If nobody edited the score ``name``, its own
    value is a verdict, under that name.
    """
    score_by_name = scores if isinstance(scores, Mapping) else {}
    edits_by_name = {key: dict(_list_edits(score)) for key, score in score_by_name.items() if name in (None, key)}
    edits_by_name = {key: edits for key, edits in edits_by_name.items() if edits}
    if name is None and len(edits_by_name) > 1:
        add_note(notes, "scores of several names that people edited: say which is the label (label_name)")
        return {}
    values = next(iter(edits_by_name.values()), {})  # of the only one, by the author
    if not values and name is not None and isinstance(score_by_name.get(name), Mapping):
        values = {name: score_by_name[name].get("value")}
    return dict(_read_values(values, notes))


def _list_edits(score: Any) -> Iterator[tuple[str, Any]]:
    """Yield the author and the new value of every edit of a score that changed its value."""
    history = score.get("history") if isinstance(score, Mapping) else None
    for edit in history if isinstance(history, list) else ():
        provenance = edit.get("provenance") if isinstance(edit, Mapping) else None
        author = provenance.get("author") if isinstance(provenance, Mapping) else None
        if isinstance(author, str) and author.strip() and edit.get("value", _UNCHANGED) != _UNCHANGED:
            yield flatten(author, 100), edit["value"]


def _read_values(values: Mapping[str, Any], notes: Notes) -> Iterator[tuple[str, Verdict]]:
    """Yield each rater with their verdict; a value that is no label is noted and left out."""
    for rater, value in values.items():
        verdict = read_verdict(value)
        if verdict is None:
            add_note(notes, f"a person's score {show(value)}, which is no label: C, I, true, false or a number is one")
        else:
            yield rater, verdict


def find_majority(verdicts: Mapping[str, Verdict]) -> Verdict | None:
    """Find the verdict of more than half of the raters; ``None`` where no verdict has that."""
    if not verdicts:
        return None
    counts = Counter((isinstance(value, bool), value) for value in verdicts.values())  # true is not 1
    (_, most_frequent), count = counts.most_common(1)[0]
    return most_frequent if 2 * count > len(verdicts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratings:
    """A file of scores for ``precomputed_scores``."""

    rater: str
    """The person who gave them, by the name of the file."""
    values: Mapping[tuple[str, int | None], Any] = field(default_factory=dict)
    """The value of each rating, by the id of the sample and the epoch; ``None`` is every epoch."""

    def find(self, name: str, epoch: int | None, notes: Notes) -> dict[str, Verdict]:
        """Find the rating of a sample, by the rater's name: that of its epoch, else the one without an epoch.

        Empty where there is none, or where it is no label, which is noted.
        """
        for key in ((name, epoch), (name, None)):
            if key in self.values:
                return dict(_read_values({self.rater: self.values[key]}, notes))
        return {}


def load_ratings(path: str) -> Ratings:
    """Load the ratings of a file (JSON, or JSON lines); raises ``UsageError`` for a record that Inspect refuses too."""
    ratings: dict[tuple[str, int | None], Any] = {}
    for number, record in enumerate(_list_records(path), 1):
        epoch = record.get("epoch")
        if "id" not in record or "value" not in record:
            raise UsageError(f"{path}, record {number}: it needs 'id' and 'value'; name a file of precomputed_scores")
        if epoch is not None:
            check_whole_number("epoch", epoch, where=f"{path}, record {number}")
        key = (str(record["id"]), epoch)
        if key in ratings:
            raise UsageError(f"{path}, record {number}: the sample {show(record['id'])} is rated twice; keep one")
        ratings[key] = record["value"]
    return Ratings(rater=Path(path).stem, values=ratings)


def _list_records(path: str) -> Iterator[Mapping[str, Any]]:
    """Yield the score records of a file. Raises ``UsageError``."""
    form, gz = find_format(path, None)
    if form == "jsonl":
        for line, row in read_rows(path, form, None, gz=gz):
            if isinstance(row, UsageError):
                raise UsageError(f"{path}, line {line}: {row}")
            yield row
        return
    try:
        records = read_json(read_whole(path, LARGEST_JSON), nan_is_null=True)
    except UsageError:
        raise
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not JSON ({flatten(str(error))})") from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise UsageError(f"{path} must hold a list of score records; name a file of precomputed_scores")
    yield from records
