"""A text that was judged, made into what is shown of it: a transcript, rows, or the text itself.

Task, context and reference may be anything that JSON holds: messages, passages that were found, records, an agent's
run, or an object of several of these.

What is shown of a transcript is decided in ``transcript_view.py``, and of a call in ``call_view.py``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.agents.conversation import Conversation, read_conversation, read_excerpt
from adjudge.formats.json import read_json
from adjudge.templates.call_values import PlacedFinding
from adjudge.templates.call_view import make_call_view
from adjudge.templates.evidence import cut_passages, mark_window
from adjudge.templates.opened import MOST_DRAWN, Opened, TextWindow, is_long
from adjudge.templates.transcript_values import (
    ContentView,
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


def make_content_view(
    content: str, quotations: Sequence[str], findings: Sequence[PlacedFinding], opened: Opened
) -> ContentView:
    """Make the view of what was judged, with the quotations of its judges marked and findings at their places.

    Of a long text no more is drawn than a window.
    """
    call = None if is_long(content) else make_call_view(content, quotations, findings=findings)
    if call is not None:
        return ContentView(call=call, length=len(content))
    conversation = open_conversation(content)
    window = opened.find_window("content", content, begins=conversation is None)
    if conversation is not None and window is None:
        most = MOST_DRAWN if is_long(content) else None
        transcript = make_transcript_view(
            conversation, opened=opened, quotations=quotations, findings=findings, most_drawn=most
        )
        return ContentView(transcript=transcript, length=len(content))
    begin, end = (0, len(content)) if window is None else (window.begin, window.end)
    return ContentView(text=mark_window(content, quotations, begin, end), window=window, length=len(content))


def make_judged_text(
    text: str, name: str, *, first: int = 1, opened: Opened | None = None, folds: bool = True, judged: bool = True
) -> JudgedText:
    """Make the view of a task, a context or a reference. Its transcripts are numbered on the page from ``first``.

    ``folds=False`` folds steps of transcripts alone, and shows everything else in full. ``judged=False`` does not say
    what was left out for a judge. Of a long text no more is drawn than a window.
    """
    opened = opened or Opened()
    begins = is_long(text) and not folds and open_conversation(text) is None
    window = opened.find_window(name, text, begins=begins)
    shower = _Shower(name=name, opened=opened, folds=folds, judged=judged)
    parts = (shower.show_window(text, window),) if window is not None else tuple(shower.list_parts(text, first))
    unshown = [f"{part} of {_name_part(name, each)}" for each in parts for part in _list_unshown(each)]
    return JudgedText(name=name, parts=parts, length=len(text), unshown_parts=tuple(unshown), window=window)


def count_transcripts(text: JudgedText) -> int:
    """Count the transcripts that a text holds, after which the next one on the page is numbered."""
    return sum(isinstance(part.view, TranscriptView) for part in text.parts)


def make_excerpt_view(text: str) -> TranscriptView | None:
    """Make the view of what a report keeps of a run or of messages; ``None`` for any other text."""
    value = _read_value(text)
    conversation = read_conversation(value) or read_excerpt(value)
    return None if conversation is None else make_transcript_view(conversation, names_unseen=False)


def _name_part(name: str, part: NamedPart) -> str:
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
    except ValueError:  # also for a name that occurs twice, of which a program may read either
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shower:
    """The options with which a text is shown."""

    name: str
    opened: Opened
    folds: bool
    judged: bool

    def show_window(self, text: str, window: TextWindow) -> NamedPart:
        """Show a window of a long text, as the text that it is."""
        return NamedPart(name="", view=_make_plain(text, window.begin, window.end))

    def list_parts(self, text: str, first: int) -> Iterator[NamedPart]:
        """Yield the parts of a text; its transcripts are numbered from ``first``."""
        value = _read_value(text)
        most = MOST_DRAWN if is_long(text) else None
        if not isinstance(value, dict | list) or not value:
            yield NamedPart(name="", view=self._show_plain(text))
            return
        conversation = read_conversation(value)
        if conversation is not None:
            yield NamedPart(name="", view=self._show_transcript(conversation, first, most))
            return
        members = value.items() if isinstance(value, dict) else ()
        talks = {name: talk for name, part in members if (talk := read_conversation(part)) is not None}
        for key, (name, talk) in enumerate(talks.items(), first):
            yield NamedPart(name=name, view=self._show_transcript(talk, key, most))
        if not talks:
            yield NamedPart(name="", view=self._show_rows(text))
        elif len(talks) < len(value):
            # Written anew without the conversations: a number may lose digits that nobody decides about here.
            others = {name: part for name, part in members if name not in talks}
            yield NamedPart(name="other members", view=self._show_rows(json.dumps(others, ensure_ascii=False)))

    def _show_transcript(self, conversation: Conversation, key: int, most: int | None) -> TranscriptView:
        return make_transcript_view(
            conversation, key=key, opened=self.opened, names_unseen=self.judged, most_drawn=most
        )

    def _show_rows(self, text: str) -> RowsView | PlainView:
        # A list becomes one row, which is a table, or its values one below the other.
        content = text if text.lstrip().startswith("{") else f'{{"{self.name}": {text}}}'
        call = make_call_view(content, whole=self.opened.whole or not self.folds, only_calls=False)
        return self._show_plain(text) if call is None else RowsView(call=call)

    def _show_plain(self, text: str) -> PlainView:
        return _make_plain(text, 0, len(text) if self.opened.whole or not self.folds else LONGEST_PLAIN)


def _make_plain(text: str, begin: int, end: int) -> PlainView:
    """Make the view of a text from one character to another; its lines and its length are those of the whole text."""
    shown = text[begin:end]
    return PlainView(
        text=ShownText(
            passages=cut_passages(shown),
            lines=text.count("\n") + 1,
            length=len(text),
            rest=len(text) - len(shown),
        )
    )
