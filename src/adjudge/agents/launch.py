"""Running an agent in a copy of a workspace, which gives an ``AgentRun`` with the files that it changed."""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from adjudge.agents.changes import list_changes
from adjudge.agents.command import CommandOutput, run_command
from adjudge.agents.read import RunFormat, read_run
from adjudge.agents.run import AgentRun
from adjudge.agents.step import Step
from adjudge.agents.workspace import Snapshot, copy_workspace, take_snapshot
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_timeout
from adjudge.formats.text import flatten, show
from adjudge.result import make_id
from adjudge.sync import make_sync

AgentSource = Sequence[str] | Callable[[str, Path], Any]
"""An agent: the words of a command, or a function of the prompt and the folder that it works in."""

_LONGEST_STDERR = 2_000
"""The most characters of standard error that a run keeps, from its end."""

_OWN_PREFIX = "ADJUDGE_"
"""The beginning of the names of environment variables that are adjudge's own, and are kept from the agent."""


async def run_agent(
    prompt: str,
    *,
    agent: AgentSource,
    workspace: str | os.PathLike[str] | None = None,
    timeout: float = 300.0,
    env: Mapping[str, str | None] | None = None,
    format: RunFormat | None = None,  # noqa: A002 - as read_run has it
    with_git: bool = False,
    keep: str | os.PathLike[str] | None = None,
) -> AgentRun:
    """Run an agent in a copy of a workspace, and return what it did and which files it changed.

    The copy is not a sandbox: the agent runs as you, and may do what you may. How it ended is in ``outcome``; a command
    that fails or takes too long is no exception. What could not be seen, such as a file that cannot be read, makes the
    run not ``complete``. Raises ``UsageError`` for an agent that cannot be started, and a workspace that cannot be
    copied.

    Args:
        prompt: What the agent is asked to do.
        agent: The words of a command, in which ``{prompt}`` is the prompt and ``{transcript}`` the path of a pipe for
            the transcript, which is then not read from standard output. Or a function ``(prompt, workspace)``, which
            may be async and returns an ``AgentRun``, a text as the answer, or what ``read_run`` reads.
        workspace: The folder that is copied; by default an empty one. It is only read.
        timeout: Seconds that the agent has. A command is ended then with everything in its process group; a function
            that is not async goes on in its thread.
        env: Variables of a command's environment, in addition to those of this process; ``None`` takes one away. Those
            of this process whose names begin with ``ADJUDGE_`` are left out, unless they are named here.
        format: The format of the transcript, as for ``read_run``; by default it is told by the content.
        with_git: Copy the workspace's ``.git`` as well. An agent reads history, so it is left out by default.
        keep: A folder in which a bundle of the run is kept, in a folder of its own: ``run.json``, the outputs as they
            came, and ``changes.diff``.
    """
    _check_arguments(prompt, agent, workspace, timeout, format)
    with tempfile.TemporaryDirectory(prefix="adjudge-agent-", ignore_cleanup_errors=True) as folder:
        source, copy, before = await asyncio.to_thread(_prepare_copy, Path(folder), workspace, with_git=with_git)
        started_at = time.perf_counter()
        execution = _AgentExecution(
            prompt=prompt, agent=agent, folder=copy, timeout=timeout, env=_make_env(env), format=format
        )
        run, output = await (execution.run_function() if callable(agent) else execution.run_command())
        duration = (time.perf_counter() - started_at) * 1000.0
        run = replace(run, duration_ms=duration if run.duration_ms is None else run.duration_ms)
        run = await asyncio.to_thread(_add_changes, run, before, source, copy)
    run = replace(run, metadata={**run.metadata, "workspace": before.digest})
    if keep is not None:
        run = replace(
            run,
            metadata={**run.metadata, "bundle": str(await asyncio.to_thread(_write_bundle, run, output, Path(keep)))},
        )
    return run


run_agent_sync = make_sync(run_agent)


def digest_workspace(workspace: Path | None, *, with_git: bool) -> str:
    """Compute the SHA-256 of what an agent would find in a copy of a workspace; ``None`` is an empty workspace."""
    with tempfile.TemporaryDirectory(prefix="adjudge-agent-", ignore_cleanup_errors=True) as folder:
        _, _, snapshot = _prepare_copy(Path(folder), workspace, with_git=with_git)
        return snapshot.digest


