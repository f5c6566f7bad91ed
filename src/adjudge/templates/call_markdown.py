"""Markdown in the arguments of a tool call, rendered to blocks of text without links, pictures or HTML that work."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from adjudge.templates.call_values import MarkdownBlock, Span

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_INSPECTED_CHARACTERS = 20_000
"""Characters at the beginning of a text in which signs of Markdown are looked for."""

_DEEPEST = 30
"""Levels of emphasis and links inside of each other. A few hundred asterisks make a tree so deep that walking it fails
with a ``RecursionError``, and no reviewer could open the page."""

_SIGNS = (
    re.compile(r"^#{1,6} \S", re.MULTILINE),
    re.compile(r"^(?:```|~~~)", re.MULTILINE),
    re.compile(r"^\|?[ :]*-{3,}[ :]*\|", re.MULTILINE),
    re.compile(r"\]\([^)\s]{1,500}\)"),
    re.compile(r"\*\*[^*\n]{1,200}\*\*"),
    re.compile(r"^[-*] \S.*\n[-*] \S", re.MULTILINE),
)


def is_markdown(name: str, text: str, path: str) -> bool:
    """Return whether an argument is Markdown: by its name, by the file that is written, or by two signs of Markdown."""
    words = re.split(r"[^a-z]+", name.lower())
    if "markdown" in words or "md" in words:
        return True
    if path.lower().endswith((".md", ".markdown")) and "\n" in text:
        return True
    return "\n" in text and sum(sign.search(text[:_INSPECTED_CHARACTERS]) is not None for sign in _SIGNS) >= 2


def render_markdown(text: str) -> tuple[MarkdownBlock, ...]:
    """Render Markdown to blocks; none for a text that nests deeper than any that was written to be read.

    HTML in it stays text, a link becomes its text and its address, and a picture is named and not loaded.
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
            yield MarkdownBlock(kind="heading", spans=_make_spans(node))
        elif node.type == "hr":
            yield MarkdownBlock(kind="line")
        elif node.type == "blockquote":
            yield MarkdownBlock(kind="quote", blocks=(tuple(_list_blocks(node.children)),))
        elif node.type in ("bullet_list", "ordered_list"):
            yield MarkdownBlock(kind="list", blocks=tuple(_make_list_items(node)))
        elif node.type == "table":
            rows = [row for part in node.children for row in part.children]
            cells = tuple(tuple(_make_spans(cell) for cell in row.children) for row in rows)
            yield MarkdownBlock(kind="table", rows=cells)
        else:
            yield MarkdownBlock(kind="paragraph", spans=_make_spans(node))


def _make_list_items(node: SyntaxTreeNode) -> Iterator[tuple[MarkdownBlock, ...]]:
    """Yield the blocks of each item of a list; its number or bullet is put before the text of the first block."""
    start = int(node.attrs.get("start", 1))
    for number, item in enumerate(node.children, start):
        marker = f"{number}. " if node.type == "ordered_list" else "• "
        first, *others = list(_list_blocks(item.children)) or [MarkdownBlock(kind="paragraph")]
        yield (replace(first, spans=(Span(text=marker, is_remark=True), *first.spans)), *others)


def _make_spans(node: SyntaxTreeNode) -> tuple[Span, ...]:
    """Make the spans of the text in a node, such as a paragraph or a heading."""
    return tuple(_list_spans(node.children, Span(text="")))


def _list_spans(nodes: Sequence[SyntaxTreeNode], style: Span) -> Iterator[Span]:
    """Yield the texts in some nodes, each in its style; the addresses of pictures and links are written out.

    ``style`` is the style of the node around them, as a span without text.
    """
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
