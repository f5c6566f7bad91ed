"""Doubles of what stands around a gate: a ledger, and somebody who approves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from adjudge import Decision, Gate
from adjudge.guards import ApprovalAnswer
from kit.judges import Seat
from kit.loops import run_virtual

GOOD = {"name": "Good", "criteria": [{"name": "good", "description": "It is good."}]}
"""A rubric; the seats of these tests say what they are told to, whatever it asks."""


FINE = ApprovalAnswer(True, "ana", "fine")


class Book:
    """A ledger that keeps values in a list, or breaks."""

    def __init__(self, *, breaks: Any = None) -> None:
        self.entries: list[tuple[Any, Mapping[str, Any]]] = []
        self.breaks = breaks
        """An exception to raise, or an answer that is no place."""

    async def append(
        self, value: Any, /, *, kind: str | None = None, subject: str | None = None, gate: str | None = None
    ) -> int:
        if isinstance(self.breaks, BaseException):
            raise self.breaks
        if self.breaks is not None:
            return self.breaks
        self.entries.append((value, {"kind": kind, "subject": subject, "gate": gate}))
        return len(self.entries)


class Desk:
    """Somebody who answers approval requests as told."""

    def __init__(self, answer: Any = FINE, *, request: Any = "a-1") -> None:
        self.answer = answer
        self.says_to_request = request
        self.requests: list[tuple[Decision, str, Mapping[str, Any]]] = []

    async def request(self, decision: Decision, message: str, /, **options: Any) -> str:
        self.requests.append((decision, message, options))
        if isinstance(self.says_to_request, BaseException):
            raise self.says_to_request
        return self.says_to_request

    async def wait(self, approval: str, /) -> Any:
        assert approval == self.says_to_request
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer


def gate(*seats: Any, **options: Any) -> Gate:
    """A gate whose judge is one seat; or what ``judge=`` says."""
    if seats:
        options["judge"] = seats[0]
    if "judge" in options:
        options.setdefault("rubric", GOOD)
    return Gate(options.pop("name", "door"), **options)


def check(made: Gate, content: object = "The content.", **options: Any) -> Decision:
    """Return what a gate decides, on a virtual clock."""
    return run_virtual(made.check(content, **options))


def word(decision: Decision) -> tuple[str, str]:
    """Return what was decided and by whom."""
    return ("pending" if decision.pending else "allowed" if decision.allowed else "blocked", decision.decided_by)


def seat(kind: str) -> Seat:
    """A seat by the outcome it gives: passed, failed, or why it is undecided."""
    return Seat(kind) if kind in {"passed", "failed"} else Seat("undecided", because=kind)  # type: ignore[arg-type]
