"""What the documentation shows works: its Python runs, its command lines exist."""

from __future__ import annotations

import inspect
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from kit import client_doubles, command_lines, docs, house, page_files
from kit.example_model import ExampleModel, make_shell, serve_example

pytestmark = pytest.mark.timed


PAGES = docs.find_pages()


def name_page(page: Path) -> str:
    """A page's place in the repository."""
    return str(page.relative_to(house.ROOT))


PARSED = {
    "docs/measure-a-judge.md": "runs in docs/test_measure_tutorial.py",
    "docs/reproductions.md": "needs data that are not part of the repository",
    "docs/shadow.md": "runs in docs/test_shadow_tutorial.py",
}
"""The pages of which blocks of shell could run, and why they are only read; all others run."""


def list_shell_pages() -> list[Path]:
    """The pages whose blocks of shell run: those that start something that may run here, and have no reason not to."""
    return [
        page
        for page in PAGES
        if name_page(page) not in PARSED and any(block.runs_in_shell for block in docs.read_blocks(page))
    ]


AWAITING = {
    "docs/seeds.md": "shows what became of asynchronous code",
}
"""The pages whose blocks await at their top level, which a notebook can and a script cannot, and why."""


NEEDING_SHELL = ("docs/agree.md", "docs/compare-prompts.md", "docs/label-two-systems.md")
"""The pages whose Python reads what their shell wrote or what was prepared for it, so that it runs there alone."""


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    """An empty working directory and no configuration from outside, so a page needs only what it shows.

    As in a script there, its Python finds the modules beside it.
    Afterwards this process forgets the modules that were imported from there: other pages have some of the same names.
    """
    for name in list(os.environ):
        if name.startswith("ADJUDGE_") or name.endswith("_API_KEY"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    yield tmp_path
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture(name="model")
def provide_model(bare: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ExampleModel]:
    """A double for each ``openai:`` and ``anthropic:`` model that a page names, here and in the processes it starts."""
    with serve_example() as model:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-a-key-for-nobody")
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-a-key-for-nobody")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", model.url.removesuffix("/v1"))
        yield model


@contextmanager
def requiring_packages(page: Path, require: Callable[..., Any]) -> Iterator[None]:
    """Skip where a package that the page is about is absent."""
    try:
        yield
    except ModuleNotFoundError as error:
        require(str(error.name), None, f"pip install it, for {page.name}")
        raise


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_blocks_say_their_language(page: Path):
    """A fence names a language that is known here, so that no example is left out by a typing error."""
    assert {
        block.where: block.language for block in docs.read_blocks(page) if block.language not in docs.LANGUAGES
    } == {}


def test_python_blocks_are_scripts():
    """A block that is pasted into a file runs: it awaits nothing outside of a function."""
    awaiting = {
        name_page(page)
        for page in PAGES
        for block in docs.read_blocks(page)
        if block.language == "python" and docs.compile_block(block).co_flags & inspect.CO_COROUTINE
    }

    assert awaiting == set(AWAITING)


@pytest.mark.parametrize("page", [page for page in PAGES if name_page(page) not in NEEDING_SHELL], ids=name_page)
def test_python_blocks_run(page: Path, bare: Path, model: ExampleModel, require):
    """Every Python block of a page runs, in order and in one namespace; ``# not run: <reason>`` is only compiled."""
    blocks = docs.read_blocks(page)
    if name_page(page) == "docs/gateways.md":
        client_doubles.put_clients(model)
    with requiring_packages(page, require):
        ran = docs.run_page(blocks, bare, model.begin)

    assert ran == sum(block.runs for block in blocks)


@pytest.mark.integration
@pytest.mark.parametrize("page", list_shell_pages(), ids=name_page)
def test_shell_blocks_run(page: Path, bare: Path, model: ExampleModel, require):
    """Every command of these pages runs, in order, after the Python before it, and prints what the page shows."""
    blocks = docs.read_blocks(page)
    in_shell = sum(block.runs_in_shell for block in blocks)

    assert in_shell > 0
    prepare = page_files.PREPARED.get(name_page(page), page_files.prepare_nothing)
    replacements = prepare(bare, model)
    with requiring_packages(page, require):
        ran = docs.run_page(blocks, bare, model.begin, make_shell(bare), replacements)
    assert ran == in_shell + sum(block.runs for block in blocks)


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_a_block_of_shell_runs_or_says_why_not(page: Path):
    """No block is left out only because it starts a program that the tests do not know."""
    blocks = docs.read_blocks(page)
    named = [path for block in blocks for path in re.findall(r"tests/\S+\.py", block.why_not_run)]

    assert [block.where for block in blocks if block.is_shell and not (block.runs_in_shell or block.why_not_run)] == []
    assert [path for path in named if not (house.ROOT / path).is_file()] == []


