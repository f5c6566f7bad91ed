"""``adjudge view``: who gets in, what is shown, and that nothing is written, left behind or read from elsewhere."""

from __future__ import annotations

import asyncio
import hashlib
import html
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from adjudge import open_run
from adjudge.labels import open_label_queue
from kit import cli
from kit.cli import Line
from kit.compared_runs import keep_hostile, keep_versions, make_manifest
from kit.labels import make_run
from kit.patience import HANG, wait_for
from kit.process import start_module
from kit.reports import keep_run, make_item
from kit.server_process import make_environment
from kit.viewing import Viewing, view_below, view_named

pytestmark = pytest.mark.timed


@pytest.fixture(scope="module", name="folder")
def keep_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("view")
    keep_versions(folder, 60)
    keep_hostile(folder / "runs")
    make_run(folder / "labelled", 6)
    with open_label_queue(folder / "labelled") as queue:
        for task in iter(lambda: queue.next("Ben"), None):
            queue.record("Ben", task.case, True)
    return folder


@pytest.fixture(name="viewing")
def start(folder: Path) -> Iterator[Viewing]:
    with view_below(folder) as viewing:
        yield viewing


def digest_folder(folder: Path) -> dict[str, str]:
    """Every file below a folder, with the digest of what is in it."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


# ---------------------------------------------------------------- who gets in


def test_nobody_reads_a_page_without_the_address(viewing: Viewing):
    """Whoever only knows the port gets one answer, and no name of a run."""
    stranger = viewing.open_browser()

    for path in ("/", "/runs", "/runs/before", "/compare?a=before&b=after", "/open/", f"/open/{'x' * 43}", "/nope"):
        answer = stranger.get(path)
        assert answer.status_code == 403
        assert "before" not in answer.text.replace("before it", "")


def test_the_address_works_once(viewing: Viewing):
    """It gives a cookie that no script reads and no other site's request carries, and then it is used up."""
    browser, late = viewing.open_browser(), viewing.open_browser()
    first = browser.get(viewing.address)
    cookie = first.headers["set-cookie"].lower()

    assert first.status_code == 200
    assert 'content="0;url=/runs"' in first.text
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert "path=/" in cookie
    assert late.get(viewing.address).status_code == 403
    assert late.get("/runs").status_code == 403
    assert browser.get("/runs").status_code == 200
    assert browser.get(viewing.address).status_code == 200, "who has the cookie may open it again"


@pytest.mark.parametrize(
    "headers", [{"Sec-Purpose": "prefetch"}, {"Sec-Purpose": "prefetch;prerender"}, {"Purpose": "prefetch"}]
)
def test_a_page_that_nobody_asked_for_does_not_use_the_address_up(viewing: Viewing, headers: dict[str, str]):
    """Nor does a look at its head."""
    assert viewing.open_browser(**headers).get(viewing.address).status_code == 403
    assert viewing.open_browser().head(viewing.address).status_code == 403
    viewing.enter()


def test_another_name_for_the_machine_is_refused(viewing: Viewing):
    """A page of another site can have its own name point here (DNS rebinding): the name it asks for tells."""
    browser = viewing.enter()

    for host in ("evil.example", f"evil.example:{viewing.url.rpartition(':')[2]}", "127.0.0.1.evil.example"):
        assert browser.get("/runs", headers={"Host": host}).status_code == 421
    assert viewing.open_browser().get(viewing.address, headers={"Host": "evil.example"}).status_code == 421


@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1", "http://localhost"])
def test_a_request_of_another_site_is_refused_with_the_cookie_too(viewing: Viewing, origin: str):
    """Reading as well as writing."""
    browser = viewing.enter()

    assert browser.get("/runs", headers={"Origin": origin}).status_code == 403
    assert browser.post("/theme", data={"theme": "dark"}, headers={"Origin": origin}).status_code == 403


def test_no_page_can_be_framed(viewing: Viewing):
    """Those that are shown, the first one and a refusal: no page of another site is laid over them or reads them."""
    browser, stranger = viewing.open_browser(), viewing.open_browser()
    answers = [browser.get(viewing.address), stranger.get("/runs"), browser.post("/runs/before")]
    paths = (
        "/runs",
        "/runs/before",
        "/runs/before/case?id=answer-0001&beside=after",
        "/runs/before/calls",
        "/compare?a=before&b=after",
        "/compare?a=before&b=nope",
        "/nope",
    )
    answers += [browser.get(path) for path in paths]

    for answer in answers:
        assert answer.headers["x-frame-options"] == "DENY", answer.url
        assert "frame-ancestors 'none'" in answer.headers["content-security-policy"], answer.url
        assert answer.headers["cross-origin-opener-policy"] == "same-origin", answer.url


