"""A guard in front of the tools of an MCP server: an extension and a middleware that check every call.

A call runs only if the guard allows it, and once. A refused call is answered with a result that the model reads. A call
that waits for people is held: a client of protocol 2026-07-28 is asked to send it again, and an older one is told how.

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
from adjudge.mcp.result_screens import CALL_META, DescriptionScreen, ResultScreen, dump, refuse

IdentifyClient = Callable[[ServerRequestContext[Any, Any]], str | None]
"""Names the client of a request, from what the transport knows of it; ``None`` if it knows nothing."""

_STATE_MEMBER = "dev.adjudge/call"
"""Our member of ``requestState``: it names a held call, or the round of a call whose tool asked for input."""

_QUESTION_NAME = "adjudge"
"""The name of our question among those that a client is asked."""

_MOST_REPEATS = 3
"""The most times that a client is asked to send a held call again. The SDK's client raises an exception after ten."""

_CALL_ID = re.compile(r"[0-9a-f]{32}")

_LONGEST_NAME = 120
"""The most characters of a client's name in the id of its run; a longer name is digested."""

_NO_TASK = "The call was not made: calls as tasks are not allowed here."

_NO_CLIENT = "The call was not made: a person may have to see it, and this server cannot tell who sends it."

_NO_ROUND = "The call was not made: it cannot be continued; make it again."

_NO_INPUT = "The call was not made: the tool asks for input, which this server does not pass on for an approved call."

_LOOK_AGAIN = "Accept to look whether it was decided. Decline to go on without it; nothing is approved by this answer."

_EMPTY_FORM: dict[str, Any] = {"type": "object", "properties": {}}
"""A form without fields: its answer is no vote, because the agent may give it."""


# ---------------------------------------------------------------- who calls


@dataclass(frozen=True, slots=True)
class _CallingClient:
    """The client of a request."""

    run_id: str
    """The id of the agent's run that the client counts as."""
    is_known: bool = True
    """False if later requests of the client cannot be recognised, so that no call can be held for it."""


class _ClientFinder:
    """Finds out which client sends a request: by the name that the program or the sign-in gives, or by the connection.

    An object's ``id()`` is not used, because the next connection may get the same one. Nor is a name that the client
    gives itself.
    """

    def __init__(self, identify: IdentifyClient | None) -> None:
        self._identify = authenticated_principal if identify is None else identify
        self._server_id = secrets.token_hex(16)
        self._ids_by_connection: WeakKeyDictionary[Any, str] = WeakKeyDictionary()

    def find(self, ctx: ServerRequestContext[Any, Any]) -> _CallingClient:
        """Find the client of a request; raises what the program's function raises."""
        name = self._identify(ctx)
        if name is not None:
            return _CallingClient(f"client:{_read_client_name(name)}")
        connection = getattr(ctx.session, "_connection", None)
        has_channel = bool(getattr(connection, "has_standalone_channel", False))
        # Over HTTP, only a connection with a session of the server outlives the request.
        is_lasting = ctx.request is None or getattr(connection, "session_id", None) is not None
        if connection is not None and has_channel and is_lasting:
            session_id = self._ids_by_connection.setdefault(connection.outbound, secrets.token_hex(16))
            return _CallingClient(f"session:{session_id}")
        if connection is not None and ctx.request is None:  # a client in this process
            return _CallingClient(f"session:{self._server_id}")
        return _CallingClient(f"anonymous:{self._server_id}", is_known=False)


def _read_client_name(name: object) -> str:
    """Return the name that ``identify`` gives a client, digested if it is long; raise ``UsageError`` for no name."""
    if not isinstance(name, str) or not name.strip():
        raise UsageError(f"identify must return the client's name or None, got {name!r}", argument="identify")
    return shorten_id(name, _LONGEST_NAME)


# ---------------------------------------------------------------- calls of tools that ask for input


_MOST_KEPT = 1_000
"""The most allowed calls waiting for input that are kept in memory."""

_KEPT_SECONDS = 600.0
"""Seconds that an allowed call waits for input: as long as the SDK accepts a ``requestState`` that it sealed."""


@dataclass(frozen=True, slots=True)
class _InputRound:
    """An allowed call whose tool asked for input, and that its client may continue once."""

    call: ToolCall
    state: str | None
    """The tool's own ``requestState``. It is kept here, so that no client can change it."""
    is_approved: bool
    """True if people approved the call."""
    deadline: float
    """The time of ``time.monotonic`` until which the call can be continued."""