@pytest.mark.parametrize("name", sorted(docs.SHOWN_WHOLE))
def test_every_output_that_newcomers_see_is_compared(name: str):
    """A block of text is what a command before it printed, a file, or a help text that a script writes."""
    blocks = docs.read_blocks(house.ROOT / name)
    helps = "Usage: adjudge"
    loose = [block.where for block in blocks if block.language in {"", "text"} and not block.title]

    assert [block.where for block in blocks if block.where in loose and not block.text.startswith(helps)] == []
    assert name not in PARSED


@pytest.mark.parametrize(
    ("shown", "is_right"),
    [
        ("a\nb 12 c\nd\n", True),
        ("a\nb ... c\nd\n", True),
        ("a\n...\n", True),
        ("...\nd\n", True),
        ("a\n...\nb 12 c\nd\n", True),
        ("a\nd\n", False),
        ("a\nb 12 c\n", False),
        ("a\nb ... c\nd\ne\n", False),
    ],
)
def test_an_output_is_shown_whole_on_the_pages_of_newcomers(shown: str, is_right: bool):
    """What is left out is a line of three dots, and in a line they stand for what differs each time."""
    (block,) = docs.parse_blocks(house.ROOT / "README.md", f'```text title="{docs.OUTPUT}"\n{shown}```\n')
    printed = "a\n\nb  12 c\nd\n"

    if is_right:
        docs.check_output(block, printed)
    else:
        with pytest.raises(AssertionError, match="README"):
            docs.check_output(block, printed)


def test_a_section_that_needs_recorded_rows_says_where_they_come_from():
    """Each section with ``--data DIR`` links to the table of their sources, or has it."""
    sections = [
        (name_page(page), section)
        for page in PAGES
        for section in re.split(r"(?m)^(?=## )", page.read_text("utf-8"))
        if "--data DIR" in section
    ]
    unlinked = [
        (name, section.splitlines()[0])
        for name, section in sections
        if "#where-the-rows-come-from)" not in section and not section.startswith("## Where the rows come from")
    ]

    assert len(sections) >= 10
    assert unlinked == []


def test_a_page_is_only_read_where_it_could_run():
    """No reason outlives the blocks that it is about."""
    able = [name_page(page) for page in PAGES if any(block.runs_in_shell for block in docs.read_blocks(page))]

    assert [name for name in PARSED if name not in able] == []


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_command_lines_exist(page: Path, bare: Path, require):
    """Every ``adjudge ...`` in a console or sh block names commands and options that ``--help`` names."""
    blocks = docs.read_blocks(page)
    commands = [(block.where, command) for block in blocks for command in docs.find_commands(block)]
    if commands:
        require("the command line", docs.find_main(), "install adjudge with its command line")
    unknown = [(place, word) for place, command in commands for word in docs.find_unknown(command)]

    assert unknown == []


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_command_lines_are_taken(page: Path, bare: Path):
    """Every ``adjudge ...`` has the arguments it needs, of the right kind, and names what is there or on the page."""
    blocks = docs.read_blocks(page)
    names = command_lines.read_names(blocks)
    commands = [(block.where, command) for block in blocks for command in docs.find_commands(block)]
    wrong = [
        (place, complaint) for place, command in commands for complaint in command_lines.find_wrong(command, names)
    ]

    assert wrong == []


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("judge a.txt --rubric polite", "--rubric polite"),
        ("judge a.txt --rubric security --judge openai:a --timeout soon", "--timeout"),
        ("judge a.txt --rubric mine --judge careful", ""),
        ("judge a.txt --rubric security --judge carefull", "--judge carefull"),
        ("run a.jsonl --retry tomorrow", "--retry tomorrow"),
        ("diff one", "RUN2"),
        ("rubric show security", ""),
        ("--version", ""),
    ],
)
def test_a_wrong_argument_is_found(line: str, complaint: str, bare: Path):
    """A rubric that is not shipped, a number that is none, an argument that is missing."""
    text = "```toml\n[rubrics]\nmine = 'a.yaml'\n[judges.careful]\nseats = ['openai:a']\n```\n"
    names = command_lines.read_names(list(docs.parse_blocks(house.ROOT / "page.md", text)))
    complaints = list(command_lines.find_wrong(line.split(), names))

    assert bool(complaints) == bool(complaint)
    assert complaint in " ".join(complaints)


