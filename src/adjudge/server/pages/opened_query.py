"""The members of a page's address that open what is folded on it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from adjudge.templates.opened import LONGEST_OPENED, PATTERN, Opened, read_opened


class OpenedQuery(BaseModel):
    """What of a page's transcripts is opened: some steps, or all of them."""

    whole: bool = False
    opened: str = Field(default="", alias="open", max_length=LONGEST_OPENED, pattern=PATTERN)

    def read(self, path: str, *query: tuple[str, str]) -> Opened:
        """Read what is opened on the page at ``path``, whose other members are ``query``."""
        return read_opened(path, self.opened, whole=self.whole, query=query)
