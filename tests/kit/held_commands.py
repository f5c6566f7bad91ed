"""Sessions of a real coding agent whose gate holds a command that says `forbidden`: what ran in them, as files.

The guard's folder is beside the home of the place, whether the hook decides by itself or asks a server.
"""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from adjudge import Approvals, Ledger
from adjudge.harness.scripted_model import ScriptedCall, ScriptedStep
from kit.coding_agents import Workplace, make_command

SLOW_JUDGE = """
import time

def judge(content):
    if "touch late" in str(content):
        time.sleep(12)
    return True
"""

SLOW_GATE = """
[judges.slow]
seats = ["python:slow_judge:judge"]

[rubrics]
good = "good.yaml"

[gates.shell]
judge = "slow"
rubric = "good"
"""
"""A gate whose judge says yes to everything, but to a command that says `late` too late."""

_RULES = """[gates.shell]
rules = [{{not_contains = "forbidden"}}]
on_rule = "{on_rule}"
"""


def find_guard(place: Workplace) -> Path:
    """The folder of the configuration and the ledger."""
    return place.home.parent / "guard"


def list_made(place: Workplace) -> list[str]:
    """The files that commands made in the project."""
    return sorted(path.name for path in place.project.iterdir() if not path.name.startswith("."))


def add_slow_judge(config: str) -> str:
    """A configuration in which the slow judge decides about commands, and nobody about prompts."""
    assert _RULES in config
    return config.replace(_RULES, SLOW_GATE).replace("[hook]", "[hook]\ntimeout = 5", 1).replace('prompts = "text"', "")


def write_slow_judge(place: Workplace) -> None:
    """Write what the gate ``SLOW_GATE`` names."""
    (find_guard(place) / "slow_judge.py").write_text(SLOW_JUDGE, encoding="utf-8")
    rubric = "name: good\ncriteria: [{name: good, description: Is good.}]\n"
    (find_guard(place) / "good.yaml").write_text(rubric, encoding="utf-8")


def use_approvals(place: Workplace, work: Callable[[Approvals, Ledger], Any]) -> Any:
    """Return what an async function makes of the guard's approvals and its ledger."""

    async def go() -> Any:
        async with Ledger(f"sqlite:///{find_guard(place)}/ledger.db") as ledger:
            return await work(Approvals(ledger), ledger)

    return asyncio.run(go())


def decide(place: Workplace, approved: bool) -> str:
    """Answer the one request that is open, as Ana, and return the session that it is of."""

    async def work(approvals: Approvals, ledger: Ledger) -> str:
        [waiting] = await approvals.list()
        await approvals.decide(waiting.id, "ana", approved, "as it should be")
        entries = [entry async for entry in ledger.query(kind="approval.requested")]
        run = str((entries[-1].payload or {})["metadata"]["call"]["run_id"])
        return run.rpartition("/")[2]  # a server puts its key before it

    return use_approvals(place, work)


def list_statuses(place: Workplace) -> list[str]:
    """The statuses of all requests, the first one first."""

    async def work(approvals: Approvals, _: Ledger) -> list[str]:
        return [item.status for item in sorted(await approvals.list(status=None), key=lambda item: item.created_at)]

    return use_approvals(place, work)


def add_line(harness: Any, line: str, number: int) -> list[Any]:
    """A step that adds a line to a file; the gate holds it."""
    return [make_command(harness, f"echo {line} >> forbidden", f"toolu_{number}")]


# ---------------------------------------------------------------- sessions


def check_denied(place: Workplace) -> None:
    """A person says no: the command does not run, nor when the agent tries again, and nobody is asked again."""
    held = place.run(add_line(place.harness, "x", 1))
    session = decide(place, approved=False)
    after = place.run(*(add_line(place.harness, "x", number) for number in (2, 3)), resume=session)

    assert "waits for a person" in held[0]
    assert ["a person said no" in result for result in after[-2:]] == [True, True]
    assert list_statuses(place) == ["denied"]
    assert list_made(place) == []


