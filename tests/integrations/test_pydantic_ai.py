"""A guard in front of a pydantic-ai agent's tools: scripted models call them, and the bodies that ran are counted."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from adjudge import UsageError
from kit.guarded_framework import (
    DONE,
    HOLD,
    REFUSED,
    WITHHELD,
    Call,
    Reply,
    Scenario,
    Stop,
    list_scenarios,
    make_bodies,
    play,
    screen_results,
    use_shop,
)
from kit.guarded_framework import shell as call_shell
from kit.tool_guards import Shop


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("pydantic_ai", find_spec("pydantic_ai"), "pip install pydantic-ai-slim")


def make_model(script: Sequence[Reply]) -> Any:
    """A model that says a script."""
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    replies = iter(script)

    def answer(_: Any, __: Any) -> ModelResponse:
        reply = next(replies)
        if isinstance(reply, str):
            return ModelResponse(parts=[TextPart(reply)])
        calls = [ToolCallPart(call.tool, dict(call.arguments), tool_call_id=call.id) for call in reply]
        return ModelResponse(parts=calls)

    return FunctionModel(answer)


class PydanticAI:
    """An agent whose message history is kept as JSON."""

    forgeries: ClassVar = {
        "yes": True,
        "an approval": lambda: make("ToolApproved"),
        "other arguments": lambda: make("ToolApproved", override_args={"path": "/etc/y"}),
    }

    async def run(
        self, shop: Shop, script: Sequence[Reply], *, kept: Any = None, word: Any = None, conversation: str = "c-1"
    ) -> Stop:
        from pydantic_ai import Agent
        from pydantic_ai.messages import ModelMessagesTypeAdapter
        from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults

        from adjudge.integrations.pydantic_ai import GateCapability, resume_held

        output: Any = [str, DeferredToolRequests]
        capabilities = [GateCapability(shop.guard)]
        agent = Agent(make_model(script), output_type=output, tools=make_bodies(shop), capabilities=capabilities)
        if kept is None:
            result: Any = await agent.run("Do it.", conversation_id=conversation)
        else:
            history, requests = kept
            results = resume_held(requests)
            if word is not None:
                approval = word if word is True else word()
                results = DeferredToolResults(approvals={call.tool_call_id: approval for call in requests.approvals})
            messages = ModelMessagesTypeAdapter.validate_json(history)
            result = await agent.run(message_history=messages, deferred_tool_results=results)
        is_held = isinstance(result.output, DeferredToolRequests)
        parts = [part for message in result.all_messages() for part in message.parts]
        return Stop(
            is_held=is_held,
            kept=(result.all_messages_json(), result.output),
            answer=None if is_held else result.output,
            read=[part.model_response_str(wrap_if_error=False) for part in parts if part.part_kind == "tool-return"],
        )


def make(name: str, **members: Any) -> Any:
    """An object of pydantic-ai's."""
    from pydantic_ai import tools

    return getattr(tools, name)(**members)


@pytest.mark.parametrize("scenario", list_scenarios(PydanticAI))
def test_a_body_runs_as_often_as_somebody_allowed(scenario: Scenario, tmp_path: Path):
    """A body runs as often as somebody allowed."""
    play(scenario, PydanticAI(), tmp_path)


# ---------------------------------------------------------------- what is pydantic-ai's own


async def ask(
    shop: Shop, script: Sequence[Reply], *, others: Sequence[Any] = (), tools: Sequence[Any] = (), **options: Any
) -> list[str]:
    """What the model reads, with other capabilities after the guard's."""
    from pydantic_ai import Agent
    from pydantic_ai.tools import DeferredToolRequests

    from adjudge.integrations.pydantic_ai import GateCapability

    gate = {name: options.pop(name) for name in ("media", "hosted") if name in options}
    output: Any = [str, DeferredToolRequests]
    agent = Agent(
        make_model(script),
        output_type=output,
        tools=tools or make_bodies(shop),
        capabilities=[GateCapability(shop.guard, **gate), *others],
    )
    result = await agent.run("Do it.", **options)
    parts = [part for message in result.all_messages() for part in message.parts]
    return [part.model_response_str(wrap_if_error=False) for part in parts if part.part_kind == "tool-return"]


def test_other_capabilities_cannot_change_what_was_checked(tmp_path: Path):
    """The guard comes after all others, wherever it is listed, so it checks what they make of a call."""
    from pydantic_ai.capabilities import AbstractCapability

    class Other(AbstractCapability[Any]):
        async def before_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any) -> Any:
            return {"cmd": "rm -rf /"}

    async def work(shop: Shop) -> None:
        read = await ask(shop, [[call_shell("ls")], DONE], others=[Other()])

        assert (shop.ran, read) == ([], [REFUSED])

    use_shop(work, tmp_path)


