"""``adjudge calibrate``: its first sentence, its policy file, its exit status, and what it records."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from adjudge import Usage
from adjudge.dataset import Label, write_labels
from adjudge.measurement import read_release_policy
from kit import cli
from kit.cli import Line, Ran
from kit.ledgers import find
from kit.reports import keep_run, make_item, make_manifest_of, make_result

CASES = 300
DIGESTS = {"judge": "1" * 64, "rubric": "2" * 64, "asked": "3" * 64}
KEPT = ("calibrate", "run", "--promise", "wrong_pass<=0.05", "--labels", "labels.jsonl")


def keep(folder: str, *, errs: int, cost: float) -> None:
    """A run that passes every case, sure of those that it is right about, save every so manieth."""
    items = [
        make_item(
            place,
            make_result(
                score=0.5 + 0.1 * (place % 5),
                confidence=0.5 + 0.1 * (place % 5),
                outcome="failed" if errs and place % errs == 0 else "passed",
                usage=Usage(cost_usd=cost),
            ),
        )
        for place in range(CASES)
    ]
    keep_run(Path(folder), items, make_manifest_of(CASES, digests=DIGESTS)).close()


def say(name: str, places: range, *, good: bool | None = None) -> None:
    """Labels of people: what has a score of 0.8 and more is good, and seven in ten of the rest."""
    write_labels(
        name,
        [
            Label(
                case=f"case-{place}",
                rater="ann",
                value=(place % 5 >= 3 or place % 10 < 7) if good is None else good,
                blind=True,
            )
            for place in places
        ],
    )


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in a folder with a run and labels of all its cases."""
    cli.isolate(monkeypatch, tmp_path)
    keep("run", errs=0, cost=0.001)
    say("labels.jsonl", range(CASES))
    return Line(capsys)


def test_the_first_sentence_says_what_the_judge_may_decide_and_what_that_was_measured_on(line: Line):
    """With the share that is left to people, and the price."""
    ran = line(*KEPT)

    assert ran.status == 0
    assert "On the 300 cases of run, judged on" in ran.out
    assert "from a score of 0.8 on the judge may decide alone. It then passes 40 % of the cases" in ran.out
    assert "at most 5 % of all cases are wrong passes, with 95 % confidence; people decide the other 60 %" in ran.out
    assert "$0.3000 for these cases, $0.001000 each" in ran.out


def test_a_policy_is_written_for_gates(line: Line):
    """It is the threshold that the sentence names."""
    ran = line(*KEPT, "--write", "policy.json", "--json")

    assert ran.document["policy"] == json.loads(Path("policy.json").read_text())
    assert read_release_policy("policy.json").threshold == pytest.approx(0.8)


def test_too_few_labels_are_told_apart_from_a_judge_that_cannot(line: Line):
    """Statuses 3 and 1; no policy is written, and one that is there is left."""
    Path("policy.json").write_text("{}")
    say("few.jsonl", range(40))
    say("bad.jsonl", range(CASES), good=False)
    promise = ("calibrate", "run", "--promise", "wrong_given_pass<=0.1", "--write", "policy.json")
    few = line(*promise, "--labels", "few.jsonl", "--labels-are", "random")
    bad = line(*promise, "--labels", "bad.jsonl")

    assert (few.status, bad.status) == (3, 1)
    assert "these 40 labels cannot show a threshold" in few.out
    assert "more labels would" in few.out
    assert "no threshold of this judge can keep the promise" in bad.out
    assert "policy.json is left as it is" in few.err
    assert Path("policy.json").read_text() == "{}"


def test_labels_that_nobody_drew_are_refused(line: Line):
    """In the words of the command line."""
    say("some.jsonl", range(40))
    ran = line("calibrate", "run", "--promise", "wrong_pass<=0.05", "--labels", "some.jsonl")

    assert ran.status == 2
    assert "say with --labels-are that they are random" in ran.err


@pytest.mark.parametrize("kind", ["one judge", "cascade"])
def test_the_ledger_holds_the_calibration_with_the_digest_of_the_thresholds(kind: str, line: Line):
    """The grid was fixed before any label was read, and later nobody can say that it was another one."""
    if kind == "one judge":
        ran = line(*KEPT, "--ledger", "sqlite:///ledger.db", "--json")
    else:
        ran = calibrate_cascade(line, "--ledger", "sqlite:///ledger.db", "--json", cheap=(5, 0.001), strong=(50, 0.01))
    (entry,) = find("sqlite:///ledger.db", kind="calibration")

    assert ran.status == 0
    assert entry.payload is not None
    assert re.fullmatch("[0-9a-f]{64}", ran.document["grid_digest"])
    assert (entry.subject, entry.payload["grid_digest"]) == (
        ran.document["contents_digest"],
        ran.document["grid_digest"],
    )


