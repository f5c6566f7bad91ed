"""The view of a tool call: one row for each argument, and each value shown as the text, code or table that it is.

Everything in a call was written by somebody who may want it approved. So nothing is left out silently: what is not
shown at first is counted and named, and a page that does not show everything lets nobody approve. What is shown is
exact: numbers keep their digits, a name that occurs twice is shown twice, and JSON inside of a text is marked as text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from adjudge.formats.blanks import describe_blanks
from adjudge.formats.invisible import is_unseen
from adjudge.formats.json_places import (
    JsonNode,
    decode_text,
    flatten_json,
    read_places,
    to_decoded_position,
    to_encoded_position,
)
from adjudge.formats.text import belongs_to_picture
from adjudge.templates.call_bytes import decode_bytes, list_hex_lines, name_file_type, read_as_text
from adjudge.templates.call_code import RawPatch, draw_patch, find_language, list_spans, read_patch
from adjudge.templates.call_markdown import is_markdown, render_markdown
from adjudge.templates.call_values import (
    ArgumentRow,
    BytesValue,
    CallValue,
    CallView,
    CodeValue,
    Finding,
    ListValue,
    MarkdownValue,
    NestedValue,
    PatchValue,
    PlacedFinding,
    PlainValue,
    ProseValue,
    RecordsValue,
    Repeated,
)
from adjudge.templates.evidence import Passage, QuotedPlace, clip_places, cut_lines, cut_passages, find_quotations
from adjudge.templates.opened_parts import is_long

LONGEST_SHOWN = 20_000
"""Characters of long texts in a call that are shown at first."""

LONGEST_PARSED = 20_000
"""Characters of a call that lexers and the parser of Markdown look at: they take up to a second for hostile ones."""

_SHORT_TEXT = 500
"""Characters of a text that are shown at first, however long the texts before it are."""

_MOST_ROWS = 100

_MOST_RECORDS = 10

_MOST_COLUMNS = 7
"""Columns of a table; records with more members are shown one below the other."""

_MOST_ROWS_IN_ALL = 5_000
"""Values of a call that are shown in rows and tables; an object or list with more values is shown as its JSON."""

_MOST_ROWS_OF_LONG = 500
"""The same for a call that is too long to be drawn at once, and is not shown whole."""

_MOST_NESTED = 6

_MOST_IN_LINE = 100
"""Characters of a list that is shown as it is written."""

_LONGEST_PLAIN_LINE = 50

_LONGEST_PATH = 10

_LONGEST_DECODED = 4_000
"""Characters that are shown of a text that was decoded from base64."""

_MOST_LINES = 2_000
"""Lines of code that are counted."""

_LOOKS_LIKE_OTHER_VALUE = re.compile(
    r"\s*|[+-]?\.?\d[\d.]*(?:e[+-]?\d+)?|true|false|null|none|nan|undefined", re.IGNORECASE
)

_DIRECTION_CHARACTERS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_PATH_NAMES = ("path", "file_path", "filepath", "filename", "file", "target_file", "key", "name")


def make_call_view(
    content: str,
    quotations: Sequence[str] = (),
    *,
    whole: bool = True,
    only_calls: bool = True,
    findings: Sequence[PlacedFinding] = (),
) -> CallView | None:
    """Make the view of a content that is a call: a JSON object with ``tool`` and ``arguments``.

    ``None`` for every other content, for one of more than 2,000,000 characters, and for one that nests more than 200
    levels deep; those are shown as they are. With ``only_calls=False`` the members of any JSON object are rows.
    ``whole=False`` leaves out what is long: it is in ``unshown_parts``. ``findings`` are shown beside the argument that
    they are about; one about no argument that is shown is left out, so show all of them elsewhere too.
    """
    top = read_places(content)
    if top is None or top.kind != "object" or not top.names:
        return None
    call = _find_call(content, top)
    if call is None and only_calls:
        return None
    places, missing = _find_places(content, top, quotations)
    builder = _CallViewBuilder(
        whole=whole,
        tool="" if call is None else decode_text(content, call.tool),
        rows_left=_MOST_ROWS_OF_LONG if is_long(content) and not whole else _MOST_ROWS_IN_ALL,
    )
    if call is not None:
        rows = builder.read_arguments(content, call.arguments, places)
        about = builder.draw_rows(content, top, places, 1, left_out_names=("tool", "arguments"))
    else:
        rows, about = builder.draw_rows(content, top, places, 0), ()
    return CallView(
        tool=builder.tool,
        summary=_summarise(rows),
        rows=tuple(_add_findings(row, findings, "" if call is None else "arguments.") for row in rows),
        about=tuple(_add_findings(row, findings, "") for row in about),
        blanks=describe_blanks(*builder.texts),
        unshown_parts=tuple(builder.unshown),
        numbers={text: number for number, text in enumerate(quotations, 1) if number in builder.marked},
        missing=tuple(missing.values()),
        unshown=tuple(
            quotations[place.number - 1] for place in places if place.begins and place.number not in builder.marked
        ),
    )


@dataclass(frozen=True, slots=True)
class _CallNodes:
    """The nodes of the tool and of the arguments in the JSON of a call."""

    tool: JsonNode
    arguments: JsonNode


def _find_call(content: str, top: JsonNode) -> _CallNodes | None:
    """Find the tool and the arguments of a call; ``None`` for an object that is none.

    If a name occurs twice, two programs may read different tools, so it is no call, and all members are shown.
    """
    names = [decode_text(content, name) for name in top.names]
    parts = dict(zip(names, top.values, strict=True))
    tool, arguments = parts.get("tool"), parts.get("arguments")
    if tool is None or tool.kind != "text" or arguments is None or len(parts) != len(names):
        return None
    return _CallNodes(tool, arguments)


def _find_places(content: str, top: JsonNode, quotations: Sequence[str]) -> tuple[list[QuotedPlace], dict[int, str]]:
    """Find each quotation in the JSON of the content, or else in the decoded text of one of its JSON strings.

    A judge reads a line break as the escape in the JSON, but may quote it as a line break. Returns the places in the
    JSON, and the quotations that were not found, by their numbers.
    """
    places, missing = find_quotations(content, quotations)
    unvisited_nodes = [top] if missing else []
    while unvisited_nodes and missing:
        node = unvisited_nodes.pop()
        unvisited_nodes += [*reversed(node.values), *reversed(node.names)]
        if node.kind != "text" or "\\" not in content[node.start : node.end]:
            continue
        text = decode_text(content, node)
        for number, quotation in list(missing.items()):
            start = text.find(quotation)
            if start >= 0:
                del missing[number]
                start_in_json = to_encoded_position(content, node, start)
                end_in_json = to_encoded_position(content, node, start + len(quotation))
                places.append(QuotedPlace(number=number, start=start_in_json, end=end_in_json))
    return places, missing


_QuotedPlaces = Sequence[QuotedPlace]

_ValueAndProblems = tuple[CallValue, tuple[Finding, ...]]
"""A value as it is shown, and findings about what is wrong with it."""


@dataclass(frozen=True, slots=True)
class _RowName:
    """The name of a row: the path of names that lead to its value, each also as passages with quotations marked."""

    path: tuple[str, ...]
    passages: tuple[tuple[Passage, ...], ...]

    @classmethod
    def make(cls, name: str) -> _RowName:
        """Make a name that this page chooses, and that is no text of the call."""
        return cls((name,), (cut_passages(name),))


@dataclass(slots=True)
class _CallViewBuilder:
    """Makes the view of one call, and keeps count of what was shown, left out and marked so far."""

    whole: bool
    tool: str
    characters_left: int = LONGEST_SHOWN
    """Characters of long texts that can still be shown at first."""
    rows_left: int = _MOST_ROWS_IN_ALL
    """Values that can still be shown in rows and tables."""
    parsed_left: int = LONGEST_PARSED
    """Characters that lexers and parsers can still read."""
    texts: list[str] = field(default_factory=list)
    """All texts that are shown, whose blanks are described below them."""
    unshown: list[str] = field(default_factory=list)
    """The parts that are not shown, in words."""
    marked: set[int] = field(default_factory=set)
    """The numbers of the quotations that are marked."""
    siblings: Mapping[str, str] = field(default_factory=dict)
    """The short texts of the object that is read now, by their names in lower case."""

    # ------------------------------------------------------------ rows

    def read_arguments(self, content: str, node: JsonNode, places: _QuotedPlaces) -> tuple[ArgumentRow, ...]:
        """Make the rows of a call's arguments: one for each member of an object, and one row for any other value."""
        if node.kind == "object" and len(node.values) <= _MOST_ROWS_IN_ALL:
            return self.draw_rows(content, node, places, 0)
        return (self._make_argument_row(_RowName.make("arguments"), content, node, places, 0),)

    def draw_rows(
        self, text: str, node: JsonNode, places: _QuotedPlaces, depth: int, *, left_out_names: Sequence[str] = ()
    ) -> tuple[ArgumentRow, ...]:
        """Make the rows of an object's members, without those in ``left_out_names``, or of a list's values.

        They count against the rows of the whole call (``rows_left``), and rows that are not shown are noted.
        """
        is_object = node.kind == "object"
        names = [decode_text(text, name) if is_object else "" for name in (node.names or node.values)]
        name_counts = Counter(names)
        chosen = [index for index, name in enumerate(names) if name not in left_out_names]
        shown = chosen if self.whole else chosen[:_MOST_ROWS]
        self.rows_left -= len(shown)
        outer_siblings = self.siblings
        if is_object:
            self.siblings = _read_siblings(text, node)
        rows: list[ArgumentRow] = []
        for index in shown:
            name = self._read_name(text, node.names[index], places) if is_object else _RowName.make(f"[{index}]")
            row = self._make_argument_row(name, text, node.values[index], places, depth)
            is_repeated = is_object and name_counts[names[index]] > 1
            rows.append(_warn_of_repeat(row) if is_repeated else row)
        self._note_unshown(len(chosen) - len(rows), "argument", "arguments", "")
        self.siblings = outer_siblings
        # Long values go last, unless a name occurs twice: programs take the first or the last, so the order matters.
        has_repeats = len(name_counts) < len(names)
        return tuple(rows if not is_object or has_repeats else sorted(rows, key=_is_long_value))

    def _read_name(self, text: str, node: JsonNode, places: _QuotedPlaces) -> _RowName:
        """Read the name of a member, shortened if it is long."""
        decoded = decode_text(text, node)
        name = decoded if self.whole else decoded[:_SHORT_TEXT]
        self._note_unshown(len(decoded) - len(name), "character", "characters", "a name")
        inside = clip_places(_decode_places(text, node, places), 0, len(name))
        return _RowName((name,), (self._cut_passages(name, self._continue_marks(inside)),))

    def _make_argument_row(
        self, name: _RowName, text: str, node: JsonNode, places: _QuotedPlaces, depth: int
    ) -> ArgumentRow:
        """Make the row of an argument.

        Objects with a single member do not get rows of their own: their names become one path. JSON inside of a text is
        read too, and the row says how long the text was.
        """
        while node.kind == "object" and len(node.values) == 1 and len(name.path) < _LONGEST_PATH:
            inner = self._read_name(text, node.names[0], places)
            name, node = _RowName(name.path + inner.path, name.passages + inner.passages), node.values[0]
        if node.kind == "text" and depth < _MOST_NESTED:
            decoded = decode_text(text, node)
            inner_node = read_places(decoded) if decoded[:1] in ("{", "[") else None
            if inner_node is not None and inner_node.values:
                row = self._make_argument_row(name, decoded, inner_node, _decode_places(text, node, places), depth + 1)
                return replace(row, was_text=len(decoded.encode(errors="surrogatepass")))
        value, problems = self._read_value(name.path[-1], text, node, places, depth)
        return ArgumentRow(path=name.path, names=name.passages, value=value, findings=problems)

    # ------------------------------------------------------------ values

    def _read_value(self, name: str, text: str, node: JsonNode, places: _QuotedPlaces, depth: int) -> _ValueAndProblems:
        """Read any value: a text, a value that is written in one line, or else an object or a list."""
        if node.kind == "text":
            decoded = decode_text(text, node)
            value, problems = self._read_text(name, decoded, self._continue_marks(_decode_places(text, node, places)))
            return value, (*problems, *_find_unseen_characters(decoded))
        written = text[node.start : node.end]
        line = written if node.kind == "literal" or not node.values else _write_in_line(node, written)
        if line is None:
            return self._read_container(name, text, node, places, depth)
        inside = self._continue_marks(clip_places(places, node.start, node.end))
        # Where the line is written anew, places in it are not known: a quotation then marks all of it.
        line_places = inside if line == written else [replace(place, start=0, end=len(line)) for place in inside]
        return PlainValue(passages=self._cut_passages(line, line_places), remark=_make_remark(node, written)), ()

    def _read_container(
        self, name: str, text: str, node: JsonNode, places: _QuotedPlaces, depth: int
    ) -> _ValueAndProblems:
        """Read an object or a list: as a table, a list or rows; as JSON if it nests too deep or has too many values."""
        columns = _find_columns(text, node) if node.kind == "array" else ()
        if columns and self._has_rows_left(len(node.values) * len(columns), _MOST_RECORDS * len(columns)):
            return self._make_records(name, text, node, places, columns)
        is_flat_list = node.kind == "array" and all(value.kind in ("text", "literal") for value in node.values)
        if is_flat_list and self._has_rows_left(len(node.values), _MOST_ROWS):
            return self._make_list(name, text, node, places, depth)
        has_rows_left = self._has_rows_left(len(node.values), _MOST_ROWS)
        if depth < _MOST_NESTED and has_rows_left:
            return NestedValue(rows=self.draw_rows(text, node, places, depth + 1), total=len(node.values)), ()
        written = text[node.start : node.end]
        inside = self._continue_marks(clip_places(places, node.start, node.end))
        # JSON of too many values is one text and not lines of code, each of which would be a row of the page too.
        make_value = self._make_code if has_rows_left else self._make_prose
        return make_value(name, written, inside), tuple(_find_unseen_characters(written))

    def _has_rows_left(self, number: int, at_first: int) -> bool:
        """Return whether ``number`` values can be shown as rows, of which only ``at_first`` are shown at first.

        The rows of a call are bounded, because nobody reads a page of a million.
        """
        needed = number if self.whole else min(number, at_first)
        return needed <= self.rows_left

    def _make_list(self, name: str, text: str, node: JsonNode, places: _QuotedPlaces, depth: int) -> _ValueAndProblems:
        """Make the value of a list without objects and lists in it; of a long list, only the first values at first."""
        shown = node.values if self.whole else node.values[:_MOST_ROWS]
        self._note_unshown(len(node.values) - len(shown), "value", "values", name)
        self.rows_left -= len(shown)
        results = [self._read_value(name, text, value, places, depth) for value in shown]
        distinct_problems = dict.fromkeys(problem for _, problems in results for problem in problems)
        return ListValue(values=tuple(value for value, _ in results), total=len(node.values)), tuple(distinct_problems)

    def _make_records(
        self, name: str, text: str, node: JsonNode, places: _QuotedPlaces, columns: tuple[str, ...]
    ) -> _ValueAndProblems:
        """Make the table of a list of objects; of a long list, only the first objects at first."""
        total = len(node.values)
        # One or two records more than the limit are shown too.
        shown = node.values if self.whole or total <= _MOST_RECORDS + 2 else node.values[:_MOST_RECORDS]
        rows = tuple(self._read_record(text, record, places, columns) for record in shown)
        self.rows_left -= len(rows) * len(columns)
        self._note_unshown(total - len(rows), "record", "records", name)
        repeats = tuple(_list_repeats(text, node, columns))
        value = RecordsValue(columns=columns, rows=rows, repeats=repeats, total=total)
        return value, tuple(_find_unseen_characters(text[node.start : node.end]))

    def _read_record(
        self, text: str, record: JsonNode, places: _QuotedPlaces, columns: Sequence[str]
    ) -> tuple[PlainValue | ProseValue | None, ...]:
        """Read the cells of a row of a table; ``None`` for a column that the record does not have."""
        cells = {decode_text(text, name): value for name, value in zip(record.names, record.values, strict=True)}
        return tuple(self._read_cell(text, cells[name], places) if name in cells else None for name in columns)

    def _read_cell(self, text: str, node: JsonNode, places: _QuotedPlaces) -> PlainValue | ProseValue:
        """Read a cell of a table; quotations are not marked in JSON that is written anew to fit in a line."""
        if node.kind != "text":
            written = text[node.start : node.end]
            flat = flatten_json(written)
            inside = self._continue_marks(clip_places(places, node.start, node.end))
            return PlainValue(
                passages=self._cut_passages(flat, inside if flat == written else ()), remark=_make_remark(node, written)
            )
        decoded, inside = decode_text(text, node), self._continue_marks(_decode_places(text, node, places))
        if "\n" in decoded:
            return ProseValue(passages=self._cut_passages(decoded, inside))
        return self._make_plain(decoded, inside)

    def _read_text(self, name: str, text: str, places: _QuotedPlaces) -> _ValueAndProblems:
        """Read a text as the bytes, patch, code, Markdown or prose that it is, and list what is wrong with it."""
        raw = decode_bytes(name, text)
        if raw is not None:
            return self._make_bytes(name, text, places, raw), ()
        patch = read_patch(text) if "\n" in text else None
        if patch is not None and self._shorten_text(name, text) == text:
            return self._make_patch(text, places, patch)
        # What other arguments say about this text: the file that is written, and the language.
        path = next((self.siblings[word] for word in _PATH_NAMES if word in self.siblings), "")
        stated_language = self.siblings.get("language", self.siblings.get("lang", ""))
        language = "" if patch is not None else find_language(name, text, path, stated_language)
        if language is not None:
            return self._make_code(name, text, places, language), ()
        if is_markdown(name, text, path):
            shown = self._shorten_text(name, text)
            source = self._cut_passages(shown, clip_places(places, 0, len(shown)))
            blocks = render_markdown(text) if shown == text and self._spend_parsing(text) else ()
            rest, lines = len(text) - len(shown), text.count("\n") + 1
            return MarkdownValue(source=source, blocks=blocks, lines=lines, rest=rest), ()
        if "\n" in text or (len(text) > _LONGEST_PLAIN_LINE and " " in text) or len(text) > _SHORT_TEXT:
            return self._make_prose(name, text, places), ()
        return self._make_plain(text, places), ()

    def _make_plain(self, text: str, places: _QuotedPlaces) -> PlainValue:
        """Make the value of a short text in one line."""
        return _make_plain_text(text, self._cut_passages(text, places))

    def _make_prose(self, name: str, text: str, places: _QuotedPlaces) -> ProseValue:
        """Make the value of a text to read, shortened if it is long."""
        shown = self._shorten_text(name, text)
        return ProseValue(
            passages=self._cut_passages(shown, clip_places(places, 0, len(shown))), rest=len(text) - len(shown)
        )

    def _make_patch(self, text: str, places: _QuotedPlaces, patch: RawPatch) -> _ValueAndProblems:
        """Make the value of a patch, and list its faults as findings.

        A file can have the header lines ``---`` and ``+++``; only one of them is counted.
        """
        lines = draw_patch(text, patch, places)
        for line in lines:
            self._note_marked(line.passages)
            self.texts.append("".join(passage.text for passage in line.passages))
        kinds = Counter(line.kind for line in patch.lines)
        files = sum(line.kind == "file" and not text.startswith("--- ", line.start) for line in patch.lines)
        value = PatchValue(lines=lines, files=files, added=kinds["plus"], removed=kinds["minus"])
        problems = (Finding(state="warning", word="the patch is damaged", text=problem) for problem in patch.problems)
        return value, tuple(problems)

    def _make_code(self, name: str, text: str, places: _QuotedPlaces, language: str = "") -> CodeValue | ProseValue:
        """Make the value of code in lines; a text of too many lines becomes prose."""
        if text.count("\n") > _MOST_LINES:
            return self._make_prose(name, text, places)
        shown = self._shorten_text(name, text)
        spans = list_spans(shown, language) if language and self._spend_parsing(shown) else ()
        passages = cut_passages(shown, clip_places(places, 0, len(shown)), spans)
        self._note_marked(passages)
        self.texts += shown.split("\n")
        return CodeValue(language=language, lines=cut_lines(passages), rest=len(text) - len(shown))

    def _make_bytes(self, name: str, text: str, places: _QuotedPlaces, raw: bytes) -> BytesValue:
        """Make the value of base64: size and digest of its bytes, and how they begin, as text or in hexadecimal."""
        file_type = name_file_type(raw)
        decoded = None if file_type else read_as_text(raw)
        if not self.whole:
            self.unshown.append(f"{len(raw):,} bytes of {name}")
        return BytesValue(
            size=len(raw),
            length=len(text),
            digest=sha256(raw).hexdigest(),
            head=list_hex_lines(raw) if decoded is None else (),
            like=file_type,
            decoded=None if decoded is None else _draw_decoded(decoded),
            passages=self._cut_passages(text, places) if self.whole else (),
        )

    # ------------------------------------------------------------ what is shown, and what is not

    def _shorten_text(self, name: str, text: str) -> str:
        """Return the beginning of a text that is shown at first, and note how much is not shown."""
        if self.whole or len(text) <= _SHORT_TEXT:
            return text
        shown = text[: max(_SHORT_TEXT, self.characters_left)]
        self.characters_left = max(0, self.characters_left - len(shown))
        self._note_unshown(len(text) - len(shown), "character", "characters", name)
        return shown

    def _spend_parsing(self, text: str) -> bool:
        """Count a text against ``parsed_left``, and return whether a lexer or a parser may read it."""
        self.parsed_left -= len(text)
        return self.parsed_left >= 0

    def _note_unshown(self, number: int, singular: str, plural: str, name: str) -> None:
        """Note that ``number`` things of a value are not shown, if it is above 0; ``name`` is that of the value."""
        if number > 0:
            self.unshown.append(f"{number:,} {singular if number == 1 else plural}{f' of {name}' if name else ''}")

    def _continue_marks(self, places: _QuotedPlaces) -> list[QuotedPlace]:
        """Let a quotation that runs through several values begin only in the first of them, and end in each of them."""
        return [replace(place, begins=place.number not in self.marked, ends=True) for place in places]

    def _cut_passages(self, text: str, places: _QuotedPlaces) -> tuple[Passage, ...]:
        """Cut a text that is shown into passages at its quotations, and note the text and the quotations."""
        self.texts.append(text)
        passages = cut_passages(text, places)
        self._note_marked(passages)
        return passages

    def _note_marked(self, passages: Sequence[Passage]) -> None:
        """Note the quotations that are marked in some passages."""
        for passage in passages:
            self.marked.update(passage.begins)


