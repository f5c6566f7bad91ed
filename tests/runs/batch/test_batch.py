"""A run by batches ends as a live run with the same replies, whatever the provider does on the way."""

from __future__ import annotations

import json
import sqlite3
import stat
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adjudge import AdjudgeError, Case, Judge, JudgeChain, UsageError, open_run, run
from adjudge.runs import BatchOptions
from kit.batch import PROVIDERS, BatchServer, go, options, serve
from kit.patience import HANG
from kit.runs import list_results, make_cases

pytestmark = pytest.mark.timed


every_provider = pytest.mark.parametrize("kind", PROVIDERS)


def live(server: BatchServer, cases: Any, **options: Any) -> Any:
    """The same judged live."""
    return run(cases, options.pop("judge", None) or Judge(server.open()), criteria="Is good.", **options).finish_sync()


def leave_soon(server: BatchServer, running: Any) -> Any:
    """A run that is wound down a moment after its first batch was created."""

    def wind_down() -> None:
        server.created.wait(HANG)
        time.sleep(0.1)
        running.wind_down()

    thread = threading.Thread(target=wind_down)
    thread.start()
    left = running.finish_sync()
    thread.join()
    return left


def paid_once(server: BatchServer) -> bool:
    """Whether no prompt was run twice by batch."""
    return set(server.run.values()) <= {1}


def read_jobs(folder: Path) -> list[tuple[str, str]]:
    """State and message of the batches that a run keeps."""
    with closing(sqlite3.connect(folder / "batches.sqlite")) as connection:
        return connection.execute("SELECT state, message FROM batches ORDER BY number").fetchall()


def reasons(done: Any) -> dict[str, int]:
    """Why what is undecided is so."""
    return dict(done.summary["undecided_because"])


# ---------------------------------------------------------------- what comes back


@every_provider
def test_a_run_by_batches_equals_a_live_run(kind: str):
    """Every case in one batch, in any order, each paid for once, with the same outcomes, scores and tokens."""
    cases = make_cases(60)
    with serve(kind) as server:
        done = go(server, cases)
        assert (len(server.jobs), paid_once(server), len(server.run), sum(server.live.values())) == (1, True, 60, 0)
        expected = live(server, cases)

    assert done.status == "finished"
    assert list_results(done) == list_results(expected)
    assert done.usage == expected.usage
    assert done.contents is not None
    assert done.contents == expected.contents == done.find_contents()


@every_provider
def test_what_a_batch_leaves_unanswered_when_it_expires_goes_into_the_next(kind: str):
    """At every end all there is is read; only what was not run is sent again."""
    end = {"openai": "expired", "anthropic": "", "gemini": "EXPIRED"}[kind]
    with serve(kind, run_share=0.6, ends=[end or "expired", ""]) as server:
        done = go(server, make_cases(50))

        assert [len(job.lines) for job in server.jobs.values()] == [50, 20]
        assert paid_once(server)
    assert done.counts["undecided"] == 0


def test_a_batch_whose_state_says_partly_succeeded_has_ended(tmp_path: Path):
    """Gemini's own package does not count it as done, and polls for ever. What it leaves out may have been run."""
    with serve("gemini", run_share=0.5, ends=["PARTIALLY_SUCCEEDED", ""]) as server:
        with pytest.raises(AdjudgeError, match="doubtful"):
            go(server, make_cases(20), tmp_path / "R")
        assert sum(open_run(tmp_path / "R").counts.values()) == 10
        done = go(server, make_cases(20), tmp_path / "R", resume=True, batch=options(pay_again=True))

        assert [len(job.lines) for job in server.jobs.values()] == [20, 10]
    assert done.counts["undecided"] == 0


@every_provider
def test_a_request_that_is_never_run_is_undecided_after_three_batches(kind: str):
    """It costs nothing, and ends as an error that says so."""
    with serve(kind, run_share=0.0, end={"gemini": "EXPIRED"}.get(kind, "expired")) as server:
        done = go(server, make_cases(6))

        assert (len(server.jobs), len(server.run)) == (3, 0)
    assert reasons(done) == {"error": 6}
    assert all("expired" in item.result.detail for item in done.items())


