"""The usage of the replies in a recording or in a reply cache: tokens, and not who was asked how often."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from adjudge.errors import UsageError
from adjudge.formats.files import open_regular
from adjudge.models.replies.cache_file import ReplyCache
from adjudge.models.replies.recording import read_lines
from adjudge.models.replies.row import CACHED, RECORDING, PromptRow, decode_prompt
from adjudge.models.token_count import CharacterCounter
from adjudge.runs.estimate.recorded_usage import RecordedUsage, SeenReplies, sum_up

_SQLITE = b"SQLite format 3\x00"


def read_usage_of_file(path: Path) -> RecordedUsage:
    """Read the usage of the replies in a file, by model; raises ``UsageError`` where none of them says so.

    Neither a recording nor a cache says which of several seats of a model was asked, or what was never asked.
    """
    replies_by_model: dict[str, SeenReplies] = defaultdict(SeenReplies)
    rows, asked_again = Counter[str](), Counter[str]()
    first_sizes: dict[tuple[str, str, str | None], float] = {}
    counter = CharacterCounter()
    for row in _read_rows(path):
        rows[row.model] += 1
        size = None if row.request is None else counter.count(row.request.system) + counter.count(row.request.user)
        if row.attempt not in (None, 1):
            asked_again[row.model] += 1
            size = first_sizes.get((row.model, row.case or "", row.order), size)
        elif size is not None and row.case is not None:
            first_sizes[row.model, row.case, row.order] = size
        replies_by_model[row.model].add(row.reply.usage, size)
    seats = {
        (model, 0): sum_up(replies, rows[model] / max(rows[model] - asked_again[model], 1), 0.0)
        for model, replies in replies_by_model.items()
        if replies.used
    }
    if not seats:
        raise UsageError(
            f"{path} has no replies that say how many tokens they used, so nothing can be estimated from it; leave it "
            "out, or name a run, a recording or a cache"
        )
    return RecordedUsage(source=str(path), judgements=0, seats=seats, counts_form=False)


def _read_rows(path: Path) -> Iterator[PromptRow]:
    """Yield the replies of a cache, or of a recording; the first bytes of the file tell which of them it is."""
    if _is_cache(path):
        with ReplyCache(path) as cache:
            for body in cache.rows():
                yield decode_prompt(body, where=str(path), schema=CACHED)
        return
    for number, line in read_lines(path):
        yield decode_prompt(line, where=f"{path}, line {number}", schema=RECORDING)


def _is_cache(path: Path) -> bool:
    try:
        with open_regular(path) as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; name another file") from None
