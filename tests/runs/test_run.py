"""A data set judged: every case has a result that is kept, however the run ends."""

from __future__ import annotations

import asyncio
import gc
import json
import stat
import threading
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Judge, JudgeChain, JudgeResult, Question, Rubric, Usage, UsageError, open_run, run
from adjudge.models import Reply, Request
from adjudge.report import make_report, render_markdown
from adjudge.runs import Progress
from adjudge.testing import ScriptedModel
from kit.judges import Plain, Seat
from kit.runs import CRITERIA, Words, do, make_cases


def test_every_case_has_a_result_in_the_order_of_the_data(tmp_path: Path):
    """The finished run holds one item for each case, with the case, its place and what the judge said."""
    done = do(make_cases(30), out=tmp_path / "run")

    items = list(done.items())
    assert [(item.place, item.case) for item in items] == list(enumerate(make_cases(30)))
    assert [item.result.passed for item in items] == [place % 3 != 0 for place in range(30)]
    assert [item.result.metadata["case"] for item in items] == [f"case-{place}" for place in range(30)]
    assert (done.status, done.counts) == ("finished", {"passed": 20, "failed": 10, "undecided": 0})
    assert (done.summary["labelled"], done.summary["agreed"]) == (30, 30)


def test_it_can_be_iterated_and_then_awaited(tmp_path: Path):
    """Each item is handed over once and is in the file when it is; awaiting afterwards gives the run."""

    async def go() -> None:
        running = run(make_cases(20), Judge(Words()), criteria=CRITERIA, out=tmp_path / "run")
        seen = set()
        async for item in running:
            seen.add(item.place)
            assert seen <= {kept.place for kept in open_run(tmp_path / "run").items()}
        assert seen == set(range(20))
        assert (await running).status == "finished"
        assert (await running).status == "finished"

    asyncio.run(go())


def test_at_most_so_many_are_under_way():
    """Concurrency is reached and never exceeded."""
    model = Words(turns=5)
    do(make_cases(100), Judge(model), concurrency=7)

    assert model.most == 7


def test_a_limit_may_change_meanwhile():
    """An object with ``current`` is asked before each case, so a provider's own limit can be followed."""

    class Falling:
        @property
        def current(self) -> int:
            return 8 if len(model.requests) < 20 else 2

    model = Words(turns=5)
    most: list[int] = []
    do(make_cases(100), Judge(model), concurrency=Falling(), on_progress=lambda _: most.append(model.now))
    assert model.most == 8
    assert max(most[len(most) // 2 :]) <= 2


@pytest.mark.parametrize("kind", ["list", "generator", "async", "path", "contents", "mappings"])
def test_cases_come_from_anything_that_can_be_read(tmp_path: Path, kind: str):
    """Lists, generators, asynchronous iterables and files of cases, and plain contents and mappings, are data sets."""
    cases = make_cases(9)
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps({"id": case.id, "content": case.content}) + "\n" for case in cases))

    async def walk() -> AsyncIterator[Case]:
        for case in cases:
            await asyncio.sleep(0)
            yield case

    dataset: Any = {
        "list": cases,
        "generator": (case for case in cases),
        "async": walk(),
        "path": path,
        "contents": [case.content for case in cases],
        "mappings": [{"id": case.id, "content": case.content} for case in cases],
    }[kind]
    done = do(dataset)

    assert [item.case.content for item in done.items()] == [case.content for case in cases]
    assert done.counts == {"passed": 6, "failed": 3, "undecided": 0}


def test_what_belongs_to_a_case_reaches_the_judge():
    """Reference, task, context and metadata of a case go where ``evaluate`` puts them; the id names the case."""
    model = Words()
    case = Case(id="one", content="good", reference="gold", task="do", context="law", metadata={"lang": "de"})
    [item] = do([case], Judge(model), metadata={"team": "a", "case": "forged"}).items()

    assert all(f">>\n{text}\n<<" in model.requests[0].user for text in ("gold", "do", "law", "good"))
    assert item.result.metadata == {"lang": "de", "team": "a", "case": "one"}
    assert model.requests[0].case == "one"


