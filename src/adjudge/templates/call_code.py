"""Code and patches in the arguments of a call: which language it is, what is a keyword, and which lines change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Literal

from adjudge.templates.call_values import PatchLine, PatchLineKind
from adjudge.templates.difference import DiffPart, compare_words
from adjudge.templates.evidence import QuotedPlace, SpanKind, clip_places, cut_passages

if TYPE_CHECKING:
    from pygments.lexer import Lexer

_LONGEST_LINE_LEXED = 1_000

_BLANK_LEXED = re.compile(r"\s{100}")
"""Pygments' lexer of Python takes seconds for 20,000 characters of line breaks and tabs (2.21)."""

_MOST_LINES = 2_000

Language = Literal["SQL", "shell", "Python", "JavaScript"]

_BY_NAME: Mapping[str, Language] = {
    "sql": "SQL",
    "command": "shell",
    "cmd": "shell",
    "shell": "shell",
    "bash": "shell",
    "python": "Python",
    "javascript": "JavaScript",
    "js": "JavaScript",
}

_BY_ENDING: Mapping[str, Language] = {
    "sql": "SQL",
    "sh": "shell",
    "bash": "shell",
    "py": "Python",
    "js": "JavaScript",
    "jsx": "JavaScript",
    "mjs": "JavaScript",
    "ts": "JavaScript",
    "tsx": "JavaScript",
}

_CODE_ENDING = re.compile(
    r"c|cc|cfg|conf|cpp|cs|css|csv|dockerfile|env|go|h|hcl|hpp|html|ini|java|json|kt|lua|php|pl|r|rb|rs|scala|scss|"
    r"svelte|swift|tf|toml|vue|xml|ya?ml"
)

_CODE_NAMES = frozenset({"code", "script", "source", "source_code", "program"})

_SQL = re.compile(
    r"\s*(?:--[^\n]*\n\s*)*(?:select\b.{1,2000}?\bfrom|insert\s+into|update\b.{1,500}?\bset|delete\s+from|with\b.{1,2000}?\bas\s*\("
    r"|(?:create|drop|alter|truncate)\s+(?:or\s+replace\s+)?(?:table|view|index|schema|database|role|user)|grant\b|revoke\b)\b",
    re.IGNORECASE | re.DOTALL,
)

_LONGEST_LOOK = 4_000
"""Characters at the beginning of a text by which its language is found."""

_BY_PROGRAM: Mapping[str, Language] = {
    "bash": "shell",
    "sh": "shell",
    "zsh": "shell",
    "python": "Python",
    "python3": "Python",
    "node": "JavaScript",
}

_SHEBANG = re.compile(r"#!\s*/\S*?(?:env\s+)?(?:\S*/)?(bash|sh|zsh|python3?|node)\b")


def find_language(name: str, text: str, path: str, language: str) -> Language | Literal[""] | None:
    """Find the language of an argument; ``""`` is code of an unknown one, and ``None`` no code.

    ``path`` and ``language`` are what other arguments of the call say: the file that is written, and its language.
    """
    plain, begin = name.lower(), text[:_LONGEST_LOOK]
    if match := _SHEBANG.match(begin):
        return _BY_PROGRAM[match[1]]
    known = _BY_NAME.get(language.lower()) or _BY_ENDING.get(language.lower())
    if plain in _CODE_NAMES or plain in _BY_NAME:
        return known or _BY_NAME.get(plain) or ("SQL" if _SQL.match(begin) else "")
    if _SQL.match(begin):
        return "SQL"
    ending = path.rpartition("/")[2].rpartition(".")[2].lower()
    if "\n" not in text or not (ending in _BY_ENDING or _CODE_ENDING.fullmatch(ending)):
        return None
    return _BY_ENDING.get(ending, "")


