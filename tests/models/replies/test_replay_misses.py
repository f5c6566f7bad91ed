"""What a replay says when it has no reply: where the request differs from the nearest one that was recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adjudge import Judge
from adjudge.models import RecordingModel, ReplayModel
from adjudge.testing import ScriptedModel

GOOD = {"criteria": [{"reasoning": "", "score": 1.0}]}


@pytest.fixture(name="file")
def provide_file(tmp_path: Path) -> Path:
    """A recording of three judgements."""
    file = tmp_path / "replies.jsonl"
    judge = Judge(RecordingModel(ScriptedModel(GOOD), file))
    for number in range(3):
        text = f"The secret recipe, part {number}."
        assert judge.evaluate_sync(text, criteria="Is polite.", metadata={"case": f"c{number}"}).passed
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps({**row, "case": None}) + "\n" for row in rows[:2]) + json.dumps(rows[2]) + "\n")
    return file


def miss(
    file: Path, content: str = "The secret recipe, part 1.", *, case: str | None = None, judge=None, **options
) -> str:
    """What a result says whose judge finds no reply."""
    judge_of_file = judge or Judge(ReplayModel(file))
    options = {"criteria": "Is polite.", "metadata": {"case": case} if case else {}} | options
    result = judge_of_file.evaluate_sync(content, **options)
    assert result.undecided_because == "error"
    assert "no unused reply" in result.detail
    return result.detail


def test_other_content_is_named_and_not_quoted(file: Path):
    """Errors are logged, so the piece of data that differs is named and no word of it shown."""
    message = miss(file, "The secret recipe, part 1, changed.")

    assert "line 2" in message
    assert "its content differs" in message
    assert "recipe" not in message


@pytest.mark.parametrize("part", ["task", "context", "reference"])
def test_other_data_is_named(file: Path, part: str):
    """Whichever fence the first difference stands in."""
    assert f"its {part} differs" in miss(file, **{part: "Something else."})


def test_another_rubric_is_named_with_its_line(file: Path):
    """Criteria are in the instructions."""
    assert "its instructions differ from line" in miss(file, criteria="Is short.")


def test_other_parameters_are_named_with_both_values(file: Path):
    """The value that was sent then, and the one that is sent now."""
    message = miss(file, judge=Judge(ReplayModel(file), temperature=0.5, max_output_tokens=100))

    assert "temperature was 0.0 and is 0.5" in message
    assert "max_output_tokens was 2048 and is 100" in message


def test_a_reply_that_was_used_up_is_said_to_be(file: Path):
    """The same question asked once more than it was recorded is another mistake than a changed question."""
    judge = Judge(ReplayModel(file))
    assert judge.evaluate_sync("The secret recipe, part 1.", criteria="Is polite.").passed

    assert "was recorded once" in miss(file, judge=judge)


def test_rows_of_another_case_are_compared_too(file: Path):
    """A case that was renamed is found by its content."""
    message = miss(file, "The secret recipe, part 2.", case="renamed")

    assert 'it is of case "c2"' in message


def test_rows_written_by_hand_have_nothing_to_compare(tmp_path: Path):
    """A row without the request says nothing about it; the miss is said all the same."""
    file = tmp_path / "hand.jsonl"
    file.write_text('{"case": "a", "reply": {"text": "{}"}}\n')

    assert "nearest" not in miss(file, case="b")


def test_only_the_first_misses_are_compared(file: Path):
    """A data set that misses everywhere reads the file twenty times, and not once a case."""
    judge = Judge(ReplayModel(file))
    messages = [miss(file, f"Nothing {number}", judge=judge) for number in range(22)]

    assert ["nearest" in text for text in messages] == [True] * 20 + [False] * 2


def test_a_hostile_name_of_a_case_stays_on_its_line(file: Path):
    """What a file says reaches terminals escaped and cut."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text(json.dumps({**rows[2], "case": "\x1b[31m\n" + "x" * 500}) + "\n")
    message = miss(file, "The secret recipe, part 2.", case="mine")

    assert "\x1b" not in message
    assert len(message) <= 500


@pytest.mark.parametrize("parameters", [["x"], "x", {"temperature": "The secret recipe."}, {"seed": {"a": ["secret"]}}])
def test_a_file_with_something_else_for_parameters_shows_none_of_it(file: Path, parameters: object):
    """A text in the place of a number may be anybody's; the miss is said all the same."""
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    rows[2]["request"]["parameters"] = parameters
    file.write_text(json.dumps(rows[2]) + "\n")
    message = miss(file, "Other.")

    assert "no unused reply" in message
    assert "nearest is line 1" in message
    assert "secret" not in message


def test_a_file_that_became_hostile_leaves_the_miss_as_it_is(file: Path):
    """Rows that are nested without end, or are none, stop nobody from being told that there is no reply."""
    judge = Judge(ReplayModel(file))
    assert judge.evaluate_sync("The secret recipe, part 1.", criteria="Is polite.").passed
    deep = '{"key": "k", "request": {"x": ' + "[" * 100_000 + "]" * 100_000 + "}}\n"
    for text in (deep, "no row\n"):
        file.write_text(text)
        assert "nearest" not in miss(file, "Other.", judge=judge)


def test_a_file_that_is_gone_leaves_the_miss_as_it_is(file: Path):
    """What can be said without the file is said."""
    judge = Judge(ReplayModel(file))
    assert judge.evaluate_sync("The secret recipe, part 1.", criteria="Is polite.").passed
    file.unlink()

    assert "nearest" not in miss(file, "Other.", judge=judge.replace())
