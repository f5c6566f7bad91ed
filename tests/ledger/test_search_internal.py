"""Searching a ledger: what is found, whatever a query holds, and how the index comes to entries from before it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, select

from adjudge import Approvals, Decision, Ledger
from adjudge.ledger import search_index, store
from adjudge.ledger.columns import get_columns_table, make_column_tables
from adjudge.ledger.search_index import (
    FORERUNNER,
    SEARCH_STATE,
    SEARCH_TEXTS,
    SEARCH_TRIGRAMS,
    find_unsearched,
    match_entries,
)
from adjudge.ledger.search_text import fold, read_query
from kit.ledgers import STORES, make_result, open_store, run, start_appender
from kit.patience import HANG

pytestmark = pytest.mark.timed

CONTENT = "We refund your order 77418.\n\nIt comes back within ten days."

PEOPLE = {
    "title": "Refund 184.00 EUR to Weber",
    "agent": "mail-agent",
    "customer": "C-20931",
    "link": "https://shop.example/orders/77418",
    "case": {"channel": "chat", "tags": ["vip", 4711]},
}


@pytest.fixture(name="url", params=STORES)
def make_url(request: pytest.FixtureRequest, tmp_path: Path, require: Any) -> Iterator[str]:
    with open_store(request.param, tmp_path, require) as url:
        yield url


def execute(url: str, *statements: str) -> list[Any]:
    """What the last of some statements finds, each committed."""
    engine = create_engine(url)
    values: list[Any] = []
    try:
        for statement in statements:
            with engine.begin() as connection:
                rows = connection.exec_driver_sql(statement)
                values = [tuple(row) for row in rows] if rows.returns_rows else []
    finally:
        engine.dispose()
    return values


def decide(content_of: str = "", **metadata: Any) -> Decision:
    detail = f"about {content_of}" if content_of else ""
    return Decision(
        gate="door", allowed=False, decided_by="judge", result=make_result(), detail=detail, metadata=metadata
    )


async def find(ledger: Ledger, query: str) -> list[int]:
    """The places that a query finds, as the index of this moment has them."""

    def look(connection: Connection) -> list[int]:
        columns = get_columns_table()
        matching = match_entries(connection, read_query(query), columns.c.seq)
        return list(connection.execute(select(columns.c.seq).where(matching).order_by(columns.c.seq)).scalars())

    return await ledger.look(look, tables=make_column_tables()) or []


def search(url: str, query: str) -> list[int]:
    return run(url, lambda ledger: find(ledger, query))


def fill(url: str, *contents: str, **options: Any) -> None:
    """A decision about each content, from place 2 on, all of which are kept."""

    async def work(ledger: Ledger) -> None:
        for content in contents:
            await ledger.append(decide(), content=content)

    run(url, work, store_content="full", **options)


async def complete(ledger: Ledger) -> None:
    """Wait until every entry is in the index."""
    await ledger.prepare()
    while await ledger.look(find_unsearched, tables=make_column_tables()):  # noqa: ASYNC110 - another thread writes it
        await asyncio.sleep(0.01)


# ---------------------------------------------------------------- what is found


@pytest.mark.parametrize(
    "query",
    [
        "77418",
        "weber",
        "WEBER 184.00",
        '"back within ten"',
        '"77418. it comes"',
        "C-20931",
        "vip",
        "4711",
        "chat",
        "mail-agent",
        "shop.example/orders",
        "door",
        "careful",
        "customer:C-20931",
        "customer:c-20931 agent:mail-agent weber",
        'title:"EUR to Weber"',
        "link:orders/77418",
    ],
)
def test_titles_metadata_and_content_are_found(url: str, query: str):
    """Each by any part of it, in capitals or not, and across the ends of lines."""

    async def work(ledger: Ledger) -> list[int]:
        await ledger.append(decide(**PEOPLE), content=CONTENT)
        await ledger.append(Decision(gate="other", allowed=False, decided_by="policy", metadata={"title": "Nothing"}))
        return await find(ledger, query)

    assert run(url, work, store_content="full") == [2]


@pytest.mark.parametrize(
    "query",
    [
        "customer:C-2093",
        "customer:C-209311",
        "customer:Weber",
        "title:C-20931",
        "link:Weber",
        'link:"orders/77418 Refund"',
        "agent:mail",
        "weber nobody",
        "order:77418",
    ],
)
def test_filters_are_about_their_own_key(url: str, query: str):
    """Customer and agent by the whole value, link and title by a part; a key that is none is part of a word."""

    async def work(ledger: Ledger) -> list[int]:
        await ledger.append(decide(**PEOPLE), content=CONTENT)
        return await find(ledger, query)

    assert run(url, work, store_content="full") == []


def test_a_content_cannot_pass_for_a_customer(url: str):
    """Whatever separates the keys is in no text, so nobody writes himself into somebody else's list."""
    marks = "\x1c\x1d\x1e\x1f"
    fill(url, f"a\n{marks[0]}c-1{marks[1]}agent{marks[2]}link{marks[3]}title", "customer:c-1 \x1cc-1\x1d")

    assert [search(url, query) for query in ("customer:c-1", "agent:agent", "link:link", "title:title")] == [[]] * 4
    assert search(url, "c-1") == [2, 3]


