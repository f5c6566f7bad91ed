"""The view of a text that was judged: a transcript, rows, or the text itself.

A task, a context and a reference may be any JSON: messages, passages that were found, records, an agent's run, or an
object of several of these.

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
from adjudge.templates.opened_parts import MOST_DRAWN, Opened, TextWindow, is_long
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
    """Make the view of a judged content: a call, a transcript or a text, with the judges' quotations and findings.

    Of a text that is too long to be drawn at once, only a window is drawn.
    """
    call = None if is_long(content) else make_call_view(content, quotations, findings=findings)
    if call is not None:
        return ContentView(call=call, length=len(content))
    conversation = open_conversation(content)
    window = opened.find_window("content", content, shows_first=conversation is None)
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

    With ``folds=False``, only steps of transcripts are folded, and everything else is shown in full. With
    ``judged=False``, the view does not say what was left out for a judge. Of a text that is too long to be drawn at
    once, only a window is drawn.
    """
    opened = opened or Opened()
    shows_first_window = is_long(text) and not folds and open_conversation(text) is None
    window = opened.find_window(name, text, shows_first=shows_first_window)
    maker = _ViewMaker(name=name, opened=opened, folds=folds, judged=judged)
    parts = (maker.make_window(text, window),) if window is not None else tuple(maker.list_parts(text, first))
    unshown = [f"{amount} of {_name_part(name, part)}" for part in parts for amount in _list_unshown(part)]
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
    """Name a part of a text in words, such as ``the context, messages``."""
    return f"the {name}" + (f", {part.name}" if part.name else "")


def _list_unshown(part: NamedPart) -> Sequence[str]:
    """List what is not shown of a part, in words."""
    view = part.view
    if isinstance(view, RowsView):
        return view.call.unshown_parts
    if isinstance(view, TranscriptView):
        return view.unshown_parts
    return [f"{view.text.rest:,} characters"] if view.text.rest else []


def _read_value(text: str) -> Any:
    """Read a text that is the JSON of an object or a list; ``None`` for any other text, and for a too long one."""
    if len(text) > LONGEST_READ or text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return read_json(text)
    except ValueError:  # also raised for a name that occurs twice, because programs differ in which value they read
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _ViewMaker:
    """Makes the views of the parts of one text, by the options of ``make_judged_text``."""

    name: str
    opened: Opened
    folds: bool
    judged: bool

    def make_window(self, text: str, window: TextWindow) -> NamedPart:
        """Make the view of a window of a long text, as a plain text."""
        return NamedPart(name="", view=_make_plain_view(text, window.begin, window.end))

    def list_parts(self, text: str, first: int) -> Iterator[NamedPart]:
        """Yield the parts of a text; its transcripts are numbered from ``first``.

        A text that is no JSON, or one conversation, is a single part. Of an object with conversations among its
        members, each of them is a part, and all other members together are the last one. Any other JSON is one part in
        rows.
        """
        value = _read_value(text)
        most = MOST_DRAWN if is_long(text) else None
        if not isinstance(value, dict | list) or not value:
            yield NamedPart(name="", view=self._make_plain(text))
            return
        conversation = read_conversation(value)
        if conversation is not None:
            yield NamedPart(name="", view=self._make_transcript(conversation, first, most))
            return
        members = value.items() if isinstance(value, dict) else ()
        conversations: dict[str, Conversation] = {}
        for name, member in members:
            conversation = read_conversation(member)
            if conversation is not None:
                conversations[name] = conversation
        for key, (name, conversation) in enumerate(conversations.items(), first):
            yield NamedPart(name=name, view=self._make_transcript(conversation, key, most))
        if not conversations:
            yield NamedPart(name="", view=self._make_rows(text))
        elif len(conversations) < len(value):
            # JSON is written anew without the conversations. A number may lose digits by this, which is no harm in a
            # text that nobody approves.
            others = {name: member for name, member in members if name not in conversations}
            yield NamedPart(name="other members", view=self._make_rows(json.dumps(others, ensure_ascii=False)))

    def _make_transcript(self, conversation: Conversation, key: int, most: int | None) -> TranscriptView:
        """Make the view of a conversation, the ``key``-th of its page; at most ``most`` characters of it are drawn."""
        return make_transcript_view(
            conversation, key=key, opened=self.opened, names_unseen=self.judged, most_drawn=most
        )

    def _make_rows(self, text: str) -> RowsView | PlainView:
        """Make the view of JSON in rows; as a plain text if rows cannot show it.

        A list is put into an object first. So it is one row: a table, or its values one below the other.
        """
        content = text if text.lstrip().startswith("{") else f'{{"{self.name}": {text}}}'
        call = make_call_view(content, whole=self.opened.whole or not self.folds, only_calls=False)
        return self._make_plain(text) if call is None else RowsView(call=call)

    def _make_plain(self, text: str) -> PlainView:
        """Make the view of a text as it is; of a long one, the beginning, unless everything is shown."""
        return _make_plain_view(text, 0, len(text) if self.opened.whole or not self.folds else LONGEST_PLAIN)


def _make_plain_view(text: str, begin: int, end: int) -> PlainView:
    """Make the view of the part of a text from ``begin`` to ``end``; it also says how long the whole text is."""
    shown = text[begin:end]
    return PlainView(
        text=ShownText(
            passages=cut_passages(shown),
            lines=text.count("\n") + 1,
            length=len(text),
            rest=len(text) - len(shown),
        )
    )