def list_spans(text: str, language: str) -> list[tuple[int, int, SpanKind]]:
    """List the keywords, comments and strings of a text; none of one that has a long line or gap."""
    lexer = _make_lexer(language)
    # Lexers are made of regular expressions, and the text is hostile.
    if lexer is None or _BLANK_LEXED.search(text):
        return []
    if max(map(len, text.split("\n"))) > _LONGEST_LINE_LEXED:
        return []
    from pygments.token import Comment, Keyword, String

    spans: list[tuple[int, int, SpanKind]] = []
    for start, token, part in lexer.get_tokens_unprocessed(text):
        kind: SpanKind = (
            "comment" if token in Comment else "string" if token in String else "keyword" if token in Keyword else ""
        )
        # One letter is the name of a table far more often than the word of SQL that it is too.
        if kind and part.strip() and (kind != "keyword" or len(part) > 1):
            spans.append((start, start + len(part), kind))
    return spans


def _make_lexer(language: str) -> Lexer | None:
    """Make the lexer of a language; ``None`` for one that is not marked."""
    # These four and no others: each is one more set of patterns that a hostile text is held against.
    if language == "SQL":
        from pygments.lexers.sql import SqlLexer

        return SqlLexer()
    if language == "shell":
        from pygments.lexers.shell import BashLexer

        return BashLexer()
    if language == "Python":
        from pygments.lexers.python import PythonLexer

        return PythonLexer()
    if language == "JavaScript":
        from pygments.lexers.javascript import JavascriptLexer

        return JavascriptLexer()
    return None


# ---------------------------------------------------------------- patches

_HUNK = re.compile(r"@@ -\d+(?:,(?P<old>\d{1,9}))? \+\d+(?:,(?P<new>\d{1,9}))? @@")

_FILE_HEAD = re.compile(
    r"diff --git |index [0-9a-f]|(?:new|deleted|old) (?:file )?mode |similarity index |rename |copy |Binary files "
)

_SIGNS: Mapping[str, Literal["same", "minus", "plus"]] = {" ": "same", "-": "minus", "+": "plus"}


@dataclass(frozen=True, slots=True)
class RawPatchLine:
    """A line of a patch, and its place without the sign: quotations are found by places in the whole text."""

    kind: PatchLineKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RawPatch:
    """The lines of a patch, and what is wrong with it, which only who reads all of it knows."""

    lines: tuple[RawPatchLine, ...]
    problems: tuple[str, ...]


def read_patch(text: str) -> RawPatch | None:
    """Read a text as a patch; ``None`` for one that is none.

    A patch is what ``diff -u`` and git write, or what the tool ``apply_patch`` takes.
    """
    rows = text.removesuffix("\n").split("\n")
    if len(rows) > _MOST_LINES:
        return None
    if text.startswith("*** Begin Patch"):
        return RawPatch(tuple(_list_named(rows)), ())
    heads = (place for place, row in enumerate(rows[:-2]) if row.startswith("--- "))
    if not any(rows[place + 1].startswith("+++ ") and _HUNK.match(rows[place + 2]) for place in heads):
        return None
    return _read_unified(rows)


def _list_named(rows: Sequence[str]) -> Iterator[RawPatchLine]:
    """Yield the lines of a patch that names each file in a line of its own and counts nothing."""
    start = 0
    for row in rows:
        names = re.match(r"\*\*\* (?:Add|Update|Delete) File|\*\*\* Move to", row)
        sign = _SIGNS.get(row[:1])
        yield RawPatchLine("file" if names else sign or "head", start + (sign is not None), start + len(row))
        start += len(row) + 1


@dataclass(slots=True)
class _Hunk:
    """The numbers of lines that a hunk announces, old and new, and of those that were read of it."""

    announced_old: int = 0
    announced_new: int = 0
    held_old: int = 0
    held_new: int = 0

    @property
    def is_open(self) -> bool:
        """True while it holds fewer lines than it announces."""
        return self.held_old < self.announced_old or self.held_new < self.announced_new

    def add(self, kind: str) -> None:
        """Count a line: one that is taken out is old, one that is put in is new, and any other is both."""
        self.held_old += kind != "plus"
        self.held_new += kind != "minus"

    def list_problems(self) -> Iterator[str]:
        """Yield what is wrong with the counts: the first that differs."""
        counts = ((self.announced_old, self.held_old, "old"), (self.announced_new, self.held_new, "new"))
        for announced, held, word in counts:
            if announced != held:
                numbers = f"a hunk announces {announced:,} {word} lines and holds {held:,}"
                yield f"{numbers}; strict programs refuse it, others guess"
                return


