"""Reading the kept replies of a run again, by another rubric: no model is there that could be asked.

A reply answers the question it was asked, so it is read as strictly as then, criteria that are left out now included;
only what they weigh is new. A criterion that nobody was asked about in these words has no score, whatever its name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.content import content_text
from adjudge.errors import UsageError
from adjudge.formats.plain import to_plain
from adjudge.judges.judge import Judge
from adjudge.models.model import Reply
from adjudge.question.answer import give_up, read_reply
from adjudge.question.question import Part, Question, Wording, make_token
from adjudge.question.reply_style import OWN
from adjudge.question.result_format import answer_rubric_and_value, answer_value, check_format
from adjudge.question.score import answer_rubric, grade_criterion
from adjudge.result import CriterionResult, JudgeResult, RuleResult
from adjudge.rubric.rubric import Criterion, Rubric
from adjudge.rules.rule import Rule
from adjudge.runs.item import RunItem

_POLICY = ("weight", "threshold", "rule")
"""What a criterion says that no model is told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """By which rubric replies are read again, and what of it they can answer."""

    rubric: Rubric | None
    """The rubric that decides now."""
    whole: Rubric | None
    """The same with the criteria that were asked and are left out now; those weigh nothing."""
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
        """What an item is asked now: its rules have run, and how to read a reply is known."""
        result = find_result(item)
        ran = self._list_ran(result)
        settled = {} if self.rubric is None else await self._settle(self.rubric, item)
        quotes = self.whole is not None and any(criterion.quote for criterion in self.whole.criteria)
        return Question(
            wording=None,
            parts=(Part(label="content", text=content_text(item.case.content) if quotes else ""),),
            answer=self._choose_answer(),
            digest=result.question or "",
            subject=result.subject,
            rubric=self.rubric,
            settled=settled,
            rule_results=(*ran, *[self._as_rule_result(said) for said in settled.values()]) if ran or settled else (),
            value_type=self.value_type,
            passes=self.passes,
            threshold=self.rubric.passing_threshold if self.rubric is not None else None,
            case=item.case.id,
            sample=item.sample,
            metadata=result.metadata,
        )

    def read(self, judge: Judge, result: JudgeResult, reply: Reply, token: str, question: Question) -> JudgeResult:
        """What a judge's recorded result is, now that its reply is read by this rubric; the reply stays as it is."""
        asked = token if judge.token and judge.reader == OWN else None
        posed = question if self.whole is self.rubric else replace(question, rubric=self.whole)
        try:
            style = judge._style()  # noqa: SLF001 - as the judge itself reads
            answer = read_reply(reply, posed, token=asked, style=style, scoring=judge.scoring)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what passes= raises, as when a judge asks
            answer = give_up("error", f"{type(error).__name__}: {error}", posed)
        kept = {criterion.name for criterion in self.rubric.criteria} if self.rubric is not None else set()
        return replace(
            result,
            outcome=answer.outcome,
            undecided_because=answer.because,
            detail=answer.detail,
            decided_by=answer.decided_by,
            score=answer.score,
            threshold=answer.threshold,
            confidence=answer.confidence,
            criteria=tuple(item for item in answer.criteria if item.name in kept),
            reasoning=answer.reasoning,
            suggestions=answer.suggestions,
            value=answer.value,
            rule_results=question.rule_results,
        )

    def check(self, judge: Judge) -> None:
        """Raise ``UsageError`` where the judge's form of reply cannot answer this rubric."""
        rules = [item.name for item in self.rubric.criteria if item.rule is not None] if self.rubric is not None else []
        settled = {name: CriterionResult(name=name, score=0.0, passed=False) for name in rules}
        posed = Question(
            wording=Wording(role="", shape=()),
            parts=(),
            answer=self._choose_answer(),
            digest="",
            rubric=self.whole,
            settled=settled,
            value_type=self.value_type,
            passes=self.passes,
        )
        judge._style().check(posed)  # noqa: SLF001

    def _choose_answer(self) -> Callable[..., Any]:
        if self.value_type is None:
            return answer_rubric
        return answer_value if self.rubric is None else answer_rubric_and_value

    def _list_ran(self, result: JudgeResult) -> tuple[RuleResult, ...]:
        """What the rules of the call said then: content and rules are the same, so it is what they say now."""
        said = result.rule_results
        return said[: len(said) - len(self.ruled)] if said else ()

    async def _settle(self, rubric: Rubric, item: RunItem) -> dict[str, CriterionResult]:
        """What rules say of criteria; one that has spoken then is not run again, as it may be code of yours."""
        then = find_result(item)
        said = {each.name: each for each in then.rule_results[len(self._list_ran(then)) :]}
        reference = self.reference if item.case.reference is None else item.case.reference
        settled: dict[str, CriterionResult] = {}
        for criterion in rubric.criteria:
            rule = criterion.rule
            if rule is None:
                continue
            known = said.get(criterion.name) if self.ruled.get(criterion.name) == to_plain(rule.spec) else None
            found = known or await rule.check(item.case.content, reference)
            score = 1.0 if found.passed else 0.0
            settled[criterion.name] = grade_criterion(criterion, score, found.message, rule=rule.kind)
        return settled

    def _as_rule_result(self, said: CriterionResult) -> RuleResult:
        criteria = self.rubric.criteria if self.rubric is not None else ()
        rule = next(item.rule for item in criteria if item.name == said.name)
        severity = rule.severity if rule is not None else "error"
        return RuleResult(
            name=said.name, passed=said.score == 1.0, severity=severity, message=said.reasoning, score=said.score
        )


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
        return Reading(rubric=rubric, whole=rubric, same=rubric is None and asked is None, **more)
    rubric = replace(rubric, model=None)
    then = {item["name"]: item for item in asked["criteria"]}
    put = {name: item for name, item in then.items() if "rule" not in item}
    now = {item.name: item for item in rubric.criteria}
    for name, item in now.items():
        if item.rule is not None and name in put:
            raise UsageError(f"criterion {name!r} was put to judges and is a rule now; give the rule another name")
    dropped = [_read_criterion(item, weight=0.0) for name, item in put.items() if name not in now]
    same_scale = list(rubric.scale) == list(asked.get("scale") or (0.0, 1.0))
    before = {key: value for key, value in asked.items() if key != "model"}
    return Reading(
        rubric=rubric,
        whole=replace(rubric, criteria=(*rubric.criteria, *dropped)) if same_scale and dropped else rubric,
        unasked=_explain_gaps(rubric, put, same_scale=same_scale),
        same=to_plain(rubric.to_dict()) == before,
        ruled={name: item["rule"] for name, item in then.items() if "rule" in item},
        **more,
    )


