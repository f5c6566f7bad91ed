"""Firewalls: rules before they reach a prompt, arguments before they reach a function.

Both put a question to a judge or a chain, like every other guard, so strategies, recording and failing closed are
those of the judge. What they show is data, one fence for each rule, and what they let through is computed here from
the chain's result.
"""

from adjudge.firewall._input import InputFirewall
from adjudge.firewall._prompt import PromptFirewall
from adjudge.firewall._reading import THREATS
from adjudge.firewall._verdicts import FirewallVerdict, InputVerdict, RejectedRule, Threat

__all__ = [
    "THREATS",
    "FirewallVerdict",
    "InputFirewall",
    "InputVerdict",
    "PromptFirewall",
    "RejectedRule",
    "Threat",
]
