"""Logs of the shape that Inspect 0.3.285 writes, as JSON and packed, as cases."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from adjudge import UsageError, open_dataset
from adjudge.dataset import import_inspect
from kit import cli
from kit.datasets import compress_with_zstd, pack
from kit.judges import names


@pytest.fixture(name="folder", autouse=True)
def work_here(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def sample(number: object = 1, *, epoch: int = 1, **more: object) -> dict[str, Any]:
    message = {"id": "random", "content": "Paris", "source": "generate", "role": "assistant"}
    output = {"model": "m", "choices": [{"message": message, "stop_reason": "stop"}], "completion": "Paris"}
    return {"id": number, "epoch": epoch, "input": "Q", "target": "T", "output": output, "scores": {}, **more}


def empty(**more: object) -> dict[str, Any]:
    return {"model": "m", "choices": [], "completion": "", **more}


def write_json(*samples: object) -> str:
    Path("log.json").write_text(json.dumps({"version": 2, "status": "success", "samples": samples}), "utf-8")
    return "log.json"


def refuse(path: str) -> str:
    with pytest.raises(UsageError) as caught:
        list(import_inspect(path))
    return str(caught.value)


# ---------------------------------------------------------------- what is in a log


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (sample(output=empty()), "sample 1 … no answer … cut off"),
        (
            sample(output=empty(), limit={"type": "message", "limit": 1}),
            "sample 1 … no answer … a limit … 'message'",
        ),
        (sample(error={"message": "boom"}), "sample 1 … an error (boom) … run it again"),
        (sample(output=empty(error="refused")), "sample 1 … an error (refused) … run it again"),
        (
            sample(output={"choices": [{"message": {"content": "", "tool_calls": [{}]}}], "completion": ""}),
            "sample 1 … no answer … cut off",
        ),
    ],
)
@pytest.mark.parametrize("write", [write_json, pack])
def test_what_broke_is_no_empty_answer(write, broken, message):
    """Inspect writes an empty completion then; a rubric that only forbids things would pass it."""
    dataset = import_inspect(write(broken, sample(2)), on_bad_row="skip")

    assert [(case.id, case.content) for case in dataset] == [("2", "Paris")]
    (row,) = dataset.bad_rows
    assert names(row.why, *message.split(" … "))


def test_an_empty_answer_that_was_given_is_one():
    """As when a filter took all of it."""
    output = {"choices": [{"message": {"content": ""}, "stop_reason": "content_filter"}], "completion": ""}
    (case,) = import_inspect(write_json(sample(output=output)))

    assert case.content == ""


def test_an_answer_at_a_limit_is_the_last_one_and_counted():
    """It may be no more than a step on the way."""
    dataset = import_inspect(write_json(sample(limit={"type": "message", "limit": 3})))

    assert [case.content for case in dataset] == ["Paris"]
    assert dataset.notes == {"sample that a limit stopped: its answer is the last that was said": 1}


def test_a_score_that_is_no_number_does_not_spoil_the_log():
    """Inspect writes NaN for one that could not be given; it is null here."""
    (case,) = import_inspect(write_json(sample(scores={"s": {"value": float("nan")}})))

    assert case.metadata["inspect"]["scores"] == {"s": {"value": None}}


def test_the_same_task_is_the_same_in_two_logs():
    """The ids of messages are new in each, and would make another question of it; images are not read."""
    parts = [{"type": "text", "text": "look"}, {"type": "image", "image": "attachment://0"}]
    messages = [{"id": name, "source": "input", "role": "user", "content": parts} for name in ("x", "y")]
    dataset = import_inspect(write_json(*(sample(number, input=[item]) for number, item in enumerate(messages))))
    first, second = dataset

    assert first.task == second.task == [{"role": "user", "content": parts}]
    assert dataset.notes == {"image or file in an input, which was not read": 2}


def test_half_a_character_is_a_bad_row():
    """It could not be written again."""
    assert "half of a surrogate pair" in refuse(write_json(sample(metadata={"k": "\ud83d"})))


# ---------------------------------------------------------------- packed logs


def test_a_packed_log_gives_what_the_same_log_gives_as_json():
    """With an epoch in each id where there are several; what is named like a path is only a name."""
    samples = [sample(1), sample(1, epoch=2), sample("../../etc/x", metadata={"k": 1}), sample("a/b")]

    assert list(import_inspect(pack(*samples))) == list(import_inspect(write_json(*samples)))
    assert [case.id for case in import_inspect("log.eval")][:2] == ["1, epoch 1", "1, epoch 2"]
    assert sorted(path.name for path in Path().iterdir()) == ["log.eval", "log.json"]


def test_samples_without_an_id_are_numbered_in_a_log_of_several_epochs_too():
    """By their place in the file, as in a log of one: not all of an epoch by one id."""
    samples = [sample(1), sample(1, epoch=2)]
    for one in samples:
        del one["id"]

    assert len({case.id for case in import_inspect(write_json(*samples, *samples))}) == 4


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_sample_that_was_written_again_counts_once():
    """The last one, as Inspect has it after scores were edited."""
    path = pack(sample(1, target="old"), sample(1, target="new"))

    assert [case.reference for case in import_inspect(path)] == ["new"]


def test_a_log_packed_with_zstd_is_read(require):
    """As Inspect writes them, in more than one frame where a sample is large."""
    require("pyarrow", cli.find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    Path("log.eval").write_bytes(compress_with_zstd({"samples/1_epoch_1.json": json.dumps(sample()).encode()}))

    assert [case.content for case in import_inspect("log.eval")] == ["Paris"]


@pytest.mark.integration
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads zstd itself")
def test_where_zstd_cannot_be_read_the_remedies_are_named(folder, require):
    """Three of them, as Inspect writes no other logs."""
    require("pyarrow", cli.find_spec("pyarrow"), "pip install 'adjudge[parquet]'")
    Path("log.eval").write_bytes(compress_with_zstd({"samples/1_epoch_1.json": json.dumps(sample()).encode()}))

    _, environment = cli.command(folder)
    # In a process of its own: whoever imports Inspect itself gives this process's zipfile a zstd.
    code = (
        "import sys; sys.modules['pyarrow'] = None; "
        "from adjudge.dataset import import_inspect; list(import_inspect('log.eval'))"
    )
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert "UsageError" in done.stderr
    assert "compressed with zstd, which Python reads from 3.14 on; pip install 'adjudge[parquet]' reads it too" in (
        done.stderr
    )
    assert "inspect log convert LOG --to json --output-dir DIR" in done.stderr


def test_a_damaged_sample_is_a_bad_row():
    """The others are read."""
    path = Path(pack(sample(1, input="A" * 500), sample(2)))
    data = path.read_bytes()
    at = data.index(b"samples/1_epoch_1.json") + 40
    path.write_bytes(data[:at] + bytes(byte ^ 255 for byte in data[at : at + 20]) + data[at + 20 :])
    dataset = import_inspect(path, on_bad_row="skip")

    assert [case.id for case in dataset] == ["2"]
    assert "the sample 'samples/1_epoch_1.json' cannot be read" in dataset.bad_rows[0].why


def test_another_compression_is_refused():
    """Nothing of what it could raise is waited for."""
    with zipfile.ZipFile("log.eval", "w", zipfile.ZIP_LZMA) as packed:
        packed.writestr("samples/1_epoch_1.json", json.dumps(sample()))

    assert "the sample 'samples/1_epoch_1.json' is compressed as no log is" in refuse("log.eval")


@pytest.mark.parametrize(
    ("members", "message"),
    [
        (
            ["samples/1_epoch_1/sample.json"],
            "is stored in pieces … are not read … write it as JSON with `inspect log",
        ),
        (["summaries.json"], "log.eval holds no samples … was the run cut off before the first one ended?"),
    ],
)
def test_a_log_without_whole_samples_says_what_to_do(members, message):
    """Rather than giving no case."""
    assert names(refuse(pack(sample(), names=members)), *message.split(" … "))


def test_a_log_opened_as_a_data_set_says_who_reads_it():
    """Its suffix tells."""
    with pytest.raises(UsageError, match="is a log of Inspect; read it with import_inspect, or --from inspect"):
        open_dataset(pack(sample()))


# ---------------------------------------------------------------- data sets with fields of other names


def test_a_field_of_another_name_can_be_what_is_asked():
    """As with Inspect's FieldSpec; without an answer it is the content."""
    Path("d.jsonl").write_text('{"id": "q1", "question": "Why?", "answer": "So.", "given": "Because."}\n')

    assert "say which of them is asked, with fields['task']" in refuse("d.jsonl")
    (alone,) = import_inspect("d.jsonl", fields={"task": "question", "reference": "answer"})
    (judged,) = import_inspect("d.jsonl", fields={"task": "question", "reference": "answer", "content": "given"})
    assert (alone.content, alone.task, alone.reference) == ("Why?", None, "So.")
    assert (judged.content, judged.task, judged.reference) == ("Because.", "Why?", "So.")


