"""A run under another policy: decided again from the kept replies, and never by asking."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge import Criterion, Judge, JudgeChain, Rubric, Rule, open_run
from adjudge.runs import redecide
from kit.redecisions import RUBRIC, Told, do, make_cases, score, tell, tell_all
from kit.runs import STORE

pytestmark = pytest.mark.timed


quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

STRATEGIES: dict[str, dict[str, Any]] = {
    "fallback": {},
    "consensus": {},
    "majority": {},
    "quorum": {"quorum": 2},
    "cascade": {"escalate_below": 0.5},
}
KEPT = STRATEGIES | {"hedged": {"hedge_after": 60.0}}
"""Those a run can have; to ``hedged`` none can be changed."""
shares = st.sampled_from([0.0, 0.3, 0.5, 0.6, 0.9, 1.0])
lines = st.one_of(
    st.builds(score, a=shares, b=shares),
    st.builds(lambda flag, **given: {**score(**given), "passed": flag}, st.booleans(), a=shares, b=shares),
    st.sampled_from(["no object", score(a=1.0), score(a=1.0, b=7.0), RuntimeError("it broke")]),
)


@st.composite
def panels(draw: st.DrawFn) -> list[Told]:
    """Two to four models that say anything of three cases; two may share a name."""
    number = draw(st.integers(2, 4))
    names = draw(st.lists(st.sampled_from("xyz"), min_size=number, max_size=number))
    replies = st.one_of(lines, st.lists(lines, min_size=2, max_size=2))
    return [Told(name, {str(case): draw(replies) for case in range(3)}) for name in names]


def count_asked(panel: list[Told]) -> int:
    return sum(len(model.asked) for model in panel)


@quick
@given(panel=panels(), strategy=st.sampled_from(sorted(KEPT)), repeat=st.integers(1, 2), early=st.booleans())
def test_the_same_policy_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, panel: list[Told], strategy: Any, repeat: int, early: bool
):
    """Read again by the rubric and under the strategy it had, a run is what it was, seat by seat, and nobody asked."""
    folder = tmp_path_factory.mktemp("runs")
    chain = JudgeChain(panel, strategy=strategy, stop_early=early, **KEPT[strategy])
    done = do(make_cases(3), chain, out=folder / "run", repeat=repeat)
    asked = count_asked(panel)

    redecision = redecide(folder / "run", out=folder / "again")
    assert tell_all(open_run(folder / "again")) == tell_all(done)
    assert (redecision.changed, redecision.unknown, redecision.before) == (0, 0, redecision.after)
    assert count_asked(panel) == asked


@pytest.mark.slow
@quick
@given(panel=panels(), strategy=st.sampled_from(sorted(STRATEGIES)), fail_open=st.booleans())
def test_another_strategy_is_what_it_would_have_been(
    tmp_path_factory: pytest.TempPathFactory, panel: list[Told], strategy: Any, fail_open: bool
):
    """Where everybody was asked, each strategy decides from the replies what it decides when it asks."""
    folder = tmp_path_factory.mktemp("runs")
    do(make_cases(3), JudgeChain(panel, strategy="consensus", stop_early=False), out=folder / "run")
    policy: dict[str, Any] = {"strategy": strategy, "fail_open": fail_open, **STRATEGIES[strategy]}

    redecide(folder / "run", out=folder / "again", **policy)
    results = [item.result for item in open_run(folder / "again").items()]
    asked = [item.result for item in do(make_cases(3), JudgeChain(panel, **policy)).items()]
    # Not by the reason: a chain that is asked may stop before the gravest has been said.
    decided = [(item.outcome, item.decided_by, item.score) for item in asked]
    assert [(item.outcome, item.decided_by, item.score) for item in results] == decided


@pytest.mark.slow
@quick
@given(panel=panels(), threshold=shares, strategy=st.sampled_from(sorted(KEPT)))
def test_another_threshold_is_what_it_would_have_been(
    tmp_path_factory: pytest.TempPathFactory, panel: list[Told], threshold: float, strategy: Any
):
    """A decision about a threshold is the one that a run with it makes, or it is undecided and said to be unknown."""
    folder = tmp_path_factory.mktemp("runs")
    chain = JudgeChain(panel, strategy=strategy, **KEPT[strategy])
    do(make_cases(3), chain, out=folder / "run")

    redecision = redecide(folder / "run", threshold=threshold, out=folder / "again")
    asked = [item.result.outcome for item in do(make_cases(3), chain, threshold=threshold).items()]
    results = [item.result for item in open_run(folder / "again").items()]
    differing = [item for item, outcome in zip(results, asked, strict=True) if item.outcome != outcome]
    assert all(item.outcome == "undecided" for item in differing)
    assert len(differing) <= redecision.unknown


class Exact(Told):
    """A model that scores exactly the criteria it is asked about."""

    async def complete(self, request: Any, /) -> Any:
        from adjudge.testing import make_scripted_reply

        scores = {
            name: value for name, value in self.lines[str(request.case)].items() if f" {name}: " in request.system
        }
        return make_scripted_reply(score(**scores), request, self.name)


rubrics = st.builds(
    lambda used, threshold: Rubric(name="New", criteria=list(used.values()), passing_threshold=threshold),
    st.fixed_dictionaries(
        {},
        optional={
            name: st.builds(
                lambda weight, own, name=name: Criterion(
                    name=name, description=f"Is {name}.", weight=weight, threshold=own
                ),
                st.sampled_from([0.5, 1.0, 3.0]),
                st.one_of(st.none(), shares),
            )
            for name in ("a", "b")
        },
    ).filter(bool),
    shares,
)


@pytest.mark.slow
@quick
@given(
    rubric=rubrics, scores_of_cases=st.lists(st.fixed_dictionaries({"a": shares, "b": shares}), min_size=3, max_size=3)
)
def test_other_weights_and_fewer_criteria_are_what_they_would_have_been(
    tmp_path_factory: pytest.TempPathFactory, rubric: Rubric, scores_of_cases: list[dict[str, float]]
):
    """Weights, thresholds and left-out criteria decide as if the rubric had been this one from the start."""
    folder = tmp_path_factory.mktemp("runs")
    model: Any = Exact("x", {str(case): scores for case, scores in enumerate(scores_of_cases)})
    do(make_cases(3), Judge(model), out=folder / "run")

    redecide(folder / "run", rubric=rubric, out=folder / "again")
    results = [tell(item.result) for item in open_run(folder / "again").items()]
    assert results == [tell(item.result) for item in do(make_cases(3), Judge(model), rubric).items()]


def make_run(tmp_path: Path, *panel: Told, **options: Any) -> Path:
    judge = Judge(panel[0]) if len(panel) == 1 else JudgeChain(list(panel), **options)
    do(make_cases(len(panel[0].lines)), judge, out=tmp_path / "run")
    return tmp_path / "run"


def see(folder: Path, **policy: Any) -> Any:
    """The one item of a run as it is under a policy."""
    out = folder.parent / f"out-{len(list(folder.parent.iterdir()))}"
    redecision = redecide(folder, out=out, **policy)
    [item] = open_run(out).items()
    return redecision, item.result


def tell_unknown(redecision: Any) -> tuple[str, str, int]:
    """Whom the one reason names, what became of that seat, and how many judgements it is the reason of."""
    ((reason, count),) = redecision.unknown_because.items()
    (state,) = [text for text in ("not asked", "cut short") if text in reason]
    return reason.split()[0], state, count


@pytest.mark.parametrize(
    ("criteria", "detail"),
    [
        ({"c": "Is c."}, "criterion 'c' was not asked then"),
        ({"a": "Is A, mostly."}, "criterion 'a' was asked in other words then"),
        ({"c": "Is c.", "d": "Is d.", "a": "A!"}, "criteria 'c', 'd' were not asked then; criterion 'a' was asked in"),
    ],
)
@pytest.mark.parametrize("fail_open", [True, False])
def test_what_was_not_asked_has_no_score(tmp_path: Path, criteria: dict[str, str], detail: str, fail_open: bool):
    """A criterion nobody was asked about in these words is undecided: missing_criterion, and no policy opens it."""
    panel = [Told(name, {"0": score(a=1.0, b=1.0)}) for name in "xy"]
    folder = make_run(tmp_path, *panel, strategy="consensus", fail_open=fail_open)
    rubric = Rubric(name="New", criteria=[Criterion(name=name, description=text) for name, text in criteria.items()])

    redecision, result = see(folder, rubric=rubric)
    assert (result.outcome, result.undecided_because, result.decided_by) == ("undecided", "missing_criterion", "policy")
    assert result.detail.startswith(detail)
    assert (redecision.unknown, redecision.unknown_because, redecision.changes[0].known) == (
        1,
        {result.detail: 1},
        False,
    )


def test_another_scale_is_another_question(tmp_path: Path):
    """Who was asked for 0 to 1 was not asked for 0 to 10."""
    folder = make_run(tmp_path, Told("x", {"0": score(a=1.0, b=1.0)}))

    _, result = see(folder, rubric=replace(RUBRIC, scale=(0, 10)))
    assert (result.undecided_because, "on another scale" in result.detail) == ("missing_criterion", True)


def test_a_seat_whose_turn_did_not_come_is_unknown(tmp_path: Path):
    """A fallback that stopped at its first seat cannot say what a consensus would have been, unless that one failed."""
    folder = make_run(tmp_path, Told("x", {"0": score(a=1.0, b=0.5)}), Told("y", {"0": score(a=0.0, b=0.0)}))

    redecision, result = see(folder, strategy="consensus")
    assert (result.outcome, result.undecided_because) == ("undecided", "error")
    assert tell_unknown(redecision) == ("y", "not asked", 1)
    assert see(folder, strategy="consensus", fail_open=True)[1].outcome == "undecided"
    assert see(folder, strategy="consensus", threshold=0.8)[1].outcome == "failed"
    assert see(folder, strategy="quorum", quorum=1)[1].outcome == "passed"
    assert see(folder, strategy="majority", judges=["x"])[1].outcome == "passed"


def test_a_seat_that_was_cut_short_is_unknown(tmp_path: Path):
    """A consensus that stopped at a rejection does not know what the others would have said."""
    panel = [Told("x", {"0": score(a=0.0, b=0.0)}), Slow("y", {"0": score(a=1.0, b=1.0)})]
    folder = make_run(tmp_path, *panel, strategy="consensus", timeout=None)

    redecision, result = see(folder, strategy="majority")
    assert (result.outcome, tell_unknown(redecision)) == ("undecided", ("y", "cut short", 1))
    assert [seat.undecided_because for seat in result.results] == [None, "cancelled"]
    assert see(folder, strategy="majority", threshold=0.0)[1].outcome == "undecided"


class Slow(Told):
    """A model that never answers."""

    async def complete(self, request: Any, /) -> Any:
        import asyncio

        self.asked.append(request)
        await asyncio.Event().wait()


def test_what_timed_out_or_broke_stays_so(tmp_path: Path):
    """No rubric brings back an answer that never came; it is silence, and the policy says what silence means."""
    late = Judge(Slow("x", {"0": None}), timeout=0.01)
    panel = [late, Told("y", {"0": RuntimeError("gone")}), Told("z", {"0": score(a=0.5, b=0.5)})]
    folder = tmp_path / "run"
    do(make_cases(1), JudgeChain(panel, strategy="fallback", timeout=None), out=folder)

    redecision, result = see(folder, threshold=0.4)
    assert [seat.undecided_because for seat in result.results] == ["timeout", "error", None]
    assert (result.outcome, redecision.unknown) == ("passed", 0)
    silenced = see(folder, judges=["x", "y"], fail_open=True)[1]
    assert (silenced.outcome, silenced.decided_by) == ("passed", "policy")


def test_a_deadline_stays_what_it_was(tmp_path: Path):
    """A seat whose turn did not come because time was over is no unknown one under the same strategy."""
    panel = [Slow("x", {"0": None}), Told("y", {"0": score(a=1.0, b=1.0)})]
    folder = make_run(tmp_path, *panel, strategy="fallback", deadline=0.01, timeout=None)

    redecision, result = see(folder, threshold=0.1)
    assert (result.undecided_because, redecision.unknown, len(result.results)) == ("timeout", 0, 1)
    assert see(folder, strategy="consensus")[0].unknown == 1


def test_the_reply_that_counted_is_the_one_that_is_read(tmp_path: Path):
    """After a re-ask the last reply is read, and those before it stay beside it."""
    folder = make_run(tmp_path, Told("x", {"0": ["no object", score(a=0.5, b=0.5)]}))

    _, result = see(folder, threshold=0.4)
    assert (result.outcome, result.attempts, result.earlier_responses) == ("passed", 2, ("no object",))


def test_replies_stay_as_they_were(tmp_path: Path):
    """Whatever is decided, the words, the model, the tokens and the time are those that were recorded."""
    folder = make_run(tmp_path, Told("x", {"0": score(a=0.5, b=0.5)}))
    [before] = open_run(folder).items()

    _, after = see(folder, threshold=0.4)
    names = ("raw_response", "model", "usage", "duration_ms", "created_at", "question", "subject", "metadata")
    assert [getattr(after, name) for name in names] == [getattr(before.result, name) for name in names]
    assert (before.result.outcome, after.outcome) == ("failed", "passed")
    assert before.result.id != after.id
    assert [item.result for item in open_run(folder).items()] == [before.result]


def test_a_flag_is_held_against_the_new_outcome(tmp_path: Path):
    """A reply that says no beside scores that now pass contradicts itself; closed is what it was."""
    folder = make_run(tmp_path, Told("x", {"0": {**score(a=0.5, b=0.5), "passed": False}}))

    assert see(folder)[1].outcome == "failed"
    assert see(folder, threshold=0.4)[1].undecided_because == "contradiction"


def test_a_left_out_criterion_is_read_all_the_same(tmp_path: Path):
    """A reply that could not be read because of one criterion cannot be read without it either."""
    folder = make_run(tmp_path, Told("x", {"0": score(a=1.0, b=7.0)}))
    rubric = Rubric(name="A", criteria=[Criterion(name="a", description="Is a.")])

    assert see(folder, rubric=rubric)[1].undecided_because == "off_scale"


def test_quotes_are_looked_up_in_the_kept_content(tmp_path: Path):
    """What a judge quoted stands in the content, or it made it up; then as now."""
    quoting = Rubric(name="Q", criteria=[Criterion(name="a", description="Is a.", quote=True)])
    for quote, outcome in (("text 0", "passed"), ("made up", "undecided")):
        line = {"criteria": [{"name": "a", "reasoning": "r", "quote": quote, "score": 0.6}]}
        do(make_cases(1), Judge(Told("x", {"0": line})), quoting, out=tmp_path / outcome)
        redecision = redecide(tmp_path / outcome, threshold=0.5)
        assert redecision.after[outcome] == 1


def test_rules_of_criteria_look_at_the_kept_content(tmp_path: Path):
    """A rule that is new decides, and one that asks for less than a model asks nobody."""
    folder = make_run(tmp_path, Told("x", {"0": score(a=1.0, b=1.0)}))
    veto = Criterion(name="v", description="No text.", weight=0, threshold=1, rule={"not_contains": "text"})
    _, result = see(folder, rubric=replace(RUBRIC, criteria=(*RUBRIC.criteria, veto)))
    assert (result.outcome, result.decided_by, result.rule_results[0].name) == ("failed", "rule", "v")

    _, alone = see(
        folder, rubric=Rubric(name="R", criteria=[replace(veto, weight=1, rule=Rule(name="v", evaluate=bool))])
    )
    assert (alone.outcome, alone.decided_by) == ("passed", "rule")


def test_a_case_that_rules_had_decided_was_not_asked(tmp_path: Path):
    """Without the rule that failed it then, nobody knows what a judge would have said."""
    veto = Criterion(name="v", description="No text.", weight=0, threshold=1, rule={"not_contains": "text"})
    strict, model = replace(RUBRIC, criteria=(*RUBRIC.criteria, veto)), Told("x", {"0": score(a=1.0, b=1.0)})
    do(make_cases(1), Judge(model), strict, out=tmp_path / "run")

    redecision, result = see(tmp_path / "run", rubric=RUBRIC)
    assert (result.undecided_because, tell_unknown(redecision)) == ("error", ("x", "not asked", 1))
    assert see(tmp_path / "run", threshold=0.1)[1].outcome == "failed"


ran: list[object] = []


def note_run(content: object) -> bool:
    """A rule that remembers that it ran."""
    ran.append(content)
    return True


def test_a_rule_that_is_code_is_not_run_again(tmp_path: Path):
    """The folder of a run may be a stranger's: what it names is neither imported nor called; what it said stands."""
    ran.clear()
    coded = Criterion(name="v", description="Is fine.", rule=note_run)
    do(make_cases(1), Judge(Told("x", {"0": score(a=1.0, b=0.0)})), replace(RUBRIC, criteria=(*RUBRIC.criteria, coded)),
       rules=[note_run], out=tmp_path / "run")  # fmt: skip
    times = len(ran)

    _, result = see(tmp_path / "run", threshold=0.5)
    assert (result.outcome, [item.passed for item in result.rule_results]) == ("passed", [True, True])
    assert len(ran) == times


