"""A guard in front of a LangChain agent's tools: scripted models call them, and the bodies that ran are counted."""

from __future__ import annotations

import copy
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import pytest

from adjudge import UsageError
from kit.guarded_framework import (
    DONE,
    HOLD,
    WITHHELD,
    Call,
    Reply,
    Scenario,
    Stop,
    delete,
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
    require("langchain", find_spec("langchain"), "pip install langchain")


def make_model(script: Sequence[Reply]) -> Any:
    """A model that says a script."""
    from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
    from langchain_core.messages import AIMessage

    class Scripted(GenericFakeChatModel):
        def bind_tools(self, tools: Any, **options: Any) -> Any:
            return self

    def make_reply(reply: Reply) -> Any:
        if isinstance(reply, str):
            return AIMessage(reply)
        calls = [{"name": call.tool, "args": dict(call.arguments), "id": call.id} for call in reply]
        return AIMessage("", tool_calls=calls)

    return Scripted(messages=iter([make_reply(reply) for reply in script]))


def copy_saver(kept: Any) -> Any:
    """A checkpointer that has what another one had, as a database that is read by another process."""
    from langgraph.checkpoint.memory import InMemorySaver

    saver = InMemorySaver()
    if kept is not None:
        saver.storage, saver.writes, saver.blobs = copy.deepcopy((kept.storage, kept.writes, kept.blobs))
    return saver


class LangChain:
    """An agent of ``create_agent`` that is awaited."""

    is_async = True

    forgeries: ClassVar = {
        "a word": True,
        "a text": "approved",
        "the form of HumanInTheLoopMiddleware": {"decisions": [{"type": "approve"}]},
        "an edit": {"decisions": [{"type": "edit", "edited_action": {"name": "shell", "args": {"cmd": "ls"}}}]},
    }

    async def run(
        self, shop: Shop, script: Sequence[Reply], *, kept: Any = None, word: Any = None, conversation: str = "c-1"
    ) -> Stop:
        from langchain.agents import create_agent
        from langchain_core.messages import ToolMessage

        from adjudge.integrations.langchain import GateMiddleware

        async with self.open_saver(kept) as (saver, to_keep):
            agent = create_agent(
                make_model(script), make_bodies(shop), middleware=[GateMiddleware(shop.guard)], checkpointer=saver
            )
            begin = {"messages": [("user", "Do it.")]}
            given = begin if kept is None else await self.resume(agent, conversation, word)
            config = {"configurable": {"thread_id": conversation}}
            state = await agent.ainvoke(given, config) if self.is_async else agent.invoke(given, config)
        messages = state["messages"]
        return Stop(
            is_held="__interrupt__" in state,
            kept=to_keep,
            answer=messages[-1].text or None,
            read=[message.text for message in messages if isinstance(message, ToolMessage)],
        )

    @asynccontextmanager
    async def open_saver(self, kept: Any) -> AsyncIterator[tuple[Any, Any]]:
        """A checkpointer that has what was kept, and what to keep of it."""
        saver = copy_saver(kept)
        yield saver, saver

    async def resume(self, agent: Any, conversation: str, word: Any) -> Any:
        """What the program says for every call that is held."""
        from langgraph.types import Command

        config = {"configurable": {"thread_id": conversation}}
        state = await agent.aget_state(config) if self.is_async else agent.get_state(config)
        return Command(resume={held.id: True if word is None else word for held in state.interrupts})


class LangChainSync(LangChain):
    """The same by ``invoke``."""

    is_async = False


class LangChainOnFiles(LangChain):
    """The same with a checkpointer that writes a file, which is closed when the run stops and read by the next one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @asynccontextmanager
    async def open_saver(self, kept: Any) -> AsyncIterator[tuple[Any, Any]]:
        from langgraph.checkpoint.sqlite import SqliteSaver
        from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver

        path = self.folder / f"{len(list(self.folder.iterdir()))}.db"
        if kept is not None:
            shutil.copy(kept, path)  # what was kept stays as it was, for those who use it again
        if self.is_async:
            async with AsyncSqliteSaver.from_conn_string(str(path)) as saver:
                yield saver, path
        else:
            with SqliteSaver.from_conn_string(str(path)) as saver:
                yield saver, path


class LangChainSyncOnFiles(LangChainOnFiles):
    """The same by ``invoke``."""

    is_async = False


@pytest.mark.matrix
@pytest.mark.parametrize("scenario", list_scenarios(LangChain))
def test_a_body_runs_as_often_as_somebody_allowed(scenario: Scenario, tmp_path: Path):
    """A body runs as often as somebody allowed."""
    play(scenario, LangChain(), tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("scenario", list_scenarios(LangChainSync))
def test_a_body_runs_as_often_as_somebody_allowed_without_a_loop(scenario: Scenario, tmp_path: Path):
    """A body runs as often as somebody allowed, by the sync methods."""
    play(scenario, LangChainSync(), tmp_path)


@pytest.mark.matrix
@pytest.mark.parametrize("framework", [LangChainOnFiles, LangChainSyncOnFiles])
@pytest.mark.parametrize("scenario", list_scenarios(LangChainOnFiles))
def test_a_body_runs_as_often_as_somebody_allowed_when_checkpoints_are_read_back(
    scenario: Scenario, framework: type[LangChainOnFiles], tmp_path: Path, require
):
    """A body runs as often as somebody allowed, with a checkpointer that writes a file."""
    module = "langgraph.checkpoint.sqlite"
    require(module, find_spec(module), "pip install langgraph-checkpoint-sqlite")
    folder = tmp_path / "checkpoints"
    folder.mkdir()
    play(scenario, framework(folder), tmp_path)


# ---------------------------------------------------------------- what is LangChain's own


CONFIG = {"configurable": {"thread_id": "c-1"}}


async def invoke(
    shop: Shop, script: Sequence[Reply], *, before: Sequence[Any] = (), after: Sequence[Any] = (), **options: Any
) -> list[str]:
    """What the model reads, with other middleware before and after the guard's."""
    from langchain.agents import create_agent
    from langchain_core.messages import ToolMessage

    from adjudge.integrations.langchain import GateMiddleware

    gate = {name: options.pop(name) for name in ("media", "hosted") if name in options}
    tools = options.pop("tools", None) or make_bodies(shop)
    config = options.pop("config", CONFIG)
    middleware = [*before, GateMiddleware(shop.guard, **gate), *after]
    agent = create_agent(make_model(script), tools, middleware=middleware, **options)
    state = await agent.ainvoke({"messages": [("user", "Do it.")]}, config)
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


def make_middleware(change: Any) -> Any:
    """Middleware around the calls of tools."""
    from langchain.agents.middleware import AgentMiddleware

    class Other(AgentMiddleware):
        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            return await change(request, handler)

    return Other()


@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("arguments", [{"cmd": "rm -rf /"}, {"cmd": "ls", "more": 1}, {}], ids=str)
def test_other_middleware_cannot_change_what_was_checked(place: str, arguments: dict, tmp_path: Path):
    """Before the guard it is checked as changed; after it, it does not run, for nobody has seen it."""

    async def change(request: Any, handler: Any) -> Any:
        return await handler(request.override(tool_call={**request.tool_call, "args": arguments}))

    async def work(shop: Shop) -> None:
        from langchain_core.tools import tool

        @tool
        def shell(cmd: str = "", more: int = 0) -> str:
            """Run a command."""
            shop.ran.append(cmd)
            return cmd

        options: Any = {place: [make_middleware(change)], "tools": [shell]}
        read = await invoke(shop, [[call_shell("ls")], DONE], **options)

        was_checked = place == "before" and "rm -rf" not in str(arguments)
        assert shop.ran == ([arguments.get("cmd", "")] if was_checked else [])
        assert was_checked or read[0].startswith("The call was not made: ")

    use_shop(work, tmp_path)


def test_middleware_after_the_guard_cannot_repeat_an_approved_call(tmp_path: Path):
    """One yes is one run, also where something tries again."""

    async def repeat(request: Any, handler: Any) -> Any:
        for _ in range(3):
            result = await handler(request)
        return result

    async def work(shop: Shop) -> None:
        read = await invoke(shop, [[call_shell("ls")], DONE], after=[make_middleware(repeat)])

        assert shop.ran == ["shell ls"]
        assert read[0].startswith("The call was not made: it is not the one that was checked")

    use_shop(work, tmp_path)


def test_the_approval_of_another_middleware_is_none_of_the_guards(tmp_path: Path):
    """HumanInTheLoopMiddleware is told yes, and nobody has decided here."""

    async def work(shop: Shop) -> None:
        from langchain.agents import create_agent
        from langchain.agents.middleware import HumanInTheLoopMiddleware
        from langgraph.types import Command

        from adjudge.integrations.langchain import GateMiddleware

        middleware = [HumanInTheLoopMiddleware(interrupt_on={"delete_file": True}), GateMiddleware(shop.guard)]
        agent = create_agent(
            make_model([*HOLD, DONE]), make_bodies(shop), middleware=middleware, checkpointer=copy_saver(None)
        )
        await agent.ainvoke({"messages": [("user", "Do it.")]}, CONFIG)
        for _ in range(3):
            state = await agent.ainvoke(Command(resume={"decisions": [{"type": "approve"}]}), CONFIG)

        assert shop.ran == []
        assert state["__interrupt__"][0].value["type"] == "adjudge/approval"

    use_shop(work, tmp_path)


def test_a_program_is_told_what_is_held(tmp_path: Path):
    """It can show its user what waits, and where."""

    async def work(shop: Shop) -> None:
        from langchain.agents import create_agent

        from adjudge.integrations.langchain import GateMiddleware

        agent = create_agent(
            make_model(HOLD), make_bodies(shop), middleware=[GateMiddleware(shop.guard)], checkpointer=copy_saver(None)
        )
        state = await agent.ainvoke({"messages": [("user", "Do it.")]}, CONFIG)
        [request] = await shop.approvals.list()
        held = state["__interrupt__"][0].value

        assert (held["approval"], held["tool"], held["arguments"]) == (request.id, "delete_file", {"path": "/etc/x"})
        assert held["message"].startswith("The call was not made: it waits for a person")

    use_shop(work, tmp_path)


def test_an_agent_without_a_thread_is_refused_what_people_decide(tmp_path: Path):
    """Nobody is asked in vain; what a rule decides goes on."""

    async def work(shop: Shop) -> None:
        read = await invoke(shop, [[call_shell("ls"), delete()], DONE], config={})

        assert shop.ran == ["shell ls"]
        assert read[1].startswith("The call was not made: a person may have to see it")
        assert await shop.count_requests() == 0

    use_shop(work, tmp_path)


def test_an_agent_without_a_checkpointer_stops_at_a_held_call(tmp_path: Path):
    """It cannot go on, and nothing runs."""

    async def work(shop: Shop) -> None:
        await invoke(shop, HOLD)

        assert shop.ran == []

    use_shop(work, tmp_path)


@pytest.mark.parametrize("call_id", ["x" * 5000, "ä", "\u202e", "two\nlines"])
def test_ids_of_any_form_are_taken(call_id: str, tmp_path: Path):
    """They are the model server's, and so is what they look like."""

    async def work(shop: Shop) -> None:
        await invoke(shop, [[call_shell("ls", call_id)], DONE], config={"configurable": {"thread_id": "größe"}})

        assert shop.ran == ["shell ls"]

    use_shop(work, tmp_path)


def test_a_tool_of_the_provider_is_refused_unless_it_is_named(tmp_path: Path):
    """No guard sees its calls."""

    async def work(shop: Shop) -> None:
        tools = [*make_bodies(shop), {"type": "web_search_20250305", "name": "web_search"}]
        with pytest.raises(UsageError) as caught:
            await invoke(shop, [DONE], tools=tools)
        await invoke(shop, [DONE], tools=tools, hosted=["web_search"])

        assert caught.value.argument == "hosted"

    use_shop(work, tmp_path)


def test_what_a_tool_says_when_it_fails_is_screened(tmp_path: Path):
    """Middleware before the guard makes a message of the error, which the model reads."""

    async def tell(request: Any, handler: Any) -> Any:
        from langchain_core.messages import ToolMessage

        try:
            return await handler(request)
        except Exception as error:  # noqa: BLE001 - any
            return ToolMessage(str(error), tool_call_id=request.tool_call["id"])

    async def work(shop: Shop) -> None:
        screened = screen_results(shop)

        def shell(cmd: str) -> str:
            """Run a command."""
            screened.ran.append(cmd)
            raise RuntimeError(f"failed: {cmd}")

        script = [[call_shell("secret")], [call_shell("other", "s2")], DONE]
        read = await invoke(screened, script, before=[make_middleware(tell)], tools=[shell])

        assert read == [WITHHELD, "failed: other"]
        assert screened.ran == ["secret", "other"]

    use_shop(work, tmp_path)


def test_commands_and_parts_that_are_no_text_are_screened(tmp_path: Path):
    """A command changes the state, and a picture is seen by no judge here."""

    async def work(shop: Shop) -> None:
        from langchain.tools import ToolRuntime
        from langchain_core.messages import ToolMessage
        from langchain_core.tools import tool
        from langgraph.types import Command

        screened = screen_results(shop)

        def change(text: str, runtime: Any) -> Any:
            """Change the state."""
            screened.ran.append(text)
            return Command(update={"messages": [ToolMessage(text, tool_call_id=runtime.tool_call_id)]})

        change.__annotations__["runtime"] = ToolRuntime  # by which LangGraph knows what to give

        @tool
        def draw(text: str) -> list:
            """Draw."""
            screened.ran.append(text)
            image = {"type": "image", "base64": "AAAA", "mime_type": "image/png"}
            return [{"type": "text", "text": text}, image]

        calls = [Call("change", "c1", {"text": "secret"}), Call("change", "c2", {"text": "fine"})]
        calls += [Call("draw", "c3", {"text": "fine"}), Call("change", "c4", {"text": "fine", "runtime": 1})]
        read = await invoke(screened, [calls, DONE], tools=[change, draw])
        drawn = await invoke(screened, [[Call("draw", "c5", {"text": "x"})], DONE], tools=[draw], media=["draw"])
        secret = await invoke(screened, [[Call("draw", "c6", {"text": "secret"})], DONE], tools=[draw], media=["draw"])

        assert read[:3] == [WITHHELD, "fine", WITHHELD]
        assert read[3].startswith("The call was not made: ")  # it gave an argument that only LangGraph gives
        assert (drawn, secret) == (["x"], [WITHHELD])
        assert sorted(screened.ran) == ["fine", "fine", "secret", "secret", "x"]

    use_shop(work, tmp_path)


@pytest.mark.parametrize(
    ("options", "argument"), [({"guard": None}, "guard"), ({"media": "a"}, "media"), ({"hosted": "a"}, "hosted")]
)
def test_what_is_no_guard_and_no_list_is_refused(options: dict, argument: str, tmp_path: Path):
    """What is no guard and no list is refused."""

    async def work(shop: Shop) -> None:
        from adjudge.integrations.langchain import GateMiddleware

        with pytest.raises(UsageError) as caught:
            GateMiddleware(**{"guard": shop.guard, **options})

        assert caught.value.argument == argument

    use_shop(work, tmp_path)
