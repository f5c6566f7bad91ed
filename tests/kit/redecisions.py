"""Runs to redecide: judges that score as they are told, and what an item came to, to compare."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from adjudge import Case, Criterion, JudgeResult, Rubric, run
from adjudge.models import Reply, Request
from adjudge.runs import Run
from adjudge.testing import make_scripted_reply

RUBRIC = Rubric(
    name="Two",
    criteria=[Criterion(name="a", description="Is a."), Criterion(name="b", description="Is b.")],
    passing_threshold=0.6,
)

Line = Mapping[str, Any] | str | Exception | None


class Told:
    """A model that says, of each case, its lines one after the other; ``None`` never answers. It counts who asks."""

    def __init__(self, name: str, lines: Mapping[str, Sequence[Line] | Line]) -> None:
        self.name = name
        self.asked: list[Request] = []
        self.lines = lines

    async def complete(self, request: Request, /) -> Reply:
        self.asked.append(request)
        planned = self.lines[str(request.case)]
        lines = planned if isinstance(planned, list) else [planned]
        line = lines[min(request.attempt, len(lines)) - 1]
        if isinstance(line, Exception):
            raise line
        if isinstance(line, str):
            return Reply(text=line, model=self.name)
        return make_scripted_reply(dict(line or {}), request, self.name)


def score(**scores: float) -> dict[str, Any]:
    """A rubric's reply with these scores."""
    return {"criteria": [{"name": name, "reasoning": "r", "score": value} for name, value in scores.items()]}


def make_cases(number: int) -> list[Case]:
    return [Case(id=str(place), content=f"text {place}") for place in range(number)]


def do(cases: Sequence[Case], judge: Any, rubric: Any = RUBRIC, **options: Any) -> Run:
    """A run to its end."""
    return run(cases, judge, rubric, **options).finish_sync()


def tell(result: JudgeResult) -> tuple[Any, ...]:
    """Tell what a result comes to, without what differs from one judgement to the next."""
    seats = tuple(tell(item) for item in getattr(result, "results", ()))
    return (result.outcome, result.undecided_because, result.decided_by, result.score, result.criteria, seats)


def tell_all(done: Run) -> list[tuple[Any, ...]]:
    return [(item.place, item.sample, item.case, item.subject, tell(item.result)) for item in done.items()]
