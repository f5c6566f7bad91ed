"""Registries for tests: a clock that is set, judges that count what they are asked, and tools that were used."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar

import pytest

from adjudge import EmergentJudge, ToolCandidate, ToolRegistry
from adjudge.models import Request
from adjudge.testing import ScriptedModel
from adjudge.tools import ToolRecord, ToolRefused, forge
from adjudge.tools import store as _tables
from kit.process import start_module
from kit.tools import approval, candidate, refusal, review

T = TypeVar("T")

HERE: dict[str, str] = {"agent": "ana", "session": "s1"}


def make_judge(*, creates: bool = True, raises: bool = True, requests: list[Request] | None = None) -> EmergentJudge:
    """A judge of forged tools that approves or refuses; ``requests`` collects what it was asked."""
    creation = ScriptedModel(approval() if creates else refusal(), name="creation", requests=requests)
    promotion = ScriptedModel(review(approved=raises), name="panel", requests=requests)
    return EmergentJudge(creation, promotion)


class NoJudge:
    """A judge nobody may ask."""

    async def review_creation(self, candidate: ToolCandidate) -> Any:
        raise AssertionError(f"a review of {candidate.name} was asked for")

    async def review_promotion(self, tool: Any) -> Any:
        raise AssertionError(f"a promotion of {tool.id} was asked for")


def refused(because: str) -> Any:
    """That something is refused for one reason."""
    return pytest.raises(ToolRefused, check=lambda error: error.because == because)


def fail(candidate: Any, arguments: Any) -> Any:
    """Runs a tool that nothing may run."""
    raise AssertionError(f"{candidate.name} ran with {arguments}")


async def change(registry: ToolRegistry, ident: str, source: str = "return 2", **more: Any) -> ToolRecord:
    """Change a tool into another one."""
    return await registry.update(ident, candidate(source=source, **more))


def run(work: Callable[[ToolRegistry], Awaitable[T]], store: Any = None, **options: Any) -> T:
    """Return what an async function makes of a registry, which is closed afterwards."""

    async def use() -> T:
        async with ToolRegistry(store, **options) as registry:
            return await work(registry)

    return asyncio.run(use())


async def add(registry: ToolRegistry, name: str = "add", **more: Any) -> str:
    """The id of a tool that was forged; ``agent`` and ``session`` say where, the rest is the candidate's."""
    here = {key: more.pop(key, value) for key, value in HERE.items()}
    made = candidate(name=name, **{"source": f"function {name}() {{}}", **more})
    result = await forge(made, make_judge(), registry, allow_sandbox=True, **here)
    assert result.tool is not None, result
    return result.tool.id


async def wear(registry: ToolRegistry, ident: str, successes: int = 5, failures: int = 0) -> None:
    """Use a tool so often."""
    for place in range(successes + failures):
        await registry.record_use(ident, place < successes, 1.0)


async def raise_up(registry: ToolRegistry, ident: str, *tiers: Any) -> None:
    """Promote a tool through some tiers."""
    if tiers:
        await wear(registry, ident)
    for tier in tiers:
        by = "grace" if tier == "shared" else None
        assert await registry.promote(ident, make_judge(), to=tier, approved_by=by)


@contextmanager
def serve_reviews(*, approves: bool) -> Iterator[tuple[str, list[str]]]:
    """A server that speaks OpenAI's format and reviews tools: the spec of a model of it, and the prompts it is sent."""
    asked: list[str] = []

    class Reviewer(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append("\n".join(message["content"] for message in body["messages"]))
            fence = re.search(r"<<name (\w{8})>>", asked[-1])
            review = {"token": fence[1] if fence else "", **(approval() if approves else refusal())}
            message = {"role": "assistant", "content": json.dumps(review)}
            reply = {"id": "1", "model": "m", "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
            data = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            """Nothing is written to standard error."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Reviewer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1#m", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


# ---------------------------------------------------------------- processes


def start(action: str, *arguments: str) -> subprocess.Popen[str]:
    """A process that does one of the things below; it says what it did, a line at a time."""
    return start_module("registries", action, *arguments, stdin=subprocess.PIPE)


def main() -> None:
    """Run the process of ``start``."""
    works = {"promote_at_once": promote_at_once, "hang_after_verdict": hang_after_verdict, "churn": churn}
    works["hang_before_commit"] = hang_before_commit
    asyncio.run(works[sys.argv[1]](*sys.argv[2:]))


def say(text: str) -> None:
    """A line for whoever started this."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


async def promote_at_once(url: str, ident: str, tasks: str, calls: str) -> None:
    """Promote one tool from many tasks, once told to, with a judge that leaves a byte for each call."""

    def answer(_: Request) -> Any:
        with Path(calls).open("ab") as file:
            file.write(b".")
        return review()

    judge = EmergentJudge(ScriptedModel(review()), ScriptedModel(answer, delay=0.1))
    async with ToolRegistry(url) as registry:
        await registry.get(ident)
        say("ready")
        await asyncio.to_thread(sys.stdin.readline)
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(registry.promote(ident, judge)) for _ in range(int(tasks))]
    for task in asked:
        say(str(task.result().because))


async def hang_after_verdict(url: str, ident: str) -> None:
    """Have a tool reviewed, and never come to record it."""

    class Hanging:
        async def review_promotion(self, tool: Any) -> Any:
            verdict = await make_judge().review_promotion(tool)
            assert verdict
            say("verdict")
            await asyncio.sleep(3_600)
            return verdict

    async with ToolRegistry(url) as registry:
        await registry.promote(ident, Hanging())  # type: ignore[arg-type]


async def hang_before_commit(url: str, ident: str) -> None:
    """Write the new tier and its entry, and never come to the commit."""
    append = _tables.ToolView.append_entry

    def hang(self: Any, entry: Any) -> None:
        append(self, entry)
        say("written")
        time.sleep(3_600)

    _tables.ToolView.append_entry = hang  # type: ignore[method-assign]
    async with ToolRegistry(url) as registry:
        await registry.promote(ident, make_judge())


async def churn(url: str, mark: str) -> None:
    """Forge, use and promote one tool after another, from several tasks, for ever."""

    async def work(registry: ToolRegistry, place: int) -> None:
        number = 0
        while True:
            number += 1
            name = f"{mark}-{place}-{number}"
            ident = await add(registry, name, agent=name, session=name)
            await raise_up(registry, ident, "agent")
            say(ident)

    async with ToolRegistry(url, min_uses=1) as registry, asyncio.TaskGroup() as group:
        for place in range(4):
            group.create_task(work(registry, place))


def review_words(prompt: str) -> str:
    """A reviewer for ``python:kit.registries:review_words``: bad is refused, odd is no answer, else it approves."""
    source = re.search(r"<<source (\w{8})>>\n(.*)\n<<end source", prompt, re.DOTALL)
    assert source is not None, prompt
    if "odd" in source[2]:
        return "I cannot say."
    reply = {"token": source[1], "reasoning": "so", "confidence": 0.9, "approved": "bad" not in source[2]}
    return json.dumps(reply)
