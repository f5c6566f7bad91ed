"""What a person gets wrong: one sentence naming what, the value and the remedy; a status; never a traceback."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kit import cli
from kit.cli import ESCAPES, HIDDEN, WORDS, Line, serve
from kit.judges import names

pytestmark = pytest.mark.timed


POLITE = ("--criteria", "Is polite.")
ASK = (*POLITE, "--judge", WORDS)


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    Path("good.txt").write_text("good", encoding="utf-8")
    Path("empty.txt").write_text(" \n", encoding="utf-8")
    Path("binary.bin").write_bytes(b"abc\x00\x01")
    Path("latin.txt").write_bytes("Grüße".encode("latin-1"))
    Path("folder").mkdir()
    return Line(capsys)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "nothing to judge … name a file, or -"),
        (["-", "-"], "- … standard input … name it once"),
        (["gone.txt"], "content … cannot read gone.txt … No such file … name a file"),
        (["folder"], "folder holds no text … name a folder"),
        (["binary.bin"], "binary.bin … NUL byte at 3 … convert it"),
        (["latin.txt"], "latin.txt … not UTF-8 … byte 2 … convert it"),
        (
            ["empty.txt"],
            "empty.txt is empty … a case of a .jsonl file",
        ),
        (["gone.jsonl"], "cannot read gone.jsonl … No such file … name a file"),
        (["good.txt", "--reference", "gone.md"],
         "--reference … cannot read gone.md … No such file … name a file"),
        (["good.txt", "--task", "folder"], "--task … folder is a directory … name the files"),
        (["good.txt", "--context", "binary.bin"],
         "binary.bin … NUL byte at 3 … convert it"),
        (["x" * 5000], f"cannot read {'x' * 5000} … too long … name a file"),
    ],
)  # fmt: skip
def test_what_cannot_be_judged(line: Line, arguments: list[str], sentence: str):
    """Nothing to judge, twice standard input, a file that is missing, a folder, binary, not UTF-8, or empty."""
    ran = line("judge", *arguments, *ASK)

    assert ran.status == 2
    assert names(ran.sentence, *sentence.split(" … "))


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("opnai:m", "'opnai:m' … did you mean openai:?"),
        ("gpt-5", "'gpt-5' … names begin with openai:, "),
        ("", "name of a model … like 'openai:gpt-6.1-terra' … ''"),
        ("openai:", "'openai:' … a name after the colon … openai:NAME"),
        ("openai:m?speed=9", "'openai:m' … no option 'speed' … it takes base_url, key_env, "),
        ("http://127.0.0.1/v1", "http://127.0.0.1/v1 needs … after '#' … http://127.0.0.1/v1#NAME"),
        ("http://u:p@h/v1#m", "base_url … user name or password; "),
        ("http://h:99999/v1#m", "base_url … port … from 0 to 65535"),
        ("openai:m", "openai:m … a key … set OPENAI_API_KEY"),
        ("gemini:m", "gemini:m … a key … set GEMINI_API_KEY or GOOGLE_API_KEY"),
        ("azure:m", "azure:m needs "),
        ("openai:m?key_env=MINE", "openai:m … a key … set MINE"),
        ("llama:m.gguf", "'llama:m.gguf' … llama-server -m … http://127.0.0.1:8080/v1#NAME"),
        ("replay:gone.jsonl", "recording 'gone.jsonl' … cannot be read … No such file"),
        ("python:gone_module:f", "python:gone_module:f cannot be found … 'gone_module'"),
        ("python:f", "python:f … python:package.module:function"),
        (
            "python:kit.cli:gone",
            "python:kit.cli:gone cannot be found … 'kit.cli' … 'gone'",
        ),
        ("python:broken_module:f", "python:broken_module:f cannot be imported … SyntaxError: "),
        ("python:ending_module:f", "python:ending_module:f cannot be imported … SystemExit: 0 … mend the module"),
    ],
)
def test_judges_that_cannot_be_asked(line: Line, spec: str, sentence: str):
    """An unknown prefix, a missing key, a wrong address, a module that cannot be imported: nobody was asked, so 2."""
    Path("broken_module.py").write_text("def f(:\n", encoding="utf-8")
    Path("ending_module.py").write_text("import sys\nsys.exit(0)\n", encoding="utf-8")
    ran = line("judge", "good.txt", *POLITE, "--judge", spec)

    assert ran.status == 2
    assert names(ran.sentence, *sentence.split(" … "))


def test_a_missing_key_is_said_once_and_first(line: Line):
    """It would be wrong for every content, so it is one sentence, whatever number of contents there is."""
    ran = line("judge", "good.txt", "good.txt", "gone.txt", *POLITE, "--judge", "openai:m")

    assert ran.status == 2
    assert names(ran.sentence, "openai:m", "a key", "set OPENAI_API_KEY")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("name: x\ncriteria:\n  - {name: a, description: b}\n  - {name: a, description: c}\n",
         'r.yaml, line 4 … criteria[1].name: "a" … criteria[0] … give each its own'),
        ("name: x\ncriteria:\n  - {name: a, description: b, weight: 0}\n", "r.yaml, line 2 … criteria: "),
        ("name: x\npassing_threshold: 70\ncriteria:\n  - {name: a, description: b}\n",
         "r.yaml, line 2 … passing_threshold … between 0 and 1 … 70 … write 0.7"),
        ("name: x\ncriteria: []\n", "r.yaml, line 2 … criteria: "),
        ("name: x\ncritera: []\n", "r.yaml, line 2 … 'critera' … did you mean 'criteria'?"),
        ("{", "r.yaml is not a rubric in YAML: "),
    ],
)  # fmt: skip
def test_rubrics_that_are_not_valid(line: Line, text: str, sentence: str):
    """A name twice, weights that sum to nothing, a threshold of 70: file, line, place, value and remedy."""
    Path("r.yaml").write_text(text, encoding="utf-8")
    for ran in (line("judge", "good.txt", "--rubric", "r.yaml", "--judge", WORDS), line("rubric", "check", "r.yaml")):
        assert ran.status == 2
        assert names(ran.sentence, *sentence.split(" … "))


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("securty", "no shipped rubric … 'securty' … did you mean 'security'"),
        ("gone.yaml", "gone.yaml does not exist … no rubric"),
        ("folder/", "folder is a directory … name a rubric file"),
        ("binary.bin", "binary.bin is "),
        ("latin.yaml", "latin.yaml … not UTF-8 … byte 2 … save it as UTF-8"),
    ],
)
def test_rubrics_that_cannot_be_read(line: Line, name: str, sentence: str):
    """A name that nearly exists, a missing file, a folder, a file of another kind, another encoding."""
    Path("latin.yaml").write_bytes("Grüße".encode("latin-1"))
    ran = line("judge", "good.txt", "--rubric", name, "--judge", WORDS)

    assert ran.status == 2
    assert names(ran.sentence, *sentence.split(" … "))


def test_an_unreachable_host_is_the_world_s_fault(line: Line):
    """3, with the address and what happened on standard output, and what to do on standard error."""
    ran = line("judge", "good.txt", *POLITE, "--judge", "http://127.0.0.1:1/v1#m")

    assert ran.status == 3
    assert ran.out.startswith("? undecided (error)\n127.0.0.1:1 could not be reached")
    assert names(ran.err, "error", "adjudge doctor")
    assert "could not be reached" not in ran.err  # what one stream says, the other does not repeat


def test_a_server_that_asks_for_too_long_a_wait(line: Line):
    """What a provider asks for beyond a minute is not waited for, and is passed on."""
    with serve(mode="429", headers={"Retry-After": "3600"}) as provider:
        ran = line("judge", "good.txt", *POLITE, "--judge", provider.spec)

    assert ran.status == 3
    assert "answered 429 and asks to wait 3600 seconds" in ran.out
    assert len(provider.bodies) == 1


def test_rows_that_cannot_be_read(line: Line):
    """File and line, and what the line should be; a data set without any case is no pass."""
    for text, sentence in {
        "": "rows.jsonl holds no case … one JSON object per line",
        "\n\n": "rows.jsonl holds no case … one JSON object per line",
        "{\n": "rows.jsonl, line 1 … not a line of JSON (",
        '{"content": NaN}\n': "rows.jsonl, line 1: ",
        '{"contents": "x"}\n': "rows.jsonl, line 1 … no 'content' … it has 'contents'",
    }.items():
        Path("rows.jsonl").write_text(text, encoding="utf-8")
        ran = line("judge", "rows.jsonl", *ASK)
        assert ran.status == 2
        assert names(ran.sentence, *sentence.split(" … "))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["juge"], "no such command 'juge' … did you mean 'judge' … adjudge --help"),
        (["rubric", "list", "extra"], "'extra' … not expected here … adjudge rubric list --help"),
        (["rubric", "show"], "missing argument 'R' … adjudge rubric show --help"),
        (["doctor", "--timeout", "nan"], "--timeout … above 0 … nan"),
        (["judge", "x", "--timeout"], "'--timeout' requires an argument … adjudge --help"),
        (["demo", "--jsn"], "no option --jsn … did you mean --json … adjudge demo --help"),
    ],
)
def test_commands_that_do_not_exist(line: Line, arguments: list[str], sentence: str):
    """The word, and where the right one stands."""
    ran = line(*arguments)

    assert ran.status == 2
    assert names(ran.sentence, *sentence.split(" … "))


@pytest.mark.parametrize("group", ["batch", "gate", "approvals", "ledger", "keys", "tools", "dataset"])
def test_the_help_of_a_group_has_whole_sentences(line: Line, group: str):
    """What a command does is not cut off where it becomes interesting."""
    description = line(group, "--help").out.partition("Commands:")[2]

    assert description.strip()
    assert "..." not in description
    assert description.rstrip().endswith(".")


def test_nothing_at_all_is_answered_with_help(line: Line):
    """``adjudge`` alone is wrong usage, and shows what there is."""
    ran = line()

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("Usage: adjudge [OPTIONS] COMMAND")


# Hostile content, names and judges.


def test_nothing_that_was_judged_reaches_the_terminal_as_it_is(line: Line):
    """Escape sequences, direction marks and NUL in content, ids, file names and replies are made visible."""
    name = ESCAPES.replace("\x00", "").replace("/", "") + ".txt"
    Path(name).write_text(f"good {ESCAPES}".replace("\x00", ""), encoding="utf-8")
    Path("rows.jsonl").write_text(
        json.dumps({"id": ESCAPES, "content": "bad " + ESCAPES.replace("\x00", "")}), encoding="utf-8"
    )
    with serve(score=0.4, reasoning=f"[bold red]{ESCAPES}\n\tforged\tline") as provider:
        for arguments in (
            [name, "--judge", provider.spec],
            [name, "rows.jsonl", "--judge", provider.spec],
            [name, "--judge", provider.spec, "--judge", WORDS, "--strategy", "consensus"],
            [name, "--judge", provider.spec, "--json"],
            [name, "--judge", provider.spec, "--show-prompt"],
            [f"{ESCAPES}.gone".replace("\x00", ""), "--judge", provider.spec],
            ["good.txt", "--judge", f"{ESCAPES}:m"],
            ["good.txt", "--judge", WORDS, "--rule", ESCAPES],
        ):
            ran = line("judge", *arguments, *POLITE)
            assert HIDDEN.search(ran.out + ran.err) is None, arguments
            assert ran.status in (0, 1, 2, 3)


def test_a_huge_id_is_shown_in_part(line: Line):
    """An id of a megabyte does not fill a terminal, whatever is said of its case; a short one is shown as it is."""
    large = "k" * 1_000_000
    contents = {f"{large}1": "good", f"{large}2": "no answer", f"{large}3": "a\x00b", "short": "good"}
    rows = [json.dumps({"id": name, "content": content}) for name, content in contents.items()]
    Path("rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    ran = line("judge", "rows.jsonl", *ASK)

    assert ran.status == 2
    assert ran.out.count("rows.jsonl: 'kkk") == 2
    assert ran.err.count("rows.jsonl: 'kkk") == 2
    assert "rows.jsonl: short" in ran.out
    assert len(ran.out + ran.err) < 3000
    prompts = line("judge", "rows.jsonl", *POLITE, "--rule", "{contains: never}", "--judge", WORDS, "--show-prompt")
    assert "rules decide" in prompts.out
    assert large not in prompts.out + prompts.err


def test_markup_is_text(line: Line):
    """What looks like rich's markup or emoji is shown as it was written."""
    with serve(reasoning="[bold]fine[/bold] [link=http://x]y[/link] :smile:") as provider:
        one = line("judge", "good.txt", *POLITE, "--judge", provider.spec)
        several = line("judge", "good.txt", "good.txt", *POLITE, "--judge", provider.spec)

    for ran in (one, several):
        assert "[bold]fine[/bold] [link=http://x]y[/link] :smile:" in ran.out


