"""What the replies in a recording or in a reply cache used: tokens, and not who was asked how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import msgspec

from adjudge.errors import UsageError
from adjudge.formats.files import open_regular
from adjudge.formats.text import show
from adjudge.formats.typed import read_typed_json
from adjudge.models.cache import ROW_SCHEMA
from adjudge.models.cache_store import ReplyCache
from adjudge.models.recording import SCHEMA
from adjudge.models.replay import read_lines
from adjudge.models.token_count import CharacterCounter
from adjudge.runs.estimate.recorded_usage import CountedTokens, RecordedUsage, SeenReplies, sum_up

_SQLITE = b"SQLite format 3\x00"


class _Prompt(msgspec.Struct):
    system: str = ""
    user: str = ""


class _Used(msgspec.Struct):
    usage: CountedTokens | None = None


class _Row(msgspec.Struct):
    """A row of a recording or a cache, as far as it is needed here; a cache keeps no prompt."""

    reply: _Used
    schema: str = SCHEMA
    model: str = ""
    case: str | None = None
    order: str | None = None
    attempt: int | None = None
    request: _Prompt | None = None


def read_usage_of_file(path: Path) -> RecordedUsage:
    """What the replies in a file used, by model; raises ``UsageError`` where none of them says so.

    Neither a recording nor a cache says which of several seats of a model was asked, or what was never asked.
    """
    seen: dict[str, SeenReplies] = defaultdict(SeenReplies)
    rows, asked_again = Counter[str](), Counter[str]()
    first: dict[tuple[str, str, str | None], float] = {}
    counter = CharacterCounter()
    for row in _read_rows(path):
        rows[row.model] += 1
        size = None if row.request is None else counter.count(row.request.system) + counter.count(row.request.user)
        if row.attempt not in (None, 1):
            asked_again[row.model] += 1
            size = first.get((row.model, row.case or "", row.order), size)
        elif size is not None and row.case is not None:
            first[row.model, row.case, row.order] = size
        seen[row.model].add(row.reply.usage, size)
    seats = {
        (model, 0): sum_up(found, rows[model] / max(rows[model] - asked_again[model], 1), 0.0)
        for model, found in seen.items()
        if found.used
    }
    if not seats:
        raise UsageError(
            f"{path} has no replies that say how many tokens they used, so nothing can be estimated from it; leave it "
            "out, or name a run, a recording or a cache"
        )
    return RecordedUsage(source=str(path), judgements=0, seats=seats, counts_form=False)


def _read_rows(path: Path) -> Iterator[_Row]:
    if _is_cache(path):
        with ReplyCache(path) as cache:
            for body in cache.rows():
                yield _decode(body, str(path), ROW_SCHEMA)
        return
    for number, line in read_lines(path):
        yield _decode(line, f"{path}, line {number}", SCHEMA)


def _is_cache(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; name another file") from None


def _decode(body: bytes, where: str, schema: str) -> _Row:
    try:
        row = read_typed_json(body, _Row)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise UsageError(f"{where}: not a row of a recording or cache: {error}") from None
    if row.schema != schema:
        raise UsageError(f"{where}: the schema is {show(row.schema)}, and only {schema!r} can be read")
    return row
