"""The work of an agent, as a value: its steps in order, its answer, what it changed, and what that took.

A run is evidence that the agent under test may have written itself. So what is missing is part of the value: a run that
is not ``complete`` proves nothing about what did not happen, and what a source does not record is ``unknown``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, Self, TypeVar, get_args

from adjudge.agents.rendering import BUDGET, RenderedRun, check_budget, render_run
from adjudge.agents.step import AgentCall, FileChange, Step, check_number, check_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_flag
from adjudge.formats.json import to_json_value
from adjudge.formats.record import Layout, read_record, write_record
from adjudge.formats.text import show
from adjudge.result import Usage

RunOutcome = Literal["finished", "failed", "timeout", "held"]

Unknown = Literal["files", "failures"]
"""A part of a run that its source does not record."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AgentRun:
    """The steps of an agent, and what came of them.

    You can judge it as content, and the rules on calls, files and commands read it.

    Raises ``UsageError`` for members of another type, and for a run that is ``complete`` although it has ``problems``.

    Args:
        steps: The steps, in order.
        answer: The agent's last word; ``None`` if there is none.
        files: The files that the run changed.
        outcome: ``held`` if the run waits for a person.
        exit_code: The exit status of the agent's process; ``None`` is unknown.
        usage: Tokens and calls of the agent; ``None`` is unknown.
        cost: Dollars; ``None`` means unknown, never free.
        duration_ms: The duration of the call, in milliseconds; ``None`` is unknown.
        complete: False if something could not be read or the run was cut short: then "it did not" proves nothing.
        problems: The reasons for which the run is not complete, a sentence each.
        unknown: Parts that the source does not record. A rule about one of them fails.
        metadata: Yours, and what the source adds.
        budget: Tokens of it that a judge is shown, at four characters each; ``dataclasses.replace(run, budget=...)``
            shows more or less.
    """

    schema: ClassVar[str] = "adjudge/agent-run/1"
    writes_plain: ClassVar[bool] = True
    _layout: ClassVar[Layout] = Layout(omitted=("exit_code", "budget"))

    steps: tuple[Step, ...] = ()
    """The steps, in order."""
    answer: str | None = None
    """The agent's last word; ``None`` if there is none."""
    files: tuple[FileChange, ...] = ()
    """The files that the run changed."""
    outcome: RunOutcome = "finished"
    """``held`` if the run waits for a person."""
    exit_code: int | None = None
    """The exit status of the agent's process; ``None`` is unknown."""
    usage: Usage | None = None
    """Tokens and calls of the agent; ``None`` is unknown."""
    cost: float | None = None
    """Dollars; ``None`` means unknown, never free."""
    duration_ms: float | None = None
    """The duration of the call, in milliseconds; ``None`` is unknown."""
    complete: bool = True
    """False if something could not be read or the run was cut short: then "it did not" proves nothing."""
    problems: tuple[str, ...] = ()
    """The reasons for which the run is not complete, a sentence each."""
    unknown: tuple[Unknown, ...] = ()
    """Parts that the source does not record. A rule about one of them fails."""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Yours, and what the source adds."""
    budget: int = BUDGET
    """Tokens of it that a judge is shown, at four characters each; ``dataclasses.replace(run, budget=...)`` shows more
    or less."""

    def __post_init__(self) -> None:
        for name, kind in (("steps", Step), ("files", FileChange), ("problems", str), ("unknown", str)):
            object.__setattr__(self, name, _check_members(name, getattr(self, name), kind))
        check_text("answer", self.answer, optional=True)
        check_choice("outcome", self.outcome, get_args(RunOutcome))
        check_flag("complete", self.complete)
        for part in self.unknown:
            check_choice("unknown", part, get_args(Unknown))
        for name in ("cost", "duration_ms"):
            check_number(name, getattr(self, name))
        check_budget(self.budget)
        if self.problems and self.complete:
            raise UsageError("complete must be false for a run that has problems", argument="complete")
        try:
            object.__setattr__(self, "metadata", to_json_value(dict(self.metadata)))
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(f"metadata must be plain JSON: {error}", argument="metadata") from None

    @cached_property
    def calls(self) -> tuple[AgentCall, ...]:
        """The calls of tools, in order."""
        return tuple([step.call for step in self.steps if step.call is not None])

    @property
    def finished(self) -> bool:
        """True if the run ended by itself and nothing of it is missing."""
        return self.outcome == "finished" and self.complete

    def render(self, budget: int | None = None) -> RenderedRun:
        """Render the run for a judge within a budget of tokens.

        First the outcome, the answer and the files with their diffs, then the steps in order. What does not fit is cut
        in its middle or left out, arguments after results and failed calls last, and counted where it stood. System
        messages are counted and not shown.

        Args:
            budget: The most tokens of the text, of four characters each, from 1,000 to 1,000,000; by default the run's
                own.
        """
        return render_run(self, self.budget if budget is None else check_budget(budget))

    def copy(self) -> Self:
        """Return a run that shares nothing with this one that could be changed."""
        steps = [step if step.call is None else replace(step, call=replace(step.call)) for step in self.steps]
        return replace(self, steps=tuple(steps))

    def to_dict(self) -> dict[str, Any]:
        """Write this value as plain data."""
        return write_record(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read back ``data`` that ``to_dict`` wrote; unknown keys are ignored, anything else raises ``UsageError``.

        Args:
            data: What ``to_dict`` wrote.
        """
        return read_record(cls, data)

    def __repr__(self) -> str:
        state = self.outcome if self.complete else f"{self.outcome}, not complete"
        return f"<AgentRun {state}: {len(self.steps):,} steps, {len(self.calls):,} calls>"


T = TypeVar("T")


def _check_members(name: str, value: Any, member_type: type[T]) -> tuple[T, ...]:
    """Return a list as a tuple. Raises ``UsageError`` unless it is a list whose members all have one type."""
    is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    if not is_list or not all(isinstance(member, member_type) for member in value):
        noun = "texts" if member_type is str else member_type.__name__
        raise UsageError(f"{name} must be a list of {noun}, got {show(value)}", argument=name)
    return tuple(value)
