"""Nothing that people look up is missing: every page, package, form of file and error has its place in the pages."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from adjudge import AdjudgeError
from kit import house
from kit.command_lines import find_group
from kit.public import PACKAGES, exported

SECTIONS = ("Get started", "How-to", "Reference", "Concepts", "Project")


def read_nav() -> dict[str, list[str]]:
    """The pages of each section, in order; the pages of a group inside one follow one another."""

    def flatten(items: list[Any]) -> list[str]:
        pages = []
        for item in items:
            inner = [item] if isinstance(item, str) else next(iter(item.values()))
            pages += flatten(inner) if isinstance(item, dict) and isinstance(inner, list) else list(inner)
        return pages

    nav = tomllib.loads((house.ROOT / "zensical.toml").read_text("utf-8"))["project"]["nav"]
    return {name: flatten(pages) for item in nav for name, pages in item.items() if isinstance(pages, list)}


def list_command_paths(command: Any, *names: str) -> set[str]:
    """The names of a command and of all below it; a group has names of its own."""
    inner = {name: command.get_command(None, name) for name in command.list_commands(None)}
    paths = {" ".join((*names, name)) for name in inner}
    groups = [list_command_paths(each, *names, name) for name, each in inner.items() if hasattr(each, "list_commands")]
    return paths.union(*groups)


def read_title(page: str) -> str:
    """The heading of a page, which is its name in the menu."""
    folder = house.ROOT if page.isupper() or (house.ROOT / page).exists() else house.ROOT / "docs"
    heading = re.search(r"^# (.+)$", (folder / page).read_text("utf-8"), re.MULTILINE)
    assert heading is not None, page
    return heading[1]


def test_the_list_of_pages_is_that_of_the_menu():
    """The sections, with the same pages in the same order, each under its own heading: one name for each page."""
    own = {name: [page for page in pages if "/" not in page] for name, pages in read_nav().items()}
    menu = {name: [page for page in pages if page != "all-pages.md"] for name, pages in own.items()}
    text = (house.ROOT / "docs" / "all-pages.md").read_text("utf-8")
    listed, names = {}, {}
    for part in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        name, _, body = part.partition("\n")
        if name not in SECTIONS:
            continue
        rows = [
            (link.rpartition("/")[2], title)
            for title, link in re.findall(r"^\| \[([^]]+)\]\(([^)]+)\)", body, re.MULTILINE)
        ]
        listed[name] = [page for page, _ in rows]
        names |= dict(rows)

    assert tuple(menu) == SECTIONS
    assert listed == menu
    assert names == {page: read_title(page) for page in names}


def test_the_search_knows_words_for_every_page():
    """theme/search.toml has the words of the field for each page of the menu, and for no other."""
    words = tomllib.loads((house.ROOT / "docs" / "theme" / "search.toml").read_text("utf-8"))
    menu = {page for pages in read_nav().values() for page in pages if "/" not in page} - {"all-pages.md"}

    assert set(words) == menu


def test_every_page_is_in_the_menu():
    """A page that nobody can find from the menu is not documentation."""
    docs = house.ROOT / "docs"
    pages = {path.relative_to(docs).as_posix() for path in docs.rglob("*.md")} - {"index.md"}
    listed = [page for section in read_nav().values() for page in section]

    assert pages - set(listed) == set()
    assert len(listed) == len(set(listed))


def test_every_package_is_in_the_menu():
    """The reference has a page for each package that lists names, and each integration; the menu has that page."""
    integrations = {path.stem for path in (house.PACKAGE / "integrations").glob("[!_]*.py")}
    modules = {*PACKAGES, *(f"adjudge.integrations.{name}" for name in integrations)}
    listed = [page for page in read_nav()["Reference"] if page.startswith("reference/adjudge")]

    assert sorted(listed) == sorted(f"reference/{name}.md" for name in modules)


def test_every_form_of_file_is_described():
    """docs/files.md names each schema that the source writes or reads, and none that is not there."""
    source = "\n".join(
        path.read_text("utf-8")
        for suffix in ("py", "json", "yaml")
        for path in (house.ROOT / "src").rglob(f"*.{suffix}")
    )
    schema = re.compile(r"adjudge/[a-z-]+/\d+")
    page = (house.ROOT / "docs" / "files.md").read_text("utf-8")

    assert set(schema.findall(page)) == set(schema.findall(source))


def test_every_command_has_its_help_on_the_page():
    """docs/cli.md shows the help of each command that ``adjudge --help`` lists, and of each command below those."""
    reference = (house.ROOT / "docs" / "cli.md").read_text("utf-8")
    shown = {name.strip() for name in re.findall(r"<!-- help: ([a-z -]*) -->", reference)}

    assert list_command_paths(find_group()) == shown - {""}


def test_every_json_document_is_listed():
    """docs/files.md says of each command that has ``--json`` what it prints, and of no other."""
    reference = (house.ROOT / "docs" / "cli.md").read_text("utf-8")
    helps = re.findall(r"<!-- help: ([a-z -]+) -->(.*?)<!-- end help -->", reference, re.DOTALL)
    having = {name.strip() for name, text in helps if re.search(r"^  --json\b", text, re.MULTILINE)}
    page = (house.ROOT / "docs" / "files.md").read_text("utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `adjudge ") and "/1`" in line]
    listed = {name for row in rows for name in re.findall(r"`adjudge ([a-z -]+?)(?: --[a-z-]+)?`", row)}

    assert len(having) > 20
    assert listed == having


def test_every_error_is_described():
    """docs/errors.md has each public error, under the one that it is a kind of."""
    errors = {name: value for name, value in exported().items() if is_error(value)}
    page = (house.ROOT / "docs" / "errors.md").read_text("utf-8")
    tree = page.partition("```text\n")[2].partition("```")[0]
    matches = re.findall(r"^((?:│?   )*(?:[├└]── )?)([A-Z]\w+)", tree, re.MULTILINE)
    above: dict[str, str] = {}
    line: list[str] = []
    for indent, name in matches:
        line = [*line[: len(indent) // 4], name]
        above[name] = line[-2] if len(line) > 1 else ""

    assert set(above) == {name.rpartition(".")[2] for name in errors}
    assert above == {value.__name__: find_above(value) for value in errors.values()}


def is_error(value: object) -> bool:
    """Whether it is a class of errors of ours."""
    return isinstance(value, type) and issubclass(value, AdjudgeError)


def find_above(error: Any) -> str:
    """The error that this one is a kind of."""
    return next((item.__name__ for item in error.__mro__[1:] if is_error(item)), "")
