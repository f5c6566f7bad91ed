"""Running an agent that is a command: it is started in its workspace, ended with all that it started, and read."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from adjudge.errors import UsageError

MOST_OUTPUT = 50_000_000
"""The most bytes that are kept of each output."""

GRACE = 3.0
"""Seconds that a command has to end after it was asked to, and its outputs to be read after it ended."""

_CHUNK = 1 << 16

_PLACEHOLDER = re.compile(r"\{(prompt|transcript)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandOutput:
    """The output of a command, and the way it ended."""

    stdout: bytes
    stderr: bytes
    transcript: bytes | None
    """The bytes that it wrote into the pipe for its transcript; ``None`` if its words do not name that pipe."""
    exit_code: int | None
    timed_out: bool = False
    is_cut: bool = False
    """True if it wrote more than is kept."""


async def run_command(
    words: Sequence[str], prompt: str, folder: Path, *, env: Mapping[str, str], timeout: float
) -> CommandOutput:
    """Run a command in a folder as a process group of its own, which has ended when this returns.

    In its words ``{prompt}`` becomes the prompt, and ``{transcript}`` the path of a pipe. Raises ``UsageError`` if it
    cannot be started.
    """
    if sys.platform == "win32":
        raise UsageError("an agent that is a command needs a system with process groups; hand in a function")
    pipes_transcript = any("{transcript}" in word for word in words)
    names = ("stdout", "stderr", *(("transcript",) if pipes_transcript else ()))
    # Pipes of our own: with those of asyncio, a process counts as running while anything that it started holds one.
    pipes = {name: os.pipe() for name in names}
    transcript_end = pipes["transcript"][1] if pipes_transcript else -1  # -1 is never used
    values = {"prompt": prompt, "transcript": f"/dev/fd/{transcript_end}"}
    try:
        process = await asyncio.create_subprocess_exec(
            # Both placeholders are replaced in one pass, because the prompt may hold "{transcript}" itself.
            *[_PLACEHOLDER.sub(lambda match: values[match[1]], word) for word in words],
            cwd=folder,
            env=dict(env),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipes["stdout"][1],
            stderr=pipes["stderr"][1],
            # A process group of its own, so that all that the agent started can be ended, and no process of ours.
            start_new_session=True,
            pass_fds=(transcript_end,) if pipes_transcript else (),
        )
    except (OSError, ValueError) as error:
        for read_end, _ in pipes.values():
            os.close(read_end)
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"the agent {words[0]!r} cannot be started: {reason}", argument="agent") from None
    finally:
        for _, write_end in pipes.values():
            os.close(write_end)
    return await _RunningCommand(process).finish({name: read_end for name, (read_end, _) in pipes.items()}, timeout)


class _RunningCommand:
    """A command that is running, and the outputs that it has written so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.kept: dict[str, bytearray] = {}
        self.is_cut = False

    async def finish(self, pipes: Mapping[str, int], timeout: float) -> CommandOutput:
        """Wait until the command has ended, at most ``timeout`` seconds, and return its output.

        Whatever happens, its process group is ended and its pipes are closed.
        """
        streams = {name: await _open_pipe(descriptor) for name, descriptor in pipes.items()}
        # A bare task: the end of this block waits for it, or cancels it.
        readers = [asyncio.ensure_future(self._read_stream(name, stream)) for name, (stream, _) in streams.items()]
        timed_out = False
        try:
            try:
                await asyncio.wait_for(self.process.wait(), timeout)
            except TimeoutError:
                timed_out = True
                await self._ask_to_end()
        finally:
            # Also if the command ended by itself: processes that it left behind would go on changing the workspace.
            self._end_group()
            await asyncio.shield(asyncio.wait(readers, timeout=GRACE))
            for reader in readers:
                reader.cancel()
            for _, transport in streams.values():
                transport.close()  # a process that left the group may still hold the other end
            await asyncio.shield(self.process.wait())
        return CommandOutput(
            stdout=bytes(self.kept["stdout"]),
            stderr=bytes(self.kept["stderr"]),
            transcript=bytes(self.kept["transcript"]) if "transcript" in self.kept else None,
            exit_code=self.process.returncode,
            timed_out=timed_out,
            is_cut=self.is_cut,
        )

    async def _read_stream(self, name: str, stream: asyncio.StreamReader) -> None:
        """Read an output to its end, and keep its first ``MOST_OUTPUT`` bytes."""
        kept = self.kept.setdefault(name, bytearray())
        while chunk := await stream.read(_CHUNK):
            # The rest is read too and dropped: a command whose pipe is full would wait for ever.
            room = MOST_OUTPUT - len(kept)
            self.is_cut = self.is_cut or len(chunk) > room
            kept += chunk[:room]

    async def _ask_to_end(self) -> None:
        """Ask the processes of the command to end, and wait for that at most ``GRACE`` seconds."""
        if sys.platform != "win32":  # run_command refuses that
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGTERM)
        with suppress(TimeoutError):
            await asyncio.wait_for(self.process.wait(), GRACE)

    def _end_group(self) -> None:
        """Kill all processes of the command that are still running."""
        if sys.platform != "win32":
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)


async def _open_pipe(descriptor: int) -> tuple[asyncio.StreamReader, asyncio.BaseTransport]:
    """Open the read end of a pipe as a stream, and return it with the transport by which it is closed."""
    reader = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(reader)
    file = os.fdopen(descriptor, "rb", buffering=0)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, file)
    return reader, transport
