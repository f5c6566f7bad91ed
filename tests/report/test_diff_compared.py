"""``adjudge diff``: which of answers and judges changed, in which words it is told, and what a gate makes of it."""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, JudgeChain
from adjudge.report import diff
from adjudge.runs import Run, redecide
from adjudge.testing import make_scripted_reply
from kit import cli
from kit.cli import Line
from kit.redecisions import RUBRIC, Told, do, score
from kit.reports import keep_run, make_item, make_manifest_of, make_result

GOOD, BAD = score(a=1.0, b=0.6), score(a=0.0, b=0.6)

ANSWERS: dict[str, dict[str, str]] = {
    "the same": {"a": "text", "b": "text", "c": "text"},
    "all changed": {"a": "new", "b": "new", "c": "new"},
    "some changed": {"a": "new", "b": "text", "c": "text"},
    "one added": {"a": "text", "b": "text", "c": "text", "d": "text"},
    "one removed": {"a": "text", "b": "text"},
}
CHANGED = {"all changed", "some changed"}
JUDGES = ("same judge", "other model", "other rubric", "other threshold", "other model and rubric")
KINDS = ("rubric", "yes/no", "pairs")
FORBIDDEN = re.compile("regressed|improved|regression", re.IGNORECASE)


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


@dataclass
class Decision:
    """A reply that says yes or no."""

    reasoning: str
    passed: bool


class PairTold(Told):
    """A model that prefers one of two contents, in whatever order they stand, or ties."""

    async def complete(self, request: Any, /) -> Any:
        preferred = str(self.lines[str(request.case)])
        if preferred != "tie" and request.order == "ba":
            preferred = "second" if preferred == "first" else "first"
        return make_scripted_reply({"reasoning": "r", "preferred": preferred}, request, self.name)


def judge_by(kind: str, judge: str, answers: dict[str, str], verdicts: dict[str, bool], out: str) -> Run:
    """A run in which a scripted model gives each case its verdict."""
    name, words = "y" if "model" in judge else "x", "Is kind." if "rubric" in judge else "Is polite."
    good = {case: verdicts.get(case, True) for case in answers}
    options: dict[str, Any] = {"threshold": 0.9} if judge == "other threshold" else {}
    cases = [Case(id=case, content=text) for case, text in answers.items()]
    criterion = words.lower().replace(" ", "-").rstrip(".")
    lines: dict[str, Any] = {case: score(**{criterion: 0.95 if is_good else 0.0}) for case, is_good in good.items()}
    if kind == "yes/no":
        lines = {case: {"reasoning": "r", "passed": is_good} for case, is_good in good.items()}
        options = {"result_format": Decision, "instructions": f"{words}{options}"}
    elif kind == "pairs":
        lines = {case: "first" if is_good else "second" for case, is_good in good.items()}
        cases = [Case(id=case, content={"a": text, "b": "other"}) for case, text in answers.items()]
        options = {"pairs": True, "criteria": words, "on_conflict": "undecided" if options else "tie"}
    else:
        options |= {"criteria": words}
    model = (PairTold if kind == "pairs" else Told)(name, lines)
    return do(cases, Judge(model, reask=0), None, out=out, **options)


TABLE = list(itertools.product(KINDS, JUDGES, ANSWERS))


@pytest.mark.matrix
@pytest.mark.parametrize(("kind", "judge", "answers"), TABLE)
def test_what_was_compared_decides_the_words_and_the_gate(line: Line, kind: str, judge: str, answers: str):
    """Answers regress and improve, judges pass what the other fails, preferences change; both at once say neither.

    One judge that judged the same answers twice differs from itself: nothing regressed, and no colour says so. The
    gates go by the same counts.
    """
    before = {"a": True, "b": False, "c": True}
    after = {"a": True, "b": True, "c": False} if answers != "one removed" else {"a": True, "b": True}
    judge_by(kind, "same judge", ANSWERS["the same"], before, "one")
    judge_by(kind, judge, ANSWERS[answers], after, "two")
    other, changed = judge != "same judge", answers in CHANGED
    compared = "both" if other and changed else "judges" if other else "answers"

    shown, document = line("diff", "one", "two", "--html", "d.html"), line("diff", "one", "two", "--json").document
    markdown, page = line("diff", "one", "two", "--markdown").out, Path("d.html").read_text("utf-8")
    texts = (shown.out, markdown, re.sub("<(script|style).*?</\\1>", "", page, flags=re.DOTALL))

    assert (document["compared"], document["pairs"]) == (compared, kind == "pairs")
    assert document["content_changed"] == {"all changed": 3, "some changed": 1}.get(answers, 0)
    lost = 0 if answers == "one removed" else 1
    assert (document["lost"], document["gained"]) == (lost, 1)
    is_answer = compared == "answers" and kind != "pairs"
    is_worse = is_answer and changed
    assert (document["regressions"], document["improvements"]) == ((lost, 1) if is_worse else (None, None))
    assert [case["case"] for case in document["listed"] if case["regressed"]] == (["c"] if is_worse else [])
    for text in texts:
        assert (f"{lost} regressed, 1 improved" in text) == is_worse
        assert bool(FORBIDDEN.search(text)) == is_worse
        assert ("The judge differs from itself" in text) == (is_answer and not changed)
        assert ("cannot be told apart" in text) == (compared == "both")
        assert (f"{lost} changed from first to second, 1 from second to first" in text) == (kind == "pairs")
        assert ("passes 1 that" in text) == (compared == "judges" and kind != "pairs")
    assert ("alarm" in texts[2]) == (is_worse and lost > 0)
    _check_gates(line, compared, lost=lost, passed=2 / 3 if answers != "one removed" else 1.0)


