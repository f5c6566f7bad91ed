"""A run with a cache, a budget, prices and a pace: what it costs, what it may cost, and what it does not ask."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Budget, Case, Dataset, Judge, JudgeChain, ReplyCache, UsageError, open_model, open_run, run
from kit.cli import Provider, serve
from kit.judges import Seat
from kit.runs import Words, cut_off, do, make_cases

pytestmark = pytest.mark.timed


DOLLARS = {"input": 0.0, "output": 1_000_000.0}
"""A dollar for each token of output: the server below uses 2, and a judge of 4 tokens may use 4."""


def ask(provider: Provider, **more: Any) -> Judge:
    return Judge(open_model(provider.spec), **{"max_output_tokens": 4, **more})


def texts(number: int) -> list[str]:
    return [f"good text {place}" for place in range(number)]


def spend(provider: Provider, number: int, **options: Any) -> Any:
    """A run of so many cases whose every call costs 2 dollars and may cost 4."""
    return do(texts(number), ask(provider), prices={provider.spec: DOLLARS}, **options)


# ---------------------------------------------------------------- cost


def test_every_result_says_what_it_cost_where_the_price_is_known():
    """With a price each result has its cost and the run their sum; without one they are unknown, and not free."""
    with serve() as provider:
        priced = spend(provider, 3)
        bare = do(texts(3), ask(provider))

    assert [item.result.usage.cost_usd for item in priced.items() if item.result.usage] == [2.0] * 3
    assert (priced.usage.cost_usd, priced.summary["unknown_costs"]) == (6.0, 0)
    assert [item.result.usage.cost_usd for item in bare.items() if item.result.usage] == [None] * 3
    assert (bare.usage.cost_usd, bare.summary["unknown_costs"]) == (None, 3)


def test_answers_without_any_count_are_of_unknown_cost():
    """A model that says nothing of tokens is not free beside one whose cost is known; what rules decide is."""
    done = do(["good one", "good two"], Judge(Words()), rules=[{"regex": "one"}])

    assert (done.summary["unknown_costs"], done.usage.cost_usd) == (1, None)


# ---------------------------------------------------------------- budget


def test_a_tight_budget_is_not_overrun_by_32_at_once(tmp_path: Path):
    """21 dollars are nine calls of 2 that may each cost 4: the server is asked nine times, the rest says why not."""
    with serve() as provider:
        done = spend(provider, 100, budget=21, concurrency=32, out=tmp_path / "run")
        asked = len(provider.bodies)

    assert (asked, done.counts["passed"]) == (9, 9)
    assert done.summary["undecided_because"] == {"budget": 91}
    assert done.manifest["budget"] == {"usd": 21.0, "spent": 18.0}
    assert done.usage.cost_usd == 18.0


def test_what_a_budget_cannot_pay_for_at_once_waits_outside():
    """No more is under way than the budget can pay for at most: who waits for it inside would be late."""
    model = Words(turns=20)
    done = do(texts(40), Judge(model, max_output_tokens=4), prices={"words": DOLLARS}, budget=50, concurrency=32)

    # Nobody says what a call used, so each counts as 4: twelve in 50.
    assert (len(model.requests), done.summary["undecided_because"]) == (12, {"budget": 28})
    assert 1 < model.most <= 12


def test_a_run_goes_on_with_what_is_left(tmp_path: Path):
    """What earlier attempts spent is spent; what was cut off is judged again with a higher budget, and it alone."""
    out = tmp_path / "run"
    with serve() as provider:
        spend(provider, 10, budget=9, out=out)
        assert len(provider.bodies) == 3  # spent 6; 3 are left, and a call may cost 4
        done = spend(provider, 10, budget=15, out=out, resume=True)

        assert len(provider.bodies) == 6
        assert (done.counts["passed"], done.summary["undecided_because"]) == (6, {"budget": 4})
        assert done.manifest["budget"] == {"usd": 15.0, "spent": 12.0}

        whole = spend(provider, 10, budget=100, out=out, resume=True)
        assert (len(provider.bodies), whole.counts["passed"], whole.usage.cost_usd) == (10, 10, 20.0)


def test_going_on_without_a_budget_keeps_the_one_there_was(tmp_path: Path):
    """Who forgets to name it again has not lifted it."""
    with serve() as provider:
        spend(provider, 10, budget=9, out=tmp_path / "run")
        done = spend(provider, 10, out=tmp_path / "run", resume=True)

        assert len(provider.bodies) == 3
    assert done.summary["undecided_because"] == {"budget": 7}
    assert done.manifest["options"]["budget"] == 9


def test_what_was_cancelled_counts_when_a_run_goes_on(tmp_path: Path):
    """A call that was cut off may be charged in full, so it is off the budget of the next attempt too."""
    model = Words()
    options: dict[str, Any] = {"prices": {"words": DOLLARS}, "budget": 11, "concurrency": 2}
    left = cut_off(
        ["good", "wait", "good too"],
        Judge(model, max_output_tokens=4),
        tmp_path / "run",
        1,
        until=lambda: model.now == 1,
        **options,
    )
    assert left.manifest["budget"]["spent"] == 8.0

    done = do(
        ["good", "wait", "good too"], Judge(model, max_output_tokens=4), out=tmp_path / "run", resume=True, **options
    )
    assert (len(model.requests), done.summary["undecided_because"]) == (2, {"budget": 2})


def test_a_budget_comes_too_late_for_what_cost_nobody_knows(tmp_path: Path):
    """Replies of unknown cost may have cost anything, so nobody knows what would be left."""
    do(texts(2), Judge(Words()), out=tmp_path / "run")
    with pytest.raises(UsageError, match=r"2 replies of unknown cost, .* budget"):
        do(texts(3), Judge(Words()), out=tmp_path / "run", resume=True, budget=5, prices={"words": DOLLARS})


def test_a_budget_that_was_handed_in_is_its_owners(tmp_path: Path):
    """It is shared with whatever else has it, and counted there."""
    budget = Budget(10, spent=1)
    with serve() as provider:
        done = spend(provider, 9, budget=budget)

    assert (budget.spent, done.counts["passed"], done.manifest["budget"]["spent"]) == (7.0, 3, 7.0)


@pytest.mark.parametrize(
    ("judge", "options", "message"),
    [
        (Seat("passed", name="own"), {"budget": 5}, "'own' is no Judge or JudgeChain, so a budget cannot hold"),
        (Judge(Words()), {"budget": 5}, "a budget needs the price of words, which is unknown"),
        (Judge(Words(), max_output_tokens=None), {"budget": 5}, "needs max_output_tokens"),
        (JudgeChain([Words()]), {"budget": 5}, "a budget needs the price of words"),
        (Judge(Words()), {"budget": -1}, "budget must be dollars, 0 or more; got -1"),
        (Judge(Words()), {"budget": float("nan")}, "budget must be dollars"),
        (Judge(Words()), {"prices": {"words": {"input": 1}}}, "the price of 'words' must be like"),
        (Judge(Words()), {"concurrency": 0}, "concurrency must be a whole number of at least 1"),
        (Judge(Words()), {"pairs": "yes"}, "pairs must be true or false"),
    ],
)
def test_a_budget_that_cannot_hold_is_said_before_anything(
    tmp_path: Path, judge: Any, options: dict[str, Any], message: str
):
    """Nobody is asked, and nothing is written."""
    with pytest.raises(UsageError, match=message):
        do(["good"], judge, out=tmp_path / "run", **options)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("layer", ["budget", "keeping"])
def test_a_model_that_a_rubric_names_is_behind_the_same_layers(tmp_path: Path, layer: str):
    """It is another model altogether, and neither asked past the budget nor left out of what is kept."""
    with serve() as provider, serve() as other:
        rubric = {"name": "R", "criteria": [{"name": "criteria", "description": "x"}], "model": other.spec}
        options: dict[str, Any] = {"prices": {provider.spec: DOLLARS, other.spec: DOLLARS}, "out": tmp_path / "run"}
        options |= {"budget": 0} if layer == "budget" else {}
        done = run(["good"], ask(provider), rubric, **options).finish_sync()

        assert (len(provider.bodies), len(other.bodies)) == (0, 0 if layer == "budget" else 1)
    if layer == "budget":
        assert done.summary["undecided_because"] == {"budget": 1}
    else:
        assert [json.loads(body)["model"] for body in done.store.replies()] == [other.spec]
        assert done.usage.cost_usd == 2.0


# ---------------------------------------------------------------- cache


def test_two_runs_share_a_cache(tmp_path: Path):
    """What one run asked the next is not asked again, in a folder of its own; it costs nothing and says so."""
    cache = tmp_path / "replies.sqlite"
    with serve() as provider:
        spend(provider, 5, cache=cache)
        again = spend(provider, 7, cache=cache, budget=4)

        assert len(provider.bodies) == 6
    assert (again.counts["passed"], again.summary["undecided_because"]) == (6, {"budget": 1})
    assert (again.usage.calls, again.usage.cost_usd) == (1, 2.0)


def test_samples_are_not_taken_from_each_other(tmp_path: Path):
    """Repeats are asked separately through a cache too, and each is found again as itself."""
    with serve() as provider, ReplyCache(tmp_path / "replies.sqlite") as cache:
        spend(provider, 2, cache=cache, repeat=3)
        assert len(provider.bodies) == 6
        spend(provider, 2, cache=cache, repeat=3)
        assert len(provider.bodies) == 6


def test_a_cache_that_is_none_is_said_before_anything(tmp_path: Path):
    """A file that is no cache ends the run at its beginning."""
    (tmp_path / "replies.sqlite").write_text("not a database, but long enough to look like something" * 100)
    with serve() as provider:
        with pytest.raises(UsageError, match=r"replies\.sqlite"):
            spend(provider, 2, cache=tmp_path / "replies.sqlite", out=tmp_path / "run")
        assert provider.bodies == []
    assert not (tmp_path / "run").exists()


# ---------------------------------------------------------------- ids that are repeated


@pytest.mark.parametrize("concurrency", [1, 16])
def test_a_repeated_id_is_a_bad_row(tmp_path: Path, concurrency: int):
    """With ``skip`` it is counted and listed with its line, nobody is asked about it, and going on finds the same."""
    from adjudge import open_dataset

    path = tmp_path / "data.jsonl"
    rows = [{"id": name, "content": f"good {place}"} for place, name in enumerate("abacba")]
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    model = Words()
    for resume in (False, True):
        dataset = open_dataset(path, on_bad_row="skip", check_ids=False)
        options: dict[str, Any] = {"concurrency": concurrency, "resume": resume, "repeat": 2, "out": tmp_path / "run"}
        done = do(dataset, Judge(model), **options)

        assert [item.case.content for item in done.items()] == ["good 0"] * 2 + ["good 1"] * 2 + ["good 3"] * 2
        assert len(model.requests) == 6
        data_set = done.manifest["dataset"]
        assert (data_set["cases"], data_set["skipped"]) == (3, 3)
        assert [row["where"].rpartition(", ")[2] for row in data_set["bad_rows"]] == ["line 3", "line 5", "line 6"]
        assert data_set["bad_rows"][0]["why"].startswith("the id 'a' is already used by case 0")
    assert open_run(tmp_path / "run").manifest["digests"] == done.manifest["digests"]


def test_a_repeated_id_ends_a_run_with_file_and_line(tmp_path: Path):
    """By default it is an error that says where, and of something without lines which item it is."""
    path = tmp_path / "data.jsonl"
    path.write_text('{"id": "a", "content": "good"}\n\n{"id": "a", "content": "bad"}\n')
    with pytest.raises(UsageError, match=r"data\.jsonl, line 3: the id 'a' .* case 0"):
        do(path, out=tmp_path / "run")
    assert open_run(tmp_path / "run").counts["passed"] == 1

    async def walk() -> Any:
        for case in [*make_cases(2), *make_cases(1)]:
            yield case

    with pytest.raises(UsageError, match=r"item 2 .* the id 'case-0' .* case 0"):
        do(walk())


@pytest.mark.parametrize(
    ("odd", "reason"),
    [
        ({"id": 5}, "the id is of the type int"),
        ({"id": "half \ud83d"}, "the id holds half of a surrogate pair"),
        ({"group": 7}, "Expected `str | null`, got `int` - at `$.group`"),
        ({"label": ["yes"]}, "got `array` - at `$.label`"),
        ({"metadata": "m"}, "Expected `object`, got `str` - at `$.metadata`"),
    ],
)
def test_a_case_that_could_not_be_read_back_is_a_bad_row(odd: dict[str, Any], reason: str, tmp_path: Path):
    """Nobody is asked about it, and it does not keep the run from being read; ``skip`` goes on without it."""
    model = Words()
    cases = [*make_cases(2), replace(Case(id="odd", content="good"), **odd), *make_cases(1, start=2)]
    with pytest.raises(UsageError, match=re.escape(reason)):
        do(cases, Judge(model), out=tmp_path / "run")
    assert len(list(open_run(tmp_path / "run").items())) == len(model.requests) == 2

    done = do(Dataset.of(cases, on_bad_row="skip", check_ids=False), out=tmp_path / "other")
    assert [item.place for item in done.items()] == [0, 1, 3]
    [left_out] = done.manifest["dataset"]["bad_rows"]
    assert reason in left_out["why"]


@pytest.mark.parametrize("label", [1, 1.0, True, "tie", None, 3])
def test_a_label_is_read_as_it_was_written(label: Any):
    """A number that is whole stays so: the digest of a case that is written again is the same."""
    [item] = do([Case(id="a", content="good", label=label, labels={"ann": label})]).items()
    assert (item.case.label, type(item.case.label)) == (label, type(label))
    assert type(item.case.labels["ann"]) is type(label)
