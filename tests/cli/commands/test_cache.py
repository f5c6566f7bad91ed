"""``--cache``, ``--budget`` and ``adjudge cache``: what is asked once, what it may cost, and why."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kit import cli
from kit.cli import WORDS, Line, serve
from kit.judges import names

pytestmark = pytest.mark.timed


CRITERIA = ("--criteria", "Is good.")
PRICES = '[prices]\n"small" = {input = 1.0, output = 1.0}\n'


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    for name in ("good", "bad"):
        Path(f"{name}.txt").write_text(name, encoding="utf-8")
    return Line(capsys)


def test_the_second_time_nobody_is_asked(line: Line):
    """The same question to the same model is answered from the file; another is asked."""
    with serve() as server:
        ask = ("judge", "good.txt", *CRITERIA, "--judge", server.spec, "--cache", "c", "--json")
        first, second = line(*ask), line(*ask)
        asked = len(server.bodies)
        line(*ask, "--threshold", "0.1")
        same = len(server.bodies)
        line(*[{"good.txt": "bad.txt"}.get(word, word) for word in ask])
        other = len(server.bodies)

    assert (first.status, second.status) == (0, 0)
    assert (asked, same, other) == (1, 1, 2)
    assert second.document["usage"]["calls"] == 0
    assert second.document["score"] == first.document["score"]


def test_a_budget_is_kept_and_told(line: Line):
    """What was spent stands on standard error; without enough, nobody is asked and the status is 3."""
    Path("adjudge.toml").write_text(PRICES, encoding="utf-8")
    with serve() as server:
        ask = ("judge", "good.txt", *CRITERIA, "--judge", server.spec, "--json", "--budget")
        enough, little = line(*ask, "1"), line(*ask, "0.0001")
        asked = len(server.bodies)

    assert (enough.status, little.status, asked) == (0, 3, 1)
    assert "of the budget of $1.0000" in enough.err
    assert enough.document["usage"]["cost_usd"] > 0
    assert little.document["undecided_because"] == "budget"


@pytest.mark.parametrize("command", [("judge", "good.txt"), ("run", "cases.jsonl", "--out", "kept")])
def test_a_function_is_said_not_to_be_kept(line: Line, command: tuple[str, ...]):
    """A cache that stays empty is told of; one that keeps the replies of a server is not."""
    Path("cases.jsonl").write_text('{"content": "good"}\n', encoding="utf-8")
    with serve() as server:
        kept = line(*command, *CRITERIA, "--judge", server.spec, "--cache", "c")
    Path("kept").rename("before") if command[0] == "run" else None
    function = line(*command, *CRITERIA, "--judge", WORDS, "--no-token", "--cache", "d")

    assert names(function.err, "--cache keeps only", "behind an address", f"none of {WORDS}")
    assert "--cache keeps only" not in kept.err
    assert Path("c").exists()
    assert not Path("d").exists()


def test_a_budget_without_a_price_is_refused(line: Line):
    """Before anything is asked."""
    ran = line("judge", "good.txt", *CRITERIA, "--judge", "http://127.0.0.1:9/v1#m", "--budget", "1")

    assert ran.status == 2
    assert names(ran.err, "a budget", "price of http://127.0.0.1:9/v1#m", "unknown")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--budget", "-1"), "--budget … dollars … 0 or more … -1.0"),
        (("--cache", "c", "--record", "r"), "--record … --cache"),
    ],
)
def test_what_cannot_be_is_refused(line: Line, arguments: tuple[str, ...], message: str):
    """In one sentence, with status 2."""
    ran = line("judge", "good.txt", *CRITERIA, "--judge", WORDS, *arguments)

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_an_explanation_is_what_a_reply_is_found_by(line: Line):
    """The key and every ingredient, without asking; found once it was asked, under the very key."""
    with serve() as server:
        arguments = ("good.txt", *CRITERIA, "--judge", server.spec, "--cache", "c", "--json")
        line("judge", "bad.txt", *arguments[1:])
        before = line("cache", "explain", *arguments)
        asked = len(server.bodies)
        line("judge", *arguments)
        after = line("cache", "explain", *arguments)

    assert asked == 1
    explanations = [ran.document["explanations"][0] for ran in (before, after)]
    assert [item["found"] for item in explanations] == [False, True]
    assert explanations[0]["key"] == explanations[1]["key"]
    assert explanations[0]["ingredients"]["identity"] == {"address": server.url}
    assert explanations[0]["key"] in {item["key"] for item in line("cache", "list", "c", "--json").document["replies"]}


def test_an_explanation_of_a_chain_names_every_seat(line: Line):
    """Seats of one model are apart by their number; for people, a line for each ingredient."""
    spec = ("--judge", "http://127.0.0.1:9/v1#m") * 2
    ran = line("cache", "explain", "good.txt", *CRITERIA, *spec)

    assert ran.status == 0
    assert [text for text in ran.out.splitlines() if text.startswith("seat")] == ["seat\t0", "seat\t1"]
    assert "parameters.temperature\t0" in ran.out


def test_a_function_is_not_explained(line: Line):
    """It has no identity, so its replies are not kept; the sentence says so."""
    ran = line("cache", "explain", "good.txt", *CRITERIA, "--judge", WORDS)

    assert ran.status == 2
    assert "cannot be cached" in ran.sentence


def test_a_cache_is_counted_and_emptied(line: Line):
    """By ``stats`` and ``clear``; content stands in neither, nor in the list."""
    with serve() as server:
        for name in ("good.txt", "bad.txt"):
            line("judge", name, *CRITERIA, "--judge", server.spec, "--cache", "c")
    stats = line("cache", "stats", "c", "--json").document

    assert (stats["replies"], stats["models"]) == (2, {server.spec: 2})
    assert line("cache", "stats", "c").out.startswith("2 replies, ")
    assert "good" not in line("cache", "list", "c").out
    assert line("cache", "clear", "c", "--model", "other").out == "dropped 0 replies\n"
    assert line("cache", "clear", "c", "--older-than", "3600").out == "dropped 0 replies\n"
    assert line("cache", "clear", "c").out == "dropped 2 replies\n"
    assert line("cache", "stats", "c").out == "0 replies, 0 bytes\n"


@pytest.mark.parametrize("command", ["list", "stats", "clear"])
def test_a_mistyped_cache_is_not_begun(line: Line, command: str):
    """There is no file afterwards either."""
    ran = line("cache", command, "missing")

    assert ran.status == 2
    assert ran.sentence.startswith("there is no cache 'missing'")
    assert not Path("missing").exists()


GATE = """
[gates.publish]
rubric = "polite.yaml"
judge = "{judge}"
cache = "replies"
cache_expires_in = 60
budget = 1.0
budget_per = 60
[prices]
"small" = {{input = 1.0, output = 1.0}}
"""


def write_gate(judge: str, **changes: str) -> None:
    Path("polite.yaml").write_text("name: Polite\ncriteria:\n  - {name: criteria, description: Is polite.}\n")
    text = GATE.format(judge=judge)
    for before, after in changes.items():
        text = "\n".join(after if row.startswith(f"{before} =") else row for row in text.splitlines())
    Path("adjudge.toml").write_text(text, encoding="utf-8")


def test_a_gate_has_a_cache_and_a_cap(line: Line):
    """What it decided before it decides again without asking; beyond the cap nobody is asked and it blocks."""
    with serve() as server:
        write_gate(server.spec)
        first, second = (line("gate", "check", "publish", "good.txt", "--json") for _ in range(2))
        asked = len(server.bodies)
        write_gate(server.spec, budget="budget = 0.000001")
        third = line("gate", "check", "publish", "bad.txt", "--json")

    assert (first.status, second.status, asked, len(server.bodies)) == (0, 0, 1, 1)
    assert second.document["result"]["usage"]["calls"] == 0
    assert third.status == 3
    assert third.document["result"]["undecided_because"] == "budget"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cache": "cache = 5"}, "[gates.publish] … cache … a name in quotes … got 5"),
        ({"cache": ""}, "[gates.publish] … cache_expires_in needs a cache … write cache, the file to keep replies in"),
        (
            {"cache_expires_in": "cache_expires_in = -1"},
            "[gates.publish] … a cache: expires_in … a finite number",
        ),
        ({"budget": ""}, "[gates.publish] … budget_per needs a budget … write budget, in US dollars"),
        ({"budget": 'budget = "5"'}, "[gates.publish]: budget … dollars, 0 or more … got '5'"),
        ({'"small"': '"small" = {input = 1.0}'}, "[prices] … the price of 'small' … like"),
    ],
)
def test_what_is_written_wrong_is_said(line: Line, changes: dict[str, str], message: str):
    """With the table, before anything is asked."""
    write_gate(WORDS, **changes)
    ran = line("gate", "check", "publish", "good.txt")

    assert ran.status == 2
    assert names(ran.sentence, *message.split(" … "))


def test_the_document_of_a_cache_is_json(line: Line):
    """Lists have a schema, like every document."""
    with serve() as server:
        line("judge", "good.txt", *CRITERIA, "--judge", server.spec, "--cache", "c")
    listed = json.loads(line("cache", "list", "c", "--json").out)

    assert listed["schema"] == "adjudge/cached-replies/1"
    assert set(listed["replies"][0]) == {"key", "at", "model", "bytes"}