def test_a_rule_of_the_call_still_decides(tmp_path: Path):
    """What a rule said of the same content it says now; a failed one is not outvoted by a threshold."""
    do(
        make_cases(1),
        Judge(Told("x", {"0": score(a=1.0, b=1.0)})),
        rules=[{"not_contains": "text"}],
        out=tmp_path / "run",
    )

    _, result = see(tmp_path / "run", threshold=0.0)
    assert (result.outcome, result.decided_by) == ("failed", "rule")


def test_seats_of_one_model_keep_apart(tmp_path: Path):
    """Two seats of one model answered separately, and each is read its own reply."""
    panel = [Told("x", {"0": score(a=1.0, b=1.0)}), Told("x", {"0": score(a=0.0, b=0.0)})]
    folder = make_run(tmp_path, *panel, strategy="majority")

    assert see(folder, judges=["x"])[1].outcome == "passed"
    assert see(folder, judges=["x#2"])[1].outcome == "failed"


def test_chains_in_chains_are_redecided_inside(tmp_path: Path):
    """A threshold reaches the innermost seat, and its chain's number decides for the seat it is."""
    inner = JudgeChain([Told("x", {"0": score(a=0.5, b=0.5)}), Told("y", {"0": score(a=0.4, b=0.4)})],
                       strategy="majority", name="pair", stop_early=False)  # fmt: skip
    chain = JudgeChain([inner, Told("z", {"0": score(a=1.0, b=1.0)})], strategy="consensus", stop_early=False)
    do(make_cases(1), chain, out=tmp_path / "run")

    outcomes = [see(tmp_path / "run", threshold=threshold)[1].outcome for threshold in (0.6, 0.45, 0.4)]
    assert outcomes == ["failed", "undecided", "passed"]


