"""A guard in front of an agent of the Claude Agent SDK, with the real Claude Code against a scripted model."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Gate, UsageError
from adjudge.guards import ToolGuard
from adjudge.harness.hook_guard import HookGuard
from adjudge.harness.scripted_model import ScriptedCall, ScriptedModel
from kit import docs, house
from kit.coding_agents import list_results, make_command, make_rewriting_hooks
from kit.gates import GOOD
from kit.held_commands import spoil_before
from kit.judges import Seat
from kit.tool_guards import Shop, open_shop

try:
    import claude_agent_sdk as sdk

    from adjudge.integrations import claude
except ModuleNotFoundError:
    sdk = None

pytestmark = [
    pytest.mark.integration,
    pytest.mark.timed,
    pytest.mark.slow,
    pytest.mark.skipif(sdk is None, reason="claude-agent-sdk is absent; to have it, install the group claude"),
    pytest.mark.full,
]


class Project:
    """A home and a project, and what a session in it did."""

    def __init__(self, folder: Path) -> None:
        self.home, self.folder = folder / "home", folder / "project"
        self.home.mkdir()
        (self.folder / ".claude").mkdir(parents=True)
        self.session: str | None = None

    def add_rewriting_hooks(self) -> None:
        """Have another command run than the one that was checked."""
        settings = json.dumps({"hooks": make_rewriting_hooks()})
        (self.folder / ".claude" / "settings.json").write_text(settings, encoding="utf-8")

    def write_user(self, settings: dict[str, Any]) -> None:
        """Write the user's own settings."""
        (self.home / ".claude").mkdir(exist_ok=True)
        (self.home / ".claude" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")

    def make_options(self, url: str, **members: Any) -> Any:
        env = {"HOME": str(self.home), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none", "IS_SANDBOX": "1"}
        env |= {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "PATH": os.environ["PATH"]}
        options = {"setting_sources": [], "permission_mode": "bypassPermissions", "cwd": self.folder, "env": env}
        return sdk.ClaudeAgentOptions(**(options | members))

    async def run(self, guard: ToolGuard | None, *steps: Any, wait: float = 600, **members: Any) -> list[str]:
        """Run a session, and return the results of its tools as the model was sent them."""
        with ScriptedModel([*steps, "Done."]) as model:
            options = self.make_options(model.url, **members)
            options = options if guard is None else claude.guard_options(options, guard, wait=wait)
            async with asyncio.timeout(240), sdk.ClaudeSDKClient(options) as client:
                await client.query("go" if "resume" not in members or guard is not None else say_nothing())
                async for message in client.receive_response():
                    self.session = getattr(message, "session_id", None) or self.session
            return list(list_results(model.requests[-1])) if model.requests else []

    @property
    def made(self) -> list[str]:
        """The files that commands made."""
        return sorted(path.name for path in self.folder.iterdir() if not path.name.startswith("."))


async def say_nothing() -> AsyncIterator[dict[str, Any]]:
    """No prompt, to resume a session where it stopped."""
    for message in ():
        yield message


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def make_guard(shop: Shop, **options: Any) -> ToolGuard:
    """Commands that say `forbidden` are refused, and people are asked about those of the server `files`."""
    people: dict[str, Any] = {"approvals": shop.approvals, "ask": {"approvers": ["ana"]}, "show_content": True}
    rules = [{"not_contains": ["held"]}]
    asks = Gate("asks", rules=rules, on_rule="ask", ledger=shop.ledger, **people)
    refuses = Gate("refuses", rules=[{"not_contains": ["forbidden"]}], ledger=shop.ledger)
    return ToolGuard({"Bash": refuses, ("files", "touch"): asks}, ledger=shop.ledger, **options)


def make_server(shop: Shop) -> dict[str, Any]:
    """A server in this process, with one tool whose calls are counted."""

    @sdk.tool("touch", "Touch a file.", {"name": str})
    async def touch(arguments: dict[str, Any]) -> dict[str, Any]:
        shop.ran.append(arguments["name"])
        return {"content": [{"type": "text", "text": "touched"}]}

    return {"files": sdk.create_sdk_mcp_server("files", tools=[touch])}


def touch(name: str, call_id: str) -> ScriptedCall:
    """A call of the tool of that server."""
    return ScriptedCall(tool="mcp__files__touch", arguments={"name": name}, call_id=call_id)


async def answer_all(shop: Shop, answers: Mapping[str, bool]) -> None:
    """Answer requests by the name in their calls, as they come, and see that none of them ran before."""
    left = dict(answers)
    while left:
        await asyncio.sleep(0.2)
        with suppress(UsageError):  # there is no ledger yet
            for request in await shop.approvals.list():
                [name] = [name for name in left if f'"{name}"' in str(request.content)]
                assert name not in shop.ran
                await shop.approvals.decide(request.id, "ana", left.pop(name), "fine")


def test_calls_pass_are_refused_and_wait_for_people(project: Project, url: str):
    """All of one turn, and those that were held run once each, as often as somebody allowed."""

    async def work() -> None:
        async with open_shop(url) as shop, asyncio.TaskGroup() as group:
            group.create_task(answer_all(shop, {"held": True}))
            calls = [make_command("claude", f"touch {name}", f"toolu_{name}") for name in ("one", "forbidden", "two")]
            results = await project.run(
                make_guard(shop),
                [*calls, touch("free", "toolu_f")],
                [touch("held", "toolu_h")],
                mcp_servers=make_server(shop),
            )

            assert (project.made, shop.ran) == (["one", "two"], ["free", "held"])
            assert "The call was not made" in results[1]
            assert await shop.count_requests() == 1

    asyncio.run(work())


def test_what_the_program_is_told_opens_nothing(project: Project, url: str):
    """A denied call, with every permission that the SDK has."""

    async def allow(*_: Any) -> Any:
        return sdk.PermissionResultAllow()

    async def work() -> None:
        async with open_shop(url) as shop:
            for number, permissions in enumerate(
                (
                    {"permission_mode": "bypassPermissions"},
                    {"permission_mode": "default", "can_use_tool": allow},
                    {"permission_mode": "default", "allowed_tools": ["mcp__files__touch", "Bash"]},
                )
            ):
                async with asyncio.TaskGroup() as group:
                    group.create_task(answer_all(shop, {"held": False}))
                    await project.run(
                        make_guard(shop),
                        [
                            touch("held", f"toolu_{number}"),
                            make_command("claude", "touch forbidden", f"toolu_b{number}"),
                        ],
                        mcp_servers=make_server(shop),
                        **permissions,
                    )

            assert (shop.ran, project.made) == ([], [])

    asyncio.run(work())


def test_a_call_that_waited_passes_in_another_process(project: Project, url: str):
    """Told that it waits, and approved later; the agent makes it again in the same session."""

    async def work() -> None:
        async with open_shop(url) as shop:
            guard = make_guard(shop, match="content")
            results = await project.run(guard, [touch("held", "toolu_1")], wait=0, mcp_servers=make_server(shop))
            assert ("waits for a person" in results[0], shop.ran) == (True, [])
            await answer_all(shop, {"held": True})
        async with open_shop(url) as shop:
            guard = make_guard(shop, match="content")
            await project.run(
                guard, [touch("held", "toolu_2")], wait=0, mcp_servers=make_server(shop), resume=project.session
            )
            assert shop.ran == ["held"]
            assert await shop.count_requests() == 1

    asyncio.run(work())


def test_calls_of_one_turn_that_wait_are_answered_each(project: Project, url: str):
    """Of four at once, one is approved and one denied, and the others need nobody."""

    async def work() -> None:
        async with open_shop(url) as shop, asyncio.TaskGroup() as group:
            group.create_task(answer_all(shop, {"held": True, "held too": False}))
            names = ("free", "held", "held too", "free too")
            calls = [touch(name, f"toolu_{number}") for number, name in enumerate(names)]
            results = await project.run(make_guard(shop), calls, mcp_servers=make_server(shop))

            assert sorted(shop.ran) == ["free", "free too", "held"]
            assert ["a person said no" in result for result in results] == [False, False, True, False]
            assert await shop.count_requests() == 2

    asyncio.run(work())


def test_an_approval_is_good_for_one_call_with_its_arguments(project: Project, url: str):
    """After a yes, a call with other arguments is held anew, the approved one runs once, and its replay is asked."""

    async def work() -> None:
        async with open_shop(url) as shop:
            guard = make_guard(shop, match="content")
            members = {"wait": 0, "mcp_servers": make_server(shop)}
            await project.run(guard, [touch("held", "toolu_1")], **members)
            await answer_all(shop, {"held": True})
            calls = [
                [touch(name, f"toolu_{name}_{number}")] for number, name in enumerate(("other-held", "held", "held"))
            ]
            results = await project.run(guard, *calls, resume=project.session, **members)

            assert shop.ran == ["held"]
            assert ["waits for a person" in result for result in results] == [True, True, False, True]
            assert await shop.count_requests() == 3

    asyncio.run(work())


def test_a_ledger_that_is_lost_lets_nothing_run(project: Project, url: str, tmp_path: Path):
    """In the middle of a session, under the guard that has it open."""

    async def work() -> None:
        async with open_shop(url) as shop:
            lost = spoil_before(tmp_path, touch("after", "toolu_2"))
            steps = ([touch("before", "toolu_1")], lost, [touch("later", "toolu_3")])
            results = await project.run(make_guard(shop), *steps, mcp_servers=make_server(shop))

            assert shop.ran == ["before"]
            assert ["The call was not made" in result for result in results] == [False, True, True]

    asyncio.run(work())


def test_a_judge_that_is_late_lets_nothing_run(project: Project, url: str):
    """The guard gives up after its ``timeout``, and refuses; the session goes on."""

    async def work() -> None:
        async with open_shop(url) as shop:
            late = Seat("passed", delay=3_600)
            gates: dict[Any, Any] = {"Bash": Gate("rules", rules=["secrets"], ledger=shop.ledger)}
            gates["files", "touch"] = Gate("late", judge=late, rubric=GOOD, ledger=shop.ledger)
            guard = ToolGuard(gates, ledger=shop.ledger, timeout=2.0)
            steps = ([touch("late", "toolu_1")], [make_command("claude", "touch early", "toolu_2")])
            results = await project.run(guard, *steps, mcp_servers=make_server(shop))

            assert (shop.ran, project.made, len(late.asked)) == ([], ["early"], 1)
            assert ["The call was not made" in result for result in results] == [True, False]

    asyncio.run(work())


@pytest.mark.parametrize("where", ["answer", "around"])
def test_after_a_crash_of_ours_the_command_did_not_run(
    project: Project, url: str, monkeypatch: pytest.MonkeyPatch, where: str
):
    """In the check, which we turn into a refusal, and around it, which the program does."""

    def fail(*_: Any) -> None:
        raise RuntimeError("a mistake")

    target: tuple[Any, str] = (HookGuard, "answer") if where == "answer" else (claude, "read_event_object")
    monkeypatch.setattr(*target, fail)

    async def work() -> None:
        async with open_shop(url) as shop:
            await project.run(make_guard(shop), [make_command("claude", "touch ran")])

        assert project.made == []

    asyncio.run(work())


def test_a_result_is_withheld_from_the_agent(project: Project, url: str):
    """The model reads our sentence, and nothing of the command's output."""

    async def work() -> None:
        async with open_shop(url) as shop:
            results = Gate("results", rules=[{"not_contains": ["secret"]}], ledger=shop.ledger)
            guard = make_guard(shop, results=results)
            read = await project.run(guard, [make_command("claude", "echo sec''ret")])

            assert "withheld" in read[0]
            assert "secret" not in read[0]

    asyncio.run(work())


def test_hooks_of_a_project_do_not_count(project: Project, url: str):
    """With the settings that the guard asks for."""
    (project.folder / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": make_rewriting_hooks()}), encoding="utf-8"
    )

    async def work() -> None:
        async with open_shop(url) as shop:
            await project.run(make_guard(shop), [make_command("claude", "touch mine")])

        assert project.made == ["mine"]

    asyncio.run(work())


def test_with_the_users_settings_a_project_still_counts_for_nothing(project: Project, url: str):
    """Neither its hooks nor its switch; the user's own settings are loaded."""
    project.write_user({"env": {"OF_THE_USER": "one"}})
    (project.folder / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": make_rewriting_hooks(), "disableAllHooks": True}), encoding="utf-8"
    )

    async def work() -> None:
        async with open_shop(url) as shop:
            calls = [make_command("claude", f"touch {name}", f"toolu_{name}") for name in ("$OF_THE_USER", "forbidden")]
            results = await project.run(make_guard(shop), calls, setting_sources=["user"])

            assert project.made == ["one"]
            assert "The call was not made" in results[1]

    asyncio.run(work())


def test_a_hook_of_the_user_that_rewrites_a_call_is_noticed(project: Project, url: str):
    """It is the user's, so it may; what ran was not checked, and nothing else runs in this session."""
    project.write_user({"hooks": make_rewriting_hooks()})

    async def work() -> None:
        async with open_shop(url) as shop:
            steps = [[make_command("claude", f"touch {name}", f"toolu_{name}")] for name in ("mine", "more")]
            await project.run(make_guard(shop), *steps, setting_sources=["user"])

            assert project.made == ["other"]
            assert len([entry async for entry in shop.ledger.query(kind="call.unchecked")]) == 1

    asyncio.run(work())


def test_the_users_switch_does_not_open_the_guard(project: Project, url: str):
    """``disableAllHooks`` in the user's settings."""
    project.write_user({"disableAllHooks": True})

    async def work() -> None:
        async with open_shop(url) as shop:
            calls = [make_command("claude", f"touch {name}", f"toolu_{name}") for name in ("ran", "forbidden")]
            results = await project.run(make_guard(shop), calls, setting_sources=["user"])

            assert project.made == ["ran"]
            assert "The call was not made" in results[1]

    asyncio.run(work())


def test_with_its_settings_a_project_rewrites_calls(project: Project):
    """Why the guard refuses other settings. If this fails, Claude Code has closed it, and the page has to say so."""
    (project.folder / ".claude" / "settings.json").write_text(
        json.dumps({"hooks": make_rewriting_hooks()}), encoding="utf-8"
    )
    seen = []

    async def look(data: Any, *_: Any) -> Any:
        seen.append(data["tool_input"]["command"])
        return {}

    hooks = {"PreToolUse": [sdk.HookMatcher(hooks=[look], on_failure="block")]}
    asyncio.run(project.run(None, [make_command("claude", "touch mine")], hooks=hooks, setting_sources=None))

    assert (seen, project.made) == (["touch mine"], ["other"])


@pytest.mark.xfail(strict=True, reason="Claude Code 2.1.332: a deferred call runs on resume and no hook is asked")
def test_a_deferred_call_asks_the_hook_when_it_is_resumed(project: Project):
    """So the guard never answers `defer`. Three times: on a busy machine a session can lose what it deferred."""
    seen = []

    async def defer(data: Any, *_: Any) -> Any:
        seen.append(data["tool_use_id"])
        return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "defer"}}

    async def work() -> None:
        hooks = {"PreToolUse": [sdk.HookMatcher(hooks=[defer], on_failure="block")]}
        for number in range(3):
            call_id = f"toolu_{number}"
            await project.run(None, [make_command("claude", "touch ran", call_id)], hooks=hooks)
            assert (seen[-1], project.made) == (call_id, [])
            await project.run(None, hooks=hooks, resume=project.session)
            if project.made:
                break

    asyncio.run(work())

    assert project.made == []


def test_the_example_of_the_page_runs(project: Project, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """With the scripted model, in this project; its second command waits, and the agent is told so at once."""
    monkeypatch.chdir(tmp_path)
    page = docs.read_blocks(house.ROOT / "docs" / "claude-agent-sdk.md")
    [block] = [block for block in page if "query(" in block.text]
    text = block.text.replace('cwd="/srv/shop", setting_sources=[], permission_mode="acceptEdits"', "**MEMBERS")
    text = text.replace("guard_options(options, guard)", "guard_options(options, guard, wait=0)")

    async def work() -> None:
        calls = [[make_command("claude", "touch ran")], [make_command("claude", "rm ran", "toolu_2")]]
        with ScriptedModel([*calls, "Done."]) as model:
            made = project.make_options(model.url)
            members = {name: getattr(made, name) for name in ("cwd", "env", "permission_mode", "setting_sources")}
            # In a thread, because the page's script begins a loop of its own.
            await asyncio.to_thread(exec, docs.compile_block(replace(block, text=text)), {"MEMBERS": members})
            assert "waits for a person" in list(list_results(model.requests[-1]))[1]

    asyncio.run(work())

    assert project.made == ["ran"]
