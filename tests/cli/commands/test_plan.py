"""``adjudge plan``: what it shows, what it writes, and what it refuses."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from adjudge.labels import open_label_queue
from kit import cli
from kit.cli import ESCAPES, HIDDEN, Line
from kit.reports import keep_run, make_item, make_result

CASES = 400


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in a folder with a run of a judge that is always right; every third case is bad."""
    cli.isolate(monkeypatch, tmp_path)
    keep(Path("run"))
    return Line(capsys)


def keep(folder: Path, turned: int = -1) -> None:
    """A run, one of whose verdicts may be turned round."""
    items = [
        make_item(place, make_result("passed" if (place % 3 > 0) != (place == turned) else "failed"))
        for place in range(CASES)
    ]
    keep_run(folder, items).close()


def fill(path: str) -> None:
    """Write the truth into every row of a list of cases."""
    rows = list(csv.DictReader(Path(path).read_text().splitlines()))
    for row in rows:
        row["value"] = "true" if int(row["case"].removeprefix("case-")) % 3 else "false"
    with Path(path).open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def test_the_first_call_draws_a_pilot(line: Line):
    """It says how many labels it takes and what to label next, and keeps the plan with the run."""
    ran = line("plan", "run", "--within", "5", "--seed", "1")

    assert ran.status == 0
    assert "passed" in ran.out
    assert "label 60 cases next" in ran.out
    assert "adjudge label run" in ran.err
    assert json.loads(Path("run/plan.json").read_text())["seed"] == 1