@every_provider
def test_two_different_answers_to_a_request_are_a_contradiction(tmp_path: Path, kind: str):
    """Results that come twice, the second time with another text: neither counts, as in a live reply."""
    with serve(kind, twice=True, shuffle=False) as server:
        done = go(server, make_cases(20), tmp_path / "R")

        assert len(server.jobs) == 1
    assert reasons(done) == {"contradiction": 20}
    assert "answered twice, differently" in read_jobs(tmp_path / "R")[0][1]


@every_provider
def test_lines_are_cut_at_newlines_alone(kind: str):
    """U+2028, U+2029 and U+0085 stand raw in JSON by right, and in the middle of a reply."""
    cases = [Case(id=f"c{n}", content=f"good \u2028 and \u2029 or \x85 here {n}") for n in range(5)]
    with serve(kind) as server:
        done = go(server, cases)

    assert done.counts["passed"] == 5


@every_provider
def test_an_error_of_one_line_is_its_own(kind: str):
    """A line that another try would not mend is undecided with the provider's words; the others are judged."""
    status = 3 if kind == "gemini" else 400
    body = {"error": {"type": "invalid_request_error", "message": "this one is odd", "code": None, "param": None}}
    with serve(kind, fail=lambda prompt: (status, body) if "text 7\n" in prompt else None) as server:
        done = go(server, make_cases(20))

        assert len(server.jobs) == 1
    assert reasons(done) == {"error": 1}
    [failed] = done.items("undecided")
    assert (failed.case.id, "this one is odd" in failed.result.detail) == ("case-7", True)


@every_provider
def test_an_error_that_may_pass_goes_into_the_next_batch(kind: str):
    """Overload, and the provider's own faults; the request is not run, so nothing is paid twice."""
    status = 14 if kind == "gemini" else 500
    body = {"error": {"type": "api_error", "message": "try again", "code": "server_error", "param": None}}
    fails = {"left": 4}

    def fail(_: str) -> tuple[int, dict[str, Any]] | None:
        fails["left"] -= 1
        return (status, body) if fails["left"] >= 0 else None

    with serve(kind, fail=fail) as server:
        done = go(server, make_cases(12))

        assert [len(job.lines) for job in server.jobs.values()] == [12, 4]
    assert done.counts["undecided"] == 0


def test_a_batch_of_which_every_line_failed_has_an_error_file_alone():
    """OpenAI says ``completed`` then, and names no output file."""
    body = {"error": {"message": "no such thing", "type": "invalid_request_error", "code": "bad", "param": None}}
    with serve(fail=lambda _: (400, body)) as server:
        done = go(server, make_cases(5))

        assert len(server.jobs) == 1
    assert reasons(done) == {"error": 5}


def test_a_parameter_that_the_provider_does_not_take_is_left_out_of_the_next_batch():
    """As a live request is sent again without it."""
    error = {"message": "Unsupported parameter: 'temperature'", "param": "temperature", "code": "unsupported_parameter"}

    with serve() as server:
        original = server.answer

        def fail_with_temperature(server: BatchServer = server) -> Any:
            def fail(prompt: str) -> tuple[int, dict[str, Any]] | None:
                job = list(server.jobs.values())[-1]
                body = next(body for _, body in job.lines if server.read_prompt(body) == prompt)
                return (400, {"error": error | {"type": "invalid_request_error"}}) if "temperature" in body else None

            return fail

        server.fail = fail_with_temperature()
        done = go(server, make_cases(6))

        assert [len(job.lines) for job in server.jobs.values()] == [6, 6]
        assert original == server.answer
    assert done.counts["undecided"] == 0


@every_provider
def test_a_state_that_nobody_knows_is_waited_for(tmp_path: Path, kind: str):
    """It is no failure and no end; the run says what the provider said."""
    with serve(kind, words=("rearranging",)) as server:
        done = go(server, make_cases(5), tmp_path / "R")

    assert done.counts["undecided"] == 0


# ---------------------------------------------------------------- creating


