"""The command that a coding agent (harness) starts at every call to ask a guard server about the call.

It imports little, so that it starts quickly, and decides nothing. Without a server ``adjudge hook check`` decides by
itself, which takes several times as long to start. The server's answer is made in ``hook_guard.py`` (``HookGuard``).
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NoReturn

from adjudge.harness.guard_server import (
    GuardServer,
    NotChecked,
    ask_server,
    name_config,
    read_own_file,
    read_server_table,
)

LARGEST_EVENT = 20_000_000
"""The most bytes of an event that are read; the result of a tool can be long."""

LARGEST_SENT = 900_000
"""An event of more bytes is sent without the tool's result, because a server by default takes 1,000,000."""

MARK = " checked"
"""The end of an answer that was written completely, since a text that was cut off can be JSON too."""


def find_hook_path(harness: str, *, managed: bool) -> str:
    """Return the path on the server to which the events of a harness are sent."""
    return f"/v1/hooks/{harness}" + ("?managed=true" if managed else "")


def check_outside(cwd: object, *paths: str) -> None:
    """Raise ``NotChecked`` if one of the paths is in the folder of a session, where the agent can write."""
    if not isinstance(cwd, str) or not cwd.startswith("/"):
        raise NotChecked("the event does not say in which folder the session is")
    folder = os.path.realpath(cwd).rstrip("/") + "/"
    for path in paths:
        if os.path.realpath(path).startswith(folder):
            raise NotChecked(f"{path} lies in the folder of the session, {cwd}, where the agent can write; move it")


def answer_event(
    raw: bytes, server: GuardServer, harness: str, *, managed: bool, seconds: float, config: str, digest: str
) -> dict[str, Any]:
    """Return the server's answer to an event. Raises ``NotChecked``.

    ``config`` is the path of the hook's configuration, and ``digest`` the SHA-256 of that file.
    """
    try:
        event = json.loads(raw)
    except (ValueError, RecursionError):
        raise NotChecked("the event is no JSON") from None
    if not isinstance(event, dict):
        raise NotChecked("the event is no object")
    if "tool_name" in event:
        check_outside(event.get("cwd"), config, server.key)
    path, deadline = find_hook_path(harness, managed=managed), time.monotonic() + seconds
    config_name = name_config(config, digest)
    shortened = leave_out_result(event)
    answer: dict[str, Any]
    if shortened is None or len(raw) <= LARGEST_SENT:
        try:
            answer = ask_server(server, path, raw, seconds=seconds, config=config_name)
        except NotChecked:
            if shortened is None:
                raise
        else:
            return answer
    # The server may refuse the body as too long or too deeply nested. Without a second try, a tool could return such a
    # result to hide its call from the record, while the agent reads the result.
    path += f"{'&' if '?' in path else '?'}left_out=true"
    answer = ask_server(server, path, shortened, seconds=deadline - time.monotonic(), config=config_name)
    return answer


def leave_out_result(event: Mapping[str, Any]) -> bytes | None:
    """Write the event of a call that was made as JSON, without the tool's result; ``None`` for another event."""
    if not str(event.get("hook_event_name", "")).startswith("PostToolUse"):
        return None
    return json.dumps({**event, "tool_response": None, "error": None}).encode("ascii")


def find_deadline(timeout: float) -> float:
    """Return the seconds that the server may take, by the seconds of one check: two checks, and a little."""
    return 2 * timeout + 5


def main() -> NoReturn:
    """Answer one event from standard input as ``adjudge hook check`` does, by the server of the configuration.

    It always ends the process: with status 0 and an answer, or with status 2 and a message.
    """
    import sys

    try:
        # A project may have set the environment, so nothing in it may count.
        os.environ.clear()
        text = _answer_hook(sys.argv[1:], sys.stdin.buffer)
        data = text.encode("ascii")
        while data:
            data = data[os.write(1, data) :]
        status = 0
    except BaseException as error:  # noqa: BLE001 - a harness makes the call after any exit status but 2
        message = f"the event could not be checked: {type(error).__name__}"
        if isinstance(error, NotChecked):
            message = str(error)
        with suppress(BaseException):
            os.write(2, f"adjudge: {message}\n".encode("utf-8", "replace"))
        status = 2
    os._exit(status)


def _answer_hook(words: list[str], events: Any) -> str:
    """Ask the server about the event on standard input; return its answer as text, with ``MARK`` at the end.

    ``words`` are the command line. Raises ``NotChecked`` if the server cannot be asked, the event is too long, or the
    configuration has changed or cannot be read.
    """
    options = _read_options(words)
    raw = events.read(LARGEST_EVENT + 1)
    if len(raw) > LARGEST_EVENT:
        raise NotChecked(f"the event has more than {LARGEST_EVENT:,} bytes; the hook takes no longer one")
    path = options["--config"]
    content = read_own_file(path)
    if hashlib.sha256(content).hexdigest() != options["--digest"]:
        raise NotChecked(
            f"{path} has changed since the hook was installed; read it, and run adjudge hook install again"
        )
    import tomllib

    try:
        hook = tomllib.loads(content.decode("utf-8-sig"))["hook"]
        timeout = float(hook.get("timeout", 20.0))
    except (ValueError, KeyError, TypeError, AttributeError):
        raise NotChecked(f"{path} has no [hook.server] that can be read") from None
    server = read_server_table(hook.get("server"))
    managed = "--managed" in options
    seconds = find_deadline(timeout)
    digest = options["--digest"]
    answer = answer_event(raw, server, options["--for"], managed=managed, seconds=seconds, config=path, digest=digest)
    return json.dumps(answer) + MARK


def _read_options(words: list[str]) -> dict[str, str]:
    """Read the options that ``adjudge hook install`` writes, and no others. Raises ``NotChecked`` for any other."""
    options: dict[str, str] = {}
    remaining = iter(words)
    for word in remaining:
        if word in ("--for", "--config", "--digest"):
            options[word] = next(remaining, "")
        elif word in ("--managed", "--seal"):
            options[word] = ""
        elif word not in ("hook", "check"):
            raise NotChecked(f"unknown option {word!r}; run adjudge hook install again")
    if options.get("--for") not in ("claude", "codex") or not options.get("--config") or not options.get("--digest"):
        raise NotChecked("--for, --config and --digest are needed; run adjudge hook install again")
    return options
