"""A probe, judges that say how similar, and tools that break, for the tests of probes."""

from __future__ import annotations

import asyncio
import json
import re
from dataclasses import replace
from typing import Any

from adjudge import Judge, JudgeChain, ProbeReport, SemanticProbe, evaluate_probe, evaluate_probes
from adjudge.guards import ProbeResult, ProbeThresholds
from adjudge.testing import ScriptedModel
from kit.loops import run_virtual

PROBE = SemanticProbe(name="days", input={"q": "How long?"}, expected="14 days", contract={"readOnly": True})


def says(similarity: Any, *, name: str = "scripted", **more: Any) -> Judge:
    """A judge that gives every output this similarity."""
    return Judge(ScriptedModel({"similarityScore": similarity, **more}, name=name), reask=0)


def violated(similarity: float = 1.0, *violations: str, name: str = "strict") -> Judge:
    return says(similarity, name=name, contractViolated=True, violations=list(violations))


def probed(judge: Any, actual: Any = "two weeks", **options: Any) -> ProbeResult:
    return run_virtual(evaluate_probe(options.pop("probe", PROBE), judge, actual=actual, **options))


def probed_with(tool: Any, judge: Any = None, **options: Any) -> ProbeResult:
    return asyncio.run(evaluate_probe(PROBE, judge or says(1.0), tool=tool, **options))


class Breaks:
    """The faults that a tool may have instead of answering."""

    def raises(self, value: Any) -> Any:
        raise ValueError(f"no {value['q']}")

    def ends(self, value: Any) -> Any:
        raise SystemExit(3)

    def cancels(self, value: Any) -> Any:
        raise asyncio.CancelledError

    def stops(self, value: Any) -> Any:
        raise StopIteration

    async def raises_later(self, value: Any) -> Any:
        raise ValueError(f"no {value['q']}")

    async def cancels_later(self, value: Any) -> Any:
        raise asyncio.CancelledError


def chain(*seats: Any, strategy: str = "consensus", **more: Any) -> JudgeChain:
    return JudgeChain(list(seats), strategy=strategy, timeout=None, **more)


def many(judge: Any, *actuals: Any, **options: Any) -> ProbeReport:
    pairs = [(replace(PROBE, name=f"p{number}"), actual) for number, actual in enumerate(actuals)]
    return run_virtual(evaluate_probes(pairs, judge, **options))


def by_output(**similarities: Any) -> Judge:
    """A judge that looks at the output: its similarity, or what it raises."""

    def look(request: Any) -> Any:
        similarity = similarities[request.user.partition(f"<<actual {request.token}>>\n")[2].split("\n")[0]]
        return similarity if isinstance(similarity, Exception) else {"similarityScore": similarity}

    return Judge(ScriptedModel(look), reask=0)


def make(similarity: float | None, violated: bool = False, because: Any = None, by: Any = "judge") -> ProbeResult:
    """A result as an evaluation makes it."""
    if similarity is None:
        outcome = "undecided" if because else "passed"
        return ProbeResult(probe=PROBE, outcome=outcome, undecided_because=because, decided_by=by)
    drift = ProbeThresholds().find_drift(similarity)
    return ProbeResult(
        probe=PROBE,
        outcome="passed" if drift in ("none", "low") and not violated else "failed",
        similarity=similarity,
        drift=drift,
        contract_violated=violated,
    )


def compare(prompt: str) -> str:
    """A judge: equal texts are the same, a text that says "violate" breaks the contract, "odd" is no answer."""
    match = re.search(r"<<expected (\w{8})>>\n(.*)\n<<end expected \1>>.*<<actual \1>>\n(.*)\n<<end", prompt, re.DOTALL)
    assert match is not None
    token, expected, actual = match.groups()
    if "odd" in actual.lower():
        return "I cannot say."
    reply = {"token": token, "reasoning": f"It says {actual}", "similarityScore": 1.0 if actual == expected else 0.2}
    if "violate" in actual.lower():
        reply |= {"contractViolated": True, "violations": [f"It says {actual}"]}
    return json.dumps(reply)


def shout(text: Any) -> Any:
    """A tool: upper case, except that "None" breaks it."""
    return text.upper()


async def whisper(value: Any) -> Any:
    """An async tool."""
    return str(value).lower()
