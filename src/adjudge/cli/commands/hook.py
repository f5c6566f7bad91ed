"""``adjudge hook``: gates in front of the tools of Claude Code and Codex.

Whether a call may be made is decided in ``guards/tool_guard/guard.py`` (``ToolGuard``), what a harness is answered in
``harness/hook_guard.py`` (``HookGuard``), and what is installed in ``harness/installing.py`` (``merge_settings``).
"""

from __future__ import annotations

import asyncio
import difflib
import json
import os
import shlex
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from adjudge.cli.command_groups import make_group
from adjudge.cli.error_messages import format_error
from adjudge.cli.exit_status import DONE, FAILED, UNDECIDED
from adjudge.cli.output import complain, note, print_line
from adjudge.errors import AdjudgeError, UsageError
from adjudge.formats.text import flatten, show

if TYPE_CHECKING:
    from adjudge.config.hook import OpenedHook
    from adjudge.harness.events import Harness

HarnessName = Annotated[str, typer.Argument(metavar="claude|codex", hidden=True)]

Config = Annotated[
    Path, typer.Option("--config", metavar="FILE", help="Configuration with [hook], outside of every project.")
]

AllowPython = Annotated[
    bool, typer.Option("--allow-python", help="Let the configuration name Python code, which the hook then runs.")
]


def check_event(
    harness: Annotated[str, typer.Option("--for", metavar="H", help="The harness: claude or codex.")],
    # A text and not a Path: typer imports pydantic to make one, and a harness waits for this command at each call.
    config: Annotated[
        str, typer.Option("--config", metavar="FILE", help="Configuration with [hook], by its whole path.")
    ],
    digest: Annotated[
        str | None, typer.Option("--digest", metavar="D", help="What the configuration has to be, as installed.")
    ] = None,
    managed: Annotated[
        bool, typer.Option("--managed", help="Answer allow after a person's approval; for managed settings alone.")
    ] = False,
    allow_python: AllowPython = False,
    seal: Annotated[bool, typer.Option("--seal", help="End the answer with the mark that the wrapper waits for.")] = (
        False
    ),
) -> int:
    """Answer one event of a harness, which is read from standard input.

    $ adjudge hook check --for claude --config "$PWD/adjudge.toml" < event.json

    Try your rules with it: event.json is what a harness sends before a call, such as {"hook_event_name": "PreToolUse",
    "session_id": "trial", "cwd": "/srv/shop", "tool_use_id": "1", "tool_name": "Bash", "tool_input": {"command":
    "ls"}}. A call that passes is answered with {}, which leaves the harness its own question; one that is denied, or
    waits for a person, with the sentence that the agent reads. `adjudge hook install` writes this command into the
    settings of the harness.

    Exit status: 0 answered, 2 anything else, with a word on standard error, so that the harness stops.
    """
    try:
        answer_descriptor = _redirect_standard_output()
        answer = asyncio.run(
            _answer_event(_read_harness(harness), Path(config), digest, managed=managed, allow_python=allow_python)
        )
        with os.fdopen(answer_descriptor, "w", encoding="utf-8") as file:
            file.write(json.dumps(answer) + (_read_mark() if seal else "\n"))
    except AdjudgeError as error:
        complain(format_error(error))
        return 2
    except BaseException as error:  # noqa: BLE001 - a harness makes the call after any exit status but 2
        complain(f"the event could not be checked: {type(error).__name__}")
        return 2
    return DONE


def _read_mark() -> str:
    """Return the mark at the end of a whole answer, for which ``--seal`` asks."""
    from adjudge.harness.hook_client import MARK

    return MARK


def _redirect_standard_output() -> int:
    """Redirect standard output to the null device, and return a file descriptor of the original one.

    The harness reads the answer there. Nothing else may print to it, such as a judge or a rule in Python code.
    """
    sys.stdout.flush()
    answer_descriptor = os.dup(sys.stdout.fileno())
    null_device = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null_device, sys.stdout.fileno())
    os.close(null_device)
    return answer_descriptor


async def _answer_event(
    harness: Harness, path: Path, digest: str | None, *, managed: bool, allow_python: bool
) -> dict[str, Any]:
    """Read an event from standard input and return its answer, by a server if the configuration names one.

    ``digest`` is the digest that the configuration has to have, as it was installed; ``None`` checks none.
    """
    from adjudge.config.hook import OpenedHook
    from adjudge.config.hook_binding import check_outside, read_bound_config
    from adjudge.harness.events import CallEvent, RanEvent, read_event
    from adjudge.harness.hook_client import LARGEST_EVENT

    raw = await asyncio.to_thread(sys.stdin.buffer.read, LARGEST_EVENT + 1)
    config = read_bound_config(path, digest=digest, allow_python=allow_python)
    if "server" in config.hook:
        return _ask_server(config, raw, harness, managed=managed)
    event = read_event(harness, raw)
    if isinstance(event, CallEvent | RanEvent):
        check_outside(path, event.call.cwd or "/")
    opened = OpenedHook(config, harness, managed=managed)
    try:
        return await opened.guard.answer(event)
    finally:
        await opened.aclose()


