"""A run on Ray gives what a run in one process gives, asks about each case once, and loses nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, JudgeChain, UsageError, open_run, run
from adjudge.models import ReplyCache
from kit import cli
from kit.cli import Line, Provider
from kit.judges import names
from kit.patience import wait_for
from kit.ray import Words, count_asked, list_actors, make_cases, open_cluster
from kit.runs import list_results

pytestmark = [
    pytest.mark.integration,
    # Ray and what it brings warn of their own affairs.
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.no_cover,
]

CRITERIA = "Is good."


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster of one node."""
    with open_cluster() as opened:
        yield opened


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Words]:
    """A server that all actors ask."""
    monkeypatch.setattr(cli, "Provider", Words)
    with cli.serve() as served:
        yield served


def judge(provider: Provider, **options: Any) -> Judge:
    """A judge that asks the server."""
    return Judge(provider.spec, reask=0, **options)


def do(dataset: Any, asked: Any, **options: Any) -> Any:
    """A run on Ray to its end."""
    return run(dataset, asked, criteria=CRITERIA, engine="ray", **{"ray_actors": 2, **options}).finish_sync()


def test_a_run_on_ray_gives_what_a_run_in_one_process_gives(cluster, provider, tmp_path):
    """The same items, outcomes, scores, labels and summary; a reply that cannot be read is a result."""
    cases = make_cases(150)
    local = run(cases, judge(provider), criteria=CRITERIA, out=tmp_path / "local").finish_sync()
    provider.bodies.clear()

    done = do(cases, judge(provider), out=tmp_path / "ray", concurrency=8)

    assert list_results(done) == list_results(local)
    assert done.status == "finished"
    assert done.summary == local.summary
    assert done.counts["undecided"] == 3
    assert done.manifest["digests"] == local.manifest["digests"]
    assert done.contents is not None
    assert done.contents == local.contents == done.find_contents()
    assert set(count_asked(provider).values()) == {1}
    assert len(count_asked(provider)) == 150


@pytest.mark.full
def test_all_actors_fence_the_data_with_the_tokens_of_one_run(cluster, provider):
    """The same case has the same token wherever it is judged, and another one in another run."""
    cases = [Case(id=f"case-{place}", content="a good text of case 1") for place in range(24)]
    tokens = []
    for _ in range(2):
        provider.bodies.clear()
        do(cases, judge(provider), concurrency=8)
        prompts = ["\n".join(part["content"] for part in body["messages"]) for body in provider.bodies]
        tokens.append({cli.find_token(prompt) for prompt in prompts})

    assert [len(tokens_of_actor) for tokens_of_actor in tokens] == [1, 1]
    assert tokens[0] != tokens[1]


@pytest.mark.full
def test_a_run_that_was_wound_down_resumes_on_ray_or_without_it(cluster, provider, tmp_path):
    """Nothing is begun after it is wound down, and nothing that is kept is asked again."""
    cases = make_cases(300)

    async def begin() -> Any:
        running = run(cases, judge(provider), criteria=CRITERIA, out=tmp_path, engine="ray", ray_actors=2)
        async for _ in running:
            running.wind_down()
        return await running

    first = asyncio.run(begin())
    kept = sum(first.counts.values())
    asked = len(provider.bodies)
    second = do(cases[:], judge(provider), out=tmp_path, resume=True, sample=None)

    assert first.status == "interrupted"
    assert kept == asked < 300
    assert second.status == "finished"
    assert sum(second.counts.values()) == 300
    assert len(provider.bodies) == 300
    again = run(cases, judge(provider), criteria=CRITERIA, out=tmp_path, resume=True).finish_sync()
    assert list_results(again) == list_results(second)
    assert len(provider.bodies) == 300


@pytest.mark.full
def test_whoever_leaves_a_run_on_ray_pays_nothing_more(cluster, provider, tmp_path):
    """When the loop is left, no actor asks any more; what was kept is kept."""

    async def leave() -> int:
        async with run(make_cases(400), judge(provider), criteria=CRITERIA, out=tmp_path, engine="ray") as running:
            async for _ in running:
                break
        return len(provider.bodies)

    asked = asyncio.run(leave())
    wait_for(lambda: not list_actors())

    assert len(provider.bodies) == asked < 400
    assert open_run(tmp_path).status == "interrupted"


@pytest.mark.full
def test_a_killed_actor_costs_no_more_than_what_it_had_under_way(cluster, provider, tmp_path):
    """Ray starts it again, every case has one result, and only what was under way is asked twice."""
    cases = make_cases(400)

    async def kill() -> Any:
        running = run(
            cases, judge(provider), criteria=CRITERIA, out=tmp_path, engine="ray", ray_actors=2, concurrency=8
        )
        killed = 0
        async for _ in running:
            killed += 1
            if killed in (100, 200):
                os.kill(list_actors()[0], signal.SIGKILL)
        return await running

    done = asyncio.run(kill())

    assert done.status == "finished"
    assert [item.place for item in done.items()] == list(range(400))
    assert len(count_asked(provider)) == 400
    assert len(provider.bodies) <= 400 + 2 * 4


@pytest.mark.full
def test_actors_together_keep_to_one_budget(cluster, provider, tmp_path):
    """No more is spent than allowed, and cases that do not fit are undecided because of it."""
    prices = {provider.spec: {"input": 100.0, "output": 100.0}}
    asked = judge(provider, max_output_tokens=10)
    most = 2.0

    done = do(make_cases(60), asked, out=tmp_path, budget=most, prices=prices, concurrency=4)

    assert done.counts["undecided"] > 0
    assert 0 < done.manifest["budget"]["spent"] <= most
    assert done.summary["undecided_because"]["budget"] == 60 - len(provider.bodies)
    resumed = do(make_cases(60), asked, out=tmp_path, budget=100.0, prices=prices, concurrency=4, resume=True)
    assert "budget" not in resumed.summary["undecided_because"]
    assert set(count_asked(provider).values()) == {1}


