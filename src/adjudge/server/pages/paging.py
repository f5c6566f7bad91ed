"""Lists of 50 rows a page, whose filters, order and page number are in the query of the address."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Generic, TypeVar
from urllib.parse import urlencode

from fastapi import Query

T = TypeVar("T")

ON_PAGE = 50
"""Rows of a page."""

Word = Annotated[str, Query(max_length=200)]

S = TypeVar("S", bound=str)

Number = Annotated[int, Query(ge=1, lt=2**31)]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListPage(Generic[T]):
    """A page of a list, with the addresses of the pages before and after it, which keep the filters."""

    rows: Sequence[T]
    first: int
    """The place of the first row, from 1; 0 where there is none."""
    total: int
    newer: str
    """The address of the page before; empty where there is none."""
    older: str

    @property
    def words(self) -> str:
        """The range of these rows and the number of all."""
        last = self.first + len(self.rows) - 1
        return f"{self.first:,} to {last:,} of {self.total:,}" if self.rows else f"0 of {self.total:,}"


def cut_page(rows: Sequence[T], number: int, link: Callable[[int], str]) -> ListPage[T]:
    """Cut out the page of this number, from 1; a number beyond the last page gives the last page.

    ``link`` makes the address of the page of a number.
    """
    pages = max(-(-len(rows) // ON_PAGE), 1)  # rounded up
    number = min(number, pages)
    start = (number - 1) * ON_PAGE
    return ListPage(
        rows=rows[start : start + ON_PAGE],
        first=start + 1 if rows else 0,
        total=len(rows),
        newer=link(number - 1) if number > 1 else "",
        older=link(number + 1) if number < pages else "",
    )


def choose_word(word: str, known: Iterable[S], default: S) -> S:
    """Return a word of an address if it is known, else the default, so that an old or mistyped link leads to a list."""
    return next((known_word for known_word in known if known_word == word), default)


def write_address(path: str, values: Mapping[str, object], fragment: str = "") -> str:
    """Write an address with a query of the values that are not empty, and with ``#fragment`` if there is one.

    The value 1 is left out too: it is the number of the first page, which is the default.
    """
    query = urlencode({name: str(value) for name, value in values.items() if value not in ("", None, False, 1)})
    return path + (f"?{query}" if query else "") + (f"#{fragment}" if fragment else "")
