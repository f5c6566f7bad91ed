"""Rules look at long contents in two threads, so that the event loop goes on; short ones are looked at at once."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import rapidfuzz.distance

import adjudge
from adjudge import Gate, Judge, Rule
from adjudge.rules import as_rule
from kit.patience import HANG
from kit.rules import EXAMPLES

pytestmark = pytest.mark.timed


LONG = "1: " * 60_000
SCREEN = "personal_data"


def judge_it(content: object) -> bool:
    return content is not None


@dataclass(frozen=True)
class WatchedCheck:
    """The check of a rule, which notes its thread and waits in it until the event loop has had a turn."""

    check: Callable[..., Any]
    loop: asyncio.AbstractEventLoop
    threads: list[str]

    @property
    def is_thread_safe(self) -> bool:
        return bool(getattr(self.check, "is_thread_safe", False))

    def __call__(self, *arguments: object) -> Any:
        self.threads.append(threading.current_thread().name)
        if threading.current_thread() is not threading.main_thread():
            turned = threading.Event()
            self.loop.call_soon_threadsafe(turned.set)
            assert turned.wait(HANG), "the event loop waits for the rule"
        return self.check(*arguments)


def watch_threads(spec: Any, check: Callable[[Rule], Any]) -> set[str]:
    """The names of the threads, without their numbers, in which a rule looks."""
    rule = as_rule(spec)
    threads: list[str] = []

    async def run() -> None:
        watched = WatchedCheck(rule.evaluate, asyncio.get_running_loop(), threads)
        await check(replace(rule, evaluate=watched))

    asyncio.run(run())
    return {name.rpartition("_")[0] for name in threads}


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_rule_that_ships_looks_at_long_content_in_a_thread(name: str):
    """One of its own, while the event loop goes on."""
    assert watch_threads(EXAMPLES[name], lambda rule: rule.check(LONG, LONG)) == {"adjudge-rules"}


@pytest.mark.parametrize(
    "check",
    [
        lambda rule: Gate("g", rules=[rule]).check(LONG),
        lambda rule: Judge(judge_it, name="j").evaluate(LONG, criteria="Good.", rules=[rule, {"regex": "never"}]),
        lambda rule: rule.check([{"mail": "a@b.co"}] * 5_000),
    ],
    ids=["gate", "judge", "values"],
)
def test_whoever_checks_long_content_has_it_looked_at_in_a_thread(check: Callable[[Rule], Any]):
    """Gates and judges too, and of many values as of a long text."""
    assert watch_threads(SCREEN, check) == {"adjudge-rules"}


@pytest.mark.parametrize("spec", [SCREEN, "secrets", "unicode", "json", {"regex": "a"}])
def test_short_content_is_looked_at_at_once(spec: Any):
    """Without a turn of the event loop, which a thread would cost."""

    async def run() -> None:
        work = as_rule(spec).check("Thank you for your order.")
        with pytest.raises(StopIteration):
            work.send(None)

    asyncio.run(run())


def test_a_function_of_yours_is_called_where_it_was():
    """It may belong to its thread, as a connection to a database does."""
    seen: list[threading.Thread] = []

    def look(content: str) -> bool:
        seen.append(threading.current_thread())
        return len(content) > 1

    async def run() -> threading.Thread:
        assert (await Gate("g", rules=[look]).check(LONG)).allowed
        assert (await as_rule(Rule(name="own", evaluate=look)).check(LONG)).passed
        return threading.current_thread()

    here = asyncio.run(run())
    assert seen == [here, here]


def test_no_more_than_two_threads_look_at_contents():
    """However many contents are checked at a time."""
    gate = Gate("g", rules=["secrets", "unicode", SCREEN])

    async def run() -> int:
        work = [asyncio.ensure_future(gate.check(f"{LONG}{number}")) for number in range(8)]
        most = 0
        while not all(item.done() for item in work):
            most = max(most, sum(thread.name.startswith("adjudge-rules") for thread in threading.enumerate()))
            await asyncio.sleep(0.001)
        return most

    assert asyncio.run(run()) == 2


def test_one_thread_compares_at_a_time(monkeypatch: pytest.MonkeyPatch):
    """A comparison keeps the interpreter's lock: the event loop waits for one, and not for two by turns."""
    comparing: list[int] = []
    most: list[int] = []

    def compare(ours: str, theirs: str) -> float:
        comparing.append(1)
        most.append(len(comparing))
        time.sleep(0.01)
        comparing.pop()
        return 1.0

    monkeypatch.setattr(rapidfuzz.distance.Indel, "normalized_similarity", compare)

    async def run() -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(16):
                tasks.create_task(as_rule("similarity").check(LONG[:9_000], LONG[:9_000]))

    asyncio.run(run())
    assert most == [1] * 16


