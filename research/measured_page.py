"""The pages of docs/ that programs of this folder write tables into, each between two marks that name its program."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"


@dataclass(frozen=True)
class MeasuredPage:
    """One program's part of a page."""

    name: str
    """The page's file, such as coverage.md."""
    program: str
    """The program's file in research/, as the marks have it."""
    folder: Path = DOCS

    @property
    def marks(self) -> tuple[str, str]:
        """The lines before and after the part."""
        return (
            f"<!-- begin: written by research/{self.program} -->",
            f"<!-- end: written by research/{self.program} -->",
        )

    def split(self) -> tuple[str, str, str]:
        """Return the text before the part, the part and the text after it; ends the program where a mark is missing."""
        begin, end = self.marks
        text = (self.folder / self.name).read_text("utf-8")
        if (text.count(begin), text.count(end)) != (1, 1) or text.index(end) < text.index(begin):
            raise SystemExit(f"docs/{self.name} needs the lines {begin} and {end}, once each and in this order")
        before, _, rest = text.partition(begin)
        written, _, after = rest.partition(end)
        return before, written.strip("\n"), after

    def write(self, text: str) -> None:
        """Write the part anew and leave the rest of the page as it is."""
        before, _, after = self.split()
        begin, end = self.marks
        lines = text.strip("\n")
        (self.folder / self.name).write_text(f"{before}{begin}\n\n{lines}\n\n{end}{after}", "utf-8")

    def make_parser(self, description: str | None, *, draws: int) -> argparse.ArgumentParser:
        """Make a parser with the options that every such program has: --draws and --write."""
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument(
            "--draws", type=int, default=draws, help="simulated draws of each row (default: %(default)s)"
        )
        parser.add_argument("--write", action="store_true", help=f"write the tables into docs/{self.name}")
        return parser


def add_data(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    """Add the option for the folder with the recorded judges."""
    parser.add_argument("--data", type=Path, required=required, help="the folder with the recorded judges")


def write_rows(rows: Iterable[Sequence[str]]) -> str:
    """Write the rows of a table in Markdown, a line each."""
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
