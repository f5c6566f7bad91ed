"""The documentation as a site: built strictly, complete, loading nothing from elsewhere, and usable in a browser."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from kit.public import PACKAGES, read_stub
from kit.site import build, copy_tree

pytestmark = pytest.mark.integration


WORDS = ("timeout", "undecided", "JudgeChain")
SHOWN = ("", "files/", "cli/", "outcomes/", "reference/", "reference/adjudge/", "reference/adjudge.judges/")

LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "frame": "src",
    "embed": "src",
    "source": "src",
    "track": "src",
    "audio": "src",
    "video": "src",
    "input": "src",
    "object": "data",
    "image": "href",
    "use": "href",
    "form": "action",
    "base": "href",
}
"""The attribute by which an element loads something, or would send something."""

Visit = Callable[..., Any]


@dataclass(slots=True)
class Page(HTMLParser):
    """What one page of the site loads, the places in it, and the classes of its elements."""

    loads: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)
    classes: set[str] = field(default_factory=set)
    policies: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        HTMLParser.__init__(self)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        self.places.add(attributes.get("id", ""))
        self.classes.update(attributes.get("class", "").split())
        self.loads += [
            attributes[name] for name in (LOADING.get(tag, ""), "poster", "xlink:href") if name in attributes
        ]
        self.loads += [part.split()[0] for part in attributes.get("srcset", "").split(",") if part.strip()]
        self.loads += re.findall(r"url\(['\"]?([^'\")]+)", attributes.get("style", ""))
        if tag == "link" and attributes.get("rel") not in {"prev", "next", "canonical"}:
            self.loads.append(attributes.get("href", ""))
        if tag == "meta" and attributes.get("http-equiv", "").lower() == "content-security-policy":
            self.policies.append(attributes["content"])


def read_pages(site: Path) -> dict[str, Page]:
    """Every page of the site, parsed."""
    pages: dict[str, Page] = {}
    for path in sorted(site.rglob("*.html")):
        pages[path.relative_to(site).as_posix()] = page = Page()
        page.feed(path.read_text("utf-8"))
    return pages


def test_every_public_name_has_a_place(site: Path):
    """Each name of each package can be linked to under the address from which it is imported."""
    for package in PACKAGES:
        page = Page()
        page.feed((site / "reference" / package / "index.html").read_text("utf-8"))
        missing = [name for name in read_stub(package) if f"{package}.{name}" not in page.places]

        assert missing == []


def test_the_reference_shows_no_private_member(site: Path):
    """Nothing that begins with an underscore has a heading, in the inventory that other projects read neither."""
    places = {
        place for name, page in read_pages(site).items() if name.startswith("reference/") for place in page.places
    }
    addresses = {place for place in places if place.startswith("adjudge.")}

    assert len(addresses) > 1000
    assert [item for item in addresses if any(part.startswith("_") for part in item.split("."))] == []


def test_types_lead_to_their_descriptions(site: Path):
    """In a signature a type of ours is a link, to another page where it is described there."""
    text = (site / "reference" / "adjudge.judges" / "index.html").read_text("utf-8")
    signature = text.partition('id="adjudge.judges.JudgeChain"')[2].partition("<p>")[0]

    assert re.search(r'href="[^"]*#adjudge\.judges\.Strategy">Strategy</a>', signature)
    assert "from adjudge import JudgeChain" in re.sub(r"<[^>]+>", "", signature)
    assert re.search(r'href="\.\./adjudge\.[a-z]+/#adjudge\.[a-z]+\.Usage">Usage</a>', text)


def test_arguments_and_errors_are_lists(site: Path):
    """``Args:`` and ``Raises:`` of a docstring become tables with names, types and defaults."""
    text = (site / "reference" / "adjudge.ledger" / "index.html").read_text("utf-8")
    described = text.partition('<h2 id="adjudge.ledger.Ledger"')[2].partition("<h2 ")[0]

    assert "Args:" not in described
    assert re.search(r"<td>\s*<code>store_content</code>", described)
    assert re.search(r"<td>\s*<code>\s*<a [^>]*#adjudge\.UsageError", described)


def test_no_page_loads_anything_from_another_host(site: Path):
    """Scripts, styles, fonts, pictures: all are files of the site, and the browser is told to refuse others."""
    pages = read_pages(site)
    foreign = {
        (name, load)
        for name, page in pages.items()
        for load in page.loads
        if (urlsplit(load).scheme or urlsplit(load).netloc) and not load.startswith("data:")
    }
    styles = {path.name: path.read_text("utf-8") for path in site.rglob("*.css")}
    loads = {
        (name, load)
        for name, text in styles.items()
        for load in re.findall(r"(?:url\(|@import\s+)['\"]?([^'\")\s]+)", text)
        if urlsplit(load).netloc
    }

    assert len(pages) > 50
    assert styles
    assert foreign == loads == set()
    assert [
        name for name, page in pages.items() if not any("default-src 'self'" in item for item in page.policies)
    ] == []
    assert not any(host in item for page in pages.values() for item in page.policies for host in ("http", "*", "//"))


def test_no_page_has_what_the_theme_would_fetch_a_script_for(site: Path):
    """Diagrams, galleries and code that runs in the page come from elsewhere; no page asks for one."""
    used = {name for page in read_pages(site).values() for name in page.classes}

    assert used & {"mermaid", "glightbox", "pyodide", "md-source"} == set()


def test_the_index_of_the_search_holds_every_word(site: Path):
    """What people look for is in the index: in prose, in headings, and in the names of the reference."""
    items = json.loads((site / "search.json").read_text("utf-8"))["items"]
    places = {word: {item["location"] for item in items if word in item["title"] + item["text"]} for word in WORDS}

    assert all(places.values())
    assert "reference/adjudge.judges/#adjudge.judges.JudgeChain" in places["JudgeChain"]


@pytest.mark.full
def test_what_does_not_exist_fails_the_build(tmp_path: Path):
    """A page, a heading and a name that are not there: the line of each is named, and the build fails."""
    tree = copy_tree(tmp_path)
    page = tree / "docs" / "tour.md"
    text = page.read_text("utf-8").rstrip("\n")
    first = text.count("\n") + 3
    wrong = ("[a](nowhere.md)", "[b](judge.md#no-such-heading)", "[c][adjudge.judges.NoSuchName]")
    page.write_text("\n".join([text, "", *wrong, ""]), encoding="utf-8")
    done = build(tree)
    output = re.sub(r"\x1b\[[\d;]*m", "", done.stdout + done.stderr)

    assert done.returncode == 1
    assert sorted(map(int, re.findall(r"tour\.md:(\d+):", output))) == [first, first + 1, first + 2]
    assert [item for item in wrong if item not in output] == []


@pytest.fixture(name="visit")
def provide_visit(browser: Any, address: str) -> Iterator[Visit]:
    """Opens a page of the site with every other host refused; a request to one, or an error, fails the test."""
    contexts: list[Any] = []
    wrong: list[str] = []

    def see(request: Any) -> None:
        if not request.url.startswith((address, "data:", "blob:")):
            wrong.append(request.url)

    def visit(path: str, *, width: int = 1280, scheme: str = "light") -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        contexts.append(context)
        page = context.new_page()
        page.on("request", see)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.goto(f"{address}{path}")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert wrong == []


@pytest.mark.parametrize("width", [390, 1280])
@pytest.mark.parametrize("word", WORDS)
@pytest.mark.slow_table
def test_search_finds(visit: Visit, word: str, width: int):
    """With no network a word leads to a page that has it; a class first of all to its place in the reference."""
    page = visit("", width=width)
    page.locator("label[for=__search], .md-search__button").locator("visible=true").first.click()
    # At once, as pasted: while letters come one by one, what is shown may be the results for fewer of them.
    page.locator("input[aria-label=Search]").fill(word)
    first = page.locator(f"a[href*='h={word}']").first
    first.wait_for()
    shown, target = first.inner_text(), first.get_attribute("href")
    first.click()
    page.wait_for_url(target)
    page.locator("article mark", has_text=re.compile(word, re.IGNORECASE)).first.wait_for()

    assert word.lower() in shown.lower()
    if word == "JudgeChain":
        assert page.url.endswith("#adjudge.judges.JudgeChain")


@pytest.mark.full
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_nothing_is_wider_than_the_window(visit: Visit, width: int, scheme: str):
    """No page scrolls sideways; a wide table or line of code scrolls inside its own box."""
    for path in SHOWN:
        page = visit(path, width=width, scheme=scheme)

        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_as_dark_as_the_system_until_told_otherwise(visit: Visit, scheme: str):
    """Text is dark on light, or light on dark; a button changes that by hand."""
    page = visit("", scheme=scheme)
    text, paper = measure_lightness(page, "color"), measure_lightness(page, "backgroundColor")
    other = page.locator("label[title='Switch to light mode']")
    other.click()
    if scheme == "light":
        page.locator("label[title='Switch to dark mode']").click()

    assert (text < paper) == (scheme == "light")
    assert abs(text - paper) > 0.5
    assert (measure_lightness(page, "color") < measure_lightness(page, "backgroundColor")) == (scheme == "dark")


def measure_lightness(page: Any, name: str) -> float:
    """How light the page's text or background is, from 0 to 1; drawn first, so that any notation of colours will do."""
    return page.evaluate(
        """name => {
          const pen = document.createElement("canvas").getContext("2d");
          pen.fillStyle = getComputedStyle(document.body)[name];
          pen.fillRect(0, 0, 1, 1);
          const [red, green, blue] = pen.getImageData(0, 0, 1, 1).data;
          return (red + green + blue) / 765;
        }""",
        name,
    )
