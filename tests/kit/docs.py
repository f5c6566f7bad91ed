"""Documentation as data: its code blocks, how they are executed, and the command lines in them."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import inspect
import io
import json
import re
import shlex
import subprocess
import sys
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from kit import house
from kit.patience import HANG

LANGUAGES = {"", "console", "diff", "html", "js", "json", "jsonl", "mermaid", "python", "sh", "text", "toml", "yaml"}
NOT_RUN = re.compile(r"# not run: (\S.*)")
HIDDEN = re.compile(r"<!-- (?P<kind>reply|not run|file \S+):\s(?P<text>.*?)\s*-->", re.DOTALL)
"""The comment that a page has for the tests alone, above a block: why it is not run, what a model replies, a file that
is there."""
OUTPUT = "example output"
"""The title of a block that shows what the block before it prints."""
SHOWN_WHOLE = frozenset(["README.md", "docs/cli.md", "docs/index.md", "docs/quickstart.md", "docs/tour.md"])
"""The pages on which newcomers compare what they see with what is shown: there a block is all that was printed."""
PROGRAMS = frozenset(
    [
        "adjudge",
        "cat",
        "cd",
        "cp",
        "curl",
        "diff",
        "echo",
        "exit",
        "export",
        "false",
        "gh",
        "git",
        "grep",
        "head",
        "ls",
        "mkdir",
        "mv",
        "printf",
        "pytest",
        "python",
        "rm",
        "set",
        "sort",
        "tail",
        "test",
        "true",
        "wc",
    ]
)
"""The programs that a block of shell may start in a test: nothing that installs, never ends, or needs a network beyond
the servers that ``kit.page_files`` starts; ``gh`` is a double."""
FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,})[ ]*(?P<language>[\w+-]*)(?P<rest>[^`]*)$")
TITLE = re.compile(r'title="([^"]+)"')
OPTION = re.compile(r"(?<![\w-])--?[a-zA-Z][\w-]*")
SPECIAL = re.compile(r"[|&;<>$`*?]|^~")
"""The characters that a shell would read in a word; a quoted one that has it goes to the shell too, which is never
wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    """The place of its first line on the page, from 1."""
    language: str
    title: str | None
    """The file it is, from ``title="..."`` after the language; such a block is written before the next one runs."""
    text: str
    hidden: Mapping[str, str] = field(default_factory=dict)
    """The comments of the page for the tests alone, by kind: ``not run`` (why), ``reply`` (JSON), ``file NAME`` (text).
    """

    @property
    def runs(self) -> bool:
        """Return True if the block is executed: Python that does not begin with ``# not run: <reason>``."""
        return self.language == "python" and NOT_RUN.match(self.text) is None

    @property
    def is_shell(self) -> bool:
        """Return True if it is a block of shell, whether it runs here or not."""
        return self.language in {"console", "sh"}

    @property
    def why_not_run(self) -> str:
        """Return the reason that its first line gives, or the comment above it, for not running it; empty: none."""
        first = NOT_RUN.match(self.text)
        return first[1] if first else self.hidden.get("not run", "")

    @property
    def runs_in_shell(self) -> bool:
        """Return True if it is a block of shell that can run here: every program it starts is one that may be."""
        if not self.is_shell or self.why_not_run:
            return False
        names = {command[0] for line in read_shell(self) for command in split_line(line) if command}
        return bool(names) and names <= PROGRAMS

    @property
    def replies(self) -> dict[str, Any]:
        """Return what the model says in this block of each criterion: a score, or a score and a reason."""
        return json.loads(self.hidden.get("reply", "{}"))

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


def list_commands(page: Path) -> Iterator[tuple[str, list[str]]]:
    """Each command of a page's sessions on a console, with the lines that it is shown to print."""
    for block in read_blocks(page):
        if block.language == "console":
            for part in ("\n" + block.text).split("\n$ ")[1:]:
                command, *shown = part.strip().splitlines()
                yield command, shown


