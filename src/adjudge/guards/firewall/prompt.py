"""The prompt firewall: rules from elsewhere, before they reach a prompt."""

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
    """Yield a result and all it rests on, at any depth, in seat order; a chain after its seats."""
    for seat in result.results if isinstance(result, JudgeChainResult) else ():
        yield from iterate_seats(seat)
    yield result


def find_unreliable_judge(result: JudgeResult) -> str:
    """Say why no judge of this result is to be believed; empty if all are.

    A judge that contradicts itself, or saw tampering, has no opinion that others could outvote: it is a sign that the
    judging is under attack, whatever a counting strategy makes of the rest. So is one that rejects what is not there.
    """
    for seat in iterate_seats(result):
        if seat.undecided_because in ENDING or (isinstance(seat.value, RulesReply) and not seat.value.usable):
            return shorten(f"judge {seat.judge!r} is not to be relied on: {seat.detail or seat.undecided_because}")
    return ""


def would_pass(judge: Any, result: JudgeResult) -> bool:
    """Return whether a chain would have passed what none of its judges named, by its own strategy.

    A judge that rejected some rules by name has looked at the others and let them be. One that could not answer, or
    was cut short, has not.
    """
    if not isinstance(result, JudgeChainResult):
        return result.passed or names_rules(result)
    if not isinstance(judge, JudgeChain):
        return result.passed
    # Seats are asked in order, under every strategy, so results belong to the first of them.
    passes = [
        would_pass(seat, seat_result) for (_, seat), seat_result in zip(judge.seats, result.results, strict=False)
    ]
    if judge.strategy in COUNTING:
        return sum(passes) >= find_needed_votes(judge.strategy, len(judge.seats), judge.quorum)[0]
    if judge.strategy == "cascade":  # an earlier seat was not sure
        return bool(passes) and passes[-1]
    return any(passes)


def names_rules(seat: JudgeResult) -> bool:
    """Return whether a judge rejected rules by number."""
    return isinstance(seat.value, RulesReply) and seat.value.usable and bool(seat.value.rejected)


_POSES = (
    # A line that begins like a numbered entry.
    re.compile(r"^\W*(?:(?:rule|item|entry)\W*)?(\d{1,9})\s*[.):\]>|=-]"),
    re.compile(r"\b(?:rule|item|entry|index)\b\W{0,9}(\d{1,9})(?!\w)"),
)

_FENCE = re.compile(r"<<|>>")


class SortedRules(NamedTuple):
    """Rules, each allowed or rejected, and who decided."""

    allowed: tuple[str, ...]
    rejected: tuple[RejectedRule, ...]
    decided_by: DecidedBy
    """``policy`` where a judge was unreliable, whatever the chain decided; else who decided for the chain."""


def sort_rules(rules: Sequence[str], chain: JudgeChain, result: JudgeChainResult, *, keep_rest: bool) -> SortedRules:
    """Sort the rules that were checked into allowed and rejected ones; where that cannot be known, all are rejected.

    With ``keep_rest``, the rules that no judge rejected are kept (``drop_flagged``); else one rejection rejects all.
    """
    unreliable = find_unreliable_judge(result)
    reasons = _collect_rejections(result, len(rules))
    reason_for_all = unreliable or _find_objection(rules, chain, result, reasons, keep_rest=keep_rest)
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
    """Explain why judges could not decide: each with its reason, and what went wrong."""
    reasons = [
        f"{seat.judge}: {seat.undecided_because}" + (f" ({seat.detail})" if seat.detail else "")
        for seat in iterate_seats(result)
        if seat.undecided_because is not None and not getattr(seat, "results", ())
    ]
    return shorten(f"the judges could not decide: {result.undecided_because}; {'; '.join(reasons) or result.detail}")


def reject_all(rules: Sequence[str], reason: str) -> tuple[RejectedRule, ...]:
    """Reject every rule, for one reason."""
    return tuple(RejectedRule(index=index, rule=rule, reason=reason) for index, rule in enumerate(rules, 1))