def _ask_server(config: Any, raw: bytes, harness: Harness, *, managed: bool) -> dict[str, Any]:
    """Have the server that the configuration names answer an event, given as its bytes.

    Raises ``UsageError`` if no valid answer comes in time, so that the harness stops.
    """
    from adjudge.config.hook import read_hook_settings
    from adjudge.harness.guard_server import NotChecked
    from adjudge.harness.hook_client import answer_event, find_deadline

    settings = read_hook_settings(config)
    assert settings.server is not None  # noqa: S101 - for the type checker
    seconds = find_deadline(settings.timeout)
    config_path, digest = str(config.path), config.digest or ""
    try:
        return answer_event(
            raw, settings.server, harness, managed=managed, seconds=seconds, config=config_path, digest=digest
        )
    except NotChecked as error:
        raise UsageError(str(error)) from None


def install(
    harness: HarnessName,
    config: Config,
    write: Annotated[
        bool, typer.Option("--write", help="Write the settings; without it, they are only shown.")
    ] = False,
    managed: Annotated[
        bool, typer.Option("--managed", help="Use Claude Code's managed settings, and let no other hook count.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", metavar="F", help="The settings, where they are not in the usual place.")
    ] = None,
    allow_python: AllowPython = False,
) -> int:
    """Install the hook for claude or codex: show what changes in its settings, and write it with --write.

    $ adjudge hook install claude --config adjudge.toml

    Every path is absolute, and the configuration is bound by its digest, over the file and all that it names: after a
    change, install again.

    Only managed settings enforce anything. A project can switch off or replace a hook of the user's own settings; there
    the hook is a help against mistakes.

    Exit status: 0 shown or written, 2 a configuration or settings that cannot be used.
    """
    from adjudge.config.hook import OpenedHook, read_hook_settings
    from adjudge.config.hook_binding import digest_installed, read_bound_config
    from adjudge.harness.installing import Installation, list_events, merge_settings
    from adjudge.harness.settings_file import find_settings, read_settings, write_settings

    name = _read_harness(harness)
    if managed and name == "codex":
        raise UsageError("--managed is for Claude Code; how Codex enforces settings was not tried")
    path = Path(os.path.abspath(config))  # noqa: PTH100 - resolve() would follow the link that is refused
    configuration = read_bound_config(path, digest=None, allow_python=allow_python)
    settings = read_hook_settings(configuration)
    asks_server = settings.server is not None
    if not asks_server:
        asyncio.run(_check_hook_opens(OpenedHook(configuration, name)))
    installation = Installation(
        harness=name,
        python=os.path.abspath(sys.executable),  # noqa: PTH100 - the link of an environment leads out of it
        config=path,
        digest=digest_installed(configuration),
        seconds=settings.seconds,
        events=list_events(
            name,
            # A server is sent all events, because it knows for which of them it has gates.
            prompts=asks_server or settings.prompts is not None,
            answers=asks_server or settings.answers is not None,
            observes=asks_server or settings.mode == "observe",
        ),
        managed=managed,
        allow_python=allow_python,
        asks_server=asks_server,
    )
    settings_file = file if file is not None else find_settings(name, managed=managed)
    before = read_settings(settings_file)
    after = merge_settings(before, installation)
    _show_difference(before or "", after, settings_file)
    if write:
        write_settings(settings_file, after, managed=managed)
        note(f"written to {settings_file}")
        if asks_server:
            note(f"send SIGHUP to adjudge serve, or start it again: until it has read {path}, it refuses every call")
    else:
        note(f"nothing was written; --write writes {settings_file}")
    _explain_protection(name, path, managed=managed)
    return DONE


async def _check_hook_opens(hook: OpenedHook) -> None:
    """Raise ``UsageError`` if a hook could not check an event, for example because a judge's key is missing."""
    try:
        hook.check_ready()
    finally:
        await hook.aclose()


