"""The program of ``docs/webhook.md`` that passes notifications to Slack, beside a listener in Slack's place."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals
from adjudge.guards import Webhook
from kit import docs, house
from kit.approvals import make_result
from kit.patience import wait_for

pytestmark = [pytest.mark.integration, pytest.mark.timed]

SECRET = "a secret of enough bytes"


class Slack:
    """A listener that keeps what it is sent; it refuses the first so many messages."""

    def __init__(self, *, refuses: int = 0) -> None:
        self.messages: list[Any] = []
        self.refuses = refuses


@contextmanager
def listen(slack: Slack) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            slack.refuses -= 1
            if slack.refuses < 0:
                slack.messages.append(json.loads(body))
            self.send_response(200 if slack.refuses < 0 else 503)
            self.end_headers()

        def log_message(self, *_: object) -> None:  # type: ignore[override] - nothing on the terminal
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/services/T/B/x"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def relay(folder: Path, slack_url: str) -> Iterator[str]:
    """The program of the page, in a process of its own."""
    block = next(block for block in docs.read_blocks(house.ROOT / "docs" / "webhook.md") if "SLACK_URL" in block.text)
    program = folder / "to_slack.py"
    program.write_text(block.text, encoding="utf-8")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "ADJUDGE_WEBHOOK_SECRET": SECRET, "SLACK_URL": slack_url, "PORT": str(port)}
    process = subprocess.Popen([sys.executable, str(program)], env=environment, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}/"
    try:
        wait_for(lambda: _answers(url) or process.poll() is not None)
        assert process.poll() is None, "the program ended"
        yield url
    finally:
        process.terminate()
        process.wait()


def _answers(url: str) -> bool:
    """Whether somebody listens, who refuses what is not signed."""
    try:
        urllib.request.urlopen(urllib.request.Request(url, b"{}"))
    except urllib.error.HTTPError as error:
        return error.code == 401
    except OSError:
        return False
    return False


def hold(tmp_path: Path, url: str, approvers: list[str]) -> None:
    """A request that is made and denied, whose webhook is the program."""

    async def make_link(_: Any) -> str:
        return "https://adjudge.example/approvals/1?until=2&link=3"

    async def go() -> None:
        hook = Webhook(url, secret=SECRET)
        async with Approvals(f"sqlite:///{tmp_path / 'adjudge.db'}", webhook=hook, make_link=make_link) as approvals:
            ident = await approvals.request(make_result(), "Publish the SECRET?", approvers=approvers)
            await approvals.decide(ident, approvers[0], False, "no SECRET")

    asyncio.run(go())


def test_slack_gets_a_line_with_a_link_and_nothing_of_the_content(tmp_path: Path):
    """When a request opens and when it closes; a name cannot call a whole channel."""
    slack = Slack()
    with listen(slack) as address, relay(tmp_path, address) as url:
        hold(tmp_path, url, ["ana", "<!channel> & co"])
        wait_for(lambda: len(slack.messages) == 2)
    texts = sorted(message["text"] for message in slack.messages)

    link = "<https://adjudge.example/approvals/1?until=2&amp;link=3|open the request>"
    waits = f"a program waits for 1 of ana, &lt;!channel&gt; &amp; co: {link}"
    assert texts == [waits, "a program: denied by human"]
    assert "SECRET" not in str(slack.messages)


def test_a_message_that_slack_refuses_is_sent_again(tmp_path: Path):
    """The program says so, and adjudge tries again; each notification comes once."""
    slack = Slack(refuses=1)
    with listen(slack) as address, relay(tmp_path, address) as url:
        hold(tmp_path, url, ["ana"])
        wait_for(lambda: len(slack.messages) == 2)
    assert len({message["text"] for message in slack.messages}) == 2
