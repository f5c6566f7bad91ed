"""A run that goes on: nothing is asked again whose answer was recorded, and nothing that changed is mixed in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from adjudge import Case, Judge, JudgeChain, UsageError, open_run, run
from adjudge.models import Reply, Request
from adjudge.testing import make_scripted_reply
from kit.judges import names
from kit.runs import CRITERIA, Words, cut_off, do, list_results, make_cases


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cases=st.integers(1, 40), leave=st.integers(1, 45), repeat=st.integers(1, 3), concurrency=st.integers(1, 8))
def test_a_run_cut_off_anywhere_ends_like_one_that_was_not(
    tmp_path_factory: pytest.TempPathFactory, cases: int, leave: int, repeat: int, concurrency: int
):
    """However early somebody leaves, the rest is judged once, and the results are those of a run in one go."""
    out = tmp_path_factory.mktemp("run") / "run"
    dataset, model = make_cases(cases), Words(turns=2)
    options = {"repeat": repeat, "concurrency": concurrency}

    left = cut_off(dataset, Judge(model), out, leave, **options)
    kept, asked = sum(left.counts.values()), len(model.requests)
    done = do(dataset, Judge(model), out=out, resume=True, **options)

    assert done.status == "finished"
    assert list_results(done) == list_results(do(dataset, Judge(Words()), **options))
    assert len(model.requests) <= cases * repeat + concurrency
    assert asked - kept <= concurrency


def test_a_finished_run_asks_nobody(tmp_path: Path):
    """Going on with what is finished changes nothing, and keeps the run's id and when it began."""
    first = do(make_cases(9), out=tmp_path / "run")
    model = Words()
    again = do(make_cases(9), Judge(model), out=tmp_path / "run", resume=True)

    assert model.requests == []
    assert (again.id, again.manifest["created_at"]) == (first.id, first.manifest["created_at"])
    assert again.manifest["dataset"] == first.manifest["dataset"]
    assert list_results(again) == list_results(first)


def test_a_folder_with_a_run_is_not_begun_anew(tmp_path: Path):
    """Without ``resume`` a run in the folder is an error, and stays as it is; with it, an empty folder is begun."""
    do(make_cases(3), out=tmp_path / "run", resume=True)
    with pytest.raises(UsageError) as caught:
        do(make_cases(3), out=tmp_path / "run")
    assert names(caught.value, str(tmp_path / "run"), "resume=True", "another folder")
    assert open_run(tmp_path / "run").counts["passed"] == 2


class Half:
    """A chain's second seat that never answers, until it is told to."""

    def __init__(self) -> None:
        self.name = "half"
        self.open = False
        self.asked = asyncio.Event()

    async def complete(self, request: Request, /) -> Reply:
        if not self.open:
            for _ in range(10):  # the other seat has answered by then
                await asyncio.sleep(0)
            self.asked.set()
            await asyncio.Event().wait()
        return make_scripted_reply({"criteria": [{"score": 1.0}]}, request, self.name)


def test_an_answer_of_a_judgement_that_was_cut_off_is_not_asked_again(tmp_path: Path):
    """What one seat had answered is taken from the file, though its chain had not decided."""
    model, second = Words(), Half()
    chain = JudgeChain([model, second], strategy="consensus", timeout=None)
    dataset = ["good one"]

    async def leave() -> None:
        running = asyncio.ensure_future(run(dataset, chain, criteria=CRITERIA, out=tmp_path / "run"))
        await second.asked.wait()
        assert (len(model.requests), model.now) == (1, 0)
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(leave())
    assert open_run(tmp_path / "run").counts == {"passed": 0, "failed": 0, "undecided": 0}
    second.open = True
    done = do(dataset, chain, out=tmp_path / "run", resume=True)
    assert (done.counts["passed"], len(model.requests)) == (1, 1)


