"""The double of the models that the pages name, whose replies the pages hold in comments."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kit.cli import Provider, find_token, serve
from kit.docs import Block

FENCE = re.compile(r"<<[\w ]+ (\w{8})>>")
CRITERION = re.compile(r"^\d+\. (.+?): ", re.MULTILINE)


@dataclass
class ExampleModel(Provider):
    """Scores 0.9 and gives no reason, but for the criteria that the block of the page names.

    Beside criteria a reply may hold the overall ``reasoning`` and ``suggestions``; of two contents that are compared it
    holds a part of the better one, as ``preferred``.
    """

    score: float = 0.9
    reasoning: str = ""
    replies: dict[str, Any] = field(default_factory=dict)
    opened: ExitStack = field(default_factory=ExitStack)
    """The servers, variables and modules that a page needs, which end with the double."""

    def begin(self, block: Block) -> None:
        """Take the replies of the block that runs next."""
        self.replies = block.replies

    def say(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Answer every criterion of the question, or with the page's ``text`` exactly that, as the provider would."""
        prompt = json.dumps(body).encode().decode("unicode_escape")
        text = self.replies.get("text") or self.judge(prompt)
        text = text.replace("TOKEN", FENCE.search(prompt)[1]) if "TOKEN" in text else text
        if "response_format" in body or "max_completion_tokens" in body:
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
            usage = {"prompt_tokens": 420, "completion_tokens": 60}
            return {"id": "1", "model": body["model"], "choices": [choice], "usage": usage}
        content = [{"type": "text", "text": text}]
        ending = {"stop_reason": "end_turn", "usage": {"input_tokens": 420, "output_tokens": 60}}
        return {"id": "1", "type": "message", "role": "assistant", "model": body["model"], "content": content} | ending

    def judge(self, prompt: str) -> str:
        """A reply with the scores and reasons of the page, or with what it prefers."""
        whole = {"reasoning": "", "suggestions": []}
        whole = {"token": find_token(prompt)} | {name: self.replies.get(name, value) for name, value in whole.items()}
        if "preferred" in self.replies:
            shown_first = prompt.partition("<<first ")[2].partition("<<end first ")[0]
            place = "first" if self.replies["preferred"] in shown_first else "second"
            return json.dumps({"token": whole["token"], "reasoning": whole["reasoning"], "preferred": place})
        entries = {}
        for name in CRITERION.findall(prompt) or ["criteria"]:
            shown = self.replies.get(name, {})
            entry = shown if isinstance(shown, dict) else {"score": shown}
            entries[name] = {"reasoning": self.reasoning, "score": self.score} | entry
        return json.dumps(whole | {"criteria": entries})


@contextmanager
def serve_example() -> Iterator[ExampleModel]:
    """The double, for as long as the block lasts."""
    with serve(ExampleModel()) as model, model.opened:
        yield model


def make_shell(directory: Path) -> dict[str, str]:
    """The environment of a shell in which ``adjudge`` and ``python`` are this interpreter's.

    There ``curl`` shows no progress, as on a terminal, and ends what it prints with a line's end. ``gh`` prints what it
    is given.
    """
    folder = directory / ".programs"
    folder.mkdir()
    python = f'"{sys.executable}"'
    commands = {
        "adjudge": f'{python} -m adjudge "$@"',
        "curl": f'"{shutil.which("curl")}" --no-progress-meter --write-out "\\n" "$@"',
        "gh": "cat",
        "pytest": f'{python} -m pytest -p no:cacheprovider "$@"',
        "python": f'{python} "$@"',
    }
    for name, command in commands.items():
        program = folder / name
        program.write_text(f"#!/bin/sh\nexec {command}\n", encoding="utf-8")
        program.chmod(0o755)
    return dict(os.environ) | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": find_package()}


def find_package() -> str:
    """Find where the package that these tests import is."""
    import adjudge

    return str(Path(str(adjudge.__file__)).parents[1])
