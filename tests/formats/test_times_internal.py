"""Texts that say a time, from files that anybody can write."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from adjudge.formats.times import read_zoned_time


def test_a_time_with_its_zone_is_read_in_utc():
    """As ISO 8601 writes it."""
    assert read_zoned_time("2026-11-20T14:00:00+02:00") == datetime(2026, 11, 20, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    "text", ["2026-11-20T12:00:00", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon", "", None, 1, []]
)
def test_what_says_no_time_that_there_is_is_none(text: object):
    """Without a zone, out of the years that there are, no time, no text."""
    assert read_zoned_time(text) is None
