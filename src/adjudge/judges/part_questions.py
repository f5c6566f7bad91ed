"""Criteria that are judged for each call or turn of an agent's run: the questions about the parts.

A part is asked about in a question of its own, by all criteria that are judged for parts of its kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from adjudge.agents.parts import PartKind, describe_part, list_parts, render_part
from adjudge.agents.run import AgentRun
from adjudge.agents.step import AgentCall, Step
from adjudge.errors import UsageError
from adjudge.formats.text import show
from adjudge.question.prompt import choose_wording, instruct_part
from adjudge.question.question import Question, digest_question
from adjudge.question.score import grade_criterion
from adjudge.result import CriterionResult
from adjudge.rubric.rubric import Criterion, Rubric

MOST_PARTS = 100
"""The most parts of one run that are judged: each is a question of its own, which costs something."""

STAND_IN = AgentRun(steps=(Step(role="assistant", call=AgentCall(tool="-", result="-"), turn=1),), answer="-")
"""A run with one part of each kind, where a question is looked at before there is any content."""

_KINDS: tuple[PartKind, ...] = ("turn", "call")


def decide_absent_parts(content: object, rubric: Rubric, value_type: object) -> dict[str, CriterionResult]:
    """Decide the criteria about parts of a run that no judge can be asked about; return the results by their names.

    A criterion passes if the run has no part of its kind. All of them fail if the run is not complete, because a
    missing part could be anything. Raises ``UsageError`` for a content that is no run, and for a ``result_format``.
    """
    criteria = [criterion for criterion in rubric.criteria if criterion.per != "run"]
    if not isinstance(content, AgentRun):
        raise UsageError(
            f"criterion {criteria[0].name!r} is judged per {criteria[0].per} of an agent's run, and the content is "
            f"{show(content)}; hand in an AgentRun, as read_run makes it",
            argument="content",
        )
    if value_type is not None:
        raise UsageError(
            f"result_format is one reply about the whole, and criterion {criteria[0].name!r} is judged per "
            f"{criteria[0].per}; leave one of them out",
            argument="result_format",
        )
    if not content.complete:
        problem = f"the run is not complete, and what is missing cannot be judged: {'; '.join(content.problems)}"
        return {criterion.name: grade_criterion(criterion, 0.0, problem, rule="complete") for criterion in criteria}
    absent = [criterion for criterion in criteria if criterion.per != "run" and not list_parts(content, criterion.per)]
    return {
        criterion.name: grade_criterion(criterion, 1.0, f"the run has no {criterion.per}s", rule="complete")
        for criterion in absent
    }


def pose_parts(question: Question, run: AgentRun, instructions: str) -> Question:
    """Return a question with one further question for each part of the run, by the criteria about such parts.

    Criteria that rules have decided are not asked. Raises ``UsageError`` for more than ``MOST_PARTS`` parts.
    """
    kinds = {criterion.per for criterion in _list_criteria(question) if criterion.name in question.elsewhere}
    parts = [part for kind in _KINDS if kind in kinds for part in list_parts(run, kind)]
    if len(parts) > MOST_PARTS:
        raise UsageError(
            f"the run has {len(parts):,} parts to judge, a question each, and at most {MOST_PARTS} are asked; judge "
            "it per turn or per run, or in several runs",
            argument="content",
        )
    part_questions: list[Question] = []
    shortened_count = 0
    for part in parts:
        rendered = render_part(run, part)
        if not rendered.is_whole:
            shortened_count += 1
        # The content comes last among the data; the part takes its place.
        data = (*question.parts[:-1], replace(question.parts[-1], text=rendered.text))
        asked = {
            criterion.name
            for criterion in _list_criteria(question)
            if criterion.per == part.kind and criterion.name in question.elsewhere
        }
        not_asked = {criterion.name for criterion in _list_criteria(question)} - asked
        part_instructions = "\n\n".join(text for text in (instruct_part(part.kind), instructions) if text)
        wording = choose_wording(question.rubric, frozenset(not_asked), part_instructions, None, None)
        part_questions.append(
            replace(
                question,
                wording=wording,
                parts=data,
                digest=digest_question(wording, data),
                elsewhere=frozenset(not_asked - question.decided_by_rules.keys()),
                part=part.name,
                part_label=describe_part(run, part),
                order=part.name,  # a recording keeps replies by case and order, and so tells the parts apart
            )
        )
    digests = [question.digest, *(part_question.digest for part_question in part_questions)]
    return replace(
        question,
        each=tuple(part_questions),
        digest=hashlib.sha256("\n".join(digests).encode()).hexdigest(),
        metadata=_note_left_out(question, shortened_count),
    )


def digest_wordings(question: Question) -> str:
    """Compute a digest of a question's wording, without the content, and of those of its questions about parts."""
    digest_of_whole = digest_question(question.wording, ())
    if not question.each:
        return digest_of_whole
    digests = [digest_of_whole, *(digest_question(part_question.wording, ()) for part_question in question.each)]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _list_criteria(question: Question) -> Sequence[Criterion]:
    """Return the criteria of a question's rubric; none without a rubric."""
    return question.rubric.criteria if question.rubric is not None else ()


def _note_left_out(question: Question, shortened_count: int) -> Mapping[str, Any]:
    """Return a question's metadata with the number of parts that are not shown to the judge as a whole."""
    metadata = dict(question.metadata)
    if not question.open_criteria:
        metadata.pop("left_out", None)  # the run as a whole is not shown to the judge, so nothing of it is left out
    if shortened_count:
        metadata["left_out"] = {**metadata.get("left_out", {}), "parts": shortened_count}
    return metadata
