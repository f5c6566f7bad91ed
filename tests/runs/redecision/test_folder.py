"""What a redecided run leaves on disk, and what cannot be redecided."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, Criterion, Judge, JudgeChain, Rubric, UsageError, open_run
from adjudge.models import Reply, Request
from adjudge.runs import redecide
from kit.judges import Seat, names
from kit.redecisions import RUBRIC, Told, do, make_cases, score, tell_all
from kit.runs import STORE

posix = pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")


def make_run(tmp_path: Path, judge: Any = None, **options: Any) -> Path:
    """A run of two cases, of which the second passes from 0.6 on."""
    judge = judge or Judge(Told("x", {"0": score(a=0.4, b=0.4), "1": score(a=0.6, b=0.6)}))
    do(make_cases(2), judge, out=tmp_path / "run", **options)
    return tmp_path / "run"


def test_it_is_a_run_like_any_other(tmp_path: Path):
    """Cases, results and replies are there, with a manifest that says whose they are and by which policy."""
    folder = make_run(tmp_path)
    redecision = redecide(folder, threshold=0.3, out=tmp_path / "new", command=["adjudge", "redecide"])

    source, new = open_run(folder), open_run(tmp_path / "new")
    assert (new.status, new.counts) == ("finished", {"passed": 2, "failed": 0, "undecided": 0})
    assert [item.case for item in new.items()] == [item.case for item in source.items()]
    assert list(new.store.replies()) == list(source.store.replies())
    assert new.manifest["redecided"] == {"run": source.id, "policy": {"threshold": 0.3}}
    assert (new.manifest["rubric"]["passing_threshold"], new.manifest["command"]) == (0.3, ["adjudge", "redecide"])
    assert (new.id != source.id, redecision.folder) == (True, str(tmp_path / "new"))
    assert new.manifest["digests"]["rubric"] != source.manifest["digests"]["rubric"]


@posix
def test_its_owner_alone_can_read_it(tmp_path: Path):
    """It holds what was judged and said, as the run does."""
    redecide(make_run(tmp_path), out=tmp_path / "new")

    assert {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "new").iterdir()} == {0o600}


def test_a_folder_with_a_run_is_not_written_over(tmp_path: Path):
    """Neither the run itself nor another; both stay what they are."""
    folder = make_run(tmp_path)
    before = tell_all(open_run(folder))

    with pytest.raises(UsageError) as caught:
        redecide(folder, threshold=0.0, out=folder)
    assert names(caught.value, str(folder), "a run already")
    assert tell_all(open_run(folder)) == before


def test_a_run_goes_on_from_it_with_what_is_missing(tmp_path: Path):
    """Going on under the new policy asks those whose turn had not come, and nobody else."""
    first = Told("x", {"0": score(a=1.0, b=1.0), "1": score(a=0.0, b=0.0)})
    second = Told("y", {"0": score(a=1.0, b=1.0), "1": score(a=1.0, b=1.0)})
    folder = make_run(tmp_path, JudgeChain([first, second]))
    redecision = redecide(folder, strategy="consensus", out=tmp_path / "new")
    assert (redecision.after, redecision.unknown) == ({"passed": 0, "failed": 1, "undecided": 1}, 1)

    chain = JudgeChain([first, second], strategy="consensus")
    done = do(make_cases(2), chain, out=tmp_path / "new", resume=True, retry=["error"])
    assert done.counts == {"passed": 1, "failed": 1, "undecided": 0}
    assert [len(first.asked), [request.case for request in second.asked]] == [2, ["0"]]


def test_a_redecided_run_is_not_redecided(tmp_path: Path):
    """Policies do not pile up: the error names the run whose judges were asked."""
    folder = make_run(tmp_path)
    redecide(folder, out=tmp_path / "new")

    with pytest.raises(UsageError) as caught:
        redecide(tmp_path / "new")
    assert names(caught.value, "redecided", open_run(folder).id)


@pytest.mark.slow
def test_a_long_list_of_changes_ends(tmp_path: Path):
    """At most 2,000 changes are held in memory; the number of all is known."""
    number = 2_005
    model = Told("x", {str(case): score(a=0.5, b=0.5) for case in range(number)})
    do(make_cases(number), Judge(model), out=tmp_path / "run")

    redecision = redecide(tmp_path / "run", threshold=0.5)
    assert (redecision.changed, len(redecision.changes)) == (number, 2_000)


class Named(Told):
    """A model of a provider that has others."""

    def named(self, name: str) -> Named:
        return Named(name, self.lines)


def test_a_model_that_the_rubric_named_is_found(tmp_path: Path):
    """Replies are kept under the name of the model that was asked, and read from there."""
    model = Named("x", {"0": score(a=0.5, b=0.5), "1": score(a=0.5, b=0.5)})
    do(make_cases(2), Judge(model), replace(RUBRIC, model="other"), out=tmp_path / "run")

    redecision = redecide(tmp_path / "run", threshold=0.5)
    assert (redecision.after["passed"], redecision.unknown) == (2, 0)


def test_a_case_that_nobody_could_be_asked_about_stays_so(tmp_path: Path):
    """Content that cannot be judged is an error under every policy, and nothing about it is unknown."""
    do([Case(id="0", content="\ud800")], Judge(Told("x", {"0": score(a=1.0, b=1.0)})), out=tmp_path / "run")

    rubric = Rubric(name="New", criteria=[Criterion(name="c", description="Is c.")])
    redecision = redecide(tmp_path / "run", rubric=rubric)
    assert (redecision.after["undecided"], redecision.unknown) == (1, 0)


def test_somebody_elses_judge_stays_as_it_was(tmp_path: Path):
    """Its replies were not kept: under its own rubric its result stands, under another nobody knows."""
    folder = make_run(tmp_path, JudgeChain([Seat("failed", name="own")], strategy="majority"))

    assert redecide(folder, strategy="consensus").after["failed"] == 2
    redecision = redecide(folder, threshold=0.1)
    ((reason, count),) = redecision.unknown_because.items()
    assert (redecision.after["undecided"], count) == (2, 2)
    assert names(reason, "own", "not kept")


@pytest.mark.parametrize("body", [b"", b"{}", b'{"reply": {"text": 7}}', b'{"case":'])
def test_a_reply_that_cannot_be_read_is_none(tmp_path: Path, body: bytes):
    """A file that somebody changed makes nothing pass; under the same rubric what was decided stands."""
    folder = make_run(tmp_path)
    with closing(sqlite3.connect(folder / STORE)) as connection, connection:
        connection.execute("UPDATE replies SET body = ?", (body,))

    assert redecide(folder).changed == 0
    redecision = redecide(folder, threshold=0.1, out=tmp_path / "new")
    assert (redecision.after["undecided"], redecision.unknown) == (2, 2)


@dataclass
class Verdict:
    """A reply of the caller's own."""

    good: int


