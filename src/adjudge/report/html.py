"""A document as one HTML file, with a security policy that allows nothing but the file's own style and script.

No network, readable without script, and nothing in it can become code: every text goes through the environment of
``adjudge.templates``, which escapes it. Should that ever fail, the page's own policy still lets no script run but the
one whose digest it names, loads nothing and sends nothing.

The sections of a run's report are put together in ``run_document.py``.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from adjudge.dataset.contents import digest_content
from adjudge.formats.display import find_pass_mark
from adjudge.report.document import Document, join_text, list_parts
from adjudge.report.judgement import list_replies, list_rules, list_seats
from adjudge.report.run_words import format_verdict
from adjudge.templates.call_view import make_call_view
from adjudge.templates.environment import make_environment, read_style
from adjudge.templates.judged_text import make_excerpt_view, make_judged_text

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class PageParts:
    """The parts of every report file: its style, its script, and the policy that names both."""

    style: Markup
    script: Markup
    policy: str


def draw_html(document: Document) -> str:
    """Draw a document as the text of one HTML file, complete without scripts."""
    template = make_report_environment().get_template("document.html")
    return f"{template.render(page=_make_parts(), document=document)}\n"


@cache
def make_report_environment(*packages: str) -> Environment:
    """Make the template environment of reports; with ``packages``, also for their pages that show a report."""
    environment = make_environment(*packages, "adjudge.report")
    # The functions that templates call, by the names that templates know them by.
    filters: dict[str, Any] = {
        "verdict": format_verdict,
        "mark": find_pass_mark,
        "parts": list_parts,
        "plain": join_text,
    }
    filters |= {"seats": list_seats, "rules": list_rules, "replies": list_replies, "tool_call": make_call_view}
    filters |= {"judged_text": make_judged_text, "excerpt": make_excerpt_view, "digest": digest_content}
    environment.filters.update(filters)
    return environment


@cache
def _make_parts() -> PageParts:
    """Make the style, the script and the policy that allows these two and nothing else, by their digests."""
    from markupsafe import Markup

    # Read as bytes: read as text, line ends would change on some systems, and with them the digest.
    script = files("adjudge.report").joinpath("page.js").read_bytes().decode("utf-8")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_digest_text(read_style())}",
            f"script-src {_digest_text(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return PageParts(style=Markup(read_style()), script=Markup(script), policy=policy)  # noqa: S704 - our own files


def _digest_text(text: str) -> str:
    """Digest a style or a script in the form that a Content-Security-Policy allows it by."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