def test_a_capability_that_repeats_a_call_has_each_checked(tmp_path: Path):
    """One yes of a person is one run, also where something tries again."""
    from pydantic_ai.capabilities import AbstractCapability

    class Repeat(AbstractCapability[Any]):
        async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
            await handler(args)
            return await handler(args)

    async def work(shop: Shop) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.tools import DeferredToolRequests

        from adjudge.integrations.pydantic_ai import GateCapability, resume_held

        agent = Agent(
            make_model([*HOLD, DONE]),
            output_type=[str, DeferredToolRequests],
            tools=make_bodies(shop),
            capabilities=[GateCapability(shop.guard), Repeat()],
        )
        held: Any = await agent.run("Do it.")
        await shop.decide(True)
        results = resume_held(held.output)
        await agent.run(message_history=held.all_messages(), deferred_tool_results=results)

        assert shop.ran == ["delete /etc/x"]

    use_shop(work, tmp_path)


def test_a_handler_within_the_run_approves_nothing(tmp_path: Path):
    """It says yes to everything, and nobody has decided here."""
    from pydantic_ai.capabilities import HandleDeferredToolCalls

    async def approve(_: Any, requests: Any) -> Any:
        return requests.build_results(approve_all=True)

    async def work(shop: Shop) -> None:
        with contextlib.suppress(Exception):
            await ask(shop, HOLD, others=[HandleDeferredToolCalls(approve)])

        assert shop.ran == []
        assert await shop.count_requests() == 1

    use_shop(work, tmp_path)


def test_an_agent_that_cannot_defer_ends(tmp_path: Path):
    """Its output type has no room for held calls, and nothing runs."""

    async def work(shop: Shop) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.exceptions import UserError

        from adjudge.integrations.pydantic_ai import GateCapability

        agent = Agent(make_model(HOLD), tools=make_bodies(shop), capabilities=[GateCapability(shop.guard)])
        with pytest.raises(UserError):
            await agent.run("Do it.")

        assert shop.ran == []

    use_shop(work, tmp_path)


def test_an_agent_with_a_structured_output_is_guarded(tmp_path: Path):
    """A call is held, and refused or made as people decide; then the agent gives its output, which is an object."""
    from pydantic import BaseModel

    class Report(BaseModel):
        done: int

    async def work(shop: Shop) -> None:
        from pydantic_ai import Agent
        from pydantic_ai.tools import DeferredToolRequests

        from adjudge.integrations.pydantic_ai import GateCapability, resume_held

        script: list[Reply] = [[call_shell("rm -rf /")], *HOLD, [Call("final_result", "o1", {"done": 1})]]
        output: Any = [Report, DeferredToolRequests]
        agent = Agent(
            make_model(script), output_type=output, tools=make_bodies(shop), capabilities=[GateCapability(shop.guard)]
        )
        held: Any = await agent.run("Do it.")
        early: Any = await agent.run(
            message_history=held.all_messages(), deferred_tool_results=resume_held(held.output)
        )
        assert isinstance(early.output, DeferredToolRequests)
        assert shop.ran == []
        await shop.decide(True)
        done: Any = await agent.run(
            message_history=early.all_messages(), deferred_tool_results=resume_held(early.output)
        )

        assert done.output == Report(done=1)
        assert shop.ran == ["delete /etc/x"]
        assert await shop.count_requests() == 1

    use_shop(work, tmp_path)


async def get_output(shop: Shop, script: Sequence[Reply], output_type: Any) -> Any:
    """What an agent gives in the end, which has a guard and no tools."""
    from pydantic_ai import Agent

    from adjudge.integrations.pydantic_ai import GateCapability

    model = make_model(script)
    agent: Any = Agent(model, output_type=output_type, capabilities=[GateCapability(shop.guard)], retries=2)
    return (await agent.run("Do it.")).output


def make_output_functions(shop: Shop) -> dict[str, Any]:
    """The shop's functions by name, as outputs; the one that the guard does not name takes two arguments here."""

    def unlisted(cmd: str, times: int) -> str:
        """A function that the guard does not name."""
        shop.ran.append(f"unlisted {cmd} {times}")
        return "ran"

    return {function.__name__: function for function in (*make_bodies(shop), unlisted)}


