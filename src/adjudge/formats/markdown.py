"""Other people's text in Markdown: a code span where it is published, escaped where it has to read as it is."""

from __future__ import annotations

import re

from adjudge.formats.text import clean

_MARKUP = re.compile(r"[\\`*_\[\]<>|~&#$]|:(?=//|[\w+-]+:)|(?<=www)\.", re.IGNORECASE)
"""What means something within a cell: emphasis, code, links, HTML, entities, the cell's end, and addresses that some
readers make links of. What only means something where a line begins needs nothing, since no cell begins one."""


def render_code(text: str, most: int = 120, *, nothing: str = "–") -> str:
    """A text as a code span that it cannot leave, of one line, in a table too; a vertical bar is shown as ``¦``.

    For comments on GitHub: it looks for ``@somebody`` and ``#12`` once escapes and entities are read, so they write to
    people and close issues however they are escaped; in code it does not look.
    """
    # A bar would end the cell, and with it the span, however it is escaped: GitHub splits rows before it reads spans.
    line = _flatten(text).replace("|", "¦")
    if not line:
        return nothing
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    longest = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def escape(value: object, longest: int = 500) -> str:
    """Any text as one line of a Markdown table's cell that shows it as it is: no markup, no HTML, no link.

    For files: it says every character, a vertical bar too, and does not keep ``@somebody`` from being one in a comment.
    """
    text = _flatten(str(value))
    cut = text if len(text) <= longest else f"{text[:longest]}…"
    return _MARKUP.sub(lambda found: f"\\{found[0]}", cut)


def _flatten(text: str) -> str:
    return " ".join(clean(text, keep_lines=False).split())
