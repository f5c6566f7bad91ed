"""What a run asks, settled before the first case: everything wrong with the configuration is said then."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge._asking import Asking, RubricSource, prepare
from adjudge._compare import compare_case
from adjudge._evaluate import Evaluates, decide_by_rules, since
from adjudge._guard import open_chain
from adjudge._judge import Judge
from adjudge._pair import OnConflict, PairResult
from adjudge._pairing import choose_rubric, prepare_pair
from adjudge._plain import to_plain
from adjudge._run._items import check_kept, encode
from adjudge._tasks import count_cancellations, is_for_us, tell_error
from adjudge.chain import JudgeChain
from adjudge.dataset import Case
from adjudge.errors import UsageError
from adjudge.question import digest_question
from adjudge.result import JudgeResult
from adjudge.rubric import Rubric
from adjudge.rules import as_rule


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The same question about every case, and who answers it."""

    judge: Any
    """A judge or a chain."""
    rubric: Rubric | None
    how: Asking
    described: Mapping[str, Any]
    """The question, as plain data."""
    on_conflict: OnConflict | None = None
    """What orders that disagree come to; ``None``: each case is judged by itself."""

    async def judge_case(self, case: Case, sample: int) -> JudgeResult | PairResult:
        """One case judged; whatever goes wrong with it is its result, and only a cancellation from outside is not."""
        cancelled = count_cancellations()
        try:
            result = await (self._judge if self.on_conflict is None else self._compare)(case, sample)
            check_kept(result, ours=type(self.judge) is Judge)
        except asyncio.CancelledError:
            if count_cancellations() > cancelled:
                raise
            said = "the judge cancelled itself"
        except BaseException as error:  # the other cases are judged all the same
            if is_for_us(error):
                raise
            said = str(error) if isinstance(error, UsageError) else tell_error(error)
        else:
            return result
        return self._give_up(case, " ".join(said.split())[:500])

    def _give_up(self, case: Case, detail: str) -> JudgeResult | PairResult:
        judge, metadata = str(self.judge.name), self._merge(case).get("metadata") or {}
        if self.on_conflict is not None:
            return PairResult(
                preferred=None,
                undecided_because="error",
                judge=judge,
                orders=(),
                detail=detail,
                metadata=metadata,
            )
        return JudgeResult(
            outcome="undecided",
            undecided_because="error",
            judge=judge,
            detail=detail,
            threshold=self.rubric.passing_threshold if self.rubric is not None else None,
            attempts=0,
            metadata=metadata,
        )

    async def _compare(self, case: Case, sample: int) -> PairResult:
        how: Any = {**self.how, "on_conflict": self.on_conflict, "sample": sample}
        return await compare_case(case, self.judge, self.rubric, **how)

    async def _judge(self, case: Case, sample: int) -> JudgeResult:
        started = time.perf_counter()
        question = await prepare(case.content, self.rubric, None, self._merge(case))
        if sample:
            question = replace(question, sample=sample)
        answer = decide_by_rules(question)
        if answer is not None:
            return self.judge._settle(question, answer, since(started))  # noqa: SLF001 - what evaluate does with it
        result = await self.judge.ask(question)
        if not isinstance(result, JudgeResult):
            raise TypeError(f"the judge returned {type(result).__name__}, not a JudgeResult")
        return result

    def _merge(self, case: Case) -> Asking:
        merged: Any = dict(self.how)
        if case.reference is not None:
            merged["reference"] = case.reference
        if case.task is not None:
            merged["task"] = case.task
        if case.context is not None:
            merged["context"] = case.context
        # The id last: a case that names another's would be given that one's recorded reply.
        merged["metadata"] = {**case.metadata, **(self.how.get("metadata") or {}), "case": case.id}
        return merged


def open_asker(judge: Any) -> Judge | JudgeChain:
    """Whatever ``run`` was given as its judge, as one that can be asked."""
    return judge if isinstance(judge, Evaluates) else _open(judge)  # type: ignore[return-value]


async def settle(asker: Any, rubric: RubricSource | None, how: Asking) -> Asked:
    """What is asked of every case; raises ``UsageError`` for what is wrong before any is."""
    if "throw_on_fail" in how:
        raise UsageError("a run has no throw_on_fail: a judgement that failed is one of its results")
    rules = [as_rule(rule) for rule in how.get("rules") or ()]
    question = await prepare("-", rubric, asker._own_rubric(), {**how, "rules": ()})  # noqa: SLF001 - as evaluate does
    settled = question.rubric
    if settled is None or len(question.settled) < len(settled.criteria) or question.value_type is not None:
        ready = getattr(asker, "check", None)
        if ready is not None:
            ready(question)
    kept: Asking = {**how, "rules": rules} if rules else {**how}
    for name in ("criteria", "threshold"):  # both are in the rubric now
        kept.pop(name, None)
    more = {name: value for name, value in kept.items() if name not in ("rules", "metadata")}
    described = {
        # The wording is adjudge's as well as the rubric's: with another version of either, another thing is asked.
        "wording": digest_question(question.wording, ()),
        "rules": [{"name": rule.name, "severity": rule.severity, **rule.spec} for rule in rules],
        **{name: _describe(value) for name, value in more.items() if value is not None},
    }
    return Asked(judge=asker, rubric=settled, how=kept, described=to_plain(described))


def settle_pairs(asker: Any, rubric: RubricSource | None, how: Asking, on_conflict: OnConflict) -> Asked:
    """As ``settle``, for cases that are two contents to compare."""
    about: Any = {name: value for name, value in how.items() if name != "criteria"}
    chosen = choose_rubric(rubric, how.get("criteria"), asker._own_rubric())  # noqa: SLF001 - as compare does
    [question] = prepare_pair("-", "-", chosen, ("ab",), ties=True, sample=0, about=about)
    asker.check(question)
    told = {name: value for name, value in about.items() if name != "metadata" and value is not None}
    described = {"wording": digest_question(question.wording, ()), "pairs": on_conflict, **told}
    return Asked(judge=asker, rubric=chosen, how=about, described=to_plain(described), on_conflict=on_conflict)


def digest(described: Mapping[str, Any] | None) -> str | None:
    """SHA-256 of plain data, in hexadecimal."""
    return None if described is None else hashlib.sha256(encode(to_plain(described))).hexdigest()


def _open(judge: Any) -> Judge | JudgeChain:
    # Somebody else's judge as the one seat of a chain: what it raises, or returns, is then a result like any other.
    return open_chain(judge) if hasattr(judge, "ask") else Judge(judge)


def _describe(value: Any) -> Any:
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if name is not None else to_plain(value)