def test_labels_of_the_data_set_are_not_those_of_a_plan(line: Line):
    """Who has labelled every row would else wonder why none counts."""
    data = [{"id": f"c{n}", "content": f"text {n}", "label": n % 2 == 0} for n in range(4)]
    Path("data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data), encoding="utf-8")
    rule = '{"name": "R", "criteria": [{"name": "a", "description": "b", "rule": {"contains": "2"}}]}'
    Path("rules.json").write_text(rule, encoding="utf-8")
    assert line("run", "data.jsonl", "--rubric", "rules.json", "--judge", "rules", "--out", "labelled").status == 0
    ran = line("plan", "labelled", "--within", "5")

    assert "4 cases have labels in the data set" in " ".join(ran.err.split())
    assert "labels in the data set" not in line("plan", "run", "--within", "5", "--seed", "1").err


def label_some(number: int) -> None:
    """Label cases of the run in its random order, without a plan."""
    with open_label_queue("run") as queue:
        for _ in range(number):
            task = queue.next("ann")
            assert task is not None
            queue.record("ann", task.case, int(task.case.removeprefix("case-")) % 3 > 0, subject=task.subject)


def test_a_question_does_not_replace_the_random_order_of_labels(line: Line):
    """Labels in random order count without a plan; one that is drawn now would leave most of them out of the rate."""
    label_some(50)
    before = line("agree", "run", "--json").document["rate"]

    asked = line("plan", "run", "--within", "5")

    assert asked.status == 2
    assert "run has 50 cases labelled in random order" in asked.err
    assert "more in that order ±5" in asked.err
    assert "--begin" in asked.err
    assert not Path("run/plan.json").exists()
    assert line("agree", "run", "--json").document["rate"] == before


def test_the_interval_for_one_look_is_not_taken_for_that_of_a_gate(line: Line):
    """Without a plan a gate goes by the wider limits for every look, so both are shown, each by its name."""
    label_some(50)
    limit = line("agree", "run", "--json").document["limit"]
    gate = line("report", "run", "--top", "0", "--fail-under-corrected", "0.99")
    texts = [line("agree", "run").out, gate.out, line("agree", "run", "--markdown").out]

    assert limit["kind"] == "every look"
    for text in texts:
        assert ", for one look)" in " ".join(text.split())
        assert "for every look, as --fail-under-corrected asks" in " ".join(text.split())
        assert f"{100 * limit['low']:.1f} to {100 * limit['high']:.1f}" in " ".join(text.split())
    assert f"the lower limit for every look is {100 * limit['low']:.1f} %" in gate.err


def test_a_plan_can_be_begun_on_a_labelled_run(line: Line):
    """Somebody who says so gets it, and is told what it leaves out."""
    label_some(20)

    begun = line("plan", "run", "--within", "5", "--seed", "1", "--begin")

    assert begun.status == 0
    assert "left out of the rate" in begun.out
    assert line("plan", "run").status == 0


def test_a_plan_of_two_runs_does_not_replace_the_random_order_either(line: Line):
    """The plan would take the place of the order in each of the runs."""
    keep(Path("other"), turned=1)
    label_some(20)

    assert line("plan", "other", "--against", "run").status == 2
    assert not Path("other/plan.json").exists()
    assert line("plan", "other", "--against", "run", "--begin").status == 0


def test_a_number_in_place_of_a_file_of_labels_is_explained(line: Line):
    """Who wants to label 30 cases tries this first; nothing is drawn."""
    ran = line("plan", "run", "--labels", "30")

    assert ran.status == 2
    assert "--labels takes a file of labels, and 30 is a number" in ran.err
    assert not Path("run/plan.json").exists()


def test_a_list_that_cannot_be_written_draws_nothing(line: Line):
    """A plan is kept once it is drawn, so the name of the list is looked at first."""
    Path("there.csv").write_text("mine")
    for name in ("there.csv", "cases.xlsx", "missing/cases.csv"):
        assert line("plan", "run", "--within", "5", "--out", name).status == 2

    assert not Path("run/plan.json").exists()
    assert Path("there.csv").read_text() == "mine"


def test_the_same_call_again_changes_nothing(line: Line):
    """Without new labels, the plan stays as it is."""
    first = line("plan", "run", "--json")
    kept = Path("run/plan.json").read_bytes()
    again = line("plan", "run", "--json")

    assert again.document == first.document
    assert Path("run/plan.json").read_bytes() == kept


def test_labels_of_a_list_lead_to_enough(line: Line):
    """Write a list, fill it in, hand it in: until the interval is narrow enough."""
    line("plan", "run", "--within", "8", "--out", "0.csv", "--rater", "ann")
    files = ["0.csv"]
    for number in range(1, 6):
        fill(files[-1])
        arguments = [item for name in files for item in ("--labels", name)]
        ran = line("plan", "run", *arguments, "--out", f"{number}.csv", "--rater", "ann")
        if "enough" in ran.out:
            break
        files.append(f"{number}.csv")

    assert ran.status == 0
    assert "enough: within 8 points" in ran.out
    assert len(files) <= 3


def test_planned_labels_that_are_in_are_not_enough(line: Line):
    """It says what one look at them gives and how many more it takes to go on looking, and draws the next cases."""
    line("plan", "run", "--within", "4", "--seed", "1", "--out", "0.csv", "--rater", "ann")
    files = ["0.csv"]
    for number in range(1, 6):
        fill(files[-1])
        arguments = [item for name in files for item in ("--labels", name)]
        ran = line("plan", "run", *arguments, "--out", f"{number}.csv", "--rater", "ann")
        if "planned labels are in" in ran.out:
            break
        files.append(f"{number}.csv")
    status = line("plan", "run", *arguments, "--json").document["status"]

    assert ran.status == 0
    assert "enough" not in ran.out
    assert "adjudge agree run" in ran.out
    assert f"about {status['more']} more" in ran.out
    assert status["enough"] is False
    assert status["planned"] > 0
    assert status["pending"] > 0
    assert (status["once"]["high"] - status["once"]["low"]) / 2 < status["live"]["high"] - status["live"]["low"]


def test_groups_are_ignored_by_name_alone(line: Line):
    """Without the option the plan is refused, and with it every output says so."""
    items = [make_item(place, group=f"q{place // 4}") for place in range(120)]
    keep_run(Path("grouped"), items).close()
    refused = line("plan", "grouped")

    assert refused.status == 2
    assert "--ignore-groups" in refused.sentence
    assert not Path("grouped/plan.json").exists()

    first, again = line("plan", "grouped", "--ignore-groups"), line("plan", "grouped")
    assert "--ignore-groups" in first.out
    assert "--ignore-groups" in again.out
    assert line("plan", "grouped", "--json").document["ignored_groups"] == 30


def test_cases_wait_for_as_many_raters_as_they_are_to_have(line: Line):
    """With one of two labels a case is to be labelled again, and counts for nothing yet."""
    line("plan", "run", "--seed", "1", "--out", "ann.csv", "--rater", "ann")
    fill("ann.csv")
    one = line("plan", "run", "--labels", "ann.csv", "--per-case", "2", "--json").document["status"]
    Path("bob.csv").write_text(Path("ann.csv").read_text().replace('"ann"', '"bob"').replace(",ann,", ",bob,"))
    both = line("plan", "run", "--labels", "ann.csv", "--labels", "bob.csv", "--per-case", "2", "--json").document

    assert one["pending"] == both["status"]["live"]["labels"]
    assert sum(one["labelled"]) == one["live"]["labels"] == 0
    assert sum(both["status"]["labelled"]) == both["status"]["live"]["labels"] > 0


def test_labels_from_before_the_plan_are_counted_and_left_out(line: Line):
    """With how many there are, and why."""
    with open_label_queue("run", seed=5) as queue:
        for _ in range(30):
            task = queue.next("ann")
            assert task is not None
            queue.record("ann", task.case, value=True)
    ran = line("plan", "run", "--seed", "1", "--begin")
    status = line("plan", "run", "--json").document["status"]

    assert status["elsewhere"] == status["before"] > 0
    assert f"{status['elsewhere']} labelled cases are left out" in ran.out
    assert f"{status['before']} labelled before the plan was drawn" in ran.out
    assert "how likely" in ran.out


def test_labels_of_the_queue_count(line: Line):
    """What was labelled with adjudge label is there without --labels."""
    line("plan", "run")
    with open_label_queue("run") as queue:
        for _ in range(12):
            task = queue.next("ann")
            assert task is not None
            queue.record("ann", task.case, value=True)
    document = line("plan", "run", "--json").document

    assert sum(document["status"]["labelled"]) == 12
    assert document["status"]["live"]["labels"] == 12


def test_without_a_run_it_prints_a_table(line: Line):
    """How many labels which width takes, planned, at random, alone, and with a look at any time."""
    document = line("plan", "--within", "3", "--expect", "0.9", "--cases", "3200", "--json").document
    row = next(row for row in document["rows"] if row["within"] == 0.03)

    assert row["planned"] <= row["random"] < row["live"]
    assert row["planned"] < row["alone"] / 2
    assert "3 points <" in line("plan", "--within", "3").out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("plan", "--labels", "x.csv"), "--labels"),
        (("plan", "--out", "x.csv"), "--out"),
        (("plan", "run", "--cases", "5"), "--cases"),
        (("plan", "run", "--within", "0"), "--within"),
        (("plan", "run", "--within", "nan"), "--within"),
        (("plan", "--expect", "90"), "--expect"),
        (("plan", "--cases", "1"), "--cases"),
        (("plan", "run", "--label-map", "good=true"), "--labels"),
        (("plan", "run", "--labels", "nothing.csv"), "nothing.csv"),
        (("plan", "nowhere"), "nowhere"),
    ],
)
def test_what_makes_no_sense_is_refused(line: Line, arguments: tuple[str, ...], named: str):
    """With the option's name and what to do."""
    ran = line(*arguments)

    assert ran.status == 2
    assert named in ran.sentence


