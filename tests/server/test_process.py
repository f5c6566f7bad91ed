"""``adjudge serve`` as a process: how it starts, reloads, and stops; and keys and accounts on the command line."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kit import docs, house
from kit.cli import Line
from kit.patience import HANG, wait_for
from kit.process import start_module
from kit.server import CONFIG, PASSWORD, httpx

pytestmark = [pytest.mark.integration, pytest.mark.skipif(os.name == "nt", reason="signals of Unix")]

SLOW = '''
"""A judge in code that answers once there is a file."""

import asyncio
from pathlib import Path


async def answer(content):
    while not Path("release").exists():
        await asyncio.sleep(0.01)
    return True
'''

SLOW_GATE = """
[judges.slow]
seats = ["python:slow_judge:answer"]

[gates.slow]
rubric = "one"
judge = "slow"

[rubrics]
one = "one.yaml"

[server]
concurrency = 1
queue = 1
"""


@dataclass
class Process:
    """A server in a process of its own."""

    process: subprocess.Popen[str]
    url: str = ""
    lines: list[str] = field(default_factory=list)

    def wait_for(self, words: str) -> None:
        """Wait until the words are on its standard error."""
        wait_for(lambda: any(words in line for line in self.lines))

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(timeout=HANG)


@contextmanager
def serving(folder: Path, *options: str):
    """``adjudge serve`` in a folder, once it answers."""
    command = [sys.executable, "-m", "adjudge", "serve", "--port", "0", *options]
    started = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    running = Process(started)

    reader = threading.Thread(target=lambda: [running.lines.append(line) for line in started.stderr or ()], daemon=True)
    reader.start()
    try:
        running.wait_for("serves on")
        match = re.search(r"http://\S+?(?=;)", "".join(running.lines))
        assert match is not None
        running.url = match[0]
        running.wait_for("startup complete")
        yield running
    finally:
        if started.poll() is None:
            started.kill()
        started.wait(timeout=HANG)
        reader.join(timeout=HANG)
        for stream in (started.stdout, started.stderr):
            if stream is not None:
                stream.close()


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "adjudge.toml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


@pytest.fixture
def line(capsys, folder, monkeypatch):
    monkeypatch.chdir(folder)
    return Line(capsys)


def ask(url: str, key: str, gate: str = "publish", content: str = "short"):
    return httpx.post(
        f"{url}/v1/gates/{gate}/check",
        json={"content": content},
        headers={"Authorization": f"Bearer {key}"},
        timeout=HANG,
    )


def test_the_first_gate_of_the_page_answers(tmp_path, line, require):
    """The page's files, its request and its program, with the port of a server of the test's own."""
    require("curl", shutil.which("curl"), "install curl")
    blocks = {item.title: item for item in docs.read_blocks(house.ROOT / "docs" / "server.md") if item.title}
    for name in ("adjudge.toml", "polite.yaml", "polite.py", "first_client.py"):
        docs.write_file(blocks[name], tmp_path)
    made = line("keys", "create", "website", "--scope", "judge", "--gate", "requests")
    (tmp_path / "key.txt").write_text(made.out, encoding="utf-8")
    (tmp_path / "evaluator.txt").write_text(line("keys", "create", "evaluator", "--scope", "judge").out)
    with serving(tmp_path) as running:
        port = running.url.rpartition(":")[2]
        asked = blocks["first-ask"].text.replace("8318", port)
        evaluated = blocks["evaluate"].text.replace("8318", port)
        narrow = evaluated.replace("evaluator.txt", "key.txt").replace("--fail ", "")
        program = blocks["first_client.py"].text.replace("8318", port)
        output = [
            subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=HANG).stdout
            for command in (
                ["bash", "-c", asked],
                [sys.executable, "-c", program],
                ["bash", "-c", evaluated],
                ["bash", "-c", narrow],
            )
        ]

    assert json.loads(output[0])["allowed"] is True
    assert json.loads(output[0])["result"]["criteria"][0]["evidence"] == ["please"]
    assert output[1] == "False looked for the word please\n"
    assert json.loads(output[2])["outcome"] == "passed"
    assert json.loads(output[3])["status"] == 403


def test_a_server_says_where_it_listens_and_its_public_address(folder):
    """Both, because people open the one and a proxy asks the other."""
    config = f'{CONFIG}\n[server]\npublic_url = "https://adjudge.example"\n'
    (folder / "adjudge.toml").write_text(config, encoding="utf-8")
    with serving(folder) as running:
        assert httpx.get(f"{running.url}/readyz", timeout=HANG).status_code == 200
        assert any(running.url in line and "https://adjudge.example" in line for line in running.lines)


def test_a_server_starts_answers_reloads_and_stops(folder, line):
    """With SIGHUP it takes a new configuration, keeps the old one where the new one is bad, and says why."""
    key = line("keys", "create", "ci", "--scope", "judge").out.strip()
    with serving(folder) as running:
        assert ask(running.url, key).json()["allowed"] is True

        (folder / "adjudge.toml").write_text(CONFIG.replace("max = 40", "max = 3"), encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("was reloaded")
        assert ask(running.url, key).json()["allowed"] is False

        (folder / "adjudge.toml").write_text(CONFIG.replace("[gates.publish]", "[gates.publish]\nmood = 1"), "utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("the old one stays")
        running.wait_for("unknown key 'mood'")
        assert ask(running.url, key).json()["allowed"] is False

        (folder / "adjudge.toml").write_text(CONFIG.replace("adjudge.db", "other.db"), encoding="utf-8")
        running.process.send_signal(signal.SIGHUP)
        running.wait_for("[ledger] was changed, which needs a restart")
        assert running.stop() == 0


def test_a_signal_that_comes_as_soon_as_the_address_is_known_stops_it(folder):
    """Whoever starts it reads the address, and may stop it before it listens for signals."""
    process = start_module("stopped_command", str(folder), "serve", "--port", "0", stderr=subprocess.STDOUT)
    output, _ = process.communicate(timeout=HANG)

    assert (process.returncode, "http://127.0.0.1" in output) == (0, True), output


def test_what_is_under_way_is_finished_and_what_waits_is_handed_back(folder, line):
    """SIGTERM: one waits and is answered with 503 at once, one is being judged and is answered when it is."""
    (folder / "adjudge.toml").write_text(CONFIG + SLOW_GATE, encoding="utf-8")
    (folder / "slow_judge.py").write_text(SLOW, encoding="utf-8")
    (folder / "one.yaml").write_text(
        "name: One\ncriteria: [{name: good, description: It is good.}]\n", encoding="utf-8"
    )
    key = line("keys", "create", "ci", "--scope", "judge").out.strip()
    watching = line("keys", "create", "watcher", "--scope", "read").out.strip()
    answers: list[tuple[int, bool, str]] = []

    def check(content: str) -> None:
        answer = ask(running.url, key, "slow", content)
        answers.append((answer.status_code, answer.json().get("allowed", False), answer.headers.get("retry-after", "")))

    with serving(folder) as running:
        threads = [threading.Thread(target=check, args=(text,)) for text in ("one", "two")]
        for waiting, thread in enumerate(threads):
            thread.start()
            wait_for(lambda waiting=waiting: count_contents(running.url, watching) == (1, waiting))
        full = ask(running.url, key, "slow", "three")
        assert (full.status_code, full.json()["code"], full.headers["retry-after"]) == (503, "busy", "1")
        running.process.send_signal(signal.SIGTERM)
        wait_for(lambda: answers)
        assert answers == [(503, False, "1")]
        (folder / "release").touch()
        status = running.process.wait(timeout=HANG)
        for thread in threads:
            thread.join(HANG)

    assert status == 0
    assert answers == [(503, False, "1"), (200, True, "")]


def count_contents(url: str, key: str) -> tuple[int, int]:
    """The contents that are being judged, and those that wait."""
    shown = httpx.get(f"{url}/metrics", headers={"Authorization": f"Bearer {key}"}, timeout=HANG).text
    counts = dict(re.findall(r"^adjudge_(judging|waiting) ([0-9.]+)$", shown, re.MULTILINE))
    return int(float(counts["judging"])), int(float(counts["waiting"]))


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ("[server]\nprot = 1\n", ("[server]", "prot", "port")),
        ("[server]\nport = 'a'\n", ("[server]: port",)),
        ("[server]\nport = 99999\n", ("[server]: port", "65,535")),
        ("[server]\nhost = '0.0.0.0'\n", ("[server] public_url", "0.0.0.0")),
        ("[server]\npublic_url = 'http://adjudge.example'\n", ("[server] public_url", "https")),
        ("[server]\npublic_url = 'https://a.example/x'\n", ("[server] public_url",)),
        ("[server]\npublic_url = 'http://localhost:8318'\n", ("[server] public_url", "127.0.0.1")),
        ("[server]\npublic_url = 'http://app.localhost.'\n", ("[server] public_url", "127.0.0.1")),
        ("[server]\nhost = 'localhost'\n", ("[server] host", "127.0.0.1")),
        ("[server]\nlargest_body = 0\n", ("[server]: largest_body",)),
        ("[server]\ndeadline = 0\n", ("[server]: deadline",)),
        ("[server]\ndeadline = true\n", ("[server]: deadline",)),
        ("[server]\nhosts = 'a'\n", ("[server]: hosts",)),
        ("[server]\nhosts = ['a:80']\n", ("[server]: hosts",)),
        ("[server]\nproxies = ['nobody']\n", ("[server]: proxies",)),
        ("[server]\njudge = 'http://127.0.0.1:1/v1#x'\n", ("[server]: judge",)),
        ("[gates.'a/b']\nrules = ['json']\n", ("[gates.a/b]", "slash")),
        ("[gates.g]\nrubric = 'nothing'\n", ("[gates.g]", "nothing")),
        ("[rubrics]\nown = 'missing.yaml'\n", ("missing.yaml",)),
    ],
)
def test_a_configuration_that_is_wrong_starts_no_server(line, folder, config, names):
    """One sentence that names the file, the table and the key."""
    (folder / "adjudge.toml").write_text(CONFIG + config, encoding="utf-8")
    ran = line("serve", "--port", "0")

    assert ran.status == 2
    assert all(name in ran.sentence for name in ("adjudge.toml", *names)), ran.sentence


@pytest.mark.parametrize(("option", "value"), [("--port", "70000"), ("--uds", "hook.sock"), ("--uds-mode", "0777")])
def test_an_option_that_is_wrong_is_named_as_it_was_typed(line, folder, option, value):
    """And not the file, which is right."""
    ran = line("serve", option, value)

    assert ran.status == 2
    assert f"{option} must be" in ran.sentence
    assert "adjudge.toml" not in ran.sentence


def test_a_server_needs_a_ledger(line, folder):
    """Keys and sessions are kept in its database, and decisions on its record."""
    (folder / "adjudge.toml").write_text("[gates.g]\nrules = ['json']\n", encoding="utf-8")

    assert line("serve").status == 2


def test_nobody_is_let_in_without_a_key_from_other_machines(line, folder):
    """--allow-anonymous is for this machine's own addresses alone."""
    (folder / "adjudge.toml").write_text(CONFIG + "[server]\npublic_url = 'https://a.example'\n", encoding="utf-8")
    ran = line("serve", "--host", "0.0.0.0", "--allow-anonymous")

    assert ran.status == 2
    assert "--allow-anonymous" in ran.sentence


