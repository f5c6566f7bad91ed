"""``adjudge judge``: what is judged, who is asked, what is written, and the exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kit import cli
from kit.cli import WORDS, Line, serve
from kit.judges import names

pytestmark = pytest.mark.timed


RULES = """
name: Polite
criteria:
  - {name: greets, description: Greets the reader., rule: {regex: '^Dear'}}
"""

UNREAD = "adjudge doctor says whether its replies can be read"
POLITE = ("--criteria", "Is polite.")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    for name in ("good", "bad", "ugly"):
        Path(f"{name}.txt").write_text(name, encoding="utf-8")
    Path("polite.yaml").write_text(RULES, encoding="utf-8")
    return Line(capsys)


def write_rows(*rows: dict[str, Any], path: str = "rows.jsonl") -> str:
    Path(path).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "status", "word"), [("good", 0, "passed"), ("bad", 1, "failed"), ("ugly", 3, "undecided")]
)
def test_the_exit_status_is_the_outcome(line: Line, name: str, status: int, word: str):
    """0 for passed, 1 for failed, 3 for undecided; the first line of the output says which."""
    ran = line("judge", f"{name}.txt", *POLITE, "--judge", WORDS)

    assert ran.status == status
    assert ran.out.splitlines()[0].split()[1] == word


def test_a_result_is_shown_as_plain_lines_in_a_pipe(line: Line):
    """Without a terminal: outcome, a header, a line of fields for each criterion, what was said; no box, no colour."""
    ran = line("judge", "good.txt", *POLITE, "--judge", WORDS)

    assert ran.out.splitlines() == [
        "✓ passed 1.00 of 0.70 needed",
        "mark\tscore\tcriterion\treasoning",
        "-\t1.00\tis-polite\tit says good",
        "it says good",
    ]
    assert ran.err == ""


def test_each_criteria_is_a_criterion(line: Line):
    """Each has a name made of its own words, also where two long ones begin alike."""
    long = "Is as polite as a person would be who has waited for a very long time"
    texts = ("Is polite.", f"{long}.", f"{long}, or longer.")
    options = [word for text in texts for word in ("--criteria", text)]
    ran = line("judge", "good.txt", *options, "--judge", "openai:m", "--show-prompt")

    for place, text in enumerate(texts, 1):
        assert [row for row in ran.out.splitlines() if row.startswith(f"{place}. ") and row.endswith(f": {text}")]
    names = [row.split(": ")[0].split()[1] for row in ran.out.splitlines() if row[:3] in ("1. ", "2. ", "3. ")]
    assert names[0] == "is-polite"
    assert names[2] == f"{names[1]}-2"


@pytest.mark.parametrize(
    "twice",
    [
        ("--threshold", "0.1", "--threshold=0.2"),
        ("--task", "good.txt", "--task", "good.txt"),
        ("-r", "polite.yaml", "--rubric", "security"),
    ],
)
def test_an_option_with_one_value_is_not_given_twice(line: Line, twice: tuple[str, ...]):
    """The last would count, and what the first said would be dropped without a word."""
    ran = line("judge", "good.txt", *twice, "--judge", "rules")

    assert ran.status == 2
    assert "is given twice" in ran.sentence


def test_a_switch_may_stand_twice(line: Line):
    """It says the same."""
    assert line("judge", "good.txt", *POLITE, "--judge", WORDS, "--json", "--json").status == 0


def test_a_table_is_one_text_and_that_is_said(line: Line):
    """It may be what is to be judged; whoever meant its rows is told the command for them."""
    write_rows({"content": "good"}, path="good one.csv")
    table = line("judge", "good one.csv", *POLITE, "--judge", WORDS)

    assert "as one text; for its rows: adjudge run 'good one.csv'" in table.err
    assert "as one text" not in line("judge", "good.txt", *POLITE, "--judge", WORDS).err


def test_standard_input_is_judged(line: Line, monkeypatch: pytest.MonkeyPatch):
    """``-`` is standard input, and so is no path at all when something is piped in."""
    for arguments in (["-"], []):
        cli.feed(monkeypatch, b"\xef\xbb\xbfgood")
        assert line("judge", *arguments, *POLITE, "--judge", WORDS).status == 0


@pytest.mark.parametrize(
    ("names", "status"),
    [
        ("good good", 0),
        ("good ugly", 3),
        ("ugly bad good", 1),
        ("ugly missing bad good", 2),
        ("missing good", 2),
    ],
)
def test_of_several_inputs_the_gravest_status_counts(line: Line, names: str, status: int):
    """2 (unreadable) beats 1 (failed) beats 3 (undecided) beats 0 (passed), in whatever order they come."""
    paths = [f"{name}.txt" for name in names.split()]

    assert line("judge", *paths, *POLITE, "--judge", WORDS).status == status
    assert line("judge", *reversed(paths), *POLITE, "--judge", WORDS).status == status


def test_what_cannot_be_read_stops_nothing_else(line: Line):
    """Each input has a line or a sentence of its own, in order, and a count at the end."""
    Path("empty").mkdir()
    ran = line("judge", "missing.txt", "good.txt", "empty", "bad.txt", "ugly.txt", *POLITE, "--judge", WORDS)

    assert [text.split("\t")[:2] for text in ran.out.splitlines()] == [
        ["outcome", "input"],
        ["✓ passed 1.00 of 0.70 needed", "good.txt"],
        ["✗ failed 0.00 of 0.70 needed", "bad.txt"],
        ["? undecided (unparseable)", "ugly.txt"],
    ]
    count, missing, empty, ugly = ran.err.splitlines()
    assert names(count, "5 inputs", "1 passed, 1 failed, 1 undecided, 2 not judged")
    assert names(missing, "cannot read missing.txt", "No such file", "name a file")
    assert names(empty, "empty", "no text file", "name a folder")
    assert names(ugly, "ugly.txt", "undecided (unparseable)", UNREAD)


def test_several_results_in_a_pipe_have_tabs_between_their_fields(line: Line):
    """A name and an outcome may have blanks in them, and what a judge says may have tabs and lines."""
    Path("two  words.txt").write_text("good", encoding="utf-8")
    with serve(reasoning="so\tand\nso") as provider:
        ran = line("judge", "two  words.txt", "good.txt", *POLITE, "--judge", provider.spec)

    assert [text.split("\t") for text in ran.out.splitlines()] == [
        ["outcome", "input", "why"],
        ["✓ passed 1.00 of 0.70 needed", "two words.txt", "so and so"],
        ["✓ passed 1.00 of 0.70 needed", "good.txt", "so and so"],
    ]


def test_json_is_one_document(line: Line):
    """One input gives its result as the library writes it, and where it came from."""
    document = line("judge", "bad.txt", *POLITE, "--judge", WORDS, "--json").document

    assert document["schema"] == "adjudge/result/1"
    assert (document["input"], document["outcome"], document["passed"], document["score"]) == (
        "bad.txt",
        "failed",
        False,
        0,
    )


def test_json_of_several_inputs_is_one_document_too(line: Line):
    """Several inputs, or a data set of whatever length, give a list; one that could not be read says why."""
    ran = line("judge", "good.txt", "missing.txt", *POLITE, "--judge", WORDS, "--json")
    results = ran.document["results"]

    assert ran.document["schema"] == "adjudge/results/1"
    assert (results[0]["input"], results[0]["outcome"]) == ("good.txt", "passed")
    assert set(results[1]) == {"input", "error"}
    assert "missing.txt" in results[1]["error"]
    assert ran.status == 2

    path = write_rows({"id": "one", "content": "good"})
    [only] = line("judge", path, *POLITE, "--judge", WORDS, "--json").document["results"]
    assert (only["input"], only["case"], only["outcome"]) == ("rows.jsonl", "one", "passed")


def test_json_of_an_error_is_nothing(line: Line):
    """When the only input cannot be judged there is no document: a status, and one sentence on standard error."""
    ran = line("judge", "missing.txt", *POLITE, "--judge", WORDS, "--json")

    assert ran.status == 2
    assert ran.sentence.startswith("the content: cannot read missing.txt")


def test_rows_bring_what_belongs_to_them(line: Line):
    """A case's reference, task and context reach the judge; where it has none, those of the command line do."""
    Path("task.txt").write_text("the task of all", encoding="utf-8")
    path = write_rows({"id": "own", "content": "x", "task": "the task of one"}, {"id": "none", "content": "y"})
    with serve() as provider:
        ran = line("judge", path, *POLITE, "--judge", provider.spec, "--task", "task.txt", "--concurrency", "1")
        prompts = [body["messages"][1]["content"] for body in provider.bodies]

    assert ran.status == 0
    assert ["the task of one" in prompt for prompt in prompts] == [True, False]
    assert ["the task of all" in prompt for prompt in prompts] == [False, True]
    assert [text.split("\t")[1] for text in ran.out.splitlines()[1:]] == [
        "rows.jsonl: own",
        "rows.jsonl: none",
    ]


