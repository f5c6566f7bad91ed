"""Markdown in the arguments of a call, as it may look: blocks of text, in which nothing is live."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adjudge.templates.call_values import MarkdownBlock, Span

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_LONGEST_LOOK = 20_000
"""Characters at the beginning of a text in which signs of Markdown are looked for."""

_DEEPEST = 30
"""Levels of emphasis and links within each other. A tree of hundreds, which a few hundred asterisks make, is too deep
to be walked, and the page that lists it would fail for every reviewer."""

_SIGNS = (
    re.compile(r"^#{1,6} \S", re.MULTILINE),
    re.compile(r"^(?:```|~~~)", re.MULTILINE),
    re.compile(r"^\|?[ :]*-{3,}[ :]*\|", re.MULTILINE),
    re.compile(r"\]\([^)\s]{1,500}\)"),
    re.compile(r"\*\*[^*\n]{1,200}\*\*"),
    re.compile(r"^[-*] \S.*\n[-*] \S", re.MULTILINE),
)


def is_markdown(name: str, text: str, path: str) -> bool:
    """Return whether an argument is Markdown: by its name, by the file that is written, or by two of its signs."""
    words = re.split(r"[^a-z]+", name.lower())
    if "markdown" in words or "md" in words:
        return True
    if path.lower().endswith((".md", ".markdown")) and "\n" in text:
        return True
    return "\n" in text and sum(sign.search(text[:_LONGEST_LOOK]) is not None for sign in _SIGNS) >= 2


def render_markdown(text: str) -> tuple[MarkdownBlock, ...]:
    """Render a text to blocks; none where it nests deeper than any text that was meant to be read.

    HTML in it stays text, a link is its text and its address, and a picture is named and not loaded.
    """
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(text)
    if any(inline.level > _DEEPEST for token in tokens for inline in token.children or ()):
        return ()
    return tuple(_list_blocks(SyntaxTreeNode(tokens).children))


def _list_blocks(nodes: Iterable[SyntaxTreeNode]) -> Iterator[MarkdownBlock]:
    """Yield the blocks of parsed Markdown."""
    for node in nodes:
        if node.type in ("fence", "code_block"):
            yield MarkdownBlock(kind="code", spans=(Span(text=node.content.removesuffix("\n"), is_code=True),))
        elif node.type == "heading":
            yield MarkdownBlock(kind="heading", spans=_list_inline(node))
        elif node.type == "hr":
            yield MarkdownBlock(kind="line")
        elif node.type == "blockquote":
            yield MarkdownBlock(kind="quote", blocks=(tuple(_list_blocks(node.children)),))
        elif node.type in ("bullet_list", "ordered_list"):
            yield MarkdownBlock(kind="list", blocks=tuple(_list_points(node)))
        elif node.type == "table":
            rows = [row for part in node.children for row in part.children]
            cells = tuple(tuple(_list_inline(cell) for cell in row.children) for row in rows)
            yield MarkdownBlock(kind="table", rows=cells)
        else:
            yield MarkdownBlock(kind="paragraph", spans=_list_inline(node))


def _list_points(node: SyntaxTreeNode) -> Iterator[tuple[MarkdownBlock, ...]]:
    start = int(node.attrs.get("start", 1))
    for number, point in enumerate(node.children, start):
        sign = f"{number}. " if node.type == "ordered_list" else "• "
        first, *others = list(_list_blocks(point.children)) or [MarkdownBlock(kind="paragraph")]
        yield (replace(first, spans=(Span(text=sign, is_remark=True), *first.spans)), *others)


def _list_inline(node: SyntaxTreeNode) -> tuple[Span, ...]:
    return tuple(_list_spans(node.children, Span(text="")))


def _list_spans(nodes: Sequence[SyntaxTreeNode], style: Span) -> Iterator[Span]:
    """Yield the texts of a line, each in its style; pictures and links are written out."""
    for node in nodes:
        if node.type == "text":
            yield replace(style, text=node.content)
        elif node.type == "code_inline":
            yield replace(style, text=node.content, is_code=True)
        elif node.type in ("softbreak", "hardbreak"):
            yield replace(style, text="\n")
        elif node.type == "image":
            yield Span(text=f"picture “{node.content}”, not loaded: {node.attrs.get('src', '')}", is_remark=True)
        elif node.type == "strong":
            yield from _list_spans(node.children, replace(style, is_strong=True))
        elif node.type == "em":
            yield from _list_spans(node.children, replace(style, is_emphasised=True))
        elif node.type == "link":
            yield from _list_spans(node.children, style)
            yield Span(text=f" ({node.attrs.get('href', '')})", is_remark=True)
        else:
            yield from _list_spans(node.children, style)
