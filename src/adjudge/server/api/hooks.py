"""``/v1/tools/check``, ``/v1/tools/resume`` and ``/v1/hooks``: whether an agent's call of a tool may be made.

The guard is that of ``[hook]``: no request can name a gate. Whatever goes wrong has another status than 200, and what
is no answer of a guard is not an allowance.

Whether a call may be made is decided in ``guards/tool_guard/guard.py`` (``ToolGuard``), and what a harness is answered
in ``harness/hook_guard.py`` (``HookGuard``).
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from dataclasses import replace
from hashlib import sha256
from typing import Annotated, Any, Literal

from fastapi import Body, Depends, Query
from pydantic import BaseModel, Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.formats.json import check_decimals
from adjudge.formats.text import flatten
from adjudge.guards.approval.request_terms import LONGEST_REASON
from adjudge.guards.tool_guard.call import LONGEST_ID, CallRefusedBecause, ToolCall, ToolVerdict, ToolVerdictKind
from adjudge.guards.tool_guard.run_trust import reopen_stopped_run
from adjudge.harness.events import SOURCE, Harness, RanEvent, read_event_object
from adjudge.ledger.columns import name_owned_run
from adjudge.server.api.endpoint import (
    JudgingRoute,
    StrictModel,
    StrictRequest,
    answer,
    check_content,
    explaining_usage,
    log_troubles,
    make_router,
    wait_until_decided,
)
from adjudge.server.caller import Caller, identify_caller, require
from adjudge.server.hooks import ServerHooks
from adjudge.server.metrics import get_metrics
from adjudge.server.problem import Problem
from adjudge.server.protection import is_unix
from adjudge.server.state import CurrentState, ServerState, get_state

NONCE = "adjudge-nonce"

DIGEST = "adjudge-digest"

CONFIGURATION = "adjudge-configuration"

HOOK_CONFIG = "adjudge-hook-config"
"""The header in which a hook names its own configuration: see ``name_config``."""

UNREAD = "The hook's own configuration is one that this server has not read since it changed."

LONGEST_NONCE = 100

LONGEST_RUN = LONGEST_ID - len("key:54343b4accb3/")
"""Characters of the id of a run, before which the guard has the key that asks."""


class ExactRequest(StrictRequest):
    """A request whose decimal numbers every program reads alike: the server and the tool must see the same number."""

    async def json(self) -> Any:
        """Read the body; raises ``Problem`` (400)."""
        value = await super().json()
        try:
            check_decimals((await self.body()).decode("utf-8"))
        except ValueError as error:
            raise Problem(400, flatten(str(error), 200), code="json") from None
        return value


class HookRoute(JudgingRoute):
    """An address whose answer repeats the nonce and the digest of the request, so that a client knows it as its own."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Compare the digest of the body, and add the headers to the answer."""
        handle = super().get_route_handler()

        async def repeat(request: Request) -> Response:
            """Answer, with the nonce of the request and the digests of its body and the configuration in headers."""
            await identify_caller(request)
            # The nonce is a random text of the client's.
            nonce = request.headers.get(NONCE, "")
            if len(nonce) > LONGEST_NONCE or not (nonce.isascii() and nonce.isprintable()):
                raise Problem(400, f"{NONCE} is at most {LONGEST_NONCE} printable characters", code="nonce")
            strict = ExactRequest(request.scope, request.receive)
            digest = sha256(await strict.body()).hexdigest()
            if request.headers.get(DIGEST, digest) != digest:
                raise Problem(400, f"{DIGEST} is not the SHA-256 of the body that came", code="digest")
            response = await handle(strict)
            hooks = get_state(request).hooks
            headers = {NONCE: nonce, DIGEST: digest, CONFIGURATION: hooks.digest if hooks is not None else ""}
            for name, value in headers.items():
                if value:
                    response.headers[name] = value
            return response

        return repeat


router = make_router("hooks", route=HookRoute)

Asking = Annotated[Caller, Depends(require("hook"))]

Reopening = Annotated[Caller, Depends(require("approve"))]
"""A caller who may reopen runs. It is nobody who is limited to gates, because the calls of a run go to any gate."""


