"""An MCP server that never says what it offers: a guarded client waits no longer than it does for one to be pinned."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest

from adjudge import Gate
from kit.mcp import open_client, read_text, use
from kit.tool_guards import Shop


@pytest.fixture(autouse=True)
def package(require) -> None:
    require("mcp", find_spec("mcp"), "pip install 'adjudge[mcp]'")


class SlowServer:
    """A server that lists its tools only while it is told to, and counts its calls."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()
        self.asked = asyncio.Event()
        self.calls: list[str] = []

    def open(self) -> Any:
        from mcp.server import Server
        from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

        async def list_tools(*_: Any) -> Any:
            self.asked.set()
            await self.answers.wait()
            return ListToolsResult(tools=[Tool(name="add", input_schema={"type": "object"})])

        async def call_tool(_: Any, params: Any) -> Any:
            self.calls.append(params.name)
            return CallToolResult(content=[TextContent(text="3")])

        return Server("numbers", on_list_tools=list_tools, on_call_tool=call_tool)


@pytest.mark.timed
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_of_a_server_that_never_says_what_it_offers_nothing_is_called(mode: str, monkeypatch: pytest.MonkeyPatch):
    """The agent gets its answer all the same; once the server answers in time, its tools are called."""
    from mcp import MCPError

    from adjudge.integrations.mcp import GuardedClient

    async def work(shop: Shop) -> None:
        slow = SlowServer()
        async with open_client(slow.open(), mode=mode) as client:
            tools = GuardedClient(client, shop.guard, pins=None, server="numbers", run_id="run", source="slow")
            with monkeypatch.context() as patch:
                patch.setattr("adjudge.mcp.client.READ_SECONDS", 0.05)
                refused = await tools.call_tool("add", {})
                with pytest.raises(MCPError):
                    await tools.list_tools()
            await slow.asked.wait()
            assert refused.is_error
            assert read_text(refused) == "The call was not made: the tools of its server cannot be read."
            assert slow.calls == []
            slow.answers.set()
            assert not (await tools.call_tool("add", {})).is_error
        assert slow.calls == ["add"]

    use(work, tools={("numbers", "*"): Gate("numbers", rules=[{"not_contains": ["666"]}])})
