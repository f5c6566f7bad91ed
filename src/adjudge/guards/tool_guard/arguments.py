"""The arguments of a call, read strictly: what two programs could understand differently is refused. Pure.

A judge, a person and the tool have to see the same call, and the tool is written in another language as often as not.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Mapping
from typing import Any

from adjudge.content import read_content
from adjudge.errors import UsageError
from adjudge.formats.extent import find_excess
from adjudge.formats.json import check_decimals, read_json
from adjudge.formats.text import quote

LARGEST_ARGUMENTS = 1_000_000
"""Characters of indented JSON that arguments may come to. To read, write and digest them takes its time at one go, in
which nothing ends by its timeout and nobody else is answered."""

LARGEST_WHOLE = 2**53 - 1
"""The largest whole number that JavaScript and Python read alike (ECMAScript, ``Number.MAX_SAFE_INTEGER``)."""


def read_arguments(arguments: Mapping[str, Any] | str) -> dict[str, Any]:
    """Copy arguments into plain JSON values.

    Raises ``UsageError`` for what is no mapping, for a name that stands twice in one object (also where only case or
    the Unicode form differ) or is ``__proto__``, for a number beyond 2^53 or none, for a decimal in a text that a float
    does not hold as it is written, for more than ``LARGEST_ARGUMENTS``, and for NUL and halves of surrogate pairs.
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
    if find_excess(value, LARGEST_ARGUMENTS) == "long":
        raise _make_size_error()
    plain: dict[str, Any] = read_content(value, label="arguments")
    _check_values(plain)
    return plain


def _make_size_error() -> UsageError:
    return UsageError(
        f"the arguments come to more than {LARGEST_ARGUMENTS:,} characters; write them in parts, or name a file",
        argument="arguments",
    )


def _check_values(top: Any) -> None:
    """Check every value; without recursion, since arguments nest as deep as their author likes."""
    values = [top]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            _check_names(value)
            values += [*value.keys(), *value.values()]
        elif isinstance(value, list):
            values += value
        elif isinstance(value, str):
            _check_text(value)
        elif not isinstance(value, bool) and isinstance(value, int | float):
            _check_number(value)


def _check_names(members: Mapping[str, Any]) -> None:
    """Raise ``UsageError`` for ``__proto__``, and for two names that differ only in case or in their Unicode form."""
    written: dict[str, str] = {}
    for name in members:
        if name == "__proto__":
            raise UsageError(
                "the arguments have __proto__, by which programs in JavaScript give an object other members"
            )
        # Go's encoding/json ignores case and takes the last of two: a tool would read another path than the judge.
        folded = unicodedata.normalize("NFKC", name).casefold()
        other = written.setdefault(folded, name)
        if other != name:
            raise UsageError(
                f"the arguments have {quote(other, 60)} and {quote(name, 60)}, which some tools read as one name"
            )


def _check_text(text: str) -> None:
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text if not character.isascii()):
        raise UsageError("the arguments hold NUL or half of a surrogate pair, which programs read differently")


def _check_number(number: float) -> None:
    if isinstance(number, float) and not math.isfinite(number):
        raise UsageError("the arguments hold a number that JSON has not")
    if isinstance(number, int) and abs(number) > LARGEST_WHOLE:
        raise UsageError("the arguments hold a whole number beyond 2^53, which JavaScript reads as another one")