def test_a_short_comparison_waits_for_no_long_one(monkeypatch: pytest.MonkeyPatch):
    """It is made by the event loop, which must not wait for a thread."""
    entered, may_end = threading.Event(), threading.Event()

    def compare(ours: str, theirs: str) -> float:
        if len(ours) > 100:
            entered.set()
            assert may_end.wait(HANG)
        return 1.0

    monkeypatch.setattr(rapidfuzz.distance.Indel, "normalized_similarity", compare)

    async def run() -> None:
        long = asyncio.ensure_future(as_rule("similarity").check(LONG[:9_000], LONG[:9_000]))
        await asyncio.to_thread(entered.wait)
        assert (await as_rule("similarity").check("a", "a")).passed
        assert not long.done()
        may_end.set()
        assert (await long).passed

    asyncio.run(run())


@pytest.mark.parametrize("inner", [False, True], ids=["rules", "rules in a rule"])
def test_a_time_limit_ends_rules(inner: bool):
    """What is under way is left alone, and nothing further is begun: the threads are free for others soon after."""
    many = [{"some_of": [SCREEN] * 64}] * 4 if inner else [SCREEN] * 200
    gate = Gate("g", rules=many)

    async def run() -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await gate.check(LONG)
        # Of the 600 (768) looks at this text, each of which takes a tenth of a second, some had begun.
        async with asyncio.timeout(HANG):
            assert (await as_rule({"length": 1_000_000}).check(LONG)).passed

    asyncio.run(run())


def test_results_are_the_same_in_a_thread():
    """Message, name and severity included, and what a rule raises is a failure there too."""
    for spec in (SCREEN, "secrets", {"length": 3}, {"contains": "zz"}, "json", {"some_of": ["json", "substance"]}):
        rule = as_rule(spec)
        known = rule.evaluate(LONG)
        result = asyncio.run(rule.check(LONG))
        assert (result.passed, result.message, result.score) == (known.passed, known.message, known.score)
    assert asyncio.run(as_rule({"regex": "a"}).check("\ud800" * 5_000)).passed is False


@pytest.mark.integration
def test_a_process_that_was_forked_has_threads_of_its_own():
    """Those of its parent are not there to look at anything, nor to end a comparison that they had begun."""
    if not hasattr(os, "fork"):
        pytest.skip("this system does not fork")
    code = (
        "import asyncio, os, sys, threading\n"
        "import rapidfuzz.distance\n"
        "from adjudge.rules import as_rule\n"
        "compare = rapidfuzz.distance.Indel.normalized_similarity\n"
        "entered, may_end = threading.Event(), threading.Event()\n"
        "def wait(ours, theirs):\n"
        "    entered.set(), may_end.wait()\n"
        "    return 1.0\n"
        "check = lambda: asyncio.run(as_rule('similarity').check('x ' * 5_000, 'x ' * 5_000)).passed\n"
        "rapidfuzz.distance.Indel.normalized_similarity = wait\n"
        "other = threading.Thread(target=check)\n"
        "other.start(), entered.wait()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    rapidfuzz.distance.Indel.normalized_similarity = compare\n"
        "    os._exit(0 if check() else 1)\n"
        "done = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "may_end.set(), other.join()\n"
        "sys.exit(done)\n"
    )
    root = str(Path(adjudge.__file__).parents[1])
    ran = subprocess.run(
        [sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": root}, check=False, capture_output=True
    )

    assert ran.returncode == 0, ran.stderr.decode()