def test_every_change_is_told(tmp_path: Path):
    """Case, sample, outcomes and scores before and after, and counts that add up; unchanged cases are not listed."""
    model = Told("x", {str(case): score(a=case / 10, b=case / 10) for case in range(10)})
    do(make_cases(10), Judge(model), repeat=2, out=tmp_path / "run")

    redecision = redecide(tmp_path / "run", threshold=0.45)
    assert (redecision.before, redecision.after) == (
        {"passed": 8, "failed": 12, "undecided": 0},
        {"passed": 10, "failed": 10, "undecided": 0},
    )
    assert [(item.case, item.sample, item.before, item.after, item.score_after) for item in redecision.changes] == [
        ("5", 0, "failed", "passed", 0.5),
        ("5", 1, "failed", "passed", 0.5),
    ]
    assert redecision.to_dict()["schema"] == "adjudge/redecision/1"
    assert redecision.to_dict()["policy"] == {"threshold": 0.45}


def test_an_early_end_hides_those_it_cut_short(tmp_path: Path):
    """Numbers that cannot be reached are undecided whatever the last one says; but it might have said no."""
    panel = [Told(name, {"0": RuntimeError("gone")}) for name in "xy"]
    folder = make_run(tmp_path, *panel, Slow("z", {"0": None}), strategy="majority", timeout=None)

    redecision, result = see(folder, threshold=0.1)
    assert (result.undecided_because, redecision.unknown) == ("error", 0)
    redecision, result = see(folder, fail_open=True)
    assert (result.outcome, tell_unknown(redecision)) == ("undecided", ("z", "cut short", 1))


