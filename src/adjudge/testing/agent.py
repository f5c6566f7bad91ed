"""The ``run_agent`` fixture: an agent run in a copy of a workspace, recorded and replayed as judgements are."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from adjudge.agents.launch import AgentSource, digest_workspace, run_agent
from adjudge.agents.read import RunFormat
from adjudge.agents.run import AgentRun
from adjudge.agents.source import MOST_BYTES
from adjudge.config.agents import ConfiguredAgent
from adjudge.errors import UsageError
from adjudge.formats.files import read_text
from adjudge.formats.json import read_json
from adjudge.formats.numbers import format_dollars
from adjudge.formats.private_file import write_private
from adjudge.formats.text import clean, show
from adjudge.sync import make_sync_method
from adjudge.testing.cassette import Mode

SCHEMA = "adjudge/agent-recording/1"

_DEFAULT_TIMEOUT = 300.0
"""The default timeout of an agent, in seconds."""

_MOST_LISTED = 10
"""The most calls, and the most files, that a failed test's report names."""


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class TestAgent:
    """The agents of one test, and what they did there.

    ``await run_agent(prompt, agent=...)`` in a test with an event loop, ``run_agent.sync(prompt, agent=...)`` in one
    without.
    """

    __test__ = False  # pytest would collect the class by its name

    folders: tuple[Path, ...]
    """The folders in which a relative workspace is looked for: the test's folder, then the root directory."""
    mode: Mode
    file: Path
    """The recording."""
    record_command: str
    bundles: Path
    """The folder in which bundles of the runs are kept."""
    open_agent: Callable[[str], ConfiguredAgent]
    """Opens an agent that ``adjudge.toml`` names."""
    runs: list[AgentRun] = field(default_factory=list)
    _new_runs: list[tuple[str, AgentRun]] = field(default_factory=list)
    """The runs that were not replayed, each with its key."""
    _replayed: list[tuple[str, AgentRun]] | None = None
    """The recorded runs that are not used yet, each with its key; ``None`` until they are read."""

    async def __call__(
        self,
        prompt: str,
        *,
        agent: AgentSource | str,
        workspace: str | os.PathLike[str] | None = None,
        timeout: float | None = None,
        env: Mapping[str, str | None] | None = None,
        format: RunFormat | None = None,  # noqa: A002 - as run_agent has it
        with_git: bool = False,
    ) -> AgentRun:
        """Run an agent as ``adjudge.agents.run_agent`` does, or give its recorded run again.

        ``agent`` may be the name of one in ``adjudge.toml``, whose ``format`` and ``timeout`` then count unless the
        call says another; otherwise ``timeout`` is 300 seconds. A relative workspace is looked for in the test's folder
        and the root directory.
        """
        __tracebackhide__ = True
        chosen = self.open_agent(agent) if isinstance(agent, str) else ConfiguredAgent(source=agent)
        if timeout is None:
            timeout = _DEFAULT_TIMEOUT if chosen.timeout is None else chosen.timeout
        folder = None if workspace is None else self._locate_workspace(Path(workspace))
        key = (
            "" if self.mode == "live" else _make_key(prompt, chosen.source, digest_workspace(folder, with_git=with_git))
        )
        if self.mode == "replay":
            run = self._replay_run(key)
        else:
            run = await run_agent(
                prompt,
                agent=chosen.source,
                workspace=folder,
                timeout=timeout,
                env=env,
                format=chosen.format if format is None else format,
                with_git=with_git,
                keep=self.bundles,
            )
            self._new_runs.append((key, run))
        self.runs.append(run)
        return run

    sync = make_sync_method(__call__)

    def close(self, *, failed: bool) -> None:
        """End the test: write the recording, and drop the bundles of a test that passed. Raises ``UsageError``."""
        if self.mode == "record" and self._new_runs:
            rows = [{"schema": SCHEMA, "key": key, "run": _strip_bundle(run)} for key, run in self._new_runs]
            lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            try:
                self.file.parent.mkdir(parents=True, exist_ok=True)
                # For the owner alone, like the judge's recording: a run has the agent's files and all that it read.
                write_private(self.file, lines.encode("utf-8"))
            except OSError as error:
                raise UsageError(f"the recording {str(self.file)!r} cannot be written: {error.strerror}") from None
        if not failed:
            for _, run in self._new_runs:
                shutil.rmtree(run.metadata["bundle"], ignore_errors=True)

    def describe(self) -> str:
        """Describe the runs for the report of a test that failed."""
        return "\n\n".join(_describe_run(number, run) for number, run in enumerate(self.runs, 1))

    def _locate_workspace(self, workspace: Path) -> Path:
        """Find a relative workspace in the test's folder or the root directory; the path as it is if in neither."""
        return next((base / workspace for base in self.folders if (base / workspace).is_dir()), workspace)

    def _replay_run(self, key: str) -> AgentRun:
        """Return the next recorded run with a key and use it up. Raises ``UsageError`` if there is none left."""
        __tracebackhide__ = True
        if self._replayed is None:
            self._replayed = _read_rows(self.file)
        index = next((index for index, (recorded_key, _) in enumerate(self._replayed) if recorded_key == key), None)
        if index is None:
            raise UsageError(
                f"the recording {str(self.file)!r} has no further run of this agent with this prompt and workspace; "
                f"record it with: {self.record_command}"
            )
        _, run = self._replayed.pop(index)
        return run


