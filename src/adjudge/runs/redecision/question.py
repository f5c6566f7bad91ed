"""The question about a recorded item under another rubric, which its kept replies answer.

A reply answers the question that was asked in the run. So it is read as strictly as then, with all criteria of the old
rubric; only weights and thresholds are new. A criterion that was not asked in the same words has no score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.dataset.case import open_inline
from adjudge.errors import UsageError
from adjudge.formats.plain_data import to_plain
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

_POLICY_MEMBERS = ("weight", "threshold", "rule")
"""The members of a criterion that no model is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The rubric by which replies are read again, and the part of it that they can answer."""

    rubric: Rubric | None
    """The rubric that decides now."""
    dropped: tuple[Criterion, ...] = ()
    """The criteria that were asked and are left out now, so that a reply is read as a whole; they weigh nothing."""
    unasked: str = ""
    """One sentence on a criterion that nobody was asked about in these words; empty when there is none."""
    same: bool = True
    """True if this is the rubric that was asked, so that what was decided without a reply of ours still stands."""
    ruled: Mapping[str, Any] = field(default_factory=dict)
    """The rules that decided criteria then, as data, by the criteria's names."""
    reference: Any = None
    """The reference of a case that has none of its own."""
    value_type: type[Any] | None = None
    passes: Callable[[Any], bool] | None = None

    async def make_question(self, item: RunItem) -> Question:
        """Make the question about an item by the new rubric, with the digests of the question asked in the run.

        Rules are not run again, because they may be functions of the user that are not here. Each gives the result that
        it gave in the run, as content and rule are the same; only a criterion's rule that is another one now is run.
        """
        result = find_result(item)
        # The results of the call's rules come first, those of the rubric's criteria after them.
        call_rule_count = len(result.rule_results) - len(self.ruled) if result.rule_results else 0
        rule_results = result.rule_results[:call_rule_count]
        criterion_results = {rule_result.name: rule_result for rule_result in result.rule_results[call_rule_count:]}
        reference = self.reference if item.case.reference is None else item.case.reference
        question = await self._prepare_question(
            open_inline(item.case.content), reference, rule_results, criterion_results
        )
        return replace(
            question,
            digest=result.question or "",
            subject=result.subject,
            case=item.case.id,
            sample=item.sample,
            metadata=result.metadata,
        )

    def add_dropped_criteria(self, question: Question) -> Question:
        """Return the question by which a reply is read: with the criteria of the old rubric that the new one lacks."""
        if not self.dropped or question.rubric is None:
            return question
        return replace(question, rubric=replace(question.rubric, criteria=(*question.rubric.criteria, *self.dropped)))

    def check(self, judge: Judge) -> None:
        """Raise ``UsageError`` if replies in the judge's form cannot answer the new rubric."""
        criteria = self.rubric.criteria if self.rubric is not None else ()
        results = {
            criterion.name: RuleResult(name=criterion.name, passed=False)
            for criterion in criteria
            if criterion.rule is not None
        }
        question = run_sync(self._prepare_question("-", None, (), results, rerun_changed=False))
        judge._style.check(self.add_dropped_criteria(question))  # noqa: SLF001

    async def _prepare_question(
        self,
        content: Any,
        reference: Any,
        rule_results: Sequence[RuleResult],
        criterion_results: Mapping[str, RuleResult],
        *,
        rerun_changed: bool = True,
    ) -> Question:
        """Prepare the question by the new rubric, with rules that give the results they gave in the run.

        With ``rerun_changed``, a criterion's rule that is another one now is run.
        """
        rubric = self.rubric
        if rubric is not None and criterion_results:
            criteria = tuple(
                [
                    self._repeat_rule_result(
                        criterion, criterion_results.get(criterion.name), rerun_changed=rerun_changed
                    )
                    for criterion in rubric.criteria
                ]
            )
            rubric = replace(rubric, criteria=criteria)
        return await prepare(
            content,
            rubric,
            None,
            {
                "rules": [
                    Rule(name=rule_result.name, severity=rule_result.severity, evaluate=_make_repeater(rule_result))
                    for rule_result in rule_results
                ],
                "reference": reference,
                "result_format": self.value_type,
                "passes": self.passes,
            },
        )

    def _repeat_rule_result(self, criterion: Criterion, result: RuleResult | None, *, rerun_changed: bool) -> Criterion:
        """Return a criterion whose rule gives its result from the run; with ``rerun_changed``, a new rule is run."""
        rule = criterion.rule
        if rule is None or result is None or (rerun_changed and self.ruled.get(criterion.name) != to_plain(rule.spec)):
            return criterion
        return replace(criterion, rule=replace(rule, evaluate=_make_repeater(result), needs_reference=False))