def test_an_answer_about_another_content_is_not_taken(tmp_path: Path):
    """A case that was not judged yet may be corrected; what a seat had said of it before is no answer any more."""
    model, second = Words(), Half()
    chain = JudgeChain([model, second], strategy="consensus", timeout=None)

    async def leave() -> None:
        running = asyncio.ensure_future(run([Case(id="a", content="good one")], chain, criteria=CRITERIA, out=tmp_path))
        await second.asked.wait()
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(leave())
    assert len(model.requests) == 1
    second.open = True
    done = do([Case(id="a", content="bad one")], chain, out=tmp_path, resume=True)

    assert (done.counts["passed"], done.counts["failed"], len(model.requests)) == (0, 1, 2)


def _change(cases: list[Case], place: int, **changes: Any) -> list[Case]:
    return [replace(case, **changes) if number == place else case for number, case in enumerate(cases)]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda cases: _change(cases, 2, content="another"),
            ("case 2 of", "'case-2'", "another content"),
        ),
        (lambda cases: _change(cases, 2, reference="gold"), ("case 2 of", "'case-2'")),
        (lambda cases: _change(cases, 2, label=None), ("case 2 of", "label")),
        (lambda cases: _change(cases, 1, id="new"), ("case 1 of", "'case-1'", "'new'")),
        (lambda cases: cases[1:], ("case 0 of", "'case-0'", "'case-1'")),
        (lambda cases: cases[:3], ("3 cases", "case 8")),
    ],
)
def test_data_that_changed_are_refused(tmp_path: Path, change: Any, words: tuple[str, ...]):
    """The first case that is not the one that was judged is named, and nobody is asked about any."""
    do(make_cases(9), out=tmp_path / "run")
    model = Words()

    with pytest.raises(UsageError) as caught:
        do(change(make_cases(9)), Judge(model), out=tmp_path / "run", resume=True)
    assert names(caught.value, *words)
    assert model.requests == []
    assert open_run(tmp_path / "run").counts["passed"] == 6


def test_data_may_grow(tmp_path: Path):
    """Cases that were added at the end are judged, and only they."""
    do(make_cases(6), out=tmp_path / "run")
    model = Words()
    done = do(make_cases(9), Judge(model), out=tmp_path / "run", resume=True)

    assert [request.case for request in model.requests] == ["case-6", "case-7", "case-8"]
    assert done.summary["items"] == 9


@dataclass
class Verdict:
    """A form of its own."""

    passed: bool


@pytest.mark.parametrize(
    ("judge", "options", "words"),
    [
        (Judge(Words("other")), {}, ("judge changed", 'name: "words" before, "other" now')),
        (Judge(Words(), temperature=1.0), {}, ("judge changed", "temperature: 0.0 before, 1.0 now")),
        (JudgeChain([Words()], name="words"), {}, ("judge changed", 'kind: "judge" before, "chain" now')),
        (None, {"threshold": 0.9}, ("rubric changed", "passing_threshold: 0.7 before, 0.9 now")),
        (None, {"criteria": "Is bad."}, ("rubric changed", 'name: "Is good" before, "Is bad" now')),
        (None, {"instructions": "Be strict."}, ("asked changed", "wording")),
        (None, {"rules": [{"regex": "x"}]}, ("asked changed", "rules")),
        (None, {"context": "law"}, ("asked changed", 'context: null before, "law" now')),
        (None, {"result_format": Verdict}, ("asked changed", "wording")),
        (None, {"seed": 5, "sample": 3}, ("sample=None", "3")),
    ],
)
def test_another_question_or_judge_is_refused(
    tmp_path: Path, judge: Any, options: dict[str, Any], words: tuple[str, ...]
):
    """Results of two questions or two judges do not stand in one run; the error says what changed, before and now."""
    do(make_cases(3), out=tmp_path / "run")
    options = {"criteria": CRITERIA, **options}

    with pytest.raises(UsageError) as caught:
        run(make_cases(3), judge or Judge(Words()), out=tmp_path / "run", resume=True, **options).finish_sync()
    assert names(caught.value, *words)


