"""The question that a recorded item is asked now: by the new rubric, and answered by what was said then.

A reply answers the question it was asked, so it is read as strictly as then, criteria that are left out now included;
only what they weigh is new. A criterion that nobody was asked about in these words has no score, whatever its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.errors import UsageError
from adjudge.formats.plain import to_plain
from adjudge.judges.evaluate import prepare
from adjudge.judges.judge import Judge
from adjudge.question.question import Question
from adjudge.question.result_format import check_format
from adjudge.result import JudgeResult, RuleResult
from adjudge.rubric.rubric import Criterion, Rubric
from adjudge.rules.rule import Rule
from adjudge.runs.item import RunItem
from adjudge.runs.recorded_rubric import rebuild_criterion
from adjudge.sync import run_sync

_POLICY = ("weight", "threshold", "rule")
"""What a criterion says that no model is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """By which rubric replies are read again, and what of it they can answer."""

    rubric: Rubric | None
    """The rubric that decides now."""
    dropped: tuple[Criterion, ...] = ()
    """The criteria that were asked and are left out now, so that a reply is read as a whole; they weigh nothing."""
    unasked: str = ""
    """One sentence on a criterion that nobody was asked about in these words; empty when there is none."""
    same: bool = True
    """Whether this is the rubric that was asked, so that what was decided without a reply of ours still stands."""
    ruled: Mapping[str, Any] = field(default_factory=dict)
    """The rules that decided criteria then, as data, by the criteria's names."""
    reference: Any = None
    """The reference of a case that has none of its own."""
    value_type: type[Any] | None = None
    passes: Callable[[Any], bool] | None = None

    async def pose(self, item: RunItem) -> Question:
        """What an item is asked now, as a run prepares it; it keeps the digests of the question that was asked.

        What a rule said then it says again and is not run: it may be code of yours, and content and rule are the same.
        """
        then = find_result(item)
        number = len(then.rule_results) - len(self.ruled) if then.rule_results else 0
        ran, said = then.rule_results[:number], {each.name: each for each in then.rule_results[number:]}
        reference = self.reference if item.case.reference is None else item.case.reference
        question = await self._prepare(item.case.content, reference, ran, said)
        return replace(
            question,
            digest=then.question or "",
            subject=then.subject,
            case=item.case.id,
            sample=item.sample,
            metadata=then.metadata,
        )

    def widen(self, question: Question) -> Question:
        """The question that a reply is read by: with the criteria that are left out now."""
        if not self.dropped or question.rubric is None:
            return question
        return replace(question, rubric=replace(question.rubric, criteria=(*question.rubric.criteria, *self.dropped)))

    def check(self, judge: Judge) -> None:
        """Raise ``UsageError`` where the judge's form of reply cannot answer this rubric."""
        criteria = self.rubric.criteria if self.rubric is not None else ()
        said = {item.name: RuleResult(name=item.name, passed=False) for item in criteria if item.rule is not None}
        posed = run_sync(self._prepare("-", None, (), said, anew=False))
        judge._style.check(self.widen(posed))  # noqa: SLF001

    async def _prepare(
        self,
        content: Any,
        reference: Any,
        ran: Sequence[RuleResult],
        said: Mapping[str, RuleResult],
        *,
        anew: bool = True,
    ) -> Question:
        rubric = self.rubric
        if rubric is not None and said:
            criteria = tuple([self._hold(item, said.get(item.name), anew=anew) for item in rubric.criteria])
            rubric = replace(rubric, criteria=criteria)
        return await prepare(
            content,
            rubric,
            None,
            {
                "rules": [Rule(name=each.name, severity=each.severity, evaluate=_repeat(each)) for each in ran],
                "reference": reference,
                "result_format": self.value_type,
                "passes": self.passes,
            },
        )

    def _hold(self, criterion: Criterion, said: RuleResult | None, *, anew: bool) -> Criterion:
        """A criterion whose rule says what it said; a rule that is another now is run anew."""
        rule = criterion.rule
        if rule is None or said is None or (anew and self.ruled.get(criterion.name) != to_plain(rule.spec)):
            return criterion
        return replace(criterion, rule=replace(rule, evaluate=_repeat(said), needs_reference=False))


def make_reading(
    asked: Mapping[str, Any] | None,
    rubric: Rubric | None,
    *,
    reference: Any = None,
    value_type: type[Any] | None = None,
    passes: Callable[[Any], bool] | None = None,
) -> Reading:
    """How to read by ``rubric`` what was asked by the rubric that a manifest tells of; both may be ``None``.

    Raises ``UsageError`` where a criterion that was put to judges is a rule now: of the two, only one has the name.
    """
    if value_type is not None:
        check_format(value_type, passes)
    more: dict[str, Any] = {"reference": reference, "value_type": value_type, "passes": passes}
    if rubric is None or asked is None:
        return Reading(rubric=rubric, same=rubric is None and asked is None, **more)
    rubric = replace(rubric, model=None)
    then = {item["name"]: item for item in asked["criteria"]}
    put = {name: item for name, item in then.items() if "rule" not in item}
    now = {item.name: item for item in rubric.criteria}
    for name, item in now.items():
        if item.rule is not None and name in put:
            raise UsageError(f"criterion {name!r} was put to judges and is a rule now; give the rule another name")
    dropped = [rebuild_criterion(item, weight=0.0) for name, item in put.items() if name not in now]
    same_scale = list(rubric.scale) == list(asked.get("scale") or (0.0, 1.0))
    before = {key: value for key, value in asked.items() if key != "model"}
    return Reading(
        rubric=rubric,
        dropped=tuple(dropped) if same_scale else (),
        unasked=_explain_gaps(rubric, put, same_scale=same_scale),
        same=to_plain(rubric.to_dict()) == before,
        ruled={name: item["rule"] for name, item in then.items() if "rule" in item},
        **more,
    )


def find_result(item: RunItem) -> JudgeResult:
    """What an item was judged; raises ``UsageError`` for a pair, whose two orders no policy of one content decides."""
    if not isinstance(item.result, JudgeResult):
        raise UsageError("this run compared pairs, and a run is redecided where it judged one content at a time")
    return item.result


def _repeat(said: RuleResult) -> Callable[[Any], RuleResult]:
    return lambda _content: said


def _explain_gaps(rubric: Rubric, put: Mapping[str, Any], *, same_scale: bool) -> str:
    """Which criteria's scores are not among the replies, and why; nothing when all are."""
    asked = [item for item in rubric.criteria if item.rule is None]
    absent = [item.name for item in asked if item.name not in put]
    other = [item.name for item in asked if item.name in put and not (same_scale and _is_same(item, put[item.name]))]
    said = [f"{_list(absent)} not asked then"] if absent else []
    said += [f"{_list(other)} asked in other words{'' if same_scale else ', on another scale,'} then"] if other else []
    return "; ".join(said)


def _is_same(criterion: Criterion, then: Mapping[str, Any]) -> bool:
    now = to_plain(criterion.to_dict())
    return all(now.get(key) == then.get(key) for key in {*now, *then} - {*_POLICY})


def _list(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"criterion {shown} was" if len(names) == 1 else f"criteria {shown} were"
