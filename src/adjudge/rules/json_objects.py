"""The JSON objects in a text, between other words, as in a model's answer that explains its JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from adjudge.formats.json import MOST_DEPTH, read_json

MOST_TRIES = 10_000
"""The most braces at which an object is tried to be read; each try reads what follows the brace."""

MOST_READ = 10_000_000
"""The most characters that all tries read: an object that is never closed is read again from each brace inside it."""

_OBJECT_START = re.compile(r'\{(?=\s*+["}])')

_DECODER = json.JSONDecoder()


def list_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects in a text, in order, read as strictly as ``read_json`` reads; not objects inside others.

    Raises ``ValueError`` if the text holds so many beginnings, or so deep a one, that it cannot be searched to its end.
    """
    position = tries = characters_read = 0
    while (brace := _OBJECT_START.search(text, position)) is not None:
        start, tries = brace.start(), tries + 1
        if tries > MOST_TRIES or characters_read > MOST_READ:
            raise ValueError("it has too many braces to be searched for JSON to its end")
        end, cost = _find_end(text, start)
        characters_read += cost
        position = start + 1 if end is None else end
        if end is None:
            continue
        try:
            value = read_json(text[start:end])
        except ValueError:  # a key that occurs twice, NaN: two programs could read it differently
            continue
        yield value


def _find_end(text: str, start: int) -> tuple[int | None, int]:
    """Find the end of the object that begins at ``start``, if there is one, and how many characters were read.

    Raises ``ValueError``.
    """
    try:
        end = _DECODER.raw_decode(text, start)[1]
    except json.JSONDecodeError as error:
        # The position of an "Unterminated string" error is the string's start, but all of the text was read.
        is_unterminated = error.msg.startswith("Unterminated")
        return None, (len(text) if is_unterminated else error.pos) - start + 1
    except RecursionError:
        raise ValueError(f"it nests more than {MOST_DEPTH} levels deep") from None
    except ValueError:  # a number of more digits than Python reads
        return None, len(text) - start
    return end, end - start