class Broken:
    """Somebody's judge that does what it should not."""

    name = "broken"

    async def ask(self, question: Question | str, /) -> Any:
        assert isinstance(question, Question)
        if "cancel" in question.content:
            raise asyncio.CancelledError
        if "text" in question.content:
            return "passed"
        raise ValueError("no idea")


@pytest.mark.parametrize("judge", [Broken(), JudgeChain([Broken()]), Judge(Plain(ValueError("no idea")), reask=0)])
def test_a_judge_that_fails_is_a_result(judge: Any):
    """Whatever a judge raises or returns, the case is undecided: error, and the others are judged."""
    done = do(["cancel", "text", "other"], judge)

    assert done.status == "finished"
    assert [(item.result.outcome, item.result.undecided_because) for item in done.items()] == [
        ("undecided", "error")
    ] * 3
    assert done.summary["undecided_because"] == {"error": 3}


@pytest.mark.parametrize(
    "odd",
    [
        {"usage": Usage(input_tokens=1.5)},  # type: ignore[arg-type] # an estimate, as functions make them
        {"usage": Usage(output_tokens=None)},  # type: ignore[arg-type]
        {"usage": Usage(cost_usd=10**400)},
    ],
)
def test_a_usage_that_cannot_be_true_leaves_the_verdict_and_no_cost(odd: dict[str, Any], tmp_path: Path):
    """The reply can be read, so its case is judged; what it cost is unknown, and the run can be read."""

    class Odd(Words):
        async def complete(self, request: Request, /) -> Reply:
            reply = await super().complete(request)
            return replace(reply, **odd) if "bad" in request.user else reply

    done = do(make_cases(6), Judge(Odd()), out=tmp_path / "run")
    assert done.counts == {"passed": 4, "failed": 2, "undecided": 0}
    costs = [item.result.usage and item.result.usage.cost_usd for item in done.items("failed")]
    assert costs == [None, None]


@pytest.mark.parametrize("odd", [{"usage": "a lot"}, {"model": 5}, {"model": True}])
def test_what_a_provider_reports_cannot_end_a_run_or_keep_it_from_being_read(odd: dict[str, Any], tmp_path: Path):
    """Whatever stands in the reply beside its text: that case is undecided and says why, and the others are judged."""

    class Odd(Words):
        async def complete(self, request: Request, /) -> Reply:
            reply = await super().complete(request)
            return replace(reply, **odd) if "bad" in request.user else reply

    done = do(make_cases(6), Judge(Odd()), out=tmp_path / "run")
    assert done.counts == {"passed": 4, "failed": 0, "undecided": 2}
    assert [item.result.undecided_because for item in done.items("undecided")] == ["error", "error"]
    assert all(item.result.detail for item in done.items("undecided"))


@pytest.mark.parametrize(
    "odd", [{"duration_ms": float("nan")}, {"detail": 5}, {"decided_by": None}, {"threshold": 7.0}, {"usage": "a lot"}]
)
def test_what_a_judge_of_anybodys_returns_cannot_end_a_run_or_keep_it_from_being_read(odd: dict[str, Any]):
    """A result that could not be read back is no result: undecided, and the run can be read."""

    class Odd:
        name = "odd"

        async def ask(self, question: Question, **_: Any) -> JudgeResult:
            return JudgeResult(outcome="passed", judge="odd", **odd)

    done = do(make_cases(2), Odd())
    assert [item.result.undecided_because for item in done.items()] == ["error", "error"]


def test_half_a_character_in_a_reply_is_kept(tmp_path: Path):
    """It has no UTF-8 and can be read back all the same, so it costs nobody a result."""

    class Half(Words):
        async def complete(self, request: Request, /) -> Reply:
            return replace(await super().complete(request), model="half \ud83d")

    done = do(make_cases(2), Judge(Half()), out=tmp_path / "run")
    assert [item.result.model for item in done.items()] == ["half \ud83d"] * 2
    assert done.counts["undecided"] == 0


