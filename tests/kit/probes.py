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
    """What a tool may do instead of answering."""

    def raises(self, given: Any) -> Any:
        raise ValueError(f"no {given['q']}")

    def ends(self, given: Any) -> Any:
        raise SystemExit(3)

    def cancels(self, given: Any) -> Any:
        raise asyncio.CancelledError

    def stops(self, given: Any) -> Any:
        raise StopIteration

    async def raises_later(self, given: Any) -> Any:
        raise ValueError(f"no {given['q']}")

    async def cancels_later(self, given: Any) -> Any:
        raise asyncio.CancelledError


def chain(*seats: Any, strategy: str = "consensus", **more: Any) -> JudgeChain:
    return JudgeChain(list(seats), strategy=strategy, timeout=None, **more)


def many(judge: Any, *actuals: Any, **options: Any) -> ProbeReport:
    pairs = [(replace(PROBE, name=f"p{number}"), actual) for number, actual in enumerate(actuals)]
    return run_virtual(evaluate_probes(pairs, judge, **options))


def by_output(**similarities: Any) -> Judge:
    """A judge that looks at the output: its similarity, or what it raises."""

    def look(request: Any) -> Any:
        said = similarities[request.user.partition(f"<<actual {request.token}>>\n")[2].split("\n")[0]]
        return said if isinstance(said, Exception) else {"similarityScore": said}

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
    found = re.search(r"<<expected (\w{8})>>\n(.*)\n<<end expected \1>>.*<<actual \1>>\n(.*)\n<<end", prompt, re.DOTALL)
    assert found is not None
    token, expected, actual = found.groups()
    if "odd" in actual.lower():
        return "I cannot say."
    said = {"token": token, "reasoning": f"It says {actual}", "similarityScore": 1.0 if actual == expected else 0.2}
    if "violate" in actual.lower():
        said |= {"contractViolated": True, "violations": [f"It says {actual}"]}
    return json.dumps(said)


def shout(given: Any) -> Any:
    """A tool: upper case, except that "None" breaks it."""
    return given.upper()


async def whisper(given: Any) -> Any:
    """An async tool."""
    return str(given).lower()
