"""Rendering of untrusted text in Markdown: as a code span, or escaped as part of a sentence or a table cell."""

from __future__ import annotations

import re

from adjudge.formats.text import clean

_MARKUP = re.compile(
    r"(?P<code>(?:@|#(?=[\d@#]*\d))+|(?<=\bGH)-(?=\d))|[\\`*_\[\]<>|~&#$]|:(?=//|[\w+-]+:)|(?<=www)\.", re.IGNORECASE
)
"""Characters with a meaning in a cell: emphasis, code, links, HTML, entities, the cell's end, and addresses that some
programs turn into links. Characters with a meaning only at the start of a line are left, since no cell is there.

The group ``code`` is text that GitHub turns into a mention, an address or a reference even if escaped, so it is
rendered as code; see ``render_code``."""


def render_code(text: str, most: int = 120, *, nothing: str = "–") -> str:
    """Render a text as a code span that it cannot leave, of one line, in a table too; a vertical bar becomes ``¦``.

    For comments on GitHub, which looks for ``@somebody`` and ``#12`` after it has read escapes and entities: escaping
    does not stop it from notifying people and closing issues. It does not look for them in code.
    """
    # Even an escaped bar would end the cell, and the span with it: GitHub splits a row into cells before it reads code.
    line = _flatten(text).replace("|", "¦")
    if not line:
        return nothing
    line = line if len(line) <= most else f"{line[: most - 1]}…"
    longest_run = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (longest_run + 1)
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def escape(value: object, longest: int = 500) -> str:
    """Escape a text as part of a line or a table's cell that shows each character: no markup, link or mention.

    For audit files, and for sentences of ours in comments. A text that somebody else wrote is easier to tell from ours
    by ``render_code``, which changes its vertical bars. Put nothing at the beginning of a line: a list's sign there is
    not escaped. What is longer than ``longest`` characters is cut.
    """
    text = _flatten(str(value))
    cut = text if len(text) <= longest else f"{text[:longest]}…"
    return _MARKUP.sub(lambda match: f"`{match[0]}`" if match["code"] else f"\\{match[0]}", cut)


def _flatten(text: str) -> str:
    """Write a text on one line, without control characters and with single blanks."""
    return " ".join(clean(text, keep_lines=False).split())
