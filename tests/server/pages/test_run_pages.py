"""Pages of runs: every case of a run, one address for each, and two runs side by side, with hostile content in them."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from adjudge import open_run
from adjudge.dataset import Label
from adjudge.labels import make_plan, open_label_queue, write_plan
from adjudge.measurement import make_measurement
from adjudge.report import diff, make_report, render_html
from kit import server_demo
from kit.compared_runs import CASES, TALK, bind, keep_hostile, keep_versions, make_manifest
from kit.labels import make_pairs_run, make_run
from kit.reports import keep_run, make_item
from kit.server import RunningServer, find_token, run_server

pytestmark = pytest.mark.timed


@dataclass(frozen=True, slots=True)
class Reader:
    """Somebody who reads pages of a server."""

    client: Any

    def read(self, path: str, status: int = 200) -> str:
        answer = self.client.get(path)
        assert answer.status_code == status, (path, answer.status_code, answer.text[:500])
        return answer.text


@pytest.fixture(scope="module", name="server")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    folder = tmp_path_factory.mktemp("pages")
    keep_versions(folder / "runs")
    keep_hostile(folder / "runs")
    other = make_manifest(18, 60, dataset={"name": "labelled.jsonl"})
    keep_run(folder / "runs" / "labelled", bind(map(make_item, range(60))), other).close()
    make_run(folder / "runs" / "planned", 80)
    make_run(folder / "runs" / "planned-again", 80)
    for name in ("pairs", "pairs-again"):
        make_pairs_run(folder / "runs" / name, 3)
    with run_server(folder, server_demo.CONFIG + "deadline = 600\n") as server:
        server.add_account("Rita", "read")
        server.add_account("Ana")
        yield server


@pytest.fixture(scope="module", name="reader")
def sign_in(server: RunningServer) -> Reader:
    return Reader(server.sign_in("Rita"))


def list_ids(page: str) -> list[str]:
    """The ids in the list of cases of a page, in their order."""
    return [html.unescape(text) for text in re.findall(r'<bdi class="id exact">(.*?)</bdi>', page, re.DOTALL)]


def list_links(page: str, words: str) -> list[str]:
    """The addresses behind these words."""
    return [html.unescape(link) for link in re.findall(rf'<a [^>]*href="([^"]*)"[^>]*>(?:<[^>]*>)*{words}', page)]


# ---------------------------------------------------------------- the list of runs


def test_two_runs_are_chosen_in_the_list_and_compared(reader: Reader):
    """By a form that needs no script; the one that began first is A, in whichever order they were chosen."""
    page = reader.read("/runs")
    answer = reader.client.get("/compare?run=after&run=before")

    assert page.count('type="checkbox" name="run"') == 11
    assert '<form method="get" action="/compare">' in page
    assert answer.status_code == 303
    assert answer.headers["location"] == "/compare?a=before&b=after"


@pytest.mark.parametrize("query", ["", "run=after", "run=after&run=after", "run=after&run=before&run=quick"])
def test_another_number_than_two_is_asked_for_again(reader: Reader, query: str):
    """With the list as it was, and what was chosen still chosen."""
    page = reader.read(f"/compare?{query}", 422)

    assert "Choose two runs to compare" in page
    assert page.count(" checked>") == len(set(parse_qs(query).get("run", [])))


def test_runs_of_one_data_set_are_listed_alone(reader: Reader):
    """And ordered by the share that passed; both are in the address."""
    page = reader.read("/runs?dataset=support.jsonl&order=rate")
    names = re.findall(r'<a class="row" href="/runs/([^"]+)"', page)

    assert set(names) == {"before", "after", "quick"}
    assert names[0] == "before"


# ---------------------------------------------------------------- one run


def test_every_case_of_a_run_is_listed(reader: Reader):
    """50 a page; following the links leads through all of them once."""
    seen: list[str] = []
    path: str | None = "/runs/before"
    while path:
        page = reader.read(path)
        seen += list_ids(page)
        older = re.search(r'rel="next" href="([^"]+)"', page)
        path = html.unescape(older[1]) if older else None

    assert len(seen) == CASES
    assert sorted(seen) == [f"answer-{place:04}" for place in range(CASES)]


def test_filters_are_in_the_address_and_select_as_the_run_says(server: RunningServer, reader: Reader):
    """Outcome, reason and group; the count beside each is that of the list it leads to."""
    with open_run(server.folder / "runs" / "before") as run:
        failed = {item.case.id for item in run.items("failed")}
        split = {item.case.id for item in run.items() if item.result.undecided_because == "split"}
        refunds = [item.case.id for item in run.items() if item.case.group == "refund"]
    page = reader.read("/runs/before?outcome=failed")

    assert set(list_ids(page)) <= failed
    assert f"{len(failed)} of {CASES} are listed" in page
    assert set(list_ids(reader.read("/runs/before?reason=split"))) == split
    assert list_ids(reader.read("/runs/before?group=refund&order=data")) == refunds
    assert list_ids(reader.read("/runs/before?q=ANSWER-0007")) == ["answer-0007"]
    assert "No case is like that" in reader.read("/runs/before?q=%25&outcome=failed")


def test_every_case_of_the_list_leads_to_its_page(reader: Reader):
    """The link keeps the filters, so that the page knows which case is next."""
    page = reader.read("/runs/before?outcome=failed")
    links = list_links(page, "Open")
    case = reader.read(links[1])

    assert len(links) == len(list_ids(page))
    assert all("outcome=failed" in link for link in links)
    assert re.search(r"2 of \d+ in the list", case)
    assert html.unescape(re.search(r'rel="prev" href="([^"]+)"', case)[1]) == links[0]  # type: ignore[index]
    assert html.unescape(re.search(r'rel="next" href="([^"]+)"', case)[1]) == links[2]  # type: ignore[index]


def test_a_run_shows_how_many_passed_in_every_run_of_its_data_set(reader: Reader):
    """With an interval, drawn and in words, and a link to compare them."""
    page = reader.read("/runs/before")
    table = page[page.index('id="trend"') :].split("</table>")[0]

    assert re.findall(r'<a href="/runs/(\w+)">', table) == ["after", "quick"]
    assert table.count('<svg class="estimate"') == 3
    assert table.count("/compare?run=") == 2
    assert "Every run of this data set" not in reader.read("/runs/odd")


# ---------------------------------------------------------------- labels count at once


def test_labels_made_on_the_server_count_on_the_next_page(server: RunningServer, reader: Reader):
    """With the corrected rate, as ``adjudge report`` of the folder says it, and a look that is recorded once."""
    pytest.importorskip("scipy")
    folder = server.folder / "runs" / "labelled"
    assert "What people would say" not in reader.read("/runs/labelled")

    _label(folder, 40)
    first, again = reader.read("/runs/labelled"), reader.read("/runs/labelled")
    looks = (folder / "looks.jsonl").read_text(encoding="utf-8").splitlines()
    _label(folder, 1)
    later = reader.read("/runs/labelled")

    assert first == again
    assert len(looks) == 1
    measured = render_html(make_report(folder, measurement=make_measurement(folder)))
    assert find_lead(first) != find_lead(later) == find_lead(measured)
    assert find_lead(reader.read("/runs/labelled/report.html")) == find_lead(measured)


def test_a_page_says_what_makes_its_figures_doubtful_before_any_of_them(server: RunningServer, reader: Reader):
    """Labels of another tool may not be blind; whoever reads what people would pass has read that."""
    pytest.importorskip("scipy")
    folder = server.folder / "runs" / "labelled-elsewhere"
    manifest = make_manifest(17, 60, dataset={"name": "elsewhere.jsonl"})
    keep_run(folder, bind(map(make_item, range(60))), manifest).close()
    with open_label_queue(folder) as queue:
        queue.import_labels([Label(case=f"case-{at}", rater="Zoe", value=at % 3 > 0) for at in range(60)])
    page = reader.read("/runs/labelled-elsewhere")

    assert page.count("not known to be blind") == 1
    assert page.index("not known to be blind") < page.index('aria-label="What people would say"')
    assert "66.7 %" in page


def _label(folder: Path, cases: int) -> None:
    with open_label_queue(folder) as queue:
        for _ in range(cases):
            task = queue.next("Ben")
            assert task is not None
            queue.record("Ben", task.case, True)


def find_lead(page: str) -> str:
    """The sentence on what people would pass."""
    return html.unescape(re.search(r'<p class="lead">([^<]+)</p>', page)[1])  # type: ignore[index]


# ---------------------------------------------------------------- one case


def test_a_case_has_one_address_with_the_judgements_of_every_run(reader: Reader):
    """Its answers have letters: two runs that judged the same answer share one."""
    page = reader.read("/runs/after/case?id=answer-0005")
    table = page[page.index('id="every-run"') :].split("</table>")[0]

    assert re.findall(r'<b class="side-name">(\w)</b>', table) == ["b", "a", "a"]
    assert re.findall(r'href="/runs/(\w+)/case\?id=answer-0005', table) == ["quick", "before"]
    assert "What people said" in page
    assert "Nobody has labelled this case" in page


def test_two_answers_are_shown_beside_each_other(reader: Reader):
    """Where the words of one side alone are marked, and not by the colours of outcomes."""
    page = reader.read("/runs/after/case?id=answer-0005&beside=before")

    assert "of the two texts is the same" in page
    assert '<div class="sides words">' in page


@pytest.mark.parametrize("case", ["..", "a/b?c#d&e=%41", "\u202eevil"])
def test_a_case_with_any_id_is_found_by_the_link_to_it(reader: Reader, case: str):
    """It leads to no other page, whatever the id holds."""
    page = reader.read("/runs/odd")
    link = next(link for link in list_links(page, "Open") if parse_qs(urlsplit(link).query).get("id") == [case])

    assert urlsplit(link).path == "/runs/odd/case"
    reader.read(link)


def test_a_case_with_a_long_id_is_named_by_its_place(reader: Reader):
    """And content of 2 MB is read in parts, one after the other, in the list that the reader comes from."""
    page = reader.read("/runs/odd/case?place=0&outcome=passed")
    parts = 1
    while links := list_links(page, "Show the next part"):
        assert "outcome=passed" in links[0]
        page = reader.read(links[0])
        parts += 1

    assert parts == 20
    assert "Part 20 of 20: characters 1,900,001 to 2,000,000 of 2,000,000" in page
    assert len(page) < 250_000
    assert len(reader.read("/runs/odd/case?place=1")) < 200_000
    reader.read("/runs/odd/case?id=nope", 404)
    reader.read("/runs/odd/case?place=99", 404)


def test_all_steps_and_all_of_a_context_are_on_the_page_of_a_case(reader: Reader):
    """The steps by one link, and the context part by part; neither is in a terminal alone."""
    page = reader.read("/runs/odd/case?id=talk")
    whole = reader.read(list_links(page, "Show the rest")[0])
    last = reader.read("/runs/odd/case?id=talk&part=context.3")

    # Each is in the JSON beside the transcript too.
    assert page.count("turn 650&") == 1
    assert all(whole.count(f"turn {number}") > 1 for number in range(700))
    assert "Part 3 of 3: characters 200,001 to 240,000 of 240,000" in last
    assert re.search(r"<details[^>]* open><summary>Context", last)


def test_each_text_of_a_case_can_be_saved_as_a_file(reader: Reader):
    """Byte for byte, and never as a page, whatever it holds."""
    page = reader.read("/runs/odd/case?id=talk")
    files = {
        name: reader.client.get(next(link for link in list_links(page, f"Save the {name}")))
        for name in ("content", "context")
    }

    assert json.loads(files["content"].text) == TALK
    assert files["context"].text == "A contract. " * 20_000
    for answer in files.values():
        assert answer.headers["content-disposition"].startswith("attachment")
        assert answer.headers["content-type"] == "application/octet-stream"
    reader.read("/runs/odd/case/content?id=talk&of=reference", 404)
    reader.read("/runs/odd/case/content?id=nope", 404)


# ---------------------------------------------------------------- blind


def test_a_case_of_an_open_plan_shows_no_verdict_before_it_is_labelled(server: RunningServer):
    """To those who are to label it: neither on its page nor in a list that would tell it. Who looks is remembered."""
    folder = server.folder / "runs" / "planned"
    with open_run(folder) as run:
        plan = make_plan(run, seed=1)
    write_plan(plan, folder)
    case = plan.order[0].case
    ana = Reader(server.sign_in("Ana"))
    other = Reader(server.sign_in("Rita"))

    page = ana.read(f"/runs/planned/case?id={case}")
    assert "This case is yours to label" in page
    assert "What the judge said" not in page
    assert case not in list_ids(ana.read("/runs/planned?outcome=passed&order=data"))
    assert "yours to label: not shown before" in ana.read("/runs/planned")
    assert "What the judge said" in other.read(f"/runs/planned/case?id={case}")

    assert "This case is yours to label" in ana.read(f"/runs/planned-again/case?id={case}")
    assert "What the judge said" in other.read(f"/runs/planned-again/case?id={case}")
    token = find_token(ana.client, f"/runs/planned/case?id={case}")
    form = {"case": case, "csrf_token": token}
    assert ana.client.post("/runs/planned/case/look", data=form).status_code == 303
    assert "What the judge said" in ana.read(f"/runs/planned/case?id={case}")
    with open_label_queue(folder) as queue:
        assert queue.record("Ana", case, True).blind is False
        assert queue.record("Ana", plan.order[1].case, True).blind is True


@pytest.mark.parametrize("path", ["/runs/drawn/report.html", "/compare/report.html?a=drawn-again&b=drawn"])
def test_who_saves_a_report_labels_no_case_of_it_blind(server: RunningServer, path: str):
    """The file holds every verdict, so a label that is given after it was saved does not pass for a blind one."""
    for name in ("drawn", "drawn-again"):
        shutil.copytree(server.folder / "runs" / "planned-again", server.folder / "runs" / name, dirs_exist_ok=True)
    folder = server.folder / "runs" / "drawn"
    with open_run(folder) as run:
        plan = make_plan(run, seed=1)
    write_plan(plan, folder)
    try:
        Reader(server.sign_in("Ana")).read(path)
        with open_label_queue(folder) as queue:
            assert queue.record("Ana", plan.order[0].case, True).blind is False
            assert queue.record("Rita", plan.order[0].case, True).blind is True
    finally:
        for name in ("drawn", "drawn-again"):
            shutil.rmtree(server.folder / "runs" / name)


# ---------------------------------------------------------------- two runs


def test_the_comparison_has_the_figures_and_words_of_adjudge_diff(server: RunningServer, reader: Reader):
    """Two by two, whose numbers add up to all cases, and each leads to as many."""
    runs = server.folder / "runs"
    compared = diff(runs / "before", runs / "after")
    page = reader.read("/compare?a=before&b=after")
    cells = re.findall(r'<a href="([^"]+)"><b>([\d,]+)</b>', page)

    assert f"{compared.lost:,} regressed, {compared.gained:,} improved" in page
    assert sum(int(number) for _, number in cells) == compared.cases
    for link, number in cells:
        listed = reader.read(html.unescape(link))
        assert f"{number} of {compared.cases} are listed" in listed


def test_two_judges_regress_nothing(reader: Reader):
    """Neither word is on the page, not even unseen: A passes what B fails."""
    page = reader.read("/compare?a=before&b=quick")

    assert re.search(r"passes \d+ that .* fails", page)
    assert not re.search("regress|improve", page, re.IGNORECASE)


def test_where_both_changed_the_page_says_that_nobody_can_tell(reader: Reader):
    """And has the words for neither."""
    page = reader.read("/compare?a=quick&b=after")

    assert "cannot be told apart" in page
    assert "passed in A only" in page
    assert not re.search("regress|improve", page, re.IGNORECASE)


def test_lost_passes_come_first_with_the_criteria_that_moved(server: RunningServer, reader: Reader):
    """In the row; a filter by a criterion lists those in which it moved."""
    compared = diff(server.folder / "runs" / "before", server.folder / "runs" / "after")
    lost = {change.case for change in compared.listed if change.lost}
    page = reader.read("/compare?a=before&b=after")
    moved = re.findall(r'<span class="moved" dir="auto">([^<]+)</span>', page)
    polite = reader.read("/compare?a=before&b=after&criterion=polite")

    assert set(list_ids(page)[: len(lost)]) == lost
    assert any(re.search(r"polite 0\.\d+ → 0\.\d+", line) for line in moved)
    assert f"{compared.criteria['polite'].differing} of {CASES} are listed" in polite


def test_a_comparison_is_walked_case_by_case(reader: Reader):
    """From the list of the comparison to a case and on to the next of that list."""
    page = reader.read("/compare?a=before&b=after&before=passed&after=not")
    links = list_links(page, "Open")
    case = reader.read(links[0])

    assert f"1 of {len(links)} in the comparison" in case
    assert html.unescape(re.search(r'rel="next" href="([^"]+)"', case)[1]) == links[1]  # type: ignore[index]


def test_pairs_are_compared_by_what_is_preferred(reader: Reader):
    """A pair has both of its contents on its page; pairs and single contents are not compared."""
    page = reader.read("/compare?a=pairs&b=pairs-again&show=all")
    case = reader.read(list_links(page, "Open")[0])

    assert "changed from first to second" in page
    assert "Preferences" in page
    assert "left 0" in case
    assert "right 0" in case
    assert reader.client.get("/compare?a=pairs&b=before").status_code == 409


def test_what_cannot_be_compared_is_said(reader: Reader):
    """A run that is not here, and a folder's path is on no page."""
    assert "there is no run" in reader.read("/compare?a=before&b=nope", 404).lower()
    assert "/runs/before" not in re.sub(r'href="[^"]*"', "", reader.read("/compare?a=before&b=after"))


