"""``adjudge agree``, and what people would pass in ``run``, ``report`` and ``diff``: words, exit statuses, refusals."""

from __future__ import annotations

import csv
import json
import random
import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, run
from adjudge.dataset import Label, load_labels, write_labels
from kit import cli, house
from kit.cli import ESCAPES, HIDDEN, Line
from kit.judges import names
from kit.reports import HOSTILE, keep_run, make_item, make_result

pytest.importorskip("scipy", reason="measuring needs the extra trust")

EXAMPLE = house.ROOT / "examples" / "measured-judge"


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a copy of the shipped example."""
    copied = tmp_path / "measured-judge"
    shutil.copytree(EXAMPLE, copied)
    cli.isolate(monkeypatch, copied)
    return Line(capsys)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The runs of both judges, made once."""
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(EXAMPLE))
        labels = ("1_full_compliance", "2_full_refusal", "3_partial_refusal")
        reading: dict[str, Any] = {"reader": "label", "reader_labels": labels, "reader_passes": labels[:1]}
        recorded = Judge(f"replay:{EXAMPLE / 'recorded.jsonl'}", name="recorded", **reading)
        words = Judge(import_module("refusal_words").complies, name="words")
        for name, judge in (("measured", recorded), ("words", words)):
            run(EXAMPLE / "answers.jsonl", judge, EXAMPLE / "complies.yaml", out=place / name).finish_sync().close()
    return place


@pytest.fixture
def judged(line: Line, runs: Path) -> Line:
    """The same, with both runs."""
    for name in ("measured", "words"):
        shutil.copytree(runs / name, name)
    return line


def draw(number: int) -> Path:
    """The first annotator's labels of so many cases, drawn with a fixed seed."""
    every = [label for label in load_labels("labels.jsonl") if label.rater == "annotator-1"]
    return keep(random.Random(1).sample(every, number), f"drawn-{number}.jsonl")


def keep(labels: Iterable[Label], name: str = "some.jsonl") -> Path:
    """Labels in a file."""
    write_labels(name, labels)
    return Path(name)


# ---------------------------------------------------------------- agree


def test_a_judge_is_measured_in_one_sentence_and_its_tables(judged: Line):
    """The rate that people pass, the judge's own, and of how many bad and good ones it is right."""
    ran = judged("agree", "measured", "--labels", "labels.jsonl", "--by", "model", "--alternative")

    assert ran.status == 0
    assert "People pass 74 % of these 450 cases; the judge passes 81 %." in ran.out
    assert "caught 86 of 115 bad answers and kept 334 of 335 good ones" in ran.out
    assert re.search(r"people: bad +29 +86 +115", ran.out)
    assert "llama2orig" in ran.out
    assert "alternative annotator test" in ran.out
    assert "27 judge wrong, 3 people disagree" in ran.out


def test_one_coefficient_is_shown_and_cases_are_told_from_people(judged: Line):
    """Kappa, and not the others of the same question; the labels of two people are no cases."""
    ran = judged("agree", "measured", "--labels", "labels.jsonl", "--alternative")
    after = ran.out.partition("Agreement beyond chance")[2].splitlines()

    assert [row.split("  ")[0] for row in after[2:4]] == [
        "Cohen's kappa",
        "1 is complete agreement, 0 is what chance brings.",
    ]
    assert "2 people labelled 450 cases; 450 of them are settled." in ran.out
    assert "it wins over 2 of 2 people" in ran.out


def test_one_heap_that_is_nearly_all_has_the_coefficient_that_says_something(judged: Line):
    """Kappa is low where nearly all answers are good, however often the judge is right; AC1 is shown in its place."""
    labels = load_labels("labels.jsonl")
    bad = {label.case for label in labels if not label.value}
    some = [label for label in labels if label.case not in bad or label.case in sorted(bad)[:10]]
    shown = judged("agree", "measured", "--labels", keep(some)).out

    assert "Gwet's AC1" in shown
    assert "kappa" not in shown


def test_who_labelled_too_few_is_told_how_many_are_missing(judged: Line):
    """Of 30 that the alternative annotator test needs, a second person has 27."""
    raters: dict[str, list[Label]] = {}
    for label in load_labels("labels.jsonl"):
        raters.setdefault(label.rater, []).append(label)
    ran = judged(
        "agree", "measured", "--alternative", "--labels", keep([*raters["annotator-1"], *raters["annotator-2"][:27]])
    )

    assert "'annotator-1' has 27, so label 3 more" in ran.out
    assert "'annotator-2' has 27, so label 3 more" in ran.out


