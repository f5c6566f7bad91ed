"""``adjudge mcp serve`` as a process of its own: over standard input and output, and over HTTP with keys."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals
from kit.cli import WORDS
from kit.house import TESTS
from kit.http_client import open_http_client
from kit.mcp import open_http, read_text
from kit.patience import HANG
from kit.server_process import httpx, make_environment, run_command

pytestmark = [pytest.mark.integration, pytest.mark.timed, pytest.mark.slow]

CONFIG = f"""
[defaults]
judge = "words"

[judges.words]
seats = ["{WORDS}"]

[rubrics]
polite = "polite.yaml"

[gates.short]
rules = [{{length = 10}}]

[gates.mails]
rules = [{{length = 10}}]
on_rule = "ask"
ask = {{approvers = ["ana"], show_content = true}}

[ledger]
url = "adjudge.db"
"""

RUBRIC = "name: polite\ncriteria: [{name: criteria, description: Is polite.}]\n"

LONG = "Dear customer, your parcel is lost."

COMMAND = [sys.executable, "-c", "from adjudge.cli import main; main()", "mcp", "serve"]


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("mcp", find_spec("mcp"), "pip install 'adjudge[mcp]'")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a configuration."""
    (tmp_path / "adjudge.toml").write_text(CONFIG, "utf-8")
    (tmp_path / "polite.yaml").write_text(RUBRIC, "utf-8")
    return tmp_path


def make_key(folder: Path, *options: str) -> str:
    """A new key of the configuration's ledger."""
    made = run_command(folder, "keys", "create", "agent", *options)
    assert made.returncode == 0, made.stderr
    return made.stdout.strip()