class ToolCallBody(StrictModel):
    """A call of a tool that an agent wants to make."""

    tool: str = Field(min_length=1, max_length=1_000, description="The tool's name, as its MCP server has it.")
    arguments: dict[str, Any] | str = Field(description="The arguments, or the JSON text of them.")
    call_id: str = Field(max_length=LONGEST_ID, description="The name of this call, the same when the run is resumed.")
    run_id: str = Field(
        pattern=r"\S",
        max_length=LONGEST_RUN,
        description="The session, thread or conversation; it is of this key alone.",
    )
    server: str | None = Field(default=None, max_length=1_000, description="The MCP server that has the tool.")
    source: str | None = Field(default=None, max_length=1_000, description="Where that server comes from.")
    cwd: str | None = Field(default=None, max_length=4_096, description="The folder in which the call would run.")
    agent: str | None = Field(default=None, max_length=1_000, description="The agent, or sub-agent, that calls.")
    files: dict[str, str] | None = Field(
        default=None, description="SHA-256 of the files that the call names, by path. This server reads none of them."
    )
    remarks: dict[str, Any] = Field(
        default_factory=dict, description="What the agent says about its call: shown to people, not judged."
    )
    task: Any = Field(default=None, description="What the user asked for; only where it comes from the user.")


class ToolResumeBody(ToolCallBody):
    """A call that waited for people, as it was checked."""

    wait: float = Field(default=0.0, ge=0.0, le=3_600.0, description="Seconds to wait for people, up to the deadline.")


class ToolVerdictReply(BaseModel):
    """The answer about a call."""

    schema_: Literal["adjudge/tool-verdict/1"] = Field(alias="schema")
    allowed: bool = Field(description="Whether the call may be made. Nothing else says so.")
    kind: ToolVerdictKind
    because: CallRefusedBecause | None = Field(description="Why it was not allowed, in a word.")
    message: str = Field(description="The sentence for the agent.")
    approval_id: str | None = Field(description="The request that a pending call waits for; it is not for the agent.")
    decision: str | None = Field(description="The id of the decision in the ledger.")


@router.post("/tools/check", response_model=ToolVerdictReply)
async def check_call(request: Request, body: ToolCallBody, state: CurrentState, caller: Asking) -> Response:
    """Decide whether a call may be made, immediately before it is: only if the member ``allowed`` is true."""
    call, guard = _read_call(body, state, caller), _find_hooks(state).find_guard()
    async with state.queue.enter(caller.identity):
        verdict = await guard.guard.check(call, task=body.task)
        is_allowed = bool(verdict) or await guard.lets_through(call)
    return _answer_verdict(request, state, verdict, is_allowed=is_allowed)


@router.post("/tools/resume", response_model=ToolVerdictReply)
async def resume_call(request: Request, body: ToolResumeBody, state: CurrentState, caller: Asking) -> Response:
    """Answer for a call that waited for people. Nobody is asked, and a call that never waited is refused."""
    call, guard = _read_call(body, state, caller), _find_hooks(state).find_guard()

    async def resume() -> ToolVerdict:
        """Ask the guard about the call when the caller has a place in the queue."""
        async with state.queue.enter(caller.identity):
            return await guard.guard.resume(call, task=body.task)

    verdict = await resume()
    # Half of the deadline is left for what follows: a verdict that comes too late would be recorded, but never arrive.
    wait_seconds = min(body.wait, state.settings.deadline / 2)
    if verdict.approval_id is not None and await wait_until_decided(state, verdict.approval_id, seconds=wait_seconds):
        verdict = await resume()
    is_allowed = bool(verdict) or await guard.lets_through(call)
    return _answer_verdict(request, state, verdict, is_allowed=is_allowed)


class ReopenBody(StrictModel):
    """A run that may go on."""

    run_id: str = Field(
        min_length=1, max_length=LONGEST_ID, description="As the ledger has it: key:PREFIX/RUN for a run of a key."
    )
    reason: str = Field(min_length=1, max_length=LONGEST_REASON, description="Why it may go on.")


