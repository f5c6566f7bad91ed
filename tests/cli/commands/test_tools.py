"""``adjudge tools``: what it prints, what it changes, and with which status it ends."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Ledger, ToolRegistry
from adjudge.ledger import create_signing_key
from kit.cli import ESCAPES, HIDDEN, ME, Line, isolate
from kit.ledgers import find, record
from kit.registries import add, raise_up, run, wear

URL = "sqlite:///a.db"
HOSTILE = f"Adds. {ESCAPES}\nstatus: shared"


JUDGE = ("--judge", "python:kit.registries:review_words")


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line in an empty folder."""
    isolate(monkeypatch, tmp_path)
    return Line(capsys)


def forge_tool(*, uses: int = 5, tiers: tuple[str, ...] = (), **more: str) -> str:
    """The id of a tool in the ledger of the folder."""

    async def make(registry: ToolRegistry) -> str:
        ident = await add(registry, **more)
        await wear(registry, ident, uses)
        await raise_up(registry, ident, *tiers)
        return ident

    return run(make, URL)


def test_list_shows_tools_and_no_escape_sequence(line: Line):
    """A row for each, in order; what a model called its tool cannot reach the terminal raw."""
    first, second = forge_tool(name=f"a {ESCAPES}".replace("\0", ""), uses=4), forge_tool(name="b", tiers=("agent",))
    done = line("tools", "list", "--ledger", "a.db")

    assert done.status == 0
    assert [row.split()[0] for row in done.out.splitlines()[1:]] == [first, second]
    assert not HIDDEN.search(done.out)
    assert "1.00" in done.out


def test_list_filters_and_writes_json(line: Line):
    """By whole values; an unknown tier is wrong usage."""
    forge_tool(name="a", session="s1")
    ident = forge_tool(name="b", session="s10", tiers=("agent",))
    document = line("tools", "list", "--ledger", URL, "--tier", "agent", "--json").document
    none = line("tools", "list", "--ledger", URL, "--session", "s")

    assert (document["schema"], [item["tool"]["id"] for item in document["tools"]]) == (
        "adjudge/tool-records/1",
        [ident],
    )
    assert (none.status, none.out, none.err) == (0, "", "no tools\n")
    assert line("tools", "list", "--ledger", URL, "--tier", "Agent").status == 2


def test_show_prints_a_tool_as_data(line: Line):
    """What it is and what was said; nothing in it can pass for a further field, or move the cursor."""
    ident = forge_tool(description=HOSTILE, source=f"one\ntwo {ESCAPES}")
    done = line("tools", "show", ident, "--ledger", "a.db")
    whole = line("tools", "show", ident, "--ledger", "a.db", "--json").document

    assert done.status == 0
    assert not HIDDEN.search(done.out)
    assert [row.split()[1] for row in done.out.splitlines() if row.startswith("status")] == ["active"]
    assert "verdict      creation approved with confidence 0.90: It adds." in done.out
    assert "    one\n    two " in done.out
    assert (whole["schema"], whole["tool"]["candidate"]["description"]) == ("adjudge/tool-record/1", HOSTILE)


def test_promote_asks_the_judge_and_raises(line: Line):
    """To the agent by the panel; then to all, in the name of whoever typed it, or of ``--by``."""
    ident = forge_tool()
    assert line("tools", "promote", ident, "--ledger", "a.db", *JUDGE).out == "promoted to agent\n"
    again = line("tools", "promote", ident, "--ledger", "a.db", *JUDGE)
    shared = line("tools", "promote", ident, "--to", "shared", "--ledger", "a.db", *JUDGE, "--json")
    other = forge_tool(name="b", source="b", tiers=("agent",))
    named = line("tools", "promote", other, "--to", "shared", "--by", "grace", "--ledger", "a.db", *JUDGE, "--json")

    assert (again.status, again.out.startswith("not promoted (already)")) == (0, True)
    assert (shared.status, shared.document["promoted"]) == (0, True)
    assert shared.document["tool"]["approved_by"] == ME
    assert named.document["tool"]["approved_by"] == "grace"
    assert [(entry.payload or {})["tier"] for entry in find(URL, kind="tool.promoted")][:2] == ["agent", "shared"]