def _show_difference(before: str, after: str, path: Path) -> None:
    """Print the changes of a settings file, as a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), str(path), str(path), lineterm="")
    for line in lines:
        print_line(line)


def _explain_protection(harness: str, config: Path, *, managed: bool) -> None:
    """Tell the user how well an installed hook protects, whether its configuration is safe, and how to try it."""
    from adjudge.config.hook_binding import find_project

    if managed:
        note("no other hook counts now; restart Claude Code")
    elif harness == "claude":
        note("a help against mistakes: a project's settings can switch this hook off; --managed cannot be switched off")
    else:
        note(
            "a help against mistakes: Codex skips a hook, without a word, until you trust it with /hooks, and again "
            "after each change; a project that you trust can switch hooks off (features.hooks = false)"
        )
    project = find_project(config)
    if project is not None:
        note(
            f"{config} lies in the project {project}, where an agent that works on it can write; a session in its "
            "folder has every call refused. Move it outside of every project, and install again"
        )
    note(f"to see that it works: {shlex.join(['adjudge', 'hook', 'doctor', harness, '--config', str(config)])}")


def reopen(
    run: Annotated[str, typer.Argument(metavar="RUN", hidden=True)],
    config: Config,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why the session may go on.")],
) -> int:
    """Let a session go on that was stopped after refusals, or after a call that was not checked. For people.

    $ adjudge hook reopen 3f9a --config adjudge.toml --reason "Read it."

    RUN is the session's id; behind a server, key:PREFIX/ID, with the prefix of the key that asked. The ledger records
    who reopened it: the account that this runs under, which has to be one of the approvers of [approvals].

    The agent could run this command too, so it needs command = true under [approvals] of the configuration. Without
    it, ask the server with an approver's key (POST /v1/tools/reopen).

    Exit status: 0 reopened, 2 not permitted here, or nothing to reopen, 3 the ledger cannot be used.
    """
    from adjudge.cli.commands.ledger import find_user
    from adjudge.config.file import read_config
    from adjudge.config.ledger import open_ledger
    from adjudge.guards.tool_guard.run_trust import reopen_stopped_run

    configuration = read_config(config)
    by = find_user()
    if not configuration.approvals.get("command", False):
        raise UsageError(
            "the agent could run this command; reopen the session with an approver's key (POST /v1/tools/reopen of the "
            f"server), or write command = true under [approvals] of {config}"
        )
    approvers = configuration.approvals.get("approvers", ())
    if by not in approvers:
        names = ", ".join(map(show, approvers)) or "nobody"
        raise UsageError(f"{show(by)} is no approver of {config}, which has {names}; run this under one's account")

    async def reopen_run() -> int:
        async with open_ledger(configuration) as ledger:
            return await reopen_stopped_run(ledger, run, by=by, reason=reason)

    seq = asyncio.run(reopen_run())
    print_line(f"session {flatten(run, 200)} is reopened by {flatten(by, 80)}, entry {seq}")
    return DONE


def doctor(
    harness: HarnessName,
    config: Config,
    program: Annotated[
        str | None, typer.Option("--program", metavar="P", help="The harness.  [default: what PATH has]")
    ] = None,
    folder: Annotated[
        Path | None,
        typer.Option(
            "--folder",
            metavar="D",
            help="The project to try it in, whose own hooks run then.  [default: an empty folder]",
        ),
    ] = None,
) -> int:
    """Start claude or codex, as it is set up here, and see whether the hook stops it.

    $ adjudge hook doctor claude --config adjudge.toml

    The harness is started in an empty folder, or in --folder, with a scripted model on 127.0.0.1 in place of its own.
    The model has a tool read the configuration of the hook, which the hook refuses (protects_itself). The harness keeps
    the session like any other.

    Settings of a project can switch the hook off. To see that, name the project with --folder; what its settings and
    hooks start then runs on this machine, so do it with a project that you trust.

    Exit status: 0 the call was refused by this hook, 1 the tool ran, 2 wrong usage, 3 neither could be seen.
    """
    from adjudge.config.hook import read_hook_settings
    from adjudge.config.hook_binding import read_bound_config
    from adjudge.harness.rehearsal import rehearse

    name = _read_harness(harness)
    path = Path(os.path.abspath(config))  # noqa: PTH100 - as install does
    settings = read_hook_settings(read_bound_config(path, digest=None, allow_python=True))
    if not settings.protects_itself:
        raise UsageError(
            "the doctor has a call refused by protects_itself, which is off in [hook]; switch it on for it"
        )
    # An empty folder by default, and not the current one: if that is a project, its own hooks would run too.
    with tempfile.TemporaryDirectory(prefix="adjudge-", ignore_cleanup_errors=True) as empty:
        rehearsal = rehearse(name, path, program=program, folder=folder or Path(empty), seconds=settings.seconds)
    if rehearsal.outcome == "refused":
        print_line(f"{rehearsal.version}: the call was refused by adjudge")
        return DONE
    if rehearsal.outcome == "ran":
        remedy = "; most often Codex does not trust it yet: start codex, and type /hooks" if name == "codex" else ""
        print_line(f"{rehearsal.version}: THE TOOL RAN; the hook was not asked, or not listened to{remedy}")
        return FAILED
    complain(f"{rehearsal.version}: neither a refusal nor a result was seen: {show(rehearsal.detail)}")
    return UNDECIDED


def _read_harness(name: str) -> Harness:
    """Return the harness of a name; raises ``UsageError`` for an unknown one."""
    from adjudge.harness.events import HARNESSES

    for harness in HARNESSES:
        if harness == name:
            return harness
    raise UsageError(f"the harness is claude or codex, got {show(name)}")


hook_app = make_group(
    "hook",
    "Put gates in front of the tools of Claude Code and Codex.",
    {"install": install, "doctor": doctor, "reopen": reopen, "check": check_event},
)