@every_provider
def test_a_creation_is_sent_once_and_again_only_when_the_provider_took_none(kind: str):
    """429 says that nothing was created; what ``Retry-After`` asks for is waited."""
    with serve(kind, refuse_creation=[(429, {"Retry-After": "0.1"}), (429, {})]) as server:
        done = go(server, make_cases(10))

        assert (server.creations, len(server.jobs), paid_once(server)) == (3, 1, True)
    assert done.counts["undecided"] == 0


@every_provider
def test_a_creation_whose_answer_is_lost_is_found_again(tmp_path: Path, kind: str):
    """By its label, or by the ids in its results; it is not sent again, and nothing is paid twice."""
    with serve(kind, lose_answers=1) as server:
        done = go(server, make_cases(20), tmp_path / "R")

        assert (server.creations, len(server.jobs), paid_once(server)) == (1, 1, True)
    assert done.counts["undecided"] == 0


@every_provider
def test_a_lost_creation_is_found_behind_many_others(tmp_path: Path, kind: str):
    """The list of a provider is read to its end, page by page."""
    with serve(kind, lose_answers=1, page=3, hides=0) as server:
        running = run(make_cases(4), Judge(server.open()), criteria="Is good.", out=tmp_path / "R", batch=options())

        def bury() -> None:
            for number in range(10):
                server.make_job([(f"other-{number}-{line}", _other_body(kind)) for line in range(4)], f"x{number}")

        thread = threading.Thread(target=lambda: (server.created.wait(HANG), bury()))
        thread.start()
        done = running.finish_sync()
        thread.join()

        assert server.creations == 1
    assert done.counts["undecided"] == 0


@every_provider
def test_a_list_in_another_order_is_read_to_its_end(kind: str):
    """Jobs from long ago come first here: one that is overlooked would be created, and paid for, once more."""
    with serve(kind, lose_answers=1, page=3, oldest_first=True) as server:
        for number in range(10):
            made = server.make_job([(f"other-{number}", _other_body(kind))], f"x{number}")
            made.created_at -= 10 * 86_400 - number
        done = go(server, make_cases(4))

        assert server.creations == 1
    assert done.counts["undecided"] == 0


def _other_body(kind: str) -> dict[str, Any]:
    text = "<<content abcdefgh>>\ngood\n<<end content abcdefgh>>"
    if kind == "gemini":
        return {"contents": [{"parts": [{"text": text}]}]}
    return {"model": "small", "messages": [{"role": "user", "content": text}]}


@every_provider
def test_a_creation_that_never_happened_is_sent_again(kind: str):
    """A server's own error leaves a doubt; the provider's list says that there is none."""
    with serve(kind, refuse_creation=[(500, {}), (503, {})]) as server:
        done = go(server, make_cases(10))

        assert (server.creations, len(server.jobs), paid_once(server)) == (3, 1, True)
    assert done.counts["undecided"] == 0


@every_provider
def test_what_cannot_be_told_is_doubtful_and_sent_again_only_when_that_is_said(tmp_path: Path, kind: str):
    """A server without a list of batches: the run ends and says so, as often as it is resumed."""
    with serve(kind, lose_answers=1, lists=False) as server:
        with pytest.raises(AdjudgeError, match="doubtful"):
            go(server, make_cases(10), tmp_path / "R")
        with pytest.raises(AdjudgeError, match="pay_again"):
            go(server, make_cases(10), tmp_path / "R", resume=True)
        assert (server.creations, read_jobs(tmp_path / "R")[0][0]) == (1, "doubtful")

        done = go(server, make_cases(10), tmp_path / "R", resume=True, batch=options(pay_again=True))
        assert server.creations == 2
    assert done.counts["undecided"] == 0


@every_provider
def test_a_key_that_is_refused_stops_the_run_with_nothing_lost(tmp_path: Path, kind: str):
    """The next process goes on with the same requests."""
    with serve(kind, refuse_creation=[(401, {})]) as server:
        with pytest.raises(AdjudgeError, match="not now"):
            go(server, make_cases(10), tmp_path / "R")
        done = go(server, make_cases(10), tmp_path / "R", resume=True)

        assert (len(server.jobs), paid_once(server)) == (1, True)
    assert (done.status, done.counts["undecided"]) == ("finished", 0)


