"""A tool's call made into what is shown of it: one row for each argument, each value as what it is.

Everything in a call was written by somebody who may want it approved. So nothing is left out silently: what is not
shown at first is counted and named, and a page on which anything is not shown lets nobody approve. What is shown is
what the bytes say: numbers keep their digits, a name that occurs twice is shown twice, and JSON inside of a text says
that it was text.
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
from adjudge.formats.json_places import JsonNode, decode_text, find_decoded, find_encoded, flatten_json, read_places
from adjudge.formats.text import belongs_to_picture
from adjudge.templates.call_bytes import decode_bytes, list_figures, name_beginning, read_as_text
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
from adjudge.templates.opened import is_long

LONGEST_SHOWN = 20_000
"""Characters of long texts in a call that are shown at first."""

LONGEST_PARSED = 20_000
"""Characters of a call that lexers and the parser of Markdown look at: they take up to a second for hostile ones."""

_SHORT = 500
"""Characters of a text that are shown at first, however long the texts before it are."""

_MOST_ROWS = 100

_MOST_RECORDS = 10

_MOST_COLUMNS = 7
"""Columns of a table; records with more members are shown one below the other."""

_MOST_ROWS_IN_ALL = 5_000
"""Values of a call that are shown in rows and tables; what has more is shown as its JSON."""

_MOST_ROWS_OF_LONG = 500
"""The same of a call that is too long to be drawn at once, and not shown whole."""

_MOST_NESTED = 6

_MOST_IN_LINE = 100
"""Characters of a list that is shown as it is written."""

_LONG_LINE = 50

_LONGEST_PATH = 10

_LONGEST_DECODED = 4_000
"""Characters that are shown of a text in base64, whose base64 is shown or is not."""

_MOST_LINES = 2_000
"""Lines of code that are counted."""

_LOOKS_OTHER = re.compile(r"\s*|[+-]?\.?\d[\d.]*(?:e[+-]?\d+)?|true|false|null|none|nan|undefined", re.IGNORECASE)

_TURNS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")

_PATHS = ("path", "file_path", "filepath", "filename", "file", "target_file", "key", "name")


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
    builder = _Builder(
        whole=whole,
        tool="" if call is None else decode_text(content, call.tool),
        rows_left=_MOST_ROWS_OF_LONG if is_long(content) and not whole else _MOST_ROWS_IN_ALL,
    )
    if call is not None:
        rows = builder.read_arguments(content, call.arguments, places)
        about = builder.draw_rows(content, top, places, 1, but=("tool", "arguments"))
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
    """The tool and the arguments of a call, where they stand in its JSON."""

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
    """Find each quotation in the JSON that the judge saw, else in what one of its texts says.

    A judge reads a line break as its escape, and quotes it as a line break as often as not.
    """
    places, missing = find_quotations(content, quotations)
    waiting = [top] if missing else []
    while waiting and missing:
        node = waiting.pop()
        waiting += [*reversed(node.values), *reversed(node.names)]
        if node.kind != "text" or "\\" not in content[node.start : node.end]:
            continue
        text = decode_text(content, node)
        for number, quotation in list(missing.items()):
            start = text.find(quotation)
            if start >= 0:
                del missing[number]
                ends = (find_encoded(content, node, place) for place in (start, start + len(quotation)))
                places.append(QuotedPlace(number=number, start=next(ends), end=next(ends)))
    return places, missing


_Places = Sequence[QuotedPlace]

_Read = tuple[CallValue, tuple[Finding, ...]]
"""A value, and what is wrong with it."""


@dataclass(frozen=True, slots=True)
class _Name:
    """The name of a row, or the names of its path."""

    path: tuple[str, ...]
    passages: tuple[tuple[Passage, ...], ...]

    @classmethod
    def of(cls, name: str) -> _Name:
        """Make a name that is ours and not of the call."""
        return cls((name,), (cut_passages(name),))


@dataclass(slots=True)
class _Builder:
    """The state of one view while it is made: what was shown and marked so far."""

    whole: bool
    tool: str
    left: int = LONGEST_SHOWN
    """Characters of long texts that can still be shown at first."""
    rows_left: int = _MOST_ROWS_IN_ALL
    parsed_left: int = LONGEST_PARSED
    texts: list[str] = field(default_factory=list)
    unshown: list[str] = field(default_factory=list)
    marked: set[int] = field(default_factory=set)
    siblings: Mapping[str, str] = field(default_factory=dict)
    """The short texts of the object that is read now, by their names."""

    # ------------------------------------------------------------ rows

    def read_arguments(self, content: str, node: JsonNode, places: _Places) -> tuple[ArgumentRow, ...]:
        """Make the rows of a call's arguments; of anything that is no object, one row."""
        if node.kind == "object" and len(node.values) <= _MOST_ROWS_IN_ALL:
            return self.draw_rows(content, node, places, 0)
        return (self._make_argument_row(_Name.of("arguments"), content, node, places, 0),)

    def draw_rows(
        self, text: str, node: JsonNode, places: _Places, depth: int, *, but: Sequence[str] = ()
    ) -> tuple[ArgumentRow, ...]:
        """Draw the rows of an object's members but some, or of a list's values.

        They are taken from the rows that are left for the whole call (``rows_left``), and what is left out is noted.
        """
        is_object = node.kind == "object"
        names = [decode_text(text, name) if is_object else "" for name in (node.names or node.values)]
        times = Counter(names)
        chosen = [place for place, name in enumerate(names) if name not in but]
        shown = chosen if self.whole else chosen[:_MOST_ROWS]
        self.rows_left -= len(shown)
        before, self.siblings = self.siblings, _read_siblings(text, node) if is_object else self.siblings
        rows: list[ArgumentRow] = []
        for place in shown:
            name = self._read_name(text, node.names[place], places) if is_object else _Name.of(f"[{place}]")
            row = self._make_argument_row(name, text, node.values[place], places, depth)
            rows.append(_warn_of_repeat(row) if is_object and times[names[place]] > 1 else row)
        self._leave_out(len(chosen) - len(rows), "argument", "arguments", "")
        self.siblings = before
        # If a name occurs twice, the order stays: programs take the first or the last.
        return tuple(rows if not is_object or len(times) < len(names) else sorted(rows, key=_is_tall))

    def _read_name(self, text: str, node: JsonNode, places: _Places) -> _Name:
        decoded = decode_text(text, node)
        name = decoded if self.whole else decoded[:_SHORT]
        self._leave_out(len(decoded) - len(name), "character", "characters", "a name")
        inside = clip_places(_decode_places(text, node, places), 0, len(name))
        return _Name((name,), (self._cut(name, self._claim(inside)),))

    def _make_argument_row(self, name: _Name, text: str, node: JsonNode, places: _Places, depth: int) -> ArgumentRow:
        """Make the row of an argument; objects that hold one member alone become names of one path."""
        while node.kind == "object" and len(node.values) == 1 and len(name.path) < _LONGEST_PATH:
            inner = self._read_name(text, node.names[0], places)
            name, node = _Name(name.path + inner.path, name.passages + inner.passages), node.values[0]
        if node.kind == "text" and depth < _MOST_NESTED:
            decoded = decode_text(text, node)
            packed = read_places(decoded) if decoded[:1] in ("{", "[") else None
            if packed is not None and packed.values:
                row = self._make_argument_row(name, decoded, packed, _decode_places(text, node, places), depth + 1)
                return replace(row, was_text=len(decoded.encode(errors="surrogatepass")))
        value, problems = self._read_value(name.path[-1], text, node, places, depth)
        return ArgumentRow(path=name.path, names=name.passages, value=value, findings=problems)

    # ------------------------------------------------------------ values

    def _read_value(self, name: str, text: str, node: JsonNode, places: _Places, depth: int) -> _Read:
        """Read any value; one that fits in a line becomes plain, and what holds others goes to ``_read_holder``."""
        if node.kind == "text":
            decoded = decode_text(text, node)
            value, problems = self._read_text(name, decoded, self._claim(_decode_places(text, node, places)))
            return value, (*problems, *_name_unseen(decoded))
        written = text[node.start : node.end]
        line = written if node.kind == "literal" or not node.values else _write_in_line(node, written)
        if line is None:
            return self._read_holder(name, text, node, places, depth)
        inside = self._claim(clip_places(places, node.start, node.end))
        whole_line = inside if line == written else [replace(place, start=0, end=len(line)) for place in inside]
        return PlainValue(passages=self._cut(line, whole_line), remark=_remark(node, written)), ()

    def _read_holder(self, name: str, text: str, node: JsonNode, places: _Places, depth: int) -> _Read:
        """Read an object or a list: a table, a list, rows, or JSON where it holds or nests too much."""
        columns = _find_columns(text, node) if node.kind == "array" else ()
        if columns and self._affords(len(node.values) * len(columns), _MOST_RECORDS * len(columns)):
            return self._make_records(name, text, node, places, columns)
        is_list = node.kind == "array" and all(value.kind in ("text", "literal") for value in node.values)
        if is_list and self._affords(len(node.values), _MOST_ROWS):
            return self._make_list(name, text, node, places, depth)
        is_affordable = self._affords(len(node.values), _MOST_ROWS)
        if depth < _MOST_NESTED and is_affordable:
            return NestedValue(rows=self.draw_rows(text, node, places, depth + 1), total=len(node.values)), ()
        written = text[node.start : node.end]
        inside = self._claim(clip_places(places, node.start, node.end))
        # As one text where there are too many values: each line of code is a value too.
        make = self._make_code if is_affordable else self._make_prose
        return make(name, written, inside), tuple(_name_unseen(written))

    def _affords(self, number: int, at_first: int) -> bool:
        """Return whether so many more values can be shown as rows: a page of a million is no easier to read."""
        return min(number, number if self.whole else at_first) <= self.rows_left

    def _make_list(self, name: str, text: str, node: JsonNode, places: _Places, depth: int) -> _Read:
        shown = node.values if self.whole else node.values[:_MOST_ROWS]
        self._leave_out(len(node.values) - len(shown), "value", "values", name)
        self.rows_left -= len(shown)
        read = [self._read_value(name, text, value, places, depth) for value in shown]
        problems = dict.fromkeys(problem for _, problems in read for problem in problems)
        return ListValue(values=tuple(value for value, _ in read), total=len(node.values)), tuple(problems)

    def _make_records(self, name: str, text: str, node: JsonNode, places: _Places, columns: tuple[str, ...]) -> _Read:
        """Make the table of a list of objects; of many, only the first are shown, unless the call is shown whole."""
        total = len(node.values)
        # One or two more are no reason to leave any out.
        shown = node.values if self.whole or total <= _MOST_RECORDS + 2 else node.values[:_MOST_RECORDS]
        rows = tuple(self._read_record(text, record, places, columns) for record in shown)
        self.rows_left -= len(rows) * len(columns)
        self._leave_out(total - len(rows), "record", "records", name)
        repeats = tuple(_list_repeats(text, node, columns))
        value = RecordsValue(columns=columns, rows=rows, repeats=repeats, total=total)
        return value, tuple(_name_unseen(text[node.start : node.end]))

    def _read_record(
        self, text: str, record: JsonNode, places: _Places, columns: Sequence[str]
    ) -> tuple[PlainValue | ProseValue | None, ...]:
        cells = {decode_text(text, name): value for name, value in zip(record.names, record.values, strict=True)}
        return tuple(self._read_cell(text, cells[name], places) if name in cells else None for name in columns)

    def _read_cell(self, text: str, node: JsonNode, places: _Places) -> PlainValue | ProseValue:
        """Read a cell of a table; quotations are not marked in JSON that is written anew to fit in a line."""
        if node.kind != "text":
            written = text[node.start : node.end]
            flat = flatten_json(written)
            inside = self._claim(clip_places(places, node.start, node.end))
            return PlainValue(
                passages=self._cut(flat, inside if flat == written else ()), remark=_remark(node, written)
            )
        decoded, inside = decode_text(text, node), self._claim(_decode_places(text, node, places))
        if "\n" in decoded:
            return ProseValue(passages=self._cut(decoded, inside))
        return self._make_plain(decoded, inside)

    def _read_text(self, name: str, text: str, places: _Places) -> _Read:
        """Read a text as the bytes, patch, code, Markdown or prose that it is, and list what is wrong with it."""
        raw = decode_bytes(name, text)
        if raw is not None:
            return self._make_bytes(name, text, places, raw), ()
        patch = read_patch(text) if "\n" in text else None
        if patch is not None and self._cut_text(name, text) == text:
            return self._make_patch(text, places, patch)
        path = next((self.siblings[word] for word in _PATHS if word in self.siblings), "")
        stated_language = self.siblings.get("language", self.siblings.get("lang", ""))
        language = "" if patch is not None else find_language(name, text, path, stated_language)
        if language is not None:
            return self._make_code(name, text, places, language), ()
        if is_markdown(name, text, path):
            shown = self._cut_text(name, text)
            source = self._cut(shown, clip_places(places, 0, len(shown)))
            blocks = render_markdown(text) if shown == text and self._claim_parsing(text) else ()
            rest, lines = len(text) - len(shown), text.count("\n") + 1
            return MarkdownValue(source=source, blocks=blocks, lines=lines, rest=rest), ()
        if "\n" in text or (len(text) > _LONG_LINE and " " in text) or len(text) > _SHORT:
            return self._make_prose(name, text, places), ()
        return self._make_plain(text, places), ()

    def _make_plain(self, text: str, places: _Places) -> PlainValue:
        return _make_plain_text(text, self._cut(text, places))

    def _make_prose(self, name: str, text: str, places: _Places) -> ProseValue:
        shown = self._cut_text(name, text)
        return ProseValue(passages=self._cut(shown, clip_places(places, 0, len(shown))), rest=len(text) - len(shown))

    def _make_patch(self, text: str, places: _Places, patch: RawPatch) -> _Read:
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
        problems = (Finding(state="warning", word="the patch is damaged", text=text) for text in patch.problems)
        return value, tuple(problems)

    def _make_code(self, name: str, text: str, places: _Places, language: str = "") -> CodeValue | ProseValue:
        """Make the value of code in lines; a text of too many lines becomes prose."""
        if text.count("\n") > _MOST_LINES:
            return self._make_prose(name, text, places)
        shown = self._cut_text(name, text)
        spans = list_spans(shown, language) if language and self._claim_parsing(shown) else ()
        passages = cut_passages(shown, clip_places(places, 0, len(shown)), spans)
        self._note_marked(passages)
        self.texts += shown.split("\n")
        return CodeValue(language=language, lines=cut_lines(passages), rest=len(text) - len(shown))

    def _make_bytes(self, name: str, text: str, places: _Places, raw: bytes) -> BytesValue:
        """Make the value of base64: of its bytes, the size, the digest and the beginning, as text or as figures."""
        like = name_beginning(raw)
        decoded = None if like else read_as_text(raw)
        if not self.whole:
            self.unshown.append(f"{len(raw):,} bytes of {name}")
        return BytesValue(
            size=len(raw),
            length=len(text),
            digest=sha256(raw).hexdigest(),
            head=list_figures(raw) if decoded is None else (),
            like=like,
            decoded=None if decoded is None else _draw_decoded(decoded),
            passages=self._cut(text, places) if self.whole else (),
        )

    # ------------------------------------------------------------ what is shown, and what is not

    def _cut_text(self, name: str, text: str) -> str:
        """Return as much of a text as is shown, and note what is not."""
        if self.whole or len(text) <= _SHORT:
            return text
        shown = text[: max(_SHORT, self.left)]
        self.left = max(0, self.left - len(shown))
        self._leave_out(len(text) - len(shown), "character", "characters", name)
        return shown

    def _claim_parsing(self, text: str) -> bool:
        """Count a text for a lexer or a parser (``parsed_left``), and return whether they may look at it."""
        self.parsed_left -= len(text)
        return self.parsed_left >= 0

    def _leave_out(self, number: int, one: str, many: str, name: str) -> None:
        if number > 0:
            self.unshown.append(f"{number:,} {one if number == 1 else many}{f' of {name}' if name else ''}")

    def _claim(self, places: _Places) -> list[QuotedPlace]:
        """Let a quotation that runs through several values begin in the first one, and end in each."""
        return [replace(place, begins=place.number not in self.marked, ends=True) for place in places]

    def _cut(self, text: str, places: _Places) -> tuple[Passage, ...]:
        self.texts.append(text)
        passages = cut_passages(text, places)
        self._note_marked(passages)
        return passages

    def _note_marked(self, passages: Sequence[Passage]) -> None:
        """Note the quotations that are marked in some passages."""
        for passage in passages:
            self.marked.update(passage.begins)