# ---------------------------------------------------------------- read only


def test_looking_leaves_no_trace(viewing: Viewing, folder: Path):
    """Every file is as it was, none is added and none removed, also where people labelled and runs are compared."""
    before = digest_folder(folder)
    browser = viewing.enter()

    for path in (
        "/runs",
        "/runs/before?q=refund",
        "/runs/before/report.html",
        "/runs/before/case?id=answer-0001&beside=after",
        "/compare?a=before&b=after",
        "/compare/report.html?a=before&b=after",
        "/runs/labelled",
        "/runs/labelled/case?place=1",
    ):
        assert browser.get(path).status_code == 200, path

    assert digest_folder(folder) == before


def test_what_people_said_is_shown_as_on_a_server(viewing: Viewing):
    """From a copy of their labels."""
    pytest.importorskip("scipy")
    browser = viewing.enter()

    assert "People pass 100 % of these 6 cases" in html.unescape(browser.get("/runs/labelled").text)
    assert '<th scope="row" class="first foreign">Ben</th>' in browser.get("/runs/labelled/case?place=1").text


def test_nothing_else_of_a_server_is_there(viewing: Viewing):
    """No ledger, no approvals, no sign-in, no labels and nothing for programs; no method but reading."""
    browser = viewing.enter()

    for path in (
        "/ledger",
        "/results",
        "/approvals",
        "/labels",
        "/labels/before",
        "/signin",
        "/v1/runs",
        "/metrics",
        "/openapi.json",
    ):
        assert browser.get(path).status_code == 404, path
    for method in ("post", "put", "delete", "patch"):
        assert getattr(browser, method)("/runs/before").status_code == 405
    look = browser.post("/runs/before/case/look", data={"case": "answer-0001"})
    assert look.status_code == 403
    assert 'href="/signin"' not in browser.get("/runs").text


@pytest.mark.parametrize(
    "name", ["..", "%2E%2E", "..%2F..%2Fetc", "%2Fetc%2Fpasswd", "before%2F..", "before%00", "C:%5C", "x" * 5_000]
)
def test_a_name_leads_to_no_folder_but_those_that_are_shown(viewing: Viewing, name: str):
    """It is looked up, and never joined to a path."""
    browser = viewing.enter()

    assert browser.get(f"/runs/{name}/case?id=x").status_code == 404
    assert browser.get(f"/compare?a={name}&b=before").status_code in {404, 422}


def test_a_link_in_a_run_is_not_followed(viewing: Viewing, folder: Path, tmp_path: Path):
    """Neither a run that is a link, nor a file of a run."""
    (folder / "linked").symlink_to(folder / "after")
    for name in ("results.sqlite", "labels.sqlite", "plan.json", "looks.jsonl"):
        place = folder / f"with-{name}"
        shutil.copytree(folder / "after", place)
        (place / name).unlink(missing_ok=True)
        (place / name).symlink_to("/etc/passwd")
    browser = viewing.enter()
    try:
        assert browser.get("/runs/linked").status_code == 404
        for name in ("results.sqlite", "labels.sqlite", "plan.json", "looks.jsonl"):
            answer = browser.get(f"/runs/with-{name}")
            assert answer.status_code == 409
            assert "is a link" in answer.text
            assert "root:" not in answer.text
    finally:
        (folder / "linked").unlink()
        for place in folder.glob("with-*"):
            shutil.rmtree(place)


def test_runs_of_any_name_are_shown(tmp_path: Path):
    """What somebody called a folder is text; two of one name are told apart."""
    names = ["läufe märz", "<img src=x onerror=alert(1)>", "\u202eevil", "a&b=c#d", "javascript:alert(1)"]
    folders = [tmp_path / name for name in names] + [tmp_path / "other" / names[0]]
    for folder in folders:
        folder.mkdir(parents=True)
        keep_run(folder, [make_item(0)], make_manifest(1, 1)).close()
    with view_named(folders) as viewing:
        browser = viewing.enter()
        page = browser.get("/runs").text
        links = [html.unescape(link) for link in re.findall(r'<a class="row" href="([^"]+)"', page)]

        assert len(links) == 6
        assert "läufe märz (2)" in page
        assert "<img" not in page
        assert "\u202e" not in page
        for link in links:
            assert browser.get(link).status_code == 200, link


