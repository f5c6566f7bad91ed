"""A guard as hooks of the Claude Agent SDK, called as the SDK calls them: a body runs as often as somebody allowed.

The real program is in ``test_claude_program_internal.py``; here a loop stands for it, and asks the hooks about calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge import Gate, UsageError
from adjudge.guards import ToolGuard
from kit.guarded_framework import DONE, HOLD, Call, delete, list_scenarios, make_bodies, play
from kit.tool_guards import Shop, open_shop
from kit.waiting_framework import WaitingFramework, count_open

try:
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

    from adjudge.integrations.claude import guard_options
except ModuleNotFoundError:
    ClaudeAgentOptions = None

pytestmark = pytest.mark.skipif(
    ClaudeAgentOptions is None,
    reason="claude-agent-sdk brings Claude Code, 365 MB; to have it, install the group claude",
)


def make_options() -> Any:
    """Options that load no settings."""
    return ClaudeAgentOptions(setting_sources=[])


def list_hooks(shop: Shop, event: str, **options: Any) -> list[Any]:
    """The functions that the SDK calls for an event."""
    hooks = guard_options(make_options(), shop.guard, **options).hooks or {}
    return [hook for matcher in hooks.get(event, []) for hook in matcher.hooks]  # type: ignore[call-overload]


def make_event(name: str, **members: Any) -> dict[str, Any]:
    """What the program tells a hook."""
    return {"session_id": "s-1", "transcript_path": "/t.jsonl", "cwd": "/", "hook_event_name": name, **members}


async def ask(shop: Shop, event: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Call the hook of an event, and return the part of its answer that is for the event."""
    [hook] = list_hooks(shop, event["hook_event_name"], **options)
    answer = await hook(event, event.get("tool_use_id"), {"signal": None})
    assert answer is not None  # the SDK counts it as a failure
    return answer.get("hookSpecificOutput", answer)


class ClaudeAgent(WaitingFramework):
    """A stand-in for the program: its model says what it is told, and its hooks are those of the SDK."""

    def __init__(self, **options: Any) -> None:
        self.options = options

    async def make(self, shop: Shop, conversation: str, calls: Sequence[Call]) -> list[str]:
        self.unfinished = len(calls)
        async with asyncio.TaskGroup() as group:
            made = [group.create_task(self.make_one(shop, conversation, call)) for call in calls]
        return [task.result() for task in made]

    async def make_one(self, shop: Shop, conversation: str, call: Call) -> str:
        try:
            return await self.ask_and_make(shop, conversation, call)
        finally:
            self.unfinished -= 1

    async def ask_and_make(self, shop: Shop, conversation: str, call: Call) -> str:
        members = {"tool_name": call.tool, "tool_input": dict(call.arguments), "tool_use_id": call.id}
        members["session_id"] = conversation
        asked = await ask(shop, make_event("PreToolUse", **members), **self.options)
        if asked.get("permissionDecision") == "deny":
            return asked["permissionDecisionReason"]
        assert asked == {}
        [body] = [body for body in make_bodies(shop) if body.__name__ == call.tool]
        result = body(**call.arguments)
        answer = await ask(shop, make_event("PostToolUse", tool_response=result, **members))
        return answer.get("updatedToolOutput", result)


@pytest.mark.parametrize("scenario", list_scenarios(ClaudeAgent))
def test_a_body_runs_as_often_as_somebody_allowed(scenario: Any, tmp_path: Path):
    """A body runs as often as somebody allowed."""
    play(scenario, ClaudeAgent(), tmp_path)


def test_a_session_goes_on_by_itself_and_another_one_does_not(url: str):
    """The ids of their calls are the same; the approval is for one of them."""

    async def work() -> None:
        async with open_shop(url) as shop:
            first = await ClaudeAgent().run(shop, [*HOLD, DONE], conversation="s-1")
            await shop.decide(True)
            await first.kept.task
            second = await ClaudeAgent().run(shop, HOLD, conversation="s-2")

            assert (second.is_held, shop.ran) == (True, ["delete /etc/x"])

    asyncio.run(work())


def test_a_call_that_waited_long_enough_passes_when_it_is_made_again(url: str):
    """With ``match="content"``, under another id, as a model repeats it, also in another process."""

    async def work(call_id: str) -> list[str]:
        async with open_shop(url, match="content") as shop:
            read = await ClaudeAgent(wait=0).make(shop, "s-1", [delete(call_id=call_id)])
            if await count_open(shop):
                await shop.decide(True)
            return [*shop.ran, *read]

    [waits] = asyncio.run(work("d-first"))
    assert "waits for a person" in waits
    assert asyncio.run(work("d-second")) == ["delete /etc/x", "deleted /etc/x"]


CALL = {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {}, "tool_use_id": "t"}

UNREADABLE: dict[str, dict[str, Any]] = {
    "no tool": {**CALL, "tool_name": None},
    "no arguments": {**CALL, "tool_input": "ls"},
    "no folder": {**CALL, "cwd": "."},
    "an unknown server": {**CALL, "tool_name": "mcp__a__b__c"},
    "no prompt": {"hook_event_name": "UserPromptSubmit"},
    "no flag": {"hook_event_name": "Stop", "stop_hook_active": 1},
}


