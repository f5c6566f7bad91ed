"""``adjudge init``: write the first files of a project: configuration, rubric, test and workflow."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import typer

from adjudge import __version__
from adjudge.cli.exit_status import DONE
from adjudge.cli.output import note, print_line
from adjudge.config.judges import find_configured
from adjudge.errors import UsageError
from adjudge.models.defaults import EXAMPLE

_FILES = {
    "adjudge.toml": "adjudge.toml.template",
    "rubrics/answers.yaml": "answers.yaml.template",
    "tests/test_answers.py": "test_answers.py.template",
    ".github/workflows/adjudge.yml": "workflow.yml.template",
}
"""The files to write, by their path in the project: the template of each."""

_TEST = "tests/test_answers.py"

_WHEEL = f"adjudge-{__version__}-py3-none-any.whl"
"""The name of the file from which the workflow installs adjudge."""


def init(folder: Annotated[Path | None, typer.Argument(metavar="DIR", hidden=True)] = None) -> int:
    """Write a configuration, a rubric, a test and a workflow to begin with.

    $ adjudge init

    The files go into DIR, or the working directory: adjudge.toml with every table explained, rubrics/answers.yaml,
    tests/test_answers.py and .github/workflows/adjudge.yml. A file that is there already is left as it is.

    Exit status: 0 written, or everything was there; 2 a file could not be written.
    """
    root = folder or Path()
    judge, reason = next(find_configured(), ("", ""))
    written = [name for name, text in _make_files(judge) if _write_new(root / name, text)]
    for name in _FILES:
        print_line(f"{'wrote' if name in written else 'kept '}  {root / name}")
    if "adjudge.toml" in written:
        note(_describe_judge(judge, reason))
    for line in _NEXT:
        note(line)
    return DONE


def _make_files(judge: str) -> Iterator[tuple[str, str]]:
    """Yield the path and the text of each file: its template with the judge's name, the test and the wheel filled in.

    Without a judge (``""``), the line that names one is a comment.
    """
    setting = f'judge = "{judge}"' if judge else f'# judge = "{EXAMPLE}"'
    comment = "# who is asked; a model's name, or a judge of this file"
    for name, template in _FILES.items():
        text = (files("adjudge.cli.starter") / template).read_text(encoding="utf-8")
        text = text.replace("{judge}", f"{setting:<33} {comment}").replace("{test}", _TEST)
        yield name, text.replace("{wheel}", _WHEEL)


def _write_new(path: Path, text: str) -> bool:
    """Write a file, and return whether it was written: a file or a link that exists already is never changed.

    Raises ``UsageError`` where it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if os.path.lexists(path):  # true for a link that leads nowhere, too
            return False
        with path.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        return False
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; name a folder that can be written") from None
    return True


def _describe_judge(judge: str, reason: str) -> str:
    """Describe which judge was written into adjudge.toml, and why; ``judge`` is empty where none was found."""
    if judge:
        return f"\nThe judge is {judge}, because {reason}."
    return "\nNo judge is named yet: set one in adjudge.toml, or see `adjudge doctor` for what this machine has."


_NEXT = (
    "\nNext:",
    "  adjudge doctor                                 check that the judge can be reached, and its replies read",
    f"  pytest {_TEST} --judge-record    ask it, and record its replies for CI",
    "  adjudge judge FILE                             judge a file of yours by rubrics/answers.yaml",
    f"  commit vendor/{_WHEEL}   the workflow installs adjudge from there, and says how to make it",
)