def test_without_a_key_one_may_judge_and_read_where_that_was_asked_for(folder):
    """On this machine, by name; and no more than that."""
    with serving(folder, "--allow-anonymous") as running:
        answer = httpx.post(f"{running.url}/v1/gates/publish/check", json={"content": "short"}, timeout=HANG)
        assert answer.json()["metadata"]["adjudge_caller"] == "local:local"
        assert httpx.get(f"{running.url}/v1/ledger/head", timeout=HANG).status_code == 200
        assert httpx.get(f"{running.url}/approvals", timeout=HANG).status_code == 200
        for closed in ("/approvals/deny", "/approvals/mine", "/labels"):
            assert httpx.get(f"{running.url}{closed}", timeout=HANG).status_code == 403, closed
        vote = {"approved": False, "reason": "no"}
        voted = httpx.post(f"{running.url}/v1/approvals/x/votes", json=vote, timeout=HANG)
        assert (voted.status_code, voted.json()["code"]) == (403, "forbidden")
        assert httpx.get(f"{running.url}/v1/gates", headers={"Host": "evil.example"}, timeout=HANG).status_code == 421
        cross = {"Origin": "https://evil.example"}
        assert (
            httpx.post(
                f"{running.url}/v1/gates/publish/check", json={"content": "x"}, headers=cross, timeout=HANG
            ).status_code
            == 403
        )