def test_a_request_is_found_by_what_it_says(url: str):
    """By its message where the ledger keeps that, and by its metadata."""

    async def work(ledger: Ledger) -> tuple[list[int], list[int]]:
        async with Approvals(ledger) as approvals:
            await approvals.request(make_result(), "Publish this?", approvers=["Ana"], metadata=PEOPLE)
        return await find(ledger, "publish"), await find(ledger, "customer:C-20931")

    assert run(url, work, store_content="full") == ([2], [2])


def test_what_a_ledger_does_not_keep_is_not_found(url: str):
    """By default, texts that can quote the content are digests, and nothing else of them is indexed."""

    async def work(ledger: Ledger) -> list[list[int]]:
        await ledger.append(decide(**PEOPLE), content=CONTENT)
        return [await find(ledger, query) for query in ("ten days", "lovelace", "weber")]

    assert run(url, work) == [[], [], [2]]


HOSTILE = {
    "quotes": 'it\'s "so" \'\' "" `x`',
    "wildcards": "100% of _all_ * [a-z] ? ^ ~",
    "operators": "this AND that OR not NEAR(a b, 3) rank: text: MATCH",
    "injection": "'; DROP TABLE adjudge_ledger_search; -- \") OR 1=1",
    "backslash": "C:\\path\\100/% {curly} $1 %s ? :name",
    "right to left": "مرحبا بالعالم שלום עולם",
    "cjk": "払い戻しは十日以内 환불 退款",
    "emoji": "👩‍👩‍👧 ok 🇩🇪",
    "sharp s": "Straße ﬁnden Ⅷ Ａ",
    "bidi": "abc\u202edef\u202c \u200bzero",
    "short": "a b c d zz",
    "long": "lorem " * 3 + "x" * 5_000,
}


def list_queries() -> list[str]:
    words = [word for text in HOSTILE.values() for word in text.split()]
    more = ["NEAR", "and", 'text:"a', '""', '"', "%", "_", "*", "%%%", "___", "it''s", "x" * 10_000, "\0", "a\0b"]
    more += [
        "退",
        "は十",
        "ﬁ",
        "strasse",
        "fin",
        "viii",
        "customer:",
        'customer:""',
        "customer:%",
        "title:_",
        "title:%",
    ]
    more += ["a b c zz", '"a b c"', "\ud800", "(", ")", "-", "+", "^", "{}", "link:'; --", "q" * 49_999, "% " * 4_000]
    return sorted({*words, *more, *HOSTILE.values()})


def test_a_query_is_data(url: str):
    """Whatever it holds, it finds what its words are a part of, and nothing else."""
    fill(url, *HOSTILE.values())
    texts = {seq: text for seq, text in execute(url, f"SELECT seq, text FROM {SEARCH_TEXTS}") if seq > 1}

    async def work(ledger: Ledger) -> dict[str, list[int]]:
        return {query: await find(ledger, query) for query in list_queries()}

    found = run(url, work)

    for query, places in found.items():
        asked = read_query(query)
        known = (
            [] if asked.filters else [seq for seq, text in texts.items() if all(word in text for word in asked.words)]
        )
        assert places == (known if asked else places), query
    assert len(execute(url, f"SELECT seq FROM {SEARCH_TEXTS}")) == len(HOSTILE)
    assert found["退款"] == found["退"] == [list(HOSTILE).index("cjk") + 2]
    assert found["strasse"] == found["viii"] == [list(HOSTILE).index("sharp s") + 2]
    assert found["%"] == [list(HOSTILE).index(name) + 2 for name in ("wildcards", "backslash")]


def test_a_query_of_a_thousand_words_is_searched(url: str):
    """A whole page can be pasted; of more than 200 different words, the longest count."""
    page = " ".join(f"word{number}" for number in range(1_000))
    fill(url, page, "word1 word2")

    assert search(url, page) == [2]
    assert search(url, "word1 word2") == [2, 3]


def test_one_row_of_words_is_read_in_one_way():
    """Quotes hold words together, and only the documented keys are filters."""
    query = read_query('Refund "two  words" customer:"Ada Lovelace" order:7 title:x sha256:ABC customer:""')

    assert set(query.words) == {"refund", "two words", "order:7", "abc"}
    assert query.filters == (("customer", "ada lovelace"), ("title", "x"))
    assert not read_query(' \0 "" customer:""')