def test_more_samples_may_be_asked_for_and_not_fewer(tmp_path: Path):
    """``repeat`` can be raised: the samples that are there stay, and only the others are asked."""
    do(make_cases(3), out=tmp_path / "run", repeat=2)
    model = Words()
    do(make_cases(3), Judge(model), out=tmp_path / "run", repeat=3, resume=True)
    assert [request.sample for request in model.requests] == [2, 2, 2]

    with pytest.raises(UsageError) as caught:
        do(make_cases(3), out=tmp_path / "run", resume=True)
    assert names(caught.value, "repeat=3", "fewer, 1")


def test_a_sample_of_data_that_grew_is_another(tmp_path: Path):
    """Drawn from another number of cases, the same seed would draw others, so that is refused."""
    do(make_cases(20), out=tmp_path / "run", sample=5)
    do(make_cases(20), out=tmp_path / "run", sample=5, resume=True)
    with pytest.raises(UsageError) as caught:
        do(make_cases(21), out=tmp_path / "run", sample=5, resume=True)
    assert names(caught.value, "20 cases", "21 now")


def test_what_failed_for_a_while_can_be_judged_again(tmp_path: Path):
    """Items undecided for a reason in ``retry`` are judged again and replaced, the others left; by default none is."""
    out, dataset = tmp_path / "run", ["good", "raise", "bad"]
    do(dataset, out=out)
    model = Words()
    assert do(dataset, Judge(model), out=out, resume=True).counts["undecided"] == 1
    assert model.requests == []

    class Mended(Words):
        async def complete(self, request: Request, /) -> Reply:
            self.requests.append(request)
            return make_scripted_reply({"criteria": [{"score": 1.0}]}, request, self.name)

    mended = Mended()
    done = do(dataset, Judge(mended), out=out, resume=True, retry=["error"])
    assert (done.counts, len(mended.requests)) == ({"passed": 2, "failed": 1, "undecided": 0}, 1)


@pytest.mark.parametrize("cached", [False, True])
def test_what_was_answered_to_no_use_is_asked_again(tmp_path: Path, cached: bool):
    """A reply that could not be read answers nothing again, kept or cached; the replies to other cases do."""

    class Mumbles(Words):
        clear, identity = False, {"version": "1"}

        async def complete(self, request: Request, /) -> Reply:
            self.requests.append(request)
            score = {"criteria": [{"score": 1.0}]}
            return (
                make_scripted_reply(score, request, self.name)
                if self.clear or "good" in request.user
                else Reply(text="Hm.")
            )

    out, dataset = tmp_path / "run", ["good", "odd", "good too"]
    options: dict[str, Any] = {"out": out, "cache": tmp_path / "cache" if cached else None}
    model = Mumbles()
    do(dataset, Judge(model, reask=0), **options)
    model.requests.clear()
    model.clear = True

    assert do(dataset, Judge(model, reask=0), resume=True, **options).counts["undecided"] == 1
    assert model.requests == []
    done = do(dataset, Judge(model, reask=0), resume=True, retry=["unparseable"], **options)
    assert (done.counts["passed"], len(model.requests)) == (3, 1)
    assert [row.count(b"Hm.") for row in done.store.replies()] == [0, 0, 0]


@pytest.mark.parametrize("left", ["nothing", "an empty file"])
def test_a_run_killed_before_its_first_case_goes_on(tmp_path: Path, left: str):
    """Killed between the manifest and the tables, a run is begun with the same folder."""
    do(make_cases(3), out=tmp_path / "run")
    for file in (tmp_path / "run").glob("results.sqlite*"):
        file.unlink()
    if left == "an empty file":
        (tmp_path / "run" / "results.sqlite").touch()

    assert do(make_cases(3), out=tmp_path / "run", resume=True).counts["passed"] == 2
