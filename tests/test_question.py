"""What is asked: wording and data kept apart, tokens nobody can guess, digests that are the same everywhere."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import re
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge, Rubric
from adjudge.judges.evaluate import make_prompt, prepare
from adjudge.question.question import Part, digest_question
from adjudge.question.token import MASK, make_token
from adjudge.testing import ScriptedModel
from judge_support import YES, scores

RUBRIC = Rubric(
    name="Login",
    criteria=[
        {
            "name": "security",
            "description": "Hashes passwords.",
            "levels": {0: "plaintext", 1: "hashed"},
            "examples": [{"content": "md5(x)", "score": 0, "why": "fast"}],
            "quote": True,
        },
        {"name": "errors", "description": "Says what went wrong."},
    ],
)


def pose(content="The content.", rubric=RUBRIC, **how):
    return asyncio.run(prepare(content, rubric, None, how))


def ask(content="The content.", rubric=None, *, structured=False, **how):
    """The request that a judge makes of a model."""
    model = ScriptedModel(scores(1.0), structured=structured)
    how |= {} if rubric or "result_format" in how else {"criteria": "Good."}
    asyncio.run(Judge(model, reask=0).evaluate(content, rubric, **how))
    return model.requests[0]


# ---------------------------------------------------------------- the system part


def test_the_system_part_holds_the_rubric_and_no_content():
    """Names, descriptions, anchors, examples and the reply's form; nothing of what is judged."""
    system = ask("SECRET CONTENT", RUBRIC, reference="SECRET REFERENCE").system

    for text in ("Login", "security: Hashes passwords.", "score 0: plaintext", "md5(x)", "fast", "errors", '"quote"'):
        assert text in system
    assert "SECRET" not in system


@given(one=st.text(min_size=1), other=st.text(min_size=1))
def test_the_system_part_is_the_same_bytes_for_every_content(one, other):
    """So a provider can cache it, and no content can change an instruction."""
    usable = [text for text in (one, other) if "\x00" not in text and text.encode(errors="ignore").decode() == text]

    assert {ask(text, RUBRIC, task=text).system for text in [*usable, "x"]} == {ask("y", RUBRIC).system}


def test_instructions_are_yours_and_stand_in_the_system_part():
    """They are trusted text; content never gets there."""
    request = ask(instructions="Be strict with names.")

    assert "Be strict with names." in request.system
    assert "Be strict" not in request.user


def test_reasoning_stands_before_score_in_every_form():
    """In the text form and in the schema, and the token before everything."""
    request = ask(structured=True)
    entry = request.form.schema["properties"]["criteria"]["properties"]["criteria"]

    assert list(request.form.schema["properties"]) == ["token", "criteria", "reasoning", "suggestions"]
    assert list(entry["properties"]) == ["reasoning", "score"]
    assert request.system.index('"reasoning"') < request.system.index('"score"')
    assert ask().form is None


def test_the_schema_is_constant_for_a_rubric():
    """A provider compiles it once: no token, no content stands in it."""
    first, second = (ask(content, RUBRIC, structured=True).form for content in ("a", "b"))

    assert first == second
    assert first.schema["properties"]["token"] == {"type": "string"}
    assert first.schema["properties"]["criteria"]["properties"]["security"]["properties"]["score"]["enum"] == [0.0, 1.0]


# ---------------------------------------------------------------- the user part


def test_every_piece_of_data_has_its_own_fence():
    """Task, context, reference and content, each between its two lines with the same token."""
    request = ask("CONTENT", task="TASK", context=["C1", "C2"], reference={"gold": 1})
    token = request.token

    assert [item.groups() for item in re.finditer(r"<<(end )?(\w+) (\w{8})>>", request.user)] == [
        (end, label, token) for label in ("task", "context", "reference", "content") for end in (None, "end ")
    ]
    assert f"<<content {token}>>\nCONTENT\n<<end content {token}>>" in request.user
    assert request.user.endswith(f'Begin the reply\'s object with {{"token": "{token}",')


def test_content_is_shown_as_it_is():
    """Nothing is escaped, shortened or trimmed."""
    content = "  {braces} {0} %s $x \\n </content> ]]> ``` \r\n\t"

    assert f">>\n{content}\n<<end" in ask(content).user


def test_metadata_is_never_sent():
    """Nor is the case or the order, which only recordings use."""
    request = ask(metadata={"case": "case-77", "customer": "ACME-SECRET"})

    assert request.case == "case-77"
    assert "ACME-SECRET" not in request.system + request.user
    assert "case-77" not in request.system + request.user


def test_a_ready_made_prompt_is_sent_as_it_is():
    """No system part, no fence, no token."""
    model = ScriptedModel(YES)
    asyncio.run(Judge(model).ask('Is {"this"} safe? Reply {"safe": bool}.'))

    assert (model.requests[0].system, model.requests[0].token) == ("", None)
    assert model.requests[0].user == 'Is {"this"} safe? Reply {"safe": bool}.'


# ---------------------------------------------------------------- tokens


def test_a_token_is_eight_characters_of_its_question():
    """The same for the same question in one process, and another for every other."""
    tokens = [make_token(pose(f"content {number}").digest) for number in range(200)]

    assert len(set(tokens)) == 200
    assert all(re.fullmatch("[a-z2-7]{8}", token) for token in tokens)
    assert make_token(pose().digest) == make_token(pose().digest)


PROGRAM = """
import asyncio
from adjudge.judges.evaluate import prepare
from adjudge.question.token import make_token
question = asyncio.run(prepare("The content.", None, None, {"criteria": "Good."}))
print(make_token(question.digest), question.digest)
"""


def run_elsewhere(secret: str | None) -> list[str]:
    environment = {name: value for name, value in os.environ.items() if name != "ADJUDGE_SECRET"}
    environment |= {} if secret is None else {"ADJUDGE_SECRET": secret}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=50
    )
    return done.stdout.split()


def test_a_secret_makes_tokens_the_same_in_every_process():
    """ADJUDGE_SECRET set: stable; another secret: another token; not set: another in each process."""
    one, again, other = run_elsewhere("s3cret"), run_elsewhere("s3cret"), run_elsewhere("different")
    random = [run_elsewhere(None), run_elsewhere(None)]

    assert one == again
    assert len({one[0], other[0], random[0][0], random[1][0]}) == 4
    assert {item[1] for item in (one, other, *random)} == {one[1]}


# ---------------------------------------------------------------- digests


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