def test_files_beside_the_content_reach_the_judge_as_data(line: Line):
    """``--reference``, ``--task`` and ``--context`` name files, each in a fence of its own."""
    for name in ("reference", "task", "context"):
        Path(f"{name}.md").write_text(f"this is the {name}", encoding="utf-8")
    named = [part for name in ("reference", "task", "context") for part in (f"--{name}", f"{name}.md")]
    with serve() as provider:
        line("judge", "good.txt", *POLITE, "--judge", provider.spec, *named)
        prompt = provider.bodies[0]["messages"][1]["content"]

    for name in ("reference", "task", "context"):
        assert f"<<{name} {cli.find_token(prompt)}>>\nthis is the {name}\n" in prompt


def test_a_broken_data_set_says_where(line: Line):
    """Cases before the broken one are judged, the status is 2, and the sentence says that the rest was not."""
    Path("rows.jsonl").write_text('{"id": "a", "content": "good"}\n{"id": "a", "content": "good"}\n', encoding="utf-8")
    ran = line("judge", "rows.jsonl", "good.txt", *POLITE, "--judge", WORDS)

    assert ran.status == 2
    assert len(ran.out.splitlines()) == 3
    assert "rows.jsonl, line 2: the id 'a' is already on line 1" in ran.err
    assert "the cases before it were judged, those after it were not" in ran.err


