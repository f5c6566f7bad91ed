"""A guard as an approver of Inspect, which evaluates tasks: a body runs as often as somebody allowed."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError
from kit import docs, house
from kit.guarded_framework import (
    DENIED,
    DONE,
    NOT_LISTED,
    REFUSED,
    Call,
    Reply,
    delete,
    list_scenarios,
    make_bodies,
    play,
    screen_results,
    shell,
    use_shop,
)
from kit.tool_guards import Shop
from kit.waiting_framework import WaitingFramework, count_open

# Inspect leaves streams of its own to the garbage collector, which says so.
pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]

NOT_CHECKED = "The call was not made: it could not be checked."


@pytest.fixture(autouse=True)
def package(require) -> None:
    """Find Inspect, and have event loops re-entered as it does, before one runs.

    Inspect changes the class of event loops when it first re-enters one. A loop that runs at that moment can then look
    for a callback that the inner one has already called: "pop from an empty deque".
    """
    require("inspect-ai", find_spec("inspect_ai"), "pip install inspect-ai")
    import nest_asyncio2

    async def apply() -> None:
        nest_asyncio2.apply()

    asyncio.run(apply())


# ---------------------------------------------------------------- a task whose model says what it is told


def make_tools(shop: Shop, *, parallel: bool = True) -> list[Any]:
    """The tools of the kit, as Inspect has them."""
    from inspect_ai.tool import ToolDef

    def make(body: Callable[..., str]) -> Any:
        @wraps(body)
        async def execute(**arguments: Any) -> str:
            return body(**arguments)

        [name] = body.__annotations__.keys() - {"return"}
        return ToolDef(execute, body.__name__, body.__doc__, parameters={name: name}, parallel=parallel)

    return [make(body) for body in make_bodies(shop)]


def say(reply: Reply) -> Any:
    """A reply as Inspect's own stand-in for a model gives it."""
    from inspect_ai.model import ChatMessageAssistant, ModelOutput, ModelUsage
    from inspect_ai.tool import ToolCall

    calls = [] if isinstance(reply, str) else [ToolCall(call.id, call.tool, dict(call.arguments)) for call in reply]
    message = ChatMessageAssistant(content=reply if isinstance(reply, str) else "", tool_calls=calls or None)
    output = ModelOutput.from_message(message, stop_reason="tool_calls" if calls else "stop")
    output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or a tokenizer would be fetched
    return output


def list_read(messages: Sequence[Any]) -> list[str]:
    """What the model reads of its calls."""
    return [each.error.message if each.error else each.text for each in messages if each.role == "tool"]


def make_policies(approve: Any) -> list[Any]:
    from inspect_ai.approval import ApprovalPolicy

    return [ApprovalPolicy(approve, "*")]


def make_approver(shop: Shop, **options: Any) -> Any:
    from adjudge.integrations.inspect_ai import guard_approver

    return guard_approver(shop.guard, **options)


async def evaluate(folder: Path, tools: list[Any], next_reply: Callable[[list[Any]], Any], **options: Any) -> Any:
    """The log of a task whose model says what a function returns, until it answers."""
    import inspect_ai
    from inspect_ai import Task
    from inspect_ai.dataset import Sample
    from inspect_ai.model import get_model
    from inspect_ai.solver import generate, use_tools

    async def reply(messages: list[Any], *_: Any) -> Any:
        return say(await next_reply(messages))

    samples = [Sample(input="Do it.", id=place) for place in range(options.pop("samples", 1))]
    task = Task(dataset=samples, solver=[use_tools(tools), generate()])
    model = get_model("mockllm/model", custom_outputs=reply, memoize=False)
    options = {"log_dir": str(folder), "ctl_server": False} | options
    logs = await inspect_ai.eval_async(task, model=model, **options)
    gc.collect()
    return logs[0] if logs else None  # there is none of a task that was cancelled


