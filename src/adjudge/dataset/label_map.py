"""A label map: the meaning of the words in somebody else's labels, since a label is never guessed."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from adjudge.dataset.case import LabelValue
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import is_finite
from adjudge.formats.text import show

CANNOT_TELL = "cannot_tell"
"""The label of a rater who looked and cannot decide; in a case it is an unknown label."""

WORDS: Mapping[str, LabelValue] = {
    "true": True,
    "false": False,
    "first": "first",
    "second": "second",
    "tie": "tie",
}
"""The labels that have a word of their own, in any case."""

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

_LONGEST = 100
"""Characters of a number; what is longer is no label."""

_MOST = 10**_LONGEST
"""The least number that has more digits than that."""


LabelMap = Mapping[str, LabelValue]
"""Words with the label that each stands for: ``{"yes": True, "no": False, "unsure": None}``."""


def read_number(text: str) -> int | float | None:
    """Read the number that a text spells; ``None`` for any other text. Raises ``UsageError`` for one too large."""
    if not _NUMBER.fullmatch(text) or len(text) > _LONGEST:
        return None
    if text.lstrip("+-").isdigit():
        return int(text)
    number = float(text)
    if math.isfinite(number):
        return number
    raise UsageError(f"{number!r} is not a number that JSON has; leave it empty, or write a number")


def parse_label_map(text: str) -> dict[str, LabelValue]:
    """Parse a label map such as ``yes=true,no=false``. Raises ``UsageError`` for anything else.

    A word can mean ``true``, ``false``, a number, ``first``, ``second``, ``tie``, ``null`` (unknown) or
    ``cannot_tell``. A word that holds a comma or begins or ends with a blank needs ``label_map=`` of the library.

    Args:
        text: The map as text.
    """
    label_map: dict[str, LabelValue] = {}
    for entry in text.split(","):
        word, sign, meaning = entry.rpartition("=")
        word, meaning = word.strip(), meaning.strip()
        if not sign or not word or not meaning:
            raise UsageError(
                f"label_map {show(entry)} must be like yes=true; separate several by commas", argument="label_map"
            )
        if word in label_map:
            raise UsageError(f"label_map says twice what {show(word)} means; keep one", argument="label_map")
        label_map[word] = _read_meaning(word, meaning)
    return label_map


def _read_meaning(word: str, meaning: str) -> LabelValue:
    """Read the label that a word of a map stands for from the text behind its sign; ``null`` is ``None``, unknown.

    Raises ``UsageError`` for a text that is no label.
    """
    lower = meaning.lower()
    if lower in WORDS:
        return WORDS[lower]
    if lower in {"null", CANNOT_TELL}:
        return None if lower == "null" else CANNOT_TELL
    number = read_number(meaning)
    if number is None:
        raise UsageError(
            f"label_map: {show(word)} cannot stand for {show(meaning)}; it is true, false, a number, first, second, "
            f"tie, null or {CANNOT_TELL}",
            argument="label_map",
        )
    return number


def check_label_map(label_map: LabelMap | None) -> LabelMap:
    """Check a label map, and return it with its words normalized; raise ``UsageError`` for values that are no labels.

    Words are compared without regard to case and to blanks around them, numbers by their value: ``1`` is ``1.0``.
    """
    if label_map is None:
        return {}
    if not isinstance(label_map, Mapping):
        raise UsageError(f"label_map must be a mapping of words to labels, got {show(label_map)}", argument="label_map")
    checked: dict[str, LabelValue] = {}
    for word, value in label_map.items():
        if not isinstance(word, str) or not word.strip():
            raise UsageError(f"label_map: {show(word)} must be a text, as in the file", argument="label_map")
        if not _is_meaning(value):
            raise UsageError(
                f"label_map: {show(word)} cannot stand for {show(value)}; it is True, False, a number, 'first', "
                f"'second', 'tie', None or {CANNOT_TELL!r}",
                argument="label_map",
            )
        name = _normalize_word(word)
        if name in checked and (type(checked[name]), checked[name]) != (type(value), value):
            raise UsageError(f"label_map says twice what {show(word)} means; keep one", argument="label_map")
        checked[name] = value
    return checked


def _is_meaning(value: object) -> bool:
    """Return whether a word may stand for this value: a label, ``cannot_tell``, or ``None`` for unknown."""
    if value is None or isinstance(value, bool) or is_finite(value):
        return True
    return isinstance(value, str) and value in {"first", "second", "tie", CANNOT_TELL}


def apply_label_map(value: Any, label_map: LabelMap) -> Any:
    """Return the label that a value stands for, by a map that ``check_label_map`` returned.

    A value that is a label by itself stays as it is. Raises ``UsageError`` for a word that the map does not have and
    that is no label by itself, and for such a number where the map has numbers: 3 beside ``1=true,0=false`` would be a
    label of another sort.
    """
    if not label_map or value is None or not isinstance(value, bool | int | float | str):
        return value
    if not isinstance(value, bool | str) and not (is_finite(value) and abs(value) < _MOST):
        return value
    name = _normalize_word(value)
    if name in label_map:
        return label_map[name]
    if name in WORDS:
        return WORDS[name]
    is_number = isinstance(value, int | float) or read_number(name) is not None
    if name in {"", CANNOT_TELL}:
        return value
    if is_number and not any(read_number(word) is not None for word in label_map):  # the map has no numbers
        return value
    raise UsageError(
        f"the label {show(value)} is not in the label map; add it to ", Argument("label_map"), ", such as WORD=true"
    )


def map_labels(row: dict[str, Any], label_map: LabelMap) -> dict[str, Any]:
    """Return a row with the words in its ``label`` and ``labels`` replaced by the labels that they stand for.

    ``cannot_tell`` becomes ``None``, unknown. Raises ``UsageError`` for words that the map does not have.
    """
    if not label_map:
        return row
    mapped = {"label": _map_label(row["label"], label_map)} if "label" in row else {}
    if isinstance(row.get("labels"), Mapping):
        mapped["labels"] = {rater: _map_label(value, label_map) for rater, value in row["labels"].items()}
    return row | mapped


def _map_label(value: Any, label_map: LabelMap) -> Any:
    """Return the label that a value stands for in a case, where ``cannot_tell`` is unknown."""
    label = apply_label_map(value, label_map)
    return None if label == CANNOT_TELL else label


def _normalize_word(value: bool | float | str) -> str:  # noqa: FBT001 - it is what is named
    """Write a value so that equal labels are written alike: in lower case, without blanks, numbers by their value."""
    if isinstance(value, bool):
        return "true" if value else "false"
    number = read_number(value.strip()) if isinstance(value, str) else value
    if number is None:
        return str(value).strip().casefold()
    return str(int(number)) if number == int(number) else repr(float(number))
