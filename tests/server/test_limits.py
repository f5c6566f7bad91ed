"""How much one request may ask for: rules, criteria and content, by settings of the server."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kit.patience import wait_for
from kit.server import CONFIG, run_server

pytestmark = pytest.mark.timed


SETTINGS = """
[server]
most_rules = 3
most_criteria = 4
largest_content = 1_000
"""

JUDGE = """
def answer(content, rubric=None):
    return {criterion.name: 1 for criterion in rubric.criteria} if rubric else True
"""
"""Its first answer must fit the question, whichever test comes first."""
JUDGED = '\n[judges.calm]\nseats = ["python:{module}:answer"]\n\n[defaults]\njudge = "calm"\n'

RULE = {"length": 10_000_000}
INNER = {"some_of": [RULE, RULE]}
SENTENCES = [f"Good {number}." for number in range(5)]

CRITERIA = [{"name": f"c{number}", "description": "Good."} for number in range(5)]


@contextmanager
def serve(folder: Path, settings: str) -> Iterator[Callable[..., Any]]:
    # A module has its name once in a process.
    module = f"{folder.name}_judges"
    (folder / f"{module}.py").write_text(JUDGE, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(folder))
        with run_server(folder, config=CONFIG + settings + JUDGED.format(module=module)) as server:
            client = server.open_client(key=server.make_key("judge"))

            def post(path: str, **body: Any) -> Any:
                return client.post(path, json=body)

            yield post


@pytest.fixture(scope="module")
def post(tmp_path_factory: Any) -> Iterator[Callable[..., Any]]:
    with serve(tmp_path_factory.mktemp("server"), SETTINGS) as post:
        yield post


@pytest.fixture(scope="module")
def post_to_default(tmp_path_factory: Any) -> Iterator[Callable[..., Any]]:
    """To a server whose configuration sets no limit."""
    with serve(tmp_path_factory.mktemp("default"), "") as post:
        yield post


ALLOWED: dict[str, tuple[str, dict[str, Any]]] = {
    "as many rules": ("/v1/evaluate", {"content": "x", "criteria": "Good.", "rules": [RULE] * 3}),
    "as many rules inside": ("/v1/evaluate", {"content": "x", "criteria": "Good.", "rules": [INNER]}),
    "as many criteria": ("/v1/evaluate", {"content": "x", "criteria": SENTENCES[:4]}),
    "as many of a rubric": ("/v1/evaluate", {"content": "x", "rubric": {"name": "r", "criteria": CRITERIA[:4]}}),
    "as long a content": ("/v1/evaluate", {"content": "x" * 1_000, "criteria": "Good."}),
    "as long in bytes": ("/v1/gates/publish/check", {"content": "\U0001f600" * 30}),
    "as long a text for a gate": ("/v1/gates/publish/check", {"content": "x", "task": "x" * 1_000}),
}

REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "too many rules": ("/v1/evaluate", {"content": "x", "criteria": "Good.", "rules": [RULE] * 4}, "4 rules"),
    "too many rules inside": ("/v1/evaluate", {"content": "x", "criteria": "Good.", "rules": [INNER, RULE]}, "rules"),
    "named the other way": (
        "/v1/evaluate",
        {"content": "x", "criteria": "Good.", "rules": [{"name": "some-of", "rules": [RULE] * 3}]},
        "4 rules",
    ),
    "too many rules of a rubric": (
        "/v1/evaluate",
        {"content": "x", "rubric": {"name": "r", "criteria": [{**CRITERIA[0], "rule": {"some_of": [RULE] * 3}}]}},
        "4 rules",
    ),
    "too many criteria": ("/v1/evaluate", {"content": "x", "criteria": SENTENCES}, "5 criteria"),
    "too many by name": (
        "/v1/evaluate",
        {"content": "x", "criteria": {f"c{one}": "G" for one in range(5)}},
        "criteria",
    ),
    "too many of a rubric": (
        "/v1/evaluate",
        {"content": "x", "rubric": {"name": "r", "criteria": CRITERIA}},
        "5 criteria",
    ),
    "a long content": ("/v1/evaluate", {"content": "x" * 1_001, "criteria": "Good."}, "the content has 1,001"),
    "a long reference": ("/v1/evaluate", {"content": "x", "reference": "x" * 1_001, "criteria": "G"}, "the reference"),
    "long instructions": ("/v1/evaluate", {"content": "x", "instructions": "x" * 1_001, "criteria": "G"}, "instruct"),
    "a long content for a gate": ("/v1/gates/publish/check", {"content": ["xx"] * 600}, "the content"),
    "a long task for a gate": ("/v1/gates/publish/check", {"content": "x", "task": "x" * 1_001}, "the task"),
    "long arguments": ("/v1/firewall/input", {"arguments": {"a": "x" * 1_001}}, "the arguments"),
    "long rules": ("/v1/firewall/prompt", {"rules": ["x" * 600] * 2}, "the rules"),
    "a long tool": ("/v1/tools/review", {"candidate": {"source": "x" * 1_001}}, "the candidate"),
    "a long output": ("/v1/tools/reuse", {"tool_id": "t", "output": "x" * 1_001, "output_schema": {}}, "the output"),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_a_request_of_the_size_that_is_allowed_is_answered(name: str, post: Any):
    """The limit itself is allowed."""
    path, body = ALLOWED[name]

    assert post(path, **body).status_code == 200


@pytest.mark.parametrize("name", REFUSED)
def test_a_larger_one_is_refused(name: str, post: Any):
    """With 413, and a sentence that says how much there is, how much is taken, and which setting it is."""
    path, body, message = REFUSED[name]
    answer = post(path, **body)
    detail = answer.json()["detail"]

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert message in detail
    assert "under [server] of adjudge.toml" in detail


DEFAULTS: dict[str, tuple[int, Callable[[int], dict[str, Any]]]] = {
    "most_rules": (32, lambda number: {"rules": [RULE] * number}),
    "most_criteria": (100, lambda number: {"criteria": [f"Good {one}." for one in range(number)]}),
    "largest_content": (500_000, lambda number: {"content": "x" * number}),
}


@pytest.mark.parametrize("setting", DEFAULTS)
def test_a_server_that_is_told_nothing_has_limits(setting: str, post_to_default: Any):
    """The limit itself is taken, one more is not, and the message names the setting."""
    most, make = DEFAULTS[setting]
    at_most, beyond = (
        post_to_default("/v1/evaluate", **({"content": "x", "criteria": "Good."} | make(number)))
        for number in (most, most + 1)
    )

    assert at_most.status_code == 200
    assert (beyond.status_code, beyond.json()["code"]) == (413, "too_large")
    assert setting in beyond.json()["detail"]


def test_the_page_says_how_large_the_limits_are():
    """In the table of the settings."""
    page = (Path(__file__).parents[2] / "docs" / "server.md").read_text("utf-8")
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (`[\d_]+`(?:, `[\d_]+`)*) \|", page, re.MULTILINE)
    stated = {
        name: int(number)
        for names, numbers in rows
        for name, number in zip(re.findall(r"\w+", names), re.findall(r"[\d_]+", numbers), strict=True)
    }

    assert {name: stated[name] for name in DEFAULTS} == {name: most for name, (most, _) in DEFAULTS.items()}


@pytest.mark.parametrize("body", [{"criteria": [1] * 90_000}, {"rules": [1] * 90_000}, {"criteria": ["x"] * 90_000}])
def test_a_list_that_is_wrong_throughout_is_named_once(body: dict[str, Any], post: Any):
    """To say what is wrong with each of 90,000 would take a second."""
    answer = post("/v1/evaluate", **({"content": "x", "criteria": "Good."} | body))

    assert answer.status_code in (413, 422)
    assert len(answer.content) < 5_000


def test_a_vote_is_no_place_for_a_large_body(post: Any):
    """What holds no content is read at once, so it has to be small."""
    answer = post("/v1/approvals/x/votes", approved=False, reason="x" * 300_000)

    assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_the_deadline_ends_rules(tmp_path: Path):
    """Thousands of looks at a long content take minutes: 504 at the deadline, and others are answered after it."""
    slow = f"[gates.slow]\nrules = {['personal_data'] * 6_000}\n"
    with run_server(tmp_path, config=f"[server]\ndeadline = 5\n{CONFIG}\n{slow}") as server:
        client = server.open_client(key=server.make_key("judge"))
        late = client.post("/v1/gates/slow/check", json={"content": "1: " * 160_000})
        after = client.post("/v1/gates/publish/check", json={"content": "short"})

    assert (late.status_code, late.json()["code"]) == (504, "deadline")
    assert (after.status_code, after.json()["allowed"]) == (200, True)


WAITING = """
import asyncio
from pathlib import Path


