"""The ``run_agent`` fixture in suites of their own: runs, recordings, what a failed test shows and keeps."""

from __future__ import annotations

import json
import os
import stat

import pytest

from kit import docs, house
from kit.suites import provide_suite, run, write

pytest_plugins = ["pytester"]
__all__ = ["provide_suite"]

pytestmark = pytest.mark.integration

AGENT = (
    "from pathlib import Path",
    "from adjudge.agents import AgentCall, AgentRun, Step",
    "def agent(prompt, folder):",
    "    with Path('asked').open('a') as file: file.write(prompt + '\\n')",
    "    (folder / 'made.txt').write_text(prompt)",
    "    steps = [Step(role='assistant', call=AgentCall(tool='write', result='ok'))]",
    "    return AgentRun(steps=steps, answer='nice ' + prompt)",
)


def test_an_agent_is_run_in_a_copy_of_a_workspace(suite):
    """Found beside the test, and untouched; in a test without a loop and in one with one."""
    (suite.path / "space").mkdir()
    (suite.path / "space" / "a.txt").write_text("a")
    write(
        suite,
        *AGENT,
        "def test_one(run_agent):",
        "    done = run_agent.sync('go', agent=agent, workspace='space')",
        "    assert [(change.path, change.kind) for change in done.files] == [('made.txt', 'added')]",
        "@pytest.fixture",
        "def anyio_backend(): return 'asyncio'",
        "@pytest.mark.anyio",
        "async def test_two(run_agent):",
        "    assert (await run_agent('go', agent=['echo', 'hi'])).answer == 'hi'",
    )

    run(suite).assert_outcomes(passed=2)
    assert [path.name for path in (suite.path / "space").iterdir()] == ["a.txt"]


def test_runs_are_recorded_and_replayed_without_the_agent(suite):
    """With the judgements on them, each of several in its turn."""
    write(
        suite,
        *AGENT,
        "@pytest.mark.parametrize('prompt', ['one', 'two'])",
        "@pytest.mark.judged(criteria='Is polite.', repeat=3, at_least=2)",
        "def test_one(run_agent, prompt):",
        "    return run_agent.sync(prompt, agent=agent)",
    )
    run(suite, "--judge-record").assert_outcomes(passed=2)
    asked = (suite.path / "asked").read_text().splitlines()
    run(suite, "--judge-replay").assert_outcomes(passed=2)

    assert asked == (suite.path / "asked").read_text().splitlines() == ["one"] * 3 + ["two"] * 3


CLAUDE = """#!/bin/sh
[ "$1 $3 $4" = "-p --output-format stream-json" ] || exit 1
echo "$2" >> "$ASKED"
echo "# $2" >> src/greet.py
cat "$TRANSCRIPT"
"""
"""A stand-in for Claude Code: it changes the file, and says what Claude Code once said."""

SOMETIMES_GOOD = """
from adjudge.rubric import load_rubric
from adjudge.testing import ScriptedModel

scores = iter([0.2, 1.0, 1.0] * 2)

def answer(request):
    score = next(scores)
    names = [criterion.name for criterion in load_rubric("code-quality").criteria]
    return {"criteria": [{"name": name, "reasoning": "As it reads.", "score": score} for name in names]}

model = ScriptedModel(answer)
"""


@pytest.mark.skipif(os.name == "nt", reason="the stand-in is a script of a shell")
def test_the_test_of_the_page_on_the_seeds_passes(suite, monkeypatch):
    """Two prompts, three runs of each, of which the judge passes two; the folder beside the test stays as it is."""
    page = docs.read_blocks(house.ROOT / "docs" / "seeds.md")
    [block] = [block for block in page if "def test_it_changes_greet" in block.text]
    program = suite.mkdir("programs") / "claude"
    program.write_text(CLAUDE)
    program.chmod(0o755)
    project = suite.path / "fixtures" / "greet" / "src"
    project.mkdir(parents=True)
    (project / "greet.py").write_text("def greet():\n    return 'Hello.'\n")
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("ASKED", str(suite.path / "asked"))
    monkeypatch.setenv("TRANSCRIPT", str(house.TESTS / "data" / "agents" / "claude-stream-clean.jsonl"))
    suite.makepyfile(fake=SOMETIMES_GOOD)
    write(suite, block.text)

    run(suite).assert_outcomes(passed=2)
    asked = (suite.path / "asked").read_text().splitlines()
    assert asked == ["Add a parameter for the name."] * 3 + ["Greet in the morning."] * 3
    assert (project / "greet.py").read_text() == "def greet():\n    return 'Hello.'\n"


