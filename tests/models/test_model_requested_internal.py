"""How often a made-up name is warned about, and names in files and reports."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from adjudge import JudgeResult
from adjudge.models.reported_name import ReportedNames
from adjudge.report import make_report, render_html, render_markdown
from adjudge.report.document import join_text
from adjudge.report.run_words import list_model_changes
from adjudge.runs.item import encode_result
from kit.reports import keep_run, make_item, make_result


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [item.getMessage() for item in caplog.records if item.levelno >= logging.WARNING]


def test_a_server_that_makes_up_names_is_not_repeated_for_ever(caplog: pytest.LogCaptureFixture):
    """Its names are shown short and without control characters, a few of them, and remembered for so many models."""
    names = ReportedNames()
    for number in range(100):
        names.compare(("openai:m", "http://h"), f"\x1b[31m{number}\n" + "x" * 10_000, "m", requested=True)
    for number in range(3_000):
        names.expect(("openai:m", f"http://h{number}"), "m")

    warnings = list_warnings(caplog)
    assert 0 < len(warnings) <= 20
    assert all(len(text) < 400 and text.isprintable() for text in warnings)
    assert len(names._first) <= 1_000


@pytest.mark.parametrize("more", [{}, {"model_expected": "c"}])
def test_the_names_go_to_a_file_and_back(more: dict[str, str]):
    """As plain data, and by the short way that a run takes."""
    result = make_result(model="b", model_requested="a", **more)
    document = result.to_dict()

    assert (document["model"], document["model_requested"], document["model_differs"]) == ("b", "a", True)
    assert JudgeResult.from_dict(document) == result
    short = json.loads(encode_result(result))
    assert short | {"created_at": document["created_at"]} == document


def test_a_hostile_name_stays_a_name(tmp_path: Path):
    """A server may report markup, control characters and a megabyte of it, a new one for every reply."""
    hostile = "`</script><img src=x onerror=alert(1)> | [x](http://e) \x1b[31m\u202e" + "x" * 100_000
    items = [
        make_item(place, make_result(judge=f"j{place}", model=f"{place}{hostile}", model_requested="a"))
        for place in range(120)
    ]
    run = keep_run(tmp_path / "run", items)
    report = make_report(run)
    page = render_markdown(report)

    assert len(report.model_changes) == 50
    assert report.left_out["models"] == 70
    assert "<img" not in render_html(report)
    assert all(line.startswith("> Judge `j") for line in page.splitlines() if "onerror" in line)
    assert all(len(join_text(text)) < 500 for text in list_model_changes(report))
