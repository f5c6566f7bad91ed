"""A guard in front of the tools of an MCP server: a call runs only if the guard allows it, and once.

A refused call is answered with a result that the model reads. A call that waits for people is held: a client of
protocol 2026-07-28 is asked to send it again, and an older one is told how to.

Whether a call runs is decided in ``guards/tool_guard/guard.py`` (``ToolGuard``), and how a held one is found again in
``guards/repeated_request.py`` (``find_repeated``).
"""

from __future__ import annotations

import copy
import json
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

from mcp import MCPError
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension
from mcp.server.request_state import authenticated_principal
from mcp_types import INVALID_PARAMS, INVALID_REQUEST, CallToolRequestParams, InputRequiredResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from adjudge.errors import UsageError
from adjudge.guards.tool_guard.call import ToolCall, ToolVerdict, shorten_id
from adjudge.guards.tool_guard.guard import NOT_CHECKED, WITHHELD, ToolGuard
from adjudge.hooks import logger
from adjudge.mcp.elicited_votes import FindPrincipal, VoteDesk, VoteQuestion, can_ask
from adjudge.mcp.results import CALL_META, DescriptionScreen, ResultScreen, dump, refuse

IdentifyClient = Callable[[ServerRequestContext[Any, Any]], str | None]
"""Names the client of a request, from what the transport knows of it; ``None`` if it knows nothing."""

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

_NO_ROUND = "The call was not made: it cannot be continued; make it again."

_NO_INPUT = "The call was not made: the tool asks for input, which this server does not pass on for an approved call."

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
    return shorten_id(name, _LONGEST_NAME)


# ---------------------------------------------------------------- calls of tools that ask for input


_MOST_KEPT = 1_000
"""Allowed calls that wait for input, that are kept in memory."""

_KEPT_SECONDS = 600.0
"""Seconds that an allowed call waits for input; as long as the SDK accepts what it sealed."""


@dataclass(frozen=True, slots=True)
class _Round:
    """An allowed call whose tool asked for input."""

    call: ToolCall
    state: str | None
    """The tool's own ``requestState``. It stays here, so that no client can write it."""
    is_approved: bool
    until: float


class _Rounds:
    """Allowed calls whose tools asked for input, each continued once.

    They are in memory, not in what the client sends back: else it could send the last round twice, and the tool would
    run twice on one approval.
    """

    def __init__(self) -> None:
        self._rounds: OrderedDict[str, _Round] = OrderedDict()

    def keep(self, call: ToolCall, state: str | None, *, is_approved: bool) -> str:
        """Keep a call, and return the state for its client."""
        name = secrets.token_hex(16)
        self._rounds[name] = _Round(call, state, is_approved, time.monotonic() + _KEPT_SECONDS)
        while len(self._rounds) > _MOST_KEPT:
            self._rounds.popitem(last=False)
        return json.dumps({_STATE: {"round": name}})

    def take(self, name: object, run_id: str, tool: str, arguments: Mapping[str, Any]) -> _Round | None:
        """Take out the call that a client continues; ``None`` for any other call, and for the second time."""
        if not isinstance(name, str) or name not in self._rounds:
            return None
        kept = self._rounds[name]
        if kept.call.run_id != run_id:
            return None  # and it stays: another client must not end it
        del self._rounds[name]
        is_same = kept.call.tool == tool and _write_arguments(kept.call.arguments) == _write_arguments(arguments)
        return kept if is_same and time.monotonic() < kept.until else None


def _write_arguments(arguments: Mapping[str, Any] | str) -> str:
    """Write arguments to compare them: for ``==``, 1 and 1.0 and True are one argument, and a tool tells them apart."""
    return json.dumps(arguments, sort_keys=True, default=repr)


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
    seen: str | None = None
    """The digest of what the question showed that the user was asked; ``None`` if it asked for no vote."""
    answer: object = None
    """The answer in the client's form; ``None`` unless its user accepted it."""