def _read_unified(rows: Sequence[str]) -> RawPatch:
    """Read the lines of a patch, each with its kind, and the problems with its counts."""
    lines: list[RawPatchLine] = []
    problems: list[str] = []
    hunk, start = _Hunk(), 0
    for place, row in enumerate(rows):
        kind = _find_kind(rows, place, hunk, after_file=bool(lines) and lines[-1].kind == "file")
        if kind in ("head", "file"):
            # What counts wrong is read by some programs in one way, and refused by others.
            problems += hunk.list_problems()
            hunk = _read_hunk(row)
        elif not row.startswith("\\"):
            hunk.add(kind)
        signed = kind not in ("head", "file") and row[:1] in _SIGNS
        lines.append(RawPatchLine(kind, start + signed, start + len(row)))
        start += len(row) + 1
    return RawPatch(tuple(lines), tuple(dict.fromkeys([*problems, *hunk.list_problems()])))


def _read_hunk(row: str) -> _Hunk:
    """Read the numbers of lines that a row announces; none where it begins no hunk."""
    begun = _HUNK.match(row)
    return _Hunk() if begun is None else _Hunk(int(begun["old"] or 1), int(begun["new"] or 1))


def _find_kind(rows: Sequence[str], place: int, hunk: _Hunk, *, after_file: bool) -> PatchLineKind:
    """Find the kind of a row; inside a hunk, ``--- `` is a removed line unless a ``+++ `` and an ``@@`` follow it."""
    row, following = rows[place], rows[place + 1 : place + 3]
    begins_file = row.startswith("--- ") and bool(following) and following[0].startswith("+++ ")
    begins_file_and_hunk = begins_file and len(following) == 2 and _HUNK.match(following[1]) is not None
    if hunk.is_open and not begins_file_and_hunk:
        return "head" if _HUNK.match(row) else _SIGNS.get(row[:1], "same")
    if begins_file or (after_file and row.startswith("+++ ")):
        return "file"
    return "head" if _HUNK.match(row) or _FILE_HEAD.match(row) else _SIGNS.get(row[:1], "same")


def draw_patch(text: str, patch: RawPatch, places: Sequence[QuotedPlace]) -> tuple[PatchLine, ...]:
    """Make the lines that are shown of a patch, with the words that changed and with quotations."""
    changed = dict(_list_changed(text, patch.lines))
    return tuple(
        PatchLine(
            kind=line.kind,
            passages=cut_passages(
                text[line.start : line.end], clip_places(places, line.start, line.end), changed.get(number, ())
            ),
        )
        for number, line in enumerate(patch.lines)
    )


def _list_changed(text: str, lines: Sequence[RawPatchLine]) -> Iterator[tuple[int, list[tuple[int, int, SpanKind]]]]:
    """Yield the words that changed in each line that has a counterpart, by the line's number."""
    number = 0
    while number < len(lines):
        minus = len(list(takewhile(lambda line: line.kind == "minus", lines[number:])))
        plus = len(list(takewhile(lambda line: line.kind == "plus", lines[number + minus :])))
        for pair in range(min(minus, plus)):
            was, now = lines[number + pair], lines[number + minus + pair]
            before, after = compare_words(text[was.start : was.end], text[now.start : now.end])
            yield number + pair, _place_changes(before)
            yield number + minus + pair, _place_changes(after)
        number += max(1, minus + plus)


def _place_changes(parts: Sequence[DiffPart]) -> list[tuple[int, int, SpanKind]]:
    """List where the changed parts of a line begin and end."""
    spans: list[tuple[int, int, SpanKind]] = []
    end = 0
    for part in parts:
        start, end = end, end + len(part.text)
        if part.changed:
            spans.append((start, end, "changed"))
    return spans