def test_a_case_that_cannot_be_asked_about_is_a_result():
    """Content that is too long for the model, and a subclass that breaks, take no other case with them."""

    class Small(Words):
        max_input_characters = 100

    class Own(Judge):
        async def ask(self, question: Question | str, /) -> JudgeResult:
            raise KeyError("mine")

    long = do(["good", "good " * 100, "bad"], Judge(Small()))
    assert [item.result.outcome for item in long.items()] == ["passed", "undecided", "failed"]
    [item] = list(long.items("undecided"))
    assert "500 characters long" in item.result.detail
    assert item.result.metadata["case"] == item.case.id

    own = do(["good"], Own(Words()))
    assert [item.result.detail for item in own.items()] == ["KeyError: 'mine'"]


def test_a_judge_of_anybodys_is_asked():
    """An object with ``name`` and ``ask`` judges a data set, and so does a function."""

    async def answer(prompt: str) -> str:
        token = prompt.partition('"token": "')[2][:8]
        return json.dumps({"token": token, "criteria": [{"name": "is-good", "score": 1}]})

    assert do(["a", "b"], Seat("passed", name="own")).counts["passed"] == 2
    assert do(["a", "b"], answer).status == "finished"


def test_rules_alone_judge_without_a_model():
    """A rubric that rules decide needs no model, and a failed error rule asks none."""
    rubric = Rubric(name="Short", criteria=[{"name": "a", "description": "x", "rule": {"regex": "good"}}])
    done = run(["good", "bad"], "rules", rubric).finish_sync()
    assert done.counts == {"passed": 1, "failed": 1, "undecided": 0}

    model = Words()
    done = do(["good one", "good two"], Judge(model), rules=[{"regex": "one"}])
    assert ([item.result.decided_by for item in done.items()], len(model.requests)) == (["judge", "rule"], 1)


def test_a_chain_keeps_every_seats_reply(tmp_path: Path):
    """Two seats of one model are asked separately, and each reply is kept with who gave it."""
    model = Words()
    done = do(make_cases(3), JudgeChain([model, model], strategy="consensus"), out=tmp_path / "run")

    assert len(model.requests) == 6
    rows = [json.loads(body) for body in done.store.replies()]
    assert sorted((row["case"], row["seat"], row["sample"], row["attempt"]) for row in rows) == [
        (f"case-{place}", seat, 0, 1) for place in range(3) for seat in (0, 1)
    ]
    assert {row["schema"] for row in rows} == {"adjudge/recording/1"}


def test_replies_are_kept_with_the_token_masked(tmp_path: Path):
    """A run is handed around; whoever has a token could close the fence of its question."""
    model = Words()
    done = do(["good"], Judge(model), out=tmp_path / "run")

    [body] = done.store.replies()
    assert model.requests[0].token is not None
    assert model.requests[0].token.encode() not in body
    assert b"{{token}}" in body


def test_samples_are_asked_separately():
    """With ``repeat``, each case is judged so often, and every request says which sample it belongs to."""
    model = Words()
    done = do(make_cases(4), Judge(model), repeat=3)

    assert [(item.place, item.sample) for item in done.items()] == [(p, s) for p in range(4) for s in range(3)]
    assert sorted((request.case, request.sample) for request in model.requests) == [
        (f"case-{place}", sample) for place in range(4) for sample in range(3)
    ]
    assert (done.summary["items"], done.summary["cases"]) == (12, 4)


def test_a_sample_is_drawn_by_its_seed(tmp_path: Path):
    """The same seed draws the same cases, in the order of the data; another draws others; places are those in it."""
    path = tmp_path / "cases.jsonl"
    path.write_text("".join(json.dumps({"id": case.id, "content": case.content}) + "\n" for case in make_cases(50)))

    def places(**options: Any) -> list[int]:
        return [item.place for item in do(path, sample=10, **options).items()]

    assert places(seed=1) == places(seed=1)
    assert places(seed=1) != places(seed=2)
    assert len(places()) == 10
    assert places() == sorted(set(places()))
    assert all(item.case.id == f"case-{item.place}" for item in do(path, sample=3).items())
    assert do(path, sample=500).summary["cases"] == 50