def rebuild_rubric(asked: Mapping[str, Any]) -> Rubric:
    """The rubric that a manifest tells of; a rule that is code is named and never imported."""
    try:
        return Rubric(
            name=asked["name"],
            criteria=[_read_criterion(item) for item in asked["criteria"]],
            passing_threshold=asked["passing_threshold"],
            scale=asked.get("scale") or (0.0, 1.0),
        )
    except UsageError:
        raise
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise UsageError(f"the run's rubric cannot be read ({error}); name one with --rubric") from None


def find_result(item: RunItem) -> JudgeResult:
    """What an item was judged; raises ``UsageError`` for a pair, whose two orders no policy of one content decides."""
    if not isinstance(item.result, JudgeResult):
        raise UsageError("this run compared pairs, and a run is redecided where it judged one content at a time")
    return item.result


def make_item_token(item: RunItem) -> str:
    """What stands for the masked token while an item's replies are read."""
    return make_token(find_result(item).question or item.case.id)


def _read_criterion(said: Mapping[str, Any], *, weight: float | None = None) -> Criterion:
    given = dict(said)
    spec = given.get("rule")
    if spec is not None and (not spec or "python" in spec or spec.get("name") == "python"):
        # The folder of a run may come from anybody: what it calls a function is not looked up, let alone called.
        given["rule"] = Rule(name=given["name"], evaluate=_refuse, spec=dict(spec))
    if weight is not None:
        given["weight"] = weight
        given.pop("threshold", None)
    return Criterion(**given)


def _refuse(*_: object) -> bool:
    raise UsageError("this rule is code, which a run does not hold; hand the rubric in")


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