def test_a_run_that_was_not_recorded_fails_and_says_how_to_record_it(suite):
    """Another prompt, or another workspace, is another run."""
    lines = [*AGENT, "def test_one(run_agent):", "    run_agent.sync('go', agent=agent, workspace='space')"]
    (suite.path / "space").mkdir()
    write(suite, *lines)
    run(suite, "--judge-record").assert_outcomes(passed=1)
    run(suite, "--judge-replay").assert_outcomes(passed=1)
    (suite.path / "space" / "b.txt").write_text("b")
    result = run(suite, "--judge-replay")

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*has no further run of this agent*record it with: *--judge-record*"])


def test_a_spoilt_recording_is_refused(suite):
    """A line that nobody wrote is no run."""
    write(suite, *AGENT, "def test_one(run_agent):", "    run_agent.sync('go', agent=agent)")
    run(suite, "--judge-record").assert_outcomes(passed=1)
    [file] = (suite.path / "judge-recordings").glob("*-runs.jsonl")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600  # it has what the agent read
    file.write_text(json.dumps({"key": "x"}) + "\n")

    run(suite, "--judge-replay").assert_outcomes(failed=1)


def test_a_failed_test_shows_the_run_and_keeps_its_bundle(suite):
    """A test that passed keeps none."""
    write(
        suite,
        *AGENT,
        "@pytest.mark.parametrize('answer', ['nice go', 'other'])",
        "def test_one(run_agent, answer):",
        "    assert run_agent.sync('go', agent=agent).answer == answer",
    )
    result = run(suite, "--agent-runs", "kept")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*agent runs*", "run 1: finished, 1 calls", "  call 1: write {}", "  added: made.txt"])
    bundles = list((suite.path / "kept").glob("*/*/run.json"))
    assert [json.loads(bundle.read_text())["answer"] for bundle in bundles] == ["nice go"]


def test_an_agent_of_adjudge_toml_is_run_by_its_name(suite):
    """A command, and a function beside the file, each on the terms that the file has for it."""
    (suite.path / "adjudge.toml").write_text(
        '[agents.echo]\ncommand = ["echo", "{prompt}"]\n'
        '[agents.mine]\ncall = "python:mine:answer"\ntimeout = 20\n'
        '[agents.slow]\ncommand = ["sleep", "600"]\ntimeout = 0.2\n'
    )
    (suite.path / "mine.py").write_text("def answer(prompt, folder):\n    return f'{prompt} by mine'\n")
    write(
        suite,
        "def test_one(run_agent):",
        "    assert run_agent.sync('go', agent='echo').answer == 'go'",
        "    assert run_agent.sync('go', agent='mine').answer == 'go by mine'",
        "    assert run_agent.sync('go', agent='slow').outcome == 'timeout'",
    )

    run(suite).assert_outcomes(passed=1)


@pytest.mark.slow_table
@pytest.mark.parametrize(
    ("file", "message"),
    [
        (
            '[agents.claude]\ncommand = ["claude"]',
            "*there is no agent 'cluade' of *adjudge.toml; did you mean 'claude'?*",
        ),
        ("[agents.cluade]\n", "*[[]agents.cluade[]] needs either command = *"),
        ('[agents.cluade]\ncommand = ["a"]\ncall = "python:a:b"', "*[[]agents.cluade[]] needs either command = *"),
        ('[agents.cluade]\ncommand = "claude -p"', "*command must be a list of words*got 'claude -p'*"),
        ('[agents.cluade]\ncall = "mine:run"', "*must be like python:package.module:function, got 'mine:run'*"),
        ('[agents.cluade]\ncomand = ["a"]', "*unknown key 'comand'; did you mean 'command'?*"),
        ('[agents.cluade]\ncommand = ["a"]\nformat = "cloud"', "*format must be one of*got 'cloud'*"),
        (
            '[agents.cluade]\ncommand = ["a"]\ntimeout = 0',
            "*timeout must be a finite number of seconds above 0, got 0*",
        ),
        ("[agents]\ncluade = 1", "*[[]agents.cluade[]] must be a table*"),
    ],
    ids=["another name", "empty", "both", "a text", "not python", "misspelt", "format", "timeout", "no table"],
)
def test_an_agent_that_cannot_be_opened_fails_the_test_by_a_sentence(suite, file, message):
    """The sentence names the file, the agent and the remedy."""
    (suite.path / "adjudge.toml").write_text(file)
    write(suite, "def test_one(run_agent):", "    run_agent.sync('go', agent='cluade')")

    result = run(suite)

    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([message])
