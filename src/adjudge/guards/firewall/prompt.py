"""The prompt firewall: a judge checks rules from other people or services before they reach a prompt."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, get_args

from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import ReadOnly, check_choice, check_hook, check_label
from adjudge.formats.invisible import drop_unseen, is_unseen
from adjudge.guards.event import GuardEvent, make_guard_question
from adjudge.guards.firewall.question import (
    RULES,
    RulesReply,
    UnwritableError,
    answer_rules,
    describe_unasked,
    render_rules,
    shorten,
)
from adjudge.guards.firewall.verdict import FirewallVerdict, RejectedRule
from adjudge.hooks import logger, notify
from adjudge.judges.chain import JudgeChain
from adjudge.judges.chain_outcome import COUNTING, ENDING, find_needed_votes
from adjudge.judges.evaluate import JudgeLike, measure_ms
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_chain
from adjudge.question.question import Part, Question
from adjudge.result import DecidedBy, JudgeChainResult, JudgeResult
from adjudge.sync import make_sync_method


def iterate_seats(result: JudgeResult) -> Iterator[JudgeResult]:
    """Yield the results of all seats at any depth, in the order of the seats, and last the result itself."""
    for seat in result.results if isinstance(result, JudgeChainResult) else ():
        yield from iterate_seats(seat)
    yield result


def find_unreliable_judge(result: JudgeResult) -> str:
    """Find a judge whose answer shows that the judging is under attack, and explain it; empty if there is none.

    Such a judge contradicts itself, saw tampering, or rejects a rule that does not exist. Other judges must not outvote
    it, so its answer counts under every strategy.
    """
    for seat in iterate_seats(result):
        if seat.undecided_because in ENDING or (isinstance(seat.value, RulesReply) and not seat.value.usable):
            return shorten(f"judge {seat.judge!r} is not to be relied on: {seat.detail or seat.undecided_because}")
    return ""


def would_pass_others(judge: Any, result: JudgeResult) -> bool:
    """Return whether, by a judge's answer or a chain's strategy, the rules that nobody rejected would have passed.

    A judge that rejected some rules by number has accepted the others. A judge that could not answer, or was cut short,
    has not.
    """
    if not isinstance(result, JudgeChainResult):
        return result.passed or names_rules(result)
    if not isinstance(judge, JudgeChain):
        return result.passed
    # Every strategy asks seats in order, so if there are fewer results than seats, they are of the first ones.
    passes = [
        would_pass_others(seat, seat_result)
        for (_, seat), seat_result in zip(judge.seats, result.results, strict=False)
    ]
    if judge.strategy in COUNTING:
        needed_passes, _ = find_needed_votes(judge.strategy, len(judge.seats), judge.quorum)
        return sum(passes) >= needed_passes
    if judge.strategy == "cascade":  # the last seat that was asked decides, because earlier ones were not sure
        return bool(passes) and passes[-1]
    return any(passes)


def names_rules(seat: JudgeResult) -> bool:
    """Return whether a judge rejected rules by their numbers, so that it is known which ones."""
    return isinstance(seat.value, RulesReply) and seat.value.usable and bool(seat.value.rejected)


_RULE_NUMBERS = (
    # A line that begins like a numbered entry.
    re.compile(r"^\W*(?:(?:rule|item|entry)\W*)?(\d{1,9})\s*[.):\]>|=-]"),
    re.compile(r"\b(?:rule|item|entry|index)\b\W{0,9}(\d{1,9})(?!\w)"),
)

"""The numbers in a folded line of a rule that could be taken for the number of a rule."""

_FENCE_MARK = re.compile(r"<<|>>")
"""The marks of the lines that separate rules in the judge's prompt."""


class SortedRules(NamedTuple):
    """The rules that are allowed, those that are rejected, and who decided."""

    allowed: tuple[str, ...]
    rejected: tuple[RejectedRule, ...]
    decided_by: DecidedBy
    """``policy`` if a judge was unreliable, whatever the chain decided; otherwise who decided for the chain."""


def sort_rules(rules: Sequence[str], chain: JudgeChain, result: JudgeChainResult, *, keeps_others: bool) -> SortedRules:
    """Sort the rules that were checked into allowed and rejected ones.

    With ``keeps_others`` (``on_unsafe="drop_flagged"``), rules that no judge rejected are allowed, unless there
    is a reason to reject all. Without it, one rejected rule rejects all.
    """
    unreliable = find_unreliable_judge(result)
    reasons = _collect_rejections(result, len(rules))
    reason_for_all = unreliable or _find_reason_for_all(rules, chain, result, reasons, keeps_others=keeps_others)
    decided_by: DecidedBy = "policy" if unreliable else result.decided_by
    if not reason_for_all:
        reasons = _reject_duplicates(rules, reasons)
    rejected = [
        RejectedRule(index=index, rule=rule, reason=reasons.get(index) or reason_for_all)
        for index, rule in enumerate(rules, 1)
        if reason_for_all or index in reasons
    ]
    rejected_indexes = {rejected_rule.index for rejected_rule in rejected}
    allowed = tuple(rule for index, rule in enumerate(rules, 1) if index not in rejected_indexes)
    return SortedRules(allowed, tuple(rejected), decided_by)


