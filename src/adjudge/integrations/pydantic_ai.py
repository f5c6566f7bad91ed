"""A guard in front of every tool call of a pydantic-ai agent: ``Agent(..., capabilities=[GateCapability(guard)])``.

A call that waits for people is deferred, and the run ends with ``DeferredToolRequests``. pydantic-ai runs its hooks
again when it goes on, so the call is looked up in the guard each time; what the program approves is not read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import fields, is_dataclass
from hashlib import sha256
from typing import Any

from adjudge.errors import UsageError
from adjudge.guards.tool_guard.call import ToolCall, shorten_id
from adjudge.guards.tool_guard.guard import NOT_CHECKED, WITHHELD, ToolGuard
from adjudge.hooks import logger

try:
    from pydantic import BaseModel, Secret, SecretBytes, SecretStr
    from pydantic_ai import RunContext
    from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
    from pydantic_ai.exceptions import ApprovalRequired, ModelRetry, ToolFailed, ToolFailedError, ToolRetryError
    from pydantic_ai.messages import ToolCallPart, ToolReturn, is_multi_modal_content
    from pydantic_ai.models import ModelRequestContext
    from pydantic_ai.output import OutputContext
    from pydantic_ai.tools import DeferredToolRequests, DeferredToolResults, ToolDefinition
    from pydantic_core import to_json, to_jsonable_python
except ModuleNotFoundError as error:
    # Version 1 of pydantic-ai has no such capabilities.
    if error.name not in {"pydantic_ai", "pydantic_ai.capabilities"}:
        raise
    message = (
        "adjudge.integrations.pydantic_ai needs the package pydantic-ai-slim, 2.0 or later; to have it, pip install "
        "pydantic-ai-slim"
    )
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["GateCapability", "resume_held"]

_METADATA_KEY = "adjudge"
"""The key in a deferred call's metadata that marks a call which the guard holds."""

_HARMLESS = frozenset({"tool_search"})
"""Tools of providers that do nothing but look through the agent's own tools."""


_NO_WAITING = "The call was not made: a person may have to see it, and an output cannot wait."


class _Refusal(ToolFailed):
    """A refusal by the guard: the model reads the guard's sentence in place of a result."""