def _make_key(prompt: str, agent: AgentSource, workspace: str) -> str:
    """Make the key of a recorded run: a digest of prompt, agent and the workspace's digest."""
    name = f"{getattr(agent, '__module__', '')}.{getattr(agent, '__qualname__', type(agent).__name__)}"
    identity = name if callable(agent) else list(agent)
    return hashlib.sha256(json.dumps([prompt, identity, workspace]).encode()).hexdigest()


def _strip_bundle(run: AgentRun) -> dict[str, Any]:
    """Write a run without the path of its bundle, which exists on this machine only."""
    data = run.to_dict()
    data["metadata"].pop("bundle", None)
    return data


def _read_rows(file: Path) -> list[tuple[str, AgentRun]]:
    """Read the recorded runs of a file, each with its key. Raises ``UsageError``."""
    if not file.exists():
        return []
    rows = []
    for number, line in enumerate(read_text(file, noun="a recording", most=10 * MOST_BYTES).splitlines(), 1):
        try:
            row = read_json(line)
        except ValueError:
            row = None
        if not isinstance(row, dict) or row.get("schema") != SCHEMA or not isinstance(row.get("key"), str):
            raise UsageError(
                f"{file}, line {number}: not a row of recorded runs, got {show(line[:80])}; record it again"
            )
        rows.append((row["key"], AgentRun.from_dict(row.get("run") or {})))
    return rows


def _describe_run(number: int, run: AgentRun) -> str:
    """Describe a run in lines for a terminal; long lists and texts are cut."""
    lines = [f"run {number}: {run.outcome}{'' if run.complete else ', not complete'}, {len(run.calls):,} calls"]
    lines += [f"  problem: {problem}" for problem in run.problems]
    lines += [
        f"  call {nr}: {call.tool} {json.dumps(call.arguments)[:120]}"
        for nr, call in enumerate(run.calls[:_MOST_LISTED], 1)
    ]
    lines += [f"  … and {len(run.calls) - _MOST_LISTED:,} more calls"] if len(run.calls) > _MOST_LISTED else []
    lines += [f"  {change.kind}: {change.path}" for change in run.files[:_MOST_LISTED]]
    lines += [f"  … and {len(run.files) - _MOST_LISTED:,} more files"] if len(run.files) > _MOST_LISTED else []
    lines += [f"  answer: {(run.answer or '')[:400]}"]
    lines += [f"  cost: {format_dollars(run.cost)}"] if run.cost is not None else []
    lines += [f"  bundle: {run.metadata['bundle']}"] if "bundle" in run.metadata else []
    return "\n".join(clean(line, keep_lines=False) for line in lines)