class Stream:
    """An asynchronous iterator."""

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> str:
        raise StopAsyncIteration


@pytest.mark.parametrize("once", [lambda: iter(["good", "bad"]), Stream], ids=["iterator", "stream"])
def test_a_sample_needs_data_that_can_be_read_twice(once: Any):
    """What is used up by counting it cannot be drawn from, and the error says what can."""
    with pytest.raises(UsageError, match=r"can be read once only|can be read twice"):
        do(once(), sample=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "concurrency must be a whole number of at least 1, got 0"),
        ({"concurrency": True}, "concurrency must be"),
        ({"repeat": 0}, "repeat must be a whole number of at least 1, got 0"),
        ({"sample": 0}, "sample must be"),
        ({"seed": 1.5}, "seed must be a whole number"),
        ({"retry": ["late"]}, "retry: 'late' is none of tampering"),
        ({"retry": "error"}, "retry must be a list of"),
        ({"throw_on_fail": True}, "a run has no throw_on_fail"),
        ({"threshold": 7}, "threshold must be between 0 and 1"),
        ({"concurency": 4}, "run has no argument 'concurency'; did you mean 'concurrency'?"),
        ({"nonsense": 1}, "evaluate has no argument 'nonsense'"),
        ({"rules": [{"name": "unheard"}]}, "unheard"),
    ],
)
def test_what_is_wrong_is_said_before_anybody_is_asked(options: dict[str, Any], message: str, tmp_path: Path):
    """Options that cannot be are a ``UsageError``; nobody was asked and no folder was made."""
    model = Words()
    with pytest.raises(UsageError, match=message):
        do(["good"], Judge(model), out=tmp_path / "run", **options)
    assert model.requests == []
    assert not (tmp_path / "run").exists()


