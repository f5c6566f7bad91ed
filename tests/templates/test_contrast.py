"""Text has a contrast of at least 4.5:1 (WCAG 2.2, 1.4.3), on the site, pages and reports, in light and dark."""

from __future__ import annotations

import colorsys
import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import pytest

from kit.environment import require
from kit.house import ROOT

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, each in 0 to 1."""

LEAST = 4.5
THEME = ROOT / "docs" / "theme" / "site.css"

SCHEMES = ("default", "slate")
INDIGO = {"primary": "indigo", "accent": "indigo"}
"""The palette that ``zensical.toml`` leaves as it is; the built page names it on its body."""

ON_PAPER = (
    "--md-default-fg-color",
    "--md-default-fg-color--light",
    "--md-typeset-color",
    "--md-typeset-a-color",
    "--md-accent-fg-color",
)
IN_CODE = (
    "--md-code-fg-color",
    "--md-typeset-a-color",
    "--md-accent-fg-color",
    "--md-code-hl-number-color",
    "--md-code-hl-special-color",
    "--md-code-hl-function-color",
    "--md-code-hl-constant-color",
    "--md-code-hl-keyword-color",
    "--md-code-hl-string-color",
    "--md-code-hl-name-color",
    "--md-code-hl-operator-color",
    "--md-code-hl-punctuation-color",
    "--md-code-hl-comment-color",
    "--md-code-hl-generic-color",
    "--md-code-hl-variable-color",
)


def read_rules(css: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Each rule of a style sheet: its selector, and its declarations. Of media, only ``screen`` counts."""
    flat = re.sub(r"/\*.*?\*/", "", css, flags=re.DOTALL)
    flat = re.sub(r"@media screen *\{((?:[^{}]*\{[^{}]*\})*)[^{}]*\}", r"\1", flat)
    flat = re.sub(r"@[\w-]+[^{;]*\{(?:[^{}]*\{[^{}]*\})*[^{}]*\}", "", flat)
    for selector, body in re.findall(r"([^{}]+)\{([^{}]*)\}", flat):
        # What an image holds is skipped: it has colons and semicolons of its own.
        plain = re.sub(r"url\([^)]*\)", "url", body)
        yield selector.strip(), {name.strip(): value.strip() for name, value in re.findall(r"([\w-]+):([^;]+)", plain)}


def read_colour(value: str, tokens: Mapping[str, str]) -> Colour:
    """A colour of a style sheet as numbers; ``var(...)`` is looked up in the tokens."""
    value = re.sub(r"var\((--[\w-]+)\)", lambda match: tokens[match[1]], value.strip())
    if value.startswith("var("):
        return read_colour(value, tokens)
    if value.startswith("#"):
        digits = value[1:] if len(value) > 5 else "".join(2 * digit for digit in value[1:])
        red, green, blue, opacity = (int(f"{digits}ff"[place : place + 2], 16) / 255 for place in (0, 2, 4, 6))
        return red, green, blue, opacity
    if "var(" in value:
        return read_colour(value, tokens)
    numbers = re.fullmatch(r"hsla?\(([\d.]+)(?:deg)?, *([\d.]+)%, *([\d.]+)%(?:, *([\d.]+))?\)", value)
    assert numbers, f"{value!r} is a colour in a form that this test does not read"
    hue, saturation, lightness, opacity = (float(number or 1) for number in numbers.groups())
    return (*colorsys.hls_to_rgb(hue / 360, lightness / 100, saturation / 100), opacity)


def lay_over(front: Colour, back: Colour) -> Colour:
    """What is seen of a colour that lets another through."""
    red, green, blue = (front[3] * front[at] + (1 - front[3]) * back[at] for at in range(3))
    return red, green, blue, 1.0


def compute_contrast(text: Colour, behind: Colour) -> float:
    """The contrast ratio of WCAG, from 1 to 21."""
    lights = []
    for colour in (lay_over(text, behind), behind):
        parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
        lights.append(0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2])
    return (max(lights) + 0.05) / (min(lights) + 0.05)


def find_faint(
    pairs: Mapping[str, tuple[str, str]], tokens: Mapping[str, str], least: float = LEAST
) -> dict[str, float]:
    """The pairs of text and background that are below the ratio."""
    ratios = {
        place: compute_contrast(read_colour(text, tokens), read_colour(behind, tokens))
        for place, (text, behind) in pairs.items()
    }
    return {place: round(ratio, 2) for place, ratio in ratios.items() if ratio < least}


# ------------------------------------------------------------------------------ pages and reports

STYLE = files("adjudge.templates").joinpath("style.css").read_text("utf-8")
GROUNDS = ("var(--paper)", "var(--sheet)", "var(--well)")
OUTCOMES = ("passed", "failed", "undecided", "held")


def read_page_tokens(scheme: str) -> dict[str, str]:
    """The colours of pages and reports by name, in one scheme."""
    matches = re.findall(r"(--[\w-]+):\s*light-dark\((#\w+), (#\w+)\)", STYLE)
    return {name: dark if scheme == "slate" else light for name, light, dark in matches}


