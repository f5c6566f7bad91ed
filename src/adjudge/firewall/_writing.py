"""Rules and arguments as the text a judge is shown: JSON, so that no text can leave the line it stands on.

A rule is an attacker's text and may hold anything, so writing one cannot fail. Arguments are written only if they are
JSON values: an object that shows a judge one thing could be another thing to the function that gets it.
"""

from __future__ import annotations

import json
import math
import re
from collections import OrderedDict, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from adjudge._depth import MOST_DEPTH

MOST_CHARACTERS = 1_000_000
"""What is longer, written as JSON, is not asked about; models take as much by default."""
MOST_RULES = 1_000

PLAIN = frozenset((dict, OrderedDict, defaultdict))
"""Mappings whose members are all there is to them. One that keeps several values under a key, as web frameworks have,
shows one of them and gives the function the others."""

_SPECIAL = re.compile(r"[^\x20-\x7e\n]")


class UnwritableError(ValueError):
    """What was handed in cannot be shown to a judge; the text says why and quotes none of it."""


def write_rules(rules: Sequence[str]) -> list[str]:
    """Each rule as one JSON string on one line; raises ``UnwritableError`` for more than a judge can be asked about."""
    if len(rules) > MOST_RULES:
        raise UnwritableError(f"{len(rules):,} rules are more than {MOST_RULES:,}; check them in parts")
    size = sum(len(rule) for rule in rules)
    written = [] if size > MOST_CHARACTERS else [_show_hidden(json.dumps(rule, ensure_ascii=False)) for rule in rules]
    if size > MOST_CHARACTERS or sum(len(text) for text in written) > MOST_CHARACTERS:
        raise UnwritableError(f"the rules are longer than {MOST_CHARACTERS:,} characters; check them in parts")
    return written


def write_arguments(arguments: Mapping[str, Any]) -> str:
    """Arguments as indented JSON with sorted keys: equal arguments are equal text. Raises ``UnwritableError``."""
    try:
        plain = _Walk().take(arguments, 0)
        text = _show_hidden(json.dumps(plain, ensure_ascii=False, indent=2, sort_keys=True, allow_nan=False))
    except UnwritableError:
        raise
    except (ValueError, RecursionError) as error:  # a number of more digits than Python writes; a lowered limit
        raise UnwritableError(f"the arguments cannot be read ({type(error).__name__})") from None
    if len(text) > MOST_CHARACTERS:
        raise _too_large()
    return text


class _Walk:
    """One look at arguments: every value of a type JSON has, within one allowance for all of them."""

    __slots__ = ("left",)

    def __init__(self) -> None:
        self.left = MOST_CHARACTERS

    def take(self, value: Any, depth: int) -> Any:
        """The value, as dictionaries and lists; counted, so that one that holds itself many times comes to an end."""
        self._spend(value)
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise UnwritableError("the arguments hold NaN or an infinity, which JSON does not have")
            return value
        if depth >= MOST_DEPTH:
            raise UnwritableError(f"the arguments hold themselves, or nest deeper than {MOST_DEPTH} levels")
        if type(value) in PLAIN:
            return {_check_key(key): self.take(item, depth + 1) for key, item in value.items()}
        if type(value) in {list, tuple}:
            return [self.take(item, depth + 1) for item in value]
        raise UnwritableError(
            f"the arguments hold a value of type {type(value).__name__}, which is no plain JSON value"
        )

    def _spend(self, value: Any) -> None:
        size = len(value) if isinstance(value, str) else value.bit_length() // 4 if isinstance(value, int) else 1
        self.left -= size + 1
        if self.left < 0:
            raise _too_large()


def _check_key(key: Any) -> str:
    if not isinstance(key, str):  # 1 and "1" would be written alike, and be two things to the function
        raise UnwritableError(f"the arguments hold a key of type {type(key).__name__}; keys must be text")
    return key


def _too_large() -> UnwritableError:
    return UnwritableError(f"the arguments are longer than {MOST_CHARACTERS:,} characters")


def _show_hidden(text: str) -> str:
    """JSON with its invisible characters (zero widths, direction marks, tags, lone surrogates) as escapes."""
    return text if text.isascii() and text.isprintable() else _SPECIAL.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    char = found[0]
    return char if char.isprintable() else json.dumps(char)[1:-1]