def test_a_drawn_sample_gives_an_interval_that_holds(judged: Line):
    """With 240 random labels the interval contains what all labels say, and the judge's own rate is outside."""
    ran = judged("agree", "measured", "--labels", draw(240), "--labels-are", "random", "--json")
    rate = ran.document["rate"]

    assert rate["low"] < 335 / 450 < rate["high"] < rate["naive"]["rate"]


def test_labels_that_nobody_drew_give_counts_and_no_rate(judged: Line):
    """Counts of what the judge caught and kept, no rate, and what to do."""
    ran = judged("agree", "measured", "--labels", draw(240))

    assert ran.status == 0
    assert "It caught" in ran.out
    assert "corrected rate: refused" in ran.out
    assert "label 50 cases of this run at random" in ran.out


def test_a_file_of_verdicts_is_measured_without_a_run(judged: Line):
    """Models in a file of labels are judges; several are told one after the other, or as one document."""
    models = [
        Label(case=label.case, rater=name, kind="model", value=label.value == agrees)
        for name, agrees in (("same", True), ("other", False))
        for label in load_labels("labels.jsonl")[:80]
        if label.rater == "annotator-1"
    ]
    keep([*load_labels("labels.jsonl"), *models], "verdicts.jsonl")

    assert names(judged("agree", "verdicts.jsonl").out, "2 judges, compared with people", "\nsame\n", "\nother\n")
    document = judged("agree", "verdicts.jsonl", "--json").document
    assert (document["schema"], len(document["measurements"])) == ("adjudge/measurements/1", 2)
    assert judged("agree", "verdicts.jsonl", "--judge", "same", "--json").document["judge"] == "same"


def test_nothing_labelled_is_undecided(judged: Line):
    """A run without labels is not measured: exit 3, with what to do."""
    ran = judged("agree", "measured")

    assert ran.status == 3
    assert "adjudge label" in ran.err


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--epsilon", "0.1"), "--alternative"),
        (("--top", "-1"), "--top"),
        (("--json", "--markdown"), "not both"),
        (("--html", "-"), "--html"),
        (("--target", "week"), "'week'"),
        (("--labels-are", "lucky"), "'lucky'"),
        (("--labels", "nowhere.jsonl"), "nowhere.jsonl"),
        (("--judge", "x"), "--judge"),
        (("--labels", "labels.jsonl", "--criterion", "polite"), "polite"),
    ],
)
def test_wrong_usage_names_the_option(judged: Line, options: tuple[str, ...], named: str):
    """Exit 2, in one sentence, before anything is computed."""
    ran = judged("agree", "measured", *options)

    assert ran.status == 2
    assert named in ran.sentence


def test_hostile_names_and_contents_stay_text(line: Line):
    """Ids, raters, comments and contents reach neither terminal nor page as anything but text."""
    bad = HOSTILE + ESCAPES.replace("\x00", "")
    items = [
        make_item(at, make_result(reasoning=bad), id=f"{bad}{at}", content=bad, group=bad, metadata={"m": bad})
        for at in range(12)
    ]
    keep_run(Path("hostile"), items).close()
    keep([Label(case=item.case.id, rater=bad, value=False, comment=bad) for item in items[:9]])
    ran = line("agree", "hostile", "--labels", "some.jsonl", "--by", "m", "--html", "page.html")

    assert ran.status == 0
    assert HIDDEN.search(ran.out + ran.err) is None
    page = Path("page.html").read_text("utf-8")
    assert "<script>alert" not in page
    assert "<b id=forged" not in page
    comment = line("agree", "hostile", "--labels", "some.jsonl", "--markdown").out
    assert "\n## forged" not in comment


# ---------------------------------------------------------------- run, report, diff


def test_the_gate_is_on_the_lower_limit(judged: Line):
    """0 where the lower limit reaches the share, 1 where it does not, although the rate itself may."""
    arguments = ("report", "measured", "--labels", draw(240), "--labels-are", "random", "--json")
    limit = judged(*arguments).document["measurement"]["limit"]

    assert limit["kind"] == "every look"
    passed = judged(*arguments, "--fail-under-corrected", f"{limit['low'] - 0.001}")
    assert passed.status == 0
    assert "lower limit for every look" in passed.err
    missed = judged(*arguments, "--fail-under-corrected", f"{limit['low'] + 0.001}")
    assert missed.status == 1
    assert "lower limit for every look" in missed.err
    assert "hold however often you look" in missed.err


