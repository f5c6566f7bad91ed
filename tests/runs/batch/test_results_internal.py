"""What results may look like: complete, short, empty, repeated, foreign, broken; nothing is paid twice unasked.

A line that is missing from the results of a batch that has ended may have been run, and charged. Its request is sent
again only with ``pay_again``. Of two different answers to one request neither counts.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from adjudge import AdjudgeError, open_run
from adjudge.report import make_report
from kit import cli
from kit.batch import PROVIDERS, go, options, serve
from kit.cli import Line
from kit.judges import names
from kit.runs import list_results, make_cases

pytestmark = pytest.mark.timed


CASES = 12

Lines = list[bytes]


def say_otherwise(line: bytes) -> bytes:
    """The same line with another verdict."""
    return line.replace(b'\\"score\\": 1.0', b'\\"score\\": 0.0') if b"score" in line else line


def rename(line: bytes) -> bytes:
    """The same answer as a provider gives it that ran the request twice: with another id of the reply."""
    for name in (b'"chatcmpl-1"', b'"msg_1"', b'"r1"'):
        line = line.replace(name, b'"another"')
    return line


def change_id(line: bytes) -> bytes:
    """The line of a request that is in no batch of ours."""
    row = json.loads(line)
    return json.dumps(row | {name: "nobody" for name in ("custom_id", "key") if name in row}).encode()


def make_error(line: bytes) -> bytes:
    """The line of the same request that failed for good."""
    row = json.loads(line)
    if "key" in row:
        return json.dumps({"key": row["key"], "error": {"code": 3, "message": "odd"}}).encode()
    if "result" in row:
        error = {"type": "error", "error": {"type": "invalid_request_error", "message": "odd"}}
        return json.dumps({"custom_id": row["custom_id"], "result": {"type": "errored", "error": error}}).encode()
    body = {"error": {"message": "odd", "type": "invalid_request_error", "code": "bad", "param": None}}
    response = {"status_code": 400, "request_id": "req", "body": body}
    return json.dumps({"id": "x", "custom_id": row["custom_id"], "response": response, "error": None}).encode()


@dataclass(frozen=True)
class Row:
    """A result file, and what a run makes of it."""

    edit: Callable[[Lines], Lines]
    lost: int = 0
    """Requests without an answer, of which nothing says that they were not run."""
    contradictions: int = 0
    errors: int = 0
    note: str = ""
    """What the batch's message says."""


TABLE = {
    "complete": Row(edit=list),
    "in another order": Row(edit=lambda lines: lines[::-1]),
    "empty lines": Row(edit=lambda lines: [part for line in lines for part in (line, b"", b"  ")]),
    "a line short": Row(edit=lambda lines: lines[:-1], lost=1, note="without an answer to 1 of its requests"),
    "half of it": Row(edit=lambda lines: lines[::2], lost=6, note="without an answer to 6 of its requests"),
    "a single line": Row(edit=lambda lines: lines[:1], lost=11),
    "empty": Row(edit=lambda _: [], lost=12, note="without an answer to 12 of its requests"),
    "each line twice": Row(edit=lambda lines: lines * 2),
    "each answer twice": Row(edit=lambda lines: [*lines, *map(rename, lines)]),
    "one line three times": Row(edit=lambda lines: [lines[0], *lines, lines[0]]),
    "one answered twice, differently": Row(
        edit=lambda lines: [*lines, say_otherwise(lines[1])], contradictions=1, note="1 requests were answered twice"
    ),
    "the second answer first": Row(edit=lambda lines: [say_otherwise(lines[1]), *lines], contradictions=1),
    "a, b and a again": Row(edit=lambda lines: [lines[1], say_otherwise(lines[1]), *lines], contradictions=1),
    "an answer and an error": Row(edit=lambda lines: [*lines, make_error(lines[2])], contradictions=1),
    "an error and an answer": Row(edit=lambda lines: [make_error(lines[2]), *lines], contradictions=1),
    "an error": Row(edit=lambda lines: [*lines[:2], make_error(lines[2]), *lines[3:]], errors=1),
    "an error twice": Row(edit=lambda lines: [*map(make_error, lines[:1] * 2), *lines[1:]], errors=1),
    "a stranger's line": Row(edit=lambda lines: [*lines, change_id(lines[0])], note="ids of no request"),
    "strangers' lines alone": Row(edit=lambda lines: [*map(change_id, lines)], lost=12, note="ids of no request"),
    "a line that cannot be read": Row(
        edit=lambda lines: [b"{nonsense}", *lines[1:]], lost=1, note="1 lines of its results could not be read"
    ),
    "half of a line in the middle": Row(edit=lambda lines: [lines[0], lines[1][:40], *lines[2:]], lost=1),
    "short and twice, differently": Row(
        edit=lambda lines: [*lines[:-2], say_otherwise(lines[1])], lost=2, contradictions=1
    ),
}  # fmt: skip