def test_an_empty_row_is_judged(line: Line):
    """An answer that is empty is a fact about whoever answered; only an empty file is taken for a mistake."""
    path = write_rows({"id": "nothing", "content": ""})

    assert line("judge", path, "--rubric", "polite.yaml").status == 1


def test_a_rubric_of_rules_needs_no_judge(line: Line):
    """Where rules decide, nothing has to be configured and nobody is asked."""
    Path("letter.txt").write_text("Dear reader", encoding="utf-8")

    assert line("judge", "letter.txt", "--rubric", "polite.yaml").status == 0
    assert line("judge", "good.txt", "--rubric", "./polite.yaml", "--judge", "rules").status == 1


def test_rules_needs_rules(line: Line):
    """The judge ``rules`` has no model, so a criterion for a model is refused before anything is read."""
    ran = line("judge", "missing.txt", "good.txt", *POLITE, "--judge", "rules")

    assert ran.status == 2
    assert names(ran.sentence, "no model", "rule")


def test_a_failed_rule_decides_before_a_model_is_asked(line: Line):
    """``--rule`` takes a mapping in YAML or a rule's name; a failed one costs no request."""
    with serve() as provider:
        ran = line("judge", "good.txt", *POLITE, "--judge", provider.spec, "--rule", "{regex: ^Dear}", "--rule", "json")
        assert provider.bodies == []

    assert ran.status == 1
    assert "decided by rule" in ran.out


def test_a_recording_reproduces_the_outcome_without_a_network(line: Line):
    """What ``--record`` wrote answers the same question later, whether it passed or failed."""
    Path("rows.jsonl").write_text('{"id": "1", "content": "one"}\n{"id": "2", "content": "two"}\n', encoding="utf-8")
    for score, status in ((0.9, 0), (0.2, 1)):
        record = f"record-{status}.jsonl"
        with serve(score=score) as provider:
            first = line("judge", "rows.jsonl", *POLITE, "--judge", provider.spec, "--record", record, "--json")
        again = line("judge", "rows.jsonl", *POLITE, "--judge", f"replay:{record}", "--json")

        assert (first.status, again.status) == (status, status)
        assert [item["score"] for item in again.document["results"]] == [score, score]
        assert Path(record).stat().st_mode & 0o077 == 0


def test_a_chain_is_recorded_and_replayed(line: Line):
    """Every model of a chain writes to the one file, and is found in it again by its name."""
    with serve() as one, serve(score=0.0) as two:
        specs = ["--judge", one.spec, "--judge", two.spec, "--strategy", "majority"]
        first = line("judge", "good.txt", *POLITE, *specs, "--record", "both.jsonl", "--json")
        replays = [
            part
            for spec in (one.spec, two.spec)
            for part in ("--judge", f"replay:both.jsonl?model={spec.replace('#', '%23')}")
        ]
    again = line("judge", "good.txt", *POLITE, *replays, "--strategy", "majority", "--json")

    assert (first.status, again.status) == (3, 3)
    assert [item["score"] for item in again.document["results"]] == [1.0, 0.0]