def _check_gates(line: Line, compared: str, *, lost: int, passed: float) -> None:
    """Without a gate the status is 0; with one it is 3 where judge and answers both changed."""
    missed = min(passed + 0.2, 1.0)
    expected = {
        (): 0,
        ("--no-regressions",): 3 if compared == "both" or not lost else 1,
        ("--fail-under", "0.5"): 3 if compared == "both" else 0,
        ("--fail-under", str(missed)): 3 if compared == "both" else int(missed > passed),
    }
    for gate, status in expected.items():
        ran = line("diff", "one", "two", "--json", *gate)
        assert ran.status == status, (gate, ran.err)
        assert ("both changed" in ran.err) == (status == 3 and compared == "both")


def test_judges_are_named_by_what_they_pass(line: Line):
    """Each passes what the other fails or leaves undecided, under the names of judges or, for one judge, of folders."""
    cases = [Case(id=name, content="text") for name in "abcd"]
    lines = {"a": GOOD, "b": GOOD, "c": GOOD, "d": BAD}
    do(cases, Judge(Told("mild", lines), reask=0), out="one")
    do(cases, Judge(Told("harsh", lines | {"a": BAD, "b": "none", "d": GOOD}), reask=0), out="two")
    redecide("one", threshold=0.9, out="strict")

    ran = line("diff", "one", "two")
    assert ran.out.splitlines()[:3] == [
        "one compared with two",
        'Between the runs, the judge changed (name: "mild" before, "harsh" now).',
        (
            "mild passes 1 that harsh fails and 1 that it leaves undecided; harsh passes 1 that mild fails, of 4 cases "
            "in both runs"
        ),
    ]
    assert "one passes 3 that strict fails; strict passes 0 that one fails" in line("diff", "one", "strict").out


def test_judges_whose_names_begin_alike_have_counts_of_their_own(line: Line):
    """A long name is shown shortened, and two that are the same then are two judges all the same."""
    name = "the same sixty characters, and what tells them apart comes after"
    cases = [Case(id=letter, content="text") for letter in "abc"]
    do(cases, Judge(Told(f"{name}: mild", {"a": GOOD, "b": GOOD, "c": BAD}), reask=0), out="one")
    do(cases, Judge(Told(f"{name}: harsh", {"a": BAD, "b": BAD, "c": GOOD}), reask=0), out="two")

    out = line("diff", "one", "two").out

    assert re.findall(r"passes (\d) that", out) == ["2", "1"]


def test_a_redecided_run_compares_judges(tmp_path: Path):
    """Another threshold, rubric, strategy or set of seats is another way to judge the same answers."""
    cases = [Case(id=name, content="text") for name in "abc"]
    lines = {"a": GOOD, "b": BAD, "c": GOOD}
    seats = [Judge(Told("x", lines), reask=0), Judge(Told("y", lines | {"c": BAD}), reask=0)]
    do(cases, JudgeChain(seats, strategy="majority", stop_early=False), out=tmp_path / "run")
    changes: dict[str, dict[str, Any]] = {
        "threshold": {"threshold": 0.1},
        "strategy": {"strategy": "fallback"},
        "judges": {"judges": ["x"]},
        "fail_open": {"fail_open": True},
    }
    for name, change in changes.items():
        redecide(tmp_path / "run", out=tmp_path / name, **change)
        comparison = diff(tmp_path / "run", tmp_path / name)
        assert (comparison.compared, comparison.regressions, comparison.improvements) == ("judges", None, None), name


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("threshold over rubrics of cases", {}, {"threshold": 0.2}),
        ("repeat", {}, {"repeat": 3}),
        ("rules", {}, {"rules": ["json"]}),
        ("instructions", {}, {"instructions": "Be strict."}),
    ],
)
def test_options_that_decide_are_a_change_of_judge(
    tmp_path: Path, name: str, first: dict[str, Any], second: dict[str, Any]
):
    """Also those that are in no digest of the manifest: the threshold over criteria of cases, and how often."""
    own = {"criteria": "Is kind."} if name.startswith("threshold") else {}
    rubric = None if own else RUBRIC
    line = score(criteria=0.5) if own else GOOD
    for folder, text, options in (("one", "old", first), ("two", "new", second)):
        cases = [Case(id="a", content=text, **own)]
        do(cases, Judge(Told("x", {"a": line}), reask=0), rubric, out=tmp_path / folder, **options)
    comparison = diff(tmp_path / "one", tmp_path / "two")

    assert (comparison.cases, comparison.compared, len(comparison.setup_changes)) == (1, "both", 1)