# ---------------------------------------------------------------- hostile content

HOSTILE_PATHS = (
    "/runs",
    "/runs/hostile",
    "/runs/hostile/case?place=0",
    "/runs/hostile/case?place=1&beside=hostile-again",
    "/runs/odd",
    "/runs/odd/case?place=3",
    "/runs/odd/case?place=4",
    "/compare?a=hostile&b=hostile-again&show=all",
    "/compare?a=before&b=after&q=%3Cscript%3Ealert(1)%3C/script%3E&criterion=%22%3E%3Cimg+src=x&before=%3Cb%3E&order=x",
    "/runs/before?q=%22%3E%3Cscript%3E&group=%3Cimg%3E&reason=javascript:alert(1)&order=%27&page=999999",
    "/runs?dataset=%22%3E%3Cscript%3E&order=%3C",
)


@pytest.mark.parametrize("path", HOSTILE_PATHS)
def test_hostile_content_is_text_and_nothing_else(reader: Reader, path: str):
    """No element, attribute, address or direction of theirs: in names, ids, filters, criteria and differences."""
    page = reader.read(path)

    assert "<script>alert" not in page
    assert "<img" not in page
    assert "id=forged" not in page.replace("&lt;b id=forged", "")
    assert not re.search(r'(?:href|src|action)="(?!/|#)[^"]*"', page), "an address that is not ours"
    assert not any(mark in page for mark in "\u202e\u2066\x1b\x07"), "a direction or control character"