_MOST_SHORT_LINES = 12
"""Lines above which a value comes after the shorter ones, so that an important short one is on the first screen."""


def _is_long_value(row: ArgumentRow) -> bool:
    """Return whether the value of a row takes so many lines that it comes after the shorter ones."""
    return _estimate_lines(row.value) > _MOST_SHORT_LINES


def _estimate_lines(value: CallValue) -> int:
    """Estimate the lines that a value takes on a page.

    Lines that are not shown yet count too, so that the order of the rows stays the same when more is shown.
    """
    match value:
        case PlainValue():
            lines = 1
        case ProseValue():
            text = "".join(passage.text for passage in value.passages)
            lines = sum(1 + len(line) // 80 for line in text.split("\n")) + value.rest // 80
        case CodeValue():
            lines = len(value.lines) + value.rest // 80
        case PatchValue():
            lines = len(value.lines)
        case MarkdownValue():
            lines = value.lines
        case RecordsValue():
            lines = 1 + value.total
        case BytesValue():
            lines = _MOST_SHORT_LINES + 1
        case ListValue():
            lines = sum(map(_estimate_lines, value.values))
        case NestedValue():
            lines = sum(_estimate_lines(row.value) for row in value.rows)
    return lines


def _warn_of_repeat(row: ArgumentRow) -> ArgumentRow:
    """Add to a row the finding that its name occurs twice in the object."""
    problem = Finding(state="failed", word="this name stands twice", text="programs take the first or the last")
    return replace(row, findings=(*row.findings, problem))


def _read_siblings(text: str, node: JsonNode) -> Mapping[str, str]:
    """Read the short texts of an object, by their names in lower case: they may name the language or file of a text."""
    pairs = zip(node.names, node.values, strict=True)
    short = [(name, value) for name, value in pairs if value.kind == "text" and value.end - value.start < _SHORT_TEXT]
    return {decode_text(text, name).lower(): decode_text(text, value) for name, value in short}


def _draw_decoded(decoded: str) -> CodeValue:
    """Make the value of a text that was decoded from base64: its beginning as lines of code."""
    shown = decoded[:_LONGEST_DECODED]
    spans = list_spans(shown, find_language("", decoded, "", "") or "")
    return CodeValue(language="", lines=cut_lines(cut_passages(shown, (), spans)), rest=len(decoded) - len(shown))


def _write_in_line(node: JsonNode, written: str) -> str | None:
    """Write a list of numbers, also with lists of numbers in it, in one line.

    ``None`` for a list that does not fit in a line, or that holds texts or objects, and for an object.
    """
    if node.kind != "array" or len(written) > 20 * _MOST_IN_LINE or _holds_texts(node):
        return None
    flat = re.sub(r"\s+", "", written).replace(",", ", ")
    return flat if len(flat) <= _MOST_IN_LINE else None


def _decode_places(text: str, node: JsonNode, places: Sequence[QuotedPlace]) -> list[QuotedPlace]:
    """Convert places in JSON to places in the decoded text of one of its strings; places outside of it are left out."""
    # ``clip_places`` counts from the beginning of the part, and ``to_decoded_position`` needs places in the whole JSON.
    inside = clip_places(places, node.start + 1, node.end - 1)
    return [
        replace(
            place,
            start=to_decoded_position(text, node, node.start + 1 + place.start),
            end=to_decoded_position(text, node, node.start + 1 + place.end),
        )
        for place in inside
    ]


def _holds_texts(node: JsonNode) -> bool:
    """Return whether a list or an object holds a text or an object, at any depth."""
    return any(value.kind in ("text", "object") or _holds_texts(value) for value in node.values)


def _find_columns(text: str, node: JsonNode) -> tuple[str, ...]:
    """Find the columns of a list that can be shown as a table; none if it cannot.

    A table is of two or more objects with few and short members, none of which occurs twice in one object.
    """
    if len(node.values) < 2 or not all(record.kind == "object" and record.names for record in node.values):
        return ()
    columns: dict[str, None] = {}
    for record in node.values:
        names = [decode_text(text, name) for name in record.names]
        if len(set(names)) < len(names):
            return ()
        columns |= dict.fromkeys(names)
        if len(columns) > _MOST_COLUMNS:
            return ()
    cells = (cell for record in node.values for cell in record.values)
    if any(_is_too_long_for_table(cell) for cell in cells):
        return ()
    return tuple(columns)


def _is_too_long_for_table(cell: JsonNode) -> bool:
    """Return whether a value is too long for a cell of a table; a list or an object has to fit in a line."""
    length = cell.end - cell.start
    return length > 2 * _SHORT_TEXT or (bool(cell.values) and length > _MOST_IN_LINE)


def _make_plain_text(text: str, passages: tuple[Passage, ...]) -> PlainValue:
    """Make the value of a short text; in quotes where it could be taken for a number or for another value."""
    is_quoted = text != "" and (text != text.strip() or _LOOKS_LIKE_OTHER_VALUE.fullmatch(text) is not None)
    remark = "" if text.strip() else f"{len(text):,} blanks" if text else "empty text"
    return PlainValue(passages=passages, is_quoted=is_quoted, remark=remark)


def _list_repeats(text: str, node: JsonNode, columns: Sequence[str]) -> Iterator[Repeated]:
    """Yield the columns of a long table that hold at most four distinct values, each value with its number of rows."""
    if len(node.values) <= _MOST_RECORDS:  # a reader sees this in a short table
        return
    counts_by_column: dict[str, Counter[str]] = {column: Counter() for column in columns}
    node_by_json: dict[str, JsonNode] = {}
    for record in node.values:
        for name, value in zip(record.names, record.values, strict=True):
            written = text[value.start : value.end]
            counts_by_column[decode_text(text, name)][written] += 1
            node_by_json.setdefault(written, value)
    for column, counts in counts_by_column.items():
        if len(counts) <= 4:
            values = tuple(
                (_draw_repeated(text, node_by_json[written]), times) for written, times in counts.most_common()
            )
            yield Repeated(column=column, values=values)


def _draw_repeated(text: str, node: JsonNode) -> PlainValue:
    """Make the plain value of a cell that occurs in several rows, without quotations."""
    written = text[node.start : node.end]
    shown = decode_text(text, node) if node.kind == "text" else flatten_json(written)
    passages = cut_passages(shown, ())
    if node.kind == "text":
        return _make_plain_text(shown, passages)
    return PlainValue(passages=passages, remark=_make_remark(node, written))


def _make_remark(node: JsonNode, written: str) -> str:
    """Write a remark on a value: that it is empty, or a number too large for some programs; empty for any other."""
    if node.kind in ("object", "array"):
        return "" if node.values else "no members" if node.kind == "object" else "empty list"
    if re.fullmatch(r"-?\d{16,}", written) and (len(written) > 20 or abs(int(written)) > 2**53):
        return "larger than 2^53: some programs round it"
    return ""


def _find_unseen_characters(text: str) -> Iterator[Finding]:
    """Yield findings about the invisible characters of a text: those that turn its direction first, then all others.

    Invisible characters that are a part of an emoji are left out.
    """
    if text.isascii():
        return
    counts = Counter(
        char
        for index, char in enumerate(text)
        if not char.isascii() and is_unseen(char) and not belongs_to_picture(text, index)
    )
    turned = "the direction of the text is turned, so letters are seen in another order than they are sent in"
    for state, word, chars in (
        ("failed", turned, [char for char in counts if char in _DIRECTION_CHARACTERS]),
        ("warning", "characters that nobody sees", [char for char in counts if char not in _DIRECTION_CHARACTERS]),
    ):
        if chars:
            names = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip() for char in chars[:4])
            more = f" and {len(chars) - 4} others" if len(chars) > 4 else ""
            yield Finding(state=state, word=word, text=f"{sum(counts[char] for char in chars):,} times: {names}{more}")


