"""Which model was asked for and which one answered: in results, logs, recordings, caches, reports and doctor."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from adjudge import Judge, JudgeChain, JudgeChainResult, JudgeResult, Ledger, PairResult, compare, open_model
from adjudge.judges import read_result
from adjudge.models import RecordingModel, Reply, ReplyCache, Request
from adjudge.report import make_report, render_html, render_junit, render_markdown
from adjudge.testing import ScriptedModel
from kit import cli, wire
from kit.cli import Line
from kit.judges import YES, Plain, keep_replies
from kit.reports import keep_run, make_item, make_manifest_of, make_result
from kit.wire import completion

pytestmark = pytest.mark.timed


PROMPT = 'Is this safe? Reply {"safe": true} or {"safe": false}.'
_numbers = count()
LENIENT = ("azure", "openrouter", "ollama", "http")
STRICT = ("openai", "mistral", "groq", "together")


def unique(name: str = "model") -> str:
    """A name that no other test asks for: what a model reported is remembered for as long as the process lives."""
    return f"{name}-n{next(_numbers)}x"


def say(reported: str | None, text: str = YES) -> tuple[int, dict[str, str], Any]:
    return 200, {}, completion(text, model=reported)


def open_at(server: wire.Scripted, prefix: str, name: str) -> Any:
    return (
        open_model(f"{server.url}#{name}") if prefix == "http" else open_model(f"{prefix}:{name}", base_url=server.url)
    )


def ask(prefix: str, name: str, *reported: str | None) -> list[JudgeResult]:
    """One result for each name that the server reports, in turn."""

    async def run() -> list[JudgeResult]:
        async with wire.serve(*map(say, reported)) as server, Judge(open_at(server, prefix, name)) as judge:
            return [await judge.ask(PROMPT) for _ in reported]

    return asyncio.run(run())


def draw(result: Any) -> str:
    """What a terminal shows of a result."""
    written = io.StringIO()
    Console(width=200, file=written).print(result)
    return written.getvalue()


def list_warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [item.getMessage() for item in caplog.records if item.levelno >= logging.WARNING]


# ---------------------------------------------------------------- what a result says


@pytest.mark.parametrize("prefix", STRICT)
def test_another_model_than_was_asked_for_is_said(prefix: str, caplog: pytest.LogCaptureFixture):
    """The result has both names and says that they differ, wherever it is shown; its outcome is what the reply says."""
    old, new = unique("gemini-2.5-flash"), "gemini-3.5-flash-lite"
    result = ask(prefix, old, new)[0]

    assert (result.outcome, result.model, result.model_requested) == ("passed", new, old)
    assert result.model_differs
    for shown in (
        result.explain(),
        repr(result),
        draw(result),
        result._repr_html_(),
        list_warnings(caplog)[0],
    ):
        assert new in shown
        assert old in shown


@pytest.mark.parametrize("prefix", STRICT)
def test_a_snapshot_of_the_model_is_not_worth_a_word(prefix: str, caplog: pytest.LogCaptureFixture):
    """Nor is the name itself, nor a reply that reports no name at all."""
    name = unique()
    results = ask(prefix, name, name, f"{name}-2026-09-01", f"{name}-20260901", f"{name}-001", None, "")

    assert [result.model_differs for result in results] == [False] * 6
    assert {result.model_requested for result in results} == {name}
    assert list_warnings(caplog) == []
    assert "answered" not in "".join(result.explain() for result in results)


@pytest.mark.parametrize("prefix", LENIENT)
def test_where_any_name_may_be_reported_a_change_is_said(prefix: str, caplog: pytest.LogCaptureFixture):
    """A deployment, a router and a server of one's own report what they like; the first name is then expected."""
    name = unique("deployment")
    results = ask(
        prefix, name, "gpt-5-mini-2025-08-07", "gpt-5-mini-2025-08-07", "gpt-6.1-terra", None, "gpt-6.1-terra"
    )

    assert [result.model_differs for result in results] == [False, False, True, False, True]
    assert {result.model_requested for result in results} == {name}
    assert "gpt-5-mini-2025-08-07" in results[2].explain()
    assert "gpt-6.1-terra" in results[2].explain()
    assert len(list_warnings(caplog)) == 1


