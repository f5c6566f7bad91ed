"""The prompt firewall: rules from elsewhere, before they reach a prompt."""

from __future__ import annotations

import json
import re
import time
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_hook, check_label
from adjudge.formats.invisible import drop_unseen, is_unseen
from adjudge.guards.event import GuardEvent, make_question
from adjudge.guards.firewall.question import RULES, RulesReply, UnwritableError, answer_rules, render_rules, shorten
from adjudge.guards.firewall.verdict import FirewallVerdict, RejectedRule
from adjudge.hooks import logger, notify
from adjudge.judges.chain import JudgeChain
from adjudge.judges.evaluate import JudgeLike, since
from adjudge.judges.judge import ModelSource
from adjudge.judges.open import as_chain
from adjudge.judges.strategies import COUNTING, ENDING, needed
from adjudge.question.question import Part, Question
from adjudge.result import DecidedBy, JudgeChainResult, JudgeResult
from adjudge.sync import run_sync


def iterate_seats(result: JudgeResult) -> Iterator[JudgeResult]:
    """A result and all it rests on, at any depth, in seat order; a chain after its seats."""
    for seat in result.results if isinstance(result, JudgeChainResult) else ():
        yield from iterate_seats(seat)
    yield result


def find_spoiled(result: JudgeResult) -> str:
    """Why no judge of this result is to be believed, or nothing.

    A judge that contradicts itself, or saw tampering, has no opinion that others could outvote: it is a sign that the
    judging is under attack, whatever a counting strategy makes of the rest. So is one that rejects what is not there.
    """
    for seat in iterate_seats(result):
        if seat.undecided_because in ENDING or (isinstance(seat.value, RulesReply) and not seat.value.usable):
            return shorten(f"judge {seat.judge!r} is not to be relied on: {seat.detail or seat.undecided_because}")
    return ""


def would_pass(judge: Any, result: JudgeResult) -> bool:
    """Whether a chain would have passed what none of its judges named, by its own strategy.

    A judge that rejected some rules by name has looked at the others and let them be. One that could not answer, or
    was cut short, has not.
    """
    if not isinstance(result, JudgeChainResult):
        return result.passed or names_rules(result)
    if not isinstance(judge, JudgeChain):
        return result.passed
    # Seats are asked in order, under every strategy, so results stand beside the first of them.
    kept = [would_pass(seat, said) for (_, seat), said in zip(judge.seats, result.results, strict=False)]
    if judge.strategy in COUNTING:
        return sum(kept) >= needed(judge.strategy, len(judge.seats), judge.quorum)[0]
    if judge.strategy == "cascade":  # an earlier seat was not sure
        return bool(kept) and kept[-1]
    return any(kept)


def names_rules(seat: JudgeResult) -> bool:
    """Whether a judge rejected rules by number."""
    return isinstance(seat.value, RulesReply) and seat.value.usable and bool(seat.value.rejected)


_POSES = (
    re.compile(r"^\W*(?:(?:rule|item|entry)\W*)?(\d{1,9})\s*[.):\]>|=-]"),  # a line that begins like a numbered entry
    re.compile(r"\b(?:rule|item|entry|index)\b\W{0,9}(\d{1,9})(?!\w)"),
)

_FENCE = re.compile(r"<<|>>")


class SortedRules(NamedTuple):
    """Rules, each allowed or rejected, and who decided."""

    allowed: tuple[str, ...]
    rejected: tuple[RejectedRule, ...]
    decided_by: DecidedBy


def sort_rules(rules: Sequence[str], chain: JudgeChain, result: JudgeChainResult, *, keep_rest: bool) -> SortedRules:
    """Which rules are kept; whenever that cannot be known, none."""
    spoiled = find_spoiled(result)
    named = _collect_named(result, len(rules))
    whole = spoiled or _find_objection(rules, chain, result, named, keep_rest=keep_rest)
    decided_by: DecidedBy = "policy" if spoiled else result.decided_by
    if not whole:
        named = _add_copies(rules, named)
    rejected = [
        RejectedRule(index=index, rule=rule, reason=named.get(index) or whole)
        for index, rule in enumerate(rules, 1)
        if whole or index in named
    ]
    gone = {item.index for item in rejected}
    allowed = tuple(rule for index, rule in enumerate(rules, 1) if index not in gone)
    return SortedRules(allowed, tuple(rejected), decided_by)


