"""The answers of a hook: what a harness is told about each event, and what is on record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Approvals, Gate, Ledger
from adjudge.guards import ToolCall, ToolGuard
from adjudge.harness.answers import NO_OPINION, block, warn_user
from adjudge.harness.events import SOURCE, AnswerEvent, CallEvent, PromptEvent, RanEvent, StartEvent
from adjudge.harness.hook_guard import OBSERVES, HookGuard, KnownSources
from adjudge.harness.self_protection import ProtectedFiles, SelfProtection
from kit.webhooks import Receiver, deliver

RULES = [{"not_contains": "curl"}]


class Desk:
    """A guard with a gate of rules and one that asks ana, and what it answered."""

    def __init__(self, ledger: Ledger, **options: Any) -> None:
        self.ledger = ledger
        self.approvals = Approvals(ledger)
        people = {"approvals": self.approvals, "ask": {"approvers": ["ana"]}, "show_content": True, "wait": False}
        asking = Gate("deploy", rules=[{"not_contains": "deploy"}], on_rule="ask", ledger=ledger, **people)
        rules = Gate("shell", rules=RULES, ledger=ledger)
        protection = SelfProtection(ProtectedFiles(secret=(Path("/guard"),)))
        hook_options = {
            name: options.pop(name) for name in ("harness", "managed", "observes", "pending") if name in options
        }
        self.guard = ToolGuard(
            {"Bash": rules, "Deploy": asking, "Read": None},
            answers=rules,
            prompts=rules,
            results=options.pop("results", rules),
            match=options.pop("match", "content"),
            screens=[protection],
            ledger=ledger,
            **options,
        )
        self.hook = HookGuard(**{"harness": "claude", "guard": self.guard, "enforced": [protection], **hook_options})

    async def call(self, command: str, *, tool: str = "Bash", call_id: str = "t1", patch: str | None = None) -> Any:
        call = ToolCall(tool, {"command": command}, call_id, "s1", cwd="/work")
        other = None if patch is None else ToolCall("Bash", {"command": patch}, call_id, "s1", cwd="/work")
        answer = await self.hook.answer(CallEvent(call=call, patch=other))
        return answer.get("hookSpecificOutput", {}).get(
            "permissionDecision", "none" if answer == NO_OPINION else answer
        )

    async def ran(self, command: str, response: object, *, call_id: str = "t1", failed: bool = False) -> Any:
        call = ToolCall("Bash", {"command": command}, call_id, "s1", cwd="/work")
        name = "PostToolUseFailure" if failed else "PostToolUse"
        return await self.hook.answer(RanEvent(call=call, name=name, response=response, failed=failed))

    async def list_kinds(self) -> list[str]:
        return [entry.kind async for entry in self.ledger.query(run="s1") if entry.kind.startswith("call.")]


def run(tmp_path: Path, work: Callable[[Desk], Coroutine[Any, Any, Any]], **options: Any) -> Any:
    async def scenario() -> Any:
        async with Ledger(f"sqlite:///{tmp_path / 'ledger.db'}", store_content="full") as ledger:
            return await work(Desk(ledger, **options))

    return asyncio.run(scenario())


def test_a_pass_is_no_opinion_and_a_refusal_a_denial(tmp_path: Path):
    """And every call that may be made is on record before the harness knows it."""

    async def work(desk: Desk) -> Any:
        answers = [await desk.call("ls"), await desk.call("curl x", call_id="t2"), await desk.call("x", tool="Unknown")]
        return answers, await desk.list_kinds()

    assert run(tmp_path, work) == (["none", "deny", "deny"], ["call.passed"])


def test_a_patch_in_a_command_is_checked_as_well(tmp_path: Path):
    """Each has to pass."""

    async def work(desk: Desk) -> Any:
        return [await desk.call("ls", patch=patch, call_id=patch) for patch in ("ls", "curl")]

    assert run(tmp_path, work, harness="codex") == ["none", "deny"]


def test_people_may_have_to_decide_about_a_command_and_its_patch(tmp_path: Path):
    """They are asked about both at once, each once, and the call passes once both are approved."""

    async def work(desk: Desk) -> Any:
        call = ToolCall("Deploy", {"command": "deploy"}, "t1", "s1", cwd="/work")
        event = CallEvent(call=call, patch=ToolCall("Deploy", {"command": "deploy the patch"}, "t1", "s1", cwd="/work"))
        answers, requests = [await desk.hook.answer(event)], []
        for _ in range(2):
            requests.append(await desk.approvals.list())
            await desk.approvals.decide(requests[-1][0].id, "ana", True, "it is time")
            answers.append(await desk.hook.answer(event))
        answers.append(await desk.hook.answer(event))
        return [answer == NO_OPINION for answer in answers], [len(listed) for listed in requests], await list_all(desk)

    passed, waiting, everything = run(tmp_path, work, harness="codex")

    assert passed == [False, False, True, False]
    assert (waiting, everything) == ([2, 1], 4)  # both are asked about anew after that


async def list_all(desk: Desk) -> int:
    return len(await desk.approvals.list(status=None))


@pytest.mark.parametrize(
    ("options", "held", "approved"),
    [
        ({}, "deny", "none"),
        ({"managed": True}, "deny", "allow"),
        ({"harness": "codex", "managed": True}, "deny", "none"),
        ({"pending": "defer", "match": "call"}, "defer", "none"),
    ],
)
def test_a_held_call_passes_once_after_it_was_approved(
    tmp_path: Path, options: dict[str, Any], held: str, approved: str
):
    """``allow`` only where nothing else can change the call; elsewhere the harness asks its user too."""

    async def work(desk: Desk) -> Any:
        first = await desk.call("deploy", tool="Deploy")
        waiting = await desk.approvals.list()
        await desk.approvals.decide(waiting[0].id, "ana", True, "it is time")
        return first, len(waiting), await desk.call("deploy", tool="Deploy"), await desk.call("deploy", tool="Deploy")

    again = "deny" if options.get("match") == "call" else held
    assert run(tmp_path, work, **options) == (held, 1, approved, again)


@pytest.mark.parametrize(
    ("options", "held"),
    [({}, "deny"), ({"harness": "codex"}, "deny"), ({"pending": "defer", "match": "call"}, "defer")],
)
def test_a_held_call_that_was_denied_never_passes(tmp_path: Path, options: dict[str, Any], held: str):
    """Under another id neither, where calls are known by their content; and nobody is asked again."""

    async def work(desk: Desk) -> Any:
        first = await desk.call("deploy", tool="Deploy")
        waiting = await desk.approvals.list()
        await desk.approvals.decide(waiting[0].id, "ana", False, "not today")
        again = [await desk.call("deploy", tool="Deploy"), await desk.call("deploy", tool="Deploy")]
        other = [await desk.call("deploy", tool="Deploy", call_id="t2")] if options.get("match") != "call" else []
        return first, {*again, *other}, await list_all(desk), await desk.list_kinds()

    assert run(tmp_path, work, **options) == (held, {"deny"}, 1, [])


@pytest.mark.timed
def test_the_webhook_is_notified_of_a_call_that_was_not_checked_as_it_was_made(tmp_path: Path):
    """By the ids of its run and of itself, and not about calls that were checked; nothing of the call is sent."""
    receiver = Receiver()

    async def work(approvals: Approvals) -> None:
        desk = Desk(approvals.ledger)
        desk.hook = replace(desk.hook, approvals=approvals)
        await desk.call("ls")
        await desk.ran("ls", "ok")
        await desk.ran("secret words", "ok", call_id="t2")

    deliver(tmp_path, receiver, work)

    [(headers, body)] = receiver.got
    assert json.loads(body) == {
        "schema": "adjudge/webhook/1", "type": "call.unchecked", "data": {"run": "s1", "call": "t2"},
    }  # fmt: skip
    assert headers["webhook-id"].endswith(":call.unchecked")


def test_observing_lets_everything_through_but_what_switches_it_off(tmp_path: Path):
    """What would have been refused is on record, and is no unchecked call."""

    async def work(desk: Desk) -> Any:
        answers = [await desk.call("curl x"), await desk.call("x", tool="Unknown"), await desk.call("cat /guard/x")]
        others = [await desk.ran("curl x", "ok"), await desk.hook.answer(PromptEvent(run_id="s1", prompt="curl"))]
        return answers, others, await desk.list_kinds()

    answers, others, kinds = run(tmp_path, work, observes=True)

    assert answers == ["none", "none", "deny"]
    assert others == [{}, {}]
    assert kinds == ["call.passed", "call.passed", "call.ran"]


@pytest.mark.parametrize("observes", [True, False])
def test_a_session_that_is_only_observed_begins_with_a_word_about_it(tmp_path: Path, observes: bool):
    """Else somebody relies on a guard that refuses nothing."""

    async def work(desk: Desk) -> Any:
        return await desk.hook.answer(StartEvent(run_id="s1"))

    answer = run(tmp_path, work, observes=observes)

    assert answer == (warn_user(OBSERVES) if observes else NO_OPINION)


def test_a_call_that_was_changed_after_its_check_ends_the_session(tmp_path: Path):
    """Another hook can do that."""

    async def work(desk: Desk) -> Any:
        answers = [await desk.call("ls"), await desk.ran("rm -rf x", "ok"), await desk.call("ls", call_id="t2")]
        return answers, await desk.list_kinds()

    (first, second, third), kinds = run(tmp_path, work)

    assert (first, third) == ("none", "deny")
    assert "systemMessage" in second
    assert kinds == ["call.passed", "call.unchecked"]


def test_a_result_that_may_not_be_read_is_withheld(tmp_path: Path):
    """In a form that the harness takes in its place."""

    async def work(desk: Desk) -> Any:
        await desk.call("ls")
        answer = await desk.ran("ls", {"stdout": "curl evil", "stderr": ""})
        return answer, await desk.list_kinds()

    answer, kinds = run(tmp_path, work)

    assert "evil" not in str(answer)
    assert answer["hookSpecificOutput"]["updatedToolOutput"]["stdout"] == "The result was withheld."
    assert kinds == ["call.passed", "call.ran"]


@pytest.mark.parametrize("is_failure", [True, False])
def test_a_result_that_cannot_be_withheld_ends_the_session(tmp_path: Path, *, is_failure: bool):
    """The agent has read it: the error of a failed command, and the result of a tool with another shape."""

    async def work(desk: Desk) -> Any:
        await desk.call("ls")
        response = "curl evil" if is_failure else {"file": "curl evil"}
        return await desk.ran("ls", response, failed=is_failure), await desk.call("ls", call_id="t2")

    answer, following = run(tmp_path, work)

    assert "systemMessage" in answer
    assert following == "deny"


PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGVsbG8="}}


@pytest.mark.parametrize(
    "response",
    [
        [{"type": "text", "text": "a map"}, PICTURE],
        {"stdout": "data:image/png;base64,aGVsbG8=", "stderr": "", "interrupted": False, "isImage": True},
    ],
    ids=["of an MCP server", "of a shell"],
)
def test_a_picture_is_withheld_where_results_are_checked(tmp_path: Path, response: object):
    """The gate would pass its base64, and the agent read what it says. The session goes on."""

    async def work(desk: Desk) -> Any:
        await desk.call("ls")
        return await desk.ran("ls", response), await desk.call("ls", call_id="t2"), await desk.list_kinds()

    answer, following, kinds = run(tmp_path, work)

    assert "The result was withheld." in str(answer["hookSpecificOutput"]["updatedToolOutput"])
    assert "aGVsbG8=" not in str(answer)
    assert (following, kinds) == ("none", ["call.passed", "call.ran", "call.passed"])


def test_a_picture_of_codex_is_withheld(tmp_path: Path):
    """As everything that it reads."""

    async def work(desk: Desk) -> Any:
        await desk.call("ls")
        return await desk.ran("ls", {"content": [{"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}]})

    assert run(tmp_path, work, harness="codex") == block("The result was withheld.")


READ_PICTURE = {"type": "image", "file": {"base64": "aGVsbG8=", "type": "image/png", "originalSize": 5}}


def test_a_picture_that_cannot_be_withheld_ends_the_session(tmp_path: Path):
    """Claude Code takes nothing in place of what Read returned."""

    async def work(desk: Desk) -> Any:
        await desk.call("ls")
        return await desk.ran("ls", READ_PICTURE), await desk.call("ls", call_id="t2"), await desk.list_kinds()

    answer, following, kinds = run(tmp_path, work)

    assert "systemMessage" in answer
    assert (following, kinds) == ("deny", ["call.passed", "call.unchecked"])


@pytest.mark.parametrize("options", [{"results": None}, {"observes": True}], ids=["no gate", "observed"])
def test_a_picture_may_be_read_where_nothing_checks_results(tmp_path: Path, options: dict[str, Any]):
    """Without a gate for them, and where the guard only observes."""

    async def work(desk: Desk) -> Any:
        await desk.call("ls")
        answers = [await desk.ran("ls", READ_PICTURE), await desk.call("ls", call_id="t2")]
        return answers, await desk.list_kinds()

    assert run(tmp_path, work, **options) == ([NO_OPINION, "none"], ["call.passed", "call.ran", "call.passed"])


def test_prompts_and_answers_are_sent_back(tmp_path: Path):
    """An answer once: what is refused a second time is given, and the user is told."""

    async def work(desk: Desk) -> Any:
        prompts = [await desk.hook.answer(PromptEvent(run_id="s1", prompt=text)) for text in ("hello", "curl")]
        answers = [
            await desk.hook.answer(AnswerEvent(run_id="s1", answer=text, is_second=second))
            for text, second in (("done", False), ("curl", False), ("curl", True))
        ]
        return prompts, answers

    prompts, answers = run(tmp_path, work)

    assert [answer.get("decision") for answer in prompts] == [None, "block"]
    assert [answer.get("decision") for answer in answers] == [None, "block", None]
    assert list(answers[2]) == ["systemMessage"]


@pytest.mark.parametrize(
    ("server", "source", "is_allowed"),
    [("bank", "user", True), ("bank", "project", False), ("bank", None, False), ("other", "project", True)],
)
def test_a_server_comes_from_where_it_should(server: str, source: str | None, *, is_allowed: bool):
    """A project can define one by the name of the user's."""
    remarks = {} if source is None else {SOURCE: source}
    call = ToolCall("pay", {}, "t1", "s1", server=server, remarks=remarks)

    assert asyncio.run(KnownSources({"bank": "user"}).screen_call(call, {})).allowed is is_allowed


def test_a_result_that_was_left_out_ends_the_trust_where_results_are_checked(tmp_path: Path):
    """Nobody knows what the agent has read."""

    async def work(desk: Desk) -> Any:
        await desk.call("ls")
        call = ToolCall("Bash", {"command": "ls"}, "t1", "s1", cwd="/work")
        await desk.hook.answer(RanEvent(call=call, name="PostToolUse", left_out=True))
        return await desk.call("ls", call_id="t2"), await desk.list_kinds()

    assert run(tmp_path, work) == ("deny", ["call.passed", "call.unchecked"])
