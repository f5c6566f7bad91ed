"""Documentation as data: its code blocks, how they are executed, and the command lines in them."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import re
import shlex
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kit import house

LANGUAGES = {"", "console", "diff", "html", "js", "json", "jsonl", "mermaid", "python", "sh", "text", "toml", "yaml"}
NOT_RUN = re.compile(r"# not run: \S")
FENCE = re.compile(r" {0,3}(?P<ticks>`{3,})[ ]*(?P<language>[\w+-]*)(?P<rest>[^`]*)$")
TITLE = re.compile(r'title="([^"]+)"')
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    """Where its first line stands on the page, from 1."""
    language: str
    title: str | None
    """The file it is, from ``title="..."`` after the language; such a block is written before the next one runs."""
    text: str

    @property
    def runs(self) -> bool:
        """Whether the block is executed: Python that does not begin with ``# not run: <reason>``."""
        return self.language == "python" and NOT_RUN.match(self.text) is None

    @property
    def where(self) -> str:
        """The block's place as ``file:line``."""
        return f"{self.page.relative_to(house.ROOT)}:{self.line}"


def find_pages() -> list[Path]:
    """README.md and every page under docs."""
    pages = [house.ROOT / "README.md", *sorted((house.ROOT / "docs").rglob("*.md"))]
    return [page for page in pages if page.is_file()]


def read_blocks(page: Path) -> list[Block]:
    """The page's fenced blocks, in order; raises ``ValueError`` for a fence that is never closed."""
    return list(parse_blocks(page, page.read_text(encoding="utf-8")))


def parse_blocks(page: Path, text: str) -> Iterator[Block]:
    """The fenced blocks of some Markdown."""
    lines = text.splitlines()
    number = 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first, ticks = number, opening["ticks"]
        while number < len(lines) and not re.fullmatch(rf" {{0,3}}{ticks}`*\s*", lines[number]):
            number += 1
        if number == len(lines):
            raise ValueError(f"{page.name}:{first}: this fence is never closed")
        title = TITLE.search(opening["rest"])
        yield Block(
            page=page,
            line=first + 1,
            language=opening["language"],
            title=title[1] if title else None,
            text="\n".join(lines[first:number]) + "\n",
        )
        number += 1


def compile_block(block: Block) -> types.CodeType:
    """The block's code, ``await`` allowed at its top level, with the page's own line numbers."""
    padded = "\n" * (block.line - 1) + block.text
    return compile(padded, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def run_page(blocks: list[Block], directory: Path) -> int:
    """Execute a page's blocks in order in one namespace and one event loop; the number of blocks executed.

    Blocks with a title are first written into ``directory``, which must be the working directory.
    """
    module = types.ModuleType("docs_page")
    sys.modules[module.__name__] = module  # dataclasses and pydantic look their module up by its name
    ran = 0
    try:
        with asyncio.Runner() as runner:
            for block in blocks:
                write_file(block, directory)
                code = compile_block(block) if block.language == "python" else None
                if code is None or not block.runs:
                    continue
                ran += 1
                run_code(code, module, runner)
    finally:
        del sys.modules[module.__name__]
    return ran


def write_file(block: Block, directory: Path) -> None:
    """Write a block with a title where the page says it is."""
    if block.title is not None:
        path = directory / block.title
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")


def run_code(code: types.CodeType, module: types.ModuleType, runner: asyncio.Runner) -> None:
    """Execute one block's code; where it awaits, in the page's loop."""
    value = eval(code, vars(module))
    if code.co_flags & inspect.CO_COROUTINE:
        runner.run(value)


def find_commands(block: Block) -> list[list[str]]:
    """The arguments of each ``adjudge ...`` in a console or sh block."""
    if block.language not in {"console", "sh"}:
        return []
    text = block.text.replace("\\\n", " ")
    lines = text.splitlines()
    if block.language == "console":
        lines = [line[2:] for line in lines if line.startswith("$ ")]
    commands = [command for line in lines for command in split_line(line)]
    return [command[1:] for command in commands if command and Path(command[0]).name == "adjudge"]


def split_line(line: str) -> list[list[str]]:
    """The commands of one shell line, without operators, redirections' signs and assignments before a command."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "#", True
    commands: list[list[str]] = [[]]
    for token in lexer:
        if token in {"&&", "||", "|", ";", "&"}:
            commands.append([])
        elif commands[-1] or not re.fullmatch(r"\w+=.*", token):
            commands[-1].append(token)
    return commands


def find_main() -> Callable[[], object] | None:
    """The command line's entry point, or ``None`` while there is none."""
    try:
        from adjudge.cli import main
    except ImportError:
        return None
    return main


@cache
def read_help(path: tuple[str, ...]) -> str:
    """What ``adjudge PATH --help`` prints; empty where that is not a command."""
    main, out = find_main(), io.StringIO()
    assert main is not None
    argv, sys.argv = sys.argv, ["adjudge", *path, "--help"]
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            status = main()
    except SystemExit as leaving:
        status = leaving.code
    finally:
        sys.argv = argv
    plain = re.sub(r"\x1b\[[0-9;]*m", "", out.getvalue())
    # Under pytest the program is called "python -m pytest.adjudge".
    named = re.search(r"Usage:.*?adjudge\s+" + "".join(re.escape(word) + r"(?:\s+|$)" for word in path), plain)
    return plain if not status and named else ""


def find_unknown(arguments: list[str]) -> list[str]:
    """The words of one command line that the command line's own help does not know: commands and options."""
    path: tuple[str, ...] = ()
    unknown: list[str] = []
    reading_path = True
    for word in arguments:
        if word == "--":
            break
        if word.startswith("-") and len(word) > 1:
            name = word.partition("=")[0]
            unknown += [] if name in OPTION.findall(read_help(path)) else [name]
        elif reading_path and read_help((*path, word)):
            path = (*path, word)
        elif not path:
            return [word]
        else:
            reading_path = False
    return unknown