def test_a_reply_that_was_not_recorded_is_undecided(line: Line):
    """A replay that misses exits with 3 and names the key it looked for."""
    with serve() as provider:
        line("judge", "good.txt", *POLITE, "--judge", provider.spec, "--record", "record.jsonl")
    ran = line("judge", "bad.txt", *POLITE, "--judge", "replay:record.jsonl", "--json")

    assert ran.status == 3
    assert ran.document["undecided_because"] == "error"
    assert "record.jsonl has no unused reply for key " in ran.document["detail"]
    key = ran.document["detail"].split("key ")[1].split(",")[0]
    assert len(key) == 64
    assert key in ran.err


def test_a_recording_that_cannot_be_written_is_refused_before_anything_is_asked(line: Line):
    """A judgement that was paid for and is not on the record cannot be repeated."""
    with serve() as provider:
        ran = line("judge", "good.txt", *POLITE, "--judge", provider.spec, "--record", "no/such/folder.jsonl")
        assert provider.bodies == []

    assert ran.status == 2
    assert names(ran.sentence, "recording", "'no/such/folder.jsonl'", "No such file")


def test_prompts_are_shown_and_nobody_is_asked(line: Line):
    """``--show-prompt`` shows what each judge of the panel would be sent, with a count of tokens; no key is needed."""
    with serve() as provider:
        panel = ["--judge", "openai:gpt-6.1-terra", "--judge", "anthropic:claude-haiku-5-5", "--judge", provider.spec]
        ran = line("judge", "good.txt", *POLITE, *panel, "--show-prompt")
        assert provider.bodies == []

    heads = [text for text in ran.out.splitlines() if text.startswith("=== ")]
    assert ran.status == 0
    assert [head.split(": about ")[0] for head in heads] == [
        "=== openai:gpt-6.1-terra: good.txt",
        "=== anthropic:claude-haiku-5-5: good.txt",
        f"=== {provider.spec}: good.txt",
    ]
    assert all(int(head.split(": about ")[1].split(" tokens")[0]) > 100 for head in heads)
    assert ran.out.count("1. is-polite: Is polite.") == 3


def test_prompts_as_json(line: Line):
    """One document with every prompt, and the schema where structured output is asked for."""
    document = line("judge", "good.txt", *POLITE, "--judge", "openai:gpt-6.1-terra", "--show-prompt", "--json").document
    [prompt] = document["prompts"]
    size = len((prompt["system"] + prompt["user"] + json.dumps(prompt["form"])).encode())

    assert document["schema"] == "adjudge/prompts/1"
    assert prompt["form"]["schema"]["type"] == "object"
    assert abs(prompt["tokens"] - size / 4) <= 1


def test_a_prompt_that_is_not_sent_is_not_shown(line: Line):
    """Where rules decide there is no prompt, and an input that cannot be read is a sentence and a 2."""
    ran = line("judge", "good.txt", "missing.txt", "--rubric", "polite.yaml", "--show-prompt")

    assert names(ran.out, "good.txt", "rules decide", "nothing is sent")
    assert ran.out.count("\n") == 1
    assert ran.status == 2


@pytest.mark.parametrize("mode", ["500", "429", "400", "401"])
def test_an_error_of_the_provider_is_undecided(line: Line, mode: str):
    """The world failed: 3, with the status and what the provider said in one sentence."""
    with serve(mode=mode) as provider:
        ran = line("judge", "good.txt", *POLITE, "--judge", provider.spec)

    assert ran.status == 3
    assert ran.out.startswith(f"? undecided (error)\n127.0.0.1:{provider.port} answered {mode}")
    assert names(ran.err, "undecided (error)", "adjudge doctor")
    assert ran.err.count("\n") == 1


def test_a_provider_that_hangs_is_given_up(line: Line):
    """``--timeout`` is the limit for a judge, alone or in a chain, and the sentence says how to raise it."""
    with serve(mode="hang") as provider:
        alone = line("judge", "good.txt", *POLITE, "--judge", provider.spec, "--timeout", "0.05")
        chained = line("judge", "good.txt", *POLITE, *["--judge", provider.spec] * 2, "--timeout", "0.05")

    assert (alone.status, chained.status) == (3, 3)
    assert names(alone.out, "timeout", "0.05 s")
    assert names(alone.err, "timeout", "--timeout")
    assert chained.out.count("no answer within 0.05 s") == 2


