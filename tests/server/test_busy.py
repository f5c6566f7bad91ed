"""While requests ask for as much work as they can, a server goes on answering everybody else.

Two processes serve the same configuration. One is sent ten hostile requests at a time, the other none; both are asked
for their health by turns, so that whatever else the machine does delays both alike. The limits are for an idle machine,
and as many times longer as the server's event loop waited for a processor.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kit import tools
from kit.patience import HANG
from kit.server_process import ServerProcess, compute_slowdown, make_key, read_times, serve

aiohttp = pytest.importorskip("aiohttp")

pytestmark = pytest.mark.integration

LIMIT = 0.1
"""Seconds by which ten hostile requests may delay another answer on an idle machine, in the middle of all delays."""

WORST = 0.3
"""Seconds by which they may delay nine answers of ten there."""

LONG = 480_000

CONFIG = """
[server]
deadline = 4
shutdown = 1

[judges.calm]
seats = ["python:busy_judges:answer"]

[defaults]
judge = "calm"

[gates.screened]
rules = ["model_markup"]

[gates.private]
rules = ["personal_data", "secrets", "unicode", {name = "urls", allow = ["example.org"]}]

[gates.tools]
rules = [{name = "called", tool = "search"}, {name = "not_called", tool = "delete*"}]

[ledger]
url = "sqlite:///adjudge.db"
"""

JUDGE = """
def answer(content):
    return True