_TALL = 12
"""Lines above which a value comes after the shorter ones, so that ``database prod`` is on the first screen."""


def _is_tall(row: ArgumentRow) -> bool:
    return _estimate_lines(row.value) > _TALL


def _estimate_lines(value: CallValue) -> int:
    """Estimate the lines that a value takes on a page, with what is not shown yet: an order that changes is no help."""
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
            lines = _TALL + 1
        case ListValue():
            lines = sum(map(_estimate_lines, value.values))
        case NestedValue():
            lines = sum(_estimate_lines(row.value) for row in value.rows)
    return lines


def _warn_of_repeat(row: ArgumentRow) -> ArgumentRow:
    problem = Finding(state="failed", word="this name stands twice", text="programs take the first or the last")
    return replace(row, findings=(*row.findings, problem))


def _read_siblings(text: str, node: JsonNode) -> Mapping[str, str]:
    pairs = zip(node.names, node.values, strict=True)
    short = [(name, value) for name, value in pairs if value.kind == "text" and value.end - value.start < _SHORT]
    return {decode_text(text, name).lower(): decode_text(text, value) for name, value in short}


def _draw_decoded(decoded: str) -> CodeValue:
    shown = decoded[:_LONGEST_DECODED]
    spans = list_spans(shown, find_language("", decoded, "", "") or "")
    return CodeValue(language="", lines=cut_lines(cut_passages(shown, (), spans)), rest=len(decoded) - len(shown))