def test_a_cascade_names_the_number_for_its_chain(line: Line):
    """And what it saves."""
    ran = calibrate_cascade(line, cheap=(5, 0.001), strong=(50, 0.01))

    assert ran.status == 0
    assert "from a confidence of 0.6 on the cheap judge may decide alone" in ran.out
    assert "escalate_below: 0.6" in ran.out
    assert "That saves 70 % of the strong one's price" in ran.out


def calibrate_cascade(
    line: Line, *options: str, cheap: tuple[int, float], strong: tuple[int, float], labels: int = CASES
) -> Ran:
    """The command on two judges, each with how seldom it errs and what a case costs."""
    for name, (errs, cost) in (("cheap", cheap), ("strong", strong)):
        keep(name, errs=errs, cost=cost)
    say("good.jsonl", range(labels), good=True)
    named = ("--labels", "good.jsonl", *(() if labels == CASES else ("--labels-are", "random")))
    return line("calibrate", "--cascade", "cheap", "strong", "--promise", "lost<=0.05", *named, *options)


def test_a_cheap_judge_that_is_better_needs_no_other(line: Line):
    """With how often each agrees with people, and the limits of the difference."""
    calibrated = calibrate_cascade(line, cheap=(50, 0.001), strong=(5, 0.01))

    assert calibrated.status == 0
    sentence = (
        "the cheap judge alone is better: it agrees with people on 294 and the strong one on 240 of 300 labelled "
    )
    assert re.search(rf"{sentence}cases \(\+1\d\.\d to \+2\d\.\d points\)\.", calibrated.out)


@pytest.mark.parametrize(
    ("cheap", "strong", "status", "reason"),
    [
        (
            (2, 0.001),
            (0, 0.01),
            1,
            "the labels show that it loses more than 5 % of all cases at every confidence that is of use",
        ),
        (
            (5, 0.009),
            (50, 0.01),
            0,
            "the cheap judge may decide 80 % of the cases, and asking it first costs more than that saves",
        ),
    ],
    ids=["it loses too much", "it costs more than it saves"],
)
def test_a_cascade_that_does_not_pay_says_why(
    line: Line, cheap: tuple[int, float], strong: tuple[int, float], status: int, reason: str
):
    """The cheap judge errs however sure it is (as a judge of which no threshold can), or to ask both is dearer."""
    calibrated = calibrate_cascade(line, cheap=cheap, strong=strong)

    assert calibrated.status == status
    assert f"a cascade does not pay: {reason}. Ask the judge of strong." in calibrated.out
    assert ("escalate_below" in calibrated.out) == (status == 0)


def test_few_labels_on_which_both_judges_are_right_cannot_tell(line: Line):
    """A tie is no sign that the cheap one is better: status 3, and about how many more labels would tell."""
    calibrated = calibrate_cascade(line, cheap=(0, 0.001), strong=(0, 0.01), labels=30)

    assert calibrated.status == 3
    assert (
        "these 30 labels cannot show a confidence at which a cascade loses at most 5 % of all cases" in calibrated.out
    )
    assert re.search(r"about \d+ more labels would, by the stricter limits of a further look, if ", calibrated.out)
    assert "is better" not in calibrated.out


@pytest.mark.parametrize(("confidence", "words", "level"), [("0.8", "80 %", "87.84 %"), ("0.99", "99 %", "99.39 %")])
def test_the_confidence_is_in_the_sentence_and_in_the_policy(line: Line, confidence: str, words: str, level: str):
    """The first look is tested at a higher one, so that all looks together keep it."""
    ran = line(*KEPT, "--confidence", confidence, "--write", "policy.json")

    assert ran.status == 0
    assert f"are wrong passes, with {words} confidence" in ran.out
    assert f"tested at {level}" in ran.out
    assert read_release_policy("policy.json").confidence == float(confidence)


@pytest.mark.parametrize("confidence", ["0.4", "1.5", "1", "nan"])
def test_a_confidence_that_is_none_is_refused(line: Line, confidence: str):
    """In one sentence, and no look is taken."""
    ran = line(*KEPT, "--confidence", confidence)

    assert ran.status == 2
    assert "confidence" in ran.sentence
    assert not Path("run/looks.jsonl").exists()


def test_one_run_or_two_are_named(line: Line):
    """Not both, and not neither."""
    neither = line("calibrate", "--promise", "lost<=0.05")
    both = line("calibrate", "run", "--cascade", "run", "run", "--promise", "lost<=0.05")
    alone = line(*KEPT[:2], "--promise", "lost<=0.05")

    assert (neither.status, both.status, alone.status) == (2, 2, 2)
    assert "--cascade CHEAP STRONG" in neither.err
    assert "--cascade" in alone.err
