"""An agent that makes tools for itself: forged, tested, reviewed, used, promoted, changed, and reviewed again.

Run it: python examples/agent_with_forged_tools.py
Without arguments, stand-ins review the tools. With models, those review, and the last one is the panel:

    python examples/agent_with_forged_tools.py --judge openai:gpt-6.1-terra --judge anthropic:claude-haiku-5-5

With --ledger agent.db every review and every tier is on record: `adjudge tools list --ledger agent.db`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from adjudge import EmergentJudge, ToolCandidate, ToolRegistry, ToolTest
from adjudge.models import Request
from adjudge.testing import ScriptedModel
from adjudge.tools import forge

AGENT, SESSION = "reporter", "2026-11-20"

# The tools that exist. A forged tool composes them, so running it executes no code that a model wrote.
TOOLS = {
    "words": lambda text: text.split(),
    "lower": lambda words: [word.lower() for word in words],
    "unique": lambda words: sorted(set(words)),
    "count": len,
}
OUTPUT = {"type": "object", "properties": {"n": {"type": "integer", "minimum": 0}}, "required": ["n"]}


def run_steps(candidate: ToolCandidate, arguments: dict[str, Any]) -> dict[str, Any]:
    """Run a composed tool: each step is one of ``TOOLS``, applied to the output of the step before."""
    value: Any = arguments["text"]
    for step in candidate.steps:
        if step not in candidate.allowlist:
            raise PermissionError(f"{step} is not on the tool's allowlist")
        value = TOOLS[step](value)
    return {"n": value}


def make_candidate(name: str, description: str, steps: list[str], examples: dict[str, int]) -> ToolCandidate:
    """Return the tool that the agent's model would write, with the records of its tests, which are run here."""
    draft = ToolCandidate(
        name=name,
        description=description,
        input_schema={"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
        output_schema=OUTPUT,
        mode="compose",
        steps=tuple(steps),
        allowlist=tuple(TOOLS),
    )
    tests = [
        ToolTest(input={"text": text}, output=run_steps(draft, {"text": text}), success=True, expected={"n": number})
        for text, number in examples.items()
    ]
    return ToolCandidate.from_dict({**draft.to_dict(), "tests": [item.to_dict() for item in tests]})


def stand_in(request: Request) -> dict[str, Any]:
    """A reviewer that approves tools that name their steps, so that the example runs without a key."""
    good = json.dumps("count") in request.user
    return {
        "safety": {"passed": good, "concerns": [] if good else ["no step is named"]},
        "correctness": {"passed": good, "failedTests": []},
        "determinism": {"likely": good, "reasoning": "It has no clock and no chance in it."},
        "bounded": {"likely": good, "reasoning": "Each step passes over its input once."},
        "reasoning": "It composes four known tools, and its tests show it.",
        "confidence": 0.9,
        "approved": good,
    }


def make_judge(models: list[str]) -> EmergentJudge:
    """Make the reviewers: one for new tools, one for promotions."""
    return EmergentJudge(models[0], models[-1]) if models else EmergentJudge(ScriptedModel(stand_in, name="stand-in"))


async def use_often(registry: ToolRegistry, ident: str) -> None:
    """Use a tool until it has shown enough to be considered for promotion."""
    for text in ("a rose is a rose", "", "one two", "Two two two", "no more"):
        use = await registry.use(ident, run_steps, {"text": text}, agent=AGENT, session=SESSION)
        print(f"use      {text!r}: {use.output if use else use.error or use.verdict}")


async def work(registry: ToolRegistry, judge: EmergentJudge) -> None:
    """Forge, use, promote, change, and lose the tier again."""
    wrong = make_candidate("distinct_words", "Counts words.", ["words", "unique", "count"], {"A a": 1})
    made = await forge(wrong, judge, registry, agent=AGENT, session=SESSION)
    print(f"forge    {made.refused}: {made.detail}")  # its own test fails, so it is refused without asking anybody

    steps = ["words", "lower", "unique", "count"]
    right = make_candidate("distinct_words", "Counts different words, whatever their case.", steps, {"A a b": 2, "": 0})
    made = await forge(right, judge, registry, agent=AGENT, session=SESSION)
    if made.tool is None:
        print(f"forge    {made.refused}: {made.detail}")
        return
    ident = made.tool.id
    print(f"forge    {made.tool.candidate.name} is a tool of this session")

    early = await registry.promote(ident, judge)
    print(f"promote  {early.because}: {early.detail.partition(') ')[2]}")  # too few uses, so nobody is asked
    await use_often(registry, ident)
    risen = await registry.promote(ident, judge)
    print(f"promote  {'to agent' if risen else f'{risen.because}: {risen.detail}'}")

    changed = make_candidate("distinct_words", "Counts words.", ["words", "count"], {"A a b": 3})
    record = await registry.update(ident, changed)
    print(f"change   it is {record.status}, with the tier {record.tier}")
    try:
        await registry.use(ident, run_steps, {"text": "a b"}, agent=AGENT, session=SESSION)
    except ValueError as error:
        print(f"use      refused: {str(error).partition(') ')[2]}")

    again = await registry.review(ident, judge)
    print(f"review   {'approved, at the beginning again' if again else f'{again.refused}: {again.detail}'}")
    print(f"end      {await registry.end_session(SESSION)} tool of this session is gone")


async def main() -> None:
    """Read the judges and the ledger from the command line, and run the loop."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", action="append", default=[], metavar="SPEC", help="a model; the last is the panel")
    parser.add_argument("--ledger", metavar="FILE", help="keep tools and reviews here, not only in memory")
    given = parser.parse_args()
    judge = make_judge(given.judge)
    async with ToolRegistry(f"sqlite:///{given.ledger}" if given.ledger else None) as registry:
        try:
            await work(registry, judge)
        finally:
            await judge.aclose()


if __name__ == "__main__":
    asyncio.run(main())
