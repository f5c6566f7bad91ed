"""``python -m adjudge``: the command line, for where the script is not on the path."""

import os
import sys


def _forget_working_directory() -> None:
    # ``-m`` puts the working directory first on the path. What is judged may lie there, and a file tomllib.py beside
    # it must not be imported in place of the library. For ``python:`` the command line adds it again, as the last.
    if not sys.flags.safe_path and sys.path and sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 - pathlib is not loaded
        del sys.path[0]


if __name__ == "__main__":
    _forget_working_directory()
    from adjudge.cli import main

    main()
