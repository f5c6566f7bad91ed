"""A release policy in a chain: the cheap judge decides what its policy releases, and the next one all the rest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="measuring needs the extra trust")

from adjudge import Case, Criterion, Gate, Judge, JudgeChain, Rubric, UsageError, open_run, run
from adjudge.dataset import Label
from adjudge.measurement import ReleasePolicy, calibrate
from adjudge.models import Request
from adjudge.runs import redecide
from adjudge.testing import ScriptedModel
from kit.cli import Line

RUBRIC = Rubric(name="Right", criteria=[Criterion(name="right", description="Is right.")], passing_threshold=0.5)
CASES = [Case(id=f"case-{place}", content="surely so" if place % 2 else "perhaps so") for place in range(200)]


def score_cheaply(request: Request) -> dict:
    """What is sure has 0.9, what is wrong 0.1, and all else 0.6."""
    score = 0.9 if "surely" in request.user else 0.1 if "wrong" in request.user else 0.6
    return {"criteria": [{"name": "right", "reasoning": "", "score": score}]}


def make_cheap(**options) -> Judge:
    return Judge(ScriptedModel(score_cheaply, name="cheap"), name="cheap", **options)


def make_strong(score: float = 0.2) -> Judge:
    reply = {"criteria": [{"name": "right", "reasoning": "", "score": score}]}
    return Judge(ScriptedModel(lambda request: reply, name="strong"), name="strong")


@pytest.fixture(name="policy")
def make_policy(tmp_path: Path) -> ReleasePolicy:
    """The policy of the cheap judge: what is sure is right, and every third of the rest is wrong."""
    run(CASES, make_cheap(), RUBRIC, out=tmp_path / "run").finish_sync()
    labels = [Label(case=case.id, rater="ann", value=at % 2 == 1 or at % 3 > 0) for at, case in enumerate(CASES)]
    policy = calibrate(tmp_path / "run", "wrong_pass<=0.05", labels=labels).policy
    assert policy is not None
    assert policy.threshold == 0.9
    return policy


def make_chain(policy: ReleasePolicy, *, strong: Judge | None = None) -> JudgeChain:
    return JudgeChain([make_cheap(), strong or make_strong()], strategy="cascade", escalate_below=policy)


@pytest.mark.parametrize(
    ("content", "outcome", "asked"),
    [
        pytest.param("surely so", "passed", ["cheap"], id="a_pass_that_is_released"),
        pytest.param("perhaps so", "failed", ["cheap", "strong"], id="a_pass_below_the_threshold"),
        pytest.param("wrong", "failed", ["cheap", "strong"], id="a_failure_about_which_nothing_is_promised"),
    ],
)
def test_a_seat_decides_what_its_policy_releases(policy: ReleasePolicy, content: str, outcome: str, asked: list[str]):
    """It passes from the policy's score on; of everything else the next seat is asked."""
    result = make_chain(policy).evaluate_sync(content, RUBRIC)

    assert (result.outcome, [seat.judge for seat in result.results]) == (outcome, asked)


def test_another_judge_may_not_use_the_policy(policy: ReleasePolicy):
    """A judge with other options is another one: nobody measured it."""
    with pytest.raises(UsageError, match="calibrated for the judge 'cheap'"):
        JudgeChain([make_strong(), make_cheap()], strategy="cascade", escalate_below=policy)
    with pytest.raises(UsageError, match="other options"):
        JudgeChain([make_cheap(temperature=1.0), make_strong()], strategy="cascade", escalate_below=policy)


def test_another_rubric_is_refused_before_anybody_is_asked(policy: ReleasePolicy):
    """The policy says nothing about how the judge does by it."""
    other = Rubric(name="Kind", criteria=[Criterion(name="kind", description="Is kind.")])
    strong = make_strong()

    with pytest.raises(UsageError, match="another rubric"):
        make_chain(policy, strong=strong).evaluate_sync("surely so", other)
    with pytest.raises(UsageError, match="another rubric"):
        make_chain(policy, strong=strong).ask_sync("Is this kind?")
    assert strong.model.requests == []


def test_a_run_of_the_chain_is_read_again_and_redecided(policy: ReleasePolicy, tmp_path: Path):
    """Its manifest describes the seat with its score; what the stored replies come to stays the same."""
    run(CASES[:20], make_chain(policy), RUBRIC, out=tmp_path / "chain").finish_sync()

    with open_run(tmp_path / "chain") as found:
        described = found.manifest["judge"]["escalate_below"]
        assert described == [{"threshold": 0.9, "policy": policy.digest, "rubric": policy.rubric_digest}]
    redecided = redecide(tmp_path / "chain", rubric=RUBRIC)
    assert (redecided.changed, redecided.after["passed"], redecided.unknown) == (0, 10, 0)


def test_a_gate_asks_for_a_certificate_of_such_a_chain(policy: ReleasePolicy):
    """What was measured once is relied on only while audits look at what goes through."""
    chain = make_chain(policy)

    with pytest.raises(UsageError, match="release policy") as caught:
        Gate("answers", judge=chain, rubric=RUBRIC)
    assert caught.value.argument == "judge"
    with pytest.raises(UsageError, match="release policy"):
        Gate("answers", judge=JudgeChain([chain, make_strong()]), rubric=RUBRIC)


def test_a_configuration_names_the_file_of_the_policy(tmp_path: Path, monkeypatch, capsys):
    """From the run of a judge of the file to the chain that begins with it; another judge is refused by its table."""
    monkeypatch.chdir(tmp_path)
    adjudge = Line(capsys)
    body = "def judge(content: str) -> float:\n    return {} if 'surely' in content else {}\n"
    Path("cheap.py").write_text(body.format(0.9, 0.6))
    Path("strong.py").write_text(body.format(0.2, 0.2))
    config = """
        [judges.cheap]
        seats = ["python:cheap:judge"]

        [judges.strong]
        seats = ["python:strong:judge"]

        [judges.careful]
        seats = ["{}", "strong"]
        strategy = "cascade"
        escalate_below = "policy.json"
        """
    Path("adjudge.toml").write_text(config.format("cheap"))
    rows = [{"id": case.id, "content": case.content} for case in CASES]
    Path("answers.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    labels = [{"case": case.id, "rater": "ann", "value": at % 2 == 1 or at % 3 > 0} for at, case in enumerate(CASES)]
    Path("labels.jsonl").write_text("".join(json.dumps(label) + "\n" for label in labels))
    criteria = ("--criteria", "Is right.")

    assert adjudge("run", "answers.jsonl", "--judge", "cheap", *criteria, "--out", "cheap").status == 0
    promise = ("--promise", "wrong_pass<=0.05", "--labels", "labels.jsonl")
    assert adjudge("calibrate", "cheap", *promise, "--write", "policy.json").status == 0
    Path("sure.txt").write_text("surely so")
    Path("unsure.txt").write_text("perhaps so")
    assert adjudge("judge", "--judge", "careful", *criteria, "sure.txt").status == 0
    assert adjudge("judge", "--judge", "careful", *criteria, "unsure.txt").status == 1

    Path("adjudge.toml").write_text(config.format("strong"))
    refused = adjudge("judge", "--judge", "careful", *criteria, "sure.txt")
    assert refused.status == 2
    assert "[judges.careful]" in refused.sentence