@pytest.mark.parametrize("name", UNREADABLE)
def test_an_event_that_cannot_be_read_is_refused(url: str, name: str):
    """By the answer that the program knows for this event."""

    async def work() -> None:
        async with open_shop(url) as shop:
            text = Gate("text", rules=["secrets"], ledger=shop.ledger)
            strict = Shop(
                guard=ToolGuard({}, prompts=text, answers=text, ledger=shop.ledger),
                approvals=shop.approvals,
                ledger=shop.ledger,
            )
            event = UNREADABLE[name]
            answer = await ask(strict, {**make_event(event["hook_event_name"]), **event})

            assert "could not be checked" in (answer.get("permissionDecisionReason") or answer["reason"])
            assert answer.get("permissionDecision", answer.get("decision")) in ("deny", "block")

    asyncio.run(work())


def test_an_unknown_event_is_a_failure(url: str):
    """The matcher says that a failure blocks."""

    async def work() -> None:
        async with open_shop(url) as shop:
            [hook] = list_hooks(shop, "PostToolUse")
            with pytest.raises(UsageError):
                await hook(make_event("PostToolUse"), None, {})

    asyncio.run(work())


def test_prompts_and_answers_are_checked(url: str):
    """An answer is sent back once."""

    async def work() -> None:
        async with open_shop(url) as shop:
            text = Gate("text", rules=[{"not_contains": ["forbidden"]}], ledger=shop.ledger)
            guard = ToolGuard({}, prompts=text, answers=text, ledger=shop.ledger)
            checked = Shop(guard=guard, approvals=shop.approvals, ledger=shop.ledger)
            answers = [
                await ask(checked, make_event("UserPromptSubmit", prompt="a forbidden one")),
                await ask(checked, make_event("UserPromptSubmit", prompt="hello")),
                await ask(checked, make_event("Stop", last_assistant_message="forbidden", stop_hook_active=False)),
                await ask(checked, make_event("Stop", last_assistant_message="forbidden", stop_hook_active=True)),
                await ask(checked, make_event("Stop", last_assistant_message="fine", stop_hook_active=False)),
            ]

            assert [answer.get("decision") for answer in answers] == ["block", None, "block", None, None]

    asyncio.run(work())


def test_a_picture_is_withheld_where_results_are_checked(url: str):
    """No judge here sees it; the text beside it alone may be read."""

    async def work() -> None:
        async with open_shop(url) as shop:
            text = Gate("text", rules=[{"not_contains": ["forbidden"]}], ledger=shop.ledger)
            guard = ToolGuard({"draw": None}, results=text, ledger=shop.ledger)
            checked = Shop(guard=guard, approvals=shop.approvals, ledger=shop.ledger)
            call = {"tool_name": "draw", "tool_input": {}, "tool_use_id": "t"}
            beside = [{"type": "text", "text": "a map"}]
            picture = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}

            assert await ask(checked, make_event("PreToolUse", **call)) == {}
            answer = await ask(checked, make_event("PostToolUse", tool_response=[*beside, picture], **call))
            assert answer["updatedToolOutput"] == [{"type": "text", "text": "The result was withheld."}]
            assert await ask(checked, make_event("PreToolUse", **call)) == {}
            assert await ask(checked, make_event("PostToolUse", tool_response=beside, **call)) == {}

    asyncio.run(work())


def test_the_hooks_of_the_program_are_kept_and_failures_block(url: str):
    """The guard's come first, for each event that they need."""

    async def mine(*_: Any) -> Any:
        return {}

    async def work() -> None:
        async with open_shop(url, timeout=20) as shop:
            options = ClaudeAgentOptions(setting_sources=[], hooks={"PreToolUse": [HookMatcher("Bash", [mine])]})
            hooks: Any = guard_options(options, shop.guard, wait=100).hooks

            assert sorted(hooks) == ["PostToolUse", "PostToolUseFailure", "PreToolUse"]
            assert [matcher.on_failure for matcher in hooks["PreToolUse"]] == ["block", None]
            assert hooks["PreToolUse"][1].hooks == [mine]
            assert hooks["PreToolUse"][0].timeout > 100 + 20
            assert hooks["PreToolUse"][0].matcher is None
            assert list(options.hooks or {}) == ["PreToolUse"]

    asyncio.run(work())


@pytest.mark.parametrize("sources", [None, ["project"], ["user", "local"]])
def test_settings_of_a_project_are_refused(url: str, sources: Any):
    """Its hooks rewrite calls that were checked."""

    async def work() -> None:
        async with open_shop(url) as shop:
            with pytest.raises(UsageError) as raised:
                guard_options(ClaudeAgentOptions(setting_sources=sources), shop.guard)
            assert raised.value.argument == "setting_sources"

    asyncio.run(work())


def test_arguments_that_cannot_be_are_refused(url: str):
    """A guard that is none, and a time that no timer keeps."""

    async def work() -> None:
        async with open_shop(url) as shop:
            with pytest.raises(UsageError):
                guard_options(make_options(), Gate("calls", rules=["secrets"]))  # type: ignore[arg-type]
            for wait in (-1, 15 * 24 * 3600, float("nan")):
                with pytest.raises(UsageError) as raised:
                    guard_options(make_options(), shop.guard, wait=wait)
                assert raised.value.argument == "wait"

    asyncio.run(work())