class InspectTask(WaitingFramework):
    """A task of Inspect whose model says what it is told; its tools may run at once."""

    lacks = WaitingFramework.lacks | {
        "a_result_that_may_not_be_read_is_withheld": "an approver sees no results; see the test below",
        "an_approved_call_that_was_made_is_on_record": "an approver hears nothing of a call after it",
    }

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tasks: list[Any] = []

    async def end(self) -> None:
        """Cancel what still waits: Inspect evaluates one task at a time."""
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)

    async def converse(self, shop: Shop, conversation: str, replies: asyncio.Queue[Reply], read: list[str]) -> str:
        async def take(messages: list[Any]) -> Reply:
            read[:] = list_read(messages)
            reply = await replies.get()
            self.unfinished = 1 if isinstance(reply, str) else len(reply)
            return reply

        self.tasks.append(asyncio.current_task())
        policies = make_policies(self.count_answers(make_approver(shop)))
        log = await evaluate(self.folder, make_tools(shop), take, approval=policies)
        assert log.status == "success", log.error
        return log.samples[0].output.completion

    def count_answers(self, approve: Any) -> Any:
        """An approver that notes which calls were answered."""
        from inspect_ai.approval import approver

        @approver(name="counted")
        def make() -> Any:
            async def answer(*arguments: Any) -> Any:
                try:
                    return await approve(*arguments)
                finally:
                    self.unfinished -= 1

            return answer

        return make()


@pytest.mark.parametrize("scenario", list_scenarios(InspectTask))
def test_a_body_runs_as_often_as_somebody_allowed(scenario: Any, tmp_path: Path):
    """A body runs as often as somebody allowed."""

    async def play_to_the_end(framework: InspectTask, url: str) -> None:
        try:
            await scenario(framework, url)
        finally:
            await framework.end()

    play(play_to_the_end, InspectTask(tmp_path), tmp_path)


# ---------------------------------------------------------------- what is Inspect's own


async def run_script(folder: Path, shop: Shop, script: Sequence[Reply], **options: Any) -> Any:
    """The log of a task whose model says one reply after the other, in each of its samples."""

    async def take(messages: list[Any]) -> Reply:
        return script[sum(each.role == "assistant" for each in messages)]

    tools = options.pop("tools", None) or make_tools(shop)
    return await evaluate(folder, tools, take, **{"approval": make_policies(make_approver(shop))} | options)


async def wait_for_requests(running: asyncio.Task[Any], shop: Shop, number: int = 1) -> list[Any]:
    """The requests that people have to answer, when there are so many."""
    while await count_open(shop) < number:
        assert not running.done(), "it ended, and asked nobody"
        await asyncio.sleep(0.01)
    return list(await shop.approvals.list())


def test_calls_of_tools_that_do_not_run_at_once_wait_one_after_the_other(tmp_path: Path):
    """As Inspect has tools by default: people are asked about the second when they have answered the first."""

    async def work(shop: Shop) -> None:
        script = [[delete("/etc/x", "d1"), delete("/etc/y", "d2"), shell("ls")], DONE]
        tools = make_tools(shop, parallel=False)
        running = asyncio.create_task(run_script(tmp_path, shop, script, tools=tools))
        [first] = await wait_for_requests(running, shop)
        await shop.decide(True)
        [second] = await wait_for_requests(running, shop)
        assert shop.ran == ["delete /etc/x"]
        await shop.decide(False)
        log = await running

        assert ("/etc/x" in str(first.content), "/etc/y" in str(second.content)) == (True, True)
        assert shop.ran == ["delete /etc/x", "shell ls"]
        assert list_read(log.samples[0].messages) == ["deleted /etc/x", DENIED, "ran ls"]

    use_shop(work, tmp_path)


def test_an_approval_is_good_for_its_sample_alone(tmp_path: Path):
    """Ids of calls are the same in both; each of them asks, and one is approved."""

    async def work(shop: Shop) -> None:
        running = asyncio.create_task(run_script(tmp_path, shop, [[delete()], DONE], samples=2))
        first, second = await wait_for_requests(running, shop, 2)
        await shop.approvals.decide(first.id, "ana", True, "fine")
        await shop.approvals.decide(second.id, "ana", False, "no")
        log = await running

        assert shop.ran == ["delete /etc/x"]
        read = [text for sample in log.samples for text in list_read(sample.messages)]
        assert sorted(read) == sorted(["deleted /etc/x", DENIED])

    use_shop(work, tmp_path)