@dataclass(frozen=True, slots=True, kw_only=True)
class _AgentExecution:
    """An agent that is to be run once: what it is asked, where it works, and how its transcript is read."""

    prompt: str
    agent: Any
    folder: Path
    timeout: float
    env: Mapping[str, str]
    format: RunFormat | None

    async def run_function(self) -> tuple[AgentRun, CommandOutput | None]:
        """Call the agent, a function, and make the run of what it returns or raises.

        Return the run, and ``None`` in place of a command's output.
        """
        try:
            returned = await asyncio.wait_for(self._call_function(), self.timeout)
        except TimeoutError:
            return self._make_failed("timeout", f"the agent was not done after {self.timeout:g} s"), None
        except Exception as error:  # noqa: BLE001 - an agent that fails is a run that failed
            return self._make_failed(
                "failed", f"the agent raised {type(error).__name__}: {flatten(str(error), 300)}"
            ), None
        if isinstance(returned, AgentRun):
            return returned, None
        if isinstance(returned, str):
            return self._make_answered(returned), None
        return self._prepend_prompt(read_run(returned, self.format)), None

    async def _call_function(self) -> Any:
        """Call the agent and return what it returns; a function that is not async is called in a thread."""
        if inspect.iscoroutinefunction(self.agent):
            return await self.agent(self.prompt, self.folder)
        returned = await asyncio.to_thread(self.agent, self.prompt, self.folder)
        return await returned if inspect.isawaitable(returned) else returned

    async def run_command(self) -> tuple[AgentRun, CommandOutput | None]:
        """Run the agent, a command, and return the run that is read from its output, and the output itself."""
        output = await run_command(self.agent, self.prompt, self.folder, env=self.env, timeout=self.timeout)
        run = self._read_output(output.stdout if output.transcript is None else output.transcript)
        problems = list(run.problems)
        problems += ["the output is too long to be kept whole"] if output.is_cut else []
        problems += [f"the agent was ended after {self.timeout:g} s"] if output.timed_out else []
        outcome = "failed" if output.exit_code and run.outcome == "finished" else run.outcome
        stderr_end = (
            output.stderr[-4 * _LONGEST_STDERR :].decode(errors="replace").replace("\x00", "\ufffd")[-_LONGEST_STDERR:]
        )
        run = replace(
            run,
            outcome="timeout" if output.timed_out else outcome,
            exit_code=output.exit_code,
            complete=run.complete and not problems,
            problems=tuple(problems),
            metadata={**run.metadata, **({"stderr": stderr_end} if stderr_end.strip() else {})},
        )
        return run, output

    def _read_output(self, output: bytes) -> AgentRun:
        """Read the output of a command as a transcript.

        A text that is no transcript is the agent's answer, unless a format was asked for.
        """
        text = output.decode(errors="replace")
        try:
            return self._prepend_prompt(read_run(text.split("\n"), self.format))
        except UsageError as error:
            if self.format is not None or not text.strip():
                return self._make_failed("failed", f"there is no transcript: {flatten(str(error), 300)}")
            return self._make_answered(text.rstrip("\r\n").replace("\x00", "\ufffd"))

    def _make_failed(self, outcome: Any, problem: str) -> AgentRun:
        """Make the run of an agent of which nothing is known but that it failed, or took too long, and why."""
        return AgentRun(
            steps=self._make_prompt_step(),
            outcome=outcome,
            complete=False,
            problems=(problem,),
            metadata={"source": "none"},
        )

    def _make_answered(self, answer: str) -> AgentRun:
        """Make the run of an agent of which nothing is known but its answer."""
        problem = "the agent wrote no transcript, so nobody knows which tools it called"
        steps = (*self._make_prompt_step(), Step(role="assistant", text=answer, turn=1))
        return AgentRun(steps=steps, answer=answer, complete=False, problems=(problem,), metadata={"source": "text"})

    def _prepend_prompt(self, run: AgentRun) -> AgentRun:
        """Return a run that begins with the prompt, which is added if no step of the user has it."""
        if any(step.role == "user" and step.text.strip() == self.prompt.strip() for step in run.steps):
            return run
        return replace(run, steps=(*self._make_prompt_step(), *run.steps))

    def _make_prompt_step(self) -> tuple[Step, ...]:
        """Make the step in which the user gives the prompt, as a tuple of one."""
        return (Step(role="user", text=self.prompt),)


