"""The tools that ``adjudge mcp serve`` offers to agents, called by the official client in this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError
from kit.cli import WORDS, Line

CONFIG = f"""
[defaults]
judge = "words"

[judges.words]
seats = ["{WORDS}"]

[rubrics]
polite = "polite.yaml"

[gates.short]
rules = [{{length = 10}}]

[gates.good]
rubric = "polite"

[gates.mails]
rules = [{{length = 10}}]
on_rule = "ask"
ask = {{approvers = ["ana"], show_content = true, expires_in = 3600}}

[ledger]
url = "adjudge.db"

[server]
largest_content = 1000
"""

RUBRIC = "name: polite\ncriteria: [{name: criteria, description: Is polite.}]\n"

LONG = "Dear customer, your parcel is lost."


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("mcp", find_spec("mcp"), "pip install 'adjudge[mcp]'")


class Desk:
    """What is offered to agents, and the clients that use it."""

    def __init__(self, tools: Any) -> None:
        self.tools = tools

    @asynccontextmanager
    async def connect(self, run: str = "mcp:one", **limits: Any) -> Any:
        """A client of its own, which may do what the limits of a key say."""
        from mcp import Client

        from adjudge.server.mcp_tools import AgentCaller, make_mcp_server
        from adjudge.server.permissions import make_permissions

        caller = AgentCaller(run=run, permissions=make_permissions(["judge"], **limits))

        async def identify(_: Any) -> AgentCaller:
            return caller

        async with Client(make_mcp_server(self.tools, identify)) as client:
            yield client

    async def call(self, tool: str, arguments: dict[str, Any], **options: Any) -> Any:
        """The result of one call by a client of its own."""
        async with self.connect(**options) as client:
            return await client.call_tool(tool, arguments)

    async def check(self, content: str, gate: str = "mails", **options: Any) -> Any:
        """The structured result of a check."""
        return (await self.call("check", {"gate": gate, "content": content}, **options)).structured_content

    async def wait(self, word: str, **options: Any) -> Any:
        """The result of one look whether people have decided."""
        return await self.call("wait_for_approval", {"word": word, "seconds": 0}, **options)

    async def decide(self, approved: bool) -> None:
        """Answer the one request that is open, as Ana."""
        [request] = await self.tools.approvals.list()
        await self.tools.approvals.decide(request.id, "ana", approved, "fine")


@pytest.fixture
def use(tmp_path: Path) -> Callable[..., Any]:
    """Runs an async function with what a configuration offers."""

    def run(work: Callable[[Desk], Awaitable[Any]], config: str = CONFIG, **options: Any) -> Any:
        from adjudge.config.file import read_config
        from adjudge.config.ledger import open_ledger
        from adjudge.config.server import read_server
        from adjudge.server.mcp_tools import open_agent_tools

        (tmp_path / "polite.yaml").write_text(RUBRIC, "utf-8")
        (tmp_path / "adjudge.toml").write_text(config, "utf-8")

        async def go() -> Any:
            configuration = read_config(tmp_path / "adjudge.toml")
            async with open_ledger(configuration) as ledger:
                await ledger.prepare()
                tools = open_agent_tools(configuration, read_server(configuration), ledger, **options)
                try:
                    return await work(Desk(tools))
                finally:
                    await tools.aclose()

        return asyncio.run(go())

    return run


# ---------------------------------------------------------------- what is offered


def test_three_tools_with_schemas_of_their_results(use):
    """Descriptions name the gates, judges and rubrics; no tool approves, lists or reads anything."""

    async def work(desk: Desk) -> None:
        async with desk.connect() as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}

        assert set(tools) == {"evaluate", "check", "wait_for_approval"}
        assert "Gates: good, mails, short." in tools["check"].description
        assert "Judges: words." in tools["evaluate"].description
        assert "polite" in tools["evaluate"].description
        status = [tool.output_schema["properties"].get("status", {}).get("enum") for tool in tools.values()]
        assert ["pass", "blocked", "pending"] in status
        assert ["approved", "denied", "expired", "pending"] in status

    use(work)


def test_only_what_the_configuration_has_is_offered(use):
    """Without judges nothing judges, and without gates that ask there is nothing to wait for."""
    config = "[gates.short]\nrules = [{length = 10}]\n[ledger]\nurl = 'adjudge.db'\n"

    async def work(desk: Desk) -> None:
        async with desk.connect() as client:
            assert [tool.name for tool in (await client.list_tools()).tools] == ["check"]

    use(work, config)


def test_gates_can_be_chosen(use):
    """The others are not there for an agent."""

    async def work(desk: Desk) -> None:
        assert (await desk.check("Hi.", "short"))["status"] == "pass"
        result = await desk.call("check", {"gate": "mails", "content": "Hi."})
        assert result.is_error

    use(work, gates=["short"])


@pytest.mark.parametrize(
    ("change", "option"),
    [
        ('on_undecided = "allow"', "good.on_undecided"),
        ("sample = 0.5", "good.sample"),
        ('mode = "observe"', "good.mode"),
    ],
)
def test_a_gate_that_lets_content_pass_unseen_is_not_offered(use, change: str, option: str):
    """An agent could word its text until nobody looks; an exception is named."""
    config = CONFIG.replace('[gates.good]\nrubric = "polite"', f'[gates.good]\nrubric = "polite"\n{change}')

    async def work(desk: Desk) -> None:
        assert "good" in desk.tools.gates

    with pytest.raises(UsageError) as caught:
        use(work, config)
    assert caught.value.argument == "unsafe"
    use(work, config, unsafe=[option])


def test_a_configuration_without_gates_and_judges_is_refused(use):
    """There is nothing to offer."""
    with pytest.raises(UsageError, match="nothing to offer"):
        use(lambda _: None, "[ledger]\nurl = 'adjudge.db'\n")


# ---------------------------------------------------------------- evaluate


@pytest.mark.parametrize(
    ("content", "outcome", "score"), [("good", "passed", 1.0), ("bad", "failed", 0.0), ("?", "undecided", None)]
)
def test_content_is_judged_and_recorded(use, content: str, outcome: str, score: float | None):
    """What cannot be judged is undecided, and no pass."""

    async def work(desk: Desk) -> None:
        result = (await desk.call("evaluate", {"content": content, "rubric": "polite"})).structured_content
        entries = [entry async for entry in desk.tools.ledger.query(kind="result")]

        assert (result["outcome"], result["score"]) == (outcome, score)
        assert [criterion["score"] for criterion in result["criteria"]] in ([score], [])
        assert len(entries) == 1

    use(work)


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "good", "rubric": "polite.yaml"},
        {"content": "good", "rubric": "/etc/passwd"},
        {"content": "good", "rubric": '{"name": "x", "criteria": "Is anything."}'},
        {"content": "good", "rubric": "polite", "judge": "openai:gpt-5"},
        {"content": "good", "rubric": "polite", "judge": "python:os:system"},
        {"content": "x" * 1_001, "rubric": "polite"},
        {"content": "good", "rubric": "polite", "task": "x" * 1_001},
        {"rubric": "polite"},
        {"content": ["good"], "rubric": "polite"},
    ],
)
def test_nothing_but_what_is_configured_is_asked(use, arguments: dict[str, Any]):
    """No file, no rubric of the agent's own, no other model, and no more than the configuration allows."""

    async def work(desk: Desk) -> None:
        result = await desk.call("evaluate", arguments)
        entries = [entry async for entry in desk.tools.ledger.query(kind="result")]

        assert (result.is_error, entries) == (True, [])

    use(work)


