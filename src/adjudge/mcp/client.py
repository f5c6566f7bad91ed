"""A client of an MCP server that calls its tools only if a guard allows it and they are as they were when pinned.

What counts as a change of what was pinned is decided in ``pins.py`` (``Pins``).
"""

from __future__ import annotations

import asyncio
import copy
import secrets
import shlex
from collections.abc import Collection, Mapping
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from mcp_types import (
    INVALID_REQUEST,
    CallToolResult,
    ListPromptsRequest,
    ListToolsRequest,
    PaginatedRequestParams,
    Tool,
)
from pydantic import BaseModel, ConfigDict

from adjudge.errors import UsageError
from adjudge.guards.tool_guard.call import ToolCall
from adjudge.guards.tool_guard.guard import WITHHELD, ToolGuard
from adjudge.hooks import logger
from adjudge.mcp.pins import READ_SECONDS, Pins, list_unknown_arguments, name_source
from adjudge.mcp.result_screens import CALL_META, DescriptionScreen, ResultScreen, dump, refuse

_MOST_PAGES = 100
"""The most pages of a list that are read, because a server could send pages without end."""

_UNREADABLE = "the tools of the server cannot be read"

_CHANGED = "The call was not made: the server or this tool is not as it was when it was approved."

_UNKNOWN = "The call was not made: it has an argument that this tool does not name."

_NOT_CALLED = "The call was not made: the tools of its server cannot be read."

_NO_ANSWER = "The call failed: its server's answer cannot be used. The call may have been made."


class _Page(BaseModel):
    """A page of a list with all of its members. The SDK's own types drop members that they do not know."""

    model_config = ConfigDict(extra="allow")


async def read_pins(client: Client, *, source: str | None = None) -> Pins:
    """Read all that a connected server offers.

    Raises ``UsageError`` if the client does not know the source, or if two tools have one name, and ``MCPError`` if the
    server cannot be read.

    Args:
        client: The client, connected to the server.
        source: The address of the server or the command that starts it; by default as the client has it.
    """
    known_source = _find_source(client.server) if source is None else source
    if known_source is None:
        raise UsageError("the client does not say where its server comes from; give source", argument="source")
    tools = await _list_pages(client, ListToolsRequest, "tools") if client.server_capabilities.tools else []
    prompts = await _list_pages(client, ListPromptsRequest, "prompts") if client.server_capabilities.prompts else []
    return Pins(
        source=known_source,
        name=None if client.server_info is None else client.server_info.name,
        instructions=client.instructions,
        tools=tuple(tools),
        prompts=tuple(prompts),
    )


def _find_source(server: object) -> str | None:
    """Return the address of a client's server, or the command that starts it; ``None`` if the client has neither."""
    if isinstance(server, str):
        return name_source(server)
    if isinstance(server, StdioServerParameters):
        return shlex.join([server.command, *server.args])
    return None


async def _list_pages(
    client: Client, request: type[ListToolsRequest | ListPromptsRequest], member: str
) -> list[Mapping[str, Any]]:
    """List all objects of one kind that a server offers, page by page; ``member`` has them in each page.

    Raises ``MCPError`` for a list that has too many pages or cannot be read.
    """
    objects: list[Mapping[str, Any]] = []
    cursor: str | None = None
    for _ in range(_MOST_PAGES):
        page = await client.session.send_request(request(params=PaginatedRequestParams(cursor=cursor)), _Page)
        page_objects = (page.model_extra or {}).get(member)
        if not isinstance(page_objects, list) or not all(isinstance(value, dict) for value in page_objects):
            raise MCPError(INVALID_REQUEST, _UNREADABLE)
        objects += copy.deepcopy(page_objects)
        cursor = (page.model_extra or {}).get("nextCursor")
        if cursor is None:
            return objects
        if not isinstance(cursor, str):
            break
    raise MCPError(INVALID_REQUEST, _UNREADABLE)


