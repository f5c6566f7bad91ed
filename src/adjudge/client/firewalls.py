"""A server's firewalls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.client.connection import Connection
from adjudge.client.request_members import read_answer
from adjudge.content import digest_text
from adjudge.errors import ServerError, UsageError
from adjudge.formats.json import is_json
from adjudge.guards.firewall.prompt import OnUnsafe
from adjudge.guards.firewall.question import render_arguments
from adjudge.guards.firewall.verdict import FirewallVerdict, InputVerdict, RejectedRule
from adjudge.sync import make_sync_method


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteInputFirewall:
    """An input firewall with a judge of a server. Where the server says nothing, the arguments are rejected."""

    connection: Connection
    """The way to the server."""
    judge: str | None = None
    """The name of the server's judge; ``None`` is its default."""
    tool_name: str | None = None
    """The name of the function that is protected, as the judge is shown it."""

    async def check(self, arguments: Mapping[str, Any]) -> InputVerdict:
        """Check whether some arguments may reach a function, as ``InputFirewall.check`` does.

        Args:
            arguments: The arguments by their names, as JSON values.
        """
        if not isinstance(arguments, Mapping):
            raise UsageError(
                f"arguments must be a mapping of names to values, got {type(arguments).__name__}", argument="arguments"
            )
        argument_dict = dict(arguments)
        if not is_json([argument_dict]):
            return InputVerdict(passed=False, detail="nobody was asked: the arguments are not JSON values")
        body = {"arguments": argument_dict, "judge": self.judge, "tool": self.tool_name}
        try:
            reply = await self.connection.post("v1", "firewall", "input", body=body)
            verdict = read_answer(InputVerdict.from_dict, reply, self.connection.url, "verdict")
            _check_arguments(verdict, argument_dict, self.connection.url)
        except ServerError as error:
            return InputVerdict(passed=False, fallback_triggered=True, detail=str(error))
        return verdict

    check_sync = make_sync_method(check)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemotePromptFirewall:
    """A prompt firewall with a judge of a server. Where the server says nothing, no rule is kept."""

    connection: Connection
    """The way to the server."""
    judge: str | None = None
    """The name of the server's judge; ``None`` is its default."""
    on_unsafe: OnUnsafe = "drop_batch"
    """``drop_batch`` keeps all rules or none, ``drop_flagged`` the rules that no judge rejected."""

    async def check(self, rules: Sequence[str]) -> FirewallVerdict:
        """Check which of some rules may reach a prompt, as ``PromptFirewall.check`` does.

        Args:
            rules: All rules that reach the prompt together.
        """
        if isinstance(rules, str) or not isinstance(rules, Sequence):
            raise UsageError(f"rules must be a list of texts, got {type(rules).__name__}", argument="rules")
        rule_list = list(rules)
        if not all(isinstance(rule, str) for rule in rule_list):
            raise UsageError("rules must be a list of texts; one of them is no text", argument="rules")
        body = {"rules": rule_list, "judge": self.judge, "on_unsafe": self.on_unsafe}
        try:
            reply = await self.connection.post("v1", "firewall", "prompt", body=body)
            verdict = read_answer(FirewallVerdict.from_dict, reply, self.connection.url, "verdict")
            _check_rules(verdict, rule_list, self.connection.url)
        except ServerError as error:
            rejected = [
                RejectedRule(index=index, rule=rule, reason=str(error)) for index, rule in enumerate(rule_list, 1)
            ]
            return FirewallVerdict(allowed=(), rejected=tuple(rejected), fallback_triggered=True)
        return verdict

    check_sync = make_sync_method(check)


def _check_arguments(verdict: InputVerdict, arguments: dict[str, Any], url: str) -> None:
    """Raise ``ServerError`` for a verdict that lets through other arguments than were sent."""
    subject = None if verdict.chain_result is None else verdict.chain_result.subject
    if verdict.passed and arguments and subject != digest_text(render_arguments(arguments)):
        raise ServerError(f"{url} answered about other arguments than were sent, so the answer does not count")


def _check_rules(verdict: FirewallVerdict, rules: list[str], url: str) -> None:
    """Raise ``ServerError`` unless a verdict allows or rejects each rule that was sent, and no other rule."""
    rules_by_index = dict(enumerate(rules, 1))  # a rejection names a rule by its number in the list, from 1
    rejected_indexes = {rejection.index for rejection in verdict.rejected}
    kept_rules = [rule for index, rule in rules_by_index.items() if index not in rejected_indexes]
    is_foreign = any(rules_by_index.get(rejection.index) != rejection.rule for rejection in verdict.rejected)
    if list(verdict.allowed) != kept_rules or is_foreign or not rejected_indexes <= rules_by_index.keys():
        raise ServerError(f"{url} answered about other rules than were sent, so the answer does not count")