def test_nobody_is_passed_over(tmp_path: Path):
    """A fallback begins with its first seat: where that one was cut short, those after it decide nothing."""
    panel = [Told(name, {"0": score(a=1.0, b=1.0)}) for name in "yz"]
    folder = make_run(tmp_path, Slow("x", {"0": None}), *panel, strategy="majority", timeout=None)

    for strategy in ("fallback", "cascade"):
        more = {"escalate_below": 0.5} if strategy == "cascade" else {}
        redecision, result = see(folder, strategy=strategy, **more)
        assert (result.outcome, tell_unknown(redecision)) == ("undecided", ("x", "cut short", 1))
    assert see(folder, threshold=0.9)[1].outcome == "passed"


def test_what_belongs_to_a_strategy_goes_with_it(tmp_path: Path):
    """A quorum's number is no parameter of a majority, and is not held against it."""
    panel = [Told(name, {"0": score(a=value, b=value)}) for name, value in zip("xyz", (1.0, 0.0, 0.0), strict=True)]
    folder = make_run(tmp_path, *panel, strategy="quorum", quorum=1, stop_early=False)

    assert [see(folder)[1].outcome, see(folder, strategy="majority")[1].outcome] == ["passed", "failed"]
    assert see(folder, strategy="majority")[1].judge == "majority(x, y, z)"


