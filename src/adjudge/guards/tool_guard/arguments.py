"""Reading of a tool call's arguments, which refuses every form that two programs could understand differently. Pure.

A judge, a person and the tool have to see the same call, and the tool is often written in another language.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

from adjudge.content import read_content
from adjudge.errors import UsageError
from adjudge.formats.json import check_decimals, read_json
from adjudge.formats.json_size import measure_excess
from adjudge.formats.text import quote

LARGEST_ARGUMENTS = 1_000_000
"""The most characters that arguments may have as indented JSON. Reading, writing and digesting them blocks the event
loop, so that meanwhile no timeout ends anything and no other call is answered."""

LARGEST_INTEGER = 2**53 - 1
"""The largest whole number that JavaScript and Python read alike (ECMAScript, ``Number.MAX_SAFE_INTEGER``)."""


def read_arguments(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Copy a call's arguments, or read their JSON text, into plain JSON values.

    Raises ``UsageError`` for what is no mapping, for two names in one object that are equal or differ only in case or
    Unicode form, for the name ``__proto__``, for a whole number beyond 2^53, for NaN and infinity, for a decimal in the
    JSON text that a float cannot hold exactly, for more than ``LARGEST_ARGUMENTS`` characters, and for NUL and halves
    of surrogate pairs.
    """
    if isinstance(arguments, str) and len(arguments) > LARGEST_ARGUMENTS:
        raise _make_size_error()
    try:
        value = read_json(arguments) if isinstance(arguments, str) else arguments
        if isinstance(arguments, str):
            check_decimals(arguments)
    except ValueError as error:
        raise UsageError(f"the arguments are no JSON: {error}", argument="arguments") from None
    if not isinstance(value, Mapping):
        raise UsageError(
            f"arguments must be a mapping of names to values, got {type(value).__name__}", argument="arguments"
        )
    if measure_excess(value, LARGEST_ARGUMENTS) == "long":
        raise _make_size_error()
    plain: dict[str, Any] = read_content(value, label="arguments")
    _check_values(plain)
    return plain


def _make_size_error() -> UsageError:
    """Make the error for arguments that are too large."""
    return UsageError(
        f"the arguments come to more than {LARGEST_ARGUMENTS:,} characters; write them in parts, or name a file",
        argument="arguments",
    )


def _check_values(arguments: Any) -> None:
    """Check every name, text and number in the arguments at any depth, and raise ``UsageError`` for a refused one.

    It uses no recursion, because the agent decides how deep arguments are nested.
    """
    unchecked = [arguments]
    while unchecked:
        value = unchecked.pop()
        if isinstance(value, dict):
            _check_names(value)
            unchecked += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            unchecked += value
        elif isinstance(value, str):
            _check_text(value)
        elif not isinstance(value, bool) and isinstance(value, int | float):
            _check_number(value)


def _check_names(members: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for ``__proto__``, and for two names that differ only in case or in their Unicode form."""
    name_by_folded: dict[str, str] = {}
    for name in members:
        if name == "__proto__":
            raise UsageError(
                "the arguments have __proto__, by which programs in JavaScript give an object other members"
            )
        # Go's encoding/json ignores case and takes the last of two such names, so the tool could read another path than
        # the judge.
        folded = unicodedata.normalize("NFKC", name).casefold()
        earlier_name = name_by_folded.setdefault(folded, name)
        if earlier_name != name:
            raise UsageError(
                f"the arguments have {quote(earlier_name, 60)} and {quote(name, 60)}, which some tools read as one name"
            )


def _check_text(text: str) -> None:
    """Raise ``UsageError`` for a text with NUL or half of a surrogate pair."""
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text if not character.isascii()):
        raise UsageError("the arguments hold NUL or half of a surrogate pair, which programs read differently")


def _check_number(number: float) -> None:
    """Raise ``UsageError`` for infinity, for NaN, and for a whole number that JavaScript cannot hold exactly."""
    if isinstance(number, float) and not math.isfinite(number):
        raise UsageError("the arguments hold a number that JSON has not")
    if isinstance(number, int) and abs(number) > LARGEST_INTEGER:
        raise UsageError("the arguments hold a whole number beyond 2^53, which JavaScript reads as another one")
