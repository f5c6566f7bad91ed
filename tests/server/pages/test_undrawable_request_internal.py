"""A request whose content some code of a page fails on."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit.approval_pages import CONFIG, make_request
from kit.server import run_server

pytestmark = pytest.mark.timed


def test_a_request_that_cannot_be_drawn_leaves_the_queue_usable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The queue says which one it is, and the others are shown as ever."""

    def fail(text: str) -> None:
        raise RecursionError

    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana", "approve")
        ana = server.sign_in("Ana")
        broken = make_request(server, {"tool": "post", "arguments": {"markdown": "# a\n*b*"}}, expires_in=10)
        other = make_request(server, "a text", expires_in=20)
        monkeypatch.setattr("adjudge.templates.call_view.render_markdown", fail)

        queue = ana.get("/approvals")

        assert queue.status_code == 200
        assert f"The request {broken} cannot be shown here" in queue.text
        assert f"/approvals/{other}" in queue.text
        assert ana.get(f"/approvals/{other}").status_code == 200
