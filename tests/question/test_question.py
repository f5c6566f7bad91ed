"""What is asked: wording and data kept apart, tokens nobody can guess, digests that are the same everywhere."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adjudge import Judge
from adjudge.testing import ScriptedModel
from kit.judges import YES, scores
from kit.patience import HANG
from kit.rubrics import RUBRIC


def ask(content="The content.", rubric=None, *, structured=False, **options):
    """The request that a judge makes of a model."""
    model = ScriptedModel(scores(1.0), structured=structured)
    options |= {} if rubric or "result_format" in options else {"criteria": "Good."}
    asyncio.run(Judge(model, reask=0).evaluate(content, rubric, **options))
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
    entry = request.form.schema["properties"]["criteria"]["properties"]["good"]

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
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True, timeout=HANG
    )
    return done.stdout.split()


@pytest.mark.integration
def test_a_secret_makes_tokens_the_same_in_every_process():
    """ADJUDGE_SECRET set: stable; another secret: another token; not set: another in each process."""
    one, again, other = run_elsewhere("s3cret"), run_elsewhere("s3cret"), run_elsewhere("different")
    random = [run_elsewhere(None), run_elsewhere(None)]

    assert one == again
    assert len({one[0], other[0], random[0][0], random[1][0]}) == 4
    assert {item[1] for item in (one, other, *random)} == {one[1]}
