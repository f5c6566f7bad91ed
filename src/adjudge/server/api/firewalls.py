"""``/v1/firewall``: arguments before they reach a function, and rules before they reach a prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

from fastapi import Depends
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response

from adjudge.guards.firewall.input import InputFirewall
from adjudge.guards.firewall.prompt import PromptFirewall
from adjudge.guards.firewall.verdict import FirewallVerdict, InputVerdict
from adjudge.ledger.judged_content import describe_judged
from adjudge.server.api.endpoint import StrictModel, answer, check_content, explaining_usage, make_router
from adjudge.server.caller import Caller, require
from adjudge.server.idempotency import answer_once
from adjudge.server.state import CurrentState, ServerState

router = make_router("firewalls", judges=True)

MOST_RULES = 10_000

Judging = Annotated[Caller, Depends(require("judge"))]


class InputBody(StrictModel):
    """The arguments of a function, by name."""

    arguments: dict[str, Any]
    tool: str | None = Field(default=None, max_length=200, description="The function, for the record.")
    judge: str | None = None


class PromptBody(StrictModel):
    """The rules that are to reach one prompt, all of them together."""

    rules: list[str] = Field(max_length=MOST_RULES)
    on_unsafe: Literal["drop_batch", "drop_flagged"] = "drop_batch"
    judge: str | None = None


@router.post("/firewall/input")
async def check_input(request: Request, body: InputBody, state: CurrentState, caller: Judging) -> Response:
    """Check whether some arguments may reach a function; ``passed`` says so."""
    check_content(state.settings, {"arguments": body.arguments})
    with explaining_usage():
        firewall = InputFirewall(state.judges.find_judge(body.judge), tool_name=body.tool)
    return await answer_once(
        request,
        state,
        caller,
        _make_check_in_turn(state, caller, lambda: firewall.check(body.arguments), body.arguments),
    )


@router.post("/firewall/prompt")
async def check_prompt(request: Request, body: PromptBody, state: CurrentState, caller: Judging) -> Response:
    """Check which of some rules may reach a prompt; ``allowed`` holds them."""
    check_content(state.settings, {"rules": body.rules})
    with explaining_usage():
        firewall = PromptFirewall(state.judges.find_judge(body.judge), on_unsafe=body.on_unsafe)
    return await answer_once(
        request, state, caller, _make_check_in_turn(state, caller, lambda: firewall.check(body.rules), body.rules)
    )


def _make_check_in_turn(
    state: ServerState,
    caller: Caller,
    check: Callable[[], Awaitable[InputVerdict | FirewallVerdict]],
    content: Mapping[str, Any] | Sequence[str],
) -> Callable[[], Awaitable[Response]]:
    """Make a function that waits for a place in the queue, runs a check, records the judges' result, and answers."""

    async def check_in_turn() -> Response:
        """Run the check when the caller has a place in the queue, record what the judges said, and answer."""
        async with state.queue.enter(caller.identity):
            with explaining_usage():
                verdict = await check()
            if verdict.chain_result is not None:
                await state.ledger.append(verdict.chain_result, **describe_judged(state.ledger, content, {}))
        return answer(verdict.to_dict())

    return check_in_turn
