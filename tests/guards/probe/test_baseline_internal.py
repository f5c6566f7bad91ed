"""Files of baselines: what they say, what is wrong with them, and new baselines put into them."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from adjudge import UsageError
from adjudge.guards import ProbeContract, ProbeFile, ProbeThresholds, load_probes
from adjudge.guards.probe.baseline_file import MAX_BYTES, convert_output, read_entries, render_outputs, replace_file
from kit.judges import complaint, names

YAML = """\
# Baselines of the refund tool.
schema: adjudge/probes/1
thresholds: {low: 0.8}
contract:
  readOnly: true
probes:
  - name: days   # how long
    input: {q: "How long?"}
    expected:
      text: 14 days
      n: 1
    # kept apart

  - {name: who, input: [1, 2]}
  - name: note
    input: ""
    expected: |
      several
      lines
    contract: Speaks of notes.

  - name: last
    input: x
"""
JSON = {"probes": [{"name": "a", "input": {"z": 1, "b": None}}, {"name": "b", "input": "é", "expected": None}]}


def read(text: str, suffix: str = "yaml") -> ProbeFile:
    entries, thresholds = read_entries(text, suffix, where="probes.yaml")  # type: ignore[arg-type]
    return ProbeFile(path=Path(f"probes.{suffix}"), format=suffix, text=text, entries=entries, thresholds=thresholds)  # type: ignore[arg-type]


def save(directory: Path, text: str, name: str = "probes.yaml") -> Path:
    path = directory / name
    path.write_bytes(text.encode())
    return path


# ---------------------------------------------------------------- reading


def test_a_file_holds_probes(tmp_path: Path):
    """Names, inputs, baselines, thresholds, and a contract for all that have none of their own."""
    file = load_probes(save(tmp_path, YAML))

    assert [item.name for item in file.entries] == ["days", "who", "note", "last"]
    assert [item.recorded for item in file.entries] == [True, False, True, False]
    assert file.entries[0].expected == {"text": "14 days", "n": 1}
    assert file.entries[0].contract == ProbeContract(read_only=True)
    assert file.entries[2].contract == ProbeContract(description="Speaks of notes.")
    assert file.thresholds == ProbeThresholds(low=0.8)


def test_json_and_toml_are_read_too(tmp_path: Path):
    """The suffix says which."""
    toml = '[[probes]]\nname = "a"\ninput = {q = 1}\nexpected = "x"\n'

    assert load_probes(save(tmp_path, toml, "a.toml")).probes[0].input == {"q": 1}
    assert load_probes(save(tmp_path, json.dumps(JSON), "a.json")).entries[1].recorded
    assert load_probes(save(tmp_path, "\ufeff" + YAML, "a.yml")).entries[0].name == "days"


def test_null_is_a_baseline():
    """A tool whose output is null has said something; only what is left out is not recorded."""
    file = read("probes:\n  - {name: a, input: 1, expected: null}\n  - {name: b, input: 1}\n")

    assert [item.recorded for item in file.entries] == [True, False]
    assert file.entries[0].make_probe().expected is None
    assert names(complaint(lambda: file.probes), "probe 'b'", "no expected output", "--record")


P = "probes:\n  - name: a\n    input: 1\n"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ("probes.yaml", "YAML", "is empty")),
        ("probes: [", ("probes.yaml", "YAML", "line 2, column 1")),
        ("- a", ("probes.yaml, line 1", "mapping with probes", "['a']")),
        ("probe: []", ("probes.yaml, line 1", "'probe'", "did you mean 'probes'?")),
        ("schema: adjudge/probes/2\nprobes: []", ("line 1: schema", "'adjudge/probes/1'", "'adjudge/probes/2'")),
        ("probes: []", ("line 1: probes", "list of at least one", "[]")),
        ("probes:\n  a: 1", ("line 1: probes", "list of at least one", "{'a': 1}")),
        (P + "    expect: 2", ("line 4: probes[0].expect", "'expect'", "did you mean 'expected'?")),
        (P + "  - name: b", ("line 4: probes[1]", "needs 'input'")),
        (P + "  - input: b", ("line 4: probes[1]", "needs 'name'")),
        (P + "  - {name: a, input: 2}", ("line 4: probes[1].name", '"a"', "probes[0]", "give each")),
        (P + "  - {name: 7, input: 2}", ("line 4: probes[1]", "name that is not empty", "7")),
        (P + "    contract: {rules: x}", ("line 4: probes[0].contract", "rules", "'x'", "list of texts")),
        ("contract: {}\n" + P, ("line 1: contract", "says nothing")),
        ("thresholds: {lo: 1}\n" + P, ("line 1: thresholds.lo", "'lo'", "did you mean 'low'?")),
        (
            "thresholds: {low: 2}\n" + P,
            ("line 1: thresholds", "low must be", "between 0 and 1", "2", "write 0.02"),
        ),
        ("thresholds:\n" + P, ("line 1: thresholds", "mapping", "none", "low", "medium", "None")),
        (P + "    expected: 2024-01-01", ("line 4: probes[0].expected", "date", "write it as text")),
        (P + "    expected: {1: x}", ("line 4: probes[0].expected", "key 1", "int", "text")),
        (P + "    expected: .nan", ("line 4: probes[0].expected", "nan", "JSON number")),
        (P + '    expected: "a\\0b"', ("line 2: probes[0]", "expected of probe 'a'", "NUL character")),
    ],
)
def test_what_is_wrong_in_a_file_is_one_sentence(text: str, parts: tuple[str, ...]):
    """With the line, the value and what to do."""
    message = complaint(read, text)

    assert names(message, *parts)
    assert message.startswith("probes.yaml")
    assert message.isprintable()


@pytest.mark.parametrize("key", ["command", "function", "tool", "run", "exec", "python", "judge"])
def test_a_file_runs_nothing(key: str):
    """A file of somebody else's can be looked at: what is run, and who is asked, stands on the command line alone."""
    parts = ("probes.yaml, line", key, "runs nothing", "asks nobody", "command line")

    assert names(complaint(read, f"{key}: rm -rf x\n{P}"), *parts)
    assert names(complaint(read, f"{P}    {key}: rm -rf x"), *parts)