async def answer(content):
    while not Path(__file__).with_name("go").exists():
        await asyncio.sleep(0.01)
    return True
"""

ONE_AT_A_TIME = """
[server]
concurrency = 1
queue = 3
deadline = 900

[judges.waiting]
seats = ["python:waiting_judges:answer"]
timeout = 900

[defaults]
judge = "waiting"
"""


def test_one_key_leaves_places_to_wait_for_others(tmp_path: Path, monkeypatch: Any):
    """Its third request that waits is refused with 503, and the first of another key is still taken and answered."""
    (tmp_path / "waiting_judges.py").write_text(WAITING, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with run_server(tmp_path, config=CONFIG + ONE_AT_A_TIME) as server, ThreadPoolExecutor(5) as pool:
        greedy, other = (server.open_client(key=server.make_key("judge", name=name)) for name in ("greedy", "other"))
        watching = server.open_client(key=server.make_key("read", name="watching"))

        def ask(client: Any) -> Any:
            return client.post("/v1/evaluate", json={"content": "x", "criteria": "Good."})

        def send(client: Any, waiting: int) -> Any:
            """A request that is answered already, or with which so many wait."""
            sent = pool.submit(ask, client)
            gauges = {"adjudge_judging 1.0", f"adjudge_waiting {waiting:.1f}"}
            wait_for(lambda: sent.done() or gauges <= set(watching.get("/metrics").text.splitlines()))
            return sent

        try:
            sent = [send(greedy, 0), send(greedy, 1), send(greedy, 2), send(greedy, 3), send(other, 3)]
        finally:
            (tmp_path / "go").touch()
        *taken, refused, last = (item.result() for item in sent)

    assert (refused.status_code, refused.json().get("code")) == (503, "busy")
    assert "retry-after" in refused.headers
    assert [(answer.status_code, answer.json()["outcome"]) for answer in (*taken, last)] == [(200, "passed")] * 4
