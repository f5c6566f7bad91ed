"""``redecide``: the results that a run would have had under another policy, from the replies it kept; nobody is asked.

What a recorded judge or chain would have said, and what cannot be known of it, is decided in ``replay.py``; what a
reply to an earlier question means for the new rubric, in ``question.py``.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from adjudge.dataset.case import Case
from adjudge.errors import Reason, UsageError
from adjudge.formats.arguments import check_flag
from adjudge.formats.plain_data import digest_description, to_plain
from adjudge.formats.record import write_record
from adjudge.formats.sqlite_file import PAGE
from adjudge.judges.chain_outcome import Strategy
from adjudge.judges.description import describe_judge, digest_judge, name_functions
from adjudge.judges.evaluate import RubricSource, decide_by_rules
from adjudge.models.replies.key import make_reply_key
from adjudge.models.replies.row import Row
from adjudge.models.replies.run_replies import read_row
from adjudge.result import JudgeResult, Outcome
from adjudge.runs.case_terms import Terms, read_terms
from adjudge.runs.folder import MANIFEST_FILE, Run, RunLock, make_manifest, open_run, write_manifest
from adjudge.runs.item import RunItem
from adjudge.runs.redecision.policy import RedecisionPolicy, read_policy
from adjudge.runs.redecision.question import Reading, find_result, make_reading
from adjudge.runs.redecision.replay import ReplayedResult, Replayer, renew_result
from adjudge.runs.store import RunStore
from adjudge.sync import run_sync

MOST_CHANGES = 2_000
"""Changed judgements that a ``Redecision`` lists; a run in a folder of its own has all of them."""


_MOST_READINGS = 1_000
"""Pairs of rubrics that are remembered: every case may have brought one of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A judgement whose outcome differs under the new policy."""

    case: str
    """The id of the case."""
    sample: int
    """The number of the judgement among the repeated ones of the case, from 0."""
    before: Outcome
    """The outcome in the run."""
    after: Outcome
    """The outcome under the new policy."""
    score_before: float | None
    """The score in the run; ``None`` without one."""
    score_after: float | None
    """The score under the new policy; ``None`` without one."""
    because: Reason | None
    """The reason why it is undecided now."""
    known: bool
    """False if the new outcome is unknown, because a question was not asked in the run."""
    detail: str
    """One sentence about what decided now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Redecision:
    """The outcomes of a run under another policy."""

    schema: ClassVar[str] = "adjudge/redecision/1"

    run: str
    """The id of the run whose replies were read."""
    policy: Mapping[str, Any]
    """The changes you made, by the argument names of ``redecide``, as plain data."""
    items: int
    """Judgements that were looked at."""
    before: Mapping[str, int]
    """The number that passed, failed and were undecided in the run."""
    after: Mapping[str, int]
    """The same under the new policy."""
    changed: int
    """Judgements with another outcome."""
    changes: tuple[Change, ...]
    """The first 2,000 of them, in the order of the data."""
    unknown: int
    """Judgements that are undecided now because a question was not asked in the run."""
    unknown_because: Mapping[str, int]
    """The questions that were not asked, with the number of judgements for each."""
    kept_own: int = 0
    """Judgements of cases that keep criteria, a rubric or a threshold of their own against the new ones; with
    ``all_cases`` there are none."""
    folder: str | None = None
    """The folder that the redecided run was written to."""

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