def test_cases_and_runs_that_come_later_are_there_on_reload(tmp_path: Path):
    """Without a restart: a run in progress grows under the eyes of who reads it."""
    keep_run(tmp_path / "first", [make_item(0)], make_manifest(1, 3) | {"status": "running"}).close()
    with view_below(tmp_path) as viewing:
        browser = viewing.enter()
        assert "1 of 1 are listed" in browser.get("/runs/first").text

        with open_run(tmp_path / "first") as run:
            asyncio.run(run.store.keep(make_item(1)))
            assert "2 of 2 are listed" in browser.get("/runs/first").text
        keep_run(tmp_path / "runs" / "second", [make_item(0)], make_manifest(2, 1)).close()
        assert "/runs/second" in browser.get("/runs").text


# ---------------------------------------------------------------- the command


def start_command(folder: Path, *options: str, **variables: str) -> subprocess.Popen[str]:
    """``adjudge view`` in a process of its own, in a folder."""
    command = [sys.executable, "-c", "from adjudge.cli import main; main()", "view", *options]
    environment = make_environment(variables)
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def test_a_folder_without_a_run_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any):
    """Before anything listens."""
    cli.isolate(monkeypatch, tmp_path)

    result = Line(capsys)("view", "nothing", "--no-browser")

    assert result.status == 2
    assert "nothing holds no run" in result.err


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Any):
    """In one sentence."""
    cli.isolate(monkeypatch, tmp_path)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    result = Line(capsys)("view")

    assert result.status == 2
    assert "pip install 'adjudge[server]'" in result.err
    assert len(result.err.splitlines()) == 1


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="a process there is interrupted in another way")
def test_a_signal_that_comes_as_soon_as_the_address_is_known_stops_it(folder: Path):
    """Whoever starts it reads the address, and may stop it before it listens for signals."""
    process = start_module("stopped_command", str(folder), "view", "--no-browser", stderr=subprocess.STDOUT)
    output, _ = process.communicate(timeout=HANG)

    assert (process.returncode, "http://127.0.0.1" in output) == (0, True), output


@pytest.mark.integration
@pytest.mark.skipif(sys.platform == "win32", reason="a process there is interrupted in another way")
def test_the_secret_is_on_no_command_line_and_ctrl_c_ends_it(folder: Path, tmp_path: Path):
    """A browser gets a file that its owner alone can read; it is removed with the end, which is no failure."""
    seen, browser = tmp_path / "seen", tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {seen}.new && mv {seen}.new {seen}\n', encoding="utf-8")
    browser.chmod(0o700)
    process = start_command(folder, BROWSER=f"{browser} %s")
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        secret = address.rpartition("/")[2]
        wait_for(lambda: seen.exists() or process.poll() is not None)
        place = Path(seen.read_text(encoding="utf-8").removeprefix("file://"))

        assert len(secret) > 40
        assert secret not in seen.read_text(encoding="utf-8")
        assert address in place.read_text(encoding="utf-8")
        assert place.stat().st_mode & 0o077 == 0
        assert place.parent.stat().st_mode & 0o077 == 0
        if Path("/proc").is_dir():
            assert secret.encode() not in Path(f"/proc/{process.pid}/cmdline").read_bytes()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=HANG)
    finally:
        process.kill()
        process.wait(HANG)

    assert process.returncode == 0
    assert "Traceback" not in errors
    assert not place.exists()


@pytest.mark.integration
def test_each_view_listens_on_a_port_of_its_own_of_this_machine(folder: Path):
    """Two at once: nobody chose the ports, and each address has a secret of its own."""
    views = [start_command(folder, "--no-browser") for _ in range(2)]
    try:
        addresses = [view.stdout.readline().strip() for view in views if view.stdout is not None]
    finally:
        for view in views:
            view.kill()
            view.communicate(timeout=HANG)
    found = [re.fullmatch(r"http://127\.0\.0\.1:(\d+)/open/(\S{41,})", address) for address in addresses]

    assert all(found), addresses
    ports, secrets = zip(*[match.groups() for match in found if match is not None], strict=True)
    assert len({*ports}) == len({*secrets}) == 2
