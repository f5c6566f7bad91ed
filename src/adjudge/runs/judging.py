"""What a run asks, settled before the first case: everything wrong with the configuration is said then."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from adjudge.concurrency import count_cancellations, describe_error, is_for_us
from adjudge.dataset.case import Case
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_share
from adjudge.formats.plain import to_plain
from adjudge.judges.chain import JudgeChain
from adjudge.judges.compare import NOTHING_BETTER, check_pair_case, choose_rubric, compare_case_as, prepare_pair
from adjudge.judges.evaluate import (
    NO_CRITERIA,
    EvaluateArguments,
    RubricSource,
    decide_by_rules,
    merge_case,
    merge_data,
    prepare,
    since,
)
from adjudge.judges.judge import Judge, asks_as
from adjudge.judges.pair import OnConflict, PairResult
from adjudge.models.model import UNBOUND, Call, Model, find_function
from adjudge.models.open import asks_nobody
from adjudge.question.question import Question, digest_question
from adjudge.result import JudgeResult
from adjudge.rubric.rubric import Rubric
from adjudge.rules.shipped import as_rule
from adjudge.runs.item import check_kept, encode
from adjudge.runs.terms import Terms


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The same question about every case, and who answers it."""

    judge: Any
    """A judge or a chain."""
    rubric: Rubric | None
    how: EvaluateArguments
    described: Mapping[str, Any]
    """The question, as plain data."""
    on_conflict: OnConflict | None = None
    """What orders that disagree come to; ``None``: each case is judged by itself."""
    threshold: float | None = None
    """The passing threshold that the run was given, over every rubric's own."""

    @property
    def terms(self) -> Terms:
        """By what each case is judged."""
        return Terms(rubric=self.rubric, threshold=self.threshold, compares=self.on_conflict is not None)

    def check_case(self, case: Case) -> None:
        """Raise ``UsageError`` for a case that brings what this run cannot use, or nothing where it has to."""
        if self.on_conflict is not None:
            check_pair_case(case)
        if self.rubric is not None or case.criteria is not None or case.rubric is not None:
            return
        if self.on_conflict is not None:
            raise UsageError(f"{NOTHING_BETTER}, or let each case bring its own criteria")
        if self.how.get("result_format") is None:
            raise UsageError(f"{NO_CRITERIA}, or let each case bring its own criteria")
        if case.threshold is not None:
            raise UsageError(f"its threshold={case.threshold!r} needs criteria or a rubric to apply to")

    async def judge_case(self, case: Case, sample: int, call: Call = UNBOUND) -> JudgeResult | PairResult:
        """One case judged; whatever goes wrong with it is its result, and only a cancellation from outside is not."""
        cancelled = count_cancellations()
        try:
            result = await (self._judge if self.on_conflict is None else self._compare)(case, sample, call)
            check_kept(result, ours=type(self.judge) is Judge)
        except asyncio.CancelledError:
            if count_cancellations() > cancelled:
                raise
            said = "the judge cancelled itself"
        except BaseException as error:  # the other cases are judged all the same
            if is_for_us(error):
                raise
            said = str(error) if isinstance(error, UsageError) else describe_error(error)
        else:
            return result
        return self._make_undecided(case, " ".join(said.split())[:500])

    def _make_undecided(self, case: Case, detail: str) -> JudgeResult | PairResult:
        judge, metadata = str(self.judge.name), merge_data(case, self.how).get("metadata") or {}
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
            threshold=self._find_threshold(case),
            attempts=0,
            metadata=metadata,
        )

    def _find_threshold(self, case: Case) -> float | None:
        try:
            rubric = self.terms.find_rubric(case)
        except UsageError:  # which is why it was given up, it may be
            rubric = self.rubric
        return rubric.passing_threshold if rubric is not None else None

    async def _compare(self, case: Case, sample: int, call: Call) -> PairResult:
        how: Any = {**self.how, "on_conflict": self.on_conflict, "sample": sample}
        return await compare_case_as(call, case, self.judge, self.rubric, how)

    async def _judge(self, case: Case, sample: int, call: Call) -> JudgeResult:
        started = time.perf_counter()
        given: EvaluateArguments = self.how
        if case.brings_own and self.threshold is not None:
            given = {**self.how, "threshold": self.threshold}
        rubric, how = merge_case(case, self.rubric, given)
        question = await prepare(case.content, rubric, None, how, sample=sample, call=call)
        answer = decide_by_rules(question)
        if answer is not None:
            return self.judge._settle(question, answer, since(started))  # noqa: SLF001 - what evaluate does with it
        result = await self.judge.ask(question)
        if not isinstance(result, JudgeResult):
            raise TypeError(f"the judge returned {type(result).__name__}, not a JudgeResult")
        return result


