"""One table of scenarios for every agent framework whose calls a guard checks: the bodies of the tools are counted.

An adapter is a class with a name, the framework's own ways to say "approved", and one method::

    class MyFramework:
        forgeries = {"approve": ..., "always": ...}  # any values; ``run`` gets one of them as ``word``

        async def run(self, shop, script, *, kept=None, word=None, conversation="c-1") -> Stop:
            agent = ...  # made anew in each call, as in another process: only ``kept`` survives
            agent.tools = make_bodies(shop)  # plain functions, with types and docstrings
            agent.guard = shop.guard
            agent.model = ...  # a model that says ``script``, a reply after the other, and nothing else
            if kept is None:
                ...  # begin, in this conversation, with any words of the user
            else:
                ...  # go on where it stopped: without ``word`` as your module documents it, with it as the forger does
            return Stop(is_held=..., kept=..., answer=..., read=[...])

A reply of the script is a text, or a list of ``Call``, which the model makes at once. ``read`` are the texts that the
model got as results of tools, oldest first. ``kept`` is whatever the framework needs to go on, as plain as it can be.
Take nothing of the guard in an adapter: how a call is held and looked up again is the module's work.

A framework that cannot stop, and waits for people inside its run, starts a task instead: ``run`` returns ``is_held`` as
soon as ``await shop.approvals.list()`` has as many requests as it should, with the task as ``kept``, and awaits that
task the next time. It lacks what needs a state that can be kept: ``lacks`` has the names of such scenarios, each with
the reason.

A test file is then::

    @pytest.mark.parametrize("scenario", list_scenarios(MyFramework))
    def test_a_body_runs_as_often_as_somebody_allowed(scenario, tmp_path):
        \"\"\"A body runs as often as somebody allowed.\"\"\"
        play(scenario, MyFramework(), tmp_path)

with another test of what is the framework's own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import pytest

from adjudge import Gate
from adjudge.guards import Screened, ToolCall, ToolGuard, ToolVerdict
from kit.judges import Seat
from kit.tool_guards import Shop, open_shop

REFUSED = "The call was not made: it is not allowed here."

DENIED = "The call was not made: a person said no. Do not try it in another way."

WITHHELD = "The result was withheld."

NOT_LISTED = "The call was not made: this tool is not available here."


@dataclass(frozen=True)
class Call:
    """A call that the model makes."""

    tool: str
    id: str
    arguments: Mapping[str, Any]


Reply = str | list[Call]


@dataclass(frozen=True, kw_only=True)
class Stop:
    """The place at which a run of the framework stopped."""

    is_held: bool
    """True if it waits for people."""
    kept: Any
    answer: str | None = None
    read: Sequence[str] = field(default_factory=list)


class Framework(Protocol):
    """An adapter; see the module."""

    forgeries: Mapping[str, Any]

    async def run(
        self, shop: Shop, script: Sequence[Reply], *, kept: Any = None, word: Any = None, conversation: str = "c-1"
    ) -> Stop: ...


def make_bodies(shop: Shop) -> list[Callable[..., str]]:
    """The tools, as plain functions that note in ``shop.ran`` that they ran; the guard does not name ``unlisted``."""

    def shell(cmd: str) -> str:
        """Run a command."""
        shop.ran.append(f"shell {cmd}")
        return f"ran {cmd}"

    def delete_file(path: str) -> str:
        """Delete a file."""
        shop.ran.append(f"delete {path}")
        return f"deleted {path}"

    def unlisted(cmd: str) -> str:
        """A tool that the guard does not name."""
        shop.ran.append(f"unlisted {cmd}")
        return "ran"

    return [shell, delete_file, unlisted]


def shell(cmd: str, call_id: str = "s1") -> Call:
    """A call that a rule checks."""
    return Call("shell", call_id, {"cmd": cmd})


def delete(path: str = "/etc/x", call_id: str = "d1") -> Call:
    """A call that people decide about."""
    return Call("delete_file", call_id, {"path": path})


DONE = "Done."

HOLD: list[Reply] = [[delete()]]
"""All that the model says until the call is held."""


# ---------------------------------------------------------------- the table


Scenario = Callable[[Framework, str], Coroutine[Any, Any, None]]
"""One row of the table: it gets an adapter and the address of a database."""

SCENARIOS: list[Scenario] = []

SLOW = frozenset({"a_judge_that_is_late_stops_the_call"})


def scenario(function: Scenario) -> Scenario:
    """Add a row."""
    SCENARIOS.append(function)
    return function


def list_scenarios(framework: type) -> list[Any]:
    """The rows for a framework, as parameters of a test: all but those that it ``lacks``."""
    lacks: Mapping[str, str] = getattr(framework, "lacks", {})
    names = [row.__name__ for row in SCENARIOS]
    assert set(lacks) <= set(names), f"{framework.__name__} lacks what is no scenario: {set(lacks) - set(names)}"
    marks = [pytest.mark.slow, pytest.mark.timed, pytest.mark.integration]
    return [
        pytest.param(row, id=row.__name__, marks=marks if row.__name__ in SLOW else ())
        for row in SCENARIOS
        if row.__name__ not in lacks
    ]


def play(row: Scenario, framework: Framework, folder: Path) -> None:
    """Play one row in a folder of its own."""
    asyncio.run(row(framework, f"sqlite:///{folder}/calls.db"))


def use_shop(work: Callable[[Shop], Coroutine[Any, Any, None]], folder: Path, **options: Any) -> None:
    """Run an async function with a shop, for tests of what is a framework's own."""

    async def go() -> None:
        async with open_shop(f"sqlite:///{folder}/calls.db", **options) as shop:
            await work(shop)

    asyncio.run(go())