# ---------------------------------------------------------------- what people scored

AS_IT_WAS = {"answer": "UNCHANGED", "explanation": "UNCHANGED", "reason": "UNCHANGED", "metadata": "UNCHANGED"}


def edit(value: object, author: str) -> dict[str, Any]:
    """An edit as ``edit_score`` of Inspect 0.3.285 writes it."""
    provenance = {"timestamp": "2026-11-22T12:43:04.757768Z", "author": author, "reason": "is right", "metadata": {}}
    return {"value": value, **AS_IT_WAS, "provenance": provenance}


def score(*edits: dict[str, Any], value: object = "C") -> dict[str, Any]:
    original = {"value": "I", "answer": "4", "explanation": "4", "metadata": {}}
    return {"value": value, "answer": "4", "explanation": "4", "history": [original, *edits] if edits else []}


def labels(scores: dict[str, Any], **options: Any) -> tuple[Any, Any]:
    (case,) = import_inspect(write_json(sample(scores=scores)), **options)
    return case.label, case.labels


def test_whoever_edited_a_score_labelled_the_case():
    """Under the author's name; an edit that left the value says nothing, and of several the last counts."""
    assert labels({"includes": score(edit("C", "ann"))}) == (True, {"ann": True})
    assert labels({"includes": score(edit("C", "ann"), edit("UNCHANGED", "bob"))}) == (True, {"ann": True})
    assert labels({"includes": score(edit("C", "ann"), edit("I", "bob"))}) == (None, {"ann": True, "bob": False})
    assert labels({"includes": score(edit("C", "ann"), edit(0.5, "ann"))}) == (0.5, {"ann": 0.5})


