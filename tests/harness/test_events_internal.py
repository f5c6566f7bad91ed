"""Events of Claude Code and Codex, as they were recorded, and as somebody might forge them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from adjudge.errors import UsageError
from adjudge.harness.events import (
    AnswerEvent,
    CallEvent,
    Harness,
    HookEvent,
    PromptEvent,
    RanEvent,
    read_event,
)
from adjudge.harness.hook_client import LARGEST_EVENT
from kit.house import TESTS

FILES = {"claude": "claude-2.1.330.jsonl", "codex": "codex-0.169.0.jsonl"}


def read_lines(harness: Harness) -> list[dict[str, Any]]:
    text = (TESTS / "data" / "harness" / FILES[harness]).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def read(harness: Harness, document: object) -> HookEvent:
    return read_event(harness, json.dumps(document).encode())


def make_call(**changed: object) -> dict[str, Any]:
    event = {
        "session_id": "s1",
        "cwd": "/work",
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "ls"},
        "tool_use_id": "t1",
    }
    return {name: value for name, value in {**event, **changed}.items() if value is not ...}


@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_every_recorded_event_is_read(harness: Harness):
    """Calls, results, failures, prompts and answers of the real programs are what they were."""
    kinds = Counter(type(read(harness, line)) for line in read_lines(harness))

    assert kinds[CallEvent] >= 5
    assert kinds[RanEvent] >= 3
    assert kinds[PromptEvent] == 1
    assert kinds[AnswerEvent] >= 1


def test_a_call_is_made_of_what_claude_code_says():
    """The description is only a remark, since a model words it anew each time."""
    event = next(line for line in read_lines("claude") if line["hook_event_name"] == "PreToolUse")

    read_one = read("claude", event)

    assert isinstance(read_one, CallEvent)
    assert read_one.call.tool == "Bash"
    assert read_one.call.arguments == {"command": "echo hi"}
    assert read_one.call.remarks == {"description": "Say hi"}
    assert (read_one.call.call_id, read_one.call.run_id) == ("toolu_01", event["session_id"])
    assert read_one.call.cwd == "/home/ana/shop"
    assert read_one.call.agent is None


def test_the_arguments_of_a_run_are_those_of_its_check():
    """Else every run would look as if nobody had checked it."""
    for harness in FILES:
        events = [read(harness, line) for line in read_lines(harness)]
        checked = {event.call.call_id: event.call for event in events if isinstance(event, CallEvent)}
        ran = [event.call for event in events if isinstance(event, RanEvent)]

        assert ran
        assert [call for call in ran if call != checked[call.call_id]] == []


def test_a_failed_run_is_known_as_one():
    """``PostToolUseFailure`` has the error in place of a result."""
    ran = [event for line in read_lines("claude") if isinstance(event := read("claude", line), RanEvent)]

    assert [(event.call.call_id, event.response) for event in ran if event.failed] == [("toolu_02", "Exit code 3\nno")]


def test_a_sub_agent_is_named_in_its_calls():
    """Its approvals are its own."""
    calls = [event.call for line in read_lines("claude") if isinstance(event := read("claude", line), CallEvent)]

    assert [call.arguments for call in calls if call.agent is not None] == [{"command": "echo sub"}]


def test_a_tool_of_mcp_is_known_by_server_and_tool():
    """``my.bank`` and ``my_bank`` share one joined name, and are two servers."""
    calls = [event for line in read_lines("claude") if isinstance(event := read("claude", line), CallEvent)]
    own = [(event.call.server, event.call.tool, event.call.remarks) for event in calls if event.call.server]
    of_codex = [event for line in read_lines("codex") if isinstance(event := read("codex", line), CallEvent)]

    assert own == [
        ("bank", "transfer", {"mcp_server_source": "dynamic"}),
        ("my.bank", "transfer", {"mcp_server_source": "dynamic"}),
    ]
    assert [(e.call.server, e.call.tool) for e in of_codex if e.call.server] == [("bank", "transfer")]


def test_the_folder_of_a_command_of_codex_is_the_one_it_runs_in():
    """Codex puts ``workdir`` there, so an approval in one folder opens nothing in another."""
    calls = [event.call for line in read_lines("codex") if isinstance(event := read("codex", line), CallEvent)]

    assert {call.call_id: call.cwd for call in calls}["c2"] == "/home/ana"


def test_a_patch_in_a_command_of_codex_is_a_call_of_its_own():
    """Codex applies it itself and says ``Bash``: the gate of edits would never be asked."""
    calls = [event for line in read_lines("codex") if isinstance(event := read("codex", line), CallEvent)]
    patches = [event.patch for event in calls if event.patch is not None]

    assert [(call.tool, call.call_id, call.cwd) for call in patches] == [("apply_patch", "c3", "/home/ana/shop")]
    assert patches[0].arguments == {"command": "*** Begin Patch\n*** Add File: made.txt\n+hello\n*** End Patch"}


def test_a_patch_in_another_folder_is_one_of_that_folder():
    """``cd`` before it changes which files are meant."""
    command = "cd /etc && apply_patch <<'X'\n*** Begin Patch\n*** Delete File: passwd\n*** End Patch\nX\n"

    event = read("codex", make_call(tool_input={"command": command}))

    assert isinstance(event, CallEvent)
    assert event.patch is not None
    assert event.patch.cwd == "/etc"


@pytest.mark.parametrize(
    "changed",
    [
        {"tool_input": "ls"},
        {"tool_input": ...},
        {"tool_name": ...},
        {"tool_name": ["Bash"]},
        {"tool_name": "mcp__bank__x__pay"},
        {"tool_name": "mcp__bank"},
        {"tool_name": "mcp____pay"},
        {"tool_name": "mcp__bank___pay"},
        {"tool_name": "mcp__bank__pay", "mcp_server": {"name": "other"}},
        {"tool_name": "Bash", "mcp_server": {"name": "bank"}},
        {"tool_name": "mcp__bank__pay", "mcp_server": "bank"},
        {"tool_use_id": ...},
        {"tool_use_id": "\x1b[2J"},
        {"session_id": ""},
        {"session_id": " "},
        {"session_id": 1},
        {"cwd": "work"},
        {"cwd": ...},
        {"agent_id": 3},
        {"hook_event_name": "PreCompact"},
        {"hook_event_name": None},
        {"hook_event_name": "Stop", "stop_hook_active": "no"},
        {"hook_event_name": "UserPromptSubmit"},
    ],
)
@pytest.mark.parametrize("harness", ["claude", "codex"])
def test_an_event_that_cannot_be_read_is_an_error(harness: Harness, changed: dict[str, object]):
    """Nothing is guessed: what is read as no call would be made without a check."""
    with pytest.raises(UsageError):
        read(harness, make_call(**changed))


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"null",
        b'{"session_id": "s", "session_id": "t"}',
        b'{"hook_event_name": "PreToolUse"',
        b"\xff",
        b"[" * 100_000,
        json.dumps(make_call()).encode()[:-1] + b', "tool_name": "Read"}',
        b" " * (LARGEST_EVENT + 1),
    ],
)
def test_bytes_that_are_no_event_are_an_error(raw: bytes):
    """A name that stands twice is one too: the harness may have meant the other."""
    with pytest.raises(UsageError):
        read_event("claude", raw)


@pytest.mark.parametrize("response", ["[" * 300 + "]" * 300, '{"a": 1, "a": 2}', "NaN", "1.0000000000000000001"])
def test_a_result_that_cannot_be_read_is_left_out(response: str):
    """The call was made and the agent has read it, so it has to be on record."""
    event = json.dumps(make_call(hook_event_name="PostToolUse", tool_response=0))
    raw = event.replace('"tool_response": 0', f'"tool_response": {response}').encode()
    ran = read_event("claude", raw)

    assert isinstance(ran, RanEvent)
    assert (ran.left_out, ran.response) == (True, None)
    with pytest.raises(UsageError):
        read_event("claude", raw.replace(b"PostToolUse", b"PreToolUse"))


def test_codex_has_no_event_of_failures():
    """One that says so was not sent by it."""
    with pytest.raises(UsageError):
        read("codex", make_call(hook_event_name="PostToolUseFailure", error="x"))