@pytest.mark.parametrize(
    ("source", "uses", "because", "status"),
    [("bad", 5, "rejected", 1), ("odd", 5, "rejected", 3), ("good", 4, "usage", 1)],
)
def test_promote_ends_as_the_panel_says(line: Line, source: str, uses: int, because: str, status: int):
    """Refused is 1, undecided is 3, and neither raises the tool."""
    ident = forge_tool(source=source, uses=uses)
    done = line("tools", "promote", ident, "--ledger", "a.db", *JUDGE)

    assert (done.status, done.out.startswith(f"not promoted ({because})")) == (status, True)
    assert line("tools", "show", ident, "--ledger", "a.db", "--json").document["tool"]["tier"] == "session"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--to", "shared"), "rises one tier at a time"),
        (("--to", "Agent"), "--to must be one of"),
        (("--by", " "), "--by needs a name"),
    ],
)
def test_promote_refuses_what_somebody_has_to_mend(line: Line, more: tuple[str, ...], message: str):
    """One sentence, status 2, and nobody is asked."""
    ident = forge_tool()
    done = line("tools", "promote", ident, "--ledger", "a.db", "--judge", "python:kit.cli:judge_words", *more)

    assert (done.status, message in done.sentence) == (2, True)


def test_demote_takes_a_tool_out_of_use(line: Line):
    """With a reason and a name, both on record; it is not promoted any more."""
    ident = forge_tool(tiers=("agent",))
    done = line("tools", "demote", ident, "--reason", "it lies", "--by", "grace", "--ledger", "a.db")
    (entry,) = find(URL, kind="tool.demoted")

    assert (done.status, done.out) == (0, f"demoted: {ident}\n")
    assert entry.payload is not None
    assert (entry.payload["reason"], entry.payload["by"], entry.payload["was"]) == ("it lies", "grace", "agent")
    assert "is demoted" in line("tools", "promote", ident, "--ledger", "a.db", *JUDGE).sentence
    assert line("tools", "demote", ident, "--ledger", "a.db").status == 2  # no reason


def test_the_ledger_of_the_configuration_is_used(line: Line):
    """With its ``store_content``; without any ledger it is said how to name one."""
    ident = forge_tool()
    assert "no ledger is named" in line("tools", "list").sentence
    Path("adjudge.toml").write_text(f'[ledger]\nurl = "{URL}"\nstore_content = "full"\n', encoding="utf-8")
    assert line("tools", "promote", ident, *JUDGE).out == "promoted to agent\n"
    (entry,) = find(URL, kind="tool.promoted")

    assert entry.payload is not None
    assert entry.payload["verdict"]["safety"]["reasoning"] == "so"


def test_a_signed_ledger_is_written_with_its_key(line: Line, tmp_path: Path, require: Any):
    """Without the key nothing is changed."""
    require("cryptography", find_spec("cryptography"), "pip install 'adjudge[sign]'")
    create_signing_key(tmp_path / "key.pem")

    async def make() -> str:
        async with Ledger(URL, key="key.pem") as ledger:
            return await add(ToolRegistry(ledger))

    ident = asyncio.run(make())
    words = ("tools", "demote", ident, "--reason", "it lies", "--ledger", "a.db")

    assert "is signed" in line(*words).sentence
    assert line(*words, "--key", "key.pem").status == 0


def test_a_mistyped_address_makes_nothing(line: Line, tmp_path: Path):
    """Neither a ledger, nor tables in one that has no tools yet."""
    for words in (["list"], ["show", "x"], ["demote", "x", "--reason", "y"], ["promote", "x", *JUDGE]):
        assert "there is no ledger" in line("tools", *words, "--ledger", "b.db").sentence
    assert list(tmp_path.iterdir()) == []
    record(URL, {"n": 1})

    assert line("tools", "list", "--ledger", URL).err == "no tools\n"
    assert "there is no tool" in line("tools", "show", "x", "--ledger", URL).sentence
    assert "there is no tool" in line("tools", "demote", "x", "--reason", "y", "--ledger", URL).sentence