class _InputRounds:
    """Allowed calls whose tools asked for input, by an id; each can be continued once.

    They are kept in memory and not sent to the client: otherwise a client could send the last round twice, and the tool
    would run twice on one approval.
    """

    def __init__(self) -> None:
        self._rounds: OrderedDict[str, _InputRound] = OrderedDict()

    def keep(self, call: ToolCall, state: str | None, *, is_approved: bool) -> str:
        """Keep a call, and return the ``requestState`` by which its client continues it."""
        round_id = secrets.token_hex(16)
        self._rounds[round_id] = _InputRound(call, state, is_approved, time.monotonic() + _KEPT_SECONDS)
        while len(self._rounds) > _MOST_KEPT:
            self._rounds.popitem(last=False)
        return json.dumps({_STATE_MEMBER: {"round": round_id}})

    def take(self, round_id: object, run_id: str, tool: str, arguments: Mapping[str, Any]) -> _InputRound | None:
        """Remove and return the call that a client continues.

        Returns ``None`` if the id is unknown or was used, if it is of another client, if tool or arguments are not the
        same, or if the time is over.
        """
        if not isinstance(round_id, str) or round_id not in self._rounds:
            return None
        kept = self._rounds[round_id]
        if kept.call.run_id != run_id:
            return None  # without removing it, so that another client cannot end it
        del self._rounds[round_id]
        is_same = kept.call.tool == tool and _write_arguments(kept.call.arguments) == _write_arguments(arguments)
        return kept if is_same and time.monotonic() < kept.deadline else None


def _write_arguments(arguments: Mapping[str, Any] | str) -> str:
    """Write arguments as JSON for a comparison in which 1, 1.0 and true are different, as they are for a tool."""
    return json.dumps(arguments, sort_keys=True, default=repr)


# ---------------------------------------------------------------- a call


@dataclass(frozen=True, slots=True, kw_only=True)
class _CallRequest:
    """A client's request to call a tool, read."""

    name: str
    arguments: Mapping[str, Any]
    is_task: bool
    held_id: str | None
    """Our id of the held call that this request repeats; ``None`` for a new call, empty for an invalid id."""
    repeats: int = 0
    """The number of times that the client was asked to send the call again."""
    is_declined: bool = False
    """True if the client's user declined our question."""
    seen: str | None = None
    """The digest of what our question for a vote showed; ``None`` if no vote was asked for."""
    answer: object = None
    """The content of the client's form; ``None`` unless the user accepted the form."""


def _read_request(params: CallToolRequestParams) -> _CallRequest:
    """Read a request to call a tool, with the id of the held call that it repeats, and the answer in its form."""
    state = _read_state(params.request_state)
    held_id: Any = None if state is None else state.get("call")
    if state is None and params.meta is not None:
        held_id = params.meta.get(CALL_META)
    if held_id is not None and not (isinstance(held_id, str) and _CALL_ID.fullmatch(held_id)):
        held_id = ""
    answer = (params.input_responses or {}).get(_QUESTION_NAME)
    is_accepted = getattr(answer, "action", None) == "accept"
    repeats = 0 if state is None else state.get("rounds")
    seen = None if state is None else state.get("seen")
    return _CallRequest(
        name=params.name,
        arguments={} if params.arguments is None else params.arguments,
        is_task=params.task is not None,
        held_id=held_id,
        repeats=repeats if isinstance(repeats, int) else _MOST_REPEATS,
        is_declined=state is not None and answer is not None and not is_accepted,
        seen=seen if isinstance(seen, str) else None,
        # A client may send the form's content with "decline" too, and that is no vote.
        answer=getattr(answer, "content", None) if is_accepted else None,
    )


def _read_state(text: str | None) -> Mapping[str, Any] | None:
    """Read our member of ``requestState``; ``None`` if it has none, since it is the tool's own or missing."""
    if text is None or _STATE_MEMBER not in text:
        return None
    try:
        state = json.loads(text)
    except ValueError:
        return None
    member = state.get(_STATE_MEMBER) if isinstance(state, dict) else None
    return member if isinstance(member, dict) else None