def test_the_first_name_is_expected_of_every_object(caplog: pytest.LogCaptureFixture):
    """A judge made anew for each call would otherwise never see a change."""
    name = unique()

    async def run() -> list[JudgeResult]:
        async with wire.serve(say("a"), say("b")) as server:
            return [await Judge(open_at(server, "http", name)).ask(PROMPT) for _ in range(2)]

    assert [result.model_differs for result in asyncio.run(run())] == [False, True]
    assert len(list_warnings(caplog)) == 1


def test_a_warning_is_given_once_for_each_model(caplog: pytest.LogCaptureFixture):
    """However often it is asked and by how many judges; another model that answers is another warning."""
    names = unique(), unique()

    async def run() -> None:
        async with wire.serve(*[say("other")] * 12, say("third")) as server:
            for name in names:
                for _ in range(3):
                    judge = Judge(open_at(server, "openai", name))
                    await judge.ask(PROMPT)
                    await judge.ask(PROMPT)
                    await judge.aclose()
            await Judge(open_at(server, "openai", names[0])).ask(PROMPT)

    asyncio.run(run())
    warnings = list_warnings(caplog)
    assert len(warnings) == 3
    assert [name in text for name, text in zip((*names, names[0]), warnings, strict=True)] == [True] * 3
    assert [("third" in text) for text in warnings] == [False, False, True]


def test_a_name_is_cut_where_it_is_none(caplog: pytest.LogCaptureFixture):
    """A megabyte in place of a name is not carried into every result, and is the same name the next time."""
    results = ask("http", unique(), "x" * 1_000_000, "x" * 1_000_000)

    assert [len(str(result.model)) for result in results] == [200, 200]
    assert [result.model_differs for result in results] == [False, False]
    assert list_warnings(caplog) == []


def test_what_nobody_named_is_not_compared():
    """A function reports nothing and was asked for by no name; nor is a model of one's own compared that names none."""
    result = Judge(("f", lambda prompt: YES)).evaluate_sync("x", criteria="Good.")
    own = asyncio.run(Judge(Plain(Reply(text=YES, model="whatever"))).ask(PROMPT))

    assert (result.model_requested, result.model_differs) == (None, False)
    assert (own.model, own.model_requested, own.model_differs) == ("whatever", None, False)


def test_a_model_of_ones_own_may_say_what_was_asked_for():
    """Then it is compared like a provider's."""
    own = asyncio.run(Judge(Plain(Reply(text=YES, model="b", model_requested="a"))).ask(PROMPT))

    assert own.model_differs


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (
            "gemini",
            {
                "candidates": [{"content": {"parts": [{"text": YES}]}, "finishReason": "STOP"}],
                "modelVersion": "gemini-3.5-flash-lite",
            },
        ),
        (
            "anthropic",
            {"content": [{"type": "text", "text": YES}], "stop_reason": "end_turn", "model": "claude-haiku-5-5"},
        ),
    ],
)
def test_every_adapter_says_so(kind: str, body: Any):
    """Not those of OpenAI's format alone."""
    name = unique("old")

    async def run() -> JudgeResult:
        async with wire.serve((200, {}, body)) as server:
            return await Judge(open_model(f"{kind}:{name}", base_url=server.url)).ask(PROMPT)

    result = asyncio.run(run())
    assert result.passed
    assert (result.model_requested, result.model_differs) == (name, True)


def test_a_chain_says_so_of_any_seat():
    """Its own names are those of the seat that it shows, and a seat behind it is not forgotten."""
    names = unique(), unique()

    async def run() -> Any:
        async with wire.serve(say("other")) as one, wire.serve(say(names[1])) as two:
            seats = [Judge(open_at(one, "openai", names[0])), Judge(open_at(two, "openai", names[1]))]
            inner = JudgeChain(seats[:1], name="inner")
            return await JudgeChain([seats[1], inner], strategy="consensus").ask(PROMPT)

    result = asyncio.run(run())
    assert result.passed
    assert result.model_differs
    assert [seat.model_differs for seat in result.results] == [False, True]
    assert result.model_requested in names
    assert names[0] in result.explain()
    assert read_result(result.to_dict()) == result