# ---------------------------------------------------------------- what is erased


def test_nothing_is_left_of_an_erased_text(url: str):
    """Neither its text nor its trigrams, so that nobody puts it together again from the index."""
    fill(url, "ꙮxj is the only such word", "another text")
    before = read_trigrams(url)

    run(url, lambda ledger: ledger.erase(2, "asked for", "Ana"), store_content="full")

    assert search(url, "ꙮxj") == []
    assert search(url, "another") == [3]
    if before is not None:
        after = read_trigrams(url)
        trigram = "ꙮxj".encode()
        assert (trigram in before, trigram in (after or b"")) == (True, False)
    assert run(url, lambda ledger: ledger.verify())


def read_trigrams(url: str) -> bytes | None:
    """What is in the tables of FTS5; ``None`` on PostgreSQL, whose vacuum does what is done here at once."""
    if not url.startswith("sqlite"):
        return None
    rows = execute(url, f"SELECT block FROM {SEARCH_TRIGRAMS}_data")
    return b"".join(bytes(row[0]) for row in rows)


# ---------------------------------------------------------------- ledgers from before


def forget_index(url: str) -> None:
    """Make a ledger as a preview has left it: with a table of words, and without the index."""
    trigrams = [f"DROP TABLE IF EXISTS {SEARCH_TRIGRAMS}"] if url.startswith("sqlite") else []
    execute(
        url,
        *trigrams,
        f"DROP TABLE {SEARCH_TEXTS}",
        f"DROP TABLE {SEARCH_STATE}",
        f"CREATE TABLE {FORERUNNER} (seq INTEGER PRIMARY KEY, words TEXT NOT NULL)",
        f"INSERT INTO {FORERUNNER} VALUES (2, 'number 0 of many')",
    )


NUMBERED = [f"number {number} of many" for number in range(40)]


def read_index(url: str) -> list[Any]:
    return execute(url, f"SELECT seq, text FROM {SEARCH_TEXTS} ORDER BY seq")


def test_entries_from_before_come_into_the_index(url: str):
    """As soon as the ledger is opened for writing; the table of a preview is dropped."""
    fill(url, *NUMBERED)
    written = read_index(url)
    forget_index(url)
    assert search(url, "number") == []
    assert run(url, lambda ledger: ledger.verify())

    run(url, complete)

    assert read_index(url) == written
    assert search(url, '"number 39 of"') == [41]
    assert len(search(url, "number")) == len(NUMBERED)
    assert run(url, lambda ledger: ledger.verify())
    with pytest.raises(Exception, match=FORERUNNER):
        execute(url, f"SELECT * FROM {FORERUNNER}")


def test_an_index_is_built_in_parts_and_resumed(url: str, monkeypatch: pytest.MonkeyPatch):
    """The newest entries are found first, new ones at once, and what is there stays when its writer ends."""
    fill(url, *NUMBERED)
    forget_index(url)
    monkeypatch.setattr(store, "PAGE", 7)
    opened = store.Store(url, signer=None, about={})
    try:
        opened.prepare()
        assert opened.extend_search()
    finally:
        opened.close()

    assert search(url, "many") == list(range(35, 42))
    fill(url, "one more of many")
    run(url, complete)

    assert len(search(url, "many")) == len(NUMBERED) + 1
    assert run(url, lambda ledger: ledger.verify())


def test_what_another_version_wrote_meanwhile_is_added_and_what_it_erased_is_dropped(
    url: str, monkeypatch: pytest.MonkeyPatch
):
    """A writer without the index leaves a gap, which the next one notices."""
    fill(url, "first secret", "second")
    with monkeypatch.context() as patch:
        patch.setattr(store, "append_texts", lambda *_: True)
        patch.setattr("adjudge.ledger.columns.delete_text", lambda *_: None)
        fill(url, "third")
        run(url, lambda ledger: ledger.erase(2, "asked for", "Ana"), store_content="full")
    fill(url, "fifth")

    run(url, complete)

    assert [search(url, word) for word in ("secret", "second", "third", "fifth")] == [[], [3], [4], [6]]
    assert "secret" not in str(read_index(url))
    assert run(url, lambda ledger: ledger.verify())


def test_an_upgrade_writes_the_index_anew(url: str, require: Any):
    """Whatever somebody wrote into it."""
    require("alembic", find_spec("alembic"), "pip install 'adjudge[server]'")
    fill(url, *NUMBERED)
    written = read_index(url)
    execute(url, f"UPDATE {SEARCH_TEXTS} SET text = 'x' WHERE seq = 4", f"DELETE FROM {SEARCH_STATE}")
    assert len(search(url, "number")) == len(NUMBERED) - 1  # and no error

    run(url, lambda ledger: ledger.upgrade())

    assert read_index(url) == written
    assert len(search(url, "number")) == len(NUMBERED)