def test_what_came_first_then_has_had_its_say(tmp_path: Path):
    """Seats that say what they said, under the policy they had, are not put together in another order."""
    panel = [Told("x", {"0": score(a=0.7, b=0.7)}), Told("y", {"0": score(a=0.9, b=0.9)})]
    folder = make_run(tmp_path, *panel, strategy="quorum", quorum=1, stop_early=False)
    with closing(sqlite3.connect(folder / STORE)) as connection, connection:
        # As if the second had answered first: the chain shows the seat that reached its number.
        connection.execute("UPDATE results SET body = CAST(json_set(CAST(body AS TEXT), '$.score', 0.9) AS BLOB)")

    assert see(folder)[1].score == 0.9
    assert see(folder, quorum=2)[1].score == 0.7


@pytest.mark.parametrize("early", [True, False])
def test_nobody_is_stopped_by_redeciding(tmp_path: Path, early: bool):
    """Whoever a hedged chain had stopped then is shown as it was then, or not at all; nothing is of today."""
    panel = [Told("x", {"0": RuntimeError("gone")}), Slow("y", {"0": None}), Told("z", {"0": score(a=0.5, b=0.5)})]
    folder = make_run(tmp_path, *panel, strategy="hedged", hedge_after=0.001, timeout=5.0 if early else 0.1,
                      stop_early=early)  # fmt: skip
    [then] = open_run(folder).items()

    redecision, result = see(folder, threshold=0.4)
    assert (result.outcome, redecision.unknown) == ("passed", 0)
    recorded = {seat.judge: seat.created_at for seat in then.result.results}
    assert {seat.judge: seat.created_at for seat in result.results}.items() <= recorded.items()
    assert [seat.judge for seat in result.results] == (["x", "z"] if early else ["x", "y", "z"])


