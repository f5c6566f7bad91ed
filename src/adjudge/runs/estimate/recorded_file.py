"""The usage of the replies in a recording or a reply cache: their tokens, and not how often each seat was asked."""

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
from adjudge.runs.estimate.recorded_usage import RecordedUsage, SeatKey, SeatUsage, SeenReplies, sum_up_replies

_SQLITE = b"SQLite format 3\x00"


def read_usage_of_file(path: Path) -> RecordedUsage:
    """Read the usage of the replies in a file, by model. Raises ``UsageError`` if no reply has any.

    A recording or a cache does not say which of several seats of a model was asked, nor for which judgements a seat was
    not asked. So the usage of each model counts as that of its first seat.
    """
    replies_by_model: dict[str, SeenReplies] = defaultdict(SeenReplies)
    row_counts, repeat_counts = Counter[str](), Counter[str]()
    first_sizes: dict[tuple[str, str, str | None], float] = {}
    counter = CharacterCounter()
    for row in _read_rows(path):
        row_counts[row.model] += 1
        size = None if row.request is None else counter.count(row.request.system) + counter.count(row.request.user)
        if row.attempt not in (None, 1):
            # A further attempt has a longer prompt; the size of the first attempt's is used, if it is in the file.
            repeat_counts[row.model] += 1
            size = first_sizes.get((row.model, row.case or "", row.order), size)
        elif size is not None and row.case is not None:
            first_sizes[row.model, row.case, row.order] = size
        replies_by_model[row.model].add(row.reply.usage, size)
    seats: dict[SeatKey, SeatUsage] = {}
    for model, replies in replies_by_model.items():
        if replies.used:
            first_attempts = max(row_counts[model] - repeat_counts[model], 1)
            seats[model, 0] = sum_up_replies(replies, row_counts[model] / first_attempts, 0.0)
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
    """Return whether a file is a reply cache, which is a database. Raises ``UsageError`` if it cannot be read."""
    try:
        with open_regular(path) as file:
            return file.read(len(_SQLITE)) == _SQLITE
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}; name another file") from None