async def settle_question(
    asker: Any,
    rubric: RubricSource | None,
    how: EvaluateArguments,
    on_conflict: OnConflict | None,
    *,
    cases_bring: Callable[[], bool],
) -> Assignment:
    """What is asked of every case, or of every pair of contents where ``on_conflict`` says what orders come to.

    Raises ``UsageError`` as ``settle`` does.
    """
    if on_conflict is not None:
        return _settle_pairs(asker, rubric, how, on_conflict, cases_bring=cases_bring)
    return await settle(asker, rubric, how, cases_bring=cases_bring)


async def settle(
    asker: Any, rubric: RubricSource | None, how: EvaluateArguments, *, cases_bring: Callable[[], bool] = lambda: False
) -> Assignment:
    """What is asked of every case; raises ``UsageError`` for what is wrong before any is.

    ``cases_bring`` says whether cases may bring their own criteria, so that none may be needed for all of them.
    """
    if "throw_on_fail" in how:
        raise UsageError("a run has no throw_on_fail: a judgement that failed is one of its results")
    rules = [as_rule(rule) for rule in how.get("rules") or ()]
    own = asker._own_rubric()  # noqa: SLF001 - as evaluate does
    absent = rubric is None and own is None and not {"criteria", "result_format"} & how.keys() and cases_bring()
    # What does not depend on the words is looked at all the same: a judge without a key is a mistake in every case.
    asked: EvaluateArguments = {**how, "rules": ()} if not absent else {**how, "rules": (), "criteria": "-"}
    question = await prepare("-", rubric, own, asked)
    settled = question.rubric
    alone = absent and asks_nobody(getattr(asker, "own_model", None))  # the rubrics of cases may be all rules
    if not alone:
        _check_asker(asker, question)
    kept: EvaluateArguments = {**how, "rules": rules} if rules else {**how}
    kept.pop("criteria", None)  # it is in the rubric now, and so is the threshold
    threshold = kept.pop("threshold", None)
    more = {name: value for name, value in kept.items() if name not in ("rules", "metadata")}
    described = {
        # The wording is adjudge's as well as the rubric's: with another version of either, another thing is asked.
        "wording": digest_question(question.wording, ()),
        "rules": [{"name": rule.name, "severity": rule.severity, **rule.spec} for rule in rules],
        **{name: _describe(value) for name, value in more.items() if value is not None},
    }
    return Assignment(
        judge=asker,
        rubric=None if absent else settled,
        how=kept,
        described=to_plain(described),
        threshold=None if threshold is None else check_share("threshold", threshold),
    )


async def check_ready(asked: Assignment) -> None:
    """Raise ``UsageError`` where the judge cannot be asked in this process, such as one without a key.

    For what was settled in another one; the rubrics that cases bring are looked at with their cases.
    """
    if asked.rubric is None and (asked.on_conflict is not None or "result_format" not in asked.how):
        return
    if asked.rubric is not None and asked.on_conflict is not None:
        about: Any = {**asked.how}
        [question] = prepare_pair("-", "-", asked.rubric, ("ab",), ties=True, sample=0, about=about)
        asked.judge.check(question)
        return
    how: Any = {**asked.how, "rules": ()}
    _check_asker(asked.judge, await prepare("-", asked.rubric, None, how))


def _check_asker(asker: Any, question: Question) -> None:
    """Whether a judge can answer a question, unless rules answer all of it."""
    settled = question.rubric
    if settled is None or len(question.settled) < len(settled.criteria) or question.value_type is not None:
        ready = getattr(asker, "check", None)
        if ready is not None:
            ready(question)


def _settle_pairs(
    asker: Any,
    rubric: RubricSource | None,
    how: EvaluateArguments,
    on_conflict: OnConflict,
    *,
    cases_bring: Callable[[], bool],
) -> Assignment:
    about: Any = {name: value for name, value in how.items() if name != "criteria"}
    own, criteria = asker._own_rubric(), how.get("criteria")  # noqa: SLF001 - as compare does
    absent = rubric is None and own is None and criteria is None and cases_bring()
    chosen = choose_rubric(rubric, "-" if absent else criteria, own)
    [question] = prepare_pair("-", "-", chosen, ("ab",), ties=True, sample=0, about=about)
    asker.check(question)
    told = {name: value for name, value in about.items() if name != "metadata" and value is not None}
    described = {"wording": digest_question(question.wording, ()), "pairs": on_conflict, **told}
    left = None if absent else chosen
    return Assignment(judge=asker, rubric=left, how=about, described=to_plain(described), on_conflict=on_conflict)


def digest(described: Mapping[str, Any] | None) -> str | None:
    """SHA-256 of plain data, in hexadecimal."""
    return None if described is None else hashlib.sha256(encode(to_plain(described))).hexdigest()


def _describe(value: Any) -> Any:
    name = getattr(value, "__qualname__", None)
    return f"{value.__module__}.{name}" if name is not None else to_plain(value)


