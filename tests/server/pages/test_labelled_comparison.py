"""Two runs compared by what people say: the sentence of ``adjudge diff`` comes first, with its interval."""

from __future__ import annotations

import html
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("scipy", reason="measuring needs the extra trust")

from adjudge import open_run
from adjudge.labels import load_looks, open_label_queue
from adjudge.runs import Run
from kit import cli, server_demo
from kit.cli import Line
from kit.differences import draw, is_good, label_planned, make_judges, make_systems
from kit.server import RunningServer, run_server
from kit.viewing import view_below

pytestmark = pytest.mark.timed


@pytest.fixture(scope="module", name="folder")
def keep_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems, with a label on every planned answer, and two judges, with some labels in the queue of one."""
    folder = tmp_path_factory.mktemp("compared") / "runs"
    systems = make_systems(folder)
    draw(*systems, within=0.1)
    label_planned(*systems)
    careless, careful = make_judges(folder)
    with open_label_queue(careless) as queue:
        while (task := queue.next("ann")) is not None:
            queue.record("ann", task.case, is_good(str(task.content)))
    for run in (*systems, careless, careful):
        run.close()
    return folder


@pytest.fixture(scope="module", name="server")
def start_server(folder: Path) -> Iterator[RunningServer]:
    with run_server(folder.parent, server_demo.CONFIG) as server:
        server.add_account("Rita", "read")
        server.add_account("Ana")
        yield server


@pytest.fixture(name="line")
def make_line(monkeypatch: pytest.MonkeyPatch, folder: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    cli.isolate(monkeypatch, folder)
    return Line(capsys)


def read(server: RunningServer, path: str, name: str = "Rita") -> str:
    """A page, as text without references."""
    answer = server.sign_in(name).get(path)
    assert answer.status_code == 200, answer.text[:500]
    return html.unescape(answer.text)


def find_lead(page: str) -> str:
    """The first sentence on what people say."""
    return re.search(r'<p class="lead">([^<]+)</p>', page)[1]  # type: ignore[index]


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        ("a", "b", r"People would pass b \d+ to \d+ points more often than a\."),
        ("b", "a", r"People would pass a \d+ to \d+ points less often than b\."),
        ("careless", "careful", r"careful agrees with people 15 points more often than careless\."),
    ],
)
def test_the_first_sentence_is_that_of_the_command(
    server: RunningServer, line: Line, before: str, after: str, sentence: str
):
    """For two systems and for two judges, on the page and in the file that is saved of it; then what the judge says."""
    page = read(server, f"/compare?a={before}&b={after}")
    shown = line("diff", before, after).out

    assert re.fullmatch(sentence, find_lead(page))
    assert find_lead(page) in shown
    assert find_lead(page) == find_lead(read(server, f"/compare/report.html?a={before}&b={after}"))
    assert page.index('class="lead"') < page.index('class="outcome"')
    for figure in re.findall(r"([+-]\d+\.\d points)", shown):
        assert figure in page


def test_intervals_are_drawn_on_one_axis_with_a_line_at_0(server: RunningServer):
    """Each with its sentence for those who do not see it; for judges one each for agreement and both errors."""
    systems, judges = read(server, "/compare?a=a&b=b"), read(server, "/compare?a=careless&b=careful")

    drawn = re.findall(r'<svg class="estimate"[^>]*aria-label="([^"]*)">(.*?)</svg>', systems)
    assert [re.match(r"[a-z ]+", label)[0] for label, _ in drawn] == ["people", "the judge alone"]  # type: ignore[index]
    assert re.fullmatch(r"people: \+\d+\.\d points \+\d+\.\d to \+\d+\.\d", drawn[0][0])
    zeros = {re.search(r'class="k-ink" x1="([\d.]+)%"', lines)[1] for _, lines in drawn}  # type: ignore[index]
    assert len(zeros) == 1
    ticks = dict(re.findall(r'<text x="([\d.]+)%"[^>]*>([^<]+)</text>', systems))
    assert ticks[zeros.pop()] == "0"
    labels = re.findall(r'<svg class="estimate"[^>]*aria-label="([a-z ]+): ', judges)
    assert labels == ["agreement", "wrong passes", "wrong fails"]


def test_labels_that_are_missing_are_asked_for_and_no_folder_is_named(server: RunningServer, folder: Path):
    """Who may label is led to both runs; the difference is not known before, and nobody looked at it."""
    for name, system in zip(("c", "d"), make_systems(folder.parent / "other"), strict=True):
        shutil.copytree(system.folder, folder / name)
    with open_run(folder / "c") as before, open_run(folder / "d") as after:
        draw(before, after, within=0.1)
        label_planned(before)
        label_planned(after, most=5)
    page = read(server, "/compare?a=c&b=d", "Ana")

    assert re.search(r"is not known: \d+ of the \d+ planned questions lack a label", find_lead(page))
    assert "adjudge label c and adjudge label d" in find_lead(page)
    assert str(folder) not in page
    assert ">Label A</a>" in page
    assert ">Label A</a>" not in read(server, "/compare?a=c&b=d")
    assert {look.limit for look in load_looks(folder / "c")} == {None}
    label_rest(folder)
    assert find_lead(read(server, "/compare?a=c&b=d")).startswith("People would pass d")


def label_rest(folder: Path) -> None:
    """Label what is left of the plan."""
    with open_run(folder / "d") as after:
        label_planned(after)


def test_labels_that_cannot_tell_say_how_many_more_would(server: RunningServer, folder: Path):
    """Where the interval holds 0: both limits in words, and about how many more."""
    runs: list[Run] = list(make_systems(folder.parent / "alike"))
    draw(*runs, within=0.3)
    for run in runs:
        label_planned(run, decide=lambda content: int(content.split()[-1]) % 3 > 0)
    with open_label_queue(runs[1]) as queue:
        queue.adjudicate("cyd", next(iter(queue.labels())).case, True)
    for name, run in zip(("e", "f"), runs, strict=True):
        run.close()
        shutil.copytree(run.folder, folder / name)
    lead = find_lead(read(server, "/compare?a=e&b=f"))

    assert re.fullmatch(
        r"These labels cannot tell whether people would pass f more often than e: the difference is between "
        r"\d+\.\d points less and \d+\.\d points more; about \d+ more labelled questions? would, by .* every look, "
        r"in a new plan: delete plan\.json of both runs, then adjudge plan --against with a smaller --within\.",
        lead,
    )


def test_a_look_is_recorded_once_and_a_file_that_is_damaged_is_named(server: RunningServer, folder: Path):
    """A second page of the same labels is the same look. A plan that cannot be read leaves the rest of the page."""
    for name in ("a", "b"):
        shutil.copytree(folder / name, folder / f"{name}2")
        (folder / f"{name}2" / "looks.jsonl").unlink(missing_ok=True)
    for _ in range(2):
        read(server, "/compare?a=a2&b=b2")
    assert [(look.by, look.limit) for look in load_looks(folder / "a2")] == [("server", "one look")]

    (folder / "b2" / "plan.json").write_text("{", encoding="utf-8")
    page = read(server, "/compare?a=a2&b=b2")

    assert "What people said of these runs is left out: b2/plan.json is" in page
    assert "regressed" in page
    assert 'class="lead"' not in page


def test_who_only_views_sees_what_somebody_looked_at_and_leaves_no_look(line: Line, folder: Path, tmp_path: Path):
    """The limits for one look hold once it is recorded, so without a record the page says which command shows them."""
    for name in ("a", "b"):
        shutil.copytree(folder / name, tmp_path / name)
        (tmp_path / name / "looks.jsonl").unlink(missing_ok=True)
    with view_below(tmp_path) as viewing:
        browser = viewing.enter()
        unseen = html.unescape(browser.get("/compare?a=a&b=b").text)
        looks = [load_looks(tmp_path / name) for name in ("a", "b")]
        line("diff", tmp_path / "a", tmp_path / "b")
        seen, turned = [html.unescape(browser.get(f"/compare?{query}").text) for query in ("a=a&b=b", "a=b&b=a")]

    assert "adjudge diff of both runs shows it" in unseen
    assert 'class="lead"' not in unseen
    assert looks == [(), ()]
    assert find_lead(seen).startswith("People would pass b")
    assert find_lead(turned).startswith("People would pass a")
    assert len(load_looks(tmp_path / "a")) == 1
    assert load_looks(tmp_path / "b") == ()
