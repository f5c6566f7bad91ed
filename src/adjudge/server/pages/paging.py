"""Lists of 50 a page, with what narrows and orders them in the address."""

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
    """A page of a list, with the addresses of those beside it, which keep the filters."""

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
    """Cut the page of this number, from 1; beyond the last it is the last."""
    pages = max(-(-len(rows) // ON_PAGE), 1)
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
    """Return a word of an address if it is known, and else the default: an old or mistyped link leads to a list too."""
    return next((one for one in known if one == word), default)


def write_address(path: str, values: Mapping[str, object], place: str = "") -> str:
    """Write an address with a query of the values that are not empty."""
    query = urlencode({name: str(value) for name, value in values.items() if value not in ("", None, False, 1)})
    return path + (f"?{query}" if query else "") + (f"#{place}" if place else "")