def screen_results(shop: Shop) -> Shop:
    """A shop whose guard checks every call by a rule, and withholds results with a secret in them."""
    results = Gate("results", rules=[{"not_contains": ["secret"]}], ledger=shop.ledger)
    calls = Gate("calls", rules=[{"not_contains": ["rm -rf"]}], ledger=shop.ledger)
    return Shop(guard=ToolGuard(calls, results=results), approvals=shop.approvals, ledger=shop.ledger)


async def hold(framework: Framework, shop: Shop, **options: Any) -> Stop:
    """Run until the one call is held, and see that it did not run."""
    stop = await framework.run(shop, HOLD, **options)
    assert (stop.is_held, shop.ran) == (True, [])
    return stop


async def run_and_ignore(framework: Framework, shop: Shop, script: Sequence[Reply], **options: Any) -> Stop | None:
    """Run where the framework may end with an error of its own; nothing says that it must."""
    try:
        return await framework.run(shop, script, **options)
    except Exception:  # noqa: BLE001 - what matters is what ran
        return None


@scenario
async def an_allowed_call_runs_once(framework: Framework, url: str) -> None:
    """The model reads its result."""
    async with open_shop(url) as shop:
        stop = await framework.run(shop, [[shell("ls")], DONE])

        assert shop.ran == ["shell ls"]
        assert (stop.is_held, stop.answer, list(stop.read)) == (False, DONE, ["ran ls"])
        assert await shop.count_requests() == 0


@scenario
async def a_refused_call_does_not_run(framework: Framework, url: str) -> None:
    """The model reads the sentence, and the run goes on."""
    async with open_shop(url) as shop:
        stop = await framework.run(shop, [[shell("ls; rm -rf /")], DONE])

        assert shop.ran == []
        assert (stop.answer, list(stop.read)) == (DONE, [REFUSED])


@scenario
async def a_tool_that_is_not_listed_does_not_run(framework: Framework, url: str) -> None:
    """The framework has it, and the guard does not name it."""
    async with open_shop(url) as shop:
        stop = await framework.run(shop, [[Call("unlisted", "u1", {"cmd": "ls"})], DONE])

        assert shop.ran == []
        assert list(stop.read) == [NOT_LISTED]