def _collect_rejections(result: JudgeResult, count: int) -> dict[int, str]:
    """Collect the rules that any judge rejected, with every judge's reason."""
    reasons: dict[int, list[str]] = {}
    for seat in iterate_seats(result):
        for index, reason in seat.value.rejected if isinstance(seat.value, RulesReply) else ():
            text = reason or "the judge gave no reason"
            # A chain shows what one of its seats said once more.
            if 1 <= index <= count and text not in reasons.setdefault(index, []):
                reasons[index].append(text)
    return {index: "; ".join(text) for index, text in reasons.items()}


def _find_objection(
    rules: Sequence[str], chain: JudgeChain, result: JudgeChainResult, reasons: Mapping[int, str], *, keep_rest: bool
) -> str:
    """Say why all rules are rejected; empty if some may be kept."""
    if result.outcome == "undecided":
        return explain_undecided(result)
    objection = _find_unspecific(result) or ("" if reasons or result.passed else "the judges found the rules unsafe")
    if objection or not reasons:
        return objection
    if not keep_rest:
        return "another rule that came with it was rejected"
    if not would_pass(chain, result):
        return "another rule was rejected, and not enough judges answered to clear this one"
    imitator = _find_imitator(rules)
    if imitator:
        return f"a rule was rejected, and rule {imitator} poses as another, so which one was meant is not known"
    return ""


def _find_unspecific(result: JudgeChainResult) -> str:
    """Find a judge that found the rules unsafe and named none, so that it may mean any; empty if there is none."""
    for seat in iterate_seats(result):
        is_judge = not (isinstance(seat, JudgeChainResult) and seat.results)
        if is_judge and seat.outcome == "failed" and not names_rules(seat):
            return shorten(f"judge {seat.judge!r} found the rules unsafe and named none of them")
    return ""


def _find_imitator(rules: Sequence[str]) -> int:
    """Find the first rule that imitates the number of another, or the lines around rules; 0 when there is none.

    Asked only when something was rejected: a judge that took the bait then named an innocent rule, and the one that
    laid it out would be kept. Crude on purpose, since a false alarm costs no more than the rest of a rejected batch.
    """
    for index, rule in enumerate(rules, 1):
        # What nobody sees may stand inside a number's word, and may be what ends a line: both are looked at.
        for text in {unicodedata.normalize("NFKC", variant).casefold() for variant in (rule, drop_unseen(rule))}:
            if _FENCE.search(text) or any(_names_another(line, index) for line in text.splitlines()):
                return index
    return 0


def _names_another(line: str, index: int) -> bool:
    numbers = [int(number) for pattern in _POSES for number in pattern.findall(line)]
    return any(number != index for number in numbers)


def _reject_duplicates(rules: Sequence[str], reasons: dict[int, str]) -> dict[int, str]:
    """Add, to the rejected rules and their reasons, each other rule that reads the same as a rejected one."""
    if not reasons:
        return reasons
    folded = [_fold(rule) for rule in rules]
    originals = {folded[index - 1]: index for index in sorted(reasons, reverse=True)}
    copies = {
        index: f"it reads the same as rule {originals[text]}, which was rejected"
        for index, text in enumerate(folded, 1)
        if text in originals and index not in reasons
    }
    return reasons | copies


def _fold(rule: str) -> str:
    """Fold a rule: drop what a reader does not see, which is case, width, spacing, invisible characters."""
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
            # Too much for this judge, or one that is not set up: nobody answered, so nothing may pass.
            logger.warning("prompt firewall %r has no answer and rejected %d rules", self.name, len(rule_list))
            reason = shorten(describe_unasked(error))
            return FirewallVerdict(allowed=(), rejected=reject_all(rule_list, reason), duration_ms=measure_ms(started))
        allowed, rejected, decided_by = sort_rules(
            rule_list, self.chain, result, keep_rest=self.on_unsafe == "drop_flagged"
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
        parts = [Part(label=f"rule {index}", text=text) for index, text in enumerate(render_rules(rules), 1)]
        subject = digest_text(json.dumps(list(rules)))
        # Everybody's rejections count, so nobody is cut short: what is kept must not depend on who is quicker.
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
