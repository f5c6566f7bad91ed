"""``adjudge diff``: what it shows, and when it stops a pipeline."""

from __future__ import annotations

import html
import json
import re
import shutil
from pathlib import Path

import pytest

from adjudge import Case, CriterionResult, Judge, run
from adjudge.trust import find_paired_difference
from kit import cli
from kit.cli import ESCAPES, HIDDEN, Line
from kit.judges import names
from kit.markup import Reader
from kit.redecisions import Told, do, score
from kit.reports import HOSTILE, keep_run, make_item, make_manifest_of, make_result

GOOD, BAD = score(a=1.0, b=0.6), score(a=0.0, b=0.6)
NONE = "no object"


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in a folder with a run, a better and a worse one."""
    cli.isolate(monkeypatch, tmp_path)
    make_run("was", {"a": GOOD, "b": BAD, "c": GOOD})
    make_run("better", {"a": GOOD, "b": GOOD, "c": GOOD})
    make_run("worse", {"a": GOOD, "b": GOOD, "c": BAD})
    make_run("unsure", {"a": GOOD, "b": BAD, "c": NONE})
    return Line(capsys)


DIFFERS = "The judge differs from itself: 1 passed in the earlier run only, 1 in the later run only"


def make_run(out: str, lines: dict[str, object], *, content: str = "text") -> None:
    model = Told("x", lines)  # type: ignore[arg-type]
    do([Case(id=name, content=content) for name in lines], Judge(model, reask=0), out=out)


def test_what_changed_is_shown(line: Line):
    """How many, from what to what, means by criterion with their chance, and the cases, lost passes first."""
    ran = line("diff", "was", "worse")

    assert ran.status == 0
    rows = [row.split() for row in ran.out.splitlines() if row]
    assert rows[0] == ["was", "compared", "with", "worse"]
    assert " ".join(rows[1]) == f"{DIFFERS}, of 3 cases in both runs"
    assert ["passed", "failed", "1"] in rows
    assert "passed against not passed: p = 1.0000 (McNemar, exact)" in ran.out
    assert ["a", "0.67", "0.67", "+0.00", "3", "1.0000", "exact"] in rows
    cases = [row[:3] for row in rows if row[0] in ("b", "c") and row[1] in ("passed", "failed")]
    assert cases == [["c", "passed", "failed"], ["b", "failed", "passed"]]
    assert ran.err == ""


def test_another_rubric_or_judge_is_said_first(line: Line):
    """Scores by two rubrics cannot be compared without knowing it; runs of one setup say nothing."""
    line("redecide", "was", "--threshold", "0.9", "--out", "strict")
    ran = line("diff", "was", "strict")
    document = line("diff", "was", "strict", "--json").document
    markdown = line("diff", "was", "strict", "--markdown").out
    line("diff", "was", "strict", "--html", "d.html")

    [change] = document["setup_changes"]
    assert names(change, "the rubric changed", "passing_threshold", "0.9 now")
    assert ran.out.splitlines()[1] == f"Between the runs, {change}."
    assert "the rubric changed" in markdown
    assert "the rubric changed" in Path("d.html").read_text("utf-8")
    assert line("diff", "was", "worse", "--json").document["setup_changes"] == []


def test_other_criteria_are_one_change(line: Line):
    """Their wording in the prompt differs with them, and is not a second change."""
    cases, judge = [Case(id="a", content="text")], Judge(Told("x", {"a": GOOD}), reask=0)  # type: ignore[dict-item]
    run(cases, judge, criteria="Is polite.", out="polite").finish_sync()
    run(cases, judge, criteria="Is brief.", out="brief").finish_sync()

    [change] = line("diff", "polite", "brief", "--json").document["setup_changes"]
    assert names(change, "the rubric changed", "Is polite", "Is brief")


def test_nothing_is_shown_as_moved_that_stayed(line: Line):
    """A score that is the same stands once, one that moved with an arrow; a column without a text is left out."""
    moved = line("diff", "was", "worse").out
    line("redecide", "was", "--threshold", "0.9", "--out", "strict")
    stayed = line("diff", "was", "strict").out

    assert " → " in moved
    assert " → " not in stayed
    assert ["case", "before", "after", "score"] in [row.split() for row in stayed.splitlines()]


def test_json_is_one_document(line: Line):
    """The diff, and nothing else anywhere; of the same answers, lost passes are no regressions."""
    ran = line("diff", "was", "worse", "--json")

    assert (ran.document["schema"], ran.document["lost"], ran.err) == ("adjudge/diff/1", 1, "")
    assert (ran.document["regressions"], ran.document["improvements"]) == (None, None)
    assert [change["regressed"] for change in ran.document["listed"]] == [False, False]
    assert ran.document["before"]["folder"] == "was"


def test_markdown_is_for_a_pull_request(line: Line):
    """Tables, and nothing else anywhere."""
    ran = line("diff", "was", "worse", "--markdown")

    assert ran.out.startswith(f"<!-- adjudge/diff/1 -->\n### {DIFFERS}\n")
    assert "| `c` | passed | failed | 0.80 → 0.30 | `a 1.00 → 0.00` |" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (("was", "worse"), 0),
        (("was", "better", "--no-regressions"), 0),
        (("was", "worse", "--no-regressions"), 1),
        (("was", "unsure", "--no-regressions"), 1),
        (("was", "worse", "--fail-under", "0.6"), 0),
        (("was", "worse", "--fail-under", "0.7"), 1),
        (("was", "unsure", "--fail-under", "0.6"), 3),
        (("was", "unsure", "--fail-under", "0.6", "--no-regressions"), 1),
        (("was", "better", "--fail-under", "1", "--no-regressions"), 0),
    ],
)
def test_the_status_stops_a_pipeline(line: Line, arguments: tuple[str, ...], status: int):
    """Only where that was asked for; a regression, undecided ones included, beats what cannot be said."""
    assert line("diff", *arguments, "--json").status == status


def test_a_pass_that_went_away_is_not_overlooked(line: Line):
    """A case that passed and is gone, or is another now, may have regressed: the status says that nobody knows."""
    make_run("fewer", {"a": GOOD, "b": BAD})
    ran = line("diff", "was", "fewer", "--no-regressions", "--json")

    assert (ran.status, ran.document["unmatched_passes"]) == (3, 1)
    assert names(ran.err, "1 case that passed in RUN1 is", "gone or changed", "nobody can say")
    assert line("diff", "was", "fewer").status == 0


def test_new_answers_are_compared(line: Line):
    """The program under test changed, so every content did; an answer that passed before and does not now regressed."""
    new = [Case(id=name, content="a new text") for name in "abc"]
    do(new, Judge(Told("x", {"a": BAD, "b": BAD, "c": GOOD}), reask=0), out="new")  # type: ignore[dict-item]

    ran = line("diff", "was", "new", "--no-regressions")
    assert (ran.status, ran.err) == (1, "")
    assert "\n1 regressed, 0 improved, of 3 cases" in ran.out
    assert "Compared: answers, by one judge. 3 of 3 changed." in ran.out

    mixed = [Case(id="a", content="a new text"), Case(id="b", content="text"), Case(id="c", content="text")]
    do(mixed, Judge(Told("x", {"a": GOOD, "b": BAD, "c": GOOD}), reask=0), out="mixed")  # type: ignore[dict-item]
    assert line("diff", "was", "mixed", "--no-regressions").status == 0


def test_an_unfinished_run_is_no_proof(line: Line):
    """What was not judged yet may fail: the status says so where one is asked for."""
    path = Path("better/run.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "interrupted"}))

    ran = line("diff", "was", "better", "--no-regressions", "--json")
    assert (ran.status, "better is interrupted: finish it" in ran.err) == (3, True)
    assert line("diff", "was", "better", "--json").status == 0
    assert line("diff", "better", "was", "--fail-under", "0.5", "--json").status == 0
    assert line("diff", "better", "was", "--fail-under", "0.5", "--no-regressions", "--json").status == 1
    assert line("diff", "better", "better", "--no-regressions", "--json").status == 3


# ---------------------------------------------------------------- worse, by the judge alone


def make_pair(passes: list[tuple[bool, bool]], *, per_group: int | None = None) -> None:
    """Two runs ``a`` and ``b`` of other answers to the same questions, each passed or not."""
    for side, out in enumerate("ab"):
        lines = {f"q-{place}": GOOD if verdicts[side] else BAD for place, verdicts in enumerate(passes)}
        cases = [
            Case(id=name, content=f"an answer of {out}", group=None if per_group is None else f"g-{place // per_group}")
            for place, name in enumerate(lines)
        ]
        do(cases, Judge(Told("x", lines), reask=0), out=out)  # type: ignore[arg-type]


BETTER = [(True, True)] * 42 + [(True, False)] * 6 + [(False, True)] * 9 + [(False, False)] * 3
"""Of 60 cases 48 pass before and 51 after: better, and by chance as far as anybody can tell."""

WORSE = [(True, True)] * 30 + [(True, False)] * 20 + [(False, True)] * 2 + [(False, False)] * 8


@pytest.mark.parametrize(
    ("passes", "margin", "status", "sentence"),
    [
        (
            BETTER,
            (),
            3,
            "The judge's verdicts on 60 cases cannot tell whether b passes more often than a: the difference",
        ),
        (BETTER, ("--margin", "10"), 0, "between 8.1 points less and 17.8 points more."),
        (WORSE, (), 1, "b passes 15 to 43 points less often than a, by the judge alone."),
        (WORSE, ("--margin", "20"), 3, "b passes 15 to 43 points less often than a, by the judge alone."),
        (
            [(after, before) for before, after in WORSE],
            (),
            0,
            "b passes 15 to 43 points more often than a, by the judge",
        ),
    ],
)
def test_the_judge_alone_says_whether_it_is_worse(
    line: Line, passes: list[tuple[bool, bool]], margin: tuple[str, ...], status: int, sentence: str
):
    """By a paired interval, without a label: 0 not worse, 1 worse, 3 it cannot tell. The sentence comes first."""
    make_pair(passes)
    ran = line("diff", "a", "b", "--fail-if-worse", "--by", "judge", *margin)

    assert ran.status == status
    assert sentence in " ".join(ran.out.split())
    assert ran.out.index("judge") < ran.out.index("regressed")
    assert "the judge's errors are not in them" in " ".join(ran.out.split())
    assert ("cannot tell whether RUN2 is worse" in ran.err) == (status == 3)


def test_what_the_judge_alone_says_is_in_every_form_where_it_was_asked_for(line: Line):
    """And nowhere else."""
    make_pair(WORSE)
    asked = ("diff", "a", "b", "--fail-if-worse", "--by", "judge")
    line(*asked, "--html", "d.html")
    judged = line(*asked, "--json").document["judged"]

    assert (judged["before"], judged["after"], judged["of"]) == (50, 32, 60)
    assert (judged["low"], judged["high"]) == pytest.approx(find_paired_difference(2, 20, 60))
    for text in (line(*asked, "--markdown").out, Path("d.html").read_text("utf-8")):
        assert "b passes 15 to 43 points less often than a, by the judge alone" in text
    assert "judged" not in line("diff", "a", "b", "--json").document


def test_by_judge_says_it_and_requires_nothing(line: Line):
    """Without --fail-if-worse it is a figure to read, and the status is that of a comparison that was made."""
    make_pair(WORSE)
    ran = line("diff", "a", "b", "--by", "judge")

    assert ran.status == 0
    assert "b passes 15 to 43 points less often than a, by the judge alone" in ran.out


def test_answers_without_ids_lead_to_the_column_of_ids(line: Line):
    """Each is a case of its own then, and no case is in both runs, or the few whose answer is the same."""
    do(
        [Case(id="same", content="x"), Case(id="first", content="y")],
        Judge(Told("x", {"same": GOOD, "first": GOOD})),
        out="a",
    )
    do(
        [Case(id="same", content="x"), Case(id="other", content="z")],
        Judge(Told("x", {"same": GOOD, "other": GOOD})),
        out="b",
    )
    do([Case(id="none", content="z")], Judge(Told("x", {"none": GOOD})), out="c")
    some, none = line("diff", "a", "b"), line("diff", "a", "c")

    assert (some.status, none.status) == (0, 2)
    for text in (some.err, none.err):
        assert "name the column of the ids (adjudge run --id)" in " ".join(text.split())


def test_what_a_margin_decides_by_the_judge_alone_is_said(line: Line):
    """A gate that passes says by how much it may be worse, and not that nobody can tell."""
    make_pair(BETTER)
    asked = ("diff", "a", "b", "--fail-if-worse", "--by", "judge", "--margin", "10")
    passed, comment = line(*asked), line(*asked, "--markdown")

    assert passed.status == 0
    for text in (passed.out, comment.out):
        assert "By the judge alone b is not more than 10 points worse than a" in " ".join(text.split())
        assert "cannot tell" not in text


def test_chance_can_be_allowed_and_a_comparison_that_failed_cannot(line: Line):
    """With --pass-if-unclear 3 is left for what could not be compared, and 1 for what is worse."""
    make_pair(BETTER)
    asked = ("--fail-if-worse", "--by", "judge", "--pass-if-unclear")
    line("redecide", "was", "--threshold", "0.9", "--out", "strict")
    make_run("fewer", {"a": GOOD, "b": BAD})
    unclear = line("diff", "a", "b", *asked)

    assert (unclear.status, "cannot tell whether RUN2 is worse" in unclear.err) == (0, True)
    assert line("diff", "was", "strict", *asked).status == 3
    assert line("diff", "was", "fewer", *asked).status == 3
    for folder in "ab":
        shutil.rmtree(folder)
    make_pair(WORSE)
    assert line("diff", "a", "b", *asked).status == 1


def test_cases_in_groups_tell_the_judge_less(line: Line):
    """Verdicts of one group repeat each other."""
    pytest.importorskip("scipy", reason="groups need the extra trust")
    make_pair(sorted(BETTER * 2), per_group=2)
    asked = ("diff", "a", "b", "--fail-if-worse", "--by", "judge", "--json")
    judged = line(*asked).document["judged"]
    low, high = find_paired_difference(18, 12, 120)

    assert judged["high"] - judged["low"] > 1.2 * (high - low)


def test_the_judge_alone_cannot_tell_of_runs_that_are_not_alike(line: Line):
    """Judged otherwise, unfinished, or without a case that passed before: 3; and pairs of contents are refused."""
    asked = ("--fail-if-worse", "--by", "judge", "--margin", "99")
    line("redecide", "was", "--threshold", "0.9", "--out", "strict")
    other = line("diff", "was", "strict", *asked)
    make_run("fewer", {"a": GOOD, "b": BAD})
    gone = line("diff", "was", "fewer", *asked)
    path = Path("better/run.json")
    path.write_text(json.dumps(json.loads(path.read_text()) | {"status": "interrupted"}))
    unfinished = line("diff", "was", "better", *asked)

    assert (other.status, "the judge changed between the runs" in other.err) == (3, True)
    assert (gone.status, "gone or changed" in gone.err) == (3, True)
    assert (unfinished.status, "better is interrupted: finish it" in unfinished.err) == (3, True)
    assert line("diff", "was", "worse", *asked).status == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("was", "worse", "--fail-if-worse", "--by", "chance"), "--by … people … judge … chance"),
        (("was", "worse", "--pass-if-unclear"), "--pass-if-unclear … --fail-if-worse"),
        (("was", "none"), "none holds no run"),
        (("was", "worse", "--fail-under", "90"), "--fail-under … between 0 and 1 … 90 … write 0.9"),
        (("was", "worse", "--json", "--markdown"), "--json or --markdown … not both"),
        (("was", "other", "--no-regressions"), "was and other … no case in common … runs of the same data"),
    ],
)
def test_what_is_wrong_is_a_sentence(line: Line, arguments: tuple[str, ...], message: str):
    """And the status is 2: two runs of different data have no regressions, which must not look like a pass."""
    make_run("other", {"z": GOOD})
    ran = line("diff", *arguments)

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_nothing_hostile_reaches_the_terminal(line: Line):
    """Neither what a case is called nor what is said of it."""
    make_run("one", {ESCAPES: GOOD})
    make_run("two", {ESCAPES: {**GOOD, "passed": False}})
    for form in ((), ("--markdown",), ("--json",)):
        ran = line("diff", "one", "two", *form)
        assert "contradiction" in ran.out
        assert not HIDDEN.search(ran.out + ran.err)


def test_a_long_list_is_cut_and_said_to_be(line: Line):
    """A person sees 20 cases, or as many as --top says; --json has up to 2,000."""
    many = [str(case) for case in range(30)]
    make_run("one", dict.fromkeys(many, GOOD))
    make_run("two", dict.fromkeys(many, BAD))
    ran, more = line("diff", "one", "two"), line("diff", "one", "two", "--top", "25")

    assert ran.out.count("passed  failed  0.80 ") == 20
    assert names(ran.err, "20 of the 30", "--top", "--html FILE", "2,000")
    assert (more.out.count("passed  failed  0.80 "), more.err[:12]) == (25, "25 of the 30")
    assert len(line("diff", "one", "two", "--json").document["listed"]) == 30
    assert len(line("diff", "one", "two", "--json", "--top", "4").document["listed"]) == 4
    assert "4 of 30 cases" in line("diff", "one", "two", "--markdown", "--top", "4").out
    assert "\ncase " not in line("diff", "one", "two", "--top", "0").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--top", "-1"), "--top … 0 to 2,000 … -1"),
        (("--top", "2001"), "--top … 0 to 2,000 … 2001"),
        (("--html", "-"), "name a file"),
        (("--html", "missing/x.html"), "cannot write missing"),
    ],
)
def test_wrong_options_are_said(line: Line, words: tuple[str, ...], message: str):
    """Before anything is written to standard output."""
    assert names(line("diff", "was", "worse", *words).sentence, *message.split(" … "))


def read_page(line: Line, *words: str) -> str:
    ran = line("diff", *words, "--html", "d.html")
    assert ran.status == 0
    assert "wrote d.html" in ran.err
    return Path("d.html").read_text("utf-8")


def test_a_page_has_both_runs_side_by_side(line: Line):
    """What changed, changed cases first and those that came out as before below; a content that is the same once."""
    page = read_page(line, "was", "worse")
    shown = re.findall(r'<li id="case-(\d)" data-outcome="(\w+)"', page)

    assert shown == [("2", "lost"), ("1", "gained"), ("0", "same")]
    assert DIFFERS in page
    assert page.count("<b>Content</b>") == 3
    assert page.count('<div class="sides">') == 3
    assert page.count("criterion that changed") == 2


def test_a_page_shows_both_contents_where_they_differ(line: Line):
    """New answers to the same tasks are what two runs are compared for."""
    make_run("new", {"a": BAD, "b": BAD, "c": GOOD}, content="another text")
    page = read_page(line, "was", "new")

    shown = re.findall(r'<b>(Content of \w)</b></header>\s*<pre class="text" dir="auto">([^<]*)</pre>', page)
    assert shown == [("Content of A", "text"), ("Content of B", "another text")] * 3


def test_contents_that_differ_far_behind_are_not_shown_as_one(line: Line):
    """A long text is cut, and what is cut off may be all that changed."""
    make_run("one", {"a": GOOD}, content="x" * 3_000)
    make_run("two", {"a": BAD}, content="x" * 3_000 + "y")
    page = read_page(line, "one", "two")

    assert page.count("<b>Content of A</b>") == page.count("<b>Content of B</b>") == 1


def test_a_page_holds_as_many_cases_as_are_asked_for(line: Line):
    """Changed ones first."""
    assert re.findall(r'data-outcome="(\w+)"', read_page(line, "was", "worse", "--top", "1")) == ["lost"]


def test_nothing_hostile_becomes_a_part_of_the_page(line: Line):
    """Texts add no element, nothing is loaded, and the policy lets in the page's own script and style alone."""
    pages = []
    for text in ("x", HOSTILE):
        case = {"id": f"i{text}", "task": text, "content": text, "reference": text, "metadata": {text: text}}
        for name, outcome in (("one", "passed"), ("two", "failed")):
            criteria = (CriterionResult(name=text, score=0.2 if name == "one" else 0.4, passed=False, reasoning=text),)
            result = make_result(outcome, judge=text, reasoning=text, detail=text, criteria=criteria)
            manifest = make_manifest_of(1, id=text, judge={"name": text}, rubric={"name": text})
            keep_run(Path(f"{name}-{len(text)}"), [make_item(0, result, **case)], manifest).close()
        pages.append(Reader(read_page(line, f"one-{len(text)}", f"two-{len(text)}")))
    plain, hostile = pages
    page = Path("d.html").read_text("utf-8")

    assert hostile.elements == plain.elements
    assert hostile.text.count("<script>alert(1)</script>") > 5
    assert HIDDEN.search(page) is None
    assert "default-src 'none'" in html.unescape(page)
    assert page.count("<script") == 1
    assert set(re.findall(r'(?:href|src)="([^"]*)"', page)) <= {"#cases", "#show-lost", "#show-gained"}