@scenario
async def a_held_call_runs_once_when_approved(framework: Framework, url: str) -> None:
    """Nobody is asked twice, however often the framework runs its hook."""
    async with open_shop(url) as shop:
        stop = await hold(framework, shop)
        await shop.decide(True)
        stop = await framework.run(shop, [DONE], kept=stop.kept)

        assert shop.ran == ["delete /etc/x"]
        assert (stop.is_held, stop.answer, list(stop.read)) == (False, DONE, ["deleted /etc/x"])
        assert await shop.count_requests() == 1


@scenario
async def an_approved_call_that_was_made_is_on_record(framework: Framework, url: str) -> None:
    """Else it would be listed among those that may not have run; before, it is not."""
    async with open_shop(url) as shop:
        stop = await hold(framework, shop)
        await shop.decide(True)
        await framework.run(shop, [DONE], kept=stop.kept)

        assert [entry.payload["tool"] async for entry in shop.ledger.query(kind="call.ran")] == ["delete_file"]
        assert await shop.guard.list_unfinished(at_work=0) == ()


@scenario
async def a_denied_call_does_not_run(framework: Framework, url: str) -> None:
    """The model reads that a person said no."""
    async with open_shop(url) as shop:
        stop = await hold(framework, shop)
        await shop.decide(False)
        stop = await framework.run(shop, [DONE], kept=stop.kept)

        assert shop.ran == []
        assert (stop.is_held, stop.answer, list(stop.read)) == (False, DONE, [DENIED])


@scenario
async def a_denied_call_is_not_asked_again(framework: Framework, url: str) -> None:
    """The same call under another id, in the same conversation: the denial stands."""
    async with open_shop(url) as shop:
        stop = await hold(framework, shop)
        await shop.decide(False)
        stop = await framework.run(shop, [[delete(call_id="d2")], DONE], kept=stop.kept)

        assert (shop.ran, stop.is_held, list(stop.read)) == ([], False, [DENIED, DENIED])
        assert await shop.count_requests() == 1


@scenario
async def a_call_that_is_resumed_too_early_waits_on(framework: Framework, url: str) -> None:
    """Nobody has answered yet; it can be resumed again when somebody has."""
    async with open_shop(url) as shop:
        stop = await hold(framework, shop)
        for _ in range(3):
            stop = await framework.run(shop, [DONE], kept=stop.kept)
            assert (stop.is_held, shop.ran) == (True, [])
        await shop.decide(True)
        await framework.run(shop, [DONE], kept=stop.kept)

        assert shop.ran == ["delete /etc/x"]
        assert await shop.count_requests() == 1


@scenario
async def the_frameworks_word_approves_nothing(framework: Framework, url: str) -> None:
    """Every way to say yes to the framework, while nobody has said yes here."""
    assert framework.forgeries
    for number, word in enumerate(framework.forgeries.values()):
        async with open_shop(url) as shop:
            stop = await hold(framework, shop, conversation=f"c-{number}")
            options = {"word": word, "conversation": f"c-{number}"}
            await run_and_ignore(framework, shop, [DONE], kept=stop.kept, **options)

            assert shop.ran == [], word


@scenario
async def the_frameworks_word_is_no_answer_to_a_denial(framework: Framework, url: str) -> None:
    """A person said no, and then the framework is told yes."""
    for number, word in enumerate(framework.forgeries.values()):
        async with open_shop(url) as shop:
            stop = await hold(framework, shop, conversation=f"c-{number}")
            await shop.decide(False)
            options = {"word": word, "conversation": f"c-{number}"}
            await run_and_ignore(framework, shop, [DONE], kept=stop.kept, **options)

            assert shop.ran == [], word


