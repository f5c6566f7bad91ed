"""The members of a page's address that open what is folded on it."""

from __future__ import annotations

from pydantic import BaseModel, Field

from adjudge.templates.opened_parts import LONGEST_OPENED, PART_PATTERN, PATTERN, Opened, read_opened


class OpenedQuery(BaseModel):
    """The parts of a page that are opened: some steps of its transcripts or everything, and a window of a long text."""

    whole: bool = False
    opened: str = Field(default="", alias="open", max_length=LONGEST_OPENED, pattern=PATTERN)
    part: str = Field(default="", max_length=30, pattern=PART_PATTERN)

    def read(self, path: str, *query: tuple[str, str]) -> Opened:
        """Read what is opened on the page at ``path``, whose other members are ``query``."""
        return read_opened(path, self.opened, whole=self.whole, query=query, part=self.part)
