"""Prompts, tokens and digests of questions."""

from __future__ import annotations

import asyncio
import dataclasses
import re

from adjudge import Rubric
from adjudge.judges.evaluate import make_prompt, prepare
from adjudge.question import Part
from adjudge.question.question import digest_question
from adjudge.question.token import MASK, make_token
from kit.rubrics import RUBRIC


def pose(content="The content.", rubric=RUBRIC, **how):
    return asyncio.run(prepare(content, rubric, None, how))


def test_a_token_is_eight_characters_of_its_question():
    """The same for the same question in one process, and another for every other."""
    tokens = [make_token(pose(f"content {number}").digest) for number in range(200)]

    assert len(set(tokens)) == 200
    assert all(re.fullmatch("[a-z2-7]{8}", token) for token in tokens)
    assert make_token(pose().digest) == make_token(pose().digest)


def test_a_fence_stands_on_lines_of_its_own():
    """Whatever the content begins or ends with."""
    user = pose("x").render_user("abcd2345", ask_token=False)

    assert user.startswith("<<content abcd2345>>\nx\n<<end content abcd2345>>\n\n")


def test_digests_do_not_know_the_token():
    """They are the same on every machine, so recordings and caches are too."""
    question = pose()

    assert question.digest == digest_question(question.wording, question.parts)
    assert make_token(question.digest) not in question.digest
    assert MASK == "{{token}}"


def test_everything_that_is_asked_is_in_the_digest():
    """Content, each other part, rubric, instructions, the format; not the metadata and not the judge."""

    @dataclasses.dataclass
    class Verdict:
        passed: bool

    variants = [
        pose(),
        pose("Another content."),
        pose(task="x"),
        pose(context="x"),
        pose(reference="x"),
        pose(instructions="x"),
        pose(result_format=Verdict),
        pose(rubric=Rubric(name="Login", criteria=RUBRIC.criteria[:1])),
        pose(rules=[{"length": 3, "severity": "warning"}]),
    ]

    assert len({question.digest for question in variants}) == len(variants)
    assert pose(metadata={"a": 1}).digest == pose().digest


def test_moving_a_border_between_parts_changes_the_digest():
    """Lengths are hashed, so what belongs to one part cannot be passed off as another."""

    def digest(*texts):
        return digest_question(None, tuple(Part(label="task", text=text) for text in texts))

    assert len({digest("ab"), digest("a", "b"), digest("a\ntask 1\nb"), digest("", "ab")}) == 4


def test_the_subject_is_the_content_alone():
    """The same content is the same subject under every rubric."""
    assert pose().subject == pose(task="x", rubric=Rubric(name="r", criteria=RUBRIC.criteria)).subject
    assert pose().subject != pose("Another content.").subject
    assert make_prompt("The content.").subject == pose().subject