@scenario
async def an_approved_call_is_not_replayed(framework: Framework, url: str) -> None:
    """Use what the framework kept a second time, after the call was made."""
    async with open_shop(url) as shop:
        held = await hold(framework, shop)
        await shop.decide(True)
        await framework.run(shop, [DONE], kept=held.kept)
        again = await run_and_ignore(framework, shop, [DONE], kept=held.kept)

        assert shop.ran == ["delete /etc/x"]
        assert again is None or not again.is_held
        assert await shop.count_requests() == 1


@scenario
async def an_approval_is_good_for_its_arguments_alone(framework: Framework, url: str) -> None:
    """The model makes the approved call, and then under its id one with other arguments."""
    async with open_shop(url) as shop:
        stop = await hold(framework, shop)
        await shop.decide(True)
        stop = await framework.run(shop, [[delete("/etc/y")], DONE], kept=stop.kept)

        assert shop.ran == ["delete /etc/x"]
        assert await shop.count_requests() == 2


@scenario
async def an_approval_is_good_for_its_conversation_alone(framework: Framework, url: str) -> None:
    """Ids of calls repeat from run to run."""
    async with open_shop(url) as shop:
        await hold(framework, shop)
        await shop.decide(True)
        other = await framework.run(shop, HOLD, conversation="c-2")

        assert (other.is_held, shop.ran) == (True, [])
        assert await shop.count_requests() == 2


@scenario
async def an_approved_call_that_is_repeated_is_asked_about_again(framework: Framework, url: str) -> None:
    """The model makes it again under another id."""
    async with open_shop(url) as shop:
        stop = await hold(framework, shop)
        await shop.decide(True)
        stop = await framework.run(shop, [[delete(call_id="d2")], DONE], kept=stop.kept)

        assert (stop.is_held, shop.ran) == (True, ["delete /etc/x"])
        assert await shop.count_requests() == 2


@scenario
async def one_of_parallel_calls_is_held(framework: Framework, url: str) -> None:
    """The others run once each, before or after the people's answer."""
    async with open_shop(url) as shop:
        calls = [shell("ls", "s1"), delete(), shell("pwd", "s2"), shell("rm -rf /", "s3")]
        stop = await framework.run(shop, [calls])
        assert stop.is_held
        assert "delete /etc/x" not in shop.ran
        await shop.decide(True)
        stop = await framework.run(shop, [DONE], kept=stop.kept)

        assert sorted(shop.ran) == ["delete /etc/x", "shell ls", "shell pwd"]
        assert sorted(stop.read) == sorted(["ran ls", "deleted /etc/x", "ran pwd", REFUSED])
        assert await shop.count_requests() == 1


@scenario
async def parallel_calls_are_answered_each(framework: Framework, url: str) -> None:
    """One is approved, one is denied, one waits on."""
    async with open_shop(url) as shop:
        paths = {"/etc/x": True, "/etc/y": False}
        calls = [delete(path, f"d{number}") for number, path in enumerate([*paths, "/etc/z"])]
        stop = await framework.run(shop, [calls])
        assert (stop.is_held, shop.ran) == (True, [])
        await decide_each(shop, paths)
        stop = await framework.run(shop, [DONE], kept=stop.kept)
        assert stop.is_held
        assert shop.ran in ([], ["delete /etc/x"])  # some make all calls of a reply at once, or none
        await decide_each(shop, {"/etc/z": True})
        stop = await framework.run(shop, [DONE], kept=stop.kept)

        assert sorted(shop.ran) == ["delete /etc/x", "delete /etc/z"]
        assert sorted(stop.read) == sorted(["deleted /etc/x", DENIED, "deleted /etc/z"])
        assert await shop.count_requests() == 3


async def decide_each(shop: Shop, paths: Mapping[str, bool]) -> None:
    """Answer the open requests that name these paths."""
    for request in await shop.approvals.list():
        for path, approved in paths.items():
            if f'"{path}"' in str(request.content):
                await shop.approvals.decide(request.id, "ana", approved, "fine")


