"""The exit statuses that every command shares, as ``adjudge --help`` lists them. A script may rely on them.

Which of them a command ends with is decided in that command (``commands/run.py``: ``find_status``), that of a result in
``judge_output.py``, and that of an error in ``app.py`` (``_report_error``).
"""

from __future__ import annotations

DONE = 0
"""It passed, or what was asked for is done."""

FAILED = 1
"""The answer is no: something failed, missed a limit, or was found."""

USAGE = 2
"""Wrong usage, or input that cannot be read. Of several inputs this one beats ``FAILED``."""

UNDECIDED = 3
"""The answer is not known: undecided, too few labels, or a provider, the network or a store failed."""

CRASHED = 70
"""A defect of adjudge, or code that it called tried to end the program."""

INTERRUPTED = 130
"""Somebody pressed Ctrl-C, or a signal ended it."""
