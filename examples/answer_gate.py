"""A gate in front of an answer: rules first, then two judges, and a decision that says why.

Run it: python examples/answer_gate.py
Without arguments it uses stand-ins and asks nobody; with model names it asks those:

    python examples/answer_gate.py openai:gpt-6.1-terra anthropic:claude-haiku-5-5
"""

from __future__ import annotations

import asyncio
import sys

from adjudge import Criterion, JudgeChain, JudgeChainResult, Rubric
from adjudge.models import Request
from adjudge.testing import ScriptedModel

RUBRIC = Rubric(
    name="Support answer",
    passing_threshold=0.75,
    criteria=[
        Criterion(name="answers", description="Answers what the customer asked.", weight=3),
        Criterion(
            name="invents-nothing",
            description="Promises nothing that the policy does not say.",
            weight=2,
            threshold=0.9,
        ),
    ],
)
RULES = [
    {"name": "regex", "pattern": r"\[NAME\]|TODO", "absent": True, "description": "No template text is left."},
    {"name": "length", "min": 20, "max": 600},
]
POLICY = "A return label is in every box. Only a person may promise a refund."
ANSWERS = (
    "Send the jacket back with the label in the box, and choose another size on the return page.",
    "Dear [NAME], send it back with the label in the box.",
    "I promise you a full refund within two days, whatever the inspection says.",
)


def stand_in(request: Request) -> dict[str, object]:
    """A judge that looks for one word, so that the example runs without a key."""
    honest = "refund" not in request.user.partition("<<content")[2]
    return {
        "criteria": [
            {"name": "answers", "reasoning": "It says what to do next.", "score": 0.9},
            {
                "name": "invents-nothing",
                "reasoning": "It is in the policy." if honest else "The policy leaves refunds to a person.",
                "score": 1.0 if honest else 0.1,
            },
        ]
    }


def make_chain(models: list[str]) -> JudgeChain:
    """Make a chain of two judges that must agree, because sending a wrong answer costs more than asking twice."""
    seats = models or [ScriptedModel(stand_in, name="first"), ScriptedModel(stand_in, name="second")]
    return JudgeChain(seats, strategy="consensus", timeout=30.0)


async def decide(answer: str, chain: JudgeChain) -> JudgeChainResult:
    """Judge one answer: may it be sent?"""
    return await chain.evaluate(answer, RUBRIC, task="The jacket is too small. What now?", context=POLICY, rules=RULES)


async def main(models: list[str]) -> None:
    """Judge every answer, and print the decision, who made it and why."""
    async with make_chain(models) as chain:
        for answer in ANSWERS:
            result = await decide(answer, chain)
            print(f"{'send' if result.passed else 'hold'}  {answer[:50]}")
            print(f"      by {result.decided_by}: {result.explain()}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
