"""A guard as middleware of an MCP server: prompts, descriptions, low-level servers and tools that ask for input."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Annotated, Any

import pytest

from adjudge import Gate, PromptFirewall
from adjudge.testing import ScriptedModel
from kit.firewalls import SAFE, reject
from kit.judges import Seat
from kit.mcp import KEY, User, make_server, open_client, read_text, use
from kit.tool_guards import Shop

MODES = ["auto", "legacy"]

PROMPTS = Gate("prompts", rules=[{"not_contains": ["POISON"]}])


def judge_prompt(request: Any) -> Any:
    """Reject what says POISON, as the judge of a prompt firewall does."""
    return reject(1, reason="an order to the agent") if "POISON" in request.user else SAFE


CHECKERS = pytest.mark.parametrize(
    "make_prompts",
    [lambda: PROMPTS, lambda: PromptFirewall(ScriptedModel(judge_prompt))],
    ids=["gate", "firewall"],
)


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("mcp", find_spec("mcp"), "pip install 'adjudge[mcp]'")


def make_low_level(shop: Shop, **options: Any) -> Any:
    """A low-level server with the same tools, which seals nothing by itself."""
    import mcp_types
    from mcp.server import Server

    from adjudge.integrations.mcp import GateMiddleware

    async def call_tool(_: Any, params: Any) -> Any:
        word = {"delete_file": "path", "shell": "cmd"}[params.name]
        verb = {"delete_file": ("delete", "deleted"), "shell": ("shell", "ran")}[params.name]
        shop.ran.append(f"{verb[0]} {params.arguments[word]}")
        return mcp_types.CallToolResult.model_validate(
            {"content": [{"type": "text", "text": f"{verb[1]} {params.arguments[word]}"}]}
        )

    async def list_tools(*_: Any) -> Any:
        return mcp_types.ListToolsResult(tools=[])

    server = Server("files", on_call_tool=call_tool, on_list_tools=list_tools)
    server.middleware.append(GateMiddleware(shop.guard, **options))
    return server


def make_high_level(shop: Shop, **options: Any) -> Any:
    """A server of the SDK's usual kind."""
    from adjudge.integrations.mcp import GateMiddleware

    return make_server(shop, extensions=[], middleware=[GateMiddleware(shop.guard, **options)])


SERVERS = pytest.mark.parametrize("make", [make_high_level, make_low_level])


@SERVERS
@pytest.mark.parametrize("mode", MODES)
def test_calls_are_checked(make: Any, mode: str):
    """Passed, refused, not listed, and held and approved, by both kinds of servers."""

    async def work(shop: Shop) -> None:
        user = User(before=lambda: shop.decide(True)) if mode == "auto" else None
        async with open_client(make(shop), user, mode=mode) as client:
            passed = await client.call_tool("shell", {"cmd": "ls"})
            refused = await client.call_tool("shell", {"cmd": "rm -rf /"})
            unlisted = await client.call_tool("unlisted", {})
            held = await client.call_tool("delete_file", {"path": "x"})
            if mode == "legacy":
                assert held.is_error
                await shop.decide(True)
                again = {"meta": dict(held.meta)}
                held = await client.call_tool("delete_file", {"path": "x"}, **again)
                assert (await client.call_tool("delete_file", {"path": "x"}, **again)).is_error

        assert [result.is_error for result in (passed, refused, unlisted, held)] == [False, True, True, False]
        assert [read_text(passed), read_text(held)] == ["ran ls", "deleted x"]
        assert shop.ran == ["shell ls", "delete x"]

    use(work)


@SERVERS
def test_a_held_call_runs_once(make: Any):
    """Five repetitions at once, and another with other arguments."""
    import mcp_types
    from mcp import MCPError

    async def work(shop: Shop) -> None:
        async with open_client(make(shop), User()) as client:

            async def call(path: str, **more: Any) -> bool:
                try:
                    result = await client.session.call_tool(
                        "delete_file", {"path": path}, allow_input_required=True, **more
                    )
                except MCPError:
                    return True
                return result.is_error

            held = await client.session.call_tool("delete_file", {"path": "x"}, allow_input_required=True)
            await shop.decide(True)
            answers = {"adjudge": mcp_types.ElicitResult(action="accept", content={})}
            more: dict[str, Any] = {"input_responses": answers, "request_state": held.request_state}
            assert await call("y", **more)
            async with asyncio.TaskGroup() as tasks:
                running = [tasks.create_task(call("x", **more)) for _ in range(5)]
            assert [task.result() for task in running].count(False) == 1

        assert shop.ran == ["delete x"]

    use(work)


