"""Checks of an MCP tool's results, and of its description by the server, before the agent reads them.

Whether a text may reach the agent is decided in ``guards/tool_guard/guard.py`` (``ToolGuard``).
"""

from __future__ import annotations

import json
import secrets
from collections import OrderedDict
from collections.abc import Collection, Mapping
from hashlib import sha256
from typing import Any

from mcp import MCPError
from mcp_types import INTERNAL_ERROR, CallToolResult
from pydantic import BaseModel

from adjudge.errors import UsageError
from adjudge.guards.tool_guard.call import ToolCall
from adjudge.guards.tool_guard.guard import WITHHELD, ToolGuard
from adjudge.hooks import logger

CALL_META = "dev.adjudge/call"
"""The member of ``_meta`` with a held call's id: in the refusal, and in the call that an older client repeats."""

_MOST_REMEMBERED = 1_000
"""The most descriptions of tools whose verdicts are kept in memory."""


class ResultScreen:
    """Checks what tools return, all of it: text, structured content, ``_meta``, errors and questions."""

    def __init__(self, guard: ToolGuard, media: Collection[str]) -> None:
        if not isinstance(guard, ToolGuard):
            raise UsageError(f"guard must be a ToolGuard, got {type(guard).__name__}", argument="guard")
        if isinstance(media, str):  # each of its letters would be a name
            raise UsageError(f"media must be a list of names, got the text {media!r}", argument="media")
        self._guard = guard
        self._media = frozenset(media)

    async def screen(self, call: ToolCall, dumped: dict[str, Any]) -> dict[str, Any] | None:
        """Return the part of a result that the agent may read; ``None`` if it may not read the result."""
        kind = dumped.get("resultType", "complete")
        if kind not in {"complete", "input_required"} or (kind == "complete" and "content" not in dumped):
            return None  # a task, or an unknown form of result
        judged_result, sent_result = _split_media(dumped, keeps_media=call.tool in self._media)
        return sent_result if await self._guard.check_result(call, judged_result) else None

    async def screen_error(self, call: ToolCall, error: Exception) -> None:
        """Raise an ``MCPError`` without the text of an error, if the agent may not read that text."""
        code, data = (error.code, error.data) if isinstance(error, MCPError) else (INTERNAL_ERROR, None)
        content = {"error": {"code": code, "message": str(error), "data": data}}
        if not await self._guard.check_result(call, content):
            raise MCPError(code, WITHHELD) from None


class DescriptionScreen:
    """Checks the descriptions of tools that the agent reads, each wording once."""

    def __init__(self, guard: ToolGuard) -> None:
        self._guard = guard
        self._checked: OrderedDict[str, bool] = OrderedDict()
        # A run of its own: refusals of the server's descriptions must not stop the run of a client.
        self._run_id = f"descriptions:{secrets.token_hex(16)}"

    async def select(self, tools: Collection[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the tools whose descriptions may reach the agent."""
        return [tool for tool in tools if await self._passes(tool)]

    async def _passes(self, tool: Mapping[str, Any]) -> bool:
        """Return whether a tool's description may reach the agent; a final verdict is remembered for its wording."""
        text = json.dumps(tool, sort_keys=True, ensure_ascii=False)
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest in self._checked:
            return self._checked[digest]
        verdict = await self._guard.check_prompt(text, run_id=self._run_id)
        # A description that could not be checked, or that waits for people, is checked again the next time.
        if verdict or (verdict.kind == "refuse" and verdict.decision is not None):
            self._checked[digest] = bool(verdict)
            while len(self._checked) > _MOST_REMEMBERED:
                self._checked.popitem(last=False)
        if not verdict:
            logger.warning("tool %r was left out of the list: its description did not pass", str(tool.get("name"))[:80])
        return bool(verdict)


def refuse(text: str, meta: Mapping[str, Any] | None = None) -> CallToolResult:
    """Make an error result with a text for the model. A protocol error might never be shown to the model."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    return CallToolResult.model_validate(result if meta is None else {**result, "_meta": dict(meta)})


def dump(result: BaseModel | dict[str, Any] | None) -> dict[str, Any]:
    """Return a result as the JSON object that is sent; empty for ``None``."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {} if result is None else dict(result)


def _split_media(dumped: dict[str, Any], *, keeps_media: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a result in two forms: as it is judged, and as it is sent to the agent.

    Judges see no images and hear no sounds. With ``keeps_media``, a block of these is judged by its type, size and
    digest, and sent as it is. Otherwise it is withheld, and a text is judged and sent in its place.
    """
    blocks = dumped.get("content")
    if not isinstance(blocks, list):
        return dumped, dumped
    judged_blocks, sent_blocks = [], []
    for block in blocks:
        has_data = bool(_list_data(block))
        if has_data and not keeps_media:
            notice = {"type": "text", "text": f"A part of type {block['type']} was withheld."}
            judged_blocks.append(notice)
            sent_blocks.append(notice)
        else:
            judged_blocks.append(_describe_data(block) if has_data else block)
            sent_blocks.append(block)
    return {**dumped, "content": judged_blocks}, {**dumped, "content": sent_blocks}


def _list_data(block: Any) -> list[str]:
    """List the base64 texts of a block of a result: ``data`` of pictures and sounds, ``blob`` of resources."""
    if not isinstance(block, dict):
        return []
    resource = block.get("resource")
    data = (block.get("data"), resource.get("blob") if isinstance(resource, dict) else None)
    return [text for text in data if isinstance(text, str)]


def _describe_data(block: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a block of a result, with digest and size in place of each base64 text."""
    description = dict(block)
    if isinstance(block.get("data"), str):
        description["data"] = _describe_base64(block["data"])
    resource = block.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("blob"), str):
        description["resource"] = {**resource, "blob": _describe_base64(resource["blob"])}
    return description


def _describe_base64(text: str) -> dict[str, Any]:
    """Describe a base64 text by its digest and its size."""
    return {"sha256": sha256(text.encode()).hexdigest(), "characters": len(text)}