class GuardedClient:
    """The tools of a connected MCP server, for an agent: ``GuardedClient(client, guard, pins=..., ...)``.

    A tool is listed and called only if it is pinned and nothing of it changed since, and only while the server's
    source, name, instructions and prompts are those that were pinned. The server is asked again before each call, and
    has 30 seconds to answer. Then the guard decides, and checks the result. An argument that the tool's schema does not
    name is refused.

    Nothing else of the server reaches the agent: no prompts, no resources, no notifications. What the server asks of
    the user or of the model is declined, unless the client was made with callbacks for it.

    Raises ``UsageError`` for pins of another source.

    Args:
        client: A connected client of the SDK.
        guard: Decides about each call; its patterns name the server's tools as ``(server, tool)``.
        pins: What was approved, from ``Pins.read``; with ``None`` every tool that the server lists can be called.
        server: The name of the server in the guard's patterns. It is yours, and not what the server calls itself.
        run_id: The agent's run, to which refusals and approvals belong.
        source: The server's address or command, where the client does not say it.
        media: Names of tools whose images, audio and binary resources may reach the agent; of others they are withheld.
    """

    def __init__(
        self,
        client: Client,
        guard: ToolGuard,
        *,
        pins: Pins | None,
        server: str,
        run_id: str,
        source: str | None = None,
        media: Collection[str] = (),
    ) -> None:
        self._results = ResultScreen(guard, media)
        self._descriptions = DescriptionScreen(guard)
        self._source = _find_source(client.server) if source is None else source
        if pins is not None and self._source != pins.source:
            raise UsageError(
                f"the pins are of {pins.source!r}, and the client's server comes from {self._source!r}; pin that one, "
                "or give its source",
                argument="pins",
            )
        self._client = client
        self._guard = guard
        self._pins = pins
        self._server = server
        self._run_id = run_id

    async def list_tools(self) -> list[Tool]:
        """List the tools that can be called, and whose descriptions the guard's ``prompts`` let through.

        Raises ``MCPError`` if the server cannot be read.
        """
        offered = await self._read_offer()
        if offered is None:
            raise MCPError(INVALID_REQUEST, _UNREADABLE)
        if not self._is_same_server(offered):
            return []
        callable_tools = [tool for tool in offered.tools if self._is_pinned(tool)]
        return [Tool.model_validate(tool, by_name=False) for tool in await self._descriptions.select(callable_tools)]

    async def call_tool(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        call_id: str | None = None,
        task: object = None,
    ) -> CallToolResult:
        """Call a tool, or return a result that says why it was not called.

        Give ``call_id``, the framework's id of the call, and repeat a call that waits for people with the same one; it
        is in the ``_meta`` of the refusal as well. ``task`` is what the user asked for, as in ``ToolGuard.check``.
        Raises ``MCPError`` as the SDK's client does, with text only if the guard's ``results`` lets it through.
        """
        plain = copy.deepcopy(dict(arguments or {}))
        call = ToolCall(
            tool=name,
            arguments=plain,
            call_id=secrets.token_hex(16) if call_id is None else call_id,
            run_id=self._run_id,
            server=self._server,
        )
        problem = await self._find_problem(name, plain)
        if problem is not None:
            logger.warning("a call of %r on MCP server %r was refused: %s", name[:80], self._server, problem)
            return refuse(problem)
        verdict = await self._guard.check(call, task=task)
        if not verdict:
            return refuse(verdict.message, {CALL_META: call.call_id} if verdict.kind == "pending" else None)
        return await self._call_tool(call, plain)

    async def _call_tool(self, call: ToolCall, arguments: dict[str, Any]) -> CallToolResult:
        """Call a tool, and return its result if the agent may read it; otherwise a result that says it was withheld.

        Raises ``MCPError`` as the SDK's client does, with its text only if the agent may read that.
        """
        try:
            result = await self._client.call_tool(call.tool, arguments)
        except MCPError as error:
            await self._results.screen_error(call, error)
            raise
        except Exception as error:  # noqa: BLE001 - the SDK's errors quote what the server sent
            logger.error("a call of %r failed: %s", call.tool[:80], type(error).__name__)
            return refuse(_NO_ANSWER)
        readable_result = await self._results.screen(call, dump(result))
        if readable_result is None:
            return refuse(WITHHELD)
        return CallToolResult.model_validate(readable_result, by_name=False)

    async def _find_problem(self, name: str, arguments: Mapping[str, Any]) -> str | None:
        """Return why a tool must not be called, before the guard is asked; ``None`` if it may be called.

        The reasons are that the server cannot be read, that it or the tool changed, and that an argument is unknown.
        """
        offered = await self._read_offer()
        if offered is None:
            return _NOT_CALLED
        tool = offered.find_tool(name)
        if tool is None or not self._is_same_server(offered) or not self._is_pinned(tool):
            return _CHANGED
        return _UNKNOWN if list_unknown_arguments(tool, arguments) else None

    async def _read_offer(self) -> Pins | None:
        """Read what the server offers now; ``None`` if it cannot be read."""
        try:
            # The SDK has no time limit: a server that never answers, or sends page after page, would block the agent.
            async with asyncio.timeout(READ_SECONDS):
                return await read_pins(self._client, source=self._source or "")
        except Exception as error:  # noqa: BLE001 - a server that cannot be read is not called
            logger.error("the tools of MCP server %r cannot be read: %s", self._server, type(error).__name__)
            return None

    def _is_same_server(self, offered: Pins) -> bool:
        """Return whether the server is the pinned one, apart from its tools; log what changed. True without pins."""
        changes = () if self._pins is None else self._pins.list_changes(offered)
        if changes:
            logger.warning("MCP server %r changed since it was pinned: %s", self._server, ", ".join(changes))
        return not changes

    def _is_pinned(self, tool: Mapping[str, Any]) -> bool:
        """Return whether a tool is pinned exactly as it is now. True without pins."""
        return self._pins is None or self._pins.has_tool(tool)