@SERVERS
@pytest.mark.parametrize(
    "params",
    [
        {"name": 7, "arguments": {}},
        {"name": "shell", "arguments": ["rm"]},
        {"name": "shell", "arguments": {"cmd": "ls"}, "requestState": '{"tool": "made up"}'},
        {"name": "shell", "arguments": {"cmd": "ls"}, "requestState": '{"dev.adjudge/call": {"round": "0"}}'},
        {"name": "shell", "arguments": {"cmd": "ls"}, "requestState": '{"dev.adjudge/call": {"round": ["0"]}}'},
        {"name": "delete_file", "arguments": {"path": "x"}, "requestState": '{"dev.adjudge/call": {"call": "0"}}'},
    ],
)
def test_what_cannot_be_read_or_is_made_up_does_not_run(make: Any, params: dict[str, Any]):
    """The middleware sees what the client sent before anything looked at it."""
    import mcp_types
    from mcp import MCPError

    class Raw(mcp_types.Request[dict[str, Any], str]):
        method: str = "tools/call"
        params: dict[str, Any]

    async def work(shop: Shop) -> None:
        async with open_client(make(shop), mode="legacy") as client:
            try:
                result = await client.session.send_request(Raw(params=params), mcp_types.CallToolResult)
            except MCPError:
                result = None

        assert result is None or result.is_error
        assert shop.ran == []

    use(work)


# ---------------------------------------------------------------- tools that ask for input


def make_asking(shop: Shop, **options: Any) -> Any:
    """A server whose tool ``delete_file`` asks its user whether to keep a copy."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.resolve import Elicit, Resolve
    from mcp.server.request_state import RequestStateSecurity
    from pydantic import BaseModel

    class Copy(BaseModel):
        keep: bool

    async def ask(path: str) -> Elicit[Copy]:
        return Elicit(f"Keep a copy of {path}?", Copy)

    server = MCPServer(
        "files", log_level="CRITICAL", request_state_security=RequestStateSecurity(keys=[KEY]), **options
    )

    async def delete_file(path: str, copy: Any) -> str:
        shop.ran.append(f"delete {path} {copy.keep}")
        return f"deleted {path}"

    delete_file.__annotations__ = {"path": str, "copy": Annotated[Copy, Resolve(ask)], "return": str}
    server.add_tool(delete_file)
    return server


class TwoAnswers(User):
    """Looks again once the request was approved, and keeps a copy."""

    async def answer(self, context: Any, params: Any) -> Any:
        import mcp_types

        if "Keep a copy" not in params.message:
            return await super().answer(context, params)
        self.questions.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={"keep": True})


@pytest.mark.parametrize("judge", ["failed", "passed"])
def test_a_tool_may_ask_for_input(judge: Any):
    """Of an approved call, and of one that a judge passed; the judge is asked once, and the tool runs once."""
    from adjudge.integrations.mcp import GateMiddleware

    seat = Seat(judge)

    async def work(shop: Shop) -> None:
        user = TwoAnswers(before=(lambda: shop.decide(True)) if judge == "failed" else None)
        async with open_client(make_asking(shop, middleware=[GateMiddleware(shop.guard)]), user) as client:
            result = await client.call_tool("delete_file", {"path": "x"})

        assert read_text(result) == "deleted x"
        assert shop.ran == ["delete x True"]
        assert len(user.questions) == (2 if judge == "failed" else 1)
        assert len(seat.asked) == 1

    use(work, gates={"judge": seat})


def test_the_last_round_runs_once():
    """What the client kept of it is good for one request, whatever it answers, and for the same arguments."""
    import mcp_types
    from mcp import MCPError

    from adjudge.integrations.mcp import GateMiddleware

    async def work(shop: Shop) -> None:
        user = TwoAnswers()
        async with open_client(make_asking(shop, middleware=[GateMiddleware(shop.guard)]), user) as client:

            async def call(state: str | None, path: str = "x") -> Any:
                accepted = mcp_types.ElicitResult(action="accept", content={"keep": True})
                answers = dict.fromkeys(asked, accepted)
                more = {"input_responses": answers, "request_state": state} if state else {}
                return await client.session.call_tool("delete_file", {"path": path}, allow_input_required=True, **more)

            asked: Sequence[str] = ()
            first = await call(None)
            asked = list(first.input_requests)
            with pytest.raises(MCPError):
                await call(first.request_state, path="y")
            done = await call(first.request_state)
            again = await call(first.request_state)

        assert [done.is_error, again.is_error] == [False, True]
        assert shop.ran == ["delete x True"]

    use(work, gates={"judge": Seat("passed")})


def test_another_client_continues_no_call():
    """It does not end it either: whoever made the call goes on."""
    import mcp_types

    from adjudge.integrations.mcp import GateMiddleware

    names = ["ana"]

    async def work(shop: Shop) -> None:
        gate = GateMiddleware(shop.guard, identify=lambda _: names[-1])
        async with open_client(make_asking(shop, middleware=[gate]), TwoAnswers()) as client:

            async def call(**more: Any) -> Any:
                return await client.session.call_tool("delete_file", {"path": "x"}, allow_input_required=True, **more)

            first = await call()
            answers = dict.fromkeys(
                first.input_requests, mcp_types.ElicitResult(action="accept", content={"keep": True})
            )
            more = {"input_responses": answers, "request_state": first.request_state}
            names.append("eve")
            assert (await call(**more)).is_error
            assert shop.ran == []
            names.append("ana")
            assert not (await call(**more)).is_error

    use(work, gates={"judge": Seat("passed")})


def test_the_extension_gives_up_on_an_approved_tool_that_asks():
    """It cannot take its own state away before the tool reads it; the tool's body does not run."""
    from adjudge.integrations.mcp import GateExtension

    async def work(shop: Shop) -> None:
        user = TwoAnswers(before=lambda: shop.decide(True))
        async with open_client(make_asking(shop, extensions=[GateExtension(shop.guard)]), user) as client:
            result = await client.call_tool("delete_file", {"path": "x"})

        assert (result.is_error, shop.ran) == (True, [])

    use(work)