def test_a_judge_cannot_forge_a_line(line: Line):
    """Line breaks and tabs in a reply do not make lines and fields of the output."""
    with serve(score=0.0, reasoning="so\n✓ passed 1.00 of 0.70 needed\npass\t1.00\tcriteria") as provider:
        ran = line("judge", "good.txt", *POLITE, "--judge", provider.spec)

    assert [text.split()[0] for text in ran.out.splitlines()] == ["✗", "mark", "-", "so"]
    assert [text.count("\t") for text in ran.out.splitlines()] == [0, 3, 3, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux takes any bytes as a file's name")
def test_a_file_s_name_need_not_be_unicode(line: Line):
    """The file is judged, and its name is shown and written as well as it can be."""
    name = b"g\xff\xfe.txt".decode("utf-8", "surrogateescape")
    Path(name).write_text("good", encoding="utf-8")

    header, first, _ = line("judge", name, "good.txt", *ASK).out.splitlines()
    assert header.split("\t") == ["outcome", "input", "why"]
    assert first.endswith("g··.txt\tit says good")
    document = line("judge", name, *ASK, "--json")
    assert document.document["input"] == "g??.txt"


def test_an_output_that_cannot_hold_a_character(line: Line, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """On a terminal or in a file of another encoding, signs become question marks and nothing breaks."""
    Path("smile.txt").write_text("good ☺", encoding="utf-8")
    with Path("out.txt").open("w", encoding="cp1252") as out:
        monkeypatch.setattr(sys, "stdout", out)
        ran = line("judge", "smile.txt", *ASK)

    assert ran.status == 0
    assert Path("out.txt").read_bytes().startswith(b"? passed 1.00 of 0.70 needed")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_cannot_be_written(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A full disk is the world's fault: a sentence and a 3, since the result was seen by nobody."""
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        ran = line("judge", "good.txt", *ASK)

    assert ran.status == 3
    assert names(ran.err, "standard output", "cannot be written", "No space left", "nothing more is shown")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("kind", ["def", "async def"])
def test_a_function_that_ends_the_program_is_no_pass(line: Line, kind: str):
    """``sys.exit(0)`` in somebody's judge must not become the status of a pass."""
    name = f"leaver_{kind[:3]}"
    Path(f"{name}.py").write_text(f"import sys\n\n{kind} judge(prompt):\n    sys.exit(0)\n", encoding="utf-8")
    ran = line("judge", "good.txt", *POLITE, "--judge", f"python:{name}:judge")

    assert ran.status in (3, 70)
    assert "passed" not in ran.out
    assert ran.err.startswith("adjudge: ")


@pytest.mark.parametrize(
    ("arguments", "near"),
    [
        (["judge", "x", "--treshold", "0.5"], "--threshold"),
        (["judge", "x", "--thresh", "0.5"], "--threshold"),
        (["run", "x", "--concurency", "3"], "--concurrency"),
        (["judge", "x", "--zzzzzz"], None),
        (["judge", "x", "--tr"], None),
        (["judge", "x", "--completely-made-up"], None),
        (["ledger", "veryfi"], "'verify'"),
        (["ledger", "frobnicate"], None),
        (["frobnicate"], None),
    ],
)
def test_nothing_is_suggested_where_nothing_is_near(line: Line, arguments: list[str], near: str | None):
    """A wrong hint is worse than none."""
    message = line(*arguments).sentence

    assert (f"did you mean {near};" in message) if near else ("did you mean" not in message)