def list_page_pairs() -> dict[str, tuple[str, str]]:
    """Every rule that colours text, with its own background, or with each ground that the text may be on."""
    pairs = {f"{name} on its own ground": (f"var(--{name})", f"var(--{name}-soft)") for name in OUTCOMES}
    pairs |= {f"text on {name}": ("var(--ink)", f"var(--{name}-soft)") for name in OUTCOMES}
    pairs |= {f"text on {name}": ("var(--ink)", f"var(--{name})") for name in ("mark", "plus", "minus")}
    for selector, rule in read_rules(STYLE):
        text = rule.get("color") or (rule.get("fill") if "text" in selector else None)
        if text is None or not re.fullmatch(r"var\(--[\w-]+\)", text):
            continue  # inherited, or mixed of what is checked
        own = rule.get("background")
        plain = own is not None and re.fullmatch(r"var\(--[\w-]+\)", own)
        pairs |= {f"{selector} on {behind}": (text, behind) for behind in ([own] if own and plain else GROUNDS)}
    return pairs


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_text_of_pages_and_reports_can_be_read(scheme):
    """On every ground, in badges, notices, marks and differences."""
    pairs = list_page_pairs()

    assert {"body on var(--paper)", ".badge.failed on var(--failed-soft)", ".legend on var(--sheet)"} <= set(pairs)
    assert {".btn.main-act on var(--press)", ".nav a on var(--well)"} <= set(pairs)
    assert find_faint(pairs, read_page_tokens(scheme)) == {}


@pytest.mark.parametrize("scheme", SCHEMES)
def test_controls_and_areas_of_charts_can_be_told_from_their_ground(scheme):
    """What is no text needs 3:1 (WCAG 2.2, 1.4.11): borders of what is operated, bars, and the line under a mark."""
    areas = ("edge", "bar", "mark-on", *(f"{name}-fill" for name in OUTCOMES))
    pairs = {name: (f"var(--{name})", "var(--paper)") for name in areas} | {"edge": ("var(--edge)", "var(--sheet)")}

    assert find_faint(pairs, read_page_tokens(scheme), least=3.0) == {}


# ------------------------------------------------------------------------------ the site


def read_theme_tokens(scheme: str) -> dict[str, str]:
    """The colours of the site: those of the theme, and over them those of ``docs/theme``."""
    folder = Path(str(files("zensical"))) / "templates" / "assets" / "stylesheets" / "modern"
    sheets = [next(folder.glob(f"{name}.*.css")).read_text("utf-8") for name in ("main", "palette")]
    tokens: dict[str, str] = {}
    for selector, rule in [item for sheet in [*sheets, THEME.read_text("utf-8")] for item in read_rules(sheet)]:
        if any(_applies(each, scheme) for each in selector.split(",")):
            tokens |= {name: value for name, value in rule.items() if name.startswith("--md-")}
    return tokens


def _applies(selector: str, scheme: str) -> bool:
    named = dict(re.findall(r"\[data-md-color-(\w+)=\"?([\w-]+)\"?\]", selector))
    plain = re.sub(r"\[data-md-color-[^\]]*\]", "", selector).strip()
    return plain in {"", ":root", "body"} and all(
        ({"scheme": scheme} | INDIGO)[key] == value for key, value in named.items()
    )


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_text_of_the_site_can_be_read(scheme):
    """Running text, links, quiet text, and every colour of code, on the page and in code."""
    require("zensical", find_spec("zensical"), "pip install --group docs")
    tokens = read_theme_tokens(scheme)
    pairs = {f"{name} on the page": (f"var({name})", "var(--md-default-bg-color)") for name in ON_PAPER}
    pairs["a message"] = ("var(--md-default-bg-color)", "var(--md-accent-fg-color)")
    pairs |= {f"{name} in code": (f"var({name})", "var(--md-code-bg-color)") for name in IN_CODE}

    assert find_faint(pairs, tokens) == {}


# ------------------------------------------------------------------------------ the test itself


def test_contrast_is_that_of_the_standard():
    """Black on white is 21, a colour on itself 1; the grey that is just enough on white is #767676."""
    black, white = read_colour("#000", {}), read_colour("#ffffff", {})

    assert compute_contrast(black, white) == pytest.approx(21)
    assert compute_contrast(white, white) == 1
    assert compute_contrast(read_colour("#767676", {}), white) == pytest.approx(4.54, abs=0.01)
    assert compute_contrast(read_colour("#777777", {}), white) < LEAST
    assert compute_contrast(read_colour("#00000080", {}), white) == pytest.approx(4.0, abs=0.01)


def test_colours_are_read_in_every_form_of_the_sheets():
    """Short and long numbers, with opacity, hues, and names of names."""
    tokens = {"--a": "var(--b)", "--b": "hsla(var(--hue), 0%, 50%, 0.5)", "--hue": "225deg"}

    assert read_colour("#fff", {}) == (1, 1, 1, 1)
    assert read_colour("#0000008c", {})[3] == pytest.approx(0.549, abs=0.001)
    assert read_colour("var(--a)", tokens) == (0.5, 0.5, 0.5, 0.5)