def test_yaml_that_would_build_objects_is_refused():
    """As everywhere: tags, aliases that multiply, and depth without end."""
    assert "could not determine a constructor" in complaint(
        read, P + "    expected: !!python/object/apply:os.getcwd []"
    )
    assert "nested more than 50 levels" in complaint(read, P + "    expected: " + "[" * 60 + "]" * 60)


def test_a_path_that_is_no_file_is_one_sentence(tmp_path: Path):
    """A folder, a device, nothing, another suffix, too much, other bytes."""
    os.mkfifo(tmp_path / "pipe.yaml")

    assert "is not a regular file" in complaint(load_probes, tmp_path / "pipe.yaml")
    (tmp_path / "folder.yaml").mkdir()
    assert "is not a regular file" in complaint(load_probes, tmp_path / "folder.yaml")
    assert "cannot be read: No such file" in complaint(load_probes, tmp_path / "none.yaml")
    assert "use .yaml, .yml, .json or .toml" in complaint(load_probes, tmp_path / "probes.txt")
    assert "NUL character" in complaint(load_probes, "a\x00.yaml")
    (tmp_path / "bytes.yaml").write_bytes(b"\xff\xfe")
    assert "is not UTF-8 text (byte 0)" in complaint(load_probes, tmp_path / "bytes.yaml")
    with (tmp_path / "large.yaml").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "has at most 10,000,000 bytes" in complaint(load_probes, tmp_path / "large.yaml")


# ---------------------------------------------------------------- recording


def test_a_new_baseline_is_put_beside_the_name():
    """One line, in block and in flow; every other line stays as it was, comments included."""
    before = YAML.splitlines()
    after = render_outputs(read(YAML), {"who": [True], "last": "y"}).splitlines()

    assert [line for line in after if line not in before] == [
        "  - {name: who, expected: [true], input: [1, 2]}",
        '    expected: "y"',
    ]  # fmt: skip
    assert [line for line in before if line not in after] == ["  - {name: who, input: [1, 2]}"]


def test_a_baseline_can_take_the_place_of_another():
    """Whatever it was: a block, lines, a value on its line; what follows it stays."""
    text = render_outputs(read(YAML), {"days": {"n": 2}, "note": None})

    assert '    expected:\n      {"n": 2}\n    # kept apart\n' in text
    assert "    expected: null\n    contract: Speaks of notes.\n" in text
    assert read("probes:\n  - {name: a, input: 1, expected: }\n").entries[0].recorded
    for old in ("null", "''", "~", "[1]  # one", "{a: [1]}", ">-\n      folded\n      text", '"a\n      b"', ""):
        file = read(f"{P}    expected: {old}\n    contract: c\n  - {{name: b, input: 2}}\n")
        assert read(render_outputs(file, {"a": {"x": 1}})).entries[0].expected == {"x": 1}


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "  # end", "\r\n"])
def test_the_last_line_may_end_as_it_likes(end: str):
    """Also without a line's end, and with Windows'."""
    file = read(f"probes:\r\n  - input: 1\r\n    name: a{end}")

    assert read(render_outputs(file, {"a": "x"})).entries[0].expected == "x"


@pytest.mark.parametrize("asked", ["{q: When?}", "[Why?]", "{q: 👩‍💻 When?, r: 1}", '{"q":1}'])
def test_what_can_be_read_can_be_recorded(asked: str):
    """Also where the two readers of YAML differ: a question mark at the end of a word in braces is part of it."""
    text = f"probes:\n  - name: a  # é 👩\n    input: {asked}\n    expected: [old]\n  - {{name: b, input: {asked}}}\n"
    file = read(text)
    after = read(render_outputs(file, {"a": "new", "b": {"x": 1}}))

    assert [item.expected for item in after.entries] == ["new", {"x": 1}]
    assert [item.input for item in after.entries] == [item.input for item in file.entries]