def make_reading(
    recorded: Mapping[str, Any] | None,
    rubric: Rubric | None,
    *,
    reference: Any = None,
    value_type: type[Any] | None = None,
    passes: Callable[[Any], bool] | None = None,
) -> Reading:
    """Make the reading of replies to the ``recorded`` rubric of a manifest by another ``rubric``; both may be ``None``.

    Raises ``UsageError`` if a criterion that judges were asked about is a rule in the new rubric, because the results
    of both would have the same name.
    """
    if value_type is not None:
        check_format(value_type, passes)
    if (rubric is not None and rubric.has_parts) or _has_parts(recorded):
        raise UsageError("a run whose rubric is judged per turn or call cannot be redecided; run it again")
    if rubric is None or recorded is None:
        same = rubric is None and recorded is None
        return Reading(rubric=rubric, same=same, reference=reference, value_type=value_type, passes=passes)
    rubric = replace(rubric, model=None)
    recorded_criteria = {criterion["name"]: criterion for criterion in recorded["criteria"]}
    judged_criteria = {name: criterion for name, criterion in recorded_criteria.items() if "rule" not in criterion}
    criteria = {criterion.name: criterion for criterion in rubric.criteria}
    for name, criterion in criteria.items():
        if criterion.rule is not None and name in judged_criteria:
            raise UsageError(f"criterion {name!r} was put to judges and is a rule now; give the rule another name")
    dropped = [
        rebuild_criterion(criterion, weight=0.0) for name, criterion in judged_criteria.items() if name not in criteria
    ]
    same_scale = list(rubric.scale) == list(recorded.get("scale") or (0.0, 1.0))
    recorded_rubric = {key: value for key, value in recorded.items() if key != "model"}
    return Reading(
        rubric=rubric,
        dropped=tuple(dropped) if same_scale else (),
        unasked=_explain_gaps(rubric, judged_criteria, same_scale=same_scale),
        same=to_plain(rubric.to_dict()) == recorded_rubric,
        ruled={name: criterion["rule"] for name, criterion in recorded_criteria.items() if "rule" in criterion},
        reference=reference,
        value_type=value_type,
        passes=passes,
    )


def _has_parts(recorded: Mapping[str, Any] | None) -> bool:
    """Return whether a recorded rubric has criteria about the parts of agents' runs."""
    return recorded is not None and any("per" in criterion for criterion in recorded["criteria"])


def find_result(item: RunItem) -> JudgeResult:
    """Return the result of an item. Raises ``UsageError`` for a pair, because runs of pairs cannot be redecided."""
    if not isinstance(item.result, JudgeResult):
        raise UsageError("this run compared pairs, and a run is redecided where it judged one content at a time")
    return item.result


def _make_repeater(result: RuleResult) -> Callable[[Any], RuleResult]:
    """Make a rule's function that gives an earlier result for any content."""
    return lambda _content: result


def _explain_gaps(rubric: Rubric, judged_criteria: Mapping[str, Any], *, same_scale: bool) -> str:
    """Explain which criteria have no score in the replies, and why; empty if all have one."""
    judged = [criterion for criterion in rubric.criteria if criterion.rule is None]
    absent = [criterion.name for criterion in judged if criterion.name not in judged_criteria]
    reworded = [
        criterion.name
        for criterion in judged
        if criterion.name in judged_criteria
        and not (same_scale and _is_same(criterion, judged_criteria[criterion.name]))
    ]
    clauses: list[str] = []
    if absent:
        clauses.append(f"{_describe_criteria(absent)} not asked then")
    if reworded:
        on_scale = "" if same_scale else ", on another scale,"
        clauses.append(f"{_describe_criteria(reworded)} asked in other words{on_scale} then")
    return "; ".join(clauses)


def _is_same(criterion: Criterion, asked_members: Mapping[str, Any]) -> bool:
    """Return whether a criterion is worded as in the run; weight, threshold and rule may differ."""
    members = to_plain(criterion.to_dict())
    return all(members.get(key) == asked_members.get(key) for key in {*members, *asked_members} - {*_POLICY_MEMBERS})


def _describe_criteria(names: list[str]) -> str:
    """Write the first names of some criteria as the subject of a sentence: ``criteria 'a', 'b' were``."""
    shown = ", ".join(repr(name) for name in names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"criterion {shown} was" if len(names) == 1 else f"criteria {shown} were"
