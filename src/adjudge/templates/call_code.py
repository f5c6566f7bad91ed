"""Code and patches in the arguments of a tool call: the language, the keywords to mark, and the lines that change."""

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

_LONG_BLANK = re.compile(r"\s{100}")
"""A text with so many blanks in a row is not lexed: Pygments 2.21 takes seconds for 20,000 line breaks and tabs."""

_MOST_LINES = 2_000

Language = Literal["SQL", "shell", "Python", "JavaScript"]

_LANGUAGE_BY_NAME: Mapping[str, Language] = {
    "sql": "SQL",
    "command": "shell",
    "cmd": "shell",
    "shell": "shell",
    "bash": "shell",
    "python": "Python",
    "javascript": "JavaScript",
    "js": "JavaScript",
}

_LANGUAGE_BY_ENDING: Mapping[str, Language] = {
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

_INSPECTED_CHARACTERS = 4_000
"""Characters at the beginning of a text by which its language is found."""

_LANGUAGE_BY_PROGRAM: Mapping[str, Language] = {
    "bash": "shell",
    "sh": "shell",
    "zsh": "shell",
    "python": "Python",
    "python3": "Python",
    "node": "JavaScript",
}

_SHEBANG = re.compile(r"#!\s*/\S*?(?:env\s+)?(?:\S*/)?(bash|sh|zsh|python3?|node)\b")


def find_language(name: str, text: str, path: str, language: str) -> Language | Literal[""] | None:
    """Find the language of the code in an argument; ``""`` for code in an unknown language, ``None`` for a text.

    ``path`` and ``language`` are what other arguments of the call say: the file that is written, and its language.
    """
    lower_name, beginning = name.lower(), text[:_INSPECTED_CHARACTERS]
    if match := _SHEBANG.match(beginning):
        return _LANGUAGE_BY_PROGRAM[match[1]]
    stated_language = _LANGUAGE_BY_NAME.get(language.lower()) or _LANGUAGE_BY_ENDING.get(language.lower())
    if lower_name in _CODE_NAMES or lower_name in _LANGUAGE_BY_NAME:
        return stated_language or _LANGUAGE_BY_NAME.get(lower_name) or ("SQL" if _SQL.match(beginning) else "")
    if _SQL.match(beginning):
        return "SQL"
    ending = path.rpartition("/")[2].rpartition(".")[2].lower()
    if "\n" not in text or not (ending in _LANGUAGE_BY_ENDING or _CODE_ENDING.fullmatch(ending)):
        return None
    return _LANGUAGE_BY_ENDING.get(ending, "")


def list_spans(text: str, language: str) -> list[tuple[int, int, SpanKind]]:
    """List where the keywords, comments and strings of a code begin and end, each with its kind.

    None of a text with a long line or a long row of blanks.
    """
    lexer = _make_lexer(language)
    # Lexers are made of regular expressions, some of which take very long for a text that is made for it.
    if lexer is None or _LONG_BLANK.search(text):
        return []
    if max(map(len, text.split("\n"))) > _LONGEST_LINE_LEXED:
        return []
    from pygments.token import Comment, Keyword, String

    spans: list[tuple[int, int, SpanKind]] = []
    for start, token, part in lexer.get_tokens_unprocessed(text):
        kind: SpanKind = (
            "comment" if token in Comment else "string" if token in String else "keyword" if token in Keyword else ""
        )
        # A keyword of one letter is left out: SQL has some, but the letter is the name of a table far more often.
        if kind and part.strip() and (kind != "keyword" or len(part) > 1):
            spans.append((start, start + len(part), kind))
    return spans


def _make_lexer(language: str) -> Lexer | None:
    """Make Pygments' lexer for a language; ``None`` for a language whose code is not marked."""
    # Only these four, because each lexer is one more set of patterns that a hostile text can make slow.
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

_KIND_BY_SIGN: Mapping[str, Literal["same", "minus", "plus"]] = {" ": "same", "-": "minus", "+": "plus"}


@dataclass(frozen=True, slots=True)
class RawPatchLine:
    """A line of a patch: its kind, and where it begins (without its sign) and ends in the text of the whole patch."""

    kind: PatchLineKind
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class RawPatch:
    """The lines of a patch, and the problems that were found while reading it."""

    lines: tuple[RawPatchLine, ...]
    problems: tuple[str, ...]


def read_patch(text: str) -> RawPatch | None:
    """Read a text as a patch; ``None`` for a text that is none.

    A patch is what ``diff -u`` and git write, or what the tool ``apply_patch`` takes.
    """
    rows = text.removesuffix("\n").split("\n")
    if len(rows) > _MOST_LINES:
        return None
    if text.startswith("*** Begin Patch"):
        return RawPatch(tuple(_list_apply_patch_lines(rows)), ())
    # A unified diff has at least one file: the lines "--- " and "+++ ", and a hunk.
    file_indexes = (index for index, row in enumerate(rows[:-2]) if row.startswith("--- "))
    if not any(rows[index + 1].startswith("+++ ") and _HUNK.match(rows[index + 2]) for index in file_indexes):
        return None
    return _read_unified(rows)


def _list_apply_patch_lines(rows: Sequence[str]) -> Iterator[RawPatchLine]:
    """Yield the lines of a patch for ``apply_patch``, which names each file in a line and has no counts of lines."""
    start = 0
    for row in rows:
        names_file = re.match(r"\*\*\* (?:Add|Update|Delete) File|\*\*\* Move to", row)
        signed_kind = _KIND_BY_SIGN.get(row[:1])
        sign_length = 1 if signed_kind is not None else 0
        yield RawPatchLine("file" if names_file else signed_kind or "head", start + sign_length, start + len(row))
        start += len(row) + 1  # with the line break


@dataclass(slots=True)
class _Hunk:
    """The numbers of old and of new lines that the head of a hunk announces, and the numbers that were read so far."""

    announced_old: int = 0
    announced_new: int = 0
    read_old: int = 0
    read_new: int = 0

    @property
    def is_open(self) -> bool:
        """True while it holds fewer lines than it announces."""
        return self.read_old < self.announced_old or self.read_new < self.announced_new

    def add(self, kind: str) -> None:
        """Count a line: one that is taken out is old, one that is put in is new, and any other is both."""
        self.read_old += kind != "plus"
        self.read_new += kind != "minus"

    def list_problems(self) -> Iterator[str]:
        """Yield the first count that is wrong, as a sentence; nothing if both are right."""
        counts = ((self.announced_old, self.read_old, "old"), (self.announced_new, self.read_new, "new"))
        for announced, held, word in counts:
            if announced != held:
                numbers = f"a hunk announces {announced:,} {word} lines and holds {held:,}"
                yield f"{numbers}; strict programs refuse it, others guess"
                return


def _read_unified(rows: Sequence[str]) -> RawPatch:
    """Read the lines of a unified diff, each with its kind, and the problems with the counts of its hunks."""
    lines: list[RawPatchLine] = []
    problems: list[str] = []
    hunk, start = _Hunk(), 0
    for index, row in enumerate(rows):
        kind = _find_line_kind(rows, index, hunk, after_file=bool(lines) and lines[-1].kind == "file")
        if kind in ("head", "file"):
            # Programs differ about a hunk whose counts are wrong: some refuse it, others guess.
            problems += hunk.list_problems()
            hunk = _read_hunk(row)
        elif not row.startswith("\\"):  # such a line says that there is no line break at the end of the file
            hunk.add(kind)
        has_sign = kind not in ("head", "file") and row[:1] in _KIND_BY_SIGN
        lines.append(RawPatchLine(kind, start + has_sign, start + len(row)))
        start += len(row) + 1  # with the line break
    return RawPatch(tuple(lines), tuple(dict.fromkeys([*problems, *hunk.list_problems()])))


def _read_hunk(row: str) -> _Hunk:
    """Read the numbers of lines that the head of a hunk announces; 0 for any other row."""
    head = _HUNK.match(row)
    return _Hunk() if head is None else _Hunk(int(head["old"] or 1), int(head["new"] or 1))


def _find_line_kind(rows: Sequence[str], index: int, hunk: _Hunk, *, after_file: bool) -> PatchLineKind:
    """Find the kind of a row; inside a hunk, ``--- `` is a removed line unless a ``+++ `` and an ``@@`` follow it.

    ``hunk`` is the hunk that is being read, and ``after_file`` is true if the row before is of the kind ``file``.
    """
    row, following = rows[index], rows[index + 1 : index + 3]
    begins_file = row.startswith("--- ") and bool(following) and following[0].startswith("+++ ")
    begins_file_and_hunk = begins_file and len(following) == 2 and _HUNK.match(following[1]) is not None
    if hunk.is_open and not begins_file_and_hunk:
        return "head" if _HUNK.match(row) else _KIND_BY_SIGN.get(row[:1], "same")
    if begins_file or (after_file and row.startswith("+++ ")):
        return "file"
    return "head" if _HUNK.match(row) or _FILE_HEAD.match(row) else _KIND_BY_SIGN.get(row[:1], "same")


def draw_patch(text: str, patch: RawPatch, places: Sequence[QuotedPlace]) -> tuple[PatchLine, ...]:
    """Make the lines of a patch as they are shown, with the changed words and the quotations marked."""
    changed_spans = dict(_list_changed_spans(text, patch.lines))
    return tuple(
        PatchLine(
            kind=line.kind,
            passages=cut_passages(
                text[line.start : line.end], clip_places(places, line.start, line.end), changed_spans.get(number, ())
            ),
        )
        for number, line in enumerate(patch.lines)
    )


def _list_changed_spans(
    text: str, lines: Sequence[RawPatchLine]
) -> Iterator[tuple[int, list[tuple[int, int, SpanKind]]]]:
    """Yield the changed words of each line that has a counterpart: the index of the line, and its spans.

    In a block of removed lines with added lines behind them, the first removed line belongs to the first added line,
    the second to the second, and so on.
    """
    index = 0
    while index < len(lines):
        removed = len(list(takewhile(lambda line: line.kind == "minus", lines[index:])))
        added = len(list(takewhile(lambda line: line.kind == "plus", lines[index + removed :])))
        for pair in range(min(removed, added)):
            old_index, new_index = index + pair, index + removed + pair
            old, new = lines[old_index], lines[new_index]
            old_parts, new_parts = compare_words(text[old.start : old.end], text[new.start : new.end])
            yield old_index, _make_changed_spans(old_parts)
            yield new_index, _make_changed_spans(new_parts)
        index += max(1, removed + added)


def _make_changed_spans(parts: Sequence[DiffPart]) -> list[tuple[int, int, SpanKind]]:
    """Make a span for each changed part of a line: where it begins and ends in the line, and its kind."""
    spans: list[tuple[int, int, SpanKind]] = []
    end = 0
    for part in parts:
        start, end = end, end + len(part.text)
        if part.changed:
            spans.append((start, end, "changed"))
    return spans