def parse_blocks(page: Path, text: str) -> Iterator[Block]:
    """The fenced blocks of some Markdown, those within lists without their indent."""
    lines = text.splitlines()
    number, after = 0, 0
    while number < len(lines):
        opening = FENCE.match(lines[number])
        number += 1
        if opening is None:
            continue
        first, ticks, indent = number, opening["ticks"], opening["indent"]
        while number < len(lines) and not re.fullmatch(rf" *{ticks}`*\s*", lines[number]):
            number += 1
        if number == len(lines):
            raise ValueError(f"{page.name}:{first}: this fence is never closed")
        between = "\n".join(lines[after : first - 1])
        title = TITLE.search(opening["rest"])
        yield Block(
            page=page,
            line=first + 1,
            language=opening["language"],
            title=title[1] if title else None,
            text="\n".join(line.removeprefix(indent) for line in lines[first:number]) + "\n",
            hidden={match["kind"]: match["text"] for match in HIDDEN.finditer(between)},
        )
        number += 1
        after = number


def compile_block(block: Block) -> types.CodeType:
    """The block's code, ``await`` allowed at its top level, with the page's own line numbers."""
    padded = "\n" * (block.line - 1) + block.text
    return compile(padded, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)


def run_page(
    blocks: list[Block],
    directory: Path,
    begin: Callable[[Block], object] = bool,
    shell: Mapping[str, str] | None = None,
    replacements: Mapping[str, str] | None = None,
) -> int:
    """Execute a page's Python in order in one namespace and one event loop; the number of blocks executed.

    ``begin`` is called before each. With the environment of a shell its blocks of shell run too, where they can. Blocks
    with a title are first written into ``directory``, which must be the working directory. A block of example output
    has to be what the block before it printed. What a block of shell names is replaced by what it is called here.
    """
    module = types.ModuleType("docs_page")
    sys.modules[module.__name__] = module  # dataclasses and pydantic look their module up by its name
    ran, printed = 0, None
    try:
        with asyncio.Runner() as runner:
            for block in blocks:
                write_file(block, directory)
                if block.title == OUTPUT and printed is not None:
                    check_output(block, printed)
                if block.runs:
                    begin(block)
                    printed = run_python(block, module, runner)
                    ran += 1
                elif block.language == "python":
                    compile_block(block)
                elif block.runs_in_shell:
                    begin(block)
                    printed = None if shell is None else run_shell(rename(block, replacements or {}), shell)
                    ran += shell is not None
    finally:
        del sys.modules[module.__name__]
    return ran


def rename(block: Block, replacements: Mapping[str, str]) -> Block:
    """The block with another text for each that the page cannot know: an id, an address of this machine."""
    text = block.text
    for shown, here in replacements.items():
        text = text.replace(shown, here)
    return replace(block, text=text)


def run_python(block: Block, module: types.ModuleType, runner: asyncio.Runner) -> str:
    """Execute one block of Python and return what it printed; where it awaits, in the page's loop."""
    code, out = compile_block(block), io.StringIO()
    with contextlib.redirect_stdout(out):
        value = eval(code, vars(module))
        if code.co_flags & inspect.CO_COROUTINE:
            runner.run(value)
    return out.getvalue()


def check_output(block: Block, printed: str) -> None:
    """Check that the output on a page was printed: each line, in order, but for spaces and where it has ``...``.

    On the pages of ``SHOWN_WHOLE`` nothing else was printed: what is left out there is a line of ``...`` alone. In a
    line ``...`` stands for what differs each time: times, ids, digests, ports and paths.
    """
    left = [" ".join(line.split()) for line in printed.splitlines()]
    if str(block.page.relative_to(house.ROOT)) in SHOWN_WHOLE:
        check_whole(block, [line for line in left if line])
        return
    for line in filter(None, (" ".join(line.split()) for line in block.text.splitlines())):
        pattern = re.compile(".*".join(map(re.escape, line.split("..."))))
        while left and not pattern.fullmatch(left[0]):
            left.pop(0)
        assert left, f"{block.where}: nothing printed is {line!r}; it printed:\n{printed}"
        left.pop(0)


