"""The bodies of requests to judge: a content of any JSON value, or an agent's run in its place."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict, Field

from adjudge.agents.rendering import BUDGET
from adjudge.agents.run import AgentRun, RunOutcome, Unknown
from adjudge.agents.step import ChangeKind, NotMade, Role
from adjudge.server.api.endpoint import StrictModel, explaining_usage
from adjudge.server.problem import Problem

_Number = int | float | None
"""A number, or nothing. With ``float`` alone, 1 would become 1.0, and the digest of the run would change."""


class CallBody(StrictModel):
    """A call of a tool. Without a `result` and an `error`, nobody knows what came of it."""

    tool: str
    arguments: Any = Field(default_factory=dict, description="An object, or a text that could not be read as one.")
    call_id: str | None = None
    result: str | None = None
    error: str | None = None
    duration_ms: _Number = Field(default=None, ge=0)
    agent: str | None = Field(default=None, description="The sub-agent that made the call.")
    not_made: NotMade | None = Field(default=None, description="What the harness did in place of making the call.")


class StepBody(StrictModel):
    """Somebody's words, or a call of a tool by the assistant."""

    role: Role
    text: str = ""
    call: CallBody | None = None
    turn: int = Field(default=0, ge=0, description="The agent's reply that it is of; calls of one are made at once.")


class FileChangeBody(StrictModel):
    """A file that is not as it was before the run."""

    path: str
    kind: ChangeKind
    diff: str = ""


class UsageBody(StrictModel):
    """The tokens that a run took."""

    input_tokens: int = Field(default=0, ge=0)
    output_tokens: int = Field(default=0, ge=0)
    cached_tokens: int = Field(default=0, ge=0)
    written_tokens: int = Field(default=0, ge=0)
    calls: int = Field(default=1, ge=0)
    cost_usd: _Number = Field(default=None, ge=0)


class RunBody(StrictModel):
    """An agent's run, as ``AgentRun.to_dict`` writes it."""

    model_config = ConfigDict(extra="forbid", strict=True, serialize_by_alias=True)

    schema_: Literal["adjudge/agent-run/1"] = Field(alias="schema")
    steps: list[StepBody] = Field(default_factory=list)
    answer: str | None = None
    files: list[FileChangeBody] = Field(default_factory=list)
    outcome: RunOutcome = "finished"
    exit_code: int | None = None
    usage: UsageBody | None = None
    cost: _Number = Field(default=None, ge=0, description="Dollars; null means unknown.")
    duration_ms: _Number = Field(default=None, ge=0)
    complete: bool = Field(default=True, description="False if part of the run is missing: then rules about it fail.")
    problems: list[str] = Field(default_factory=list)
    unknown: list[Unknown] = Field(
        default_factory=list,
        description="What was not recorded; rules about it fail. Say `files` if nobody knows them.",
    )
    metadata: dict[str, Any] = Field(default_factory=dict)
    budget: int = Field(default=BUDGET, description="Tokens of the run that a judge is shown, from 1,000 to 1,000,000.")


class ContentBody(StrictModel):
    """A content, or an agent's run in its place."""

    # Two members: a content that only looks like a run is judged as a content. Otherwise its author could have
    # the judge shown a part of it, and rules on runs would believe it.
    content: Any = Field(default=None, description="What is judged, any JSON value. Send this or `run`.")
    run: RunBody | None = Field(default=None, description="An agent's run, in place of `content`.")

    @property
    def has_content(self) -> bool:
        """True if the request says what is judged."""
        return "content" in self.model_fields_set or self.run is not None

    def open_content(self) -> Any:
        """Return the content or the run that is judged; raises ``Problem`` (422) if the request has both or neither."""
        has_content_member, has_run = "content" in self.model_fields_set, self.run is not None
        if has_content_member == has_run:
            raise Problem(422, "send content, or run in its place", code="usage", argument="content")
        run = self.dump_run()
        if run is None:
            return self.content
        with explaining_usage():
            return AgentRun.from_dict(run)

    def dump_run(self) -> dict[str, Any] | None:
        """Return the run as it was sent, without members that were not sent; ``None`` if there is none."""
        return None if self.run is None else self.run.model_dump(exclude_unset=True)
