"""What the command line takes from ``adjudge.toml``, from the environment and from this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from kit import cli
from kit.cli import WORDS, Line, configure, serve
from kit.judges import names

pytestmark = pytest.mark.timed


LIMIT = "timeout must be a finite number of seconds above 0, or None for no limit"
POLITE = ("--criteria", "Is polite.")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    Path("good.txt").write_text("good", encoding="utf-8")
    Path("bad.txt").write_text("bad", encoding="utf-8")
    return Line(capsys)


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


def test_recordings_lie_beside_the_file_that_names_them(line: Line, monkeypatch: pytest.MonkeyPatch):
    """One of the same name in the working directory, which may be anybody's, gives no verdict of the file's judges."""
    config = configure('[defaults]\njudge = "replay:r.jsonl"\n[judges.kept]\nseats = ["replay:r.jsonl"]\n', "e/a.toml")
    with serve() as provider, serve(score=0.0) as other:
        line("judge", "good.txt", *POLITE, "--judge", provider.spec, "--record", "e/r.jsonl")
        line("judge", "good.txt", *POLITE, "--judge", other.spec, "--record", "r.jsonl")

    assert line("judge", "good.txt", *POLITE, "--config", config).status == 0
    assert line("judge", "good.txt", *POLITE, "--config", config, "--judge", "kept").status == 0
    assert line("judge", "good.txt", *POLITE, "--config", config, "--judge", "replay:r.jsonl").status == 1
    monkeypatch.setenv("ADJUDGE_JUDGE", "replay:r.jsonl")
    configure("", "e/a.toml")
    assert line("judge", "good.txt", *POLITE, "--config", config).status == 1


def test_the_file_of_a_parent_folder_is_never_read(line: Line, monkeypatch: pytest.MonkeyPatch):
    """Whoever can write above a checkout must not decide what passes in it."""
    configure(f'[defaults]\njudge = "words"\n[judges.words]\nseats = ["{WORDS}"]\n')
    Path("below").mkdir()
    monkeypatch.chdir("below")

    assert line("judge", "../good.txt", *POLITE).status == 2
    assert line("judge", "../good.txt", *POLITE, "--config", "../adjudge.toml").status == 0


def test_judges_of_the_file_are_recorded_too(line: Line):
    """``--record`` reaches every model of a judge that is named, at any depth."""
    with serve() as provider:
        configure(f'[judges.outer]\nseats = ["inner"]\n[judges.inner]\nseats = ["{provider.spec}"]\n')
        first = line("judge", "good.txt", *POLITE, "--judge", "outer", "--record", "record.jsonl")
    again = line("judge", "good.txt", *POLITE, "--judge", "replay:record.jsonl")

    assert (first.status, again.status) == (0, 0)


def test_a_module_of_the_working_directory_can_judge(line: Line):
    """``python:`` finds a module that lies here, and may be named by a file that lies here too."""
    Path("mine_here.py").write_text("from kit.cli import judge_words\n", encoding="utf-8")
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
    assert names(ran.err, "openai:gpt-6.1-terra", "OPENAI_API_KEY is set", "--judge")


def test_nobody_is_here_to_judge(line: Line, monkeypatch: pytest.MonkeyPatch):
    """A sentence says what to set; a key that is empty is none."""
    monkeypatch.setenv("OPENAI_API_KEY", " ")
    ran = line("judge", "good.txt", *POLITE)

    assert ran.status == 2
    assert names(ran.sentence, "judge", "OPENAI_API_KEY", "local server", "--judge")


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[judges.x]\nseats = ['y']\n[judges.y]\nseats = ['x']\n",
            "adjudge.toml: [judges.x] … itself … x > y > x … take it out",
        ),
        (
            "[judges.x]\nseats = ['openia:m']\n",
            "adjudge.toml: [judges.x] … 'openia:m' … did you mean openai:?",
        ),
        (
            "[judges.x]\nseats = ['yy']\n[judges.yyy]\nseats = ['rules']\n",
            "adjudge.toml: [judges.x] … 'yy' … did you mean 'yyy'?",
        ),
        (
            "[judges.x]\nseats = ['openai:a', 'openai:b']\nstrategy = 'best'\n",
            "adjudge.toml: [judges.x] … strategy … fallback, consensus, majority, quorum",
        ),
        (
            "[judges.x]\nseats = ['openai:a', 'openai:b']\ntimeout = 'soon'\n",
            f"adjudge.toml: [judges.x] … {LIMIT} … 'soon'",
        ),
        (
            "[judges.x]\nseats = ['openai:a']\nrequests_per_minute = -1\n",
            "adjudge.toml: [judges.x] … requests_per_minute … above 0 … -1",
        ),
        (
            "[judges.x]\nseats = ['openai:a', 'y']\n[judges.y]\nseats = ['openai:b']\nfail_open = true\n",
            "adjudge.toml: [judges.x] … fail_open … outermost … take it off the inner chain 'y'",
        ),
    ],
)
def test_a_judge_that_cannot_be_opened_is_said_with_its_place(line: Line, text: str, sentence: str):
    """What only shows when the judge is put together names the file and the table as well."""
    configure(text)
    ran = line("judge", "good.txt", *POLITE, "--judge", "x")

    assert ran.status == 2
    assert names(ran.sentence, *sentence.split(" … "))


def test_a_judge_or_rubric_that_is_almost_named(line: Line):
    """A name that is no model's and no rubric's is compared with those of the file."""
    configure("[judges.careful]\nseats = ['rules']\n[rubrics]\nlogin = 'l.yaml'\n")
    judge = line("judge", "good.txt", *POLITE, "--judge", "carefull")
    rubric = line("judge", "good.txt", "--rubric", "logon", "--judge", "careful")

    assert names(judge.sentence, "'carefull'", "adjudge.toml", "did you mean 'careful'?")
    assert rubric.sentence.endswith("did you mean 'login' of adjudge.toml?")
    assert (judge.status, rubric.status) == (2, 2)


def test_a_file_that_cannot_be_read(line: Line):
    """A configuration that was named and is not there, a folder, and what is not TOML, are errors."""
    Path("folder").mkdir()
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    Path("broken.toml").write_text("[judges\n", encoding="utf-8")
    runs = {
        name: line("rubric", "list", "--config", name) for name in ("gone.toml", "folder", "binary.toml", "broken.toml")
    }

    assert {ran.status for ran in runs.values()} == {2}
    assert names(runs["gone.toml"].sentence, "gone.toml does not exist", "--config")
    assert names(runs["folder"].sentence, "folder", "Is a directory", "--config")
    assert names(runs["binary.toml"].sentence, "binary.toml", "byte 0", "UTF-8")
    assert runs["broken.toml"].sentence.startswith("broken.toml is not valid TOML: ")


def test_code_is_named_by_the_user_alone(line: Line, monkeypatch: pytest.MonkeyPatch):
    """``python:`` in a rubric or in the environment is refused: only the command line and adjudge.toml run code."""
    configure(f"name: P\nmodel: {WORDS}\ncriteria:\n  - {{name: a, description: b}}\n", "p.yaml")
    ran = line("judge", "good.txt", "--rubric", "p.yaml", "--judge", WORDS)
    monkeypatch.setenv("ADJUDGE_JUDGE", WORDS)
    named = line("judge", "good.txt", *POLITE)

    assert (ran.status, named.status) == (2, 2)
    assert "has the prefix python:; a rubric may name a provider's model and nothing else" in ran.sentence
    assert names(named.sentence, "ADJUDGE_JUDGE", WORDS, "--judge", "adjudge.toml")
