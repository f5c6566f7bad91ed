"""The conformance cases of tiers, promotions and forging, each held as what is recommended."""

from __future__ import annotations

from typing import Any

import pytest

from adjudge import ToolRegistry
from adjudge.models import Request
from adjudge.tools import ToolRefused, ToolUsage, forge
from kit.environment import read_vectors
from kit.registries import HERE, NoJudge, add, make_judge, raise_up, run, wear
from kit.tools import candidate, creation

FEATURES = {"registry", "engine.check_promotion", "engine.promotion_retry", "engine.forge"}
BECAUSE = {"session_limit": "session_cap", "agent_limit": "agent_cap", "maxSessionTools": "session_cap",
           "maxAgentTools": "agent_cap", "tier": "tier", "demoted": "demoted"}  # fmt: skip
"""A word of what a case says is raised, and the reason that a registry of ours gives."""


def read_cases(feature: str) -> list[dict[str, Any]]:
    """The cases of a feature."""
    return [case for case in read_vectors(features=(feature,)) if case["feature"] == feature]


def expected(case: dict[str, Any]) -> Any:
    """What is recommended."""
    recommended = case["expect"]["recommended"]
    return case["expect"]["original"] if recommended == "same" else recommended


def test_every_feature_of_registries_is_here():
    """No feature of this kind is left to nobody."""
    assert {case["feature"] for case in read_vectors(features=("registry", "engine."))} <= FEATURES


async def do(registry: ToolRegistry, ids: dict[str, str], verb: str, name: str = "", *more: Any) -> Any:
    """One operation of a case; a tool that a case has on a tier from the beginning rises there first."""
    if verb == "register":
        source = more[1]["source"] if len(more) > 1 else f"function {name}() {{}}"
        session = source.rpartition(" ")[2] if len(more) > 1 else "s1"
        made = candidate(name=name, source=source)
        record = await registry.register(made, creation(made), agent="ana", session=session)
        ids[name] = record.id
        await raise_up(registry, record.id, *(["agent"] if more[0] == "agent" else []))
    elif verb == "promote":
        await wear(registry, ids[name])
        await registry.promote(ids[name], make_judge(), to=more[0])
    elif verb == "demote":
        await registry.demote(ids[name], "it lies", by="grace")
    elif verb == "use":
        await registry.record_use(ids[name], *more)
    elif verb == "cleanup":
        return {"removed": await registry.end_session(name)}
    return None


def test_registry():
    """Caps, steps, approvers, sessions and demotions; what is to be refused is refused, for that reason."""
    for case in read_cases("registry"):
        names = {"maxSessionTools": "session_cap", "maxAgentTools": "agent_cap"}
        options = {names[key]: value for key, value in case["given"]["config"].items()}

        async def go(registry: ToolRegistry, case: dict[str, Any] = case) -> Any:
            ids: dict[str, str] = {}
            answer = None
            for operation in case["given"]["ops"]:
                answer = await do(registry, ids, *operation) or answer
            return answer

        recommended = expected(case)
        if "raises" in recommended:
            with pytest.raises(ToolRefused) as caught:
                run(go, **options)
            assert caught.value.because in {
                because for word, because in BECAUSE.items() if word in recommended["raises"]
            }, case["id"]
        else:
            assert run(go, **options) == {"removed": recommended["removed"]}, case["id"]


def test_check_promotion():
    """The panel is asked, or nobody is, by uses and success rate; the threshold belongs to it."""
    for case in read_cases("engine.check_promotion"):
        inputs, recommended = case["given"], expected(case)
        requests: list[Request] = []

        async def go(registry: ToolRegistry, inputs: dict[str, Any] = inputs, seen: list[Request] = requests) -> Any:
            ident = await add(registry)
            await wear(registry, ident, inputs["successes"], inputs["uses"] - inputs["successes"])
            return await registry.promote(ident, make_judge(requests=seen))

        limits = {"min_uses": inputs["threshold"]["uses"], "min_success_rate": inputs["threshold"]["confidence"]}
        done = run(go, **limits)

        assert bool(requests) is recommended["panel_called"], case["id"]
        assert (done.verdict is None) is not recommended["panel_called"], case["id"]


def test_promotion_retry():
    """A panel that always rejects is asked once in ten uses, though a promotion is tried after each."""
    for case in read_cases("engine.promotion_retry"):
        check_retry(case)


def check_retry(case: dict[str, Any]) -> None:
    requests: list[Request] = []

    async def go(registry: ToolRegistry) -> ToolUsage | None:
        ident = await add(registry)
        for _ in range(case["given"]["successful_uses"]):
            await registry.record_use(ident, True, 1.0)
            await registry.promote(ident, make_judge(raises=False, requests=requests))
        return (await registry.get(ident)).tool.usage

    usage = run(go)

    assert usage is not None
    assert usage.successes == case["given"]["successful_uses"]
    assert len(requests) == expected(case)["panel_llm_calls"]


def test_forging():
    """Sandbox code that nobody allowed and a composition without steps: refused, and nobody is asked."""
    for case in read_cases("engine.forge"):
        inputs, recommended = case["given"], expected(case)
        allow = inputs.get("allowSandboxTools", False)
        made = candidate(mode=inputs["mode"], steps=tuple(inputs.get("steps", ())))

        async def go(registry: ToolRegistry, made: Any = made, allow: bool = allow) -> Any:
            return await forge(made, NoJudge(), registry, allow_sandbox=allow, **HERE)

        assert bool(run(go)) is recommended["success"], case["id"]
