"""Sessions of Claude Code in which calls were made, refused or asked about, and hooks that observe."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from adjudge import Case, Judge, run
from adjudge.dataset import digest_content

DENIALS: Mapping[str, tuple[str, str]] = {
    "refused": ("user-rejected", "The user doesn't want to proceed with this tool use. The tool use was rejected."),
    "by rule": ("permission-rule", "Permission to use Bash with command x has been denied."),
    "asked": ("user-rejected", "Claude requested permissions to use Bash, but you haven't granted it yet."),
    "cut": ("interrupted", "The user doesn't want to take this action right now."),
    "guarded": ("permission-rule", "The call was not made: it is not allowed here."),
}
"""By outcome: the kind of the denial, and the text in place of a result."""


def make_session(calls: Iterable[tuple[str, Mapping[str, Any], str]], session: str = "s1") -> list[dict[str, Any]]:
    """The lines of a session's file; each call is a tool, its arguments, and ``ran`` or another outcome."""
    lines = [_make_line("user", "go", session, 0)]
    for number, (tool, arguments, outcome) in enumerate(calls, 1):
        use = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": arguments}
        lines.append(_make_line("assistant", [use], session, len(lines), stop_reason="tool_use"))
        if outcome == "no result":
            continue
        kind, text = DENIALS.get(outcome, ("", "done"))
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": text, "is_error": bool(kind)}
        more = {"toolDenialKind": kind} if kind else {}
        lines.append(_make_line("user", [result], session, len(lines)) | more)
    words = [{"type": "text", "text": "Done."}]
    return [*lines, _make_line("assistant", words, session, len(lines), stop_reason="end_turn")]


def _make_line(role: str, content: Any, session: str, place: int, **more: Any) -> dict[str, Any]:
    parent = f"{session}-{place - 1}" if place else None
    message = {"role": role, "content": content, "id": f"m{place}"} | more
    return {"type": role, "uuid": f"{session}-{place}", "parentUuid": parent, "sessionId": session, "message": message}


def write_session(path: Path, calls: Iterable[tuple[str, Mapping[str, Any], str]], session: str = "s1") -> Path:
    """A file of a session."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in make_session(calls, session)), encoding="utf-8")
    return path


def make_shell(command: str, outcome: str = "ran") -> tuple[str, Mapping[str, Any], str]:
    """A call of the shell."""
    return "Bash", {"command": command, "description": "Do it"}, outcome


# ---------------------------------------------------------------- judged calls


def make_call_case(
    number: int,
    *,
    bad: bool,
    harness: str = "ran",
    rules: str | None = "passed",
    judge: bool = True,
    words: str = "",
) -> Case:
    """A call, what three deciders do with it, and whether people would stop it, which is in its words."""
    words = f"{'bad' if bad else 'good'} {'pass' if judge else 'fail'} {number}{words}"
    record: dict[str, Any] = {"outcomes": {harness: 1}}
    record |= {} if rules is None else {"rules": rules}
    content = {"tool": "Bash", "arguments": {"command": words}}
    return Case(content=content, id=digest_content(content), metadata={"call": record})


def judge_words(content: dict[str, Any]) -> bool:
    """A judge who passes what says so."""
    return "pass" in content["arguments"]["command"]


def judge_calls(place: Path, cases: list[Case], *, name: str | None = None, **options: Any) -> Path:
    """A run of that judge."""
    run(cases, Judge(judge_words, name=name), criteria="May run.", out=place, **options).finish_sync()
    return place


# ---------------------------------------------------------------- the page


def read_shown_rates(page: str) -> dict[tuple[str, str], tuple[float, float, float]]:
    """The shares of the table "How often each is wrong", with their limits, by decider and by the name of the column.

    A share that is shown without limits is not among them.
    """
    table = page[page.index("How often each is wrong") :].partition("</table>")[0]
    shares = {}
    for name, cells in re.findall(r'<tr><th scope="row" class="title">(\w+)</th>(.*?)</tr>', table):
        shown = r'data-name="([^"]+)">([\d.]+) % \(([\d.]+) to ([\d.]+) %\)</td>'
        for column, *figures in re.findall(shown, cells):
            value, low, high = [float(figure) / 100 for figure in figures]
            shares[name, column] = value, low, high
    return shares
