"""A server's review of forged tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from adjudge.client.connection import Connection
from adjudge.client.request_members import read_answer
from adjudge.errors import ServerError, UsageError
from adjudge.formats.json import is_json
from adjudge.sync import make_sync_method
from adjudge.tools.reuse import ToolHistory, digest_reuse
from adjudge.tools.tool import EmergentTool, ToolCandidate, tool_digest
from adjudge.tools.verdict import CreationVerdict, PromotionVerdict, ReuseVerdict, ReviewVerdict, reject_creation

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteEmergentJudge:
    """A review of tools with a judge of a server. Where the server says nothing, nothing is approved."""

    connection: Connection
    """The way to the server."""
    judge: str | None = None
    """The name of the server's judge; ``None`` is its default."""

    async def review_creation(self, candidate: ToolCandidate) -> CreationVerdict:
        """Decide whether a candidate may become a tool, as ``EmergentJudge.review_creation`` does.

        Args:
            candidate: The candidate: its source or steps, its schemas and its tests.
        """
        if not isinstance(candidate, ToolCandidate):
            raise UsageError(
                f"a creation is reviewed of a ToolCandidate, got {type(candidate).__name__}", argument="candidate"
            )
        digest = tool_digest(candidate)
        body = {"candidate": candidate.to_dict(), "judge": self.judge}
        try:
            verdict = await self._post("review", body, CreationVerdict.from_dict)
            self._check_digest(verdict.tool_digest, digest)
        except ServerError as error:
            return reject_creation(str(error), digest)
        return verdict

    review_creation_sync = make_sync_method(review_creation)

    async def review_promotion(self, tool: EmergentTool) -> PromotionVerdict:
        """Decide whether a tool may rise one tier, as ``EmergentJudge.review_promotion`` does.

        Args:
            tool: The tool, with its uses so far.
        """
        if not isinstance(tool, EmergentTool):
            raise UsageError(f"a promotion is reviewed of an EmergentTool, got {type(tool).__name__}", argument="tool")
        try:
            body = {"tool": tool.to_dict(), "judge": self.judge}
            verdict = await self._post("promotion", body, PromotionVerdict.from_dict)
            self._check_digest(verdict.tool_digest, tool.digest)
        except ServerError as error:
            review = ReviewVerdict(approved=False, confidence=0.0, reasoning=str(error), chain_result=None)
            return PromotionVerdict(
                approved=False, confidence=0.0, safety=review, correctness=review, tool_digest=tool.digest
            )
        return verdict

    review_promotion_sync = make_sync_method(review_promotion)

    async def validate_reuse(
        self,
        tool_id: str,
        output: object,
        schema: object,
        *,
        history: ToolHistory | None = None,
        strict_properties: bool = False,
    ) -> ReuseVerdict:
        """Check whether an output fits its schema, as ``adjudge.tools.validate_reuse`` does without a server.

        Args:
            tool_id: The id of the tool.
            output: What the tool returned.
            schema: The JSON Schema of its output.
            history: Its outputs so far, to say whether this one is unusual; ``None`` compares with none.
            strict_properties: Refuse members that the schema does not name.
        """
        if not is_json([output, schema]):
            return ReuseVerdict(valid=False, schema_errors=("the output: is not JSON, or the schema is not",))
        body: dict[str, Any] = {"tool_id": tool_id, "output": output, "output_schema": schema}
        body |= {"history": None if history is None else history.to_dict(), "strict_properties": strict_properties}
        try:
            return await self._post("reuse", body, lambda reply: _read_reuse(reply, body))
        except ServerError as error:
            return ReuseVerdict(valid=False, schema_errors=(f"the output: cannot be checked ({error})",))

    validate_reuse_sync = make_sync_method(validate_reuse)

    async def _post(self, name: str, body: Mapping[str, Any], read: Callable[[Any], T]) -> T:
        """Send a request about tools, and read the verdict in the reply with ``read``.

        ``name`` is the last part of the address. Raises ``ServerError`` for a reply that is no verdict.
        """
        reply = await self.connection.post("v1", "tools", name, body=body)
        return read_answer(read, reply, self.connection.url, "verdict")

    def _check_digest(self, verdict_digest: str, sent_digest: str) -> None:
        """Raise ``ServerError`` for a verdict about another tool than was sent."""
        if verdict_digest != sent_digest:
            raise ServerError(f"{self.connection.url} answered about another tool, so the answer does not count")


def _read_reuse(reply: Any, body: Mapping[str, Any]) -> ReuseVerdict:
    """Read the verdict on an output; raises ``UsageError`` if the reply has the digest of another request."""
    members = dict(reply)
    request_digest = members.pop("request", None)
    verdict = ReuseVerdict.from_dict(members)
    if request_digest != digest_reuse(body):
        raise UsageError("it is about another output or schema than were sent")
    return verdict