class _Checkpoint:
    """Checks calls and results with a guard, and makes the answers to clients."""

    def __init__(
        self,
        guard: ToolGuard,
        *,
        server: str | None,
        identify: IdentifyClient | None,
        media: Collection[str],
        principal: FindPrincipal | None,
        rounds: _InputRounds | None = None,
    ) -> None:
        self._results = ResultScreen(guard, media)
        self._votes = VoteDesk(principal=principal)
        self.guard = guard
        self.server = server
        self.rounds = rounds
        self._clients = _ClientFinder(identify)

    def find_client(self, ctx: ServerRequestContext[Any, Any]) -> _CallingClient | None:
        """Find the client of a request; ``None`` if the program's function raised."""
        try:
            return self._clients.find(ctx)
        except Exception as error:  # noqa: BLE001 - the program's own function
            logger.error("the client of an MCP request could not be identified: %s", type(error).__name__)
            return None

    async def serve(
        self,
        request: _CallRequest,
        ctx: ServerRequestContext[Any, Any],
        run: Callable[[], Awaitable[HandlerResult]],
    ) -> HandlerResult:
        """Answer a request: with the tool's result (``run``) if the call is allowed, or with a refusal.

        If the call waits for people, the client is asked to send it again.
        """
        if request.is_task:
            # The result of a task is fetched by another method, which is not checked.
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
            # A random id of ours: by an id that clients choose, one could continue the held call of another.
            call_id=request.held_id or secrets.token_hex(16),
            run_id=client.run_id,
            server=self.server,
        )
        is_new = request.held_id is None
        verdict = await (self.guard.check(call) if is_new else self.guard.resume(call))
        verdict, question = await self._offer_vote(verdict, call, request, ctx)
        if verdict:
            is_approved = verdict.decision is not None and verdict.decision.approval_id is not None
            return await self.run(call, request.arguments, run, is_approved=is_approved)
        if verdict.kind == "pending":
            return self._answer_held(verdict, call, request, ctx, question)
        return refuse(verdict.message)

    async def _offer_vote(
        self, verdict: ToolVerdict, call: ToolCall, request: _CallRequest, ctx: ServerRequestContext[Any, Any]
    ) -> tuple[ToolVerdict, VoteQuestion | None]:
        """Ask the client's user for a vote on a held call, or record the vote that came with the request.

        Returns the verdict after that, and the question to ask; ``None`` if nothing is to be asked.
        """
        approvals, approval_id = self.guard.find_approvals(request.name, self.server), verdict.approval_id
        if verdict.kind != "pending" or approval_id is None or approvals is None:
            return verdict, None
        question = await self._votes.ask(ctx, approvals, approval_id)
        if question is None:
            return verdict, None
        # Only a request that brings an answer to the question can vote, because its sign-in is known. Otherwise the
        # question is asked.
        if request.seen is None or not await self._votes.take(
            ctx, approvals, approval_id, seen=request.seen, answer=request.answer
        ):
            return verdict, question
        return await self.guard.resume(call), None

    def _answer_held(
        self,
        verdict: ToolVerdict,
        call: ToolCall,
        request: _CallRequest,
        ctx: ServerRequestContext[Any, Any],
        vote_question: VoteQuestion | None,
    ) -> HandlerResult:
        """Ask the client to send a held call again: by its protocol if it has that, or in the refusal's text."""
        if request.repeats < _MOST_REPEATS and not request.is_declined and can_ask(ctx):
            text = f"{verdict.message} {_LOOK_AGAIN}" if vote_question is None else vote_question.message
            form = _EMPTY_FORM if vote_question is None else dict(vote_question.form)
            question = {
                "method": "elicitation/create",
                "params": {"mode": "form", "message": text, "requestedSchema": form},
            }
            seen = {} if vote_question is None else {"seen": vote_question.seen}
            state = {_STATE_MEMBER: {"call": call.call_id, "rounds": request.repeats + 1, **seen}}
            # Always with a question: with the state alone, the client would send the call ten times within two seconds
            # and give up.
            return InputRequiredResult.model_validate(
                {"inputRequests": {_QUESTION_NAME: question}, "requestState": json.dumps(state)}
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
        """Run an allowed call, and return its result if the agent may read it, or that it was withheld."""
        checked_arguments = _write_arguments(arguments)
        try:
            result = await run()
        except Exception as error:
            await self._results.screen_error(call, error)
            raise
        await self.guard.record_return(call)
        if _write_arguments(arguments) != checked_arguments:
            logger.error("the arguments of %r were changed after the check; list the gate last", call.tool[:80])
            return refuse(WITHHELD)
        return await self._screen_result(call, result, is_approved=is_approved)

    async def _screen_result(self, call: ToolCall, result: HandlerResult, *, is_approved: bool) -> HandlerResult:
        """Return a result if the agent may read it, and otherwise that it was withheld.

        If the tool asks for input, the call is kept, so that its client can continue it.
        """
        dumped = dump(result)
        asks_for_input = dumped.get("resultType") == "input_required"
        if asks_for_input and is_approved and self.rounds is None:
            # Without ``rounds``, the request with the input would be a new call, and the approval is used already.
            logger.error("tool %r asks for input: use GateMiddleware for servers with such tools", call.tool[:80])
            return refuse(_NO_INPUT)
        readable_result = await self._results.screen(call, dumped)
        if readable_result is None:
            return refuse(WITHHELD)
        if asks_for_input and self.rounds is not None:
            call_copy = replace(call, arguments=copy.deepcopy(call.arguments))
            state = self.rounds.keep(call_copy, dumped.get("requestState"), is_approved=is_approved)
            return {**readable_result, "requestState": state}
        return readable_result


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
        self._rounds = _InputRounds()
        self._checkpoint = _Checkpoint(
            guard, server=server, identify=identify, media=media, principal=principal, rounds=self._rounds
        )
        self._descriptions = DescriptionScreen(guard)

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request: check calls, lists of tools, prompts and resources, and pass every other request on."""
        if ctx.method == "tools/call":
            return _fit_to_protocol(await self._call_tool(ctx, call_next), ctx)
        if ctx.method == "tools/list":
            return await self._list_tools(ctx, call_next)
        if ctx.method in {"prompts/get", "resources/read"}:
            return await self._read_text(ctx, call_next)
        return await call_next(ctx)

    async def _call_tool(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Check a call and run it, or continue an allowed call whose tool asked the client for input."""
        raw = dict(ctx.params or {})
        try:
            params = CallToolRequestParams.model_validate(raw, by_name=False)
        except ValidationError:
            raise MCPError(INVALID_PARAMS, "Invalid request parameters") from None
        state = _read_state(params.request_state)
        if params.request_state is not None and state is None:
            # Clients never get a tool's own state from here, so this one is from another process or made up.
            raise MCPError(INVALID_PARAMS, "Invalid or expired requestState")

        def run(tool_state: str | None) -> Callable[[], Awaitable[HandlerResult]]:
            return lambda: call_next(replace(ctx, params=_make_tool_params(raw, tool_state)))

        # The object that the tool gets, so that a change of it is noticed; the model ``params`` has a copy.
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
        """Return the server's list of tools without those whose descriptions may not reach the agent."""
        dumped = dump(await call_next(ctx))
        return {**dumped, "tools": await self._descriptions.select(dumped.get("tools", []))}

    async def _read_text(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Return a prompt or a resource if it may reach the agent. Raises ``MCPError`` if it may not."""
        client = self._checkpoint.find_client(ctx)
        if client is None:
            raise MCPError(INVALID_REQUEST, WITHHELD)
        result = await call_next(ctx)
        text = json.dumps(dump(result), ensure_ascii=False)
        verdict = await self._checkpoint.guard.check_prompt(text, run_id=client.run_id)
        if not verdict:
            raise MCPError(INVALID_REQUEST, WITHHELD)
        return result


def _make_tool_params(raw: Mapping[str, Any], tool_state: str | None) -> dict[str, Any]:
    """Make the parameters that the tool sees: with its own state, and the answers to its own questions only."""
    params = {name: value for name, value in raw.items() if name not in {"requestState", "inputResponses"}}
    answers = raw.get("inputResponses")
    tool_answers = (
        {name: answer for name, answer in answers.items() if name != _QUESTION_NAME}
        if isinstance(answers, Mapping)
        else {}
    )
    params |= {"inputResponses": tool_answers} if tool_answers else {}
    return params if tool_state is None else {**params, "requestState": tool_state}


def _fit_to_protocol(result: HandlerResult, ctx: ServerRequestContext[Any, Any]) -> dict[str, Any]:
    """Return a result as the client's protocol sends it; the SDK does not convert the results of a middleware.

    Older protocols have no ``resultType``.
    """
    dumped = dump(result)
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        dumped.pop("resultType", None)
    return dumped
