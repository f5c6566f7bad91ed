"""Transcripts that agents left, in tests/data/agents, and what their runs are."""

from __future__ import annotations

import json
from pathlib import Path

from adjudge.agents import AgentRun
from kit import house

DATA = house.ROOT / "tests" / "data" / "agents"


def find_file(form: str, script: str = "clean") -> Path:
    """The transcript of a tool and a script."""
    return next(DATA.glob(f"{form}-{script}.*"))


def read_lines(form: str, script: str = "clean") -> list[dict]:
    """The objects of a transcript that has one on each line."""
    return [json.loads(line) for line in find_file(form, script).read_text("utf-8").splitlines()]


def read_objects(form: str, script: str = "clean") -> list[dict]:
    """The objects of a transcript, in lines or not."""
    path = find_file(form, script)
    if path.suffix != ".json":
        return read_lines(form, script)
    value = json.loads(path.read_text("utf-8"))
    return value if isinstance(value, list) else [value]


def describe(run: AgentRun) -> list[tuple]:
    """Describe what was done, without what only some tools record: ids, times, turns, prompts."""
    steps = [step for step in run.steps if step.role == "assistant"]
    return [
        ("text", step.text)
        if step.call is None
        else (step.call.tool, step.call.arguments, step.call.result, step.call.error)
        for step in steps
    ]


CLEAN: list[tuple] = [
    ("text", "I look first."),
    ("Bash", {"command": "ls backup"}, "a.txt\nb.txt", None),
    ("Bash", {"command": "cat backup/a.txt"}, "alpha", None),
    ("Bash", {"command": "cat backup/b.txt"}, "beta", None),
    ("text", "The backup holds alpha and beta."),
]

FAILING: list[tuple] = [("Bash", {"command": "echo oops; exit 3"}, None, "Exit code 3\noops"), ("text", "It failed.")]
