"""How deep hostile JSON may nest: one number, and a count that recurses into nothing.

Decoders, encoders and comparisons recurse once per bracket, some of them in C. What stops them is Python's recursion
limit, and in a program that raised it deep text ends the process. So depth is counted first, here.
"""

from __future__ import annotations

import re

MOST_DEPTH = 200
"""Lists and objects inside each other, the outermost included; what nests deeper is not read."""

# All that stands between two brackets, texts included, so that a bracket in a text does not count. Possessive
# throughout: a text that is never closed is looked at once.
_BETWEEN = re.compile(r'(?:[^\[\]{}"]++|"(?:[^"\\]++|\\.)*+"?)++', re.DOTALL)


def nests_too_deeply(text: str, start: int = 0, *, most: int = MOST_DEPTH, several: bool = False) -> bool:
    """Whether the JSON value that begins at ``start`` nests deeper than ``most``, in linear time.

    What is no JSON has some depth too: never less than a decoder descends to before it sees the error. ``several`` is
    for values one after another: any of them.
    """
    if text.count("{") + text.count("[") <= most:  # nearly every text, known without a look at its characters
        return False
    depth = 0
    for bracket in _BETWEEN.sub("", text[start:] if start else text):
        depth += 1 if bracket in "[{" else -1
        if depth > most:
            return True
        if depth <= 0:  # the value ends here; what follows is somebody else's to judge
            if not several:
                return False
            depth = 0
    return False