def _write_in_line(node: JsonNode, written: str) -> str | None:
    """Write a list of numbers, and of lists of them, in one line; ``None`` for a longer one and any other value."""
    if node.kind != "array" or len(written) > 20 * _MOST_IN_LINE or _holds_texts(node):
        return None
    flat = re.sub(r"\s+", "", written).replace(",", ", ")
    return flat if len(flat) <= _MOST_IN_LINE else None


def _decode_places(text: str, node: JsonNode, places: Sequence[QuotedPlace]) -> list[QuotedPlace]:
    """Convert places in the JSON source to places in the decoded text of this text node; others are left out."""
    # clip_places counts from the beginning of the part, and find_decoded wants places in the whole source.
    inside = clip_places(places, node.start + 1, node.end - 1)
    return [
        replace(
            place,
            start=find_decoded(text, node, node.start + 1 + place.start),
            end=find_decoded(text, node, node.start + 1 + place.end),
        )
        for place in inside
    ]


def _holds_texts(node: JsonNode) -> bool:
    return any(value.kind in ("text", "object") or _holds_texts(value) for value in node.values)


def _find_columns(text: str, node: JsonNode) -> tuple[str, ...]:
    """Find the columns of a list of objects whose members are short; none where it is no table."""
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
    if any(
        cell.end - cell.start > 2 * _SHORT or (cell.values and cell.end - cell.start > _MOST_IN_LINE) for cell in cells
    ):
        return ()
    return tuple(columns)


