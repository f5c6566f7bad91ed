"""The results of a tool of MCP, and the texts of its server about it, before the agent reads them.

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
"""The member of ``_meta`` that names a held call: in the refusal, and in the call when an older client repeats it."""

_MOST_KEPT = 1_000
"""Tools whose descriptions were checked, that are kept in memory."""


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
        """Return what the agent may read of a result; ``None`` for nothing."""
        kind = dumped.get("resultType", "complete")
        if kind not in {"complete", "input_required"} or (kind == "complete" and "content" not in dumped):
            return None  # a task, or a form of result that nobody here knows
        shown, sent = _split_media(dumped, keeps=call.tool in self._media)
        return sent if await self._guard.check_result(call, shown) else None

    async def screen_error(self, call: ToolCall, error: Exception) -> None:
        """Raise another error if the agent may not read what this one says."""
        code, data = (error.code, error.data) if isinstance(error, MCPError) else (INTERNAL_ERROR, None)
        content = {"error": {"code": code, "message": str(error), "data": data}}
        if not await self._guard.check_result(call, content):
            raise MCPError(code, WITHHELD) from None


class DescriptionScreen:
    """Checks how tools are described to the agent, once for each wording."""

    def __init__(self, guard: ToolGuard) -> None:
        self._guard = guard
        self._checked: OrderedDict[str, bool] = OrderedDict()
        # Not the run of a client: it would be stopped for what the server says.
        self._run_id = f"descriptions:{secrets.token_hex(16)}"

    async def select(self, tools: Collection[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Return the tools whose descriptions may reach the agent."""
        return [tool for tool in tools if await self._may_pass(tool)]

    async def _may_pass(self, tool: Mapping[str, Any]) -> bool:
        """Return whether a tool's description may reach the agent; a final verdict is kept for its wording."""
        text = json.dumps(tool, sort_keys=True, ensure_ascii=False)
        digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
        if digest in self._checked:
            return self._checked[digest]
        verdict = await self._guard.check_prompt(text, run_id=self._run_id)
        # What could not be checked, or waits for people, is looked at again.
        if verdict or (verdict.kind == "refuse" and verdict.decision is not None):
            self._checked[digest] = bool(verdict)
            while len(self._checked) > _MOST_KEPT:
                self._checked.popitem(last=False)
        if not verdict:
            logger.warning("tool %r was left out of the list: its description did not pass", str(tool.get("name"))[:80])
        return bool(verdict)


def refuse(text: str, meta: Mapping[str, Any] | None = None) -> CallToolResult:
    """Make a result that the model reads; a protocol's error it may never see."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    return CallToolResult.model_validate(result if meta is None else {**result, "_meta": dict(meta)})


def dump(result: BaseModel | dict[str, Any] | None) -> dict[str, Any]:
    """Return a result as it is sent."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {} if result is None else dict(result)


def _split_media(dumped: dict[str, Any], *, keeps: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what is judged of a result, and what is sent.

    No judge here sees an image or hears a sound, so each is judged by kind, size and digest, and sent only if the tool
    is named as one that may send it.
    """
    blocks = dumped.get("content")
    if not isinstance(blocks, list):
        return dumped, dumped
    shown, sent = [], []
    for block in blocks:
        has_data = bool(_list_data(block))
        described = _describe_data(block) if has_data else block
        is_left_out = has_data and not keeps
        withheld = {"type": "text", "text": f"A part of type {block['type']} was withheld."} if is_left_out else None
        shown.append(withheld or described)
        sent.append(withheld or block)
    return {**dumped, "content": shown}, {**dumped, "content": sent}


def _list_data(block: Any) -> list[str]:
    """List the base64 texts of a block of a result: ``data`` of pictures and sounds, ``blob`` of resources."""
    if not isinstance(block, dict):
        return []
    resource = block.get("resource")
    data = (block.get("data"), resource.get("blob") if isinstance(resource, dict) else None)
    return [text for text in data if isinstance(text, str)]


def _describe_data(block: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a block by all that it has, with a digest in place of each base64 text."""
    described = dict(block)
    if isinstance(block.get("data"), str):
        described["data"] = _describe_base64(block["data"])
    resource = block.get("resource")
    if isinstance(resource, dict) and isinstance(resource.get("blob"), str):
        described["resource"] = {**resource, "blob": _describe_base64(resource["blob"])}
    return described


def _describe_base64(text: str) -> dict[str, Any]:
    return {"sha256": sha256(text.encode()).hexdigest(), "characters": len(text)}