def is_good(value: Verdict) -> bool:
    return value.good > 1


def test_a_format_of_your_own_is_handed_in_again(tmp_path: Path):
    """A run holds the name of a type and no code, so the type and what passes come from the caller."""
    model = Told("x", {str(case): {"good": case + 1} for case in range(2)})
    do(make_cases(2), Judge(model), None, result_format=Verdict, passes=is_good, out=tmp_path / "run")

    assert redecide(tmp_path / "run", result_format=Verdict, passes=is_good).changed == 0
    redecision = redecide(tmp_path / "run", result_format=Verdict, passes=lambda value: value.good > 0)
    assert (redecision.after["passed"], redecision.policy["result_format"]) == (2, "Verdict")
    broken = redecide(tmp_path / "run", result_format=Verdict, passes=lambda value: value.nothing)
    assert broken.after["undecided"] == 2
    with pytest.raises(UsageError) as caught:
        redecide(tmp_path / "run")
    assert names(caught.value, "result_format", "Verdict", "hand it in")
    with pytest.raises(UsageError) as caught:
        redecide(tmp_path / "run", result_format=Verdict, passes=is_good, threshold=0.5)
    assert names(caught.value, "no rubric")


@dataclass
class Marked:
    """Another reply of the caller's own, which less is asked of."""

    mark: int


def test_the_last_reply_counts_in_another_format_too(tmp_path: Path):
    """A reply that could not be read then does not come back because another format could have read it."""
    model = Told("x", {str(case): [{"mark": 9}, {"good": 1, "mark": 1}] for case in range(2)})
    do(make_cases(2), Judge(model), None, result_format=Verdict, passes=is_good, out=tmp_path / "run")

    redecision = redecide(
        tmp_path / "run", result_format=Marked, passes=lambda value: value.mark > 5, out=tmp_path / "new"
    )
    assert (redecision.after, redecision.unknown) == ({"passed": 0, "failed": 2, "undecided": 0}, 0)
    assert {item.result.attempts for item in open_run(tmp_path / "new").items()} == {2}


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"strategy": "consensus"}, ("strategy", "several judges", "one, x")),
        ({"judges": ["x"], "fail_open": True}, ("fail_open, judges", "several judges")),
        ({"threshold": 7}, ("threshold", "between 0 and 1")),
        ({"rubric": "no-such"}, ("no-such",)),
        ({"result_format": Verdict, "passes": is_good}, ("no result_format",)),
        ({"passes": is_good}, ("passes", "result_format")),
    ],
)
def test_what_is_no_policy_of_the_run_is_said(tmp_path: Path, policy: dict[str, Any], words: tuple[str, ...]):
    """Before anything is read or written."""
    with pytest.raises(UsageError) as caught:
        redecide(make_run(tmp_path), out=tmp_path / "new", **policy)
    assert names(caught.value, *words)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"strategy": "hedged"}, ("hedged", "when")),
        ({"strategy": "quorum"}, ("needs quorum",)),
        ({"strategy": "quorum", "quorum": 3}, ("quorum", "from 1 to 2")),
        ({"quorum": 2}, ("quorum", "strategy 'quorum'")),
        ({"strategy": "none"}, ("strategy", "'none'")),
        ({"judges": ["z"]}, ("'z'", "x, y")),
        ({"judges": []}, ("judges", "list")),
        ({"judges": "x"}, ("judges", "list")),
    ],
)
def test_what_is_no_policy_of_a_chain_is_said(tmp_path: Path, policy: dict[str, Any], words: tuple[str, ...]):
    """The chain's own rules hold for it as for one that asks."""
    lines = {"0": score(a=1.0, b=1.0), "1": score(a=1.0, b=1.0)}
    folder = make_run(tmp_path, JudgeChain([Told("x", lines), Told("y", lines)]))

    with pytest.raises(UsageError) as caught:
        redecide(folder, **policy)
    assert names(caught.value, *words)


