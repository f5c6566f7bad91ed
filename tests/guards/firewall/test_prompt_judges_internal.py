"""What a judge's object says of rules."""

from __future__ import annotations

from adjudge.guards.firewall.question import RulesReply
from kit.firewalls import RULES, check
from kit.judges import Seat


def test_a_judge_of_another_kind_decides_too():
    """One that says only yes or no: its no names nothing. A value it did not get from a reply is checked as well."""
    assert check(Seat("passed")).allowed == RULES
    assert check(Seat("failed"), on_unsafe="drop_flagged").allowed == ()
    for value in (RulesReply(rejected=((7, "none such"),)), RulesReply(rejected=((0, ""),))):
        assert check(Seat("failed", value=value), on_unsafe="drop_flagged").allowed == ()
    assert check(Seat("passed", value=RulesReply(usable=False))).allowed == ()