@pytest.mark.parametrize("option", [("--within", "4"), ("--seed", "9"), ("--expect", "0.7")])
def test_a_plan_that_is_drawn_is_not_changed(line: Line, option: tuple[str, str]):
    """Whoever saw labels could otherwise choose the width, or the cases, that suit them."""
    line("plan", "run", "--within", "3", "--seed", "1")
    ran = line("plan", "run", *option)

    assert ran.status == 2
    assert option[0] in ran.sentence
    assert "plan.json" in ran.sentence


def test_a_run_that_changed_is_refused(line: Line):
    """Its cases were drawn by verdicts that are others now."""
    line("plan", "run")
    keep(Path("other"), turned=5)
    plan = json.loads(Path("run/plan.json").read_text())
    plan["run"] = json.loads(Path("other/run.json").read_text())["id"]
    Path("other/plan.json").write_text(json.dumps(plan))
    ran = line("plan", "other")

    assert ran.status == 2
    assert "changed" in ran.sentence


def test_nothing_hostile_reaches_a_terminal(line: Line):
    """Case ids are somebody's text."""
    keep_run(Path("hostile"), [make_item(place, id=f"{ESCAPES}\n{place}") for place in range(12)]).close()
    ran = line("plan", "hostile")

    assert ran.status == 0
    assert HIDDEN.search(ran.out + ran.err) is None


def test_labels_that_are_numbers_need_a_map(line: Line):
    """The sentence names the option that says which are good."""
    line("plan", "run", "--out", "cases.csv", "--rater", "ann")
    text = Path("cases.csv").read_text().replace('"person",""', '"person","4"')
    Path("cases.csv").write_text(text)
    ran = line("plan", "run", "--labels", "cases.csv")

    assert ran.status == 2
    assert "--label-map" in ran.sentence