def test_a_comparison_says_so():
    """In either order."""
    name = unique()

    async def run() -> PairResult:
        async with wire.serve(say("other", "[[A]]")) as server:
            judge = Judge(open_at(server, "openai", name), reader="[[A]]", reask=0)
            return await compare("a", "b", judge=judge, criteria="Better.")

    pair = asyncio.run(run())
    assert pair.model_differs
    assert pair.to_dict()["model_differs"] is True
    for shown in (pair.explain(), draw(pair), pair._repr_html_()):
        assert name in shown


# ---------------------------------------------------------------- files


def test_a_file_without_the_names_is_read():
    """A file of another tool says nothing of what was asked for, so nothing is said of it."""
    document = make_result(model="b").to_dict()
    for name in ("model_requested", "model_expected", "model_differs"):
        del document[name]

    result = read_result(document)
    assert (result.model, result.model_requested, result.model_differs) == ("b", None, False)


def test_a_replay_says_what_was_recorded(tmp_path: Path):
    """Also that another model answered; a row of another tool says nothing, and a silent server stays silent."""
    path, name = tmp_path / "r.jsonl", unique()

    async def record() -> JudgeResult:
        async with wire.serve(say("other")) as server:
            return await Judge(RecordingModel(open_at(server, "openai", name), path)).ask(PROMPT)

    async def replay() -> JudgeResult:
        return await Judge(f"replay:{path}").ask(PROMPT)

    live, again = asyncio.run(record()), asyncio.run(replay())
    assert (again.model, again.model_requested, again.model_differs) == ("other", name, True)
    assert live.model_differs

    row = json.loads(path.read_text())
    del row["reply"]["model_requested"]
    path.write_text(json.dumps(row))
    assert not asyncio.run(replay()).model_differs

    row["reply"] |= {"model_requested": name}
    del row["reply"]["model"]
    path.write_text(json.dumps(row))
    silent = asyncio.run(replay())
    assert (silent.model, silent.model_requested, silent.model_differs) == (None, name, False)


def test_the_ledger_has_both_names(tmp_path: Path):
    """Also where it keeps no content."""

    async def run() -> Any:
        async with Ledger(f"sqlite:///{tmp_path}/l.db") as ledger:
            await ledger.append(make_result(model="b", model_requested="a"))
            return [entry async for entry in ledger.query(kind="result")]

    entry = asyncio.run(run())[0]
    members = [entry.payload[name] for name in ("model", "model_requested", "model_differs")]
    assert members == ["b", "a", True]


# ---------------------------------------------------------------- reports


def list_reports(items: Any, folder: Path) -> dict[str, str]:
    run = keep_run(folder, items, make_manifest_of(3))
    report = make_report(run)
    return {
        "html": render_html(report),
        "markdown": render_markdown(report),
        "junit": "".join(render_junit(report, run.items())),
        "json": json.dumps(report.to_dict()),
    }


