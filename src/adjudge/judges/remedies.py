"""The doctor as a remedy: whether it can say more about what is undecided than the result says itself."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from adjudge.formats.display import list_answers
from adjudge.judges.chain import JudgeChain
from adjudge.judges.judge import TOKEN_REMEDY, Judge, asks_as
from adjudge.judges.pair import PairResult
from adjudge.models.model import find_function
from adjudge.result import JudgeResult


def list_code_judges(judge: object) -> frozenset[str]:
    """List the judges in code of a judge or chain, at any depth, by the names that they have in results."""
    return frozenset(_iterate_code_judges(judge))


def _iterate_code_judges(judge: object, name: str | None = None) -> Iterator[str]:
    """Yield names of judges in code; ``name`` is that of a seat, which a chain may have given another than its own."""
    if asks_as(judge, JudgeChain):
        for seat_name, seat in judge.seats:
            yield from _iterate_code_judges(seat, seat_name)
    elif asks_as(judge, Judge) and find_function(judge.model) is not None:
        yield judge.name if name is None else name


def may_doctor_help(result: JudgeResult | PairResult, code_judges: Collection[str]) -> bool:
    """Return whether the doctor may say more about a reason than the judges say that gave it.

    It asks whether a model can be reached, and whether its replies can be read, without the token too. A judge in code
    (``code_judges``) has neither, and its detail says what it may return; and a detail may have the remedy already.
    """
    because = result.undecided_because
    leaves = [leaf for leaf in list_answers(result) if leaf.undecided_because == because]
    return any(leaf.judge not in code_judges and TOKEN_REMEDY not in leaf.detail for leaf in leaves)
