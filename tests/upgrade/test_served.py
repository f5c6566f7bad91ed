"""A ledger that the newest tag served is upgraded and served by this version: what waited is decided and goes through.

With ADJUDGE_FULL=1; ADJUDGE_UPGRADE_FROM names another commit than the newest tag.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kit.ledgers import STORES, open_store
from kit.upgraded import OldVersion, build_version

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timed,
    pytest.mark.full,
]

server_process = pytest.importorskip("kit.server_process")
pytest.importorskip("cryptography")

CONFIG = """
[gates.letters]
rules = [{{name = "length", max = 40}}]
on_failed = "ask"

[gates.deploys]
rules = [{{regex = "^$"}}]
on_rule = "ask"

[approvals]
approvers = ["ana"]
show_content = true

[hook]
tools = {{"deploy" = "deploys"}}

[ledger]
url = "{url}"
key = "ledger-key.pem"
"""

LETTER = "Thank you for your order, which leaves our house tomorrow morning."

CALL = {"tool": "deploy", "arguments": {"to": "production"}, "call_id": "c1", "run_id": "s1"}

KEYS = {"caller": ("--scope", "judge", "--scope", "read"), "agent": ("--scope", "hook")}
KEYS |= {"ana": ("--scope", "approve", "--scope", "read", "--approver", "ana")}


@pytest.fixture(name="old", scope="module")
def provide_old(tmp_path_factory: pytest.TempPathFactory) -> OldVersion:
    return build_version(tmp_path_factory.mktemp("old"))


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    with open_store(request.param, tmp_path, require) as url:
        yield url


def approve(client: Any, ident: str) -> None:
    """Look at a request, and approve it as it was shown."""
    shown = client.get(f"/v1/approvals/{ident}").json()["shown"]
    voted = client.post(f"/v1/approvals/{ident}/votes", json={"approved": True, "reason": "fine", "seen": shown})
    assert (voted.status_code, voted.json()["status"]) == (200, "approved")


def test_what_waited_under_the_old_version_goes_through_under_the_new_one(old: OldVersion, url: str, tmp_path: Path):
    """A letter and an agent's call; the server was killed meanwhile, and its keys still count."""
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "adjudge.toml").write_text(CONFIG.format(url=url), "utf-8")
    old.run("-c", "from adjudge.ledger import create_signing_key; create_signing_key('ledger-key.pem')", folder=folder)
    run = ("-c", "from adjudge.cli import main; main()")
    keys = {
        name: old.run(*run, "keys", "create", name, *scopes, folder=folder).strip() for name, scopes in KEYS.items()
    }
    with server_process.serve(folder, python=old.python, environment={"PYTHONPATH": ""}) as server:
        with server.open_client(keys["caller"]) as caller, server.open_client(keys["agent"]) as agent:
            held = caller.post("/v1/gates/letters/check", json={"content": LETTER}).json()
            call = agent.post("/v1/tools/check", json=CALL).json()
            assert (held["pending"], call["kind"]) == (True, "pending")
        server.kill()

    upgraded = server_process.run_command(folder, "ledger", "upgrade")
    assert upgraded.returncode == 0, upgraded.stderr
    with (
        server_process.serve(folder) as server,
        server.open_client(keys["ana"]) as ana,
        server.open_client(keys["caller"]) as caller,
        server.open_client(keys["agent"]) as agent,
    ):
        waiting = {item["id"] for item in ana.get("/v1/approvals").json()["approvals"]}
        assert waiting == {held["approval_id"], call["approval_id"]}
        for ident in waiting:
            approve(ana, ident)
        resume = {"approval": held["approval_id"], "content": LETTER}
        resumed = caller.post("/v1/gates/letters/resume", json=resume).json()
        assert (resumed["allowed"], resumed["decided_by"]) == (True, "human")
        assert agent.post("/v1/tools/resume", json=CALL).json()["allowed"] is True
        assert agent.post("/v1/tools/resume", json=CALL).json()["because"] == "used"
        assert caller.get("/v1/ledger/verify").json()["valid"] is True