def test_keys_are_made_listed_rotated_and_revoked(line):
    """The text of a key is printed once; the list shows what it may do."""
    made = line("keys", "create", "ci", "--scope", "judge", "--gate", "publish", "--expires-in", "30")
    prefix = made.out.strip()[4:16]
    assert re.fullmatch(r"adj_[0-9a-f]{12}_[\w-]{43}\n", made.out)

    (listed,) = line("keys", "list", "--json").document["keys"]
    assert (listed["prefix"], listed["permissions"]["gates"]) == (prefix, ["publish"])
    other = line("keys", "rotate", prefix, "--json").document["key"]["prefix"]
    assert line("keys", "revoke", other).status == 0
    assert [bool(item["revoked_at"]) for item in line("keys", "list", "--json").document["keys"]] == [True, True]
    assert line("keys", "revoke", "000000000000").status == 2


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), ("scope",)),
        (("--scope", "root"), ("scope", "root")),
        (("--scope", "judge", "--gate", "nothing"), ("nothing",)),
        (("--scope", "approve"), ("--approver",)),
        (("--scope", "label"), ("--rater",)),
        (("--scope", "judge", "--expires-in", "-1"), ("--expires-in",)),
    ],
)
def test_a_key_that_cannot_be_is_not_made(line, options, names):
    """With a sentence that says what is missing."""
    ran = line("keys", "create", "ci", *options)

    assert ran.status == 2
    assert all(name in ran.sentence for name in names)


def test_accounts_are_added_changed_and_disabled(line, monkeypatch):
    """The password comes from standard input; no two accounts are one approver."""
    import io

    def typed(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.StringIO(text))

    typed(f"{PASSWORD}\n")
    assert line("accounts", "add", "ana", "--scope", "approve", "--approver", "Ana").status == 0
    typed(f"{PASSWORD}\n")
    again = line("accounts", "add", "ana2", "--scope", "approve", "--approver", "Ana")
    assert (again.status, "Ana" in again.sentence) == (2, True)
    typed("short\n")
    assert line("accounts", "password", "ana").status == 2
    typed("")
    assert "no password was given" in line("accounts", "password", "ana").sentence
    typed("another long password\n")
    assert line("accounts", "password", "ana").status == 0
    assert line("accounts", "disable", "ana").status == 0
    (listed,) = line("accounts", "list", "--json").document["accounts"]
    assert (listed["name"], bool(listed["disabled_at"])) == ("ana", True)
    assert "password" not in json.dumps(listed)
    assert line("accounts", "enable", "ana").status == 0