MakeModel = Callable[[Mapping[str, Any], int], Model]
"""From what is said of a model, and how many seats before this one have the same, to what stands in its place."""


_JUDGE = ("timeout", "reask", "structured", "token", "scoring", "logprobs", "reader", "temperature", "seed",
          "max_output_tokens")  # fmt: skip

_IF_GIVEN = ("reader_labels", "reader_passes")
"""Told only where they are given: a judge without them is described, and its run goes on, as before there were any."""

_CHAIN = ("strategy", "timeout", "deadline", "fail_open", "quorum", "hedge_after", "escalate_below", "abstain_below",
          "stop_early")  # fmt: skip


def describe_judge(judge: Any) -> dict[str, Any]:
    """A judge with every parameter that bears on its outcomes, its seats included, in JSON's types.

    ``kind`` is ``judge``, ``chain`` or ``other``; of another kind of judge only its name and type are known.
    """
    name = str(getattr(judge, "name", type(judge).__name__))
    if asks_as(judge, JudgeChain):
        seats = [describe_judge(seat) | {"name": seat_name} for seat_name, seat in judge.seats]
        return {"kind": "chain", "name": name, **_read(judge, _CHAIN), "seats": seats}
    if asks_as(judge, Judge):
        rubric = own.to_dict() if (own := judge._own_rubric()) is not None else None  # noqa: SLF001 - as evaluate does
        return {
            "kind": "judge",
            "name": name,
            "model": _describe_model(judge.model),
            **_read(judge, _JUDGE),
            **_read(judge, tuple(name for name in _IF_GIVEN if getattr(judge, name))),
            "rubric": rubric,
        }
    return {"kind": "other", "name": name, "type": f"{type(judge).__module__}.{type(judge).__qualname__}"}


def digest_judge(described: Mapping[str, Any]) -> str:
    """SHA-256 of what ``describe_judge`` says, in hexadecimal."""
    import msgspec

    plain = to_plain(described)
    try:
        written = msgspec.json.encode(plain, order="sorted")
    except UnicodeEncodeError:  # a name with half of a surrogate pair
        written = json.dumps(plain, sort_keys=True).encode()
    return hashlib.sha256(written).hexdigest()


def rebuild_judge(described: Mapping[str, Any], make_model: MakeModel) -> Any:
    """The judge that ``describe_judge`` told of, on the models that ``make_model`` makes.

    Nothing the description names is opened or imported, so one from a stranger's file is safe to rebuild. A judge of
    another kind comes back as an object of its name that cannot be asked. Raises ``UsageError`` for what is no
    description, and for parameters that make no judge.
    """
    try:
        return _rebuild(described, make_model, Counter())
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        said = f"{type(error).__name__}: {error}"[:200]
        raise UsageError(f"this does not describe a judge ({said}); name a folder of `adjudge run`") from None


def _rebuild(described: Mapping[str, Any], make_model: MakeModel, met: Counter[str]) -> Any:
    if described["kind"] == "chain":
        # Each seat is given the name it had, so that it is known again among the results.
        seats = [_rebuild(seat, make_model, met) for seat in described["seats"]]
        return JudgeChain(seats, name=described["name"], **_pick(described, _CHAIN))
    if described["kind"] == "judge":
        name = str(described["model"]["name"])
        met[name] += 1
        model = make_model(described["model"], met[name] - 1)
        given = {"name": described["name"], "rubric": described.get("rubric")}
        return Judge(model, **given, **_pick(described, (*_JUDGE, *_IF_GIVEN)))
    if described["kind"] == "other":
        return UnknownJudge(name=str(described["name"]), type=str(described.get("type", "")))
    raise UsageError(f"a judge is of the kind judge, chain or other, not {described['kind']!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownJudge:
    """In the place of somebody's own judge, of which only the name is known."""

    name: str
    type: str = ""

    async def ask(self, _question: Any, /) -> JudgeResult:
        """Raise ``UsageError``."""
        raise UsageError(f"{self.name!r} is a judge of your own ({self.type}), which a description cannot bring back")


def _pick(described: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: described[name] for name in names if name in described}


def _describe_model(model: Any) -> dict[str, Any]:
    function = find_function(model)
    # Only where there is one: a model is described, and its run goes on, as before there were judges in code.
    which = {} if function is None else {"function": function.to_dict()}
    return {
        "name": str(model.name),
        "hosts": [str(host) for host in getattr(model, "hosts", ())],
        # Whether the form was sent, and so what replies look like.
        "structured": bool(getattr(model, "structured", False)),
        "max_input_characters": getattr(model, "max_input_characters", None),
        **which,
    }


def _read(judge: Any, names: tuple[str, ...]) -> dict[str, Any]:
    return {name: to_plain(getattr(judge, name)) for name in names}