@pytest.mark.full
def test_an_actor_without_the_key_says_which(cluster, provider, tmp_path, monkeypatch):
    """Keys come from each actor's environment and are never sent; without one nothing is asked."""
    monkeypatch.setenv("ADJUDGE_TEST_KEY", "sk-only-here")
    spec = f"{provider.url}?key_env=ADJUDGE_TEST_KEY#small"

    with pytest.raises(UsageError) as caught:
        do(make_cases(4), Judge(spec), out=tmp_path)

    assert names(caught.value, "ADJUDGE_TEST_KEY", "actor")
    assert provider.bodies == []


@pytest.mark.full
def test_a_chain_with_a_judge_in_code_is_judged_on_ray(cluster, provider):
    """Every seat is asked once about each case."""
    seats = JudgeChain([judge(provider), Judge(partial(says, word="good"), name="code")], strategy="consensus")
    both = do(make_cases(20)[:20], seats)

    assert both.counts["passed"] > 0
    assert set(count_asked(provider).values()) == {1}


def says(content: str, *, word: str) -> bool:
    """A judge in code."""
    return word in content


@pytest.mark.full
def test_the_command_judges_on_ray(cluster, provider, tmp_path, monkeypatch, capsys):
    """``--engine ray`` has the same output and exit status as a run in one process."""
    data = tmp_path / "data.jsonl"
    data.write_text("".join(f'{{"id": "{n}", "content": "a good text of case {n}"}}\n' for n in range(12)), "utf-8")
    line = Line(capsys)
    words = ("run", data, "--criteria", CRITERIA, "--judge", provider.spec, "--json")

    ran = line(*words, "--out", tmp_path / "ray", "--engine", "ray", "--ray-actors", "2", "--fail-under", "0.9")

    assert ran.status == 0, ran.err
    assert ran.document["counts"] == {"passed": 12, "failed": 0, "undecided": 0}
    assert ran.document["options"]["engine"] == "ray"


# What is refused before anything is begun; these need no Ray.


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"ray_actors": 2}, ("ray_actors", "engine"), id="actors-without-ray"),
        pytest.param({"ray_address": "auto"}, ("ray_address", "engine"), id="address-without-ray"),
        pytest.param({"engine": "dask"}, ("engine", "ray"), id="another-engine"),
        pytest.param({"engine": "ray", "ray_actors": 0}, ("ray_actors", "0"), id="no-actors"),
        pytest.param({"engine": "ray", "ray_address": "ray://host:1"}, ("ray://host:1", "HOST:PORT"), id="client"),
    ],
)
def test_where_a_run_is_judged_is_checked_at_once(options, words):
    """A slip in the engine's options is a usage error before the data are read."""
    with pytest.raises(UsageError) as caught:
        run(["good"], "rules", criteria=CRITERIA, **options)

    assert names(caught.value, *words)


def make_refused(name: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """A judge and options that a run on Ray does not take."""
    if name == "cache":
        return Judge(says_good), {"cache": ReplyCache(folder / "cache.db")}
    if name == "recording":
        file = folder / "recorded.jsonl"
        list(record(file))
        return Judge(f"replay:{file}"), {}
    if name == "on_result":
        return Judge(says_good, on_result=print), {}
    if name == "concurrency":

        class Steady:
            current = 3

        return Judge(says_good), {"concurrency": Steady()}
    raise AssertionError(name)


def record(file: Path) -> Iterator[Any]:
    """A recording of one reply."""
    from adjudge.models import RecordingModel, model_function

    asked = Judge(RecordingModel(model_function(cli.judge_words, name="words"), file))
    yield asked.evaluate_sync("good", criteria=CRITERIA)


def says_good(content: str) -> bool:
    """A judge in code."""
    return "good" in content


def grades(answer: str) -> dict[str, Any]:
    """A judge in code by the name of its parameter, which gives reasons."""
    return {"score": 0.9 if "good" in answer else 0.1, "reason": "the word"}


def careless(text):
    """A model that returns what a judge in code does."""
    return True


def test_a_function_is_on_ray_what_it_is_anywhere(cluster, tmp_path):
    """A judge in code gives the same results; the mistake of a function ends the run, and nobody waits for ever."""
    cases = make_cases(12)
    local = run(cases, grades, criteria=CRITERIA, out=tmp_path / "local").finish_sync()
    done = do(cases, grades, out=tmp_path / "ray")
    assert list_results(done) == list_results(local)

    with pytest.raises(UsageError, match=r"careless returned bool \(True\).*judge_function\(careless\)"):
        do(cases, careless, out=tmp_path / "wrong")


@pytest.mark.parametrize("name", ["cache", "recording", "on_result", "concurrency"])
def test_what_several_processes_cannot_keep_to_is_refused(name, tmp_path):
    """Caches, recordings, hooks and limits of one process are named with what to do instead, and no run is left."""
    asked, options = make_refused(name, tmp_path)

    with pytest.raises(UsageError) as caught:
        do(["good"], asked, out=tmp_path / "run", **options)

    assert names(caught.value, "ray", name)
    assert not (tmp_path / "run" / "run.json").exists()
