"""A guard in front of the tools of an MCP server: a call runs only if the guard allows it, and once.

For the official SDK, ``mcp`` 2.0 or later. A refused call is answered with a result that the model reads. A call that
waits for people is held: a client of protocol 2026-07-28 is asked to send it again, and an older one is told how to.
"""

from __future__ import annotations

import copy
import json
import re
import secrets
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from weakref import WeakKeyDictionary

from adjudge.errors import UsageError
from adjudge.guards.tool_guard.call import ToolCall, ToolVerdict
from adjudge.guards.tool_guard.guard import WITHHELD, ToolGuard
from adjudge.hooks import logger

try:
    from mcp import MCPError
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.extension import Extension
    from mcp.server.request_state import authenticated_principal
    from mcp_types import INTERNAL_ERROR, CallToolRequestParams, CallToolResult, InputRequiredResult
    from mcp_types.version import MODERN_PROTOCOL_VERSIONS
    from pydantic import BaseModel
except ModuleNotFoundError as error:
    if error.name not in {"mcp", "mcp.server.extension", "mcp_types", "pydantic"}:  # it lacks something of its own
        raise
    message = "adjudge.integrations.mcp needs the package mcp, 2.0 or later; to have it, pip install 'adjudge[mcp]'"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["GateExtension", "IdentifyClient"]

IdentifyClient = Callable[[ServerRequestContext[Any, Any]], str | None]
"""Names the client of a request, from what the transport knows of it; ``None`` if it knows nothing."""

CALL_META = "dev.adjudge/call"
"""The member of ``_meta`` that names a held call: in the refusal, and in the call when an older client repeats it."""

_STATE = "dev.adjudge/call"
"""The member of ``requestState`` that names a held call."""

_QUESTION = "adjudge"
"""The name of our question among those that a client is asked."""

_MOST_ROUNDS = 3
"""Times that a client is asked to send a held call again. The SDK's client gives up with an exception after ten."""

_CALL_ID = re.compile(r"[0-9a-f]{32}")

_LONGEST_NAME = 120
"""Characters of a client's name that stands in the id of its run; a longer one is digested."""

_NO_TASK = "The call was not made: calls as tasks are not allowed here."

_NO_CLIENT = "The call was not made: a person may have to see it, and this server cannot tell who sends it."

_NO_INPUT = "The call was not made: the tool asks for input, which this server does not pass on for an approved call."

_NOT_CHECKED = "The call was not made: it could not be checked."

_LOOK_AGAIN = "Accept to look whether it was decided. Decline to go on without it; nothing is approved by this answer."

_FORM: dict[str, Any] = {"type": "object", "properties": {}}
"""A form without fields: what the client's user answers is no vote, since an agent may answer it."""


# ---------------------------------------------------------------- who calls


@dataclass(frozen=True, slots=True)
class _Client:
    """The client of a request."""

    run_id: str
    is_known: bool = True
    """False if a later request cannot be told from one of another client, so that no held call can be given back."""


class _Clients:
    """Tells clients apart: by whom the program or the server's sign-in names, or else by the transport's connection.

    Never by an object's ``id``, which the next connection may get, nor by a name that the client gives itself.
    """

    def __init__(self, identify: IdentifyClient | None) -> None:
        self._identify = authenticated_principal if identify is None else identify
        self._own = secrets.token_hex(16)
        self._connections: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def find(self, ctx: ServerRequestContext[Any, Any]) -> _Client:
        """Find the client of a request; raises what the program's function raises."""
        name = self._identify(ctx)
        if name is not None:
            return _Client(f"client:{_shorten(name)}")
        connection = getattr(ctx.session, "_connection", None)
        has_channel = bool(getattr(connection, "has_standalone_channel", False))
        # Over HTTP only a connection with an id of the server's own outlives the request.
        is_lasting = ctx.request is None or getattr(connection, "session_id", None) is not None
        if connection is not None and has_channel and is_lasting:
            return _Client(f"session:{self._connections.setdefault(connection.outbound, secrets.token_hex(16))}")
        if connection is not None and ctx.request is None:  # a client in this process
            return _Client(f"session:{self._own}")
        return _Client(f"anonymous:{self._own}", is_known=False)


def _shorten(name: object) -> str:
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"identify must return the client's name or None, got {name!r}", argument="identify")
    if len(name) <= _LONGEST_NAME and name.isascii() and name.isprintable():
        return name
    return f"sha256:{sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()}"


# ---------------------------------------------------------------- a call


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    """One request to call a tool, read."""

    name: str
    arguments: Mapping[str, Any]
    is_task: bool
    held_id: str | None
    """Our id of the held call that this repeats; an empty text if there is one that cannot be ours."""
    rounds: int = 0
    """Times that the client was asked to send the call again."""
    is_declined: bool = False
    """True if the client's user did not want to look again."""