def test_a_judge_that_cannot_be_asked_is_said_once(monkeypatch: pytest.MonkeyPatch):
    """A missing key is wrong for every case, and is an error before the first."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        do(["good"], "openai:gpt-6.1-terra")


def test_the_sync_door_works_everywhere():
    """Without a loop, inside a running one, and from several threads at once."""

    async def inside() -> int:
        return do(make_cases(5)).counts["passed"]

    assert asyncio.run(inside()) == 3
    counts: list[int] = []
    threads = [threading.Thread(target=lambda: counts.append(do(make_cases(5)).counts["passed"])) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert counts == [3] * 4


def test_a_run_without_a_place_lives_as_long_as_it_is_held():
    """Without ``out`` the folder is temporary, and goes with the last reference to the run."""

    async def go() -> Path:
        done = await run(["good"], Judge(Words()), criteria=CRITERIA)
        assert [item.result.passed for item in done.items()] == [True]
        return done.folder

    folder = asyncio.run(go())
    gc.collect()
    assert not folder.exists()


def test_progress_tells_how_far_it_is():
    """The hook sees numbers that only grow, outcomes and the total; one that raises stops nothing."""
    seen: list[Progress] = []

    def look(progress: Progress) -> None:
        seen.append(progress)
        raise RuntimeError("not mine")

    do(make_cases(30), on_progress=look, repeat=2)
    assert [progress.done for progress in seen] == sorted(progress.done for progress in seen)
    last = seen[-1]
    assert (last.done, last.fresh, last.total, last.seconds_left) == (60, 60, 60, 0.0)
    assert last.outcomes == {"passed": 40, "failed": 20}


def test_the_manifest_says_what_was_done(tmp_path: Path):
    """Versions, data, judge, rubric, options and counts are in ``run.json``, which its owner alone may read."""
    path = tmp_path / "cases.jsonl"
    path.write_text('{"id": "a", "content": "good"}\n')
    do(path, out=tmp_path / "run", command=["adjudge", "run"])

    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (manifest["schema"], manifest["status"], manifest["command"]) == (
        "adjudge/run/1",
        "finished",
        ["adjudge", "run"],
    )
    assert (manifest["dataset"]["path"], manifest["dataset"]["cases"]) == (str(path), 1)
    assert (manifest["judge"]["model"]["name"], manifest["rubric"]["name"]) == ("words", "Is good")
    assert (manifest["options"]["repeat"], manifest["counts"]["passed"]) == (1, 1)
    assert {len(digest) for digest in manifest["digests"].values()} == {64}
    for file in (tmp_path / "run").iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file
    assert open_run(tmp_path / "run").to_dict()["counts"] == {"passed": 1, "failed": 0, "undecided": 0}


def test_usage_is_summed_and_unknown_costs_are_unknown():
    """Tokens add up; a cost that is not known of every item is none, and never taken for free."""
    from adjudge import Usage
    from adjudge.models import Reply

    def answer(request: Request) -> Reply:
        text = json.dumps({"token": request.token, "criteria": [{"name": "is-good", "score": 1}]})
        cost = 0.5 if "priced" in request.user else None
        return Reply(text=text, usage=Usage(input_tokens=10, output_tokens=2, cost_usd=cost))

    priced = do(["priced 1", "priced 2"], Judge(Plain(answer)))
    assert (priced.usage.input_tokens, priced.usage.calls, priced.usage.cost_usd) == (20, 2, 1.0)
    mixed = do(["priced 1", "other"], Judge(Plain(answer)))
    assert mixed.usage.cost_usd is None
    assert (mixed.summary["known_cost_usd"], mixed.summary["unknown_costs"]) == (0.5, 1)


def is_long(content: str) -> bool:
    return len(content) > 3


@pytest.mark.parametrize("judge", [Judge(is_long), JudgeChain([Judge(is_long), ("b", is_long)])])
def test_the_cost_of_a_run_in_code_is_not_unknown(judge: Any):
    """No model was asked, so there is nothing that nobody knows; nor does the report say anything of cost."""
    done = do(["good", "bad"], judge)

    assert (done.counts["passed"], done.counts["failed"]) == (1, 1)
    assert (done.summary["known_cost_usd"], done.summary["unknown_costs"]) == (None, 0)
    assert make_report(done).cost.unknown == 0
    written = render_markdown(make_report(done))
    assert "median time" in written
    assert "input tokens" not in written


def test_the_cost_of_a_model_that_reports_none_is_unknown():
    """One seat of a chain that may have been paid is enough."""
    model = ScriptedModel({"criteria": [{"reasoning": "", "score": 0.9}]})
    done = do(["good"], JudgeChain([("model", model), ("code", is_long)], strategy="majority"))

    assert (done.summary["unknown_costs"], make_report(done).cost.unknown) == (1, 1)


@pytest.mark.parametrize(
    ("content", "message"), [(None, "there is no run.json"), ("no json", "is not JSON"), ("{}", "schema")]
)
def test_what_is_no_run_cannot_be_opened(tmp_path: Path, content: str | None, message: str):
    """A folder without a manifest, and one with another file of that name, are errors that name it."""
    if content is not None:
        (tmp_path / "run.json").write_text(content)
    with pytest.raises(UsageError, match=message):
        open_run(tmp_path)


def test_odd_contents_are_kept_and_the_run_goes_on():
    """Half a character, control characters and nested data are judged, or undecided, and stay what they were."""
    cases = [
        Case(id=str(n), content=content) for n, content in enumerate(["\ud800 good", "good \x1b[31m", {"a": ["good"]}])
    ]
    done = do(cases)

    assert [item.case.content for item in done.items()] == [case.content for case in cases]
    assert [item.result.outcome for item in done.items()] == ["undecided", "passed", "passed"]


def test_a_scripted_judge_runs_out():
    """A script that ends is a failing model like any other: the rest is undecided, and the run finishes."""
    model = ScriptedModel([{"criteria": [{"score": 1}]}])
    done = do(["a", "b", "c"], Judge(model), concurrency=1)

    assert [item.result.outcome for item in done.items()] == ["passed", "undecided", "undecided"]
