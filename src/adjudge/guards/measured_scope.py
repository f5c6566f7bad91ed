"""The first sentence of a certificate and of a release policy: the contents, the judge and the dates it speaks of."""

from __future__ import annotations

from datetime import UTC, datetime

from adjudge.formats.text import flatten


def describe_scope(noun: str, *, cases: int, contents: str, judge: str, since: datetime, until: datetime) -> str:
    """Describe which contents, judge and dates a measurement is about; ``contents`` is the digest of all contents."""
    return (
        f"This {noun} speaks of the {cases:,} contents with the digest {contents} as {flatten(judge, 120)} judged them "
        f"{_name_dates(since, until)}, and of no other contents, judge or time."
    )


def _name_dates(since: datetime, until: datetime) -> str:
    """Name the day or the range of days of two times, in UTC."""
    first, last = since.astimezone(UTC).date(), until.astimezone(UTC).date()
    return f"on {first}" if first == last else f"from {first} to {last}"
