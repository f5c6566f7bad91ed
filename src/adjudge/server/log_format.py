"""The form of the server's log: one record begins in one line, whatever it quotes."""

from __future__ import annotations

import logging

from adjudge.formats.text import clean


class RecordFormatter(logging.Formatter):
    """Indents all lines of a record but the first, and shows control characters as ``·``.

    A traceback quotes what was sent: without this, a text with a line break could write a record of its own, and one
    with an escape sequence could move the cursor of somebody who reads the log in a terminal.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record with its traceback, cleaned, and with all lines but the first indented."""
        return clean(super().format(record)).replace("\n", "\n    ")
