"""A text that was judged, made into what is shown of it: a transcript, rows, or the text itself.

Task, context and reference may be anything that JSON holds: messages, passages that were found, records, an agent's
run, or an object of several of these.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from adjudge.agents.conversation import Conversation, read_conversation
from adjudge.formats.json import read_json
from adjudge.templates.call_view import make_call_view
from adjudge.templates.evidence import cut_passages
from adjudge.templates.opened import Opened
from adjudge.templates.transcript_values import (
    JudgedText,
    NamedPart,
    PlainView,
    RowsView,
    ShownText,
    TranscriptView,
)
from adjudge.templates.transcript_view import make_transcript_view

LONGEST_PLAIN = 20_000
"""Characters of a plain text that are shown at first."""

LONGEST_READ = 2_000_000
"""Characters of a text that is read as JSON; a longer one is shown as it is."""


def open_conversation(text: str) -> Conversation | None:
    """Open a text that is the JSON of messages or of a run; ``None`` for every other text."""
    value = _read_value(text)
    return None if value is None else read_conversation(value)


def make_judged_text(name: str, text: str, *, first: int = 1, opened: Opened | None = None) -> JudgedText:
    """Make the view of a task, a context or a reference. Its transcripts are numbered on the page from ``first``."""
    opened = opened or Opened()
    parts = tuple(_list_parts(name, text, first, opened))
    unshown = [f"{part} of {_name(name, each)}" for each in parts for part in _list_unshown(each)]
    return JudgedText(name=name, parts=parts, length=len(text), unshown_parts=tuple(unshown))


def count_transcripts(text: JudgedText) -> int:
    """Count the transcripts that a text holds, after which the next one on the page is numbered."""
    return sum(isinstance(part.view, TranscriptView) for part in text.parts)


def _name(name: str, part: NamedPart) -> str:
    return f"the {name}" + (f", {part.name}" if part.name else "")


def _list_unshown(part: NamedPart) -> Sequence[str]:
    view = part.view
    if isinstance(view, RowsView):
        return view.call.unshown_parts
    if isinstance(view, TranscriptView):
        return view.unshown_parts
    return [f"{view.text.rest:,} characters"] if view.text.rest else []


def _read_value(text: str) -> Any:
    if len(text) > LONGEST_READ or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return read_json(text)
    except ValueError:  # also for a name that stands twice: then nobody knows which of them a program takes
        return None


def _list_parts(name: str, text: str, first: int, opened: Opened) -> Iterator[NamedPart]:
    value = _read_value(text)
    if not isinstance(value, dict | list) or not value:
        yield NamedPart(name="", view=_show_plain(text, opened))
        return
    conversation = read_conversation(value)
    if conversation is not None:
        yield NamedPart(name="", view=make_transcript_view(conversation, key=first, opened=opened))
        return
    talks = {key: talk for key, part in value.items() if (talk := read_conversation(part))} if type(value) is dict else {}
    for key, talk in talks.items():
        yield NamedPart(name=str(key), view=make_transcript_view(talk, key=first, opened=opened))
        first += 1
    if not talks:
        yield NamedPart(name="", view=_show_rows(name, text, opened))
    elif len(talks) < len(value):
        # Written anew without the conversations: numbers may lose digits that nobody decides about here.
        others = {key: part for key, part in value.items() if key not in talks}
        yield NamedPart(name="other members", view=_show_rows(name, json.dumps(others, ensure_ascii=False), opened))


def _show_rows(name: str, text: str, opened: Opened) -> RowsView | PlainView:
    # A list becomes one row, which is a table, or its values one below the other.
    content = text if text.lstrip().startswith("{") else f'{{"{name}": {text}}}'
    call = make_call_view(content, whole=opened.whole, only_calls=False)
    return _show_plain(text, opened) if call is None else RowsView(call=call)


def _show_plain(text: str, opened: Opened) -> PlainView:
    shown = text if opened.whole else text[:LONGEST_PLAIN]
    lines = text.count("\n") + 1
    return PlainView(
        text=ShownText(passages=cut_passages(shown), lines=lines, length=len(text), rest=len(text) - len(shown))
    )
