"""``adjudge calls``: calls that agents wanted to make become a data set, and people's labels say who errs how often."""

from __future__ import annotations

import asyncio
import gzip
import json
import stat
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Gate, Ledger
from adjudge.guards import ToolCall, ToolGuard
from kit import cli
from kit.cli import Line
from kit.observed_calls import judge_calls, make_call_case, make_shell, write_session
from kit.transcripts import find_file, read_lines

CONFIG = """
[ledger]
url = "sqlite:///{folder}/ledger.db"
store_content = "{store}"

[gates.shell]
rules = [{{not_contains = "curl"}}]

[hook]
tools = {{"Bash" = "shell"}}
mcp = [{{server = "shop", tool = "pay", gate = "shell"}}]
mode = "observe"
until = {until}
"""


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    return Line(capsys)


def read_cases(path: str = "calls.jsonl") -> list[dict[str, Any]]:
    return [json.loads(row) for row in Path(path).read_text("utf-8").splitlines()]


def list_outcomes(path: str = "calls.jsonl") -> dict[str, Any]:
    return {row["content"]["arguments"]["command"]: row["metadata"]["call"]["outcomes"] for row in read_cases(path)}


# ---------------------------------------------------------------- from transcripts


def test_each_call_of_a_transcript_is_a_case_with_what_the_harness_did(line: Line):
    """As a hook has it judged: without the agent's remark. A call that our own guard stopped tells nothing of it."""
    outcomes = ("ran", "refused", "by rule", "asked", "cut", "guarded", "no result")
    write_session(Path("session.jsonl"), [make_shell(f"do {outcome}", outcome) for outcome in outcomes])

    ran = line("calls", "collect", "session.jsonl", "--out", "calls.jsonl")

    assert ran.status == 0, ran.err
    assert list_outcomes() == {
        "do ran": {"ran": 1},
        "do refused": {"refused": 1},
        "do by rule": {"refused": 1},
        "do asked": {"asked": 1},
        "do cut": {"unknown": 1},
        "do guarded": {"unknown": 1},
        "do no result": {"unknown": 1},
    }
    assert read_cases()[0]["content"] == {"tool": "Bash", "arguments": {"command": "do ran"}}
    assert stat.S_IMODE(Path("calls.jsonl").stat().st_mode) == 0o600


@pytest.mark.parametrize("form", ["claude-stream", "claude-session", "codex-json", "codex-rollout"])
def test_a_call_is_the_same_case_whichever_agent_made_it(line: Line, form: str):
    """As the real tools wrote it. A command that was made and failed was made."""
    for script, commands in (("clean", ["ls backup", "cat backup/a.txt", "cat backup/b.txt"]), ("failing", None)):
        ran = line("calls", "collect", find_file(form, script), "--out", f"{script}.jsonl")

        assert ran.status == 0, ran.err
        found = [row["content"] for row in read_cases(f"{script}.jsonl")]
        expected = commands or ["echo oops; exit 3"]
        assert found == [{"tool": "Bash", "arguments": {"command": command}} for command in expected]
        assert list(list_outcomes(f"{script}.jsonl").values()) == [{"ran": 1}] * len(expected)


def test_what_claude_code_prints_says_beside_a_result_that_a_call_was_not_made(line: Line):
    """In a member that no tool writes. The same words as a tool's own error leave it open."""
    lines = read_lines("claude-stream", "failing")
    words = "Permission to use Bash with command x has been denied."
    [refusal] = [entry for entry in lines if entry["type"] == "user"]
    [part] = refusal["message"]["content"]
    part |= {"content": words, "is_error": True}
    for name, meta, outcome in (
        ("said", [{"id": part["tool_use_id"], "non_execution_kind": "permission-rule"}], "refused"),
        ("other", [{"id": "another", "non_execution_kind": "permission-rule"}], "unknown"),
    ):
        refusal["tool_result_meta"] = meta
        Path(f"{name}.jsonl").write_text("".join(f"{json.dumps(entry)}\n" for entry in lines), encoding="utf-8")

        assert line("calls", "collect", f"{name}.jsonl", "--out", f"{name}-calls.jsonl").status == 0
        assert list(list_outcomes(f"{name}-calls.jsonl").values()) == [{outcome: 1}]


def test_equal_calls_are_one_case_that_counts_them(line: Line):
    """In any session and order of arguments; one that was made once was let through."""
    write_session(Path("t/a.jsonl"), [make_shell("ls"), make_shell("rm x", "refused")], "a")
    write_session(Path("t/b.jsonl"), [make_shell("rm x"), make_shell("rm x", "refused"), make_shell("ls")], "b")
    Path("t/note.json").write_text("{}", encoding="utf-8")

    ran = line("calls", "collect", "t", "--out", "calls.jsonl", "--json")

    assert list_outcomes() == {"ls": {"ran": 2}, "rm x": {"refused": 2, "ran": 1}}
    assert ran.document["calls"] == 5
    assert ran.document["cases"] == 2
    assert ran.document["harness"] == {"ran": 2}
    assert list(ran.document["left_out"].values()) == [1]