def test_json_keeps_its_members_in_order():
    """Nothing is sorted, nothing escaped that need not be."""
    text = render_outputs(read(json.dumps(JSON), "json"), {"a": 1})

    assert json.loads(text)["probes"][0] == {"name": "a", "input": {"z": 1, "b": None}, "expected": 1}
    assert text.index('"z"') < text.index('"b"')
    assert "é" in text


def test_toml_cannot_be_recorded():
    """It has no null and is not written here; the sentence says what to use."""
    file = read('[[probes]]\nname = "a"\ninput = 1\n', "toml")

    assert "keep baselines in YAML or JSON to record" in complaint(render_outputs, file, {"a": 1})


def test_a_text_that_cannot_be_edited_is_left_alone():
    """Where the new text would say anything but what was meant (an alias, a name on many lines), nothing is done."""
    shared = "probes:\n  - name: a\n    input: &x [1]\n    expected: *x\n"

    with pytest.raises(UsageError, match=r"cannot be put into|would not be readable"):
        render_outputs(read(shared), {"a": 2})


JSONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text().filter(lambda text: "\x00" not in text),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
        st.text(max_size=20).filter(lambda text: "\x00" not in text), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip


@given(output=JSONS)
@example(output=[1e16, 5e-324, -1e-7])
def test_every_output_is_read_back_as_it_was(output: Any):
    """Whatever a tool writes; and the other parts of the file stay what they were."""
    for text, suffix in ((YAML, "yaml"), (json.dumps(JSON | {"probes": [{"name": "who", "input": 1}]}), "json")):
        before = read(text, suffix)
        after = read(render_outputs(before, {"who": output}), suffix)
        entry = next(item for item in after.entries if item.name == "who")
        assert json.dumps(entry.expected) == json.dumps(output)
        assert [item for item in after.entries if item.name != "who"] == [
            item for item in before.entries if item.name != "who"
        ]


@pytest.mark.parametrize(
    "word", ["1:30", "yes", "0x10", "1e5", "2024-01-01", "~", "<<", "- a", "a: b", "&x", "%TAG", "#"]
)
def test_words_that_yaml_knows_stay_texts(word: str):
    """And so do keys."""
    file = read(P)

    assert read(render_outputs(file, {"a": {word: word}})).entries[0].expected == {word: word}


@pytest.mark.parametrize(
    ("output", "plain"),
    [("12", "12"), ((1, 2), [1, 2]), ({"a": {1: None}}, {"a": {"1": None}}), (None, None), (1.5, 1.5)],
)
def test_an_output_is_recorded_as_a_judge_would_see_it(output: Any, plain: Any):
    """Text stays text, everything else is its JSON value."""
    assert convert_output(output) == plain


def test_an_object_that_stands_for_a_text_is_recorded_as_that():
    """As content it is its ``output``."""

    class Answer:
        output = "14 days"

    assert convert_output(Answer()) == "14 days"


def test_the_file_is_replaced_at_once(tmp_path: Path):
    """With the rights it had; a link stays a link; nothing else is left behind."""
    path = save(tmp_path, YAML)
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    file = load_probes(link)
    replace_file(file, render_outputs(file, {"who": 1}))

    assert link.is_symlink()
    assert load_probes(path).entries[1].expected == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert sorted(item.name for item in tmp_path.iterdir()) == ["link.yaml", "probes.yaml"]


def test_what_somebody_else_wrote_meanwhile_is_kept(tmp_path: Path):
    """The file is read again before it is replaced."""
    path = save(tmp_path, YAML)
    file = load_probes(path)
    path.write_text(P, "utf-8")

    assert "was changed by somebody else meanwhile" in complaint(replace_file, file, "x")
    assert path.read_text("utf-8") == P


def test_a_file_that_is_gone_is_said(tmp_path: Path):
    """A system's error is a sentence, and no half of a file is left behind."""
    path = save(tmp_path, YAML)
    file = load_probes(path)
    path.unlink()

    assert "cannot be written: No such file or directory; nothing was changed" in complaint(replace_file, file, "x")
    assert list(tmp_path.iterdir()) == []


def test_a_write_that_breaks_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The new text goes to a file of its own first, which is removed."""

    def fails(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    path = save(tmp_path, YAML)
    file = load_probes(path)
    monkeypatch.setattr(os, "fsync", fails)

    assert "No space left on device; nothing was changed" in complaint(replace_file, file, "x")
    assert path.read_text("utf-8") == YAML
    assert list(tmp_path.iterdir()) == [path]
