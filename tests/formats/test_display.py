"""How results look: hostile text stays text, in a terminal and in a notebook."""

from __future__ import annotations

import dataclasses
import html.parser
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from adjudge import CriterionResult, JudgeResult, RuleResult
from kit.results import chain

HOSTILE = "\x1b[31mred\x1b[0m [bold]markup[/bold] <script>alert(1)</script> \u202ereversed \u200b\x07 &amp; \"'"


def show(result: JudgeResult, width: int = 200) -> str:
    out = io.StringIO()
    Console(file=out, width=width, force_terminal=False, color_system=None).print(result)
    return out.getvalue()


def result(text: str = "fine", **more) -> JudgeResult:
    return JudgeResult(**{
        "outcome": "failed",
        "judge": text,
        "score": 0.4,
        "threshold": 0.7,
        "reasoning": text,
        "detail": text,
        "suggestions": (text,),
        "criteria": (CriterionResult(name=text, score=0.4, passed=False, reasoning=text, threshold=0.5),),
        "rule_results": (RuleResult(name=text, passed=False, message=text),),
        **more,
    })  # fmt: skip


def test_a_terminal_shows_everything_a_person_needs():
    """Outcome, criteria with their thresholds, reasoning, suggestions, rules that failed, who and how long."""
    text = show(result("words", judge="careful", duration_ms=1234.4))

    for part in (
        "✗ failed 0.40 of 0.70 needed",
        "words",
        "0.40",
        "0.50",
        "→ words",
        "error: words: words",
        "careful · 1234 ms",
    ):
        assert part in text


def test_a_sign_stands_beside_a_criterion_that_has_something_to_reach():
    """A threshold of its own, or a rule; no ✓ stands beside a number that made the whole fail."""
    made = result(
        criteria=(
            CriterionResult(name="plain", score=0.6, passed=True),
            CriterionResult(name="own", score=0.5, passed=True, threshold=0.5),
            CriterionResult(name="rule", score=0.0, passed=False, rule="length"),
        )
    )

    for text in (show(made), made._repr_html_()):
        assert "✓ 0.60" not in text
        assert all(part in text for part in ("0.60", "✓ 0.50", "✗ 0.00"))


def test_a_terminal_shows_a_seat_per_line():
    """With its outcome."""
    text = show(
        chain(JudgeResult(outcome="passed", judge="a"), JudgeResult(outcome="failed", judge="b", detail="because"))
    )

    assert "majority: 2 asked" in text
    assert "because" in text


@pytest.mark.parametrize("made", [result(HOSTILE), chain(result(HOSTILE))], ids=["result", "seat"])
def test_nothing_a_judge_wrote_reaches_a_terminal_as_a_command(made):
    """No escape sequence, direction mark or invisible character; markup is shown and not interpreted."""
    text = show(made, width=2000)

    assert {unicodedata.category(char) for char in text if char != "\n"} & {"Cc", "Cf", "Co", "Cs", "Cn"} == set()
    assert "[bold]markup[/bold]" in text


def test_markup_in_a_strategy_is_shown_and_not_interpreted():
    """It is read from files too, and a title is the one place where rich would take a string for markup."""
    name = "[bold]x[/nope]\x1b[2J"
    made = dataclasses.replace(chain(result("fine")), strategy=name)

    assert "[bold]x[/nope]·[2J: 1 asked" in show(made)


def test_a_name_forges_no_line():
    """Where one line belongs to one criterion or seat, its name stays on it."""
    text = show(chain(result("judge\nforged"))) + show(result("criterion\nforged"))

    assert "judge forged" in text
    assert "criterion forged" in text


class Tags(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[object] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        self.attributes += attrs


OURS = {"div", "p", "b", "table", "tr", "th", "td", "ul", "ol", "li"}


@given(
    text=st.text() | st.just(HOSTILE) | st.sampled_from(["<img src=x onerror=1>", "</td><script>", "&lt;script&gt;"])
)
def test_a_notebook_gets_no_markup_but_ours(text):
    """Whatever the judge, its names and its reasons are called."""
    for made in (result(text), chain(result(text))):
        tags = Tags(made._repr_html_())
        assert tags.tags <= OURS
        assert tags.attributes == []


def test_a_notebook_shows_what_the_terminal_shows():
    """The same words, escaped."""
    text = result("a < b")._repr_html_()

    assert text.count("a &lt; b") >= 4
    assert "✗ failed 0.40 of 0.70 needed" in text