def _read_request(params: CallToolRequestParams) -> _Request:
    """Read a call: the one that it repeats, by its state or its metadata, and the vote that came with it."""
    state = _read_state(params.request_state)
    held_id: Any = None if state is None else state.get("call")
    if state is None and params.meta is not None:
        held_id = params.meta.get(CALL_META)
    if held_id is not None and not (isinstance(held_id, str) and _CALL_ID.fullmatch(held_id)):
        held_id = ""
    answer = (params.input_responses or {}).get(_QUESTION)
    is_accepted = getattr(answer, "action", None) == "accept"
    rounds = 0 if state is None else state.get("rounds")
    seen = None if state is None else state.get("seen")
    return _Request(
        name=params.name,
        arguments={} if params.arguments is None else params.arguments,
        is_task=params.task is not None,
        held_id=held_id,
        rounds=rounds if isinstance(rounds, int) else _MOST_ROUNDS,
        is_declined=state is not None and answer is not None and not is_accepted,
        seen=seen if isinstance(seen, str) else None,
        # A client may send what was filled in so far along with "decline": it is no vote.
        answer=getattr(answer, "content", None) if is_accepted else None,
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
        self,
        guard: ToolGuard,
        *,
        server: str | None,
        identify: IdentifyClient | None,
        media: Collection[str],
        principal: FindPrincipal | None,
        rounds: _Rounds | None = None,
    ) -> None:
        self._results = ResultScreen(guard, media)
        self._votes = VoteDesk(principal=principal)
        self.guard = guard
        self.server = server
        self.rounds = rounds
        self._clients = _Clients(identify)

    def find_client(self, ctx: ServerRequestContext[Any, Any]) -> _Client | None:
        """Find the client of a request; ``None`` if the program's function raised."""
        try:
            return self._clients.find(ctx)
        except Exception as error:  # noqa: BLE001 - the program's own function
            logger.error("the client of an MCP request could not be identified: %s", type(error).__name__)
            return None

    async def serve(
        self,
        request: _Request,
        ctx: ServerRequestContext[Any, Any],
        run: Callable[[], Awaitable[HandlerResult]],
    ) -> HandlerResult:
        """Answer a request: with the tool's result if the call is allowed, and otherwise with a refusal or a hold."""
        if request.is_task:
            # Its result would be fetched by another method, which nobody checks.
            return refuse(_NO_TASK)
        client = self.find_client(ctx)
        if client is None:
            return refuse(NOT_CHECKED)
        if not client.is_known and (request.held_id is not None or self.guard.can_hold(request.name, self.server)):
            logger.warning(
                "a call of %r was refused: it may have to wait for people, and over HTTP without sign-in or session no "
                "later request can be told to be the same client's; add sign-in, or give identify=",
                request.name[:80],
            )
            return refuse(_NO_CLIENT)
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
        verdict, question = await self._let_vote(verdict, call, request, ctx)
        if verdict:
            is_approved = verdict.decision is not None and verdict.decision.approval_id is not None
            return await self.run(call, request.arguments, run, is_approved=is_approved)
        if verdict.kind == "pending":
            return self._hold(verdict, call, request, ctx, question)
        return refuse(verdict.message)

    async def _let_vote(
        self, verdict: ToolVerdict, call: ToolCall, request: _Request, ctx: ServerRequestContext[Any, Any]
    ) -> tuple[ToolVerdict, VoteQuestion | None]:
        """Let the client's user decide a held call, if that person may; return what came of it, or what to ask."""
        approvals, approval_id = self.guard.find_approvals(request.name, self.server), verdict.approval_id
        if verdict.kind != "pending" or approval_id is None or approvals is None:
            return verdict, None
        question = await self._votes.ask(ctx, approvals, approval_id)
        if question is None:
            return verdict, None
        # The answer to this call asks. Only the request that brings the answer back can vote: its sign-in is known.
        if request.seen is None or not await self._votes.take(
            ctx, approvals, approval_id, seen=request.seen, answer=request.answer
        ):
            return verdict, question
        return await self.guard.resume(call), None

    def _hold(
        self,
        verdict: ToolVerdict,
        call: ToolCall,
        request: _Request,
        ctx: ServerRequestContext[Any, Any],
        vote: VoteQuestion | None,
    ) -> HandlerResult:
        """Ask the client to send the call again, by its protocol where it can, and otherwise in words."""
        if request.rounds < _MOST_ROUNDS and not request.is_declined and can_ask(ctx):
            text = f"{verdict.message} {_LOOK_AGAIN}" if vote is None else vote.message
            form = _FORM if vote is None else dict(vote.form)
            question = {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": text, "requestedSchema": form},
            }
            seen = {} if vote is None else {"seen": vote.seen}
            state = {_STATE: {"call": call.call_id, "rounds": request.rounds + 1, **seen}}
            # Never by the state alone: the client would send the call ten times within two seconds, and give up.
            return InputRequiredResult.model_validate(
                {"inputRequests": {_QUESTION: question}, "requestState": json.dumps(state)}
            )
        if self.guard.match == "content":
            return refuse(verdict.message)
        return refuse(
            f'{verdict.message} To repeat it once it is approved, send it with "{CALL_META}" of this result in _meta.',
            {CALL_META: call.call_id},
        )

    async def run(
        self,
        call: ToolCall,
        arguments: Mapping[str, Any],
        run: Callable[[], Awaitable[HandlerResult]],
        *,
        is_approved: bool,
    ) -> HandlerResult:
        """Run an allowed call, and return what the agent may read of its result."""
        checked = _write_arguments(arguments)
        try:
            result = await run()
        except Exception as error:
            await self._results.screen_error(call, error)
            raise
        await self.guard.record_return(call)
        if _write_arguments(arguments) != checked:
            logger.error("the arguments of %r were changed after the check; list the gate last", call.tool[:80])
            return refuse(WITHHELD)
        return await self._screen(call, result, is_approved=is_approved)

    async def _screen(self, call: ToolCall, result: HandlerResult, *, is_approved: bool) -> HandlerResult:
        """Return a result if the agent may read it, and otherwise that it was withheld."""
        dumped = dump(result)
        asks_for_input = dumped.get("resultType") == "input_required"
        if asks_for_input and is_approved and self.rounds is None:
            # The approval is used, and the round that brings the input would be another call.
            logger.error("tool %r asks for input: use GateMiddleware for servers with such tools", call.tool[:80])
            return refuse(_NO_INPUT)
        sent = await self._results.screen(call, dumped)
        if sent is None:
            return refuse(WITHHELD)
        if asks_for_input and self.rounds is not None:
            kept = replace(call, arguments=copy.deepcopy(call.arguments))
            state = self.rounds.keep(kept, dumped.get("requestState"), is_approved=is_approved)
            return {**sent, "requestState": state}
        return sent