def read_message(folder: Path) -> tuple[str, str]:
    from adjudge.runs.batch.folder import list_batches

    kept = list_batches(folder)[0]
    return kept.state, kept.message


@pytest.mark.matrix
@pytest.mark.parametrize("row", TABLE)
@pytest.mark.parametrize("kind", PROVIDERS)
def test_every_form_of_results_is_judged_once_and_paid_once(tmp_path: Path, kind: str, row: str):
    """What was answered is judged, what is missing is doubtful, and nothing is sent a second time unasked."""
    form, cases, folder = TABLE[row], make_cases(CASES), tmp_path / "R"
    with serve(kind, edit=form.edit, shuffle=False) as server:
        if form.lost:
            for resume in (False, True):
                with pytest.raises(AdjudgeError, match=r"doubtful: the provider may have run .*pay_again"):
                    go(server, cases, folder, resume=resume)
        else:
            go(server, cases, folder)
        assert (server.creations, set(server.run.values())) == (1, {1})
        server.edit = list
        expected = list_results(go(server, cases))

    left = open_run(folder)
    state, message = read_message(folder)
    reasons = dict(left.summary["undecided_because"])
    assert sum(left.counts.values()) == CASES - form.lost
    assert (state, reasons.get("contradiction", 0), reasons.get("error", 0)) == (
        "doubtful" if form.lost else "collected", form.contradictions, form.errors,
    )  # fmt: skip
    assert form.note in message
    undecided = {item.case.id for item in left.items("undecided")}
    kept = [item for item in list_results(left) if item[2] not in undecided]
    assert [item for item in expected if item[2] in {name for _, _, name, *_ in kept}] == kept


@pytest.mark.parametrize("row", [name for name, row in TABLE.items() if row.lost])
@pytest.mark.parametrize("kind", PROVIDERS)
def test_what_is_missing_is_sent_again_once_when_that_is_said(tmp_path: Path, kind: str, row: str):
    """Only the requests without an answer; the results are those of a run whose file was whole."""
    form, cases, folder = TABLE[row], make_cases(CASES), tmp_path / "R"
    with serve(kind, edit=form.edit, shuffle=False) as server:
        with pytest.raises(AdjudgeError, match="doubtful"):
            go(server, cases, folder)
        server.edit = list
        done = go(server, cases, folder, resume=True, batch=options(pay_again=True))

        assert [len(job.lines) for job in server.jobs.values()] == [CASES, form.lost]
    assert done.status == "finished"
    assert done.counts["undecided"] == form.contradictions
    assert done.manifest["paid_again"] == {"requests": form.lost, "at_most_usd": None}
    assert read_message(folder)[0] == "collected" or row in ("empty", "strangers' lines alone")


@pytest.mark.parametrize("kind", PROVIDERS)
def test_paying_again_is_about_what_was_doubtful_before(tmp_path: Path, kind: str):
    """A provider whose every file is short is not paid without end: each time, somebody has to say so."""
    with serve(kind, edit=lambda lines: lines[:-1], shuffle=False) as server:
        with pytest.raises(AdjudgeError, match="doubtful"):
            go(server, make_cases(4), tmp_path / "R")
        for jobs in (2, 3):
            with pytest.raises(AdjudgeError, match="doubtful"):
                go(server, make_cases(4), tmp_path / "R", resume=True, batch=options(pay_again=True))
            assert len(server.jobs) == jobs


@pytest.mark.parametrize("then", ["batch", "live"])
def test_what_is_missing_is_not_asked_live_either(tmp_path: Path, then: Any):
    """``then="live"`` is for requests that were not run."""
    with serve(edit=lambda lines: lines[:-2], shuffle=False) as server:
        with pytest.raises(AdjudgeError, match="doubtful"):
            go(server, make_cases(CASES), tmp_path / "R", batch=options(then=then))
        assert (sum(server.live.values()), server.creations) == (0, 1)


def test_lines_that_appear_later_are_taken(tmp_path: Path):
    """A provider's file may be whole at the next look: resuming reads it once more, and pays nothing."""
    whole: list[Lines] = []

    def cut(lines: Lines) -> Lines:
        whole.append(lines)
        return lines[:-3]

    with serve(edit=cut, shuffle=False) as server:
        with pytest.raises(AdjudgeError, match="doubtful"):
            go(server, make_cases(CASES), tmp_path / "R")
        next(iter(server.jobs.values())).rows = whole[0]
        done = go(server, make_cases(CASES), tmp_path / "R", resume=True)

        assert (server.creations, done.status, done.counts["undecided"]) == (1, "finished", 0)