@pytest.mark.parametrize("kind", ["openai", "gemini"])
def test_one_bad_line_does_not_take_the_others_with_it(kind: str):
    """OpenAI names the line that failed the whole file; Gemini refuses the creation, and halves find it."""
    with serve(kind, bad_line="text 13") as server:
        done = go(server, make_cases(32))

        assert paid_once(server)
    assert reasons(done) == {"error": 1}
    assert [item.case.id for item in done.items("undecided")] == ["case-13"]


def test_a_model_that_no_batch_is_created_for_stops_the_run(tmp_path: Path):
    """Where each part of a part is refused as well, it is not about a line."""
    with serve("anthropic", refuse_creation=[(400, {})] * 1_000) as server:
        with pytest.raises(AdjudgeError, match="no batch can be created"):
            go(server, make_cases(64), tmp_path / "R")

        assert server.creations < 20


# ---------------------------------------------------------------- limits


def test_a_full_queue_is_waited_for_in_smaller_parts():
    """OpenAI counts queued tokens, and says so by a batch that fails."""
    with serve(most_queued=8) as server:
        done = go(server, make_cases(20))

        assert max(len(job.lines) for job in server.jobs.values() if job.end == "completed") <= 8
        assert paid_once(server)
    assert done.counts["undecided"] == 0


def test_no_more_tokens_are_queued_than_the_account_may():
    """Each part is asked when the one before it has ended."""
    with serve() as server:
        done = go(server, make_cases(15), batch=options(tokens=3_000))

        sizes = [len(job.lines) for job in server.jobs.values()]
        assert (sum(sizes), max(sizes) < 10) == (15, True)
    assert done.counts["undecided"] == 0


def test_no_more_cases_wait_than_were_asked_for():
    """``size`` bounds what is in memory, and so the batches."""
    with serve() as server:
        done = go(server, make_cases(25), batch=options(size=10))

        assert [len(job.lines) for job in server.jobs.values()] == [10, 10, 5]
    assert done.counts["undecided"] == 0


