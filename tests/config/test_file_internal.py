"""Configuration files as they are read, before a judge is asked."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from adjudge import Judge, JudgeChain
from adjudge.config import judges as _local
from adjudge.config.file import Config, read_config
from adjudge.config.judges import Panel, choose
from kit import cli
from kit.cli import Line, configure, serve

pytestmark = pytest.mark.timed


POLITE = ("--criteria", "Is polite.")


@pytest.fixture
def line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    Path("good.txt").write_text("good", encoding="utf-8")
    Path("bad.txt").write_text("bad", encoding="utf-8")
    return Line(capsys)


def open_judge(*names: str, **options: object) -> Judge | JudgeChain:
    return choose(Panel(judges=names, **options), read_config(None)).judge


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
    assert (inner.strategy, inner.timeout, outer.timeout) == ("fallback", 2.0, 60.0)


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


def test_no_configuration_is_an_empty_one(line: Line):
    """Nothing has to be written down before the first judgement."""
    assert read_config(None) == Config()