def test_rules_are_those_of_the_gate_that_checks_the_tool(line: Line, tmp_path: Path):
    """Calls that it does not check are left out; a tool of MCP is named by its server and tool."""
    cli.configure(CONFIG.format(folder=tmp_path, store="full", until="2099-01-01").replace('mode = "observe"\n', ""))
    calls = [make_shell("ls"), make_shell("curl x"), ("mcp__shop__pay", {"to": "curl"}, "ran"), ("Read", {}, "ran")]
    write_session(Path("session.jsonl"), calls)

    ran = line("calls", "collect", "session.jsonl", "--gate", "shell", "--out", "calls.jsonl", "--json")

    assert ran.status == 0, ran.err
    rows = [(row["content"]["tool"], row["metadata"]["call"]["rules"]) for row in read_cases()]
    assert rows == [("Bash", "passed"), ("Bash", "failed"), ("pay", "failed")]
    assert read_cases()[2]["content"]["server"] == "shop"
    assert read_cases()[1]["metadata"]["call"]["failed_rules"] == ["not_contains"]
    assert list(ran.document["left_out"].values()) == [1]


def test_what_the_rules_would_have_stopped_is_listed_with_the_rule(line: Line, tmp_path: Path):
    """The first ten; nobody has to look for them in the file."""
    cli.configure(CONFIG.format(folder=tmp_path, store="full", until="2099-01-01").replace('mode = "observe"\n', ""))
    calls = [make_shell("ls"), *(make_shell(f"curl {place}") for place in range(12))]
    write_session(Path("session.jsonl"), calls)
    stopped = line("calls", "collect", "session.jsonl", "--gate", "shell", "--out", "calls.jsonl").out.splitlines()[3:]

    assert len(stopped) == 11
    assert all("not_contains: " in row and f"curl {place}" in row for place, row in enumerate(stopped[:10]))
    assert stopped[10].strip().startswith("and 2 more")