@every_provider
def test_ids_are_what_every_provider_takes(kind: str):
    """At most 64 letters, digits, hyphens and underscores, and none twice."""
    cases = [Case(id="ünï / \u2028 " + "x" * 300 + str(n), content=f"good {n}") for n in range(5)]
    with serve(kind) as server:
        go(server, cases, repeat=2)

        ids = [name for job in server.jobs.values() for name, _ in job.lines]
    assert len(set(ids)) == len(ids) == 10
    assert all(0 < len(name) <= 64 and set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-_") for name in ids)


# ---------------------------------------------------------------- waves


def test_seats_that_vote_are_asked_in_one_wave():
    """One batch for each model, all at once."""
    with serve() as server:
        chain = JudgeChain([server.open(f"m{n}") for n in range(3)], strategy="majority")
        done = go(server, make_cases(10), judge=chain)

        models = [{body["model"] for _, body in job.lines} for job in server.jobs.values()]
        assert sorted(map(sorted, models)) == [["m0"], ["m1"], ["m2"]]
        assert list_results(done) == list_results(live(server, make_cases(10), judge=chain))
    assert all(len(item.result.results) == 3 for item in done.items())


def test_two_seats_of_one_model_are_two_requests():
    """They are asked separately, as live."""
    with serve() as server:
        chain = JudgeChain([server.open(), server.open()], strategy="consensus")
        done = go(server, make_cases(10), judge=chain)

        assert sum(len(job.lines) for job in server.jobs.values()) == 20
    assert done.counts["undecided"] == 0


def test_a_fallback_asks_its_next_seat_in_the_next_wave():
    """And only about the cases that the first left undecided."""
    cases = [Case(id=f"c{n}", content=f"{'prose' if n < 3 else 'good'} {n}") for n in range(10)]
    with serve() as server:
        chain = JudgeChain([Judge(server.open("first"), reask=0), server.open("second")])
        done = go(server, cases, judge=chain)

        asked = [(job.lines[0][1]["model"], len(job.lines)) for job in server.jobs.values()]
        assert asked[:2] == [("first", 10), ("second", 3)]
        assert list_results(done) == list_results(live(server, cases, judge=chain))


def test_an_unreadable_reply_is_asked_again_in_the_next_batch():
    """By the same rules as live: once, with the reminder, and both replies are kept."""
    cases = [Case(id=f"c{n}", content=f"{'prose' if n < 4 else 'good'} {n}") for n in range(12)]
    with serve() as server:
        done = go(server, cases)

        assert [len(job.lines) for job in server.jobs.values()] == [12, 4]
    assert (done.counts["passed"], done.usage.calls) == (12, 16)
    assert sorted(item.result.attempts for item in done.items()) == [1] * 8 + [2] * 4


def test_an_unreadable_reply_is_asked_again_live_when_that_is_wanted():
    """So the run ends after its first batch."""
    cases = [Case(id=f"c{n}", content=f"{'prose' if n < 4 else 'good'} {n}") for n in range(12)]
    with serve(run_share=0.9, ends=["expired"]) as server:
        done = go(server, cases, batch=options(then="live"))

        assert len(server.jobs) == 1
        assert sum(server.live.values()) >= 4
    assert done.counts["passed"] == 12


def test_pairs_are_compared_by_batch():
    """Both orders are in one batch."""
    cases = [Case(id=f"p{n}", content={"a": f"good {n}", "b": f"bad {n}"}) for n in range(3)]
    with serve() as server:
        done = go(server, cases, pairs=True)

        assert [len(job.lines) for job in server.jobs.values()] == [6]
    assert [item.result.undecided_because for item in done.items()] == [None] * 3


def test_a_function_among_the_seats_is_asked_at_once():
    """It has no batches, and is a seat like any other."""

    def find_good(content: str) -> bool:
        return "good" in content

    with serve() as server:
        chain = JudgeChain([server.open(), find_good], strategy="consensus")
        done = go(server, make_cases(10), judge=chain)

        assert len(server.jobs) == 1
    assert done.counts == {"passed": 6, "failed": 4, "undecided": 0}


def test_a_hedged_chain_is_refused():
    """It asks the next seat when one is late, and a batch is always late."""
    with serve() as server:
        chain = JudgeChain([server.open(), server.open()], strategy="hedged", hedge_after=1.0)
        with pytest.raises(UsageError, match="hedged"):
            go(server, make_cases(2), judge=JudgeChain([server.open("x"), chain]))


def test_a_judge_without_batches_is_refused():
    """A function alone, a judge of one's own, and a provider that has none here."""
    judges = [Judge(lambda prompt: prompt), Judge("mistral:x"), "ollama:x", "azure:x"]
    for judge in judges:
        with pytest.raises(UsageError, match="batch"):
            run(make_cases(2), judge, criteria="Is good.", batch=True).finish_sync()


def test_a_model_without_batches_is_refused_when_the_call_names_it(tmp_path: Path):
    """``model=`` puts another model in the place of the judge's. Nothing is asked, and no run is left behind."""
    recorded = tmp_path / "recorded.jsonl"
    recorded.write_text('{"model": "openai:small", "case": "c", "reply": {"text": "yes"}}\n', encoding="utf-8")
    with serve() as server:
        for model in (f"replay:{recorded}", "ollama:x"):
            with pytest.raises(UsageError, match="cannot be asked by batch"):
                go(server, make_cases(2), tmp_path / "R", model=model)
        assert (server.creations, sum(server.live.values())) == (0, 0)

    with pytest.raises(UsageError, match="holds no run"):
        open_run(tmp_path / "R")


# ---------------------------------------------------------------- the first cases


def test_a_broken_prompt_costs_the_first_cases_and_no_batch(tmp_path: Path):
    """They are judged live, and nothing is sent when half of them are undecided."""
    with serve() as server:
        with pytest.raises(AdjudgeError, match="nothing was sent by batch"):
            go(server, make_cases(200), tmp_path / "R", Judge(server.open("mute"), reask=0), batch=options(check=20))

        assert (sum(server.live.values()), server.creations) == (20, 0)
    assert open_run(tmp_path / "R").counts["undecided"] == 20


def test_the_first_cases_are_live_and_the_rest_by_batch():
    """They count as judged."""
    with serve() as server:
        done = go(server, make_cases(50), batch=options(check=20))

        assert (sum(server.live.values()), [len(job.lines) for job in server.jobs.values()]) == (20, [30])
    assert done.counts["undecided"] == 0


def test_fewer_cases_than_are_checked_are_all_judged_live():
    """There is nothing left to send."""
    with serve() as server:
        done = go(server, make_cases(5), batch=options(check=20))

        assert (sum(server.live.values()), server.creations) == (5, 0)
    assert done.status == "finished"


# ---------------------------------------------------------------- leaving and going on


def test_a_run_that_is_wound_down_leaves_its_batches_and_another_collects_them(tmp_path: Path):
    """Nothing is sent again: the next process waits for the same batch."""
    with serve(looks=1_000_000) as server:
        running = run(make_cases(30), Judge(server.open()), criteria="Is good.", out=tmp_path / "R", batch=options())
        left = leave_soon(server, running)
        assert (left.status, sum(left.counts.values()), len(server.jobs)) == ("interrupted", 0, 1)

        server.looks = 0
        done = go(server, make_cases(30), tmp_path / "R", resume=True)
        assert (server.creations, paid_once(server)) == (1, True)
    assert (done.status, done.counts["undecided"]) == ("finished", 0)


def test_a_run_by_batches_goes_on_by_batches(tmp_path: Path):
    """Also where ``batch`` is not said again: what was sent must not be asked, and paid, once more."""
    with serve(refuse_creation=[(401, {})]) as server:
        with pytest.raises(AdjudgeError):
            go(server, make_cases(10), tmp_path / "R")
        judge = Judge(server.open())
        running = run(make_cases(10), judge, criteria="Is good.", out=tmp_path / "R", resume=True)
        running.finish_sync()

        assert (len(server.jobs), sum(server.live.values())) == (1, 0)


def test_options_that_a_folder_names_and_nobody_knows_are_refused(left: tuple[BatchServer, Path]):
    """A later version may have written them: to go on without one could send what is not to be sent."""
    server, folder = left
    path = folder / "run.json"
    kept = json.loads(path.read_text("utf-8"))
    for changes, message in (({"shuffle": True}, "'shuffle'"), ({"size": "many"}, "size")):
        batch = {**kept["options"]["batch"], **changes}
        path.write_text(json.dumps({**kept, "options": {**kept["options"], "batch": batch}}), encoding="utf-8")
        with pytest.raises(UsageError, match=message):
            run(make_cases(10), Judge(server.open()), criteria="Is good.", out=folder, resume=True).finish_sync()

    assert server.creations == 1


@pytest.fixture(name="left")
def provide_left(tmp_path: Path) -> Iterator[tuple[BatchServer, Path]]:
    """A run that ended while its batch was doubtful."""
    with serve(lose_answers=1, lists=False) as server:
        with pytest.raises(AdjudgeError):
            go(server, make_cases(10), tmp_path / "R")
        server.lists = True
        yield server, tmp_path / "R"


def test_another_key_is_no_reason_to_ask_again(left: tuple[BatchServer, Path], monkeypatch: pytest.MonkeyPatch):
    """A job is to be seen by the account that created it alone; with another it is not lost."""
    server, folder = left
    monkeypatch.setenv("OTHER_KEY", "another-key-of-another-account")
    from adjudge import open_model

    other = Judge(open_model("openai:small", base_url=server.base, key_env="OTHER_KEY"))
    with pytest.raises(UsageError, match="another key"):
        go(server, make_cases(10), folder, other, resume=True)
    assert server.creations == 1


def test_a_run_has_a_secret_of_its_own_for_its_owner_alone(left: tuple[BatchServer, Path]):
    """Tokens are made from it, so that another process reads the replies; without it they cannot be read."""
    server, folder = left
    secret = folder / "batch.secret"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "batches.sqlite").stat().st_mode) == 0o600

    kept = secret.read_text()
    secret.unlink()
    with pytest.raises(UsageError, match="put it back"):
        go(server, make_cases(10), folder, resume=True)
    secret.write_text(kept)
    done = go(server, make_cases(10), folder, resume=True)

    assert (done.counts["undecided"], server.creations) == (0, 1)
    assert kept.strip() not in json.dumps(done.to_dict())
    assert kept.strip().encode() not in b"".join(row for row in done.store.replies())