def check_whole(block: Block, printed: list[str]) -> None:
    """Check that what a page shows is all that was printed."""
    lines = filter(None, (" ".join(line.split()) for line in block.text.splitlines()))
    pattern = "".join(
        r"(?:.*\n)*?" if line == "..." else ".*".join(map(re.escape, line.split("..."))) + r"\n" for line in lines
    )
    text = "".join(f"{line}\n" for line in printed)
    assert re.fullmatch(pattern, text), f"{block.where}: it printed this, and shows another output:\n{text}"


def read_shell(block: Block) -> list[str]:
    """The command lines of a block of shell, each as one line."""
    lines = block.text.replace("\\\n", " ").splitlines()
    return [line.removeprefix("$ ") for line in lines if block.language == "sh" or line.startswith("$ ")]


def run_shell(block: Block, environment: Mapping[str, str]) -> str:
    """Run a block of shell and return what it printed; one of ``console`` prints what it shows, others succeed."""
    is_script = block.language == "sh"
    commands = find_plain(block)
    if commands is None:
        script = "\n".join([*(["set -e"] if is_script else []), *read_shell(block)])
        status, printed = run_bash(script, environment)
    else:
        status, printed = run_commands(commands, goes_on=not is_script)
    if is_script:
        assert status == 0, f"{block.where}: exit status {status}\n{printed}"
    else:
        shown = "\n".join(line for line in block.text.replace("\\\n", " ").splitlines() if not line.startswith("$ "))
        check_output(replace(block, text=shown), printed)
    return printed


def find_plain(block: Block) -> list[list[str]] | None:
    """The commands of a block that calls adjudge and nothing else, so that it needs no shell; else ``None``."""
    lines = [line for line in read_shell(block) if line.strip() and not line.lstrip().startswith("#")]
    words = [list(_read_words(line)) for line in lines]
    is_plain = all(line and line[0] == "adjudge" and not any(map(SPECIAL.search, line)) for line in words)
    return [line[1:] for line in words] if is_plain else None


def _read_words(line: str) -> Iterator[str]:
    """The words of one shell line, operators among them, without a comment."""
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.commenters, lexer.whitespace_split = "#", True
    yield from lexer


def run_commands(commands: list[list[str]], *, goes_on: bool) -> tuple[int, str]:
    """Call adjudge in this process, which takes a tenth of another's time; the last status and what was printed."""
    main, out, status = find_main(), io.StringIO(), 0
    assert main is not None
    stdin, sys.stdin = sys.stdin, io.StringIO()
    try:
        for arguments in commands:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
                try:
                    status = main(arguments)  # type: ignore[call-arg]
                except SystemExit as leaving:
                    status = leaving.code
            if status and not goes_on:
                break
    finally:
        sys.stdin = stdin
    return int(status or 0), out.getvalue()


def run_bash(script: str, environment: Mapping[str, str]) -> tuple[int, str]:
    """Run a script in a shell; its status and what it printed."""
    done = subprocess.run(
        ["bash", "-c", script],
        env=dict(environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        timeout=HANG,
        check=False,
    )
    return done.returncode, done.stdout


def write_file(block: Block, directory: Path) -> None:
    """Write a block with a title where the page says it is, and the files that the page says are there."""
    for kind, text in block.hidden.items():
        if kind.startswith("file "):
            path = directory / kind.removeprefix("file ")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n", encoding="utf-8")
    if block.title not in (None, OUTPUT):
        path = directory / str(block.title)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(block.text, encoding="utf-8")


def find_commands(block: Block) -> list[list[str]]:
    """The arguments of each ``adjudge ...`` in a console or sh block."""
    if not block.is_shell:
        return []
    commands = [command for line in read_shell(block) for command in split_line(line)]
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
    """Return what ``adjudge PATH --help`` prints; empty where that is not a command."""
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
