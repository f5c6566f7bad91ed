"""What holds of the prompt firewall for every list of rules, every reply and every chain."""

from __future__ import annotations

import asyncio
import json

from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, JudgeChain, JudgeResult, PromptFirewall
from adjudge.guards import FirewallVerdict
from adjudge.testing import ScriptedModel
from kit.firewalls import SAFE, chain, reject, script, sort
from kit.judges import STRATEGIES
from kit.loops import run_virtual


def check(judge, rules, **options) -> FirewallVerdict:
    """What a firewall says of some rules, on a virtual clock."""
    return run_virtual(PromptFirewall(judge, **options).check(rules))


# ---------------------------------------------------------------- any text


HOSTILE = st.text(st.characters(codec=None), max_size=20) | st.sampled_from(
    ["", "\x00", "\ud800", "\U000e0041", "\x1b[2J"]
)


@given(rules=st.lists(HOSTILE, min_size=1, max_size=5), data=st.data())
def test_any_text_gets_a_verdict(rules: list[str], data: st.DataObject):
    """Whatever the rules hold: each is allowed or rejected, once, in order, and the verdict can be written down."""
    indexes = data.draw(st.lists(st.integers(0, len(rules) + 1), max_size=3))
    reply = {"rejected": [{"index": index, "reason": "r"} for index in indexes], "safe": not indexes}
    mode = data.draw(st.sampled_from(["drop_batch", "drop_flagged"]))
    verdict = asyncio.run(PromptFirewall(ScriptedModel(reply), on_unsafe=mode).check(rules))
    gone = {item.index for item in verdict.rejected}

    assert len(verdict.allowed) + len(verdict.rejected) == len(rules)
    assert list(verdict.allowed) == [rule for index, rule in enumerate(rules, 1) if index not in gone]
    assert [(item.index, item.rule) for item in verdict.rejected] == [(i, rules[i - 1]) for i in sorted(gone)]
    assert all(item.reason for item in verdict.rejected)
    assert gone.issuperset(index for index in indexes if 1 <= index <= len(rules))
    if len(set(indexes)) != len(indexes) or not all(1 <= index <= len(rules) for index in indexes):
        assert verdict.allowed == ()
    json.dumps(verdict.to_dict(), ensure_ascii=False).encode()


@given(rules=st.lists(HOSTILE, min_size=1, max_size=4))
def test_any_text_is_shown_as_it_is(rules: list[str]):
    """What the judge sees, read as JSON, is the rule, and it stands on one line of visible characters."""
    model = ScriptedModel(SAFE)
    asyncio.run(PromptFirewall(model).check(rules))
    shown = model.requests[0].user.split("\n")[1::4][: len(rules)]

    assert [json.loads(text) for text in shown] == [json.loads(json.dumps(rule)) for rule in rules]
    assert all(text.isprintable() for text in shown)


# ---------------------------------------------------------------- any chain


REPLIES = st.one_of(
    st.just(SAFE),
    st.sets(st.integers(1, 4), max_size=2).map(lambda found: reject(*found)),
    st.sampled_from([reject(9), reject(1, safe=True), reject(1, 1), {"safe": "yes"}, RuntimeError("down"), "prose"]),
)


@st.composite
def trees(draw: st.DrawFn, depth: int = 2):
    """A chain of scripted judges and chains, under any strategy."""
    count = draw(st.integers(1, 3))
    strategy = draw(st.sampled_from(sorted(STRATEGIES)))
    inner = st.one_of(REPLIES, trees(depth=depth - 1)) if depth else REPLIES
    drawn = [draw(inner) for _ in range(count)]
    seats = [item if isinstance(item, JudgeChain) else Judge(ScriptedModel(item), timeout=None) for item in drawn]
    options = {"quorum": {"quorum": draw(st.integers(1, count))}}.get(strategy, STRATEGIES[strategy])
    return JudgeChain(seats, strategy=strategy, **options)


def leaves(result: JudgeResult):
    """Every judge's own result, at any depth."""
    inner = getattr(result, "results", ())
    return [leaf for item in inner for leaf in leaves(item)] if inner else [result]


@given(tree=trees(), mode=st.sampled_from(["drop_batch", "drop_flagged"]))
def test_nothing_is_kept_that_anybody_objected_to(tree: JudgeChain, mode: str):
    """Under any strategy, in any nesting: no rule that was named, none beside an objection that cannot be used."""
    rules = ["a", "b", "c", "d"]
    verdict = check(tree, rules, on_unsafe=mode)
    heard = leaves(verdict.chain_result)
    named = {index for leaf in heard if leaf.value for index, _ in leaf.value.rejected}

    assert len(verdict.allowed) + len(verdict.rejected) == 4
    assert not named & {"abcd".index(rule) + 1 for rule in verdict.allowed}
    if verdict.allowed:
        assert all(leaf.value is None or leaf.value.usable for leaf in heard)
        assert all(leaf.undecided_because not in {"contradiction", "tampering"} for leaf in heard)
        assert all(leaf.outcome != "failed" or leaf.value.rejected for leaf in heard)
        assert verdict.chain_result.passed or (mode == "drop_flagged" and named)
    if mode == "drop_batch":
        assert verdict.allowed in {(), tuple(rules)}
    if verdict.passed:
        assert verdict.chain_result.passed
        assert not named


@given(
    lines=st.permutations([SAFE, reject(1), reject(2), "prose"]),
    strategy=st.sampled_from(["consensus", "majority", "quorum"]),
)
def test_the_order_of_judges_changes_nothing(lines, strategy: str):
    """In the strategies that count."""
    verdict = check(chain(script(*lines), strategy), ["a", "b", "c"], on_unsafe="drop_flagged")

    assert sort(verdict) == sort(
        check(chain(script(*sorted(lines, key=str)), strategy), ["a", "b", "c"], on_unsafe="drop_flagged")
    )