def test_a_key_that_is_limited_to_gates_judges_nothing_else(use):
    """As over HTTP."""

    async def work(desk: Desk) -> None:
        result = await desk.call("evaluate", {"content": "good", "rubric": "polite"}, gates=["short"])

        assert result.is_error

    use(work)


def test_a_judgement_that_cannot_be_recorded_is_none(use, tmp_path: Path):
    """The database is gone."""

    async def work(desk: Desk) -> None:
        await break_store(desk, tmp_path)
        result = await desk.call("evaluate", {"content": "good", "rubric": "polite"})

        assert result.is_error

    use(work)


async def break_store(desk: Desk, folder: Path) -> None:
    """Have every look into the database fail."""
    await desk.tools.ledger.aclose()
    await asyncio.to_thread(replace_database, folder)


def replace_database(folder: Path) -> None:
    """Put a folder where the database was."""
    for path in folder.glob("adjudge.db*"):
        path.unlink()
    (folder / "adjudge.db").mkdir()


# ---------------------------------------------------------------- check


def test_content_passes_or_is_blocked(use):
    """A blocked text is not judged again in the same run, and another gate has its own say."""

    async def work(desk: Desk) -> None:
        statuses = [
            (await desk.check(content, gate))["status"]
            for content, gate in (("Hi.", "short"), (LONG, "short"), (LONG, "short"), ("good " * 5, "good"))
        ]
        decisions = [entry.payload["result"] async for entry in desk.tools.ledger.query(kind="decision")]

        assert statuses == ["pass", "blocked", "blocked", "pass"]
        assert [decision is None for decision in decisions] == [False, False, True, False]

    use(work)


@pytest.mark.parametrize("gate", ["nope", "", "goo", "good*", "Good", "gates.good", "*"])
def test_no_other_gate_can_be_chosen(use, gate: str):
    """Only exact names of the configuration."""

    async def work(desk: Desk) -> None:
        assert (await desk.call("check", {"gate": gate, "content": "good"})).is_error

    use(work)


def test_a_key_has_the_gates_that_it_is_limited_to(use):
    """As over HTTP."""

    async def work(desk: Desk) -> None:
        assert (await desk.check("Hi.", "short", gates=["short"]))["status"] == "pass"
        assert (await desk.call("check", {"gate": "good", "content": "good"}, gates=["short"])).is_error

    use(work)


def test_a_gate_whose_ledger_fails_blocks(use, tmp_path: Path):
    """What cannot be recorded does not pass."""

    async def work(desk: Desk) -> None:
        await break_store(desk, tmp_path)

        assert (await desk.check("Hi.", "short"))["status"] == "blocked"

    use(work)