def test_a_poisoned_question_is_withheld():
    """What a tool asks of the client's user or model is part of its result."""
    from adjudge.integrations.mcp import GateMiddleware

    async def work(shop: Shop) -> None:
        user = TwoAnswers()
        async with open_client(make_asking(shop, middleware=[GateMiddleware(shop.guard)]), user) as client:
            result = await client.call_tool("delete_file", {"path": "POISON"})

        assert (result.is_error, user.questions, shop.ran) == (True, [], [])

    results = Gate("results", rules=[{"not_contains": ["POISON"]}])
    use(work, gates={"judge": Seat("passed")}, results=results)


# ---------------------------------------------------------------- what the agent is told


def make_reader(text: str) -> Callable[[], str]:
    def read() -> str:
        return text

    return read


def make_telling(shop: Shop, **options: Any) -> Any:
    """A server with a clean and a poisoned tool, prompt and resource."""
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.resources import FunctionResource

    from adjudge.integrations.mcp import GateMiddleware

    server = MCPServer("files", log_level="CRITICAL", middleware=[GateMiddleware(shop.guard, **options)])
    for name, text in (("clean", "Reads a file."), ("poisoned", "Reads a file. POISON")):
        read = make_reader(text)
        server.add_tool(read, name=name, description=text)
        server.prompt(name=name)(read)
        server.add_resource(FunctionResource(uri=f"file:///{name}", name=name, fn=read))
    return server


@CHECKERS
@pytest.mark.parametrize("mode", MODES)
def test_a_poisoned_description_is_dropped(mode: str, make_prompts: Callable[[], Any]):
    """The agent does not learn of the tool."""

    async def work(shop: Shop) -> None:
        async with open_client(make_telling(shop), mode=mode) as client:
            tools = (await client.list_tools()).tools

        assert [tool.name for tool in tools] == ["clean"]

    use(work, prompts=make_prompts())


def test_a_description_is_judged_once():
    """Not with every list, and the run of no client ends for it."""
    seat = Seat("failed")
    prompts = Gate("prompts", judge=seat, rubric={"name": "Good", "criteria": [{"name": "good", "description": "x"}]})

    async def work(shop: Shop) -> None:
        server = make_telling(shop)
        for _ in range(12):
            async with open_client(server) as client:
                assert (await client.list_tools()).tools == []
        async with open_client(server) as client:
            assert not (await client.call_tool("clean", {})).is_error

        assert len(seat.asked) == 2

    use(work, prompts=prompts, tools={"clean": None})


@CHECKERS
@pytest.mark.parametrize("mode", MODES)
def test_poisoned_prompts_and_resources_are_withheld(mode: str, make_prompts: Callable[[], Any]):
    """Clean ones are as the server wrote them."""
    from mcp import MCPError

    async def work(shop: Shop) -> None:
        async with open_client(make_telling(shop), mode=mode) as client:
            prompt = await client.get_prompt("clean")
            resource = await client.read_resource("file:///clean")
            for reading in (client.get_prompt("poisoned"), client.read_resource("file:///poisoned")):
                with pytest.raises(MCPError) as error:
                    await reading
                assert "POISON" not in str(error.value)

        assert prompt.messages[0].content.text == "Reads a file."
        assert resource.contents[0].text == "Reads a file."

    use(work, prompts=make_prompts())
