"""Messages of errors, decisions and commands: the rules that they keep, and that none of their words changes unseen.

``kit/message_causes.py`` has the calls that cause them, ``data/messages.json`` the words. To change a message, write
that file anew and read the difference. Elsewhere a test asserts the type of an error and its argument.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, Ledger, Rules
from adjudge.testing import ScriptedModel
from kit import cli, message_causes, pinned_messages
from kit.cli import WORDS, Line, serve
from kit.judges import YES, scores
from kit.message_causes import CAUSES, Small, Terminal

pytestmark = pytest.mark.timed

CALLS = dict(zip(pinned_messages.list_calls(message_causes.__file__, "CAUSES"), CAUSES, strict=True))
"""By the text of the call, which is its name in messages.json."""


# ---------------------------------------------------------------- the rules


def test_a_message_is_one_line_without_a_stop():
    """It can stand in a log, a table and after a colon; what it quotes is cleaned of what would become two lines."""
    stop = re.compile(r"[^.]\.$")

    assert [text for text in pinned_messages.list_messages() if not text.isprintable() or stop.search(text)] == []


def test_a_command_speaks_of_options():
    """Nobody can type ``fail_open=True`` in a shell, and a traceback is for whoever mends adjudge."""
    python = re.compile(r"\b[a-z_]+=(True|False|None|['\"\[])|\bNone\b|Traceback")

    assert [line for line in pinned_messages.list_lines() if python.search(line)] == []


# ---------------------------------------------------------------- the words


@pytest.fixture(name="pinned", scope="module")
def provide_pinned() -> Iterator[dict[str, Any]]:
    """What is pinned of each call; written at the end where the file is written anew."""
    if not pinned_messages.IS_UPDATE:
        yield pinned_messages.read_pinned()
        return
    pinned = pinned_messages.read_pinned()
    yield pinned
    # A call that was left out, by -k say, keeps its message; one that is gone does not.
    pinned_messages.write_pinned({call: pinned[call] for call in CALLS if call in pinned})


@pytest.fixture(name="line")
def make_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Line:
    """The command line in a folder with a content."""
    cli.isolate(monkeypatch, tmp_path)
    cli.feed(monkeypatch, terminal=True)
    Path("good.txt").write_text("good", encoding="utf-8")
    return Line(capsys)


@pytest.mark.parametrize("call", CALLS)
def test_a_message_is_what_it_was(call: str, pinned: dict[str, Any], line: Line, monkeypatch: pytest.MonkeyPatch):
    """The error that a call raises, with its type and its argument, or what it returns or writes: every word of it."""
    monkeypatch.setattr(Terminal, "line", line, raising=False)
    outcome = pinned_messages.describe_outcome(CALLS[call])
    if pinned_messages.IS_UPDATE:
        pinned[call] = outcome

    assert outcome == pinned.get(call)


def test_nothing_is_pinned_that_nobody_calls():
    """A call that is taken out takes its message with it; two calls with the same text would pin one message."""
    assert len(CALLS) == len(CAUSES)
    if not pinned_messages.IS_UPDATE:
        assert list(pinned_messages.read_pinned()) == list(CALLS)


# ---------------------------------------------------------------- what no table can hold


def test_the_largest_question_that_fits_is_asked():
    """Every part of it counts."""
    assert Judge(Small(scores(1.0))).evaluate_sync("x" * 6, criteria="Good.", task="y" * 4).passed


@pytest.mark.parametrize("rule", ["{regx: a}", "{", "{python: 'gone_module:f'}"])
def test_a_rule_that_cannot_be_read_is_named(line: Line, rule: str):
    """The option and its value; the rest is what the parser, or Python, says of it."""
    ran = line("judge", "good.txt", "--criteria", "Is polite.", "--rule", rule, "--judge", "rules")

    assert ran.status == 2
    assert ran.sentence.startswith((f"--rule {rule!r}: ", f"--rule {rule!r} is not YAML: "))


def test_a_hook_that_raises_is_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    """By its name and the error's type; the rest is for whoever looks for it."""
    monkeypatch.chdir(tmp_path)
    judge = Judge(ScriptedModel(YES), on_result=Ledger("sqlite:///missing/adjudge.db").append)
    with caplog.at_level(logging.WARNING, logger="adjudge"):
        assert judge.ask_sync("Safe?").passed

    assert caplog.messages == ["the on_result hook raised UsageError; its traceback is logged at DEBUG"]


JUDGE = ("judge", "good.txt", "--criteria", "Is polite.")


def test_the_environment_runs_no_code(line: Line, monkeypatch: pytest.MonkeyPatch):
    """The variable, what it holds, and where such a name may stand."""
    monkeypatch.setenv("ADJUDGE_JUDGE", WORDS)

    assert line(*JUDGE).sentence == (
        f"ADJUDGE_JUDGE names {WORDS}, which runs code; name it with --judge or in adjudge.toml"
    )


def test_a_world_that_fails_is_told_with_what_to_do(line: Line):
    """The judge, what happened, and what would help."""
    unreachable = line(*JUDGE, "--judge", "http://127.0.0.1:1/v1#m")
    with serve(mode="hang") as provider:
        late = line(*JUDGE, "--judge", provider.spec, "--timeout", "0.05")

    assert unreachable.err == ("adjudge: undecided (error): adjudge doctor says which judges can be reached\n")
    assert "127.0.0.1:1 could not be reached (Connect call failed ('127.0.0.1', 1))\n" in unreachable.out
    assert late.err == "adjudge: undecided (timeout): give it longer with --timeout\n"
    assert "no answer within 0.05 s; raise the timeout of the judge\n" in late.out


@pytest.mark.parametrize("kind", [["image"], {"image": 1}, None, 3])
def test_a_part_whose_type_is_no_text_is_content_like_any_other(kind):
    """Whoever writes the content writes its types; one that is no text must not end the judging of it."""
    model = ScriptedModel({"criteria": [{"reasoning": "", "score": 1.0}]})
    content = [{"role": "user", "content": [{"type": kind, "text": "Hello."}]}]
    assert Judge(model).evaluate_sync(content, criteria="Is polite.").passed
    assert not Rules([{"contains": "absent"}]).evaluate_sync(content)[0].passed