def test_a_sample_that_is_tried_again_does_not_use_an_approval_again(tmp_path: Path):
    """The tool ran and failed, and Inspect begins the sample anew: the same call is not made a second time."""
    from inspect_ai.tool import ToolDef

    async def work(shop: Shop) -> None:
        async def delete_file(path: str) -> str:
            shop.ran.append(f"delete {path}")
            raise RuntimeError("the disk is gone")

        tools = [ToolDef(delete_file, description="Delete a file.", parameters={"path": "path"})]
        running = asyncio.create_task(run_script(tmp_path, shop, [[delete()], DONE], tools=tools, retry_on_error=1))
        await wait_for_requests(running, shop)
        await shop.decide(True)
        log = await running

        assert shop.ran == ["delete /etc/x"]
        assert list_read(log.samples[0].messages) == [
            "The call was not made: it was approved once, and was made then or may have been."
        ]
        assert await shop.count_requests() == 1

    use_shop(work, tmp_path)


def test_an_evaluation_that_is_cancelled_makes_no_call_afterwards(tmp_path: Path):
    """It was cancelled while the call waited; the approval comes too late."""

    async def work(shop: Shop) -> None:
        running = asyncio.create_task(run_script(tmp_path, shop, [[delete()], DONE]))
        await wait_for_requests(running, shop)
        running.cancel()
        await asyncio.wait([running])
        await shop.decide(True)

        assert shop.ran == []

    use_shop(work, tmp_path)


def test_arguments_that_change_while_people_look_make_another_call(tmp_path: Path):
    """The approval is for what people saw, so the changed call is refused."""
    from inspect_ai.approval import approver

    async def work(shop: Shop) -> None:
        seen: list[Any] = []

        @approver(name="watched")
        def watch() -> Any:
            approve = make_approver(shop)

            async def note_call(message: str, call: Any, view: Any, history: Any) -> Any:
                seen.append(call)
                return await approve(message, call, view, history)

            return note_call

        running = asyncio.create_task(
            run_script(tmp_path, shop, [[delete("/etc/x")], DONE], approval=make_policies(watch()))
        )
        await wait_for_requests(running, shop)
        seen[0].arguments["path"] = "/etc/y"
        await shop.decide(True)
        log = await running

        assert shop.ran == []
        assert list_read(log.samples[0].messages) == [REFUSED]

    use_shop(work, tmp_path)


def test_a_call_that_waited_long_enough_passes_when_it_is_made_again(tmp_path: Path):
    """With ``match="content"``, under another id, as a model repeats it."""

    async def work(shop: Shop) -> None:
        async def take(messages: list[Any]) -> Reply:
            read = list_read(messages)
            if read and await count_open(shop):
                assert "waits for a person" in read[0]
                await shop.decide(True)
            return DONE if len(read) == 2 else [delete(call_id=f"d{len(read)}")]

        log = await evaluate(tmp_path, make_tools(shop), take, approval=make_policies(make_approver(shop, wait=0)))

        assert shop.ran == ["delete /etc/x"]
        assert list_read(log.samples[0].messages)[1] == "deleted /etc/x"

    use_shop(work, tmp_path, match="content")


def test_the_log_says_which_decision_of_the_ledger_a_call_has(tmp_path: Path):
    """The sample is the run. The log names the guard, and holds none of its parts."""

    async def work(shop: Shop) -> None:
        script = [[shell("ls"), shell("rm -rf /", "s2"), Call("unlisted", "u1", {})], DONE]
        log = await run_script(tmp_path, shop, script, tools=make_tools(shop, parallel=False))
        [sample] = log.samples
        events = [event for event in sample.events if event.event == "approval"]
        decisions = [entry async for entry in shop.ledger.query(run=sample.uuid, kind="decision")]

        assert [event.decision for event in events] == ["approve", "reject", "reject"]
        assert [event.metadata["because"] for event in events] == [None, "refused", "not_listed"]
        assert [event.explanation for event in events] == [None, REFUSED, NOT_LISTED]
        assert [event.metadata["decision"] for event in events] == [entry.payload["id"] for entry in decisions]
        [policy] = log.eval.config.approval.approvers
        assert (policy.name, policy.params["guard"]) == ("adjudge/guard_approver", "tools")

    use_shop(work, tmp_path)