def fill_plan(judged: Line, most: int | None = None, *options: str) -> None:
    """Draw cases with a plan, and label some of them as the shipped labels do."""
    Path("ask.jsonl").unlink(missing_ok=True)
    assert judged("plan", "measured", *options, "--out", "ask.jsonl").status == 0
    asked = {row["case"]: row for row in map(json.loads, Path("ask.jsonl").read_text("utf-8").splitlines())}
    rows = map(json.loads, Path("labels.jsonl").read_text("utf-8").splitlines())
    some = list(asked)[:most]
    kept = [
        row | {name: asked[row["case"]][name] for name in ("design", "subject")} for row in rows if row["case"] in some
    ]
    Path("said.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in kept), encoding="utf-8")
    assert judged("label", "measured", "--import", "said.jsonl").status == 0


@pytest.mark.slow
def test_a_gate_waits_for_the_plan_and_looks_once(judged: Line):
    """3 with the number that is left, however good the labels are; then 0 or 1 by the limits for one look."""
    draw = ("--within", "5", "--seed", "7", "--ignore-groups")
    fill_plan(judged, 20, *draw)
    gate = ("report", "measured", "--fail-under-corrected")
    early = judged(*gate, "0.01")
    fill_plan(judged)
    undrawn = judged(*gate, "0.01")
    fill_plan(judged)
    status = judged("plan", "measured", "--json").document["status"]

    assert (early.status, undrawn.status) == (3, 3)
    assert "labels of the plan's pilot are missing" in early.err
    assert "not drawn yet" in undrawn.err
    assert status["complete"] is True
    passed, missed = (
        judged(*gate, f"{status['once']['low'] - 0.001}"),
        judged(*gate, f"{status['once']['low'] + 0.001}"),
    )
    assert (passed.status, missed.status) == (0, 1)
    assert "lower limit for one look" in passed.err
    assert "lower limit for one look" in missed.err
    assert "with further labels, the wider limits for every look decide" in missed.err
    assert judged("agree", "measured").status == 0
    rows = [json.loads(row) for row in Path("measured", "looks.jsonl").read_text().splitlines()]
    assert {"report", "plan", "agree"} == {row["by"] for row in rows}


def test_what_a_reader_must_know_comes_first_in_every_form(judged: Line):
    """An unfinished plan, labels that are not blind or not counted, and contents that repeat: before any rate."""
    items = [make_item(at, content=f"the same {at % 30}") for at in range(60)]
    keep_run(Path("copies"), items).close()
    assert judged("plan", "copies", "--within", "2").status == 0
    plan = json.loads(Path("copies", "plan.json").read_text("utf-8"))
    labels = [Label(case=item["case"], rater="ann", value=True, subject=item["subject"]) for item in plan["order"][:40]]
    of_other_content = [replace(label, rater="zoe", subject="0" * 64) for label in labels[:3]]
    keep([*labels, *of_other_content])

    for command in ("agree", "report"):
        arguments = (command, "copies", "--labels", "some.jsonl")
        shown = judged(*arguments).out
        comment = judged(*arguments, *(("--markdown",) if command == "agree" else ("--markdown", "-"))).out
        assert judged(*arguments, "--html", "page.html").status == 0
        page = Path("page.html").read_text("utf-8")
        for text in (shown, comment, re.sub(r"<[^>]*>", " ", page[page.index("<main") :])):
            flat = " ".join(text.split())
            before = flat[: find_first_rate(flat)]
            assert "The plan is not finished" in before
            assert "not known to be blind" in before
            assert "repeat the content" in before
            assert "3 labels are not counted" in before
        document = judged(*arguments, "--json").document
        measured = document if command == "agree" else document["measurement"]
        assert len(measured["warnings"]) == 3
        assert list(measured)[:2] == ["schema", "warnings"]
        assert (measured["not_blind"], measured["plan"]["complete"]) == (40, False)


def find_first_rate(text: str) -> int:
    """The place of the first share in per cent, or of the first count of answers that the judge got right."""
    rate = re.search(r"\d %|\b(?:caught|kept) \d", text)
    assert rate is not None
    return rate.start()


def test_the_gate_is_open_where_no_rate_is_given(judged: Line):
    """Too few labels, or a refusal: exit 3 with the reason and what would help."""
    ran = judged("report", "measured", "--labels", draw(20), "--fail-under-corrected", "0.5")

    assert ran.status == 3
    assert "--fail-under-corrected" in ran.err
    assert judged("report", "measured", "--fail-under-corrected", "0.5").status == 3


def test_a_naive_miss_beats_an_open_gate(judged: Line):
    """1 beats 3: what failed has failed, whatever is open."""
    ran = judged("report", "measured", "--labels", draw(20), "--fail-under-corrected", "0.5", "--fail-under", "0.99")

    assert ran.status == 1


def test_a_run_can_be_measured_where_it_ends(line: Line):
    """``run --labels`` says what people would pass, and gates on it; the labels are not kept with the cases."""
    arguments = ("run", "answers.jsonl", "--labels", "labels.jsonl", "--fail-under-corrected")

    passed = line(*arguments, "0.7", "--out", "one")
    assert passed.status == 0
    assert "People pass 74 %" in passed.out
    assert "--target system" in passed.out  # the figure ends at these cases, and somebody may ask for more
    missed = line(*arguments, "0.8", "--out", "two", "--json")
    assert missed.status == 1
    assert missed.document["measurement"]["rate"]["value"] == pytest.approx(335 / 450)
    assert line("agree", "one").status == 3


@pytest.mark.slow
def test_another_run_is_described_and_corrects_nothing(line: Line):
    """Labels of an earlier run of the same judge give words, and no gate; a run of another judge is refused."""
    singles = {label.case.split("-")[1]: label for label in load_labels("labels.jsonl") if label.rater == "annotator-1"}
    keep(singles.values())
    assert line("run", "answers.jsonl", "--out", "measured").status == 0
    assert line("run", "answers.jsonl", "--out", "words", "--judge", "refusal-words").status == 0
    assert line("label", "measured", "--import", "some.jsonl").status == 0
    rows = Path("answers.jsonl").read_text("utf-8").splitlines(keepends=True)
    Path("later.jsonl").write_text("".join(rows[:300]), encoding="utf-8")
    assert line("run", "later.jsonl", "--out", "later").status == 0

    arguments = ("report", "later", "--measured-on", "measured")
    measurement = line(*arguments, "--json").document["measurement"]
    assert (measurement["refused"], measurement["rate"]["because"], measurement["measured_on"]["labelled"]) == (
        True,
        "no_labels",
        150,
    )
    table = measurement["measured_on"]["table"]
    caught, wrong = table["failed"]["bad"], table["passed"]["bad"]
    kept, lost = table["passed"]["good"], table["failed"].get("good", 0)
    for more in ((), ("--markdown", "-")):
        output = line(*arguments, *more).out
        assert f"On run measured it caught {caught} of {caught + wrong} bad answers" in output
        assert f"kept {kept} of {kept + lost} good ones" in output
        assert "how often it errs on this run is not known: label 50 cases of this run at random" in output
    gated = line(*arguments, "--fail-under-corrected", "0.01")
    assert gated.status == 3
    assert "label 50 cases of this run at random" in gated.err
    refused = line("report", "words", "--measured-on", "measured")
    assert refused.status == 2
    assert "another judge" in refused.sentence


@pytest.mark.slow
def test_a_report_says_it_in_every_form(judged: Line):
    """Terminal, Markdown, JSON and HTML; a comment for a pull request holds the sentence and the table."""
    arguments = ("report", "measured", "--labels", "labels.jsonl")

    assert "People pass 74 %" in judged(*arguments).out
    assert "People pass 74 %" in judged(*arguments, "--markdown", "-").out
    assert judged(*arguments, "--html", "page.html").status == 0
    assert "People pass 74 % of these 450 cases" in Path("page.html").read_text("utf-8")
    assert judged(*arguments, "--json").document["measurement"]["schema"] == "adjudge/measurement/1"


@pytest.mark.parametrize("labels", ["random", "chosen", "all"])
def test_what_people_would_pass_comes_before_what_the_judge_passed(judged: Line, labels: str):
    """In the terminal, Markdown and HTML; the judge's own rate is called what it is, in each."""
    arguments = ["report", "measured", "--labels", "labels.jsonl" if labels == "all" else draw(240)]
    arguments += ["--labels-are", "random"] if labels == "random" else []
    people = "How many people would pass cannot be said" if labels == "chosen" else "People "
    own = "The judge alone passed 80.7 % of 450 cases (95 % interval 76.8 to 84.0 %), which counts its errors as right"

    assert judged(*arguments, "--html", "page.html").status == 0
    page = Path("page.html").read_text("utf-8")
    for text in (judged(*arguments).out, judged(*arguments, "--markdown", "-").out, page[page.index("<main") :]):
        assert own in " ".join(text.split())
        assert text.index(people) < text.index("The judge alone passed")
    assert "80.7 % passed" not in page
    assert "### 80.7" not in judged(*arguments, "--markdown", "-").out


def test_an_unlabelled_run_begins_with_what_the_judge_passed(judged: Line):
    """Nobody said otherwise, so nothing is corrected and nothing is qualified."""
    assert (
        judged("report", "measured").out.splitlines()[1] == "80.7 % of 450 cases passed (95 % interval 76.8 to 84.0 %)"
    )
    assert "### 80.7 % of 450 cases passed" in judged("report", "measured", "--markdown", "-").out


def test_data_with_labels_that_people_labelled_too_show_one_agreement(line: Line):
    """The measurement has both kinds of labels; an agreement with the data alone would be a second figure."""
    every = {item.case: item for item in load_labels("labels.jsonl") if item.rater == "annotator-1"}
    rows = [json.loads(row) for row in Path("answers.jsonl").read_text("utf-8").splitlines()]
    labelled = "".join(json.dumps(row | {"label": every[row["id"]].value}) + "\n" for row in rows)
    Path("labelled.jsonl").write_text(labelled, encoding="utf-8")
    assert line("run", "labelled.jsonl", "--out", "both").status == 0
    alone = line("report", "both").out
    keep([every[row["id"]] for row in rows[:40]])
    assert line("label", "both", "--import", "some.jsonl").status == 0

    assert alone.count("Agreement with labels") == 1
    for more in ((), ("--markdown", "-")):
        output = line("report", "both", *more).out
        assert "agreement with labels" not in output.lower()
        assert output.count("bad answers and kept") == 1
    assert line("report", "both", "--html", "page.html").status == 0
    assert "Agreement with labels" not in Path("page.html").read_text("utf-8")


@pytest.mark.parametrize("form", ["jsonl", "csv", "tsv"])
@pytest.mark.parametrize("change", ["nothing", "without the contents", "without a rater", "half filled in"])
def test_the_list_of_a_plan_is_taken_in_when_people_filled_it_in(judged: Line, form: str, change: str):
    """Whatever people left of the case in it, and with the name of whoever imports it where it names nobody."""
    rater = () if change == "without a rater" else ("--rater", "ann")
    arguments = ("--within", "4", "--seed", "7", "--ignore-groups", "--out", f"ask.{form}", *rater)
    assert judged("plan", "measured", *arguments).status == 0
    rows = read_list(Path(f"ask.{form}"))
    for place, row in enumerate(rows):
        row["value"] = (
            "cannot_tell" if place == 0 else None if change == "half filled in" and place % 2 else place % 3 > 0
        )
        if change == "without the contents":
            del row["content"]
    write_list(Path(f"filled.{form}"), rows)
    ran = judged("label", "measured", "--import", f"filled.{form}", "--rater", "bob")

    assert ran.status == 0, ran.err
    assert f"{sum(row['value'] is not None for row in rows)} labels taken in" in ran.out
    document = judged("agree", "measured", "--json").document
    assert document["people"] == ["bob" if change == "without a rater" else "ann"]
    assert document["sampling"] == "plan"


def read_list(path: Path) -> list[dict[str, Any]]:
    """The rows of a list of cases to label."""
    with path.open(encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            return [json.loads(row) for row in file]
        return list(csv.DictReader(file, delimiter="\t" if path.suffix == ".tsv" else ","))


def write_list(path: Path, rows: list[dict[str, Any]]) -> None:
    """The same rows again, as a spreadsheet or a tool writes them."""
    with path.open("w", encoding="utf-8", newline="") as file:
        if path.suffix == ".jsonl":
            file.writelines(f"{json.dumps(row)}\n" for row in rows)
            return
        table = csv.DictWriter(file, list(rows[0]), delimiter="\t" if path.suffix == ".tsv" else ",")
        table.writeheader()
        table.writerows(
            [{key: str(cell).upper() if cell in (True, False) else cell for key, cell in row.items()} for row in rows]
        )


def test_a_labelled_run_is_measured_without_being_asked(judged: Line):
    """The labels of the run's own queue count in every report."""
    before = judged("report", "measured").out
    assert "People" not in before
    keep([Label(case="of another run", rater="ann", value=True)])
    assert judged("label", "measured", "--import", "some.jsonl").status == 2
    assert Path("measured", "labels.sqlite").is_file()
    assert judged("report", "measured").out == before
    assert judged("label", "measured", "--import", "labels.jsonl").status == 0

    assert "People pass 74 %" in judged("report", "measured").out
    assert judged("agree", "measured", "--json").document["labelled"] == 450


@pytest.mark.slow
def test_two_runs_have_their_own_rates_and_the_difference_of_their_judges(judged: Line):
    """Each run has its own interval, and a sentence compares the judges by the same labels; JSON has both."""
    labels = ("--labels", draw(240), "--labels-are", "random")
    ran = judged("diff", "measured", "words", *labels)

    assert ran.out.count("People would pass") == 2
    assert "These labels cannot tell which judge agrees with people more often: for words it is between" in ran.out
    document = judged("diff", "measured", "words", *labels, "--json").document
    assert [item["sampling"] for item in document["measured"]] == ["random", "random"]
    agreement = document["judges"]["agreement"]
    assert (agreement["before"], agreement["after"], agreement["of"]) == (226, 228, 240)
    assert agreement["low"] < 0 < agreement["value"] < agreement["high"]
    assert "**Before: what people would say**" in judged("diff", "measured", "words", *labels, "--markdown").out
    assert judged("diff", "measured", "words", *labels, "--html", "page.html").status == 0


# ---------------------------------------------------------------- plans


def test_labels_of_a_plan_are_weighed_by_its_strata(judged: Line):
    """Of 87 fails more are labelled than of 363 passes; counted alike, the judge would seem to catch too much."""
    assert (
        judged("plan", "measured", "--within", "4", "--seed", "7", "--ignore-groups", "--out", "one.jsonl").status == 0
    )
    drawn = {
        row["case"]: {name: row[name] for name in ("subject", "design")}
        for row in map(json.loads, Path("one.jsonl").read_text("utf-8").splitlines())
    }
    answers = [json.loads(row) for row in Path("labels.jsonl").read_text("utf-8").splitlines()]
    rows = [row | drawn[row["case"]] for row in answers if row["case"] in drawn]
    Path("said.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    document = judged("agree", "measured", "--labels", "said.jsonl", "--json").document

    assert (document["sampling"], document["is_weighted"]) == ("plan", True)
    assert document["rate"]["low"] < 335 / 450 < document["rate"]["high"]
    caught = document["agreement"]["specificity"]
    assert caught["low"] < 86 / 115 < caught["high"]
    assert caught["method"] == "Wilson, weighted by strata"


@pytest.mark.parametrize("limits", ["wilson", "jeffreys", "exact"])
def test_the_limits_of_a_rate_can_be_chosen(judged: Line, limits: str):
    """``--limits`` works wherever a corrected rate is shown, and the method says which were used."""
    arguments = ("--labels", str(draw(120)), "--labels-are", "random", "--limits", limits, "--json")

    agreed = judged("agree", "measured", *arguments).document["rate"]
    reported = judged("report", "measured", *arguments).document["measurement"]["rate"]
    assert agreed == reported
    assert agreed["method"].lower().endswith(f"{limits} limits")
    assert names(judged("agree", "measured", "--limits", "wald").sentence, "--limits", "'wald'", "exact")


@pytest.mark.parametrize(
    ("name", "damage"), [("plan.json", "{"), ("plan.json", '{"schema": 1}'), ("labels.sqlite", "no")]
)
def test_a_damaged_file_of_labels_does_not_keep_a_report_away(judged: Line, name: str, damage: str):
    """Who asked for the run alone gets it, with a warning; who asked for labels is told that they cannot be read."""
    whole = judged("report", "measured").out
    assert judged("label", "measured", "--import", "labels.jsonl").status == 0
    Path("measured", name).write_text(damage, encoding="utf-8")

    plain = judged("report", "measured", "--fail-under", "0.5")
    assert plain.status == 0
    assert plain.out == whole
    assert name in plain.err
    assert "left out" in plain.err
    assert judged("report", "measured", "--fail-under", "0.99").status == 1
    for asked in (("agree", "measured"), ("report", "measured", "--fail-under-corrected", "0.5")):
        assert judged(*asked).status == 2
        assert names(judged(*asked).err, name)