def _read_request(params: CallToolRequestParams) -> _Request:
    state = _read_state(params.request_state)
    held_id: Any = None if state is None else state.get("call")
    if state is None and params.meta is not None:
        held_id = params.meta.get(CALL_META)
    if held_id is not None and not (isinstance(held_id, str) and _CALL_ID.fullmatch(held_id)):
        held_id = ""
    answer = (params.input_responses or {}).get(_QUESTION)
    rounds = 0 if state is None else state.get("rounds")
    return _Request(
        name=params.name,
        arguments={} if params.arguments is None else params.arguments,
        is_task=params.task is not None,
        held_id=held_id,
        rounds=rounds if isinstance(rounds, int) else _MOST_ROUNDS,
        is_declined=state is not None and answer is not None and getattr(answer, "action", None) != "accept",
    )


def _read_state(text: str | None) -> Mapping[str, Any] | None:
    """Read our part of ``requestState``; ``None`` if it is the tool's own."""
    if text is None or _STATE not in text:
        return None
    try:
        state = json.loads(text)
    except ValueError:
        return None
    part = state.get(_STATE) if isinstance(state, dict) else None
    return part if isinstance(part, dict) else None


class _Checkpoint:
    """Checks calls and results with a guard, and words what the client is answered."""

    def __init__(
        self, guard: ToolGuard, *, server: str | None, identify: IdentifyClient | None, media: Collection[str]
    ) -> None:
        if not isinstance(guard, ToolGuard):
            raise UsageError(f"guard must be a ToolGuard, got {type(guard).__name__}", argument="guard")
        self.guard = guard
        self.server = server
        if isinstance(media, str):  # each of its letters would be a name
            raise UsageError(f"media must be a list of names, got the text {media!r}", argument="media")
        self.media = frozenset(media)
        self._clients = _Clients(identify)

    async def serve(
        self,
        request: _Request,
        ctx: ServerRequestContext[Any, Any],
        run: Callable[[], Awaitable[HandlerResult]],
    ) -> HandlerResult:
        """Answer a request: with the tool's result if the call is allowed, and otherwise with a refusal or a hold."""
        if request.is_task:
            # Its result would be fetched by another method, which nobody checks.
            return _refuse(_NO_TASK)
        try:
            client = self._clients.find(ctx)
        except Exception as error:  # noqa: BLE001 - the program's own function
            logger.error("the client of an MCP call could not be identified: %s", type(error).__name__)
            return _refuse(_NOT_CHECKED)
        if not client.is_known and (request.held_id is not None or self.guard.can_hold(request.name, self.server)):
            logger.warning(
                "a call of %r was refused: it may have to wait for people, and over HTTP without sign-in or session no "
                "later request can be told to be the same client's; add sign-in, or give identify=",
                request.name[:80],
            )
            return _refuse(_NO_CLIENT)
        call = ToolCall(
            tool=request.name,
            arguments=request.arguments,
            # Ours and random: a client could name the id that another one waits with.
            call_id=request.held_id or secrets.token_hex(16),
            run_id=client.run_id,
            server=self.server,
        )
        is_new = request.held_id is None
        verdict = await (self.guard.check(call) if is_new else self.guard.resume(call))
        if verdict:
            is_approved = verdict.decision is not None and verdict.decision.approval_id is not None
            return await self._run(call, request.arguments, run, is_approved=is_approved)
        if verdict.kind == "pending":
            return self._hold(verdict, call, request, ctx)
        return _refuse(verdict.message)

    def _hold(
        self, verdict: ToolVerdict, call: ToolCall, request: _Request, ctx: ServerRequestContext[Any, Any]
    ) -> HandlerResult:
        """Ask the client to send the call again, by its protocol where it can, and otherwise in words."""
        if request.rounds < _MOST_ROUNDS and not request.is_declined and _can_ask(ctx):
            text = f"{verdict.message} {_LOOK_AGAIN}"
            question = {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": text, "requestedSchema": _FORM},
            }
            state = {_STATE: {"call": call.call_id, "rounds": request.rounds + 1}}
            # Never by the state alone: the client would send the call ten times within two seconds, and give up.
            return InputRequiredResult.model_validate(
                {"inputRequests": {_QUESTION: question}, "requestState": json.dumps(state)}
            )
        if self.guard.match == "content":
            return _refuse(verdict.message)
        return _refuse(
            f'{verdict.message} To repeat it once it is approved, send it with "{CALL_META}" of this result in _meta.',
            {CALL_META: call.call_id},
        )

    async def _run(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        run: Callable[[], Awaitable[HandlerResult]],
        *,
        is_approved: bool,
    ) -> HandlerResult:
        """Run an allowed call, and return what the agent may read of its result."""
        checked = copy.deepcopy(arguments)
        try:
            result = await run()
        except Exception as error:
            await self._screen_error(call, error)
            raise
        if arguments != checked:
            logger.error("the arguments of %r were changed after the check; list the gate last", call.tool[:80])
            return _refuse(WITHHELD)
        return await self._screen(call, result, is_approved=is_approved)

    async def _screen_error(self, call: ToolCall, error: Exception) -> None:
        """Raise another error if the agent may not read what this one says."""
        code, data = (error.code, error.data) if isinstance(error, MCPError) else (INTERNAL_ERROR, None)
        content = {"error": {"code": code, "message": str(error), "data": data}}
        if not await self.guard.check_result(call, content):
            raise MCPError(code, WITHHELD) from None

    async def _screen(self, call: ToolCall, result: HandlerResult, *, is_approved: bool) -> HandlerResult:
        """Return a result if the agent may read all of it, and otherwise that it was withheld."""
        dumped = _dump(result)
        kind = dumped.get("resultType", "complete")
        if kind == "input_required" and is_approved:
            # The approval is used, and the round that brings the input would be another call.
            logger.error("tool %r asks for input: use GateMiddleware for servers with such tools", call.tool[:80])
            return _refuse(_NO_INPUT)
        if kind not in {"complete", "input_required"} or (kind == "complete" and "content" not in dumped):
            return _refuse(WITHHELD)  # a task, or a form of result that nobody here knows
        shown, cleaned = _split_media(dumped, keeps=call.tool in self.media)
        if not await self.guard.check_result(call, shown):
            return _refuse(WITHHELD)
        return result if cleaned is None else CallToolResult.model_validate(cleaned)