def redecide(
    run: Run | str | os.PathLike[str],
    *,
    rubric: RubricSource | None = None,
    threshold: float | None = None,
    all_cases: bool = False,
    strategy: Strategy | None = None,
    quorum: int | None = None,
    escalate_below: float | Sequence[float] | None = None,
    abstain_below: float | None = None,
    fail_open: bool | None = None,
    judges: Sequence[str] | None = None,
    result_format: type[Any] | None = None,
    passes: Callable[[Any], bool] | None = None,
    out: str | os.PathLike[str] | None = None,
    command: Sequence[str] | None = None,
) -> Redecision:
    """Compute the results of a run under another policy from its stored replies. No model is asked.

    A case that brought criteria, a rubric or a threshold keeps them, unless ``all_cases`` is set. Arguments that you
    leave out stay as in the run. Replies are read as strictly as in the run, rules of criteria check the stored
    contents, and timeouts stay timeouts.

    If the new policy needs an answer that the run does not have (a criterion in other words, a seat that was never
    asked), the judgement is undecided and counted as ``unknown``; ``fail_open`` never lets it pass. If the run had
    ``result_format`` or ``passes``, pass them again. Raises ``UsageError`` for a run that cannot be read, and for a
    policy that does not fit it.

    Args:
        run: The run, or its folder.
        rubric: The rubric, which may have other weights, thresholds and rules, and fewer criteria.
        threshold: The passing threshold in place of the rubric's, from 0 to 1.
        all_cases: Apply the new criteria, rubric or threshold also to cases that brought their own.
        strategy: The strategy, as for ``JudgeChain``.
        quorum: How many seats must pass, for the strategy ``quorum``.
        escalate_below: Ask the next seat below this confidence, for ``cascade``.
        abstain_below: The confidence below which the last seat of a ``cascade`` is undecided.
        fail_open: Whether an undecided chain passes by policy, as for ``JudgeChain``.
        judges: The names of the seats that count.
        result_format: The run's ``result_format``, if it had one.
        passes: The run's ``passes``, if it had one.
        out: A folder for the redecided run; ``None`` writes none.
        command: The command line that is recorded as what made the new run.
    """
    policy = RedecisionPolicy(
        rubric=rubric,
        threshold=threshold,
        all_cases=check_flag("all_cases", all_cases) or None,
        strategy=strategy,
        quorum=quorum,
        escalate_below=escalate_below,
        abstain_below=abstain_below,
        fail_open=fail_open,
        judges=judges,
        result_format=result_format,
        passes=passes,
    )
    opened = run if isinstance(run, Run) else open_run(run)
    try:
        return _RunRedecision(opened, policy).redecide(None if out is None else Path(out), command)
    finally:
        if opened is not run:
            opened.close()