def _add_findings(row: ArgumentRow, findings: Sequence[PlacedFinding], prefix: str) -> ArgumentRow:
    """Add to a row the findings about its value, and about values inside of it, of which their text says where.

    ``prefix`` is what findings write before the name of a row, such as ``arguments.``.
    """
    row_place = f"{prefix}{row.path[0]}"
    added: list[Finding] = []
    for placed in findings:
        inner_path = placed.place.removeprefix(row_place)
        if placed.place.startswith(row_place) and inner_path[:1] in ("", ".", "["):
            inner_name = inner_path.removeprefix(".")
            text = f"{placed.finding.text}{f' in {inner_name}' if inner_name and placed.finding.text else ''}"
            added.append(replace(placed.finding, text=text))
    return replace(row, findings=(*added, *row.findings)) if added else row


def _summarise(rows: Sequence[ArgumentRow]) -> str:
    """Say in a few words what a call consists of, because its title was written by the agent and may mislead."""
    descriptions = [_describe_value(row.value) for row in rows]
    parts = [description for description in descriptions if description]
    if len(rows) != 1 or not parts:
        parts.insert(0, f"{len(rows):,} {'argument' if len(rows) == 1 else 'arguments'}" if rows else "no arguments")
    return "; ".join(parts[:4])


def _describe_value(value: CallValue) -> str:
    """Describe a value in a few words; empty for a kind that a summary leaves out, such as plain values and lists."""
    if isinstance(value, PatchValue):
        changes = f"+{value.added:,} \N{MINUS SIGN}{value.removed:,} lines"
        return f"{value.files:,} {'file' if value.files == 1 else 'files'}, {changes}"
    if isinstance(value, CodeValue):
        lines = len(value.lines)
        return f"{value.language or 'code'}, {lines:,} {'line' if lines == 1 else 'lines'}"
    if isinstance(value, MarkdownValue):
        return f"Markdown, {value.lines:,} {'line' if value.lines == 1 else 'lines'}"
    if isinstance(value, RecordsValue):
        return f"{value.total:,} records of {len(value.columns)} fields"
    if isinstance(value, BytesValue):
        return f"{value.size:,} bytes in base64"
    return ""
