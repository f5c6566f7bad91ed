"""The file of a cache: how old and how large replies get, whose it is, and what is made of a broken one."""

from __future__ import annotations

import logging
import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Judge, ReplyCache, Usage
from adjudge.models import Request
from kit.cache import ask
from kit.judges import Plain, complaint, keep_replies

ASKED = Request(system="Be a judge.", user="Is <abcdefgh> good?", token="abcdefgh")


# ---------------------------------------------------------------- age, size, clearing


def test_replies_expire(tmp_path: Path):
    """A reply older than ``expires_in`` is asked for again, and the new one is kept in its place."""
    now = 1000.0
    with ReplyCache(tmp_path / "c", expires_in=60.0, wall=lambda: now) as cache:
        model = keep_replies(Plain("first", "second"), cache)
        texts = [ask(model, ASKED)[0].text]
        cache.flush()
        for now in (1060.0, 1061.0, 1121.0):  # noqa: B007 - the clock
            texts.append(ask(model, ASKED)[0].text)
            cache.flush()
        assert texts == ["first", "first", "second", "second"]
        assert len(list(cache.entries())) == 1


def test_a_reply_from_the_future_is_not_used(tmp_path: Path):
    """Where a clock was set back, nobody can say how old a reply is."""
    now = 1000.0
    with ReplyCache(tmp_path / "c", expires_in=60.0, wall=lambda: now) as cache:
        model = keep_replies(Plain("first", "second"), cache)
        ask(model, ASKED)
        cache.flush()
        now = 900.0
        assert ask(model, ASKED)[0].text == "second"


def test_the_oldest_go_when_a_cache_is_full(tmp_path: Path):
    """``max_bytes`` bounds the pages in use; the newest replies stay."""
    with ReplyCache(tmp_path / "c", max_bytes=200_000) as cache:
        model = keep_replies(Plain(lambda request: "x" * 5000), cache)
        for number in range(100):
            ask(model, replace(ASKED, user=f"{number}"))
            cache.flush()
        kept = len(list(cache.entries()))
        assert 10 < kept < 40
        assert model.explain(replace(ASKED, user="99"))["found"]
        assert not model.explain(replace(ASKED, user="0"))["found"]


def test_a_cache_is_listed_and_cleared(tmp_path: Path):
    """By model, by age, or all of it; what was asked and said does not stand in the list."""
    now = 1000.0
    with ReplyCache(tmp_path / "c", wall=lambda: now) as cache:
        for now, name in ((1000.0, "a"), (1100.0, "b"), (1200.0, "b")):
            ask(keep_replies(Plain("yes", name=name), cache), replace(ASKED, user=f"{now}"))
        entries = list(cache.entries())
        assert [(item.at, item.model) for item in entries] == [(1000.0, "a"), (1100.0, "b"), (1200.0, "b")]
        assert cache.clear(model="b", older_than=100.0) == 1
        assert [item.at for item in cache.entries()] == [1000.0, 1200.0]
        assert cache.clear() == 2
        assert list(cache.entries()) == []


# ---------------------------------------------------------------- files that are not as they should be


def test_the_file_is_its_owners_alone(cache: ReplyCache):
    """Mode 0600, and the files SQLite puts beside it as well: they hold what was judged."""
    ask(keep_replies(Plain("yes"), cache), ASKED)
    cache.flush()

    assert {path.name: path.stat().st_mode & 0o777 for path in cache.path.parent.iterdir()} == {
        "replies.sqlite": 0o600,
        "replies.sqlite-wal": 0o600,
        "replies.sqlite-shm": 0o600,
    }


@pytest.mark.skipif(os.name != "posix", reason="there are no such modes elsewhere")
def test_a_file_that_others_can_write_is_refused(tmp_path: Path):
    """Whoever writes the cache says what judges said."""
    path = tmp_path / "c"
    ReplyCache(path).check().close()
    path.chmod(0o666)

    assert "can be written by others" in complaint(ReplyCache(path).check)


def test_what_is_no_cache_is_refused_before_anything_is_asked(tmp_path: Path):
    """Not a database, another's database, a folder, a path that is not there; and none is changed."""
    text, other = tmp_path / "text", tmp_path / "other"
    text.write_text("this is no database, and it is long enough not to be taken for an empty one" * 20)
    text.chmod(0o600)
    with closing(sqlite3.connect(other)) as connection:
        connection.execute("CREATE TABLE mine (a)")
    other.chmod(0o600)
    before = other.read_bytes()
    model = Plain("yes")

    for path, message in (
        (text, "file is not a database"),
        (other, "is a database, but no cache"),
        (tmp_path, "Is a directory"),
        (tmp_path / "missing" / "c", "No such file or directory"),
    ):
        assert message in complaint(Judge(keep_replies(model, ReplyCache(path))).ask, "Is this safe?")
    assert model.requests == []
    assert other.read_bytes() == before


def test_a_cache_that_breaks_later_changes_no_answer(cache: ReplyCache, caplog: pytest.LogCaptureFixture):
    """The models are asked, as without a cache, and the log says it once."""
    cached = keep_replies(Plain("one", "two", "three"), cache)
    ask(cached, ASKED)
    cache.close()
    cache.path.write_bytes(b"no database any more, and long enough for SQLite to look at it twice" * 100)
    with caplog.at_level(logging.WARNING, logger="adjudge.cache"):
        texts = [reply.text for reply in ask(cached, ASKED)]
        cache.flush()
        texts += [reply.text for reply in ask(cached, ASKED)]
        cache.flush()

    assert texts == ["two", "three"]
    assert len(caplog.records) == 1
    assert "models are asked instead" in caplog.text


@pytest.mark.parametrize(
    "row", [b"{", b'{"schema": "adjudge/recording/1", "key": "k", "reply": {"text": "yes"}}', b"[]"]
)
def test_a_row_that_is_not_ours_is_not_used(cache: ReplyCache, caplog: pytest.LogCaptureFixture, row: bytes):
    """A damaged reply is no reply: the model is asked, and its answer takes the place."""
    cached = keep_replies(Plain("asked"), cache)
    cache.keep(cached.explain(ASKED)["key"], "plain", row)
    with caplog.at_level(logging.WARNING, logger="adjudge.cache"):
        first, second = ask(cached, ASKED, ASKED)

    assert (first.text, second.text) == ("asked", "asked")
    assert second.usage == Usage(calls=0, cost_usd=0.0)
    assert "no reply of ours under" in caplog.text


@pytest.mark.parametrize(
    "options", [{"expires_in": 0}, {"expires_in": float("nan")}, {"max_bytes": -1}, {"max_bytes": True}]
)
def test_limits_are_numbers_above_0(tmp_path: Path, options: dict[str, Any]):
    """A limit that means nothing is refused when it is given."""
    assert "must be a finite number above 0" in complaint(ReplyCache, tmp_path / "c", **options)
