"""What the command line takes from ``adjudge.toml``, from the environment and from this machine."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

import cli_support
from adjudge import Judge, JudgeChain
from adjudge.config import judges as _local
from adjudge.config.file import Config, read_config
from adjudge.config.judges import Panel, choose
from cli_support import WORDS, Line, serve

LIMIT = "timeout must be a finite number of seconds above 0, or None for no limit"
POLITE = ("--criteria", "Is polite.")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli_support.isolate(monkeypatch, tmp_path)
    cli_support.feed(monkeypatch, terminal=True)
    Path("good.txt").write_text("good", encoding="utf-8")
    Path("bad.txt").write_text("bad", encoding="utf-8")
    return Line(capsys)


def configure(text: str, path: str = "adjudge.toml") -> Path:
    file = Path(path)
    file.parent.mkdir(exist_ok=True, parents=True)
    file.write_text(text, encoding="utf-8")
    return file


def open_judge(*names: str, **options: object) -> Judge | JudgeChain:
    return choose(Panel(judges=names, **options), read_config(None)).judge


def test_defaults_say_who_judges_and_by_what(line: Line):
    """``[defaults]`` names a judge of the file and a rubric of the file, so a path is all that is left to say."""
    configure(
        f'[defaults]\njudge = "words"\nrubric = "polite"\n[judges.words]\nseats = ["{WORDS}"]\n'
        '[rubrics]\npolite = "rubrics/polite.yaml"\n'
    )
    rubric = "name: P\ncriteria:\n  - {name: criteria, description: Is polite.}\n"
    configure(rubric, "rubrics/polite.yaml")

    assert line("judge", "good.txt").status == 0
    assert line("judge", "bad.txt").status == 1
    assert line("judge", "good.txt", "--judge", "words", "--rubric", "polite").status == 0


def test_rubrics_lie_beside_the_file_that_names_them(line: Line):
    """A path in the file, also that of ``[defaults]``, is seen from the file's folder, wherever the command runs."""
    config = configure('[defaults]\nrubric = "r/polite.yaml"\n[rubrics]\nnear = "r/polite.yaml"\n', "elsewhere/a.toml")
    configure("name: P\ncriteria:\n  - {name: a, description: b, rule: {regex: good}}\n", "elsewhere/r/polite.yaml")

    assert line("judge", "good.txt", "--config", config).status == 0
    assert line("judge", "bad.txt", "--config", config, "--rubric", "near").status == 1
    assert "elsewhere" in line("rubric", "list", "--config", config).out
    assert line("judge", "good.txt", "--config", config, "--rubric", "r/polite.yaml").status == 2