def test_every_report_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Who was asked for, who answered and how often, in each form; a run without a change says nothing."""
    other = {"model": "gemini-3.5-flash-lite", "model_requested": "gemini-2.5-flash"}
    changed = [make_item(place, make_result(**(other if place else {}))) for place in range(3)]
    output = list_reports(changed, tmp_path / "changed") | {
        "terminal": Line(capsys)("report", tmp_path / "changed").out,
        "terminal json": Line(capsys)("report", tmp_path / "changed", "--json").out,
    }

    for form, text in output.items():
        assert "gemini-3.5-flash-lite" in text, form
        assert "gemini-2.5-flash" in text, form
    assert (
        "2 judgements came from the model `gemini-3.5-flash-lite`, and `gemini-2.5-flash` was asked for"
        in output["markdown"]
    )
    same = list_reports([make_item(0, make_result(model="a-001", model_requested="a"))], tmp_path / "same")
    assert not any("was asked for" in text for text in same.values())


def test_a_change_between_two_processes_of_a_run_is_said(tmp_path: Path):
    """Behind a name that may report any, neither process saw it: the first name of the whole run is expected."""
    began = datetime(2026, 11, 1, tzinfo=UTC)

    def make(place: int, name: str, hour: int) -> Any:
        options = {"model": name, "model_requested": "d", "model_expected": name}
        return make_item(place, make_result(**options, created_at=began + timedelta(hours=hour)))

    run = keep_run(tmp_path / "run", [make(0, "new", 5), make(1, "old", 1), make(2, "old-2026-09-01", 2)])
    changes = make_report(run).model_changes

    assert [(item.expected, item.reported, item.judgements, item.asked) for item in changes] == [
        ("old", "new", 1, False)
    ]


def test_the_seats_of_a_chain_are_counted(tmp_path: Path):
    """Each by its own name, at any depth."""
    seat = make_result(judge="seat", model="b", model_requested="a")
    inner = JudgeChainResult(outcome="passed", judge="inner", strategy="fallback", results=(seat,))
    whole = JudgeChainResult(outcome="passed", judge="whole", strategy="consensus", results=(make_result(), inner))
    changes = make_report(keep_run(tmp_path / "run", [make_item(0, whole)])).model_changes

    assert [(item.judge, item.judgements) for item in changes] == [("seat", 1)]


# ---------------------------------------------------------------- doctor


@pytest.fixture(name="line")
def make_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


def test_doctor_says_so(line: Line, monkeypatch: pytest.MonkeyPatch):
    """It names both models; a judge that works keeps its exit status."""
    with cli.serve() as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        name = unique()
        ran = line("doctor", "--judge", f"openai:{name}")
        document = line("doctor", "--judge", f"openai:{name}", "--json").document
        own = line("doctor", "--judge", provider.spec)

    assert ran.status == 0
    output = next(text for text in ran.out.splitlines() if "warning" in text)
    assert name in output
    assert "small-1" in output
    seat = document["judges"][0]["seats"][0]
    assert seat["models"] == ["small-1"]
    assert name in seat["warnings"][0]
    assert not [text for text in own.out.splitlines() if "warning" in text and "small-1" in text]


def test_judge_says_so(line: Line, monkeypatch: pytest.MonkeyPatch):
    """On standard output beside the result, and in its JSON document."""
    with cli.serve() as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        Path("a.txt").write_text("a", encoding="utf-8")
        name = unique()
        asked = ("judge", "a.txt", "--criteria", "Good.", "--judge", f"openai:{name}")
        ran, document = line(*asked), line(*asked, "--json").document

    assert any(name in text and "small-1" in text for text in ran.out.splitlines())
    assert (document["model"], document["model_requested"], document["model_differs"]) == ("small-1", name, True)


# ---------------------------------------------------------------- the cache


class Provider:
    """A model that reports what it is told to, and counts."""

    def __init__(self, reports: str | None, *, name: str = "openai:m", finish: Any = "stop") -> None:
        self.name, self.reports, self.finish = name, reports, finish
        self.asked = 0

    @property
    def identity(self) -> dict[str, str]:
        return {"address": "https://h"}

    async def complete(self, request: Request, /) -> Reply:
        self.asked += 1
        await asyncio.sleep(0)
        return Reply(text=f"{self.reports}: {request.user}", model=self.reports, finish_reason=self.finish)


def request(user: str) -> Request:
    return Request(system="s", user=user)


def keep_named(model: Any, cache: ReplyCache, *, identity: str | None = None) -> Any:
    """The model behind a cache that tells it from others by what it says of itself."""
    return keep_replies(model, cache, identity=identity)


def ask_cached(path: Path, model: Provider, *users: str, wall: Any = None, **options: Any) -> list[str]:
    """The replies to some requests through a cache that is opened and closed, as by a process of its own."""

    async def run() -> list[str]:
        with ReplyCache(path, **({"wall": wall} if wall else {})) as cache:
            cached = keep_named(model, cache, **options)
            return [str((await cached.complete(request(user))).text) for user in users]

    return asyncio.run(run())


@pytest.fixture(name="path")
def make_path(tmp_path: Path) -> Iterator[Path]:
    return tmp_path / "replies.sqlite"


def test_older_replies_are_not_used_once_another_model_answers(path: Path, caplog: pytest.LogCaptureFixture):
    """One live reply with another name is enough; what the new model said is found again."""
    ask_cached(path, Provider("old"), "1", "2")
    model = Provider("new")

    assert ask_cached(path, model, "1") == ["old: 1"]
    assert ask_cached(path, model, "3", "1", "2", "3", "1") == ["new: 3", "new: 1", "new: 2", "new: 3", "new: 1"]
    assert model.asked == 3
    assert ask_cached(path, model, "1", "2", "3") == ["new: 1", "new: 2", "new: 3"]
    assert model.asked == 3
    assert len([text for text in list_warnings(caplog) if "'new'" in text and "'old'" in text]) == 1


def test_what_is_too_old_stays_too_old(path: Path):
    """The old model may answer again; what it said before somebody else did is not taken for what it says now."""
    times = count(100)
    clock = {"wall": lambda: float(next(times))}
    ask_cached(path, Provider("old"), "1", "2", **clock)
    ask_cached(path, Provider("new"), "3", **clock)
    back = Provider("old")

    assert ask_cached(path, back, "4", "1", **clock) == ["old: 4", "old: 1"]
    assert back.asked == 2
    assert ask_cached(path, back, "1", "4", **clock) == ["old: 1", "old: 4"]
    assert back.asked == 2


@pytest.mark.parametrize("finish", ["length", "refusal", "other"])
def test_a_live_reply_that_is_not_kept_counts(path: Path, finish: str):
    """It reports the new name all the same."""
    ask_cached(path, Provider("old"), "1")
    ask_cached(path, Provider("new", finish=finish), "2")

    assert ask_cached(path, Provider("new"), "1") == ["new: 1"]


def test_another_snapshot_is_another_name(path: Path):
    """The name that was asked for has moved to it, and so would its replies."""
    ask_cached(path, Provider("m-2026-09-01"), "1")
    ask_cached(path, Provider("m-2026-11-01"), "2")

    assert ask_cached(path, Provider("m-2026-11-01"), "1") == ["m-2026-11-01: 1"]


def test_replies_of_other_models_stay(path: Path):
    """Of another name, at another address, or of a function that reports nothing."""
    others = [Provider("a", name="openai:other"), Provider(None, name="silent")]
    for other in others:
        ask_cached(path, other, "1")
    ask_cached(path, Provider("elsewhere"), "1", identity="another")
    ask_cached(path, Provider("old"), "1")
    ask_cached(path, Provider("new"), "2")

    assert ask_cached(path, others[0], "1") == ["a: 1"]
    assert ask_cached(path, others[1], "1") == ["None: 1"]
    assert ask_cached(path, Provider("x"), "1", identity="another") == ["elsewhere: 1"]
    assert [other.asked for other in others] == [1, 1]


def test_a_reply_without_a_name_changes_nothing(path: Path):
    """Nobody knows of it that another model wrote it."""
    ask_cached(path, Provider("old"), "1")
    ask_cached(path, Provider(None), "2")

    assert ask_cached(path, Provider("old"), "1", "2") == ["old: 1", "None: 2"]


def test_another_process_sees_the_change_at_once(path: Path):
    """Two caches of one file are open: what one meets counts for the other, and for what that one writes later."""

    async def run() -> list[str]:
        with ReplyCache(path) as one, ReplyCache(path) as two:
            old, new = keep_named(Provider("old"), one), keep_named(Provider("new"), two)
            await old.complete(request("1"))
            one.flush()
            before = await new.complete(request("1"))
            await new.complete(request("2"))
            two.flush()
            after = await keep_named(Provider("new"), one).complete(request("1"))
            return [str(before.text), str(after.text)]

    assert asyncio.run(run()) == ["old: 1", "new: 1"]


def test_a_late_reply_of_the_old_model_is_not_found_under_the_new(path: Path):
    """It was under way when another process met the change, and is written after it."""

    async def run() -> str:
        with ReplyCache(path) as one, ReplyCache(path) as two:
            await keep_named(Provider("old"), one).complete(request("1"))
            one.flush()
            late, gate = Provider("old"), asyncio.Event()
            answer = late.complete

            async def wait(asked: Request, /) -> Reply:
                reply = await answer(asked)
                await gate.wait()
                return reply

            late.complete = wait  # type: ignore[method-assign]
            task = asyncio.ensure_future(keep_named(late, one).complete(request("2")))
            await asyncio.sleep(0.01)
            await keep_named(Provider("new"), two).complete(request("3"))
            two.flush()
            gate.set()
            await task
            one.flush()
            await keep_named(Provider("new"), two).complete(request("4"))
            two.flush()
            return str((await keep_named(Provider("new"), two).complete(request("2"))).text)

    assert asyncio.run(run()) == "new: 2"


def test_concurrent_calls_end_with_one_model(path: Path):
    """While a provider moves from one model to the other, replies of both come; afterwards only the newest is used."""

    async def run() -> set[str]:
        with ReplyCache(path) as cache:
            models = [keep_named(Provider(("old", "new")[number % 2]), cache) for number in range(20)]
            async with asyncio.TaskGroup() as group:
                for place, model in enumerate(models):
                    group.create_task(model.complete(request(str(place))))
            last = keep_named(Provider("new"), cache)
            await last.complete(request("last"))
            cache.flush()
            return {str((await last.complete(request(str(place)))).text)[:3] for place in range(20)}

    assert asyncio.run(run()) == {"new"}


def test_a_cache_that_was_cleared_goes_on(path: Path):
    """What is kept after a change and after a clearing is found."""
    ask_cached(path, Provider("old"), "1")
    ask_cached(path, Provider("new"), "2")
    with ReplyCache(path) as cache:
        cache.clear()
    model = Provider("new")

    assert ask_cached(path, model, "1", "1", "2", "2") == ["new: 1", "new: 1", "new: 2", "new: 2"]
    assert model.asked == 2


def test_explain_does_not_find_what_would_not_be_used(path: Path):
    """It looks as a call would."""
    ask_cached(path, Provider("old"), "1")
    ask_cached(path, Provider("new"), "2")
    with ReplyCache(path) as cache:
        model = keep_named(Provider("new"), cache)
        is_found = [model.explain(request(user))["found"] for user in ("1", "2")]

    assert is_found == [False, True]


@pytest.mark.parametrize("prefix", ["openai", "http"])
def test_a_kept_reply_says_which_model_wrote_it(path: Path, prefix: str):
    """A provider's is compared with the name that was asked for."""
    name = unique()

    async def run() -> list[Reply]:
        async with wire.serve(say("other")) as server:
            with ReplyCache(path) as cache:
                model = keep_named(open_at(server, prefix, name), cache)
                live = await model.complete(request("1"))
                kept = await model.complete(request("1"))
                assert len(server.bodies) == 1
                return [live, kept]

    live, kept = asyncio.run(run())
    assert (live.model, live.model_requested) == (kept.model, kept.model_requested) == ("other", name)
    assert live.model_expected == kept.model_expected == ("other" if prefix == "http" else None)


def test_a_kept_reply_of_a_silent_server_stays_silent(path: Path):
    """The name of the row is the spec, which no reply reported."""
    name = unique()

    async def run() -> tuple[Reply, Reply]:
        async with wire.serve(say(None)) as server:
            with ReplyCache(path) as cache:
                model = keep_named(open_at(server, "openai", name), cache)
                return await model.complete(request("1")), await model.complete(request("1"))

    live, kept = asyncio.run(run())
    assert live.model is kept.model is None
    assert live.model_requested == kept.model_requested == name


def test_a_name_of_any_size_and_form_is_kept(path: Path):
    """Half a character and a megabyte: a server's name must not stop the cache."""
    name = "\ud800" + "x" * 1_000_000
    ask_cached(path, Provider("old"), "1")

    assert ask_cached(path, Provider(name), "2")[0].endswith(": 2")
    assert ask_cached(path, Provider("old"), "1") == ["old: 1"]


def test_a_scripted_model_is_asked_for_by_no_name():
    """A double in a test warns of nothing, whatever it is called."""
    result = Judge(ScriptedModel({"criteria": [{"score": 1.0}]})).evaluate_sync("x", criteria="G.")

    assert (result.model_requested, result.model_differs) == (None, False)
