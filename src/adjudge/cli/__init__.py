"""The command line: thin shells over the library, with exit statuses for scripts."""

from __future__ import annotations

import sys

__all__ = ["main"]


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its status."""
    try:
        # Imported here, so that an interrupt while modules are still being loaded is no traceback either.
        from adjudge.cli.app import run

        status = run(arguments)
    except KeyboardInterrupt:
        sys.stderr.write("adjudge: interrupted\n")
        status = 130
    sys.exit(status)