def test_a_configuration_names_a_function_that_makes_the_approver(tmp_path: Path):
    """As ``--approval`` does. What a log says of the approver itself cannot make it again, so a retry is refused."""
    from inspect_ai.approval import Approver, approver

    async def work(shop: Shop) -> None:
        @approver
        def house_rules() -> Approver:
            return make_approver(shop)

        script = [[shell("rm -rf /")], DONE]
        log = await run_script(tmp_path, shop, script, approval="house_rules")
        assert (shop.ran, list_read(log.samples[0].messages)) == ([], [REFUSED])
        log = await run_script(tmp_path, shop, script, approval=log.eval.config.approval)
        assert (shop.ran, list_read(log.samples[0].messages)) == ([], [REFUSED])
        log = await run_script(tmp_path, shop, script)
        with pytest.raises(UsageError, match="guard must be a ToolGuard, got str"):
            await run_script(tmp_path, shop, script, approval=log.eval.config.approval)

    use_shop(work, tmp_path)


def test_a_call_outside_of_a_sample_is_rejected(tmp_path: Path):
    """Nothing says whose call it is, so an approval of it would open the same call of anybody."""
    from inspect_ai.tool import ToolCall, ToolCallView

    async def work(shop: Shop) -> None:
        approval = await make_approver(shop)("", ToolCall("s1", "shell", {"cmd": "ls"}), ToolCallView(), [])

        assert (approval.decision, approval.explanation) == ("reject", NOT_CHECKED)

    use_shop(work, tmp_path)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda make, shop: make(shop), "guard must be a ToolGuard, got Shop"),
        (lambda make, shop: make(screen_results(shop).guard), "an approver of Inspect never sees"),
        (lambda make, shop: make(shop.guard, wait=-1), "wait must be a finite number of seconds above 0"),
        (lambda make, shop: make(shop.guard, wait="1h"), "wait must be a finite number of seconds above 0"),
    ],
    ids=["no guard", "results", "below 0", "text"],
)
def test_what_cannot_be_is_said_when_the_approver_is_made(make: Callable[..., Any], message: str, tmp_path: Path):
    """Before a task is evaluated."""
    from adjudge.integrations.inspect_ai import guard_approver

    async def work(shop: Shop) -> None:
        with pytest.raises(UsageError, match=message):
            make(guard_approver, shop)

    use_shop(work, tmp_path)


@pytest.mark.integration
def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """With a scripted model, and bash on this machine; its second command waits, and the model is told so at once."""
    from inspect_ai.model import get_model

    monkeypatch.chdir(tmp_path)
    page = docs.read_blocks(house.ROOT / "docs" / "integrations.md")
    first, second = [block for block in page if "guard_approver" in block.text]
    text = first.text.replace('"docker"', '"local"').replace("guard_approver(guard)", "guard_approver(guard, wait=0)")
    text = text.replace('model="openai/gpt-6.1-terra"', "**OPTIONS")
    commands = [
        Call("bash", f"b{number}", {"command": each}) for number, each in enumerate(["echo made", "rm -r /srv"])
    ]
    script = [[call] for call in [*commands, Call("submit", "b3", {"answer": "Tidy."})]]
    model = get_model("mockllm/model", custom_outputs=[say(reply) for reply in script], memoize=False)
    options = {"model": model, "display": "none", "log_dir": str(tmp_path), "ctl_server": False}
    names: dict[str, Any] = {"OPTIONS": options}
    exec(docs.compile_block(replace(first, text=text)), names)
    exec(docs.compile_block(second), names)

    [sample] = names["log"].samples
    made, waits = list_read(sample.messages)
    assert (made.strip(), "waits for a person" in waits) == ("made", True)
    assert sample.output.completion == "Tidy."
    assert callable(names["house_rules"]())