def test_a_scorer_s_score_is_no_label_unless_people_gave_it():
    """``precomputed_scores`` may hold the ratings of people, which the caller has to say."""
    scores = {"includes": score(), "precomputed_scores": score(value=0.25)}
    assert labels(scores) == (None, {})
    assert labels(scores, label_name="precomputed_scores") == (0.25, {"precomputed_scores": 0.25})
    assert labels(scores, label_name="missing") == (None, {})


def test_edits_under_several_names_are_no_label_until_one_is_named():
    """A guess would mix what two scores mean."""
    scores = {"includes": score(edit("C", "ann")), "style": score(edit("I", "ann"))}
    dataset = import_inspect(write_json(sample(scores=scores)))
    (case,) = dataset

    assert case.labels == {}
    assert "label_name" in next(iter(dataset.notes))
    assert labels(scores, label_name="style") == (False, {"ann": False})


@pytest.mark.parametrize("value", ["P", "N", "good", {"a": 1}, [1], None])
def test_a_score_that_is_no_verdict_is_counted(value):
    """Partial credit and words are not guessed."""
    dataset = import_inspect(write_json(sample(scores={"s": score(edit(value, "ann"))})))
    (case,) = dataset

    assert (case.label, case.labels) == (None, {})
    assert any("no label" in note for note in dataset.notes)


@pytest.mark.parametrize("history", [7, [7], [{"value": "C", "provenance": 7}], [{"value": "C", "provenance": {}}]])
def test_a_history_that_is_none_labels_nothing(history):
    """A log comes from anybody."""
    assert labels({"s": {"value": "C", "history": history}}) == (None, {})


@pytest.mark.parametrize("name", ["ratings.json", "ratings.jsonl"])
def test_a_file_of_precomputed_scores_labels_the_samples(name):
    """By id, and by epoch where a record has one; the rater is what the file is called."""
    records = [{"id": 1, "value": "I"}, {"id": "1", "epoch": 2, "value": "C"}]
    text = json.dumps(records) if name.endswith(".json") else "\n".join(map(json.dumps, records))
    Path(name).write_text(text)
    log = write_json(sample(), sample(epoch=2), sample(2))

    assert [case.labels for case in import_inspect(log, ratings=name)] == [{"ratings": False}, {"ratings": True}, {}]


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "{}",
        "[1]",
        '[{"id": 1}]',
        '[{"id": 1, "value": 1, "epoch": "x"}]',
        '[{"id": 1, "value": 1}, {"id": "1", "value": 1}]',
    ],
)
def test_ratings_that_inspect_refuses_are_refused(text):
    """When the data set is opened, naming the file."""
    Path("ratings.json").write_text(text)
    with pytest.raises(UsageError, match=r"ratings\.json"):
        import_inspect(write_json(sample()), ratings="ratings.json")
