"""A server's review of forged tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from adjudge.client.connection import Connection
from adjudge.client.payload import read_answer
from adjudge.errors import ServerError, UsageError
from adjudge.formats.json import is_json
from adjudge.sync import run_sync
from adjudge.tools.reuse import ToolHistory, digest_reuse
from adjudge.tools.tool import EmergentTool, ToolCandidate, tool_digest
from adjudge.tools.verdict import DIMENSIONS, CreationVerdict, PromotionVerdict, ReuseVerdict, ReviewVerdict

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteEmergentJudge:
    """A review of tools with a judge of a server. Where the server says nothing, nothing is approved."""

    connection: Connection
    judge: str | None = None

    async def review_creation(self, candidate: ToolCandidate) -> CreationVerdict:
        """Whether a candidate may become a tool, as ``EmergentJudge.review_creation`` says."""
        if not isinstance(candidate, ToolCandidate):
            raise UsageError(f"a creation is reviewed of a ToolCandidate, got {type(candidate).__name__}")
        digest = tool_digest(candidate)
        body = {"candidate": candidate.to_dict(), "judge": self.judge}
        try:
            verdict = await self._post("review", body, CreationVerdict.from_dict)
            self._check_about(verdict.tool_digest, digest)
        except ServerError as error:
            parts: dict[str, Any] = dict.fromkeys(("confidence", *DIMENSIONS), 0.0)
            return CreationVerdict(approved=False, reasoning=str(error), tool_digest=digest, chain_result=None, **parts)
        return verdict

    def review_creation_sync(self, candidate: ToolCandidate) -> CreationVerdict:
        """``review_creation`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.review_creation(candidate))

    async def review_promotion(self, tool: EmergentTool) -> PromotionVerdict:
        """Whether a tool may be raised by one tier, as ``EmergentJudge.review_promotion`` says."""
        if not isinstance(tool, EmergentTool):
            raise UsageError(f"a promotion is reviewed of an EmergentTool, got {type(tool).__name__}")
        try:
            body = {"tool": tool.to_dict(), "judge": self.judge}
            verdict = await self._post("promotion", body, PromotionVerdict.from_dict)
            self._check_about(verdict.tool_digest, tool.digest)
        except ServerError as error:
            review = ReviewVerdict(approved=False, confidence=0.0, reasoning=str(error), chain_result=None)
            return PromotionVerdict(
                approved=False, confidence=0.0, safety=review, correctness=review, tool_digest=tool.digest
            )
        return verdict

    def review_promotion_sync(self, tool: EmergentTool) -> PromotionVerdict:
        """``review_promotion`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.review_promotion(tool))

    async def validate_reuse(
        self,
        tool_id: str,
        output: object,
        schema: object,
        *,
        history: ToolHistory | None = None,
        strict_properties: bool = False,
    ) -> ReuseVerdict:
        """Whether an output fits its schema, as ``adjudge.tools.validate_reuse`` says, which needs no server."""
        if not is_json([output, schema]):
            return ReuseVerdict(valid=False, schema_errors=("the output: is not JSON, or the schema is not",))
        body: dict[str, Any] = {"tool_id": tool_id, "output": output, "output_schema": schema}
        body |= {"history": None if history is None else history.to_dict(), "strict_properties": strict_properties}
        try:
            return await self._post("reuse", body, lambda said: _read_reuse(said, body))
        except ServerError as error:
            return ReuseVerdict(valid=False, schema_errors=(f"the output: cannot be checked ({error})",))

    def validate_reuse_sync(
        self,
        tool_id: str,
        output: object,
        schema: object,
        *,
        history: ToolHistory | None = None,
        strict_properties: bool = False,
    ) -> ReuseVerdict:
        """``validate_reuse`` without an event loop. It also works inside a running loop, and blocks it."""
        work = self.validate_reuse(tool_id, output, schema, history=history, strict_properties=strict_properties)
        return run_sync(work)

    async def _post(self, name: str, body: Mapping[str, Any], read: Callable[[Any], T]) -> T:
        said = await self.connection.post("v1", "tools", name, body=body)
        return read_answer(read, said, self.connection.url, "verdict")

    def _check_about(self, said: str, digest: str) -> None:
        if said != digest:
            raise ServerError(f"{self.connection.url} answered about another tool, so the answer does not count")


def _read_reuse(said: Any, body: Mapping[str, Any]) -> ReuseVerdict:
    rest = dict(said)
    about = rest.pop("request", None)
    verdict = ReuseVerdict.from_dict(rest)
    if about != digest_reuse(body):
        raise UsageError("it is about another output or schema than were sent")
    return verdict