def test_other_batches_go_on_beside_a_doubtful_one(tmp_path: Path):
    """What is left to wait for is waited for; the run ends when nothing else is under way."""
    cuts = iter([1, 0, 0])
    cut = serve(edit=lambda lines: lines[next(cuts, 0) :], shuffle=False)
    with cut as server, pytest.raises(AdjudgeError, match="batch 1 is doubtful"):
        go(server, make_cases(9), tmp_path / "R", batch=options(size=4))
    assert sum(open_run(tmp_path / "R").counts.values()) == 8


ENDS = {"openai": "expired", "anthropic": "expired", "gemini": "EXPIRED"}


@pytest.mark.parametrize("kind", PROVIDERS)
def test_what_expired_was_not_run_and_is_sent_again(tmp_path: Path, kind: str):
    """The provider says that it ran none of these, so nothing is doubtful."""
    with serve(kind, run_share=0.5, ends=[ENDS[kind]]) as server:
        done = go(server, make_cases(CASES), tmp_path / "R")

        assert ([len(job.lines) for job in server.jobs.values()], set(server.run.values())) == ([12, 6], {1})
    assert (done.counts["undecided"], done.manifest.get("paid_again")) == (0, None)


PRICES = {"small": {"input": 1_000.0, "output": 1_000.0}}
"""A call of 900 tokens in and 40 out costs 0.94 dollars."""


def test_what_may_be_paid_twice_is_in_every_figure(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """The summary, the report and the manifest say how many requests were sent again, and what that costs at most."""
    cli.isolate(monkeypatch, tmp_path)
    line = Line(capsys)
    rows = [json.dumps({"id": case.id, "content": case.content, "label": case.label}) for case in make_cases(CASES)]
    Path("data.jsonl").write_text("".join(f"{row}\n" for row in rows), encoding="utf-8")
    with serve(edit=lambda lines: lines[:-3], shuffle=False) as server:
        spec = f"{server.base}#small"
        Path("adjudge.toml").write_text(f'[prices]\n"{spec}" = {{ input = 1000.0, output = 1000.0 }}\n')
        words = ("run", "data.jsonl", "--criteria", "Is good.", "--judge", spec, "--batch", "--batch-check", "0")
        words = (*words, "--batch-poll", "0.02", "--out", "R")
        short = line(*words)
        assert (short.status, names(short.err, "doubtful", "3 of its requests", "--pay-again")) == (3, True)
        shown = line("batch", "list", "R")
        assert "doubtful" in shown.out
        assert "without an answer to 3 of its requests" in shown.err
        assert line("batch", "cancel", "R").status == 0
        assert line("report", "R").status == 0  # a run that is not complete is shown as one
        assert len(server.jobs) == 1

        server.edit = list
        done = line(*words, "--resume", "--pay-again")
        assert (done.status, len(server.jobs)) == (0, 2)
    manifest = open_run("R").manifest
    assert manifest["paid_again"]["requests"] == 3
    assert 0 < manifest["paid_again"]["at_most_usd"] < 30
    most = f"{manifest['paid_again']['at_most_usd']:.2f}"
    assert f"and up to ${most}" in done.out
    assert "for 3 requests sent again" in " ".join(done.out.split())
    assert rf"and up to \${most}" in line("report", "R", "--markdown", "-").out
    assert make_report(open_run("R")).about.paid_again == 3


@pytest.mark.slow
def test_a_budget_counts_what_may_be_paid_twice(tmp_path: Path):
    """The most that each request can have cost is gone from the budget."""
    with serve(edit=lambda lines: lines[:-2], shuffle=False) as server:
        judge = server.open()
        settings: dict[str, Any] = {"budget": 500.0, "prices": PRICES}
        with pytest.raises(AdjudgeError, match="doubtful"):
            go(server, make_cases(4), tmp_path / "R", judge, **settings)
        server.edit = list
        paying = options(pay_again=True)
        done = go(server, make_cases(4), tmp_path / "R", judge, resume=True, batch=paying, **settings)

    assert done.usage.cost_usd == pytest.approx(4 * 0.94)
    extra = done.manifest["paid_again"]["at_most_usd"]
    assert done.manifest["budget"]["spent"] == pytest.approx(4 * 0.94 + extra)


def test_a_contradiction_can_be_judged_again(tmp_path: Path):
    """``retry`` asks the request anew; without it, the case stays as it is and nothing is sent."""
    with serve(edit=lambda lines: [*lines, say_otherwise(lines[1])], shuffle=False) as server:
        go(server, make_cases(6), tmp_path / "R")
        server.edit = list
        same = go(server, make_cases(6), tmp_path / "R", resume=True)
        assert (dict(same.summary["undecided_because"]), len(server.jobs)) == ({"contradiction": 1}, 1)
        done = go(server, make_cases(6), tmp_path / "R", resume=True, retry=["contradiction"])

        assert [len(job.lines) for job in server.jobs.values()] == [6, 1]
    assert done.counts["undecided"] == 0
