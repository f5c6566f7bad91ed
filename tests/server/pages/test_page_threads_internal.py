"""Pages that take long to make keep nobody else waiting."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge.server.pages import approvals, page, result
from kit.approval_pages import CONFIG, make_request, read_approval
from kit.patience import HANG
from kit.server import RunningServer, run_server

pytestmark = pytest.mark.timed


@pytest.fixture(name="server")
def start_server(tmp_path: Path) -> Iterator[RunningServer]:
    with run_server(tmp_path, config=CONFIG) as server:
        server.add_account("Ana")
        yield server


@pytest.mark.parametrize(
    ("module", "step", "folder"),
    [
        (approvals, "make_request_view", "approvals"),
        (page, "render_page", "approvals"),
        (result, "_make_texts", "results"),
    ],
)
def test_others_are_answered_while_a_long_text_is_shown(
    server: RunningServer, monkeypatch: pytest.MonkeyPatch, module: Any, step: str, folder: str
):
    """A request may have megabytes of context; whoever looks at it must not silence the gates of the server."""
    ana, other = server.sign_in("Ana"), server.open_client()
    ident = make_request(server, texts={"context": "A long text."})
    name = ident if folder == "approvals" else read_approval(server, ident).result_id
    begun, answered, in_time = threading.Event(), threading.Event(), []
    make = getattr(module, step)

    def take_long(*values: Any, **options: Any) -> Any:
        begun.set()
        in_time.append(answered.wait(HANG))
        return make(*values, **options)

    monkeypatch.setattr(module, step, take_long)
    reading = threading.Thread(target=ana.get, args=(f"/{folder}/{name}",))
    reading.start()
    try:
        assert begun.wait(HANG)
        assert other.get("/healthz").status_code == 200
    finally:
        answered.set()
        reading.join()
    assert in_time[0]