def test_the_file_of_a_parent_folder_is_never_read(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Whoever can write above a checkout must not decide what passes in it."""
    configure(f'[defaults]\njudge = "words"\n[judges.words]\nseats = ["{WORDS}"]\n')
    Path("below").mkdir()
    monkeypatch.chdir("below")

    assert line("judge", "../good.txt", *POLITE).status == 2
    assert line("judge", "../good.txt", *POLITE, "--config", "../adjudge.toml").status == 0


def test_the_digest_of_the_file_is_known(line: Line):
    """SHA-256 of its bytes, for whoever wants to know by which configuration something was decided."""
    file = configure("[defaults]\n")

    assert read_config(None).digest == hashlib.sha256(file.read_bytes()).hexdigest()
    assert read_config(Path("adjudge.toml")).path == Path("adjudge.toml")


def test_a_table_is_a_chain_and_its_options_are_those_of_the_library(line: Line):
    """Options of chains, of judges and of models stand side by side in a table."""
    configure(
        '[judges.careful]\nseats = ["openai:a", "http://h/v1#b"]\nstrategy = "consensus"\ntimeout = 7.5\n'
        "token = false\nreask = 0\nmax_input_characters = 99\n"
    )
    judge = open_judge("careful")
    seats = [seat for _, seat in judge.judges]

    assert (judge.name, judge.strategy, judge.timeout) == ("careful", "consensus", 7.5)
    assert [seat.name for seat in seats] == ["openai:a", "http://h/v1#b"]
    assert {(seat.timeout, seat.token, seat.reask, seat.model.max_input_characters) for seat in seats} == {
        (None, False, 0, 99)
    }


def test_a_table_of_one_model_is_a_judge(line: Line):
    """Without anything of a chain's, it is a single judge, with a single judge's longer limit."""
    configure('[judges.quick]\nseats = ["openai:a"]\n')
    judge = open_judge("quick")

    assert isinstance(judge, Judge)
    assert (judge.name, judge.timeout) == ("quick", 60.0)


def test_a_seat_may_be_another_judge_of_the_file(line: Line):
    """A judge in a judge keeps its own options and is one seat."""
    configure(
        '[judges.outer]\nseats = ["inner", "openai:c"]\nstrategy = "consensus"\n'
        '[judges.inner]\nseats = ["openai:a", "openai:b"]\ntimeout = 2.0\n'
    )
    outer = open_judge("outer")
    inner = outer.judges[0][1]

    assert [name for name, _ in outer.judges] == ["inner", "openai:c"]
    assert (inner.strategy, inner.timeout, outer.timeout) == ("fallback", 2.0, 5.0)


def test_the_command_line_is_nearer_than_the_file(line: Line):
    """Options given to a judge of the file replace those of its table, and only for this call."""
    configure('[judges.two]\nseats = ["openai:a", "openai:b"]\ntimeout = 2.0\nstrategy = "consensus"\n')
    judge = open_judge(
        "two", timeout=9.0, chain=(("strategy", "majority"), ("fail_open", True)), reader="Rating: [[7]]"
    )

    assert (judge.strategy, judge.timeout, judge.fail_open) == ("majority", 9.0, True)
    assert {seat.reader for _, seat in judge.judges} == {"Rating: [[7]]"}
    assert open_judge("two").strategy == "consensus"


def test_a_default_limit_is_for_whoever_has_none(line: Line):
    """``[defaults] timeout`` is over the library's default, under that of a judge's table and under ``--timeout``."""
    configure(
        '[defaults]\ntimeout = 11\n[judges.own]\nseats = ["openai:a"]\ntimeout = 2.0\n'
        '[judges.plain]\nseats = ["openai:a"]\n'
    )

    assert open_judge("own").timeout == 2.0
    assert open_judge("plain").timeout == 11
    assert open_judge("openai:b").timeout == 11
    assert open_judge("openai:b", "own").timeout == 11
    assert open_judge("plain", timeout=3.0).timeout == 3.0


def test_judges_of_the_file_are_recorded_too(line: Line):
    """``--record`` reaches every model of a judge that is named, at any depth."""
    with serve() as provider:
        configure(f'[judges.outer]\nseats = ["inner"]\n[judges.inner]\nseats = ["{provider.spec}"]\n')
        first = line("judge", "good.txt", *POLITE, "--judge", "outer", "--record", "record.jsonl")
    again = line("judge", "good.txt", *POLITE, "--judge", "replay:record.jsonl")

    assert (first.status, again.status) == (0, 0)


def test_a_module_of_the_working_directory_can_judge(line: Line):
    """``python:`` finds a module that lies here, and may be named by a file that lies here too."""
    Path("mine_here.py").write_text("from cli_support import judge_words\n", encoding="utf-8")
    configure('[judges.mine]\nseats = ["python:mine_here:judge_words"]\n')

    assert line("judge", "good.txt", *POLITE, "--judge", "python:mine_here:judge_words").status == 0
    assert line("judge", "bad.txt", *POLITE, "--judge", "mine").status == 1


def test_a_rule_of_the_working_directory_can_decide(line: Line):
    """``--rule`` takes a function too."""
    Path("my_rules.py").write_text("def short(content):\n    return len(content) < 4\n", encoding="utf-8")
    arguments = (*POLITE, "--judge", WORDS, "--rule", "{python: 'my_rules:short'}")

    assert line("judge", "good.txt", *arguments).status == 1
    assert line("judge", "bad.txt", *arguments).status == 1


# With no --judge.


def test_a_rubric_names_its_model(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Without anybody who says who judges, the full name of a model in the rubric is asked."""
    with serve() as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        configure(f"name: P\nmodel: {provider.spec}\ncriteria:\n  - {{name: a, description: b}}\n", "p.yaml")

        assert line("judge", "good.txt", "--rubric", "p.yaml").status == 0
        assert len(provider.bodies) == 1


def test_a_rubric_does_not_take_the_place_of_the_configured_judge(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Whoever wrote a consensus into the configuration is not to be voted out by a rubric that names a model."""
    with serve() as provider, serve(score=0.0) as other:
        configure(f"name: P\nmodel: {provider.spec}\ncriteria:\n  - {{name: a, description: b}}\n", "p.yaml")
        monkeypatch.setenv("ADJUDGE_JUDGE", other.spec)
        assert line("judge", "good.txt", "--rubric", "p.yaml").status == 1
        configure(
            f'[defaults]\njudge = "both"\n[judges.both]\nseats = ["{other.spec}", "{other.spec}"]\n'
            'strategy = "consensus"\n'
        )
        assert line("judge", "good.txt", "--rubric", "p.yaml").status == 1
        assert provider.bodies == []


def test_the_judge_of_the_command_line_is_asked_whatever_the_rubric_says(line: Line):
    """``--judge`` is nearer than the file: a recording, above all, must never lead to a request."""
    with serve() as provider, serve(score=0.0) as other:
        configure(f"name: P\nmodel: {provider.spec}\ncriteria:\n  - {{name: a, description: b}}\n", "p.yaml")
        ran = line("judge", "good.txt", "--rubric", "p.yaml", "--judge", other.spec, "--judge", other.spec)

        assert provider.bodies == []
    assert ran.status == 1


def test_the_environment_names_a_judge(line: Line, monkeypatch: pytest.MonkeyPatch):
    """``ADJUDGE_JUDGE`` holds a model's name, or that of a judge of the file; ``[defaults]`` goes before it."""
    with serve() as provider:
        monkeypatch.setenv("ADJUDGE_JUDGE", provider.spec)
        assert line("judge", "good.txt", *POLITE).status == 0
        configure(f'[judges.words]\nseats = ["{WORDS}"]\n')
        monkeypatch.setenv("ADJUDGE_JUDGE", "words")
        assert line("judge", "bad.txt", *POLITE).status == 1
        assert len(provider.bodies) == 1


def test_the_first_provider_with_a_key_judges(line: Line, monkeypatch: pytest.MonkeyPatch):
    """And standard error says who and why, since the content goes to them."""
    with serve() as provider:
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url)
        ran = line("judge", "good.txt", *POLITE)

        assert [body["model"] for body in provider.bodies] == ["gpt-6.1-terra"]
    assert ran.status == 0
    assert ran.err == ("judging with openai:gpt-6.1-terra, because OPENAI_API_KEY is set; name another with --judge\n")


def test_a_local_server_judges_when_there_is_no_key(line: Line, monkeypatch: pytest.MonkeyPatch):
    """The usual ports of 127.0.0.1 are asked for their models, one after the other; the first model found judges."""
    with serve(models=()) as empty, serve(models=("llama3.2:3b", "other")) as provider:
        ports = ((1, "Nobody"), (empty.port, "llama.cpp"), (provider.port, "Ollama"))
        monkeypatch.setattr(_local, "LOCAL_PORTS", ports)
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        ran = line("judge", "good.txt", *POLITE)

        assert [body["model"] for body in provider.bodies] == ["llama3.2:3b"]
    assert ran.status == 0
    assert f"because Ollama's port {provider.port} answers" in ran.err


def test_who_judges_is_not_noted_beside_json(line: Line, monkeypatch: pytest.MonkeyPatch):
    """With ``--json`` there is nothing but the document, which names the judge."""
    with serve() as provider:
        monkeypatch.setattr(_local, "LOCAL_PORTS", ((provider.port, "Ollama"),))
        ran = line("judge", "good.txt", *POLITE, "--json")

    assert ran.err == ""
    assert ran.document["judge"] == provider.spec


def test_nobody_is_here_to_judge(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A sentence says what to set; a key that is empty is none."""
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    ran = line("judge", "good.txt", *POLITE)

    assert ran.status == 2
    assert ran.sentence == (
        "nobody is here to judge: set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, start a local "
        "server such as Ollama, or name one with --judge"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[judge.x]\n", "adjudge.toml: unknown key 'judge'; did you mean 'judges'?"),
        (
            "x = 1\n",
            "adjudge.toml: unknown key 'x'; it knows defaults, judges, rubrics, gates, ledger, approvals, prices",
        ),
        ("judges = 3\n", "adjudge.toml: judges must be a table, written [judges], got 3"),
        ("[defaults]\njuge = 'x'\n", "adjudge.toml: [defaults]: unknown key 'juge'; did you mean 'judge'?"),
        (
            "[defaults]\njudge = 'x'\n[judges.y]\nseats = ['rules']\n",
            "adjudge.toml: [defaults] judge = 'x' is neither a judge of this file (y) nor a model",
        ),
        ("[defaults]\njudge = 3\n", "adjudge.toml: [defaults] judge must be a name in quotes, got 3"),
        (
            "[defaults]\ntimeout = nan\n",
            f"adjudge.toml: [defaults] {LIMIT}; got nan",
        ),
        (
            "[judges.x]\n",
            'adjudge.toml: [judges.x]: seats must be a list of models, like ["openai:gpt-6.1-terra"], got None',
        ),
        (
            "[judges.x]\nseats = []\n",
            'adjudge.toml: [judges.x]: seats must be a list of models, like ["openai:gpt-6.1-terra"], got []',
        ),
        ("[judges]\nx = 3\n", "adjudge.toml: [judges.x] must be a table with seats, got 3"),
        (
            "[judges.x]\nseats = ['rules']\nstrateg = 'fallback'\n",
            "adjudge.toml: [judges.x]: unknown key 'strateg'; did you mean 'strategy'?",
        ),
        ("[rubrics]\nx = 3\n", "adjudge.toml: [rubrics] x must be the path of a rubric file, got 3"),
    ],
)
def test_what_is_written_wrong_is_said_with_its_place(line: Line, text: str, sentence: str):
    """File, table, key, value and what was meant: whatever is wrong is found before anything is judged."""
    configure(text)
    ran = line("judge", "good.txt", *POLITE, "--judge", "rules")

    assert ran.status == 2
    assert ran.sentence == sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[judges.x]\nseats = ['y']\n[judges.y]\nseats = ['x']\n",
            "adjudge.toml: [judges.x] has itself as a seat (x > y > x); take it out",
        ),
        (
            "[judges.x]\nseats = ['openia:m']\n",
            "adjudge.toml: [judges.x]: 'openia:m' is not the name of a model (did you mean openai:?)",
        ),
        (
            "[judges.x]\nseats = ['yy']\n[judges.yyy]\nseats = ['rules']\n",
            "adjudge.toml: [judges.x]: 'yy' is neither a model nor a judge of adjudge.toml; did you mean 'yyy'?",
        ),
        (
            "[judges.x]\nseats = ['openai:a', 'openai:b']\nstrategy = 'best'\n",
            "adjudge.toml: [judges.x]: unknown strategy 'best'; use one of fallback, consensus, majority, quorum",
        ),
        (
            "[judges.x]\nseats = ['openai:a', 'openai:b']\ntimeout = 'soon'\n",
            f"adjudge.toml: [judges.x]: {LIMIT}; got 'soon'",
        ),
        (
            "[judges.x]\nseats = ['openai:a']\nrequests_per_minute = -1\n",
            "adjudge.toml: [judges.x]: requests_per_minute must be a finite number above 0, got -1",
        ),
        (
            "[judges.x]\nseats = ['openai:a', 'y']\n[judges.y]\nseats = ['openai:b']\nfail_open = true\n",
            "adjudge.toml: [judges.x]: fail_open belongs to the outermost chain; take it off the inner chain 'y'",
        ),
    ],
)
def test_a_judge_that_cannot_be_opened_is_said_with_its_place(line: Line, text: str, sentence: str):
    """What only shows when the judge is put together names the file and the table as well."""
    configure(text)
    ran = line("judge", "good.txt", *POLITE, "--judge", "x")

    assert ran.status == 2
    assert ran.sentence.startswith(sentence)


def test_a_judge_or_rubric_that_is_almost_named(line: Line):
    """A name that is no model's and no rubric's is compared with those of the file."""
    configure("[judges.careful]\nseats = ['rules']\n[rubrics]\nlogin = 'l.yaml'\n")
    judge = line("judge", "good.txt", *POLITE, "--judge", "carefull")
    rubric = line("judge", "good.txt", "--rubric", "logon", "--judge", "careful")

    assert judge.sentence == "'carefull' is neither a model nor a judge of adjudge.toml; did you mean 'careful'?"
    assert rubric.sentence.endswith("did you mean 'login' of adjudge.toml?")
    assert (judge.status, rubric.status) == (2, 2)


def test_a_file_that_cannot_be_read(line: Line):
    """A configuration that was named and is not there, a folder, and what is not TOML, are errors."""
    Path("folder").mkdir()
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    Path("broken.toml").write_text("[judges\n", encoding="utf-8")
    said = {
        name: line("rubric", "list", "--config", name) for name in ("gone.toml", "folder", "binary.toml", "broken.toml")
    }

    assert {ran.status for ran in said.values()} == {2}
    assert said["gone.toml"].sentence == (
        "the configuration gone.toml does not exist; name another with --config, or leave it out"
    )
    assert said["folder"].sentence == "cannot read the configuration folder: Is a directory; name a file with --config"
    assert said["binary.toml"].sentence == "binary.toml is not UTF-8 text (byte 0); save it as UTF-8"
    assert said["broken.toml"].sentence.startswith("broken.toml is not valid TOML: ")


def test_code_is_named_by_the_user_alone(line: Line, monkeypatch: pytest.MonkeyPatch):
    """``python:`` in a rubric or in the environment is refused: only the command line and adjudge.toml run code."""
    configure(f"name: P\nmodel: {WORDS}\ncriteria:\n  - {{name: a, description: b}}\n", "p.yaml")
    ran = line("judge", "good.txt", "--rubric", "p.yaml", "--judge", WORDS)
    monkeypatch.setenv("ADJUDGE_JUDGE", WORDS)
    named = line("judge", "good.txt", *POLITE)

    assert (ran.status, named.status) == (2, 2)
    assert "has the prefix python:; a rubric may name a provider's model and nothing else" in ran.sentence
    assert named.sentence == f"ADJUDGE_JUDGE names {WORDS}, which runs code; name it with --judge or in adjudge.toml"


def test_no_configuration_is_an_empty_one(line: Line):
    """Nothing has to be written down before the first judgement."""
    assert read_config(None) == Config()