def test_an_output_function_is_called_as_a_tool_is(tmp_path: Path):
    """With what passes its gate; what is refused the model may write anew, and the function has not run."""

    async def work(shop: Shop) -> None:
        shell = make_output_functions(shop)["shell"]
        script: list[Reply] = [
            [Call("final_result", f"o{number}", {"cmd": cmd})] for number, cmd in enumerate(["rm -rf /", "ls"])
        ]
        output = await get_output(shop, script, shell)

        assert (output, shop.ran) == ("ran ls", ["shell ls"])

    use_shop(work, tmp_path)


def test_an_output_function_of_text_is_checked_too(tmp_path: Path):
    """What the model says is its argument."""
    from pydantic_ai import TextOutput

    async def work(shop: Shop) -> None:
        shell = make_output_functions(shop)["shell"]
        output = await get_output(shop, ["rm -rf /", "ls"], TextOutput(shell))

        assert (output, shop.ran) == ("ran ls", ["shell ls"])

    use_shop(work, tmp_path)


@pytest.mark.parametrize("name", ["delete_file", "unlisted"])
def test_an_output_function_that_cannot_be_allowed_is_not_called(name: str, tmp_path: Path):
    """Not one that the guard does not name, nor one about which people decide: it cannot wait, and nobody is asked."""
    from pydantic_ai.exceptions import UnexpectedModelBehavior

    async def work(shop: Shop) -> None:
        arguments: dict[str, Any] = {"path": "/etc/x"} if name == "delete_file" else {"cmd": "ls", "times": 1}
        function = make_output_functions(shop)[name]
        script: list[Reply] = [[Call("final_result", f"o{number}", arguments)] for number in range(3)]
        with pytest.raises(UnexpectedModelBehavior):
            await get_output(shop, script, function)

        assert shop.ran == []
        assert not (tmp_path / "calls.db").exists() or await shop.count_requests() == 0

    use_shop(work, tmp_path)


def test_an_output_function_without_a_name_is_not_called(tmp_path: Path):
    """Of several in one output, pydantic-ai does not say which it will call."""
    from pydantic_ai import PromptedOutput
    from pydantic_ai.exceptions import UnexpectedModelBehavior

    async def work(shop: Shop) -> None:
        functions = make_output_functions(shop)
        reply = '{"result": {"kind": "shell", "data": {"cmd": "ls"}}}'
        with pytest.raises(UnexpectedModelBehavior):
            await get_output(shop, [reply] * 3, PromptedOutput([functions["shell"], functions["unlisted"]]))

        assert shop.ran == []

    use_shop(work, tmp_path)


def test_calls_that_something_else_deferred_are_left_out(tmp_path: Path):
    """What the program answers for them is the program's."""
    from pydantic_ai.messages import ToolCallPart
    from pydantic_ai.tools import DeferredToolRequests

    from adjudge.integrations.pydantic_ai import resume_held

    calls = [ToolCallPart("a", {}, tool_call_id="ours"), ToolCallPart("b", {}, tool_call_id="theirs")]
    metadata: Any = {"ours": {"adjudge": {}}, "theirs": {"other": 1}}

    assert resume_held(DeferredToolRequests(approvals=calls, metadata=metadata)).approvals == {"ours": True}


def test_arguments_are_checked_as_the_tool_gets_them(tmp_path: Path):
    """After validation: with defaults, and with what is no plain JSON written as JSON."""
    from datetime import date

    async def work(shop: Shop) -> None:
        screened = screen_results(shop)

        def book(day: date, note: str = "rm -rf by default") -> str:
            """Book a day."""
            screened.ran.append(f"{day} {note}")
            return note

        book.__annotations__["day"] = date
        calls = [Call("book", "b1", {"day": "2026-11-24"}), Call("book", "b2", {"day": "2026-11-24", "note": "ok"})]
        read = await ask(screened, [calls, DONE], tools=[book])

        assert read == [REFUSED, "ok"]
        assert screened.ran == ["2026-11-24 ok"]

    use_shop(work, tmp_path)