def explain_undecided(result: JudgeChainResult) -> str:
    """Explain why the judges could not decide, with the reason of each undecided judge."""
    reasons = [
        f"{seat.judge}: {seat.undecided_because}" + (f" ({seat.detail})" if seat.detail else "")
        for seat in iterate_seats(result)
        if seat.undecided_because is not None and not getattr(seat, "results", ())  # a judge, and no chain with seats
    ]
    return shorten(f"the judges could not decide: {result.undecided_because}; {'; '.join(reasons) or result.detail}")


def reject_all(rules: Sequence[str], reason: str) -> tuple[RejectedRule, ...]:
    """Reject every rule for the same reason."""
    return tuple(RejectedRule(index=index, rule=rule, reason=reason) for index, rule in enumerate(rules, 1))


def _collect_rejections(result: JudgeResult, count: int) -> dict[int, str]:
    """Collect the reasons for which any judge rejected a rule, joined, by the rule's number from 1 to ``count``."""
    reasons: dict[int, list[str]] = {}
    for seat in iterate_seats(result):
        for index, reason in seat.value.rejected if isinstance(seat.value, RulesReply) else ():
            text = reason or "the judge gave no reason"
            # A chain's own result repeats the reply of one of its seats.
            if 1 <= index <= count and text not in reasons.setdefault(index, []):
                reasons[index].append(text)
    return {index: "; ".join(text) for index, text in reasons.items()}


def _find_reason_for_all(
    rules: Sequence[str],
    chain: JudgeChain,
    result: JudgeChainResult,
    reasons: Mapping[int, str],
    *,
    keeps_others: bool,
) -> str:
    """Find the reason why all rules are rejected, and not only those with ``reasons``; empty if there is none."""
    if result.outcome == "undecided":
        return explain_undecided(result)
    reason_for_all = _find_unspecific_judge(result)
    if not reason_for_all and not reasons and not result.passed:
        reason_for_all = "the judges found the rules unsafe"
    if reason_for_all or not reasons:
        return reason_for_all
    if not keeps_others:
        return "another rule that came with it was rejected"
    if not would_pass_others(chain, result):
        return "another rule was rejected, and not enough judges answered to clear this one"
    imitator = _find_imitator(rules)
    if imitator:
        return f"a rule was rejected, and rule {imitator} poses as another, so which one was meant is not known"
    return ""


def _find_unspecific_judge(result: JudgeChainResult) -> str:
    """Find a judge that failed the rules without naming one, and explain it; empty if there is none."""
    for seat in iterate_seats(result):
        is_judge = not (isinstance(seat, JudgeChainResult) and seat.results)
        if is_judge and seat.outcome == "failed" and not names_rules(seat):
            return shorten(f"judge {seat.judge!r} found the rules unsafe and named none of them")
    return ""


def _find_imitator(rules: Sequence[str]) -> int:
    """Find the number of the first rule that imitates the number of another, or the fence lines; 0 if none does.

    This matters only if a rule was rejected: by such a rule, a judge can be misled to reject another one by its number,
    and the rule that misled it would be kept. The patterns are broad, because a false alarm only costs the other rules
    of a batch of which one was rejected anyway.
    """
    for index, rule in enumerate(rules, 1):
        # With and without invisible characters: they can split a word such as "rule", and some of them end a line.
        for text in {unicodedata.normalize("NFKC", variant).casefold() for variant in (rule, drop_unseen(rule))}:
            if _FENCE_MARK.search(text) or any(_has_other_number(line, index) for line in text.splitlines()):
                return index
    return 0


def _has_other_number(line: str, index: int) -> bool:
    """Return whether a line has a number that could be taken for a rule's, and is not ``index``."""
    numbers = [int(number) for pattern in _RULE_NUMBERS for number in pattern.findall(line)]
    return any(number != index for number in numbers)


def _reject_duplicates(rules: Sequence[str], reasons: dict[int, str]) -> dict[int, str]:
    """Add to the reasons of rejected rules, by number, those of other rules that read the same as a rejected one."""
    if not reasons:
        return reasons
    folded_rules = [_fold_rule(rule) for rule in rules]
    # In reverse order, so that of several rejected rules that read the same the first is named.
    rejected_numbers = {folded_rules[index - 1]: index for index in sorted(reasons, reverse=True)}
    duplicates = {
        index: f"it reads the same as rule {rejected_numbers[text]}, which was rejected"
        for index, text in enumerate(folded_rules, 1)
        if text in rejected_numbers and index not in reasons
    }
    return reasons | duplicates