def reject_all(rules: Sequence[str], reason: str) -> tuple[RejectedRule, ...]:
    """Every rule, rejected for one reason."""
    return tuple(RejectedRule(index=index, rule=rule, reason=reason) for index, rule in enumerate(rules, 1))


def _collect_named(result: JudgeResult, count: int) -> dict[int, str]:
    """The rules that any judge rejected, with every judge's reason."""
    reasons: dict[int, list[str]] = {}
    for seat in iterate_seats(result):
        for index, reason in seat.value.rejected if isinstance(seat.value, RulesReply) else ():
            said = reason or "the judge gave no reason"
            # A chain shows what one of its seats said once more.
            if 1 <= index <= count and said not in reasons.setdefault(index, []):
                reasons[index].append(said)
    return {index: "; ".join(said) for index, said in reasons.items()}


def _find_objection(
    rules: Sequence[str], chain: JudgeChain, result: JudgeChainResult, named: Mapping[int, str], *, keep_rest: bool
) -> str:
    """Why nothing is kept, or nothing."""
    if result.outcome == "undecided":
        return shorten(f"the judges could not decide: {result.undecided_because}; {result.detail}")
    whole = _find_bare(result) or ("" if named or result.passed else "the judges found the rules unsafe")
    if whole or not named:
        return whole
    if not keep_rest:
        return "another rule that came with it was rejected"
    if not would_pass(chain, result):
        return "another rule was rejected, and not enough judges answered to clear this one"
    posing = _find_posing(rules)
    if posing:
        return f"a rule was rejected, and rule {posing} poses as another, so which one was meant is not known"
    return ""


def _find_bare(result: JudgeChainResult) -> str:
    """Who found the rules unsafe and named none, so that it may mean any, or nothing."""
    for seat in iterate_seats(result):
        leaf = not (isinstance(seat, JudgeChainResult) and seat.results)
        if leaf and seat.outcome == "failed" and not names_rules(seat):
            return shorten(f"judge {seat.judge!r} found the rules unsafe and named none of them")
    return ""


def _find_posing(rules: Sequence[str]) -> int:
    """The first rule that imitates the number of another, or the lines around rules; 0 when there is none.

    Asked only when something was rejected: a judge that took the bait then named an innocent rule, and the one that
    laid it out would be kept. Crude on purpose, since a false alarm costs no more than the rest of a rejected batch.
    """
    for index, rule in enumerate(rules, 1):
        # What nobody sees may stand inside a number's word, and may be what ends a line: both are looked at.
        for text in {unicodedata.normalize("NFKC", said).casefold() for said in (rule, drop_unseen(rule))}:
            if _FENCE.search(text) or any(_names_another(line, index) for line in text.splitlines()):
                return index
    return 0


def _names_another(line: str, index: int) -> bool:
    found = [int(number) for pattern in _POSES for number in pattern.findall(line)]
    return any(number != index for number in found)


def _add_copies(rules: Sequence[str], named: dict[int, str]) -> dict[int, str]:
    """The rejected rules and whatever reads the same as one of them: what is refused once is not kept as a copy."""
    if not named:
        return named
    shapes = [_shape(rule) for rule in rules]
    first = {shapes[index - 1]: index for index in sorted(named, reverse=True)}
    copies = {
        index: f"it reads the same as rule {first[shape]}, which was rejected"
        for index, shape in enumerate(shapes, 1)
        if shape in first and index not in named
    }
    return named | copies


def _shape(rule: str) -> str:
    """A rule without what a reader does not see: case, width, spacing, invisible characters."""
    text = unicodedata.normalize("NFKC", drop_unseen(rule)).casefold()
    return "".join(char for char in text if char.isprintable() and not char.isspace() and not is_unseen(char))


