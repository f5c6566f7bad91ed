"""Markdown and HTML as a reader of them sees them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import Any

from markdown_it import MarkdownIt


def parse(text: str) -> list[Any]:
    """The tokens of some GitHub Markdown, inline ones included."""
    flat: list[Any] = []
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        flat += [token, *(token.children or [])]
    return flat


class Reader(HTMLParser):
    """A page as its elements and its text, without our marks of white space and options, which depend on the text."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, tuple[str, ...]]] = []
        self.text = ""
        self._raw = ""
        self._spans: list[bool] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        is_mark = tag == "span" and (dict(attrs).get("class") or "").split(" ")[0] in {"ws", "option"}
        if tag == "span":
            self._spans.append(is_mark)
        if is_mark:
            return
        self.elements.append((tag, tuple(name for name, _ in attrs)))
        self._raw = tag if tag in {"style", "script"} else ""

    def handle_endtag(self, tag: str) -> None:
        if tag == "span" and self._spans.pop():
            return
        self.elements.append((f"/{tag}", ()))
        self._raw = ""

    def handle_data(self, data: str) -> None:
        self.text += "" if self._raw else data