class _RunRedecision:
    """The redecision of one run. It holds one page of items in memory at a time, so the run may be of any size."""

    def __init__(self, run: Run, policy: RedecisionPolicy) -> None:
        self.run, self.policy = run, policy
        self.judge, self.reading = read_policy(run.manifest, policy)
        question, rubric = run.manifest["asked"], run.manifest["rubric"] or {}
        self._names_model = bool(question.get("model") or rubric.get("model"))
        self._outcomes_before: Counter[str] = Counter(passed=0, failed=0, undecided=0)
        self._outcomes_after: Counter[str] = Counter(passed=0, failed=0, undecided=0)
        self._unknown_reasons: Counter[str] = Counter()
        self._changes: list[Change] = []
        self._changed = self._kept_own_count = 0
        self._old_terms = read_terms(run.manifest)
        applies_to_all = bool(policy.all_cases)
        self._new_terms = Terms(
            rubric=self.reading.rubric,
            threshold=_choose_threshold(policy, self._old_terms.threshold),
            over_rubrics=applies_to_all and policy.rubric is not None,
            over_thresholds=applies_to_all and policy.threshold is not None,
        )
        self._readings: dict[tuple[str, str], Reading] = {}

    def redecide(self, out: Path | None, command: Sequence[str] | None) -> Redecision:
        """Redecide every item, and write the redecided run to the folder ``out`` if one is given."""
        for item in islice(self.run.items(), 1):
            find_result(item)  # refuses a run of pairs before anything is written
        if out is None:
            self._redecide_all(None)
        else:
            self._write_all(out, command)
        return Redecision(
            run=self.run.id,
            policy=self._describe_run()["policy"],
            items=sum(self._outcomes_before.values()),
            before=dict(self._outcomes_before),
            after=dict(self._outcomes_after),
            changed=self._changed,
            changes=tuple(self._changes),
            unknown=sum(self._unknown_reasons.values()),
            unknown_because=dict(self._unknown_reasons.most_common()),
            kept_own=self._kept_own_count,
            folder=None if out is None else str(out),
        )

    def _write_all(self, out: Path, command: Sequence[str] | None) -> None:
        """Redecide every item, and write a run of the new results; if that fails, its status is ``interrupted``."""
        redecided = RedecidedRun(self.run, out, self._describe_run(), command)
        redecided.begin()
        is_complete = False
        try:
            run_sync(redecided.copy_replies())
            self._redecide_all(redecided)
            is_complete = True
        finally:
            redecided.end(is_complete=is_complete)

    def _redecide_all(self, redecided: RedecidedRun | None) -> None:
        """Redecide and count every item, and write it to ``redecided`` if that is given."""
        items = self.run.items()
        # Each page is a call of its own, so that Ctrl-C ends this between two pages. The items of a page are committed
        # together.
        while page := list(islice(items, PAGE)):
            run_sync(self._redecide_page(page, redecided))

    async def _redecide_page(self, page: Sequence[RunItem], redecided: RedecidedRun | None) -> None:
        """Redecide, count and write the items of one page."""
        replayed_items = [(item, await self._redecide_item(item)) for item in page]
        for item, replayed in replayed_items:
            self._count_judgement(item, replayed)
        if redecided is not None:
            await redecided.keep([replace(item, result=replayed.result) for item, replayed in replayed_items])

    async def _redecide_item(self, item: RunItem) -> ReplayedResult:
        """Redecide one item. If its new result cannot be known, ``unknown`` of the returned value says why.

        Raises ``UsageError`` for a pair.
        """
        result = item.result
        if not isinstance(result, JudgeResult):
            raise UsageError("this run compared pairs, which no threshold decides; redecide a run of single cases")
        if item.erased:
            return ReplayedResult(result=result, unknown="its texts and replies were deleted by `adjudge forget`")
        if result.undecided_because == "error" and not result.attempts and not getattr(result, "results", ()):
            return ReplayedResult(result=result)  # an error before a model was asked, which the policy does not change
        try:
            reading = self._find_reading(item.case)
            question = await reading.make_question(item)
        except UsageError as error:
            return ReplayedResult(result=result, unknown=str(error))
        answer = decide_by_rules(question)
        if answer is not None:
            return ReplayedResult(result=renew_result(self.judge._make_result_of_rules(question, answer, 0.0), result))  # noqa: SLF001 - as a run does

        def find_kept_reply(model: str, seat: int, attempt: int) -> Row | None:
            place = make_reply_key(
                case=item.case.id, order=None, sample=item.sample, model=model, seat=seat, attempt=attempt
            )
            return read_row(self.run.store.find_reply(place))

        replayer = Replayer(
            reading=reading,
            question=question,
            find=find_kept_reply,
            keeps_judges=self.policy.keeps_judges,
            names_model=self._names_model or (item.rubric is not None and item.rubric.model is not None),
        )
        return await replayer.replay(self.judge, result, self.judge.name)

    def _find_reading(self, case: Case) -> Reading:
        """Return the reading of the replies about a case, by its own criteria if the policy keeps these."""
        if not case.brings_own:
            return self.reading
        old_rubric, new_rubric = self._old_terms.find_rubric(case), self._new_terms.find_rubric(case)
        if old_rubric is None or new_rubric is None:
            return self.reading
        key = old_rubric.digest, new_rubric.digest
        if key not in self._readings:
            if len(self._readings) >= _MOST_READINGS:
                self._readings.clear()
            self._readings[key] = make_reading(
                to_plain(old_rubric.to_dict()),
                new_rubric,
                reference=self.reading.reference,
                value_type=self.reading.value_type,
                passes=self.reading.passes,
            )
        return self._readings[key]

    def _keeps_own(self, case: Case) -> bool:
        """Return whether a case keeps its own rubric or threshold, though the policy changes that of other cases."""
        brings_criteria = case.criteria is not None or case.rubric is not None
        if self.policy.rubric is not None and brings_criteria and not self._new_terms.over_rubrics:
            return True
        overrides_threshold = self._new_terms.over_thresholds or self._new_terms.over_rubrics
        return self.policy.threshold is not None and case.threshold is not None and not overrides_threshold

    def _count_judgement(self, item: RunItem, replayed: ReplayedResult) -> None:
        """Count a judgement before and after, and list it if its outcome changed."""
        self._kept_own_count += self._keeps_own(item.case)
        old_result, new_result = item.result, replayed.result
        self._outcomes_before[old_result.outcome] += 1
        self._outcomes_after[new_result.outcome] += 1
        if replayed.unknown:
            self._unknown_reasons[replayed.unknown] += 1
        if old_result.outcome == new_result.outcome:
            return
        self._changed += 1
        if len(self._changes) < MOST_CHANGES:
            self._changes.append(
                Change(
                    case=item.case.id,
                    sample=item.sample,
                    before=old_result.outcome,
                    after=new_result.outcome,
                    score_before=old_result.score,
                    score_after=new_result.score,
                    because=new_result.undecided_because,
                    known=not replayed.unknown,
                    detail=new_result.explain(),
                )
            )

    def _describe_run(self) -> dict[str, Any]:
        """Describe the redecided run for its manifest: judge, rubric, digests, policy and threshold."""
        rubric = self.reading.rubric.to_dict() if self.reading.rubric is not None else None
        judge = describe_judge(self.judge)
        policy = self.policy.changes | ({"rubric": rubric} if self.policy.rubric is not None else {})
        for name in ("result_format", "passes"):
            if name in policy:
                policy[name] = getattr(policy[name], "__qualname__", type(policy[name]).__name__)
        digests = {**self.run.manifest["digests"], "judge": digest_judge(judge), "rubric": digest_description(rubric)}
        members = {"judge": judge, "rubric": to_plain(rubric), "digests": digests, "policy": to_plain(policy)}
        return members | {"threshold": self._new_terms.threshold}


