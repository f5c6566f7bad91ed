"""Reading a run from the transcript of an agent: the format is detected, and the reader for that is called."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, get_args

from adjudge.agents.claude import is_claude, read_claude
from adjudge.agents.codex import is_codex, read_codex
from adjudge.agents.inspect import is_inspect, read_inspect
from adjudge.agents.langchain import is_langchain, read_langchain
from adjudge.agents.langfuse import is_langfuse, read_langfuse
from adjudge.agents.openai import is_openai, read_openai
from adjudge.agents.openinference import is_openinference, read_openinference
from adjudge.agents.otel import is_otel, read_otel
from adjudge.agents.pydantic_ai import is_pydantic_ai, read_pydantic_ai
from adjudge.agents.run import AgentRun
from adjudge.agents.source import Document, read_document
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice

RunFormat = Literal[
    "claude",
    "codex",
    "inspect",
    "langchain",
    "langfuse",
    "openai",
    "openinference",
    "otel",
    "pydantic_ai",
    "adjudge",
]

_READERS: Mapping[str, tuple[Callable[[dict[str, Any]], bool], Callable[[Document], AgentRun]]] = {
    "claude": (is_claude, read_claude),
    "codex": (is_codex, read_codex),
    "inspect": (is_inspect, read_inspect),
    "langchain": (is_langchain, read_langchain),
    "langfuse": (is_langfuse, read_langfuse),
    "pydantic_ai": (is_pydantic_ai, read_pydantic_ai),
    "openai": (is_openai, read_openai),
    "openinference": (is_openinference, read_openinference),
    "otel": (is_otel, read_otel),
}

_MOST_EXAMINED = 50
"""The most objects that are looked at to detect the format of a transcript."""


def read_run(
    source: str | os.PathLike[str] | Sequence[str] | Sequence[Mapping[str, Any]] | Mapping[str, Any],
    format: RunFormat | None = None,  # noqa: A002 - the word
) -> AgentRun:
    """Read what an agent did from the transcript that it left.

    A run of which something is missing, stands there twice or comes after its end is not ``complete``, and
    ``problems`` says what it is. Raises ``UsageError`` for what is no transcript, is in none of the formats, or is too
    large.

    Args:
        source: The path of a file, its lines, or its objects, as ``RunResult.to_input_list()`` returns them.
        format: ``claude`` for Claude Code (``--output-format stream-json``, and session files), ``codex`` for Codex
            (``--json``, and rollout files), ``inspect`` for one sample of Inspect with its events, or a log of one
            sample, as JSON, ``langchain`` for messages of LangChain or a state that holds them, as
            ``messages_to_dict`` and ``model_dump`` write them, ``langfuse`` for a trace of Langfuse with its
            observations, ``openai`` for the items of the OpenAI Agents SDK, ``openinference`` and ``otel`` for spans
            of OpenInference and of OpenTelemetry's GenAI conventions (OTLP as JSON, as the SDK of Python writes them,
            or as Phoenix does), ``pydantic_ai`` for what ``all_messages_json()`` writes, ``adjudge`` for what
            ``AgentRun.to_dict`` wrote. By default it is told by the content.
    """
    if format is not None:
        check_choice("format", format, get_args(RunFormat))
    document = read_document(source)
    chosen = format or _detect_format(document)
    if chosen == "adjudge":
        return _read_written_run(document)
    is_of_format, read_transcript = _READERS[chosen]
    if not any(map(is_of_format, document.objects)):
        raise UsageError(f"{document.name} is no transcript of the format {chosen!r}", argument="source")
    return read_transcript(document)


def _detect_format(document: Document) -> str:
    """Return the format of the first object that is of a known one. Raises ``UsageError`` if there is none."""
    for entry in document.objects[:_MOST_EXAMINED]:
        if entry.get("schema") == AgentRun.schema:
            return "adjudge"
        for name, (is_of_format, _) in _READERS.items():
            if is_of_format(entry):
                return _detect_convention(document) if name == "otel" else name
    raise UsageError(
        f"{document.name} is no transcript of a tool that is known here; the formats are "
        f"{', '.join(get_args(RunFormat))}",
        argument="source",
    )


def _detect_convention(document: Document) -> str:
    """Return the convention of a document of spans: ``openinference`` if any of them follows it, else ``otel``.

    The first spans may be those of a web server around the agent, which follow neither.
    """
    return "openinference" if any(map(is_openinference, document.objects)) else "otel"


def _read_written_run(document: Document) -> AgentRun:
    """Read a run that ``AgentRun.to_dict`` wrote. Raises ``UsageError`` for a document that holds more than that."""
    if len(document.objects) != 1 or document.unreadable:
        raise UsageError(f"{document.name} does not hold one run and nothing else", argument="source")
    return AgentRun.from_dict(document.objects[0])