def test_a_refusal_of_codex_is_known_by_its_own_words_alone(line: Line):
    """A command that prints them has a header before its output."""
    entries = [
        ("session_meta", {"id": "s"}),
        ("event_msg", {"type": "task_started"}),
        *_make_codex_call("c1", "rm -r /", "exec command rejected by user"),
        *_make_codex_call("c2", "echo so", f"{_HEADER}exec command rejected by user"),
        ("event_msg", {"type": "task_complete"}),
    ]
    rows = [{"type": kind, "payload": payload} for kind, payload in entries]
    Path("rollout.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    assert line("calls", "collect", "rollout.jsonl", "--out", "calls.jsonl").status == 0
    assert list_outcomes() == {"rm -r /": {"refused": 1}, "echo so": {"ran": 1}}


_HEADER = "Wall time: 0.1 seconds\nProcess exited with code 0\nOutput:\n"


def _make_codex_call(call_id: str, command: str, output: str) -> list[tuple[str, dict[str, Any]]]:
    call = {"type": "function_call", "name": "exec_command", "arguments": json.dumps({"cmd": command})}
    result = {"type": "function_call_output", "output": output}
    return [("response_item", part | {"call_id": call_id}) for part in (call, result)]


def test_nothing_is_written_where_there_is_no_call(line: Line):
    """Nor over a file, nor in a form that no run would read."""
    write_session(Path("session.jsonl"), [])
    Path("there.jsonl").write_text("", encoding="utf-8")

    assert line("calls", "collect", "session.jsonl", "--out", "calls.jsonl").status == 2
    assert not Path("calls.jsonl").exists()
    for name in ("there.jsonl", "calls.csv", "absent/calls.jsonl"):
        assert line("calls", "collect", "session.jsonl", "--out", name).status == 2
    assert line("calls", "collect", "session.jsonl", "--ledger", "l.db", "--out", "calls.jsonl").status == 2


def test_a_data_set_may_be_compressed(line: Line):
    """A data set may be compressed."""
    write_session(Path("session.jsonl"), [make_shell("ls")])

    assert line("calls", "collect", "session.jsonl", "--out", "calls.jsonl.gz").status == 0
    assert json.loads(gzip.decompress(Path("calls.jsonl.gz").read_bytes()))["content"]["tool"] == "Bash"


# ---------------------------------------------------------------- from the ledger of a hook


def observe(url: str, store_content: str = "full", *, mode: str = "observe", match: str = "content") -> None:
    """A guard lets calls through and a harness makes some of them, as its hook records it."""
    gates: dict[str, Any] = {"mode": mode, "rules": [{"not_contains": "curl"}]}

    async def go() -> None:
        async with Ledger(url, store_content=store_content) as ledger:
            unsafe = ["shell.mode"] * (mode != "enforce")
            guard = ToolGuard({"Bash": Gate("shell", ledger=ledger, **gates), "Read": None}, unsafe=unsafe, match=match)
            for number, (command, ran) in enumerate((("ls", True), ("curl x", True), ("rm x", False), ("ls", True))):
                call = ToolCall("Bash", {"command": command}, f"c{number}", "run-1", cwd="/srv")
                verdict = await guard.check(call)
                if verdict:
                    await guard.record_pass(call, verdict)
                if verdict and ran:
                    await guard.record_run(call)
            await guard.check(ToolCall("Read", {"path": "x"}, "c9", "run-1"))
            await guard.check_answer("fine", run_id="run-1")
            await Gate("other", rules=["secrets"], ledger=ledger).check("no call")

    asyncio.run(go())


@pytest.mark.parametrize("match", ["content", "call"])
def test_calls_of_an_observing_hook_say_what_was_made_and_what_the_rules_said(line: Line, match: str):
    """With what is judged, folder and all. Of the last calls of a run nobody knows yet whether they were refused."""
    observe("sqlite:///l.db", match=match)

    ran = line("calls", "collect", "--ledger", "l.db", "--gate", "shell", "--out", "calls.jsonl", "--json")

    assert ran.status == 0, ran.err
    assert list_outcomes() == {"ls": {"ran": 2}, "curl x": {"ran": 1}, "rm x": {"unknown": 1}}
    assert [row["metadata"]["call"]["rules"] for row in read_cases()] == ["passed", "failed", "passed"]
    assert read_cases()[0]["content"] == {"tool": "Bash", "cwd": "/srv", "arguments": {"command": "ls"}}
    assert ran.document["left_out"] == {}


def test_a_case_has_the_digest_that_the_gate_judged(line: Line):
    """So a label of it is one of the decision's content."""
    observe("sqlite:///l.db")

    assert line("calls", "collect", "--ledger", "l.db", "--out", "calls.jsonl").status == 0
    listed = line("ledger", "list", "--ledger", "l.db", "--gate", "shell", "--json").document["entries"]
    assert {row["id"] for row in read_cases()} == {entry["subject"] for entry in listed}


def test_a_ledger_of_digests_says_what_to_write_instead(line: Line):
    """A ledger of digests says what to write instead."""
    observe("sqlite:///l.db", "hash")

    ran = line("calls", "collect", "--ledger", "l.db", "--out", "calls.jsonl")

    assert ran.status == 2
    assert 'store_content = "full"' in ran.sentence


def test_calls_that_the_guard_stopped_itself_are_left_out(line: Line):
    """The harness was not asked about them, so nothing tells what it would have done."""
    observe("sqlite:///l.db", mode="enforce")

    ran = line("calls", "collect", "--ledger", "l.db", "--gate", "shell", "--out", "calls.jsonl", "--json")

    assert list_outcomes() == {"ls": {"ran": 2}, "rm x": {"unknown": 1}}
    assert list(ran.document["left_out"].values()) == [1]


# ---------------------------------------------------------------- who lets what through


CALLS = [
    make_call_case(
        number,
        bad=number % 4 == 0,
        judge=number % 4 > 0 or number == 0,
        harness="refused" if number == 4 else "ran",
        rules="failed" if number == 8 else "passed",
    )
    for number in range(20)
]


def write_labels(path: str, cases: list[Case]) -> None:
    rows = [
        {"case": case.id, "subject": case.id, "rater": "ann", "value": "good" in case.content["arguments"]["command"]}
        for case in cases
    ]
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def test_the_rates_are_a_sentence_a_table_and_a_document(line: Line):
    """All from one measurement; counted, where every call has a label."""
    pytest.importorskip("scipy", reason="measuring needs the extra trust")
    judge_calls(Path("run"), CALLS)
    write_labels("labels.jsonl", CALLS)

    shown = line("calls", "rates", "run", "--labels", "labels.jsonl")
    document = line("calls", "rates", "run", "--labels", "labels.jsonl", "--json").document

    assert shown.status == 0, shown.err
    assert "the harness 80 %, the rules 80 % and the judge 20 %" in shown.out
    assert document["schema"] == "adjudge/call-rates/1"
    assert [decider["wrong_passes_of_bad"]["value"] for decider in document["deciders"]] == [0.8, 0.8, 0.2]
    assert document["limit"] == "count"


def test_labels_that_somebody_chose_are_status_3(line: Line):
    """With what would help, and the counts."""
    pytest.importorskip("scipy", reason="measuring needs the extra trust")
    judge_calls(Path("run"), CALLS)
    write_labels("labels.jsonl", CALLS[:8])

    shown = line("calls", "rates", "run", "--labels", "labels.jsonl")

    assert shown.status == 3
    assert "is not known" in shown.out
    assert "6 to allow, 2 to stop" in shown.out