def test_replies_stay_in_the_run_with_their_token_masked(tmp_path: Path):
    """The file of the batches lets go of them, where the token stands in them."""
    with serve() as server:
        done = go(server, make_cases(5), tmp_path / "R")

    with closing(sqlite3.connect(tmp_path / "R" / "batches.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM requests WHERE body IS NOT NULL").fetchone() == (0,)
    assert all(b"{{token}}" in row for row in done.store.replies())


def test_what_is_judged_anew_is_sent_anew(tmp_path: Path):
    """``retry`` asks again what could not be read, by batch."""
    with serve() as server:
        judge = Judge(server.open("mute"), reask=0)
        first = go(server, make_cases(6), tmp_path / "R", judge)
        assert reasons(first) == {"unparseable": 6}

        go(server, make_cases(6), tmp_path / "R", judge, resume=True, retry=["unparseable"])
        assert [len(job.lines) for job in server.jobs.values()] == [6, 6]


def test_an_error_of_a_line_is_asked_again_when_that_is_wanted(tmp_path: Path):
    """``retry`` of errors: what failed before is no answer."""
    body = {"error": {"type": "invalid_request_error", "message": "odd", "code": None, "param": None}}
    with serve(fail=lambda _: (400, body)) as server:
        first = go(server, make_cases(6), tmp_path / "R")
        assert reasons(first) == {"error": 6}

        server.fail = lambda _: None
        done = go(server, make_cases(6), tmp_path / "R", resume=True, retry=["error"])
    assert done.counts["undecided"] == 0


# ---------------------------------------------------------------- money


PRICES = {"small": {"input": 1_000.0, "output": 1_000.0}}
"""A call of 900 tokens in and 40 out costs 0.94 dollars; its most is about 4."""


@pytest.mark.slow
def test_a_budget_holds_for_batches():
    """The whole of a part is held before it is created; what does not fit is undecided, and not sent."""
    with serve() as server:
        judge = Judge(server.open(), max_output_tokens=100)
        done = go(server, make_cases(20), judge=judge, budget=10.0, prices=PRICES)

        spent = 0.94 * len(server.run)
    assert spent <= 10.0
    assert set(reasons(done)) == {"budget"}
    assert done.counts["undecided"] == 20 - len(server.run)


@pytest.mark.slow
def test_a_run_that_goes_on_holds_what_is_under_way_once(tmp_path: Path):
    """What waits at a provider is held by the process that waits for it, and not by each before it."""
    with serve(looks=1_000_000) as server:
        judge = Judge(server.open(), max_output_tokens=100)
        cases = make_cases(10)
        for _ in range(3):
            settings: Any = {"batch": options(), "budget": 60.0, "prices": PRICES, "resume": True}
            running = run(cases, judge, criteria="Is good.", out=tmp_path / "R", **settings)

            leave_soon(server, running)

        server.looks = 0
        done = go(server, cases, tmp_path / "R", judge, budget=60.0, prices=PRICES, resume=True)
        assert (len(server.jobs), paid_once(server)) == (1, True)
    assert done.counts["undecided"] == 0


def test_options_of_batches_are_checked():
    """Before anything is opened."""
    for wrong in ({"check": -1}, {"then": "later"}, {"size": 0}, {"poll": 0}, {"tokens": 0}, {"pay_again": 1}):
        with pytest.raises(UsageError):
            BatchOptions(**wrong)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="BatchOptions"):
        run([], "openai:x", criteria="c", batch="yes")  # type: ignore[arg-type]