def test_the_next_judge_is_asked_when_one_is_down(line: Line):
    """Several ``--judge`` make a chain, ``fallback`` unless said otherwise; every seat is on show."""
    with serve(mode="500") as down, serve() as up:
        ran = line("judge", "good.txt", *POLITE, "--judge", down.spec, "--judge", up.spec)

    assert ran.status == 0
    assert [text.split("\t")[:2] for text in ran.out.splitlines() if text.startswith("seat")] == [
        ["seat", down.spec],
        ["seat", up.spec],
    ]


def test_an_undecided_chain_passes_only_when_asked_to_by_name(line: Line):
    """``--fail-open`` turns undecided into a pass, and the first line says that no judge decided."""
    with serve(mode="500") as provider:
        closed = line("judge", "good.txt", *POLITE, "--judge", provider.spec)
        opened = line("judge", "good.txt", *POLITE, "--judge", provider.spec, "--fail-open")

    assert (closed.status, opened.status) == (3, 0)
    assert opened.out.splitlines()[0] == "✓ passed, decided by policy"


def test_strategies_have_their_options(line: Line):
    """``--quorum``, ``--hedge-after`` and ``--escalate-below`` reach the chain."""
    three = ["--judge", WORDS] * 3

    assert line("judge", "good.txt", *POLITE, *three, "--strategy", "quorum", "--quorum", "2").status == 0
    assert line("judge", "good.txt", *POLITE, *three, "--strategy", "hedged", "--hedge-after", "9").status == 0
    assert line("judge", "good.txt", *POLITE, *three, "--strategy", "cascade", "--escalate-below", "0.5").status == 0


def test_a_model_that_cannot_copy_the_token(line: Line):
    """``--no-token`` reads its replies; with the token they are not readable."""
    with serve(mode="tokenless") as provider:
        asked = line("judge", "good.txt", *POLITE, "--judge", provider.spec)
        bare = line("judge", "good.txt", *POLITE, "--judge", provider.spec, "--no-token")

    assert (asked.status, bare.status) == (3, 0)
    assert names(asked.out, "undecided (unparseable)", "--no-token (token=False in Python)")
    assert "doctor" not in asked.out + asked.err


def test_another_reply_form_can_be_named(line: Line, tmp_path: Path):
    """``--reader`` names the form in which the judge replies."""
    Path("rater.py").write_text("def rate(prompt):\n    return 'Fine. Rating: [[1]]'\n", encoding="utf-8")
    ran = line("judge", "good.txt", *POLITE, "--judge", "python:rater:rate", "--reader", "Rating: [[7]]")

    assert ran.status in (0, 1)
    assert "undecided" not in ran.out


def test_content_that_is_too_large_stops_nothing_else(line: Line):
    """A content over the model's limit is a sentence and a 2 for that input; the others are judged."""
    Path("long.txt").write_text("good " * 100, encoding="utf-8")
    with serve() as provider:
        spec = f"{provider.url}?max_input_characters=100#small"
        ran = line("judge", "long.txt", "good.txt", *POLITE, "--judge", spec)

    assert ran.status == 2
    assert ran.out.startswith("outcome\tinput\twhy\n✓ passed 1.00 of 0.70 needed\tgood.txt\t")
    assert f"adjudge: long.txt: the question is 500 characters long and '{provider.spec}' takes 100; " in ran.err


def test_a_number_of_contents_is_judged_at_once(line: Line):
    """``--concurrency`` is how many: it is reached, and not passed."""
    path = write_rows(*({"id": str(number), "content": "good"} for number in range(9)))
    cli.at_once.clear()

    assert line("judge", path, *POLITE, "--judge", "python:kit.cli:judge_slowly", "--concurrency", "3").status == 0
    assert max(cli.at_once) == 3
    assert len(cli.at_once) == 9


def test_a_key_never_reaches_the_output(line: Line, monkeypatch: pytest.MonkeyPatch):
    """The key is sent to the provider and shown to nobody."""
    with serve(mode="401") as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-123")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        ran = line("judge", "good.txt", *POLITE, "--judge", "openai:small", "--json")
        assert provider.keys == ["Bearer sk-secret-123"]

    assert "sk-secret" not in ran.out + ran.err