"""

ITEMS = {"items": {"pattern": "(a|b)*c"}}
SCREEN = "model_markup"
PATTERNS = [{"regex": "((a{100}){10}|b{100}){5}" + "x" * one} for one in range(32)]
SCHEMA = {"anyOf": [{"type": "object", "properties": {f"p{one}": {"pattern": "a*b"}}} for one in range(5_000)]}
CALLS = [{"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "x", "arguments": "{}"}}]}] * 8_000


def evaluate(**body: Any) -> tuple[str, bytes]:
    return "/v1/evaluate", json.dumps({"criteria": "Good.", **body}).encode()


def check(gate: str, content: Any) -> tuple[str, bytes]:
    return f"/v1/gates/{gate}/check", json.dumps({"content": content}).encode()


HOSTILE: dict[str, Callable[[], tuple[str, bytes]]] = {
    "long text through the screen": lambda: check("screened", "1:" * (LONG // 2)),
    "32 screens": lambda: evaluate(content="1:" * (LONG // 2), rules=[SCREEN] * 32),
    "31 screens in one rule": lambda: evaluate(content="1:" * (LONG // 2), rules=[{"some_of": [SCREEN] * 31}]),
    "90,000 criteria": lambda: evaluate(content="x", criteria=["G"] * 90_000),
    "100 screens": lambda: evaluate(content="1:" * (LONG // 2), rules=[SCREEN] * 100),
    "90,000 wrong criteria": lambda: evaluate(content="x", criteria=[1] * 90_000),
    "90,000 wrong rules": lambda: evaluate(content="x", rules=[1] * 90_000),
    "32 comparisons": lambda: evaluate(
        content="ab" * 10_000, reference="ba" * 10_000, rules=[{"name": "similarity", "severity": "info"}] * 32
    ),
    "many values": lambda: check("private", [{"a": [number]} for number in range(30_000)]),
    "many short texts": lambda: evaluate(content=["ab"] * 95_000, rules=["personal_data"]),
    "deep JSON": lambda: ("/v1/gates/private/check", b'{"content": ' + b"[" * 450_000 + b"]" * 450_000 + b"}"),
    "too many values": lambda: check("private", [1] * 300_000),
    "JSON in JSON": lambda: check("private", json.dumps(json.dumps(json.dumps({"a": "\\" * 50_000})))),
    "a large schema": lambda: evaluate(content={"a": 1}, rules=[{"json_schema": SCHEMA}]),
    "large patterns": lambda: evaluate(content="x", rules=PATTERNS),
    "personal data": lambda: check("private", "\xe9\u200b\uff41 4111 1111 1111 1111 " * (LONG // 60)),
    "addresses": lambda: check("private", "http://a.b/ " * (LONG // 12)),
    "tool calls": lambda: check("tools", CALLS),
    "an input firewall": lambda: (
        "/v1/firewall/input", json.dumps({"arguments": {f"a{one}": "x" * 10 for one in range(30_000)}}).encode()
    ),
    "a prompt firewall": lambda: (
        "/v1/firewall/prompt", json.dumps({"rules": ["Be kind. " * 9] * 9_000}).encode()
    ),
    "a tool review": lambda: (
        "/v1/tools/review",
        json.dumps({"candidate": tools.candidate().to_dict() | {"source": "x = 1\n" * 60_000}}).encode(),
    ),
    "an output": lambda: (
        "/v1/tools/reuse",
        json.dumps({"tool_id": "t", "output": ["a"] * 45_000, "output_schema": ITEMS}).encode(),
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def servers(tmp_path_factory: Any) -> Iterator[tuple[ServerProcess, ServerProcess, str, str]]:
    """A server that is attacked, one that is not, and two keys for the first: of whoever attacks, and of another."""
    folders: list[Path] = [tmp_path_factory.mktemp(name) for name in ("attacked", "idle")]
    for folder in folders:
        (folder / "busy_judges.py").write_text(JUDGE, encoding="utf-8")
        (folder / "adjudge.toml").write_text(CONFIG, encoding="utf-8")
    keys = make_key(folders[0], "judge", "read"), make_key(folders[0], "judge", name="honest")
    with serve(folders[0]) as attacked, serve(folders[1]) as idle:
        yield attacked, idle, *keys


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """What became of ten hostile requests at a time, and of everybody else meanwhile."""

    statuses: list[int]
    """Those of the hostile requests."""
    judged: list[tuple[int, str]]
    """The status and outcome of every small judgement that another key asked for."""
    busy: list[float]
    """How long the attacked server took for its health, in seconds."""
    idle: list[float]
    """How long the other one took."""


async def attack(url: str, keys: tuple[str, str], path: str, body: bytes, idle: str) -> Attack:
    """Send ten hostile requests with the first key, and ask for health and judgements until they are answered."""
    key, honest = keys
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=HANG)) as session:

        async def send() -> int:
            async with session.post(f"{url}{path}", data=body, headers=headers) as answer:
                await answer.read()
                return answer.status

        async def probe(at: str) -> float:
            started = time.perf_counter()
            async with session.get(f"{at}/healthz") as answer:
                assert answer.status == 200
                await answer.read()
            return time.perf_counter() - started

        async def judge() -> tuple[int, str]:
            small = {"content": "Good day.", "criteria": "Good."}
            as_other = {"Authorization": f"Bearer {honest}"}
            async with session.post(f"{url}/v1/evaluate", json=small, headers=as_other) as answer:
                return answer.status, (await answer.json()).get("outcome", "")

        await probe(url), await probe(idle)
        sending = [asyncio.ensure_future(send()) for _ in range(10)]
        attacked, calm, judged = [], [], []
        while not all(item.done() for item in sending) or len(attacked) < 10:
            attacked.append(await probe(url))
            calm.append(await probe(idle))
            judged.append(await judge())
            await asyncio.sleep(0.01)
        return Attack(statuses=[await item for item in sending], judged=judged, busy=attacked, idle=calm)


@pytest.mark.slow_table
@pytest.mark.parametrize("name", HOSTILE)
def test_everybody_else_is_answered_meanwhile(name: str, servers: tuple[ServerProcess, ServerProcess, str, str]):
    """Ten at a time, each of them answered or ended by the deadline; what others ask meanwhile is judged."""
    attacked, idle, *keys = servers
    path, body = HOSTILE[name]()
    assert len(body) <= 1_000_000
    before = read_times(attacked.process.pid)
    seen = asyncio.run(attack(attacked.url, (keys[0], keys[1]), path, body, idle.url))
    slower = compute_slowdown(before, read_times(attacked.process.pid))

    assert set(seen.statuses) <= {200, 400, 413, 422, 503, 504}
    assert set(seen.judged) == {(200, "passed")}
    assert statistics.median(seen.busy) <= statistics.median(seen.idle) + LIMIT * slower
    assert statistics.quantiles(seen.busy, n=10)[8] <= statistics.quantiles(seen.idle, n=10)[8] + WORST * slower