# ---------------------------------------------------------------- the extension


class GateExtension(Extension):
    """Check every call of a server's tools with a guard: ``MCPServer(..., extensions=[GateExtension(guard)])``.

    A call runs once if the guard allows it. A refused call is answered with an error result that the model reads. If
    people have to decide, the call is held under a random id of ours. A client of protocol 2026-07-28 that can ask its
    user gets an ``InputRequiredResult`` and sends the call again; its user's answer approves nothing, unless
    ``principal`` knows that user. An older client is told in words how to repeat the call. With ``match="content"`` of
    the guard, the agent just makes the same call again.

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
        principal: Names the person who signed in to send a request over HTTP, as the gates' ``approvers`` do. Where
            that person is an approver of a held call, the form of a client of protocol 2026-07-28 asks for their vote,
            and it counts if the token of the request has the claim ``auth_time``: a token without it may be a
            program's. An agent with the person's own token can answer the form all the same. Without ``principal`` no
            answer in a form counts.
    """

    identifier = "dev.adjudge/gate"

    def __init__(
        self,
        guard: ToolGuard,
        *,
        server: str | None = None,
        identify: IdentifyClient | None = None,
        media: Collection[str] = (),
        principal: FindPrincipal | None = None,
    ) -> None:
        self._checkpoint = _Checkpoint(guard, server=server, identify=identify, media=media, principal=principal)

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: ServerRequestContext[Any, Any], call_next: CallNext
    ) -> HandlerResult:
        """Check a call, run it if it is allowed, and check its result."""
        return await self._checkpoint.serve(_read_request(params), ctx, lambda: call_next(ctx))


# ---------------------------------------------------------------- the middleware


