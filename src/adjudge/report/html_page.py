"""A report as one HTML file: its templates, and a policy that lets nothing in but the file's own style and script.

No network, readable without script, and nothing in it can become code: every text goes through the environment of
``adjudge.templates``, which escapes it. Should that ever fail, the page's own policy still lets no script run but the
one whose digest it names, loads nothing and sends nothing.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from adjudge.formats.display import find_mark
from adjudge.report.format import format_label, format_verdict
from adjudge.templates.environment import make_environment, read_style

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup


@dataclass(frozen=True, slots=True, kw_only=True)
class PageParts:
    """What every report file carries: its style, its script, and the policy that names both."""

    style: Markup
    script: Markup
    policy: str


def render_page(template: str, **values: object) -> str:
    """One HTML file: a template of this package, filled, with the style and the script of a report."""
    return f"{make_report_environment().get_template(template).render(page=_make_parts(), **values)}\n"


@cache
def make_report_environment(*packages: str) -> Environment:
    """The environment of reports, and of pages in other ``packages`` that show a report."""
    made = make_environment(*packages, "adjudge.report")
    given: dict[str, Any] = {"verdict": format_verdict, "label": format_label, "mark": find_mark}
    made.filters.update(given)
    return made


@cache
def _make_parts() -> PageParts:
    from markupsafe import Markup

    # Bytes, so that no system's own line ends change what the digest is of.
    script = files("adjudge.report").joinpath("page.js").read_bytes().decode("utf-8")
    policy = "; ".join(
        [
            "default-src 'none'",
            f"style-src {_digest(read_style())}",
            f"script-src {_digest(script)}",
            "base-uri 'none'",
            "form-action 'none'",
        ]
    )
    return PageParts(style=Markup(read_style()), script=Markup(script), policy=policy)  # noqa: S704 - our own files


def _digest(text: str) -> str:
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