def _make_plain_text(text: str, passages: tuple[Passage, ...]) -> PlainValue:
    """Make the value of a short text; in quotes where it could be taken for a number or for another value."""
    is_quoted = text != "" and (text != text.strip() or _LOOKS_OTHER.fullmatch(text) is not None)
    remark = "" if text.strip() else f"{len(text):,} blanks" if text else "empty text"
    return PlainValue(passages=passages, is_quoted=is_quoted, remark=remark)


def _list_repeats(text: str, node: JsonNode, columns: Sequence[str]) -> Iterator[Repeated]:
    """Yield the columns that hold few values, each with how often; in a short table they are seen."""
    if len(node.values) <= _MOST_RECORDS:
        return
    counts: dict[str, Counter[str]] = {column: Counter() for column in columns}
    first: dict[str, JsonNode] = {}
    for record in node.values:
        for name, value in zip(record.names, record.values, strict=True):
            written = text[value.start : value.end]
            counts[decode_text(text, name)][written] += 1
            first.setdefault(written, value)
    for column, count in counts.items():
        if len(count) <= 4:
            values = tuple((_draw_repeated(text, first[written]), times) for written, times in count.most_common())
            yield Repeated(column=column, values=values)


def _draw_repeated(text: str, node: JsonNode) -> PlainValue:
    written = text[node.start : node.end]
    shown = decode_text(text, node) if node.kind == "text" else flatten_json(written)
    passages = cut_passages(shown, ())
    if node.kind == "text":
        return _make_plain_text(shown, passages)
    return PlainValue(passages=passages, remark=_remark(node, written))


