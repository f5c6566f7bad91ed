"""The advice to run ``adjudge doctor``: it is given only where the doctor can say more than the undecided result."""

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
    """Yield the names of judges in code; ``name`` is the name of a seat in its chain, which may differ from its own."""
    if asks_as(judge, JudgeChain):
        for seat_name, seat in judge.seats:
            yield from _iterate_code_judges(seat, seat_name)
    elif asks_as(judge, Judge) and find_function(judge.model) is not None:
        yield judge.name if name is None else name


def may_doctor_help(result: JudgeResult | PairResult, code_judges: Collection[str]) -> bool:
    """Return whether the doctor may say more about an undecided result than its details do.

    The doctor tests whether a model can be reached and whether its replies can be read, also without the token. That is
    no help for a judge in code (one of ``code_judges``), nor where the detail of a judge already advises to turn the
    token off.
    """
    reason = result.undecided_because
    leaves = [leaf for leaf in list_answers(result) if leaf.undecided_because == reason]
    return any(leaf.judge not in code_judges and TOKEN_REMEDY not in leaf.detail for leaf in leaves)