def test_one_name_is_one_criterion(tmp_path: Path):
    """A criterion that was put to judges and is a rule now would be two things of one name."""
    rubric = Rubric(name="R", criteria=[Criterion(name="a", description="Is a.", rule={"contains": "text"})])
    with pytest.raises(UsageError) as caught:
        redecide(make_run(tmp_path), rubric=rubric)
    assert names(caught.value, "criterion 'a'", "rule")


def change_manifest(folder: Path, **changes: Any) -> None:
    manifest = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(manifest | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"judge": {"kind": "judge"}},
        {"judge": {"kind": "other", "name": "mine", "type": "m.Mine"}},
        {"judge": {"kind": "oracle"}},
        {"judge": []},
        {"judge": {"kind": "chain", "name": "c", "seats": []}},
        {"rubric": {"name": "R"}},
        {"rubric": {"name": "R", "criteria": [7], "passing_threshold": 0.5}},
        {"asked": None},
        {"asked": []},
        {"redecided": 7},
    ],
)
def test_a_manifest_that_tells_of_no_judge_is_an_error(tmp_path: Path, changes: dict[str, Any]):
    """A file that somebody changed is a sentence about it, and no crash."""
    folder = make_run(tmp_path)
    change_manifest(folder, **changes)

    with pytest.raises(UsageError):
        redecide(folder)


@pytest.mark.parametrize("name", ["asked", "judge", "rubric", "digests", "dataset", "options"])
def test_a_manifest_without_a_part_is_an_error(tmp_path: Path, name: str):
    """What is missing is named."""
    folder = make_run(tmp_path)
    manifest = json.loads((folder / "run.json").read_text())
    del manifest[name]
    (folder / "run.json").write_text(json.dumps(manifest))

    with pytest.raises(UsageError) as caught:
        redecide(folder, out=tmp_path / "new")
    assert names(caught.value, f"no {name}")


def test_no_model_is_there_that_could_be_asked(tmp_path: Path):
    """The judge is rebuilt around names: a description that names a provider or code opens and imports nothing."""
    folder = make_run(tmp_path)
    judge = json.loads((folder / "run.json").read_text())["judge"]
    for name in ("python:os:abort", "openai:gpt-6.1-terra", "replay:/etc/passwd"):
        change_manifest(folder, judge={**judge, "model": {"name": name}, "rubric": {"name": "python"}})
        assert redecide(folder).changed == 0


def test_an_unfinished_run_is_redecided_as_far_as_it_is(tmp_path: Path):
    """What is there is decided, and the new run is no more finished than its source."""
    folder = make_run(tmp_path)
    change_manifest(folder, status="interrupted")

    assert redecide(folder, out=tmp_path / "new").items == 2
    assert open_run(tmp_path / "new").status == "interrupted"


class Forging:
    """A judge's model that quotes what would read as a mask, and answers after it."""

    name = "forging"

    async def complete(self, request: Request, /) -> Reply:
        quoted = "{{token}} {{=token}}"
        scores = '[{"name": "a", "score": 1}, {"name": "b", "score": 0.5}]'
        return Reply(text=f'It says {quoted!r}: no.{{"token": "{request.token}", "criteria": {scores}}}')


def test_a_quoted_mask_is_no_token(tmp_path: Path):
    """Content that holds the mask cannot make a kept reply say something else."""
    folder = make_run(tmp_path, Judge(Forging()))

    assert open_run(folder).counts["passed"] == 2
    assert redecide(folder).changed == 0