OnUnsafe = Literal["drop_batch", "drop_flagged"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PromptFirewall:
    """Checks with a judge which rules may reach a prompt.

    ``judge`` is a judge, a chain, an object with ``ask``, or anything that ``Judge`` takes as its model. Raises
    ``UsageError`` for anything else, and for invalid options.
    """

    judge: JudgeLike | ModelSource = field(kw_only=False)
    on_unsafe: OnUnsafe = "drop_batch"
    """``drop_batch`` keeps all rules or none. ``drop_flagged`` keeps the rules that no judge rejected, if enough judges
    answered and all rejections are clear.
    """
    on_event: Callable[[GuardEvent], Any] | None = None
    """Called with one event for each check that asked a judge; sync or async. An exception in it is only logged."""
    name: str = "prompt-firewall"
    """How events call this firewall, such as the prompt that its rules are for."""
    chain: JudgeChain = field(init=False)
    """The judge as it is asked."""

    def __post_init__(self) -> None:
        check_choice("on_unsafe", self.on_unsafe, get_args(OnUnsafe))
        check_label("name", self.name)
        check_hook(self.on_event)
        object.__setattr__(self, "chain", as_chain(self.judge))

    async def check(self, rules: Sequence[str]) -> FirewallVerdict:
        """Check which of some rules may reach a prompt.

        Pass all rules that reach one prompt together, including those of embedded parts, because rules that are not in
        the list are not checked. A rule's text never raises: a rule that cannot be put to a judge is rejected. For an
        empty list, no judge is asked. Raises ``UsageError`` for anything but a list of texts.
        """
        started = time.perf_counter()
        given = _list_rules(rules)
        if not given:
            return FirewallVerdict(allowed=(), duration_ms=since(started))
        try:
            question = self._pose(given)
            result = await self.chain.ask(question)
        except (UnwritableError, UsageError) as error:
            # Too much for this judge, or one that is not set up: nobody was asked, so nothing may pass.
            logger.warning("prompt firewall %r asked nobody and rejected %d rules", self.name, len(given))
            reason = shorten(f"nobody was asked: {error}")
            return FirewallVerdict(allowed=(), rejected=reject_all(given, reason), duration_ms=since(started))
        allowed, rejected, decided_by = sort_rules(
            given, self.chain, result, keep_rest=self.on_unsafe == "drop_flagged"
        )
        verdict = FirewallVerdict(
            allowed=allowed,
            rejected=rejected,
            fallback_triggered=decided_by == "policy",
            duration_ms=since(started),
            chain_result=result,
        )
        logger.info("prompt firewall %r allowed %d of %d rules", self.name, len(allowed), len(given))
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
        await notify(self.on_event, event, what="on_event")
        return verdict

    def check_sync(self, rules: Sequence[str]) -> FirewallVerdict:
        """``check`` for callers without an event loop; works inside a running loop too, and blocks it."""
        return run_sync(self.check(rules))

    async def aclose(self) -> None:
        """Close the connections of the judge's models."""
        await self.chain.aclose()

    def __repr__(self) -> str:
        return f"PromptFirewall({self.chain.name!r}, on_unsafe={self.on_unsafe!r})"

    def _pose(self, rules: Sequence[str]) -> Question:
        parts = [Part(label=f"rule {index}", text=text) for index, text in enumerate(render_rules(rules), 1)]
        subject = digest_text(json.dumps(list(rules)))
        # Everybody's rejections count, so nobody is cut short: what is kept must not depend on who is quicker.
        return make_question(RULES, parts, answer_rules, subject=subject, wants_everybody=True)


def _list_rules(rules: Sequence[str]) -> tuple[str, ...]:
    if isinstance(rules, str) or not isinstance(rules, Sequence):
        raise UsageError(f"rules must be a list of texts, got {type(rules).__name__}")
    given = tuple(rules)
    for index, rule in enumerate(given, 1):
        if not isinstance(rule, str):
            raise UsageError(f"rule {index} must be a text, got {type(rule).__name__}")
    return given