def _remark(node: JsonNode, written: str) -> str:
    if node.kind in ("object", "array"):
        return "" if node.values else "no members" if node.kind == "object" else "empty list"
    if re.fullmatch(r"-?\d{16,}", written) and (len(written) > 20 or abs(int(written)) > 2**53):
        return "larger than 2^53: some programs round it"
    return ""


def _name_unseen(text: str) -> Iterator[Finding]:
    """Name the characters that nobody sees, those first that turn the direction of the text."""
    if text.isascii():
        return
    counts = Counter(
        char
        for place, char in enumerate(text)
        if not char.isascii() and is_unseen(char) and not belongs_to_picture(text, place)
    )
    turned = "the direction of the text is turned, so letters are seen in another order than they are sent in"
    for state, word, chars in (
        ("failed", turned, [char for char in counts if char in _TURNS]),
        ("warning", "characters that nobody sees", [char for char in counts if char not in _TURNS]),
    ):
        if chars:
            named = ", ".join(f"U+{ord(char):04X} {unicodedata.name(char, '')}".strip() for char in chars[:4])
            more = f" and {len(chars) - 4} others" if len(chars) > 4 else ""
            yield Finding(state=state, word=word, text=f"{sum(counts[char] for char in chars):,} times: {named}{more}")


def _add_findings(row: ArgumentRow, findings: Sequence[PlacedFinding], within: str) -> ArgumentRow:
    """Add to a row what was found in it, and say where in it."""
    place = f"{within}{row.path[0]}"
    added: list[Finding] = []
    for placed in findings:
        rest = placed.place.removeprefix(place)
        if placed.place.startswith(place) and rest[:1] in ("", ".", "["):
            at = rest.removeprefix(".")
            text = f"{placed.finding.text}{f' in {at}' if at and placed.finding.text else ''}"
            added.append(replace(placed.finding, text=text))
    return replace(row, findings=(*added, *row.findings)) if added else row


def _summarise(rows: Sequence[ArgumentRow]) -> str:
    """Say in a few words what a call consists of: its title was written by the agent."""
    parts = [part for row in rows if (part := _describe(row.value))]
    if len(rows) != 1 or not parts:
        parts.insert(0, f"{len(rows):,} {'argument' if len(rows) == 1 else 'arguments'}" if rows else "no arguments")
    return "; ".join(parts[:4])


def _describe(value: CallValue) -> str:
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