def test_whom_nobody_heard_cannot_be_guessed(tmp_path: Path):
    """Where a vote that was cut short would turn it, nothing is said; where it could not, it is said without it."""
    panel = [Told(name, {"0": score(a=value, b=value)}) for name, value in zip("wx", (1.0, 1.0), strict=True)]
    folder = make_run(tmp_path, *panel, Slow("z", {"0": None}), strategy="majority", timeout=None)

    assert see(folder, strategy="quorum", quorum=1)[1].outcome == "passed"
    assert see(folder, strategy="quorum", quorum=2, fail_open=True)[1].outcome == "passed"
    redecision, result = see(folder, strategy="quorum", quorum=3, fail_open=True)
    assert (result.outcome, tell_unknown(redecision)) == ("undecided", ("z", "cut short", 1))


class Late(Told):
    """A model that takes its time."""

    async def complete(self, request: Any, /) -> Any:
        import asyncio

        await asyncio.sleep(0.05)
        return await super().complete(request)


def test_seats_answer_in_the_order_in_which_they_did(tmp_path: Path):
    """The seat whose score is shown is the one that reached the number then, not the first of the list."""
    panel = [Late("x", {"0": score(a=0.7, b=0.7)}), Told("y", {"0": score(a=0.9, b=0.9)})]
    folder = make_run(tmp_path, *panel, strategy="quorum", quorum=1, stop_early=False)

    assert see(folder, threshold=0.1)[1].score == 0.9
    assert see(folder, threshold=0.8)[1].score == 0.9
    assert see(folder, quorum=2)[1].score == 0.7