PAGE = """
```python
import asyncio
seen = []
```

````yaml title="rubrics/a.yaml"
name: a
````

```python
await asyncio.sleep(0)
seen.append(__import__("pathlib").Path("rubrics/a.yaml").read_text())
```

```python
# not run: needs a key
raise RuntimeError
```

```console
$ KEY=1 adjudge judge a.txt --rubric x && adjudge demo | cat   # a comment
passed
$ adjudge report \\
    --json
```
"""


def test_pages_are_read_as_they_are_written(bare: Path):
    """Blocks share a namespace and a loop, files they name exist, and a block that is not run is still compiled."""
    blocks = list(docs.parse_blocks(house.ROOT / "page.md", PAGE))

    assert [block.language for block in blocks] == ["python", "yaml", "python", "python", "console"]
    assert docs.run_page(blocks, bare) == 2
    assert (bare / "rubrics" / "a.yaml").read_text("utf-8") == "name: a\n"
    assert docs.find_commands(blocks[-1]) == [
        ["judge", "a.txt", "--rubric", "x"],
        ["demo"],
        ["report", "--json"],
    ]


def test_a_comment_holds_a_file_of_several_lines(bare: Path):
    """Beside one of a single line, for the block below them alone; one that a block shows is no comment."""
    text = """
<!-- file ledger.pub: 5f -->
<!-- file login.py:
def sign_in():
    return "ana"
-->
```text
<!-- file shown.py: pass -->
```
```python
from login import sign_in
```
"""
    first, second = docs.parse_blocks(house.ROOT / "page.md", text)

    assert docs.run_page([first, second], bare) == 1
    assert (bare / "ledger.pub").read_text("utf-8") == "5f\n"
    assert (bare / "login.py").read_text("utf-8") == 'def sign_in():\n    return "ana"\n'
    assert dict(second.hidden) == {}


@pytest.mark.parametrize(
    ("line", "arguments"),
    [
        ("adjudge report monday      # in the terminal", ["report", "monday"]),
        ("adjudge judge a.txt --criteria 'Is polite.'", ["judge", "a.txt", "--criteria", "Is polite."]),
        ("adjudge judge a.txt | cat", None),
        ("adjudge judge a.txt > out.txt", None),
        ("adjudge judge a.txt && deploy", None),
        ("adjudge judge *.txt", None),
        ('adjudge judge "$FILE"', None),
        ("KEY=1 adjudge judge a.txt", None),
        ("cat a.txt", None),
    ],
)
def test_a_line_is_called_here_only_if_no_shell_would_change_it(line: str, arguments: list[str] | None):
    """Pipes, redirections, patterns, variables and other programs need a shell."""
    (block,) = docs.parse_blocks(house.ROOT / "page.md", f"```sh\n{line}\n```\n")
    plain = docs.find_plain(block)

    assert plain == (None if arguments is None else [arguments])


def test_what_help_does_not_name_is_found(bare: Path, monkeypatch: pytest.MonkeyPatch):
    """A command or an option that the command line does not have is named, wherever it stands."""
    app = typer.Typer(add_completion=False)
    group = typer.Typer()
    app.add_typer(group, name="rubric")

    @app.command()
    def judge(files: list[str], strict: bool = False):
        """Judge files."""

    @group.command()
    def check(file: str, as_json: Annotated[bool, typer.Option("--json")] = False):
        """Check a rubric."""

    monkeypatch.setattr(docs, "find_main", lambda: app)
    docs.read_help.cache_clear()
    lines = {
        "judge a.txt rubric --strict": [],
        "rubric check login.yaml --json": [],
        "rubric check login.yaml --strict": ["--strict"],
        "judge a.txt --jsn=1 -x -- --not-ours": ["--jsn", "-x"],
        "juge a.txt --strict": ["juge"],
        "--help": [],
    }

    assert {line: docs.find_unknown(line.split()) for line in lines} == lines
    docs.read_help.cache_clear()


def test_a_broken_example_is_found(bare: Path):
    """An example that raises, even after an await, fails its page, at the page's own line."""
    text = "```python\nawait __import__('asyncio').sleep(0)\nassert 1 == 2\n```\n"
    blocks = list(docs.parse_blocks(house.ROOT / "page.md", text))

    with pytest.raises(AssertionError) as caught:
        docs.run_page(blocks, bare)

    assert caught.traceback[-1].lineno + 1 == 3


def test_an_open_fence_is_an_error():
    """A fence that is never closed would swallow the rest of the page."""
    with pytest.raises(ValueError, match="never closed"):
        list(docs.parse_blocks(house.ROOT / "page.md", "```python\nx = 1\n"))
