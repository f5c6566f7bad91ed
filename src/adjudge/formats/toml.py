"""TOML read with the guards that the standard library's reader does not have."""

from __future__ import annotations

from typing import Any

from adjudge.formats.text import flatten

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""

_DOTTED = rf"({_PART}[ \t]*\.[ \t]*){{50}}"


def read_toml(text: str) -> dict[str, Any]:
    """Read a TOML document; raises ``ValueError`` with a message of one line if it cannot be read."""
    import tomllib

    import re2

    # The time tomllib takes grows with the square of a dotted key's parts; nobody needs more than a few.
    if re2.search(_DOTTED, text):
        raise ValueError("a dotted key has more than 50 parts")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ValueError(flatten(str(error), 200)) from None
    except RecursionError:
        raise ValueError("nested too deeply to read") from None
    except ValueError:  # from int(), for a number of more than 4,300 digits
        raise ValueError("it holds a number or a time that cannot be read") from None
