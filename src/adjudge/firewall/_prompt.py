"""The prompt firewall: rules from elsewhere, before they reach a prompt."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from adjudge._evaluate import since
from adjudge._foreign import logger, notify
from adjudge._guard import GuardEvent, make_question, open_chain
from adjudge._sync import run_sync
from adjudge.chain import JudgeChain
from adjudge.content import digest_text
from adjudge.errors import UsageError
from adjudge.firewall._options import check_hook, check_label
from adjudge.firewall._reading import answer_rules, shorten
from adjudge.firewall._sorting import reject_all, sort_rules
from adjudge.firewall._verdicts import FirewallVerdict
from adjudge.firewall._wording import RULES
from adjudge.firewall._writing import UnwritableError, write_rules
from adjudge.question import Part, Question

OnUnsafe = Literal["drop_batch", "drop_flagged"]


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PromptFirewall:
    """Which rules may reach a prompt?

    ``judge`` is a judge, a chain, an object with ``ask``, or whatever ``Judge`` takes as its model. Raises
    ``UsageError`` for anything else and for options that are none.
    """

    judge: Any = field(kw_only=False)
    on_unsafe: OnUnsafe = "drop_batch"
    """``drop_batch`` keeps all rules or none; ``drop_flagged`` keeps what no judge named, where enough of them answered
    and what they named is beyond doubt."""
    on_event: Callable[[GuardEvent], Any] | None = None
    """Called with one event for each check that asked something; sync or async. What it raises is logged."""
    name: str = "prompt-firewall"
    """How events call this firewall, such as the prompt that its rules are for."""
    chain: JudgeChain = field(init=False)
    """The judge as it is asked."""

    def __post_init__(self) -> None:
        if self.on_unsafe not in get_args(OnUnsafe):
            raise UsageError(f"on_unsafe must be one of {', '.join(get_args(OnUnsafe))}; got {self.on_unsafe!r}")
        check_label("name", self.name)
        check_hook(self.on_event)
        object.__setattr__(self, "chain", open_chain(self.judge))

    async def check(self, rules: Sequence[str]) -> FirewallVerdict:
        """Which of some rules may reach a prompt.

        Hand in all rules that reach one prompt together, those of embedded parts included: what is not in the list is
        not checked. No rule's text raises: what cannot be asked about is rejected. An empty list asks nobody.
        ``UsageError`` is raised for what is no list of texts.
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
        parts = [Part(label=f"rule {index}", text=text) for index, text in enumerate(write_rules(rules), 1)]
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