class GateMiddleware:
    """Check all that a server's tools and prompts do: ``MCPServer(..., middleware=[GateMiddleware(guard)])``.

    For the low-level ``Server`` as well (``server.middleware.append``). Its calls are checked as by ``GateExtension``,
    which it replaces: use one of them. Beyond that,

    - a tool may ask for input itself: the later rounds of an allowed call are part of it, in the same process;
    - the guard's ``prompts`` checks what ``prompts/get`` and ``resources/read`` return;
    - the guard's ``prompts`` checks how ``tools/list`` describes each tool, once for each wording. A tool that fails is
      left out of the list.

    The SDK calls its middleware provisional. List it last, because middleware after it could change what was checked.
    The arguments are those of ``GateExtension``.
    """

    def __init__(
        self,
        guard: ToolGuard,
        *,
        server: str | None = None,
        identify: IdentifyClient | None = None,
        media: Collection[str] = (),
        principal: FindPrincipal | None = None,
    ) -> None:
        self._rounds = _Rounds()
        self._checkpoint = _Checkpoint(
            guard, server=server, identify=identify, media=media, principal=principal, rounds=self._rounds
        )
        self._descriptions = DescriptionScreen(guard)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request or pass it on."""
        if ctx.method == "tools/call":
            return _finish(await self._call_tool(ctx, call_next), ctx)
        if ctx.method == "tools/list":
            return await self._list_tools(ctx, call_next)
        if ctx.method in {"prompts/get", "resources/read"}:
            return await self._read_text(ctx, call_next)
        return await call_next(ctx)

    async def _call_tool(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Check a call before its tool runs, or go on with a tool that has asked the client something."""
        raw = dict(ctx.params or {})
        try:
            params = CallToolRequestParams.model_validate(raw, by_name=False)
        except ValidationError:
            raise MCPError(INVALID_PARAMS, "Invalid request parameters") from None
        state = _read_state(params.request_state)
        if params.request_state is not None and state is None:
            # The states of tools are kept here, so this one is of another process or made up.
            raise MCPError(INVALID_PARAMS, "Invalid or expired requestState")

        def run(inner: str | None) -> Callable[[], Awaitable[HandlerResult]]:
            return lambda: call_next(replace(ctx, params=_take_ours_away(raw, inner)))

        # The object that the tool is handed, so that a change of it is seen; a model holds a copy.
        arguments: Mapping[str, Any] = raw.get("arguments") or {}
        if state is None or "round" not in state:
            return await self._checkpoint.serve(replace(_read_request(params), arguments=arguments), ctx, run(None))
        client = self._checkpoint.find_client(ctx)
        kept = None
        if client is not None and params.task is None:
            kept = self._rounds.take(state["round"], client.run_id, params.name, arguments)
        if kept is None:
            return refuse(_NO_ROUND)
        return await self._checkpoint.run(kept.call, arguments, run(kept.state), is_approved=kept.is_approved)

    async def _list_tools(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Leave out the tools whose descriptions may not reach the agent."""
        dumped = dump(await call_next(ctx))
        return {**dumped, "tools": await self._descriptions.select(dumped.get("tools", []))}

    async def _read_text(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Return a prompt or a resource if it may reach the agent. Raises ``MCPError`` where it may not."""
        client = self._checkpoint.find_client(ctx)
        if client is None:
            raise MCPError(INVALID_REQUEST, WITHHELD)
        result = await call_next(ctx)
        text = json.dumps(dump(result), ensure_ascii=False)
        verdict = await self._checkpoint.guard.check_prompt(text, run_id=client.run_id)
        if not verdict:
            raise MCPError(INVALID_REQUEST, WITHHELD)
        return result


def _take_ours_away(raw: Mapping[str, Any], inner: str | None) -> dict[str, Any]:
    """Return the parameters as the tool is to see them: with its own state, and the answers to its own questions."""
    params = {name: value for name, value in raw.items() if name not in {"requestState", "inputResponses"}}
    answers = raw.get("inputResponses")
    own = (
        {name: answer for name, answer in answers.items() if name != _QUESTION} if isinstance(answers, Mapping) else {}
    )
    params |= {"inputResponses": own} if own else {}
    return params if inner is None else {**params, "requestState": inner}


def _finish(result: HandlerResult, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """Return a result as this protocol sends it: nothing behind middleware does."""
    dumped = dump(result)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        dumped.pop("resultType", None)
    return dumped