@contextmanager
def serve(folder: Path, *options: str) -> Iterator[str]:
    """The address of a server over HTTP, until the block ends."""
    command = [*COMMAND, "--http", "--port", "0", *options]
    process = subprocess.Popen(command, cwd=folder, env=make_tests_importable(), stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        line = process.stderr.readline()
        assert "adjudge serves MCP on http://127.0.0.1:" in line, line
        yield line.split(" on ")[1].split(";")[0].strip()
    finally:
        process.terminate()
        process.communicate(timeout=HANG)


def call(transport: Any, *calls: tuple[str, dict[str, Any]], mode: str = "auto") -> list[Any]:
    """The results of calls by the official client."""
    from mcp import Client

    async def go() -> list[Any]:
        async with Client(transport, mode=mode) as client:
            return [await client.call_tool(tool, arguments) for tool, arguments in calls]

    return asyncio.run(go())


def check(gate: str, content: str) -> tuple[str, dict[str, Any]]:
    return "check", {"gate": gate, "content": content}


def evaluate(content: str) -> tuple[str, dict[str, Any]]:
    return "evaluate", {"content": content, "rubric": "polite"}


def make_tests_importable() -> dict[str, str]:
    """The environment of a server whose judge is a function of the tests."""
    environment = make_environment()
    return environment | {"PYTHONPATH": os.pathsep.join([environment["PYTHONPATH"], str(TESTS)])}


def use_all(transport: Any, folder: Path, mode: str) -> list[Any]:
    """The results of an agent that judges, is held, waits until Ana has approved, and asks again twice."""
    from mcp import Client

    async def go() -> list[Any]:
        async with Client(transport, mode=mode) as client:
            judged = [await client.call_tool(*evaluate(content)) for content in ("good", "bad")]
            held = await client.call_tool(*check("mails", LONG))
            waits = ("wait_for_approval", {"word": held.structured_content["word"], "seconds": 10})
            async with asyncio.TaskGroup() as tasks:
                waiting = tasks.create_task(client.call_tool(*waits))
                await approve(folder)
            again = [await client.call_tool(*check("mails", LONG)) for _ in range(2)]
            return [*judged, held, waiting.result(), *again]

    return asyncio.run(go())


async def approve(folder: Path) -> None:
    """Approve the one request that is open, as another process does."""
    async with Approvals(f"sqlite:///{folder / 'adjudge.db'}") as approvals:
        [request] = await approvals.list()
        await approvals.decide(request.id, "ana", True, "it is true")


def check_all(results: list[Any]) -> None:
    """Both verdicts of the judge, and an approval that is good for one check."""
    said = [result.structured_content for result in results]

    assert [result.is_error for result in results] == [False] * 6, [read_text(result) for result in results]
    assert [answer["outcome"] for answer in said[:2]] == ["passed", "failed"]
    assert [answer["status"] for answer in said[2:]] == ["pending", "approved", "pass", "pending"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_client_that_starts_it_is_served(folder: Path, mode: str):
    """Nothing but the protocol is on standard output; a run that has a name finds its request again."""
    from mcp import StdioServerParameters
    from mcp.client.stdio import stdio_client

    def connect() -> Any:
        command, *arguments = [*COMMAND, "--config", str(folder / "adjudge.toml"), "--run", "desk"]
        return stdio_client(StdioServerParameters(command=command, args=arguments, env=make_tests_importable()))

    calls = [check("short", "Hi."), check("short", LONG), check("mails", LONG)]
    first = call(connect(), *calls, mode=mode)
    again = use_all(connect(), folder, mode)

    assert [result.structured_content["status"] for result in first] == ["pass", "blocked", "pending"]
    assert again[2].structured_content == first[2].structured_content
    check_all(again)


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_over_http_a_key_is_needed(folder: Path, mode: str):
    """Each key has its own gates and its own requests."""
    ours, others = make_key(folder, "--scope", "judge"), make_key(folder, "--scope", "judge", "--gate", "short")
    with serve(folder) as url:
        passed, held = call(open_http(url, ours), check("short", "Hi."), check("mails", LONG), mode=mode)
        word = held.structured_content["word"]
        theirs = call(
            open_http(url, others),
            check("short", "Hi."),
            check("mails", LONG),
            ("wait_for_approval", {"word": word, "seconds": 0}),
            mode=mode,
        )
        check_all(use_all(open_http(url, ours), folder, mode))

    assert (passed.structured_content["status"], held.structured_content["status"]) == ("pass", "pending")
    assert [result.is_error for result in theirs] == [False, True, True]
    assert "mails" not in read_text(theirs[1]).replace("'mails'", "")


REQUEST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

ACCEPT = {"Accept": "application/json, text/event-stream"}


def test_nobody_else_is_answered(folder: Path):
    """No key, another scope, a key that was revoked, another name of the server, a page of another site."""
    key, reads = make_key(folder, "--scope", "judge"), make_key(folder, "--scope", "read")
    with serve(folder) as url:

        def post(key: str | None = None, **headers: str) -> int:
            sent = ACCEPT | headers | ({} if key is None else {"Authorization": f"Bearer {key}"})
            return httpx.post(url, json=REQUEST, headers=sent, verify=False, timeout=HANG).status_code

        answers = [
            post(),
            post("adj_000000000000_" + "A" * 43),
            post(reads),
            post(key, Host="attacker.example"),
            post(key, Origin="https://attacker.example"),
        ]
        assert run_command(folder, "keys", "revoke", key.split("_")[1]).returncode == 0
        with open_http_client(url) as client:
            sent = ACCEPT | {"Authorization": f"Bearer {key}"}
            while (status := client.post(url, json=REQUEST, headers=sent).status_code) != 401:
                assert status == 400  # for a second, the key is still known

    assert answers == [401, 401, 403, 421, 403]


def test_a_session_belongs_to_its_key(folder: Path):
    """The older protocol has sessions; another key's request in one is refused."""
    ours, others = make_key(folder, "--scope", "judge"), make_key(folder, "--scope", "judge")
    hello = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}},
    }
    with serve(folder) as url, open_http_client(url) as client:
        begun = client.post(url, json=hello, headers=ACCEPT | {"Authorization": f"Bearer {ours}"})
        session = {"Mcp-Session-Id": begun.headers["mcp-session-id"], "Mcp-Protocol-Version": "2025-06-18"}
        answers = [
            client.post(url, json=REQUEST, headers=ACCEPT | session | {"Authorization": f"Bearer {key}"}).status_code
            for key in (ours, others)
        ]

    assert answers == [200, 404]


@pytest.mark.full
def test_without_keys_only_this_machine_is_served(folder: Path):
    """And never an address that others can reach."""
    with serve(folder, "--allow-anonymous") as url:
        [passed] = call(open_http(url), check("short", "Hi."))
    (folder / "adjudge.toml").write_text(CONFIG + '[server]\npublic_url = "https://a.example"\n', "utf-8")
    refused = run_command(folder, "mcp", "serve", "--http", "--host", "0.0.0.0", "--allow-anonymous")

    assert passed.structured_content["status"] == "pass"
    assert (refused.returncode, "need a key" in refused.stderr) == (2, True)


@pytest.mark.slow_table
@pytest.mark.parametrize(
    ("options", "word"),
    [
        (["--host", "127.0.0.1"], "--http"),
        (["--run", ""], "run"),
        (["--run", "ä"], "run"),
        (["--gate", "nope"], "nope"),
        (["--http", "--host", "0.0.0.0"], "public_url"),
        (["--http", "--port", "-1"], "port"),
    ],
)
def test_options_that_cannot_be_used_are_named(folder: Path, options: list[str], word: str):
    """Before anything is served."""
    refused = run_command(folder, "mcp", "serve", *options, timeout=HANG)

    assert (refused.returncode, refused.stdout) == (2, "")
    assert word in refused.stderr