def _can_ask(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Return whether the client can be asked by the protocol: it is new enough, and shows forms to its user."""
    capabilities = ctx.session.client_capabilities
    return (
        ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        and capabilities is not None
        and capabilities.elicitation is not None
    )


def _refuse(text: str, meta: Mapping[str, Any] | None = None) -> CallToolResult:
    """Make a result that the model reads; a protocol's error it may never see."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    return CallToolResult.model_validate(result if meta is None else {**result, "_meta": dict(meta)})


def _dump(result: HandlerResult) -> dict[str, Any]:
    """Return a result as it is sent."""
    if isinstance(result, BaseModel):
        return result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {} if result is None else dict(result)


def _split_media(dumped: dict[str, Any], *, keeps: bool) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return what is judged of a result, and what is sent in its place; ``None`` sends it as it is.

    No judge here sees an image or hears a sound, so each is judged by kind, size and digest, and sent only if the tool
    is named as one that may send it.
    """
    blocks = dumped.get("content")
    if not isinstance(blocks, list):
        return dumped, None
    shown, sent, are_left_out = [], [], False
    for block in blocks:
        data = _find_data(block)
        described = block if data is None else _describe_data(block, data)
        is_left_out = data is not None and not keeps
        are_left_out |= is_left_out
        withheld = {"type": "text", "text": f"A part of type {block['type']} was withheld."} if is_left_out else None
        shown.append(withheld or described)
        sent.append(withheld or block)
    return {**dumped, "content": shown}, ({**dumped, "content": sent} if are_left_out else None)


def _find_data(block: Any) -> str | None:
    """Return the base64 text of a block of a result, if it is not text."""
    if not isinstance(block, dict):
        return None
    resource = block.get("resource")
    data = resource.get("blob") if isinstance(resource, dict) else block.get("data")
    return data if isinstance(data, str) else None


def _describe_data(block: Mapping[str, Any], data: str) -> dict[str, Any]:
    """Describe a block by all that it has but its data."""
    described: dict[str, Any] = {name: value for name, value in block.items() if name not in {"data", "resource"}}
    resource = block.get("resource")
    if isinstance(resource, dict):
        described["resource"] = {name: value for name, value in resource.items() if name != "blob"}
    return {**described, "sha256": sha256(data.encode()).hexdigest(), "characters": len(data)}


# ---------------------------------------------------------------- the extension


class GateExtension(Extension):
    """Check every call of a server's tools with a guard: ``MCPServer(..., extensions=[GateExtension(guard)])``.

    A call runs once if the guard allows it. A refused call is answered with an error result that the model reads. If
    people have to decide, the call is held under a random id of ours. A client of protocol 2026-07-28 that can ask its
    user gets an ``InputRequiredResult`` and sends the call again; its user's answer approves nothing. An older client
    is told in words how to repeat the call. With ``match="content"`` of the guard, the agent just makes the same call
    again.

    A repeated call is recognised only from the same client: the signed-in principal, or without sign-in the same
    connection. Over HTTP with neither, tools that people may have to decide about are refused.

    List it last in ``extensions``, because those after it could change what was checked. Tools that ask for input
    themselves, and the low-level ``Server``, need middleware instead.

    Raises ``UsageError`` for a guard that is none.

    Args:
        guard: The guard. Each client is a run of it, so refusals and denials count per client.
        server: The name under which the guard's patterns list this server; without it, its tools are the agent's own.
        identify: Names the client of a request, instead of the principal of the server's sign-in. Take it from what the
            client cannot choose, such as a header of your proxy; for a server with one user it can be a constant, and
            then calls that were held are found again after a restart.
        media: Names of tools whose images, audio and binary resources may reach the agent; of others they are withheld.
    """

    identifier = "dev.adjudge/gate"

    def __init__(
        self,
        guard: ToolGuard,
        *,
        server: str | None = None,
        identify: IdentifyClient | None = None,
        media: Collection[str] = (),
    ) -> None:
        self._checkpoint = _Checkpoint(guard, server=server, identify=identify, media=media)

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Check a call, run it if it is allowed, and check its result."""
        return await self._checkpoint.serve(_read_request(params), ctx, lambda: call_next(ctx))
