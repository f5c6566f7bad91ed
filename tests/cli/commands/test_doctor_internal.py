"""What the doctor asks, of local servers and of known bad replies."""

from __future__ import annotations

from pathlib import Path

import pytest

from adjudge.config import judges as _local
from adjudge.testing import FAULTS
from kit.cli import Line, serve
from kit.ledgers import record

pytestmark = pytest.mark.timed


def configure(text: str) -> None:
    Path("adjudge.toml").write_text(text, encoding="utf-8")


def test_everything_that_is_configured_is_asked(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Judges of the file, seats at any depth, providers with a key and local servers; and whom all this can contact."""
    with serve() as one, serve() as two, serve() as local:
        configure(f'[judges.outer]\nseats = ["inner", "{one.spec}"]\n[judges.inner]\nseats = ["{two.spec}"]\n')
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        monkeypatch.setattr(_local, "LOCAL_PORTS", ((local.port, "Ollama"),))
        ran = line("doctor", "--json")
        asked = [len(provider.bodies) for provider in (one, two, local)]
        hosts = sorted(f"127.0.0.1:{provider.port}" for provider in (one, two, local))

    document = ran.document
    assert ran.status == 0
    assert [item["judge"] for item in document["judges"]] == ["outer", "inner", "openai:gpt-6.1-terra", local.spec]
    assert [seat["name"] for seat in document["judges"][0]["seats"]] == ["inner", one.spec]
    assert document["hosts"] == hosts
    assert asked == [8, 8, 4]
    assert document["keys"] == ["OPENAI_API_KEY"]
    assert document["config"] == "adjudge.toml"
    assert len(document["config_digest"]) == 64
    planted = document["known_bad_replies"]
    assert (planted["planted"], planted["passed"]) == (23, [])
    assert sorted(name for names in planted["kinds"].values() for name in names) == sorted(FAULTS)
    assert "sk-secret" not in ran.out + ran.err


def test_offline_asks_nobody(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Neither judges nor local ports: what can be found out without a connection, and no more."""
    with serve() as provider:
        monkeypatch.setattr(_local, "LOCAL_PORTS", ((provider.port, "Ollama"),))
        configure(f'[judges.a]\nseats = ["{provider.spec}"]\n')
        ran = line("doctor", "--offline")

        assert provider.bodies == []
    assert ran.status == 0
    assert "judge a:\n  a: not asked\n" in ran.out
    assert line("doctor", "--offline", "--json").document["offline"] is True


def test_a_known_bad_reply_that_passes_is_the_worst_news(line: Line, monkeypatch: pytest.MonkeyPatch):
    """If a reader ever took one, the doctor would say which and exit with 1."""
    from adjudge.cli.commands import doctor as _planted
    from adjudge.testing import ScriptedModel

    good = {"criteria": [{"name": "true", "reasoning": "", "score": 1.0}]}
    monkeypatch.setattr(_planted, "FaultyModel", lambda model, faults: ScriptedModel(good))
    monkeypatch.setattr(_planted, "FAULTS", ("prose",))
    ran = line("doctor")

    assert ran.status == 1
    assert "adjudge: a known-bad reply passed: prose through one judge\n" in ran.err
    assert "known-bad replies: 1 planted, 8 passed" in ran.out
    assert "some did, so a damaged reply can let something through here" in ran.out


def test_a_ledger_that_is_searched_without_trigrams_is_named(line: Line, monkeypatch: pytest.MonkeyPatch):
    """One sentence says why it is slow and what to do; the status is as it was."""
    Path("adjudge.toml").write_text('[ledger]\nurl = "sqlite:///adjudge.db"\n', encoding="utf-8")
    assert line("doctor", "--offline", "--json").document["search"] is None
    record("sqlite:///adjudge.db", {"n": 1})
    before = line("doctor", "--offline")
    monkeypatch.setattr(
        "adjudge.ledger.search_index.find_fts5_problem", lambda: "Searching reads every text; use another"
    )

    after = line("doctor", "--offline")

    assert "Searching" not in before.out
    assert after.out.splitlines()[-1] == "warning: Searching reads every text; use another"
    assert after.status == before.status