def check_other_arguments(place: Workplace) -> None:
    """A person says yes: another command is held anew, and the one that was approved runs once."""
    place.run(add_line(place.harness, "x", 1))
    session = decide(place, approved=True)
    after = place.run(
        *(add_line(place.harness, line, number) for line, number in (("y", 2), ("x", 3), ("x", 4))), resume=session
    )

    assert "waits for a person" in after[-3]
    assert "waits for a person" in after[-1]
    assert (place.project / "forbidden").read_text("utf-8") == "x\n"
    assert list_statuses(place) == ["approved", "open", "open"]


def check_parallel(place: Workplace) -> None:
    """One of three commands at once is held, and the others run."""
    commands = ("touch one", "touch forbidden", "touch two")
    results = place.run([make_command(place.harness, command, f"toolu_{command[6:]}") for command in commands])

    assert ["waits for a person" in result for result in results] == [False, True, False]
    assert list_made(place) == ["one", "two"]
    assert list_statuses(place) == ["open"]


APPROVE = """
import json, subprocess, sys

command = [sys.executable, "-c", "from adjudge.cli import main; main()", "approvals"]
where = ["--ledger", {ledger!r}]

def run(*words):
    return subprocess.run([*command, *words, *where], capture_output=True, text=True)

[waiting] = json.loads(run("list", "--json").stdout)["approvals"]
shown = json.loads(run("show", waiting["id"], "--json").stdout)["shown"]
done = run("approve", waiting["id"], "--reason", "I want it", "--seen", shown)
open("tried", "w").write(f"{{done.returncode}} {{done.stderr}}")
"""


def check_approving_itself(place: Workplace) -> None:
    """The agent's own command line finds the request, and approves nothing, under the name of who may."""
    (place.project / "helper").write_text(
        APPROVE.format(ledger=f"sqlite:///{find_guard(place)}/ledger.db"), encoding="utf-8"
    )
    results = place.run(
        [make_command(place.harness, "touch forbidden", "toolu_1")],
        [make_command(place.harness, f"{shlex.quote(sys.executable)} helper", "toolu_2")],
        [make_command(place.harness, "touch forbidden", "toolu_3")],
    )

    tried = (place.project / "tried").read_text("utf-8")
    assert tried.startswith("2 ")
    assert "could run this command" in tried
    assert ["waits for a person" in result for result in results] == [True, False, True]
    assert list_statuses(place) == ["open"]
    assert list_made(place) == ["helper", "tried"]


HELD = (check_denied, check_other_arguments, check_parallel, check_approving_itself)
"""Sessions in which a person has to see a command."""


def check_late(place: Workplace) -> None:
    """The judge says yes when the guard has given up waiting; what it says in time counts."""
    names = ("early", "late", "early-too")
    results = place.run(*([make_command(place.harness, f"touch {name}", f"toolu_{name}")] for name in names))

    assert ["The call was not made" in result for result in results] == [False, True, False]
    assert list_made(place) == ["early", "early-too"]


def spoil(folder: Path) -> None:
    """Overwrite the files of a ledger in a folder with what is no database."""
    for path in folder.glob("*.db*"):
        size = max(path.stat().st_size, 4_096)
        with path.open("r+b") as file:
            file.write(b"garbage!" * (size // 8))


def spoil_before(folder: Path, call: ScriptedCall) -> ScriptedStep:
    """A step that spoils the ledger in a folder and then makes a call."""

    def make_step(_: dict[str, Any]) -> list[ScriptedCall]:
        spoil(folder)
        return [call]

    return make_step


def check_spoilt(place: Workplace) -> None:
    """The ledger is lost in the middle of a session: what ran before has run, and nothing more does."""
    results = place.run(
        [make_command(place.harness, "touch before", "toolu_1")],
        spoil_before(find_guard(place), make_command(place.harness, "touch after", "toolu_2")),
        [make_command(place.harness, "touch later", "toolu_3")],
    )

    assert list_made(place) == ["before"]
    assert len(results) == 3
