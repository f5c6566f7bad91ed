"""Conformance cases about firewalls, replayed: what they let through elsewhere, and what is let through here.

As in ``conformance/test_judging_internal.py``, every key of a case must be understood.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from adjudge import InputFirewall, InputRejected, JudgeChain, PromptFirewall
from adjudge.guards import InputVerdict
from adjudge.testing import ScriptedModel
from kit.environment import read_vectors
from kit.loops import run_virtual

Case = Mapping[str, Any]

REMARKS = {"why", "note"}
NO_DETAIL = "<policy:no_detail>"
"""A reason that is the firewall's own."""
FEATURES = ("prompt_firewall", "input_firewall")


def is_remark(case: Case) -> bool:
    """Whether what is recommended is only said in words: then what the original does is held as far as it can be."""
    recommended = case["expect"]["recommended"]
    return recommended != "same" and set(recommended) <= REMARKS


CASES: list[Case] = read_vectors(features=FEATURES)


def find(feature: str) -> list[Any]:
    return [pytest.param(case, id=case["id"]) for case in CASES if case["feature"] == feature]


def expectation(case: Case) -> dict[str, Any]:
    """What is expected of adjudge, without remarks."""
    recommended = case["expect"]["recommended"]
    recommended = case["expect"]["original"] if recommended == "same" else recommended
    return {key: value for key, value in recommended.items() if key not in REMARKS}


def check_known(keys: Any, *known: str) -> None:
    assert set(keys) <= set(known), f"unknown: {sorted(set(keys) - set(known))}"


def make_model(spec: Mapping[str, Any]) -> ScriptedModel:
    """A judge of a case: it replies, or throws."""
    check_known(spec, "name", "reply", "throws")
    return ScriptedModel(RuntimeError(spec["throws"]) if "throws" in spec else spec["reply"], name=spec["name"])


def make_chain(inputs: Mapping[str, Any]) -> tuple[JudgeChain, list[ScriptedModel]]:
    spec = inputs.get("chain") or {"adapters": [inputs["adapter"]] if "adapter" in inputs else []}
    check_known(spec, "adapters", "strategy")
    models = [make_model(item) for item in spec["adapters"]] or [ScriptedModel({"safe": False})]
    options = {"strategy": spec["strategy"]} if "strategy" in spec else {}
    return JudgeChain(models, fail_open=inputs.get("fail_open", False), **options), models


@pytest.mark.parametrize("case", find("prompt_firewall"))
def test_the_prompt_firewall_keeps_what_cases_keep(case: Case):
    """Which rules are allowed, which are rejected and for whose reasons, and whether a policy decided."""
    inputs, expected = case["given"], expectation(case)
    check_known(inputs, "rules", "adapter", "chain", "fail_open")
    check_known(expected, "allowed", "rejected", "fallback_triggered", "status", "rejected_count")
    verdict = run_virtual(PromptFirewall(make_chain(inputs)[0]).check(inputs["rules"]))
    rejected = [item.rule for item in verdict.rejected]

    assert len(verdict.allowed) + len(rejected) == len(inputs["rules"])
    if "status" in expected:
        assert verdict.chain_result.undecided_because == expected["status"]
        assert verdict.allowed == ()
    assert list(verdict.allowed) == expected.get("allowed", list(verdict.allowed))
    assert len(rejected) == expected.get("rejected_count", len(rejected))
    assert verdict.fallback_triggered == expected.get("fallback_triggered", verdict.fallback_triggered)
    if "rejected" in expected:
        assert rejected == [rule for rule, _ in expected["rejected"]]
        named = [reason for _, reason in expected["rejected"] if reason != NO_DETAIL]
        assert [item.reason for item in verdict.rejected if "named none" not in item.reason] == named


@pytest.mark.parametrize("case", find("prompt_firewall.config"))
def test_a_firewall_needs_a_judge(case: Case):
    """Said when it is made, before there is anything to check."""
    assert case["given"]["adapter"] is case["given"]["chain"] is None
    assert "raises" in expectation(case)
    with pytest.raises(ValueError, match="not NoneType"):
        PromptFirewall(case["given"]["adapter"])


@pytest.mark.parametrize("case", find("prompt_firewall.prompt"))
def test_rules_are_encoded_inside_their_fences(case: Case):
    """Each as a JSON string between lines that carry the token."""
    model = ScriptedModel({"safe": True})
    run_virtual(PromptFirewall(model).check(case["given"]["rules"]))
    (request,) = model.requests

    assert is_remark(case)
    for index, rule in enumerate(case["given"]["rules"], 1):
        fenced = f"<<rule {index} {request.token}>>\n{json.dumps(rule)}\n<<end rule {index} {request.token}>>"
        assert fenced in request.user


@pytest.mark.parametrize("case", find("input_firewall"))
def test_the_input_firewall_stops_what_cases_stop(case: Case):
    """Whether the function runs, under which code it is stopped, whether a judge is asked, and what is told."""
    inputs, expected = case["given"], expectation(case)
    check_known(inputs, "args", "adapter", "chain", "tool_name", "error_code", "fail_open")
    if "raises" in expected:
        with pytest.raises(TypeError):  # it is the chain's, and the firewall has no such option to ignore
            InputFirewall(make_chain(inputs)[0], fail_open=inputs["fail_open"])  # type: ignore[call-arg]
        return
    judges, models = make_chain(inputs)
    events: list[Any] = []
    options = {name: inputs[name] for name in ("tool_name", "error_code") if name in inputs}
    firewall = InputFirewall(judges, on_event=events.append, **options)
    ran, code = call(firewall, inputs["args"])
    actual = {
        "handler_called": ran,
        "error_code": code,
        "judge_called": any(model.requests for model in models),
        "events": len(events),
    }

    check_known(expected, *actual)
    assert actual.items() >= expected.items()
    if is_remark(case):
        check_told(case["expect"]["original"], actual, events, firewall.check_sync(inputs["args"]))


def call(firewall: InputFirewall, arguments: Mapping[str, Any]) -> tuple[bool, str | None]:
    """Whether a guarded function ran, and the code of the error when it did not."""
    ran: list[Any] = []

    # The case's arguments, each a parameter of its own, as a tool's are.
    names = ", ".join(arguments)
    scope: dict[str, Any] = {"ran": ran}
    exec(f"def handle({names}): ran.append(1)", scope)
    try:
        firewall.guard()(scope["handle"])(**arguments)
    except InputRejected as error:
        return bool(ran), error.code
    return bool(ran), None


def check_told(
    original: Mapping[str, Any], actual: Mapping[str, Any], events: list[Any], verdict: InputVerdict
) -> None:
    """The event of the original, but for names of tools' actions, which adjudge does not know; and what was found."""
    event = original["event"]
    assert actual.items() >= {key: value for key, value in original.items() if key != "event"}.items()
    reported = events[0]
    assert (reported.kind, reported.guard, reported.passed) == (event["firewallType"], event["tool"], event["passed"])
    assert (reported.allowed_count, reported.rejected_count) == (event["allowedCount"], event["rejectedCount"])
    assert (reported.decided_by == "policy") is event["fallbackTriggered"]
    assert verdict.threats == ()


def test_every_case_is_replayed():
    """No feature of theirs is left out."""
    replayed = {"prompt_firewall", "prompt_firewall.config", "prompt_firewall.prompt", "input_firewall"}

    assert {case["feature"] for case in CASES} <= replayed