class GateCapability(AbstractCapability[Any]):
    """Check every call of an agent's tools with a guard, whatever toolset they are of.

    An allowed call runs with the arguments that were checked: those that pydantic-ai has validated, as JSON, with what
    ``SecretStr`` and ``Field(exclude=True)`` hide elsewhere. The model reads why a call was refused as the failure of
    its tool. A call that people have to decide about is deferred, so the agent's ``output_type`` needs
    ``DeferredToolRequests``. Go on with ``resume_held(requests)`` once somebody has decided: the guard reads the
    approval, and neither an approval nor arguments that the program gives to pydantic-ai.

    A function in ``output_type`` is checked by its own name, as a tool is, before it is called. It cannot be deferred:
    one about which people may have to decide is refused, as is one that the guard does not name. The model is asked to
    write another output, as often as the agent's ``retries`` allow.

    The conversation is the run of the guard: ``conversation_id``, which pydantic-ai finds in the message history.

    Raises ``UsageError`` for a guard that is none; the agent raises it when its model is given a tool of the provider's
    own that ``hosted`` does not name.

    Args:
        guard: The guard. Its ``results`` checks what tools return, and what their errors say; its ``answers`` and
            ``prompts`` are not asked here.
        agent: The agent's name, where the guard's tools are allowed to some agents only.
        media: Names of tools whose images and other parts that are no text may reach the agent. Of others they are
            withheld where the guard has ``results``, because no judge here sees them.
        hosted: Tools that the provider runs itself, such as ``web_search``, by kind. No guard sees their calls.
    """

    def __init__(
        self,
        guard: ToolGuard,
        *,
        agent: str | None = None,
        media: Collection[str] = (),
        hosted: Collection[str] = (),
    ) -> None:
        if not isinstance(guard, ToolGuard):
            raise UsageError(f"guard must be a ToolGuard, got {type(guard).__name__}", argument="guard")
        for name, names in (("media", media), ("hosted", hosted)):
            if isinstance(names, str):  # each of its letters would be a name
                raise UsageError(f"{name} must be a list of names, got the text {names!r}", argument=name)
        self._guard = guard
        self._agent = agent
        self._media = frozenset(media)
        self._hosted = frozenset(hosted)

    def get_ordering(self) -> CapabilityOrdering:
        """Put this capability after all others, because a later one could change a call after its check."""
        return CapabilityOrdering(position="innermost")

    # ---------------------------------------------------------------- calls

    async def before_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002 - pydantic-ai's name of it, here and below
        args: dict[str, Any],
    ) -> dict[str, Any]:
        """Let a call go on if it is allowed; otherwise refuse or defer it."""
        guard_call = self._read_call(ctx, call, args)
        if guard_call is None:
            raise _Refusal(NOT_CHECKED)
        verdict = await self._guard.check(guard_call)
        if verdict:
            return args
        if verdict.kind == "pending":
            held = {"approval": verdict.approval_id, "message": verdict.message}
            raise ApprovalRequired(metadata={_METADATA_KEY: held})
        raise _Refusal(verdict.message)

    def _read_call(self, ctx: RunContext[Any], call: ToolCallPart, args: Mapping[str, Any]) -> ToolCall | None:
        """Convert a call of pydantic-ai to one for the guard; ``None`` for a call that cannot be checked."""
        try:
            return ToolCall(
                tool=call.tool_name,
                arguments=_write_arguments(args),
                call_id=shorten_id(call.tool_call_id),
                # Without a conversation an approval would be good for every other one that has none.
                run_id=shorten_id(f"conversation:{ctx.conversation_id}") if ctx.conversation_id else "",
                agent=self._agent,
            )
        except Exception as error:  # noqa: BLE001 - what cannot be read is not called
            logger.error("a call of %r cannot be read: %s", call.tool_name[:80], type(error).__name__)
            return None

    async def before_output_process(self, ctx: RunContext[Any], *, output_context: OutputContext, output: Any) -> Any:
        """Let an output function be called with what the model wrote, if the guard allows that call."""
        if not output_context.has_function:
            return output
        # Of several functions in one output pydantic-ai does not say which is called: no guard names that one.
        name = output_context.function_name or ""
        if self._guard.can_hold(name):
            logger.warning(
                "a call of the output function %r was refused, about which people decide; make it a tool", name[:80]
            )
            raise ModelRetry(_NO_WAITING)
        arguments = output if isinstance(output, Mapping) else {"output": output}
        guard_call = self._read_call(ctx, ToolCallPart(name), arguments)
        if guard_call is None:
            raise ModelRetry(NOT_CHECKED)
        verdict = await self._guard.check(guard_call)
        if not verdict:
            raise ModelRetry(verdict.message)
        return output

    # ---------------------------------------------------------------- results

    async def after_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002
        args: dict[str, Any],
        result: Any,
    ) -> Any:
        """Return the result if the agent may read it; otherwise raise a refusal."""
        guard_call = self._read_call(ctx, call, args)
        if guard_call is not None:
            await self._guard.record_return(guard_call)
        has_unseen_media = self._guard.results is not None and call.tool_name not in self._media and _has_media(result)
        if has_unseen_media or not await self._may_read(ctx, call, args, _describe_result(result)):
            raise _Refusal(WITHHELD)
        return result

    async def wrap_tool_execute(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002
        args: dict[str, Any],
        handler: Callable[[dict[str, Any]], Awaitable[Any]],
    ) -> Any:
        """Run a call, and check the message of an error that the model would read."""
        try:
            return await handler(args)
        except _Refusal:
            raise
        except (ModelRetry, ToolFailed, ToolFailedError, ToolRetryError) as error:
            # The model reads the messages of these errors, and pydantic-ai does not call after_tool_execute for them.
            if not await self._may_read(ctx, call, args, {"error": str(error)}):
                raise _Refusal(WITHHELD) from None
            raise

    async def on_tool_execute_error(
        self,
        ctx: RunContext[Any],
        *,
        call: ToolCallPart,
        tool_def: ToolDefinition,  # noqa: ARG002
        args: dict[str, Any],
        error: Exception,
    ) -> Any:
        """Raise another error if the agent may not read what this one says: other capabilities may make it a result."""
        if not await self._may_read(ctx, call, args, {"error": str(error)}):
            raise RuntimeError(WITHHELD) from None
        raise error

    async def _may_read(self, ctx: RunContext[Any], call: ToolCallPart, args: Mapping[str, Any], shown: Any) -> bool:
        """Return whether the agent may read ``shown``, the result of a call as plain data."""
        guard_call = self._read_call(ctx, call, args)
        return guard_call is not None and bool(await self._guard.check_result(guard_call, shown))

    # ---------------------------------------------------------------- what no guard sees

    async def before_model_request(
        self,
        ctx: RunContext[Any],  # noqa: ARG002
        request_context: ModelRequestContext,
    ) -> ModelRequestContext:
        """Let a request go on, unless it gives the model tools that no guard sees."""
        for tool in request_context.model_request_parameters.native_tools:
            if tool.kind not in self._hosted | _HARMLESS:
                raise UsageError(
                    f"the provider runs the tool {tool.kind!r} itself, where no guard sees its calls; take it away, or "
                    "name it in hosted",
                    argument="hosted",
                )
        return request_context


