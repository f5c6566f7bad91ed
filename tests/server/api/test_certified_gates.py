"""A served gate that demands a certificate: it asks people until there is one, and again once it is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, Ledger
from adjudge.guards import CertifiedSeat, sign_certificate, write_certificate
from adjudge.ledger import create_signing_key
from adjudge.models import open_model
from kit.certificates import GOOD, make_certificate_of
from kit.cli import WORDS
from kit.judges import names
from kit.ledgers import find
from kit.server import RunningServer, run_server

pytest.importorskip("cryptography", reason="signing needs the extra sign")

pytestmark = pytest.mark.timed

CONFIG = f"""
[judges.words]
seats = ["{WORDS}"]

[rubrics]
good = "good.json"

[gates.answers]
rubric = "good"
judge = "words"
audit = 0.000001
ask = {{approvers = ["Ana"], show_content = true}}
require_certificate = "certificate.json"
min_specificity = 0.8
certificate_key = "KEY"

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"
"""


@pytest.fixture(name="server")
def provide_server(tmp_path: Path) -> Iterator[RunningServer]:
    """A server with such a gate, whose certificate is not there yet."""
    public_key = create_signing_key(tmp_path / "measuring.pem")
    (tmp_path / "good.json").write_text(json.dumps(GOOD), encoding="utf-8")
    with run_server(tmp_path, CONFIG.replace("KEY", public_key)) as running:
        yield running


def put_certificate(folder: Path) -> None:
    """Put a certificate of the judge into the folder, signed by whoever measured it."""
    judge = Judge(open_model(WORDS, allow_python=True), name="words")
    certificate = make_certificate_of(judge, seats=(CertifiedSeat(seat=(), model=None),))
    signed = sign_certificate(certificate, Ledger(folder / "other.db", key=str(folder / "measuring.pem")))
    (folder / "certificate.json").write_bytes(write_certificate(signed))


def test_a_served_gate_demands_a_certificate(server: RunningServer):
    """The file is read for each request, so nothing has to be restarted; the reasons are in the ledger."""
    program = server.open_client(key=server.make_key("judge"))

    def check() -> Any:
        return program.post("/v1/gates/answers/check", json={"content": "a good text"}).json()

    before = check()
    put_certificate(server.folder)
    certified = check()
    (server.folder / "certificate.json").unlink()
    after = check()
    (gate,) = program.get("/v1/gates").json()["gates"]

    assert [(each["allowed"], each["pending"]) for each in (before, certified, after)] == [
        (False, True),
        (True, False),
        (False, True),
    ]
    found = [each["result"]["qualification"] for each in (before, certified, after)]
    assert found == ["unqualified", "qualified", "unqualified"]
    assert gate["asks"] is True
    details = [entry.payload["detail"] for entry in find(server.ledger_url, kind="decision") if entry.payload]
    assert names(details[0], "unqualified: the certificate certificate.json cannot be read")
    assert details[1].startswith("certificate ")
    assert details[2] == details[0]
    server.add_account("Ana")
    reader = server.sign_in("Ana")
    pages = [reader.get(f"/results/{each['ledger_seq']}").text for each in (before, certified)]
    assert "No certificate spoke for this judge; the policy says why." in pages[0]
    assert "unqualified" in pages[0]
    assert "A certificate speaks for this judge." in pages[1]