def _choose_threshold(policy: RedecisionPolicy, old_threshold: float | None) -> float | None:
    """Return the threshold of the redecided run: the policy's, else the old run's unless there is a new rubric."""
    if policy.threshold is not None:
        return float(policy.threshold)
    return old_threshold if policy.rubric is None else None


class _ReplyOwner(msgspec.Struct):
    """The members of a kept reply by which its key is made: model, case, order, sample, seat and attempt."""

    model: str
    case: str | None = None
    order: str | None = None
    sample: int = 0
    seat: int = 0
    attempt: int = 1


class RedecidedRun:
    """The folder that a redecided run is written to."""

    def __init__(
        self, source: Run, folder: Path, description: Mapping[str, Any], command: Sequence[str] | None
    ) -> None:
        self.source, self.folder = source, folder
        criteria_counts = {"own": source.manifest["own"]} if "own" in source.manifest else {}
        self.manifest = make_manifest(
            command=command,
            dataset=source.manifest["dataset"],
            asked=source.manifest["asked"],
            options={**source.manifest["options"], "threshold": description["threshold"]},
            **criteria_counts,
            judge=description["judge"],
            rubric=description["rubric"],
            digests=description["digests"],
            redecided={"run": source.id, "policy": description["policy"]},
        )
        self._lock = RunLock(folder)
        self._store = RunStore(folder)

    def begin(self) -> None:
        """Make the folder, and write the manifest and an empty file of results.

        Raises ``UsageError`` if there is a run in the folder, or if it cannot be written.
        """
        try:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise UsageError(
                f"the run {self.folder} cannot be written: {error.strerror}; name another folder"
            ) from None
        if (self.folder / MANIFEST_FILE).exists():
            raise UsageError(f"{self.folder} holds a run already; name another folder")
        self._lock.acquire()
        try:
            write_manifest(self.folder, self.manifest)
            self._store.create()
        except BaseException:
            self._lock.release()
            raise

    async def copy_replies(self) -> None:
        """Copy every kept reply of the source, so that the new run can be resumed and asks only for missing ones."""
        replies = self.source.store.replies()
        decoder = msgspec.json.Decoder(_ReplyOwner)
        while page := list(islice(replies, PAGE)):
            for body in page:
                self._keep_reply(decoder, body)
            await self._store.flush()

    def _keep_reply(self, decoder: msgspec.json.Decoder[_ReplyOwner], body: bytes) -> None:
        """Write a reply under the key made of its own members; one that cannot be decoded is left out."""
        try:
            owner = decoder.decode(body)
        except msgspec.DecodeError:  # without its members, the reply could not be found in either run
            return
        key = make_reply_key(
            case=owner.case,
            order=owner.order,
            sample=owner.sample,
            model=owner.model,
            seat=owner.seat,
            attempt=owner.attempt,
        )
        self._store.keep_reply(key, body)

    async def keep(self, items: Iterable[RunItem]) -> None:
        """Write some items, and wait until they are written; they share a commit."""
        async with asyncio.TaskGroup() as group:
            for item in items:
                group.create_task(self._store.keep(item))

    def end(self, *, is_complete: bool) -> None:
        """Write status, counts and summary into the manifest, and close the files."""
        try:
            summary = self._store.sum_up(name_functions(self.manifest["judge"]))
            status = "finished" if is_complete and self.source.status == "finished" else "interrupted"
            now = datetime.now(UTC).isoformat()
            counts = summary.pop("counts")
            write_manifest(
                self.folder,
                {**self.manifest, "status": status, "updated_at": now, "counts": counts, "summary": summary},
            )
        finally:
            self._store.close()
            self._lock.release()