def keep_answered(folder: Path, model: str | None, content: str = "text", judge: str = "j") -> Run:
    """A run of one case whose reply named a model."""
    return keep_run(folder, [make_item(0, make_result(judge=judge, model=model), content=content)], make_manifest_of(1))


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [("m-1", "m-2", True), ("m-1", "m-1", False), (None, "m-2", False), ("m-1", None, False)],
)
def test_another_model_behind_one_name_is_another_judge(
    tmp_path: Path, before: str | None, after: str | None, changed: bool
):
    """A provider that put another model behind a name changed the judge, though no digest shows it."""
    keep_answered(tmp_path / "one", before).close()
    keep_answered(tmp_path / "two", after).close()
    comparison = diff(tmp_path / "one", tmp_path / "two")

    assert comparison.compared == ("judges" if changed else "answers")
    assert ("'m-1' before, 'm-2' now" in str(comparison.setup_changes)) == changed


def test_a_provider_that_answers_by_several_models_is_one_judge(tmp_path: Path):
    """Only if no model answered in both runs was the judge another."""
    for folder, models in (("one", ("m-1", "m-2")), ("two", ("m-2", "m-3"))):
        items = [make_item(place, make_result(model=model)) for place, model in enumerate(models)]
        keep_run(tmp_path / folder, items, make_manifest_of(2)).close()

    assert diff(tmp_path / "one", tmp_path / "two").compared == "answers"


def test_a_pair_that_became_a_tie_has_changed(line: Line):
    """A tie and a second place both count as not passed, and are not the same preference."""
    pairs = [Case(id=name, content={"a": "x", "b": "y"}) for name in "abc"]
    for out, lines in (("one", ("second", "tie", "first")), ("two", ("tie", "tie", "second"))):
        model = PairTold("x", dict(zip("abc", lines, strict=True)))
        do(pairs, Judge(model, reask=0), None, out=out, pairs=True, criteria="Is good.")
    comparison = diff("one", "two")

    assert comparison.transitions == {("second", "tie"): 1, ("tie", "tie"): 1, ("first", "second"): 1}
    assert [(item.case, item.before, item.after) for item in comparison.listed] == [
        ("c", "first", "second"),
        ("a", "second", "tie"),
    ]
    shown = line("diff", "one", "two", "--html", "d.html").out
    summary = "1 changed from first to second, 0 from second to first, 1 otherwise, of 3 pairs in both runs"
    assert shown.splitlines()[1] == summary
    assert re.findall(r'data-outcome="(\w+)"', Path("d.html").read_text("utf-8")) == ["lost", "outcome", "same"]


def test_pairs_are_not_compared_with_single_cases(line: Line):
    """One of the two has nothing that passes."""
    judge_by("pairs", "same judge", ANSWERS["the same"], {}, "one")
    judge_by("rubric", "same judge", ANSWERS["the same"], {}, "two")

    assert "one of one and two is a run of pairs" in line("diff", "one", "two").sentence


def test_answers_that_one_judge_judged_otherwise_are_counted(line: Line):
    """Of one judge on the same content, a difference is the judge's own, and the first lines say how many there are."""
    judge_by("rubric", "same judge", ANSWERS["the same"], {}, "one")
    judge_by("rubric", "same judge", ANSWERS["some changed"], {"a": False, "b": False}, "two")
    ran = line("diff", "one", "two")

    assert ran.out.splitlines()[1:4] == [
        "2 regressed, 0 improved, of 3 cases in both runs",
        "passed against not passed: p = 0.5000 (McNemar, exact)",
        (
            "Compared: answers, by one judge. 1 of 3 changed. 1 case came out differently with the same content: there "
            "the judge differs from itself."
        ),
    ]
    assert [item["content_changed"] for item in line("diff", "one", "two", "--json").document["listed"]] == [
        True,
        False,
    ]