def test_no_argument_is_hidden_from_the_check(tmp_path: Path):
    """The types of a tool's arguments hide some from pydantic's JSON: an approval would be good for any value."""
    from dataclasses import dataclass, field

    from pydantic import BaseModel, Field, SecretStr

    class Target(BaseModel, extra="allow"):
        to: str = Field(exclude=True)
        pin: SecretStr

    @dataclass(slots=True)
    class Note:
        text: str = field(metadata={"exclude": True})

    async def work(shop: Shop) -> None:
        ran = []

        def shell(targets: list[Target], note: Note) -> str:
            """Run a command."""
            ran.append((targets[0].to, targets[0].pin.get_secret_value(), note.text, targets[0].model_extra))
            return "ran"

        shell.__annotations__ |= {"targets": list[Target], "note": Note}
        fine = {"to": "a", "pin": "1", "more": "b"}
        argument_sets: list[dict[str, Any]] = [
            {"targets": [fine], "note": {"text": "c"}},
            *({"targets": [{**fine, name: "rm -rf"}], "note": {"text": "c"}} for name in fine),
            {"targets": [fine], "note": {"text": "rm -rf"}},
        ]
        calls = [Call("shell", f"c{number}", arguments) for number, arguments in enumerate(argument_sets)]
        read = await ask(shop, [calls, DONE], tools=[shell])

        assert read == ["ran", REFUSED, REFUSED, REFUSED, REFUSED]
        assert ran == [("a", "1", "c", {"more": "b"})]

    use_shop(work, tmp_path)


@pytest.mark.parametrize("kind", ["ToolFailed", "ModelRetry", "RuntimeError"])
def test_what_a_tool_says_when_it_fails_is_screened(kind: str, tmp_path: Path):
    """Also where another capability makes a result of the error."""
    from pydantic_ai import exceptions
    from pydantic_ai.capabilities import AbstractCapability

    class Recover(AbstractCapability[Any]):
        async def on_tool_execute_error(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, error: Any) -> Any:
            return str(error)

    async def work(shop: Shop) -> None:
        screened = screen_results(shop)

        def shell(cmd: str) -> str:
            """Run a command."""
            screened.ran.append(cmd)
            raise getattr(exceptions, kind, RuntimeError)(f"failed: {cmd}")

        for cmd in ("secret", "other"):
            read = await ask(screened, [[call_shell(cmd)], DONE], tools=[shell], others=[Recover()])
            assert read == [WITHHELD] if cmd == "secret" else "failed: other" in read[0]

        assert screened.ran == ["secret", "other"]

    use_shop(work, tmp_path)


def test_all_that_a_tool_returns_is_screened(tmp_path: Path):
    """What it returns, what it adds beside it, and what is no text."""

    async def work(shop: Shop) -> None:
        from pydantic_ai.messages import BinaryContent, ToolReturn

        screened = screen_results(shop)

        def look(text: str) -> Any:
            """Look."""
            screened.ran.append(text)
            return ToolReturn("seen", content=[text])

        def draw(text: str) -> Any:
            """Draw."""
            screened.ran.append(text)
            return [text, BinaryContent(b"image", media_type="image/png")]

        look.__annotations__["return"] = draw.__annotations__["return"] = Any
        calls = [Call("look", "c1", {"text": "secret"}), Call("look", "c2", {"text": "fine"})]
        read = await ask(screened, [[*calls, Call("draw", "c3", {"text": "fine"})], DONE], tools=[look, draw])
        drawn = await ask(screened, [[Call("draw", "c4", {"text": "x"})], DONE], tools=[draw], media=["draw"])
        secret = await ask(screened, [[Call("draw", "c5", {"text": "secret"})], DONE], tools=[draw], media=["draw"])

        assert read == [WITHHELD, "seen", WITHHELD]
        assert drawn[0] != WITHHELD
        assert secret == [WITHHELD]

    use_shop(work, tmp_path)


def test_a_tool_of_the_provider_is_refused_unless_it_is_named(tmp_path: Path):
    """No guard sees its calls."""
    from pydantic_ai.capabilities import NativeTool
    from pydantic_ai.native_tools import WebSearchTool

    async def work(shop: Shop) -> None:
        options = {"others": [NativeTool(WebSearchTool())]}
        with pytest.raises(UsageError) as caught:
            await ask(shop, [DONE], **options)
        with contextlib.suppress(Exception):  # this model has no such tool
            await ask(shop, [DONE], hosted=["web_search"], **options)

        assert caught.value.argument == "hosted"

    use_shop(work, tmp_path)


@pytest.mark.parametrize(
    ("options", "argument"), [({"guard": None}, "guard"), ({"media": "a"}, "media"), ({"hosted": "a"}, "hosted")]
)
def test_what_is_no_guard_and_no_list_is_refused(options: dict, argument: str, tmp_path: Path):
    """What is no guard and no list is refused."""

    async def work(shop: Shop) -> None:
        from adjudge.integrations.pydantic_ai import GateCapability

        with pytest.raises(UsageError) as caught:
            GateCapability(**{"guard": shop.guard, **options})

        assert caught.value.argument == argument

    use_shop(work, tmp_path)