@router.post("/tools/reopen")
async def reopen_run(body: ReopenBody, state: CurrentState, caller: Reopening) -> Response:
    """Let a run go on that was stopped after refusals, or after a call that was not checked; its calls are judged anew.

    For approvers: a key of the scope ``hook`` cannot.
    """
    if caller.approver is None:
        raise Problem(403, "this key or account has no approver's name; give it one with --approver", code="forbidden")
    with explaining_usage():
        seq = await reopen_stopped_run(state.ledger, body.run_id, by=caller.approver, reason=body.reason)
    return answer({"schema": "adjudge/run-reopened/1", "run": body.run_id, "by": caller.approver, "seq": seq})


@router.post(
    "/hooks/{harness}",
    response_model=dict[str, Any],
    responses={
        412: {"description": "The hook's own configuration is one that this server has not read since it changed."}
    },
)
async def answer_hook(
    request: Request,
    harness: Harness,
    event: Annotated[dict[str, Any], Body(description="What the harness writes to its hook.")],
    state: CurrentState,
    caller: Asking,
    *,
    left_out: Annotated[
        bool, Query(description="Whether the result of the tool was too long, and is not in the event.")
    ] = False,
    managed: Annotated[
        bool, Query(description="Whether managed hooks alone count, so that nothing changes a call.")
    ] = False,
) -> Response:
    """Answer an event of Claude Code or Codex, in the harness's own form."""
    is_local, hooks = is_unix(request.scope), _find_hooks(state)
    hook = hooks.find_hook(harness, is_local=is_local)
    with explaining_usage():
        hook_event = read_event_object(harness, event, owner=caller.identity)
        if isinstance(hook_event, RanEvent):
            hook_event = replace(hook_event, left_out=left_out)
        async with state.queue.enter(caller.identity):
            # A call that was made already (``RanEvent``) is recorded in any case.
            if is_local and not isinstance(hook_event, RanEvent):
                await hooks.check_config(request.headers.get(HOOK_CONFIG), hook, hook_event)
            reply = await replace(hook, managed=managed).answer(hook_event)
    log_troubles(state)
    return answer(reply)


def _find_hooks(state: ServerState) -> ServerHooks:
    """Return the guards of ``[hook]``; raises ``Problem`` (503) if the configuration has none."""
    if state.hooks is None:
        raise Problem(503, "this server has no [hook] in its adjudge.toml, so no call is allowed", code="hook")
    return state.hooks


def _read_call(body: ToolCallBody, state: ServerState, caller: Caller) -> ToolCall:
    """Make the tool call that a request describes, in a run of the caller's own; raises ``Problem`` for a bad one."""
    check_content(state.settings, {"arguments": body.arguments, "task": body.task, "remarks": body.remarks})
    check_content(state.settings, {"files": body.files})
    if SOURCE in body.remarks:
        raise Problem(422, f"remarks cannot have the member {SOURCE}; it is source", code="usage", argument="remarks")
    with explaining_usage():
        return ToolCall(
            body.tool,
            body.arguments,
            body.call_id,
            # The caller is a part of the run's name: otherwise whoever knows the name of another's run could use up its
            # approvals, or have it stopped.
            name_owned_run(caller.identity, body.run_id),
            server=body.server,
            cwd=body.cwd,
            agent=body.agent,
            files=body.files,
            remarks=body.remarks if body.source is None else {**body.remarks, SOURCE: body.source},
        )


def _answer_verdict(request: Request, state: ServerState, verdict: ToolVerdict, *, is_allowed: bool) -> Response:
    """Count the decision of a verdict, log what could not be recorded, and answer with the verdict.

    ``is_allowed`` says whether the call may be made. It can be true for a refusal, if the guard only observes.
    """
    log_troubles(state)
    if verdict.decision is not None:
        get_metrics(request).count_decision(verdict.decision)
    document = {
        "schema": "adjudge/tool-verdict/1",
        "allowed": is_allowed,
        "kind": verdict.kind,
        "because": verdict.because,
        "message": verdict.message,
        "approval_id": verdict.approval_id,
        "decision": None if verdict.decision is None else verdict.decision.id,
    }
    return answer(document)
