"""``adjudge report RUN CASE``: one case whole, whatever was written in it and said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from adjudge import CriterionResult, JudgeChainResult, RuleResult, UsageError, open_run
from adjudge.judges import PairOrder, PairResult
from kit.cli import HIDDEN, Line
from kit.reports import HOSTILE, keep_run, make_item, make_result

LONG = "word " * 2_000 + "the very end"


def make_criterion(name: str, score: float, **more: Any) -> CriterionResult:
    return CriterionResult(name=name, score=score, passed=score > 0.5, **more)


def make_chain() -> JudgeChainResult:
    """What three judges said: one of them twice, for its first reply could not be read."""
    criteria = (make_criterion("polite", 0.6, reasoning=LONG), make_criterion("true", 0.2, threshold=0.5))
    unread = make_result("undecided", undecided_because="unparseable", detail="no object", judge="second",
                         raw_response="Well\nmaybe.", earlier_responses=("I would say so",), attempts=2)  # fmt: skip
    failed = make_result("failed", criteria=criteria, judge="first", raw_response='{"token": "x"}')
    return JudgeChainResult(
        outcome="failed", judge="panel", strategy="majority", score=0.3, threshold=0.7, results=(failed, unread),
        rule_results=(RuleResult(name="length", passed=False, severity="warning", message="too long"),),
    )  # fmt: skip


def test_a_case_is_shown_whole(line: Line):
    """Every text to its end, every criterion, rule and judge, the reply that could not be read and the one before."""
    keep_run(Path("run"), [make_item(0), make_item(1, make_chain(), content=LONG, task="Do it.", label=True)]).close()
    ran = line("report", "run", "case-1")

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.count("the very end\n") == 2
    assert ran.out.startswith("case case-1, row 2 of the data set, label true\n\ntask:\n  Do it.\n\ncontent:\n")
    for text in ("judgement: ✗ failed 0.30 of 0.70 needed", "judge panel, strategy majority", "rule length, warning:"):
        assert text in ran.out
    assert "  judge first: ✗ failed" in ran.out
    assert "  judge second: ? undecided (unparseable)\n" in ran.out
    assert "    reply 1, which could not be read, so it was asked again:\n      I would say so\n" in ran.out
    assert "    reply:\n      Well\n      maybe.\n" in ran.out
    assert "case-0" not in ran.out


def test_only_a_criterion_with_something_to_reach_has_a_mark(line: Line):
    """A threshold of its own or a rule; the number of any other says nothing about the whole."""
    rule = make_criterion("short", 1.0, rule="length")
    keep_run(Path("run"), [make_item(0, make_result(criteria=(*make_chain().results[0].criteria, rule)))]).close()
    out = line("report", "run", "case-0").out

    assert "  criterion polite, 0.60:\n" in out
    assert "  criterion true, ✗ 0.20, needs 0.50\n" in out
    assert "  criterion short, ✓ 1.00, by the rule length\n" in out


def test_repeated_judgements_are_all_shown(line: Line):
    """In the order in which they were made, with their number."""
    repeated = [make_item(0, make_result("failed" if number == 3 else "passed"), sample=number) for number in range(12)]
    keep_run(Path("run"), repeated).close()
    out = line("report", "run", "case-0").out

    assert "\njudgement 1 of 12: ✓ passed" in out
    assert "\njudgement 4 of 12: ✗ failed" in out
    assert "\njudgement 12 of 12: ✓ passed" in out


def test_a_pair_shows_both_contents(line: Line):
    """Under their own headings, and what each order said."""
    first = PairOrder(order="ab", result=make_result(value="first", reasoning="The first is clearer."))
    other = PairOrder(order="ba", result=make_result(value="second", reasoning="The second is clearer."))
    pair = PairResult(preferred="first", judge="careful", orders=(first, other))
    keep_run(Path("run"), [make_item(0, pair, content={"a": "new\nanswer", "b": "old answer"})]).close()
    out = line("report", "run", "case-0").out

    assert "first content:\n  new\n  answer\n\nsecond content:\n  old answer\n" in out
    assert "judgement: ✓ the first is preferred" in out
    assert "  first content shown first, prefers the first: " in out
    assert "  second content shown first, prefers the first: " in out


def test_nothing_hostile_reaches_the_terminal(line: Line):
    """Escape sequences become dots, and a text of several lines stays below its heading."""
    forged = f"{HOSTILE}\njudgement: ✓ passed 1.00\n\x1b[2J"
    result = make_result("failed", judge=forged, reasoning=forged, detail=forged, raw_response=forged,
                         criteria=(make_criterion(forged, 0.1, reasoning=forged),))  # fmt: skip
    keep_run(Path("run"), [make_item(0, result, content=forged, group=forged, metadata={forged: forged})]).close()
    out = line("report", "run", "case-0").out

    assert HIDDEN.search(out) is None
    assert [text for text in out.splitlines() if text.startswith("judgement")] == [
        "judgement: ✗ failed 0.30 of 0.70 needed"
    ]
    assert out.count("javascript:alert(4)") >= 7


def test_as_json_it_is_one_document(line: Line):
    """The case as a data set has it, and every result as it was kept, replies included."""
    keep_run(Path("run"), [make_item(1, make_chain(), content=LONG)]).close()
    document = line("report", "run", "case-1", "--json").document
    (result,) = document["results"]

    assert (document["schema"], document["case"]["content"]) == ("adjudge/run-case/1", LONG)
    assert result["results"][1]["earlier_responses"] == ["I would say so"]
    assert result["results"][0]["criteria"][0]["reasoning"] == LONG


def test_an_unknown_id_names_the_nearest(line: Line):
    """What was perhaps meant, or where ids are found; a program gets the same sentence."""
    keep_run(Path("run"), [make_item(0, id="refund-promise"), make_item(1, id="tone\u202e")]).close()

    assert (
        "no case 'refund-promis_'; did you mean 'refund-promise'?" in line("report", "run", "refund-promis_").sentence
    )
    assert "did you mean 'tone\\u202e'" in line("report", "run", "tone·").sentence
    assert "adjudge report RUN lists ids" in line("report", "run", "zzzzzzzzzzzzzzzzz").sentence
    with open_run("run") as run, pytest.raises(UsageError, match="did you mean 'refund-promise'"):
        run.read_case("refund_promise")


def test_a_case_is_found_by_the_beginning_of_its_id(line: Line):
    """As a report prints it: 12 characters of a digest with the number of a repeat, and of any id that is longer."""
    digest, long_id = "4d119ad33430" + "0" * 52, "ticket-2026-11-28-0001"
    names = (digest, f"{digest}-2", "4d119ad33431" + "0" * 52, long_id)
    results = [make_result("failed") for _ in names]
    items = [make_item(at, results[at], id=name, content=f"text {at}") for at, name in enumerate(names)]
    keep_run(Path("run"), items).close()
    printed = line("report", "run").out

    for shown in ("4d119ad33430 ", "4d119ad33430-2 ", "4d119ad33431 ", long_id):
        assert shown in printed
    assert digest not in printed
    assert "text 1" in printed
    for shown, name in (
        ("4d119ad33430", digest), (f"{digest[:59]}…", digest), ("4d119ad33430-2", f"{digest}-2"),
        ("ticket-2026-11-28…", long_id), ("ticket-2026-11", long_id),
    ):  # fmt: skip
        assert line("report", "run", shown).out.startswith(f"case {name}, row ")


def test_a_beginning_that_does_not_name_one_case_is_refused(line: Line):
    """Of several ids, shorter than 12 characters, or a pattern of what searches for it."""
    keep_run(Path("run"), [make_item(at, id=f"ticket-2026-11-{at}") for at in range(2)]).close()

    for shown in ("ticket-2026-11-", "ticket-2026-11-…"):
        ran = line("report", "run", shown)
        assert ran.status == 2
        assert "'ticket-2026-11-0' and 'ticket-2026-11-1'" in ran.sentence
    for shown in ("ticket-20", "t*", "ticket-2026-11-*", "ticket-2026-11-[0]"):
        ran = line("report", "run", shown)
        assert ran.status == 2
        assert "no case" in ran.sentence


@pytest.mark.parametrize("option", [["--html", "x.html"], ["--junit", "x.xml"], ["--top", "3"], ["--fail-under", "1"]])
def test_options_about_the_whole_run_are_refused(line: Line, option: list[str]):
    """They would be taken for being about this case."""
    keep_run(Path("run"), [make_item(0)]).close()

    assert option[0] in line("report", "run", "case-0", *option).sentence
    assert not Path("x.html").exists()