def resume_held(requests: DeferredToolRequests) -> DeferredToolResults:
    """Return what makes pydantic-ai look again at the calls that a guard holds, for ``deferred_tool_results``.

    It approves nothing: each of them is checked again, and one that still waits is deferred again. Calls that were
    deferred by something else are left out; add what you answer for them.

    Args:
        requests: The deferred calls, as the run that ended with them returned them.
    """
    held = [
        call.tool_call_id
        for call in requests.approvals
        if _METADATA_KEY in requests.metadata.get(call.tool_call_id, {})
    ]
    return DeferredToolResults(approvals=dict.fromkeys(held, True))


# ---------------------------------------------------------------- arguments as they are judged


def _write_arguments(value: Any) -> Any:
    """Write validated arguments as JSON, complete with all that the tool gets.

    pydantic's own JSON leaves out hidden values, such as ``SecretStr`` and ``Field(exclude=True)``. Nobody would see
    them, and an approval would count for any other value of them.
    """
    if isinstance(value, BaseModel):
        return _write_arguments({**value.__dict__, **(value.model_extra or {})})
    if is_dataclass(value) and not isinstance(value, type):
        return _write_arguments({field.name: getattr(value, field.name) for field in fields(value)})
    if isinstance(value, Secret | SecretStr | SecretBytes):
        return _write_arguments(value.get_secret_value())
    if isinstance(value, Mapping):
        return {_write_name(name): _write_arguments(member) for name, member in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_write_arguments(member) for member in value]
    return to_jsonable_python(value)


def _write_name(name: Any) -> str:
    """Write a key of a mapping as pydantic writes it in JSON."""
    [json_key] = to_jsonable_python({name: None})
    return str(json_key)


# ---------------------------------------------------------------- results as they are judged


def _describe_result(value: Any) -> Any:
    """Describe a tool's result as plain data, with all that may reach the agent; media by their digests."""
    if isinstance(value, ToolReturn):
        more = {} if value.content is None else {"content": _describe_result(value.content)}
        return {"return_value": _describe_result(value.return_value), **more}
    if is_multi_modal_content(value):
        return {"type": value.kind, "sha256": sha256(to_json(value, fallback=repr)).hexdigest()}
    if isinstance(value, Mapping):
        return {str(name): _describe_result(member) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_describe_result(member) for member in value]
    return to_jsonable_python(value, fallback=repr)


def _has_media(value: Any) -> bool:
    """Return whether a result has a part that is not text, such as an image."""
    if isinstance(value, ToolReturn):
        return _has_media(value.return_value) or _has_media(value.content)
    members: Sequence[Any] = ()
    if isinstance(value, Mapping):
        members = list(value.values())
    elif isinstance(value, list | tuple):
        members = value
    return is_multi_modal_content(value) or any(map(_has_media, members))