# ---------------------------------------------------------------- where trigrams are missing


def test_without_fts5_every_text_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Writing and searching go on, one sentence says why it is slow, and a later writer makes the index."""
    url = f"sqlite:///{tmp_path / 'adjudge.db'}"
    fill(url, "first")
    with monkeypatch.context() as patch:
        patch.setattr(search_index, "find_fts5_problem", lambda: "no FTS5")
        fill(url, "second")
        assert [search(url, word) for word in ("first", "second")] == [[2], [3]]
        assert explain(url) == "no FTS5"
        run(url, lambda ledger: ledger.erase(2, "asked for", "Ana"), store_content="full")
        assert run(url, lambda ledger: ledger.verify())

    fill(url, "fourth")
    run(url, complete)

    assert explain(url) is None
    assert [search(url, word) for word in ("first", "second", "fourth")] == [[], [3], [5]]
    assert execute(url, f"SELECT has_trigrams FROM {SEARCH_STATE}") == [(1,)]


def test_without_pg_trgm_every_text_is_read(tmp_path: Path, require: Any, monkeypatch: pytest.MonkeyPatch):
    """A database whose owner has not created the extension, and in which we may not."""
    with open_store("postgres", tmp_path, require) as url:
        monkeypatch.setattr(search_index, "_SCHEMA_OF_TRGM", "SELECT 1 WHERE false")
        fill(url, "first")

        assert search(url, "first") == [2]
        assert "CREATE EXTENSION pg_trgm" in (explain(url) or "")


def test_no_statement_is_compiled(tmp_path: Path, require: Any):
    """A search of the pages takes milliseconds in PostgreSQL; compiling it takes ten times as long."""
    with open_store("postgres", tmp_path, require) as url:
        fill(url, "first")

        def look(connection: Connection) -> str:
            return str(connection.exec_driver_sql("SHOW jit").scalar_one())

        assert run(url, lambda ledger: ledger.look(look, tables=make_column_tables())) == "off"


def explain(url: str) -> str | None:
    opened = store.Store(url, signer=None, about={})
    try:
        return opened.explain_search()
    finally:
        opened.close()


# ---------------------------------------------------------------- several processes

BUILD = """
import sys
from adjudge.ledger import store

store.PAGE = 2
opened = store.Store(sys.argv[1], signer=None, about={})
opened.prepare()
print("ready", flush=True)
while opened.extend_search():
    print("part", flush=True)
print("complete", flush=True)
"""


def start_builder(url: str) -> subprocess.Popen[str]:
    """A process that builds the index in parts of two entries, and says so after each."""
    return subprocess.Popen([sys.executable, "-c", BUILD, url], stdout=subprocess.PIPE, text=True)


@pytest.mark.integration
@pytest.mark.slow
def test_a_killed_builder_leaves_an_index_that_the_next_one_resumes(url: str):
    """Wherever it is killed: a part is there with its mark, or not at all."""
    fill(url, *NUMBERED)
    written = read_index(url)
    forget_index(url)

    for lines in (1, 3, 7):
        with start_builder(url) as builder:
            assert builder.stdout is not None
            for _ in range(lines):
                builder.stdout.readline()
            builder.kill()
        [(since,)] = execute(url, f"SELECT since FROM {SEARCH_STATE}")
        # A builder may have finished before it is killed: then the first entry, which has no text, is behind it too.
        built = [row[0] for row in written if row[0] >= since]
        assert [row[0] for row in read_index(url)] == built
        assert search(url, "number") == built
        assert run(url, lambda ledger: ledger.verify())
    run(url, complete)

    assert read_index(url) == written
    assert len(search(url, "number")) == len(NUMBERED)


@pytest.mark.integration
@pytest.mark.slow
def test_two_processes_write_and_build_at_once(url: str):
    """No entry is left out, and no reader waits for either."""
    fill(url, *NUMBERED)
    forget_index(url)

    with (
        start_builder(url) as builder,
        start_appender(url, "a", count=20) as first,
        start_appender(url, "b", count=20) as second,
    ):
        assert len(search(url, "number")) <= len(NUMBERED)
        for process in (builder, first, second):
            process.communicate(timeout=HANG)
            assert process.returncode == 0
    fill(url, "one more number")
    run(url, complete)

    assert len(search(url, "number")) == len(NUMBERED) + 1
    assert run(url, lambda ledger: ledger.verify())
    assert fold("ONE More") in str(read_index(url))