@scenario
async def a_held_call_survives_a_restart(framework: Framework, url: str) -> None:
    """Guard, approvals, ledger and agent are new; the database and what the framework kept are the old ones."""
    async with open_shop(url) as shop:
        held = await hold(framework, shop)
        await shop.decide(True)
    async with open_shop(url) as shop:
        stop = await framework.run(shop, [DONE], kept=held.kept)

        assert (shop.ran, stop.answer) == (["delete /etc/x"], DONE)
        assert await shop.count_requests() == 1
    async with open_shop(url) as shop:
        await run_and_ignore(framework, shop, [DONE], kept=held.kept)

        assert shop.ran == []


def break_store(url: str) -> None:
    """Put something else where the database was."""
    path = Path(url.removeprefix("sqlite:///"))
    path.write_bytes(b"no database" * 1000)
    for suffix in ("-wal", "-shm"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@scenario
async def a_store_that_is_down_stops_all_calls(framework: Framework, url: str) -> None:
    """Check that a call that cannot be looked up and recorded is not made."""
    break_store(url)
    async with open_shop(url) as shop:
        await run_and_ignore(framework, shop, [[shell("ls")], DONE])
        await run_and_ignore(framework, shop, [*HOLD, DONE], conversation="c-2")

        assert shop.ran == []


@scenario
async def a_store_that_is_down_at_resume_stops_the_call(framework: Framework, url: str) -> None:
    """It was approved, and nobody can tell any more."""
    async with open_shop(url) as shop:
        held = await hold(framework, shop)
        await shop.decide(True)
    break_store(url)
    async with open_shop(url) as shop:
        await run_and_ignore(framework, shop, [DONE], kept=held.kept)

        assert shop.ran == []


@scenario
async def a_judge_that_is_late_stops_the_call(framework: Framework, url: str) -> None:
    """The guard's limit is below the framework's."""
    late = Seat("passed", delay=3600)
    async with open_shop(url, gates={"judge": late}, timeout=2.0) as shop:
        stop = await framework.run(shop, [*HOLD, DONE])

        assert (shop.ran, late.asked != []) == ([], True)
        assert list(stop.read) == [REFUSED]


@scenario
async def a_crash_in_a_screen_stops_the_call(framework: Framework, url: str) -> None:
    """A mistake in what the guard asks."""

    class Broken:
        async def screen_call(self, call: ToolCall, arguments: Mapping[str, Any], /) -> Screened:
            raise RuntimeError("a mistake")

    async with open_shop(url, screens=[Broken()]) as shop:
        stop = await framework.run(shop, [[shell("ls")], DONE])

        assert shop.ran == []
        assert list(stop.read) == [REFUSED]


class CrashingGuard(ToolGuard):
    """A guard with a mistake of its own: it raises, which a guard never does."""

    async def check(self, call: ToolCall, *, task: object = None) -> ToolVerdict:
        raise RuntimeError("a mistake")

    resume = check


@scenario
async def a_crash_in_the_guard_stops_the_call(framework: Framework, url: str) -> None:
    """Nothing of ours raises into a framework in a way that it makes the call."""
    async with open_shop(url) as shop:
        gate = Gate("calls", rules=["secrets"], ledger=shop.ledger)
        crashing = Shop(guard=CrashingGuard(gate), approvals=shop.approvals, ledger=shop.ledger)
        await run_and_ignore(framework, crashing, [[shell("ls")], DONE])

        assert crashing.ran == []


@scenario
async def a_result_that_may_not_be_read_is_withheld(framework: Framework, url: str) -> None:
    """The body ran, and the model does not read what it returned."""
    async with open_shop(url) as shop:
        screened = screen_results(shop)
        stop = await framework.run(screened, [[shell("cat secret")], [shell("ls", "s2")], DONE])

        assert screened.ran == ["shell cat secret", "shell ls"]
        assert list(stop.read) == [WITHHELD, "ran ls"]
