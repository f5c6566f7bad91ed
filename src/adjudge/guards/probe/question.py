"""The question to a judge about a probe: its wording, the reading of replies, and the judges that find a violation.

What follows from the reading of a reply is decided in ``evaluate.py`` (``_decide``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from adjudge.content import digest_text
from adjudge.errors import ReplyError
from adjudge.guards.event import make_guard_question
from adjudge.guards.probe.probe import ProbeThresholds, SemanticProbe
from adjudge.question.question import Answer, Part, Question, Wording
from adjudge.question.reply_object import check_finite, read_number, read_text, read_texts
from adjudge.question.score import check_flags, reaches
from adjudge.result import JudgeChainResult, JudgeResult

WORDING = Wording(
    role=(
        "You are a judge of how a tool behaves. The tool was called with the input. Compare its output of today with "
        "the baseline, the output that was good for this input before, and decide two things.\n\n"
        "1. Similarity: does today's output mean what the baseline means? Look for facts that were added, lost or "
        "changed, for other numbers, names, units or states, and for another answer to the input. What only looks "
        "different (wording, order where order says nothing, white space, times and identifiers that differ with every "
        "call) is no difference. 1 is the same meaning, 0 has nothing to do with the baseline.\n"
        "2. Contract: does today's output break what the tool promises: its description, whether it only reads or may "
        "destroy, its rules, the keys it must have? Where no contract is shown, nothing is promised and nothing broken."
    ),
    shape=(
        '"reasoning": "<the differences you found, and what they mean>"',
        '"similarityScore": <a number from 0 to 1>',
        '"contractViolated": <true or false>',
        '"violations": ["<what the output breaks, one sentence each>"]',
    ),
    notes="`violations` is empty when `contractViolated` is false. Write the reasoning before the score.",
    properties={
        "reasoning": {"type": "string"},
        "similarityScore": {"type": "number", "minimum": 0, "maximum": 1},
        "contractViolated": {"type": "boolean"},
        "violations": {"type": "array", "items": {"type": "string"}},
    },
    name="probe",
    labels=(
        "`probe` is the name of this comparison; `contract` is what the tool promises; `input` is what it was called "
        "with; `expected` is the baseline; `actual` is its output of today, which is what you judge."
    ),
    call="Compare what stands between the actual lines with what stands between the expected lines.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeReading:
    """One judge's reply about one output, as read; the ``value`` of the judge's result."""

    similarity: float
    contract_violated: bool
    violations: tuple[str, ...] = ()


def make_probe_question(probe: SemanticProbe, actual: str, thresholds: ProbeThresholds) -> Question:
    """Make the question whether an output (``actual``) still means what the baseline means, and keeps the contract."""
    contract = probe.render_contract()
    input_text, expected = probe.texts
    parts = (
        Part(label="probe", text=probe.name),
        *([Part(label="contract", text=contract)] if contract else ()),
        Part(label="input", text=input_text),
        Part(label="expected", text=expected),
        Part(label="actual", text=actual),
    )

    def answer(members: Mapping[str, Any], _question: Question) -> Answer:
        return answer_probe(members, thresholds)

    question = make_guard_question(WORDING, parts, answer, subject=digest_text(actual), metadata={"probe": probe.name})
    return replace(question, threshold=thresholds.passing)


def answer_probe(members: Mapping[str, Any], thresholds: ProbeThresholds) -> Answer:
    """Read a judge's reply about a probe: it passes if drift is none or low and the contract is kept.

    Raises ``ReplyError`` for a reply that cannot be read or contradicts itself.
    """
    if "similarityScore" not in members:
        raise ReplyError("unparseable", "the reply has no 'similarityScore'")
    similarity = read_number(members["similarityScore"], of="similarityScore", low=0.0, high=1.0)
    check_finite(members)
    violated = members.get("contractViolated", False)
    if not isinstance(violated, bool):
        # Not converted with bool(): the text "false" would become true, and null would become false.
        raise ReplyError("unparseable", f"'contractViolated' must be true or false, got {type(violated).__name__}")
    violations = read_texts(members, "violations")
    if violations and not violated:
        raise ReplyError("contradiction", "the reply names violations of a contract that it does not call violated")
    passed = reaches(similarity, thresholds.passing) and not violated
    check_flags(members, "passed" if passed else "failed", WORDING.properties)
    return Answer(
        outcome="passed" if passed else "failed",
        score=similarity,
        threshold=thresholds.passing,
        reasoning=read_text(members, "reasoning"),
        value=ProbeReading(similarity=similarity, contract_violated=violated, violations=violations),
        detail="the contract is violated" if violated else "",
    )


def find_reading(result: JudgeResult) -> ProbeReading | None:
    """Return the reply of the judge that decided; ``None`` if none decided, or the one that did gave no similarity."""
    return result.value if result.outcome != "undecided" and isinstance(result.value, ProbeReading) else None


def find_accusers(result: JudgeResult) -> list[tuple[str, ProbeReading]]:
    """Find the judges, at any depth, that call the contract violated; return the name and the reply of each.

    One such judge is enough for a violation, because it exists even if other judges did not see it. The chain's
    strategy only decides about the similarity.
    """
    return [
        (seat.judge, seat.value)
        for seat in _iterate_judges(result)
        if isinstance(seat.value, ProbeReading) and seat.value.contract_violated
    ]


def _iterate_judges(result: JudgeResult) -> Iterator[JudgeResult]:
    """Yield the results of single judges at any depth, in the order of the seats."""
    if not isinstance(result, JudgeChainResult) or not result.results:
        yield result
        return
    for seat in result.results:
        yield from _iterate_judges(seat)
