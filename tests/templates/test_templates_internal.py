"""How text becomes HTML, and what the stylesheet's colours promise."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import TemplateError, UndefinedError

from adjudge.templates.difference import MOST_LINES, make_difference
from adjudge.templates.environment import format_place, make_environment, quote_segment, read_style
from adjudge.templates.evidence import mark_evidence
from adjudge.templates.figures import format_left, format_moment, format_size
from adjudge.templates.icons import ICONS, STATES
from adjudge.templates.shell import LedgerNotice, NavLink, NavSection, Shell, Theme
from kit import house
from kit.markup import Reader

HOSTILE = "<img src=x onerror=alert(1)>\"' onload='x' {{ 7*7 }} \x1b[31m\u202e\x00</textarea></script>"


def list_templates() -> list[Path]:
    return sorted(house.PACKAGE.rglob("templates/**/*.html"))


def render(template: str, /, **options: object) -> str:
    made = make_environment()
    imports = '{% import "parts.html" as ui %}{% import "charts.html" as charts %}'
    return made.from_string(imports + template).render(**options)


# ------------------------------------------------------------------ escaping


def test_no_template_switches_escaping_off():
    """No block without it, no style or handler in an element, and no attribute whose value has no quotes."""
    assert len(list_templates()) >= 3
    for path in list_templates():
        text = path.read_text("utf-8")
        assert not re.search(r"autoescape|\|\s*safe\b|Markup|javascript:|\sstyle=|\son[a-z]+=|\s[\w-]+=\{\{", text), (
            path
        )


def test_only_a_report_holds_its_script_and_its_style():
    """It is one file, and names the digest of both; a page loads both from the server."""
    inline = [path.name for path in list_templates() if re.search(r"<style|<script(?!\ssrc=)", path.read_text("utf-8"))]

    assert inline == ["document.html"]


@pytest.mark.parametrize("name", ["safe", "escape", "e", "urlize", "xmlattr", "tojson"])
def test_no_filter_marks_text_as_html(name: str):
    """A template that wants one does not even compile."""
    with pytest.raises(TemplateError, match=name):
        make_environment().from_string(f"{{{{ text | {name} }}}}")


def test_text_is_escaped_and_shown_without_unseen_characters():
    """Elements, quotes and braces stay text; escape sequences and direction marks become a dot."""
    page = Reader(render('<p title="{{ text }}">{{ text }}</p>', text=HOSTILE))

    assert page.elements == [("p", ("title",)), ("/p", ())]
    assert "{{ 7*7 }} ·[31m··</textarea>" in page.text


@pytest.mark.parametrize("value", [None, 0.1, True, [1], datetime(2026, 1, 1, tzinfo=UTC)])
def test_a_value_that_has_no_words_is_an_error(value: object):
    """``None`` on a page would look like something that was said, and a long float like a figure."""
    with pytest.raises(TypeError, match="give it to a filter"):
        render("{{ value }}", value=value)


def test_a_name_that_is_not_known_is_an_error():
    """A misspelt name is not an empty page."""
    with pytest.raises(UndefinedError):
        render("{{ valeu }}", value=1)


PARTS = """
{{ ui.state("passed", text) }}{{ ui.badge("failed", text) }}{{ ui.tag(text) }}{{ ui.digest(text) }}
{% call ui.page_head(text, trail=[("/results", text), ("", text)]) %}{{ text }}{% endcall %}
{% call ui.verdict("held", text, text) %}{{ text }}{% endcall %}
{{ ui.facts([(text, text)]) }}
{% call ui.notice("warning") %}{{ text }}{% endcall %}{% call ui.toast(text) %}{{ text }}{% endcall %}
{% call ui.empty(text) %}{{ text }}{% endcall %}
{% call ui.content(text, text) %}{{ ui.passages(marked) }}{% endcall %}{{ ui.missing(marked) }}
<ol>{% call ui.step(text, "rule", state=text, at=text) %}{{ text }}{% endcall %}</ol>
{{ ui.votes([
  {"state": "denied", "name": text, "did": text, "at": at, "reason": text, "counts_at": at, "answer": text}
]) }}
{% call ui.clock("held", 90, 0.5) %}{{ text }}{% endcall %}
{{ ui.csrf(text) }}{{ ui.field(text, "a", value=text, hint=text, error=text, placeholder=text) }}
{{ ui.choice(text, "b", [(text, text)], text) }}{{ ui.pick(text, [("/", text, true)]) }}{{ ui.copy(text) }}
{{ ui.pager(text, "/a", "/b", (text, text)) }}{{ ui.when(at) }}{{ ui.when(at, "clock") }}
<a href="/results/{{ text | segment }}">x</a>
{{ charts.bar(0.5, 0.4, 0.6, needs=0.7, alt=text) }}{{ charts.stack([("passed", 1), ("undecided", 2)], text) }}
{{ charts.estimate(0.5, 0.1, 0.9, alt=text) }}
{{ charts.histogram([0, 1, 2], text, 0.8) }}
"""


def fill(text: str) -> str:
    marked = mark_evidence(f"a {text} b", [text or "a", f"{text}!"])
    return render(PARTS, text=text, marked=marked, at=datetime(2026, 11, 22, tzinfo=UTC))


def test_hostile_text_adds_nothing_to_any_part():
    """Whatever is in every argument, the parts have the same elements with the same attributes."""
    plain, hostile = Reader(fill("x")), Reader(fill(HOSTILE))

    assert hostile.elements == plain.elements
    assert hostile.text.count("<img src=x onerror=alert(1)>") > 25
    assert not re.search("[\x00\x1b\u202e]", fill(HOSTILE))


EXACT = """
{{ ui.exact_facts([(text, text)]) }}{{ ui.exact(text) }}{{ ui.marked([text]) }}{{ ui.diff(lines) }}
"""
"""The parts that mark white space."""


def test_text_whose_white_space_is_marked_gets_these_marks_and_nothing_else():
    """A mark is an element of ours with at most two attributes; whatever else is in the text stays text."""
    plain, hostile = (
        Reader(render(EXACT, text=text, lines=make_difference(f"a\n{text}", f"b\nx {text}"))) for text in ("x", HOSTILE)
    )

    marks = {("span", ("class",)), ("span", ("class", "data-mark")), ("/span", ()), ("p", ("class",)), ("/p", ())}
    assert set(hostile.elements) <= set(plain.elements) | marks
    assert hostile.text.count("<img src=x onerror=alert(1)>") > 4


@given(st.text(max_size=30))
def test_an_id_stays_one_segment_of_a_path(text: str):
    """No slash, no dots that lead up, no query and no other host."""
    quoted = quote_segment(text)

    assert not re.search(r"[/?#\\:\s]", quoted)
    assert quoted not in {".", ".."}


def test_every_state_has_an_icon_and_a_colour():
    """So a page never has to choose either."""
    style = read_style()
    assert {icon for _, icon in STATES.values()} <= set(ICONS)
    assert all(re.search(rf"\.{colour}\b", style) for colour, _ in STATES.values())


def test_places_of_a_drawing_have_no_exponent():
    """An exponent in an attribute is a length in no browser that is old."""
    assert [format_place(number) for number in (0, 1e-9, 12.5, 100 / 3, 1e6)] == ["0", "0", "12.5", "33.333", "1000000"]


def test_a_page_stands_in_the_shell():
    """Navigation with where one is, who one is, what waits, the theme and the keys; and no text in it is markup."""

    def page(text: str, theme: Theme) -> Reader:
        links = (
            NavLink(path="/approvals", name=text, waiting=3, key="a", urgent=True, counts=True),
            NavLink(path="/x", name="X"),
        )
        shell = Shell(
            place=text,
            current="/approvals",
            sections=(NavSection(title=text, links=links),),
            person=text,
            roles=text,
            csrf=text,
            theme=theme,
            ledger=LedgerNotice(state="verified", word=text, more=text),
        )
        template = (
            '{% extends "base.html" %}{% block title %}{{ text }}{% endblock %}{% block main %}{{ text }}{% endblock %}'
        )
        return Reader(make_environment().from_string(template).render(shell=shell, text=text))

    assert page(HOSTILE, "auto").elements == page("x", "auto").elements
    assert ("html", ("lang", "data-theme")) in page("x", "dark").elements
    assert "3 waiting" in " ".join(page("x", "dark").text.split())


# ------------------------------------------------------------------ evidence and difference


@given(st.text("ab ", max_size=30), st.lists(st.text("ab ", max_size=6), max_size=5))
def test_passages_add_up_to_the_text(text: str, quotations: list[str]):
    """Nothing is lost; each quotation that is in the text is what its passages say, and every other one is listed."""
    marked = mark_evidence(text, quotations)

    assert "".join(passage.text for passage in marked.passages) == text
    for number in marked.numbers.values():
        joined = "".join(passage.text for passage in marked.passages if number in passage.numbers)
        assert joined == quotations[number - 1]
        assert sum(number in passage.begins for passage in marked.passages) == 1
        assert sum(number in passage.ends for passage in marked.passages) == 1
    assert list(marked.missing) == [quotation for quotation in quotations if quotation and quotation not in text]


def read_side(before: str, after: str, kind: str) -> list[str]:
    lines = make_difference(before, after)
    return ["".join(part.text for part in line.parts) for line in lines if line.kind in {"same", kind}]


@given(st.lists(st.text("ab ", max_size=5), max_size=6), st.lists(st.text("ab ", max_size=5), max_size=6))
def test_both_texts_can_be_read_from_their_difference(old: list[str], new: list[str]):
    """What is the same and what was taken out is the one; what is the same and what was put in is the other."""
    before, after = "\n".join(old), "\n".join(new)
    if any(line.kind == "skipped" for line in make_difference(before, after)) or before == after:
        return
    assert "\n".join(read_side(before, after, "minus")) == before
    assert "\n".join(read_side(before, after, "plus")) == after


@pytest.mark.parametrize(("before", "after"), [("a\r\nb", "a\nb"), ("a", "a\n"), ("a\u2028b", "a\nb")])
def test_another_end_of_a_line_is_a_difference(before: str, after: str):
    """Texts that differ in nothing else are not shown as lines that are the same."""
    assert {line.kind for line in make_difference(before, after)} >= {"plus"}


def test_equal_lines_far_from_a_change_are_counted():
    """Two are kept beside each change; the words that changed are told from those that did not."""
    before = "\n".join([*"abcdefgh", "within ten days", *"ij"])
    lines = make_difference(before, before.replace("ten", "two"))
    words = [(part.text, part.changed) for line in lines if line.kind == "plus" for part in line.parts]

    assert [line.kind for line in lines] == ["skipped", "same", "same", "minus", "plus", "same", "same"]
    assert lines[0].count == 6
    assert words == [("within ", False), ("two", True), (" days", False)]


def test_very_long_texts_are_compared_from_both_ends():
    """Their middle is taken out and put in as a whole, and both can still be read."""
    old = [str(place) for place in range(MOST_LINES + 10)]
    new = [*old[:500], "x", *old[501:]]

    assert [line.kind for line in make_difference("\n".join(old), "\n".join(new)) if line.kind != "same"] == [
        "skipped", "minus", "plus", "skipped",
    ]  # fmt: skip
    assert make_difference("a", "a") == ()


# ------------------------------------------------------------------ figures


def test_times_and_sizes_are_said_in_whole_units():
    """In UTC, whatever zone a time is in; and never more time than is left."""
    assert format_moment(datetime.fromisoformat("2026-11-22T13:32:08+01:00")) == "22 Nov 2026, 12:32:08 UTC"
    assert [format_left(seconds) for seconds in (-1, 119.9, 120, 3599, 4200, 7200, 200_000)] == [
        "0 s", "119 s", "2 min", "59 min", "1 h 10 min", "2 h", "2 days",
    ]  # fmt: skip
    assert [format_size(size) for size in (1, 412, 2_100, 3_000_000)] == ["1 byte", "412 bytes", "2.1 kB", "3.0 MB"]