def _check_arguments(prompt: object, agent: object, workspace: object, timeout: object, format: object) -> None:  # noqa: A002
    """Raise ``UsageError`` for arguments of ``run_agent`` that cannot be used."""
    if not isinstance(prompt, str) or not prompt.strip():
        raise UsageError(f"prompt must be a text that is not empty, got {show(prompt)}", argument="prompt")
    is_command = isinstance(agent, Sequence) and not isinstance(agent, str | bytes) and len(agent) > 0
    if not callable(agent) and not (is_command and all(isinstance(word, str) for word in agent)):  # type: ignore[union-attr]
        raise UsageError(
            f"agent must be a function, or the words of a command like ['codex', 'exec', '--json', '{{prompt}}']; got "
            f"{show(agent)}",
            argument="agent",
        )
    if workspace is not None and not Path(workspace).is_dir():  # type: ignore[arg-type]
        raise UsageError(f"workspace must be a folder, and {show(str(workspace))} is none", argument="workspace")
    if format is not None:
        check_choice("format", format, get_args(RunFormat))
    check_timeout("timeout", timeout)  # type: ignore[arg-type]


def _prepare_copy(
    base: Path, workspace: str | os.PathLike[str] | None, *, with_git: bool
) -> tuple[Path, Path, Snapshot]:
    """Copy a workspace, or an empty folder if it is ``None``, into ``base``.

    Return the source, the copy, and a snapshot of the copy.
    """
    base = base.resolve()
    source, copy = Path(workspace) if workspace is not None else base / "empty", base / "workspace"
    if workspace is None:
        source.mkdir()
    copy_workspace(source, copy, with_git=with_git)
    return source, copy, take_snapshot(copy)


def _make_env(env: Mapping[str, str | None] | None) -> dict[str, str]:
    """Make the environment of an agent that is a command: that of this process, with the changes of ``env``.

    Variables of adjudge itself are left out. A variable that ``env`` sets to ``None`` is removed.
    """
    # An agent may be talked into printing its environment. With ADJUDGE_SECRET, a text could forge a judge's answer.
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_PREFIX)}
    merged = {**inherited, **(env or {})}
    return {name: value for name, value in merged.items() if value is not None}


def _add_changes(run: AgentRun, before: Snapshot, source: Path, copy: Path) -> AgentRun:
    """Add the files that the agent changed to its run. If a snapshot is not whole, the run is not complete."""
    after = take_snapshot(copy)
    problems = [*run.problems, *before.problems, *after.problems]
    return replace(
        run,
        files=list_changes(before, after, source, copy),
        unknown=tuple([part for part in run.unknown if part != "files"]),
        complete=run.complete and not problems,
        problems=tuple(dict.fromkeys(problems)),
    )


def _write_bundle(run: AgentRun, output: CommandOutput | None, folder: Path) -> Path:
    """Write a run, the outputs of its command and the changed files into a new folder, and return that folder.

    Raises ``UsageError`` where that fails.
    """
    bundle = folder / make_id()
    try:
        bundle.mkdir(parents=True, mode=0o700)
        (bundle / "run.json").write_text(json.dumps(run.to_dict(), indent=1, ensure_ascii=False), encoding="utf-8")
        changes = "".join(f"{change.kind} {change.path}\n{change.diff}\n" for change in run.files)
        (bundle / "changes.diff").write_text(changes, encoding="utf-8")
        for name, content in _list_outputs(output):
            (bundle / name).write_bytes(content)
    except OSError as error:
        raise UsageError(f"the bundle cannot be kept in {folder}: {error.strerror}", argument="keep") from None
    return bundle


def _list_outputs(output: CommandOutput | None) -> list[tuple[str, bytes]]:
    """List the outputs of a command as files to write, each with its name and its bytes."""
    if output is None:
        return []
    outputs = [("stdout.txt", output.stdout), ("stderr.txt", output.stderr)]
    return outputs + ([("transcript.jsonl", output.transcript)] if output.transcript is not None else [])