# ---------------------------------------------------------------- people


def test_an_approved_content_passes_once(use):
    """The second time, people are asked again."""

    async def work(desk: Desk) -> None:
        held = await desk.check(LONG)
        again = await desk.check(LONG)
        waiting = await desk.wait(held["word"])
        await desk.decide(approved=True)
        approved = await desk.wait(held["word"])
        other = await desk.check(f"{LONG} Sorry.")
        passed = await desk.check(LONG)
        later = await desk.check(LONG)

        assert (held["status"], again["word"]) == ("pending", held["word"])
        assert waiting.structured_content == {"status": "pending"}
        assert approved.structured_content == {"status": "approved"}
        assert (other["status"], passed["status"], later["status"]) == ("pending", "pass", "pending")
        assert later["word"] != held["word"]

    use(work)


def test_a_denied_content_stays_blocked(use):
    """Nobody is asked twice in one run."""

    async def work(desk: Desk) -> None:
        held = await desk.check(LONG)
        await desk.decide(approved=False)
        denied = await desk.wait(held["word"])
        again = await desk.check(LONG)

        assert denied.structured_content == {"status": "denied"}
        assert again["status"] == "blocked"
        assert await desk.tools.approvals.list() == ()

    use(work)


@pytest.mark.integration
@pytest.mark.timed
@pytest.mark.slow
def test_a_request_that_expires_is_no_approval(use):
    """Nobody answered in time."""

    async def work(desk: Desk) -> None:
        held = await desk.check(LONG)
        expired = await desk.call("wait_for_approval", {"word": held["word"], "seconds": 300})
        # On a busy machine it may have expired before anything else is asked, so it is in no list of open requests.
        [ident] = [entry.payload["approval_id"] async for entry in desk.tools.ledger.query(kind="decision")]

        assert expired.structured_content == {"status": "expired"}
        assert (await desk.tools.approvals.get(ident)).status == "denied"

    use(work, CONFIG.replace("expires_in = 3600", "expires_in = 1"))


def test_an_agent_gets_no_id_and_nothing_of_others(use):
    """The word of another run is unknown, and no answer names what a command takes."""

    async def work(desk: Desk) -> None:
        held = await desk.check(LONG)
        [request] = await desk.tools.approvals.list()
        others = await desk.wait(held["word"], run="mcp:two")
        by_id = await desk.wait(request.id)
        waiting = await desk.wait(held["word"])

        assert others.is_error
        assert by_id.is_error
        assert request.id not in f"{held} {waiting} {others} {by_id}"
        assert (await desk.check(LONG, run="mcp:two"))["word"] != held["word"]

    use(work)


def test_what_an_agent_asked_is_not_approved_on_the_command_line(use, tmp_path: Path, capsys):
    """It could run that command itself."""

    async def work(desk: Desk) -> str:
        await desk.check(LONG)
        [request] = await desk.tools.approvals.list()
        return request.id

    refused = Line(capsys).vote(use(work), "--reason", "ok", "--config", str(tmp_path / "adjudge.toml"))

    assert refused.status == 2
    assert "for an agent" in refused.err


def test_a_flood_of_requests_is_bounded(use):
    """Ten wait of one run; the next is blocked and asks nobody."""

    async def work(desk: Desk) -> None:
        statuses = [(await desk.check(f"{LONG} {number}"))["status"] for number in range(11)]

        assert statuses == ["pending"] * 10 + ["blocked"]
        assert len(await desk.tools.approvals.list()) == 10

    use(work)


def test_waiting_reports_progress_and_ends_when_people_decide(use):
    """The client need not ask again."""

    async def work(desk: Desk) -> None:
        held = await desk.check(LONG)
        reports: list[float] = []

        async def note(progress: float, total: float | None, _: str | None) -> None:
            if not reports:
                await desk.decide(approved=True)
            reports.append(progress)
            assert total == 60

        async with desk.connect() as client:
            result = await client.call_tool(
                "wait_for_approval", {"word": held["word"], "seconds": 60}, progress_callback=note
            )

        assert result.structured_content == {"status": "approved"}
        assert reports

    use(work)


@pytest.mark.timed
def test_a_call_that_is_cancelled_approves_nothing(use):
    """The client gives up waiting; the request stays open."""

    async def work(desk: Desk) -> None:
        held = await desk.check(LONG)
        async with desk.connect() as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await client.call_tool("wait_for_approval", {"word": held["word"], "seconds": 60})
            again = await client.call_tool("wait_for_approval", {"word": held["word"], "seconds": 0})

        assert again.structured_content == {"status": "pending"}

    use(work)


@pytest.mark.parametrize("seconds", [-1, 301, "long"])
def test_waiting_has_a_bound(use, seconds: Any):
    """A call that waits for ever would hold a connection for ever."""

    async def work(desk: Desk) -> None:
        held = await desk.check(LONG)
        async with desk.connect() as client:
            result = await client.call_tool("wait_for_approval", {"word": held["word"], "seconds": seconds})

        assert result.is_error

    use(work)