def _fold_rule(rule: str) -> str:
    """Fold a rule so that rules which read the same are equal: without case, width, blanks and invisible characters."""
    text = unicodedata.normalize("NFKC", drop_unseen(rule)).casefold()
    return "".join(char for char in text if char.isprintable() and not char.isspace() and not is_unseen(char))


OnUnsafe = Literal["drop_batch", "drop_flagged"]


class PromptFirewall(ReadOnly):
    """Checks with a judge which rules may reach a prompt.

    Raises ``UsageError`` for a judge or an option that cannot be used.

    Args:
        judge: A judge, a chain, an object with ``ask``, or anything that ``Judge`` takes as its model.
        on_unsafe: ``drop_batch`` keeps all rules or none. ``drop_flagged`` keeps the rules that no judge rejected, if
            enough judges answered and all rejections are clear.
        on_event: Called with one event for each check that asked a judge; sync or async. An exception in it is only
            logged.
        name: How events call this firewall, such as the prompt that its rules are for.
    """

    def __init__(
        self,
        judge: JudgeLike | ModelSource,
        *,
        on_unsafe: OnUnsafe = "drop_batch",
        on_event: Callable[[GuardEvent], Any] | None = None,
        name: str = "prompt-firewall",
    ) -> None:
        check_choice("on_unsafe", on_unsafe, get_args(OnUnsafe))
        check_label("name", name)
        check_hook(on_event)
        self.judge = judge
        self.on_unsafe: OnUnsafe = on_unsafe
        self.on_event = on_event
        self.name = name
        self.chain = as_chain(judge)
        """The judge as it is asked."""
        self._is_made = True

    async def check(self, rules: Sequence[str]) -> FirewallVerdict:
        """Check which of some rules may reach a prompt.

        Pass all rules that reach one prompt together, including those of embedded parts, because rules that are not in
        the list are not checked. A rule's text never raises: a rule that cannot be put to a judge is rejected. For an
        empty list, no judge is asked. Raises ``UsageError`` for anything but a list of texts.

        Args:
            rules: The texts of the rules, in order.
        """
        started = time.perf_counter()
        rule_list = _list_rules(rules)
        if not rule_list:
            return FirewallVerdict(allowed=(), duration_ms=measure_ms(started))
        try:
            question = self._make_question(rule_list)
            result = await self.chain.ask(question)
        except (UnwritableError, UsageError) as error:
            # The rules are too long for the judge, or the judge is not set up. Without an answer nothing may pass.
            logger.warning("prompt firewall %r has no answer and rejected %d rules", self.name, len(rule_list))
            reason = shorten(describe_unasked(error))
            return FirewallVerdict(allowed=(), rejected=reject_all(rule_list, reason), duration_ms=measure_ms(started))
        allowed, rejected, decided_by = sort_rules(
            rule_list, self.chain, result, keeps_others=self.on_unsafe == "drop_flagged"
        )
        verdict = FirewallVerdict(
            allowed=allowed,
            rejected=rejected,
            fallback_triggered=decided_by == "policy",
            duration_ms=measure_ms(started),
            chain_result=result,
        )
        logger.info("prompt firewall %r allowed %d of %d rules", self.name, len(allowed), len(rule_list))
        event = GuardEvent(
            kind="prompt",
            guard=self.name,
            subject=question.subject or "",
            passed=verdict.passed,
            allowed_count=len(allowed),
            rejected_count=len(rejected),
            decided_by=decided_by,
            duration_ms=verdict.duration_ms,
        )
        await notify(self.on_event, event, name="on_event")
        return verdict

    check_sync = make_sync_method(check)

    async def aclose(self) -> None:
        """Close the connections of the judge's models."""
        await self.chain.aclose()

    def __repr__(self) -> str:
        return f"PromptFirewall({self.chain.name!r}, on_unsafe={self.on_unsafe!r})"

    def _make_question(self, rules: Sequence[str]) -> Question:
        """Make the firewall's question about rules, one part for each; raises ``UnwritableError`` for too long ones."""
        parts = [Part(label=f"rule {index}", text=text) for index, text in enumerate(render_rules(rules), 1)]
        subject = digest_text(json.dumps(list(rules)))
        # Every seat is waited for, because the rejections of all judges count, and not only those of the quicker ones.
        return make_guard_question(RULES, parts, answer_rules, subject=subject, wants_everybody=True)


def _list_rules(rules: Sequence[str]) -> tuple[str, ...]:
    """Return the rules as a tuple. Raises ``UsageError`` for a single text, and for a rule that is no text."""
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        raise UsageError(f"rules must be a list of texts, got {type(rules).__name__}", argument="rules")
    rule_list = tuple(rules)
    for index, rule in enumerate(rule_list, 1):
        if not isinstance(rule, str):
            raise UsageError(f"rule {index} must be a text, got {type(rule).__name__}", argument="rules")
    return rule_list
