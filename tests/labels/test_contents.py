"""Which content a label is of, and which contents a draw is from: what differs, and what each command makes of it."""

from __future__ import annotations

import asyncio
import hashlib
import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("scipy", reason="needs numpy and scipy: pip install 'adjudge[trust]'")

from adjudge import Case, Dataset, Judge, UsageError, judge_function, open_run, run
from adjudge.dataset import Label, digest_content, load_labels, make_content_set, write_labels
from adjudge.labels import continue_plan, find_plan_status, load_plan, make_plan, open_label_queue, write_plan
from adjudge.measurement import compare_replacements, list_labelled, make_measurement, measure_file
from adjudge.report import make_report
from adjudge.runs import Run, redecide
from adjudge.testing import make_scripted_reply
from kit import cli
from kit.cli import Line

CASES = 160

DRAWN = ("order", "plan")
"""By what the labels were drawn: the random order of `adjudge label`, or a plan."""

RUBRIC: Any = {"name": "Tone", "criteria": {"tone": "Is kind."}}


def is_kind(content: str) -> bool:
    """A judge that is right about most answers."""
    return "kind" in content or "7" in content


def is_short(content: str) -> bool:
    """Another judge, with other verdicts."""
    return len(content) % 3 > 0


def is_good(content: str) -> bool:
    """What people say."""
    return "kind" in content


def make_cases(number: int = CASES) -> list[Case]:
    """Answers, a quarter of them bad."""
    return [Case(id=f"c{n}", content=f"a {'curt' if n % 4 == 0 else 'kind'} answer, number {n}") for n in range(number)]


def judge(folder: Path, cases: Sequence[Case], function: Callable[[str], bool] = is_kind, **more: Any) -> Path:
    """A run of these cases."""
    run(list(cases), judge_function(function), criteria="Is kind.", out=folder, **more).finish_sync().close()
    return folder


def label(folder: Path, drawn: str, most: int = 80) -> None:
    """Label a run: the first cases of a random order, or all cases that a plan draws for its pilot."""
    if drawn == "plan":
        with open_run(folder) as opened:
            write_plan(make_plan(opened, within=0.1, seed=1), folder)
    with open_label_queue(folder, seed=3) as queue:
        for _ in range(most):
            task = queue.next("ann")
            if task is None:
                break
            queue.record("ann", task.case, is_good(str(task.content)))


def read(folder: Path) -> list[Label]:
    """The labels of a run."""
    with open_label_queue(folder) as queue:
        return list(queue.labels())


@pytest.fixture(scope="module", params=DRAWN)
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A labelled run ``monday`` and its labels as a file, once for each draw."""
    place = tmp_path_factory.mktemp(request.param)
    judge(place / "monday", make_cases())
    label(place / "monday", request.param)
    write_labels(place / "labels.jsonl", read(place / "monday"))
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    """A copy of both to change."""
    return shutil.copytree(made, tmp_path / "place")


@pytest.fixture
def line(place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Line:
    """The command line where they are."""
    cli.isolate(monkeypatch, place)
    return Line(capsys)


def change(path: Path, edit: Callable[[dict[str, Any]], None]) -> None:
    """Edit a JSON file, or every line of one."""
    text = path.read_text()
    rows = [json.loads(row) for row in text.splitlines()] if path.suffix == ".jsonl" else [json.loads(text)]
    for row in rows:
        edit(row)
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")


def swap(cases: list[Case], one: int, other: int) -> list[Case]:
    """The same contents, two of them under each other's id."""
    swapped = list(cases)
    swapped[one] = replace(cases[one], content=cases[other].content)
    swapped[other] = replace(cases[other], content=cases[one].content)
    return swapped


def find_labelled(place: Path) -> int:
    """The number of a case that was labelled."""
    return int(load_labels(place / "labels.jsonl")[0].case[1:])


def drop(cases: list[Case], number: int) -> list[Case]:
    """All cases but one."""
    return [case for case in cases if case.id != f"c{number}"]


def rename(cases: list[Case], number: int) -> list[Case]:
    """The same contents, one of them under another id."""
    return [replace(case, id="renamed") if case.id == f"c{number}" else case for case in cases]


HARMLESS: dict[str, Callable[[Path], Path]] = {
    "the run itself": lambda place: place / "monday",
    "another judge": lambda place: judge(place / "tuesday", make_cases(), is_short),
    "the same judge again": lambda place: judge(place / "tuesday", make_cases()),
    "another order": lambda place: judge(place / "tuesday", make_cases()[::-1]),
    "another judge and order": lambda place: judge(place / "tuesday", make_cases()[::-1], is_short),
    "other metadata": lambda place: judge(
        place / "tuesday", [replace(case, metadata={"at": "noon"}) for case in make_cases()]
    ),
    "judged twice": lambda place: judge(place / "tuesday", make_cases(), repeat=2),
    "redecided": lambda place: Path(redecide(place / "monday", threshold=0.9, out=place / "tuesday").folder or ""),
}
"""Runs for which the labels were drawn, because the contents are the same."""

OTHER: dict[str, Callable[[Path], Path]] = {
    "all contents": lambda place: judge(
        place / "tuesday", [replace(case, content=f"{case.content}!") for case in make_cases()]
    ),
    "one content that was labelled": lambda place: judge(
        place / "tuesday",
        [
            replace(case, content="a new answer") if case.id == f"c{find_labelled(place)}" else case
            for case in make_cases()
        ],
    ),
    "a case more": lambda place: judge(place / "tuesday", make_cases(CASES + 1)),
    "twice as many cases": lambda place: judge(place / "tuesday", make_cases(2 * CASES)),
    "a case less": lambda place: judge(place / "tuesday", drop(make_cases(), find_labelled(place))),
    "half of the cases": lambda place: judge(place / "tuesday", make_cases(CASES // 2)),
    "a sample of the cases": lambda place: judge(place / "tuesday", make_cases(), sample=120),
    "a content twice, another missing": lambda place: judge(
        place / "tuesday", [*drop(make_cases(), 5), Case(id="c5", content=make_cases()[6].content)]
    ),
    "the same contents, two under each other's id": lambda place: judge(
        place / "tuesday", swap(make_cases(), find_labelled(place), (find_labelled(place) + 1) % CASES)
    ),
    "the same contents, one under another id": lambda place: judge(
        place / "tuesday", rename(make_cases(), find_labelled(place))
    ),
}
"""Runs for which nobody drew the labels: the contents differ, or what the draw's cases are called."""


@pytest.mark.slow_table
@pytest.mark.parametrize("target", HARMLESS)
def test_a_draw_belongs_to_its_contents_and_not_to_a_run(place: Path, line: Line, target: str):
    """Whichever judge judged them, and in whichever order: the rate is given, and the gate goes by it."""
    folder = str(HARMLESS[target](place))
    document = line("agree", folder, "--labels", "labels.jsonl", "--json").document
    words = line("agree", folder, "--labels", "labels.jsonl").out
    gate = line("report", folder, "--labels", "labels.jsonl", "--fail-under-corrected", "0.5")

    assert document["sampling"] == "plan"
    assert (document["other_contents"], document["other_draws"], document["unbound"]) == (0, 0, 0)
    assert not document["refused"]
    assert document["rate"]["low"] < 0.75 < document["rate"]["high"]
    assert "not counted" not in words
    assert gate.status == 0


@pytest.mark.slow_table
@pytest.mark.parametrize("target", OTHER)
def test_a_draw_from_other_contents_is_no_random_sample(place: Path, line: Line, target: str):
    """It is not called one, gives no rate and opens no gate, and the first line says how many labels there are."""
    folder = str(OTHER[target](place))
    arguments = ("--labels", "labels.jsonl")
    document = line("agree", folder, *arguments, "--json").document
    first = line("agree", folder, *arguments).out.splitlines()[0]
    claimed = line("agree", folder, *arguments, "--labels-are", "random", "--json").document
    gate = line("report", folder, *arguments, "--fail-under-corrected", "0.01")
    shown = line("report", folder, *arguments)

    assert document["sampling"] == "unknown"
    assert document["other_contents"] + document["other_draws"] > 0
    assert any(str(number) in first for number in (document["other_contents"], document["other_draws"]) if number)
    assert "drawn from this run" not in " ".join(line("agree", folder, *arguments).out.split())
    assert claimed["sampling"] != "random"
    assert (gate.status, shown.status) == (3, 0)
    assert shown.out.splitlines()[0] == first


def test_a_label_of_another_content_counts_nowhere(place: Path):
    """Neither in a measurement nor in a report, a data set or a replacement; those of unchanged contents do."""
    cases = [replace(case, content=f"{case.content}!") if int(case.id[1:]) % 2 else case for case in make_cases()]
    labels = load_labels(place / "labels.jsonl")
    kept = [item for item in labels if int(item.case[1:]) % 2 == 0]
    with open_run(judge(place / "tuesday", cases)) as done, open_run(place / "monday") as before:
        measurement = make_measurement(done, labels=labels)
        joined = [case for case in Dataset.of(cases).with_labels(labels) if case.labels]
        report = make_report(done, labels=labels)
        replacement = compare_replacements(before, [before], labels=labels)

        assert (measurement.labelled, measurement.other_contents) == (len(kept), len(labels) - len(kept))
        assert {case.id for case in joined} == {item.case for item in kept}
        assert report.labels is not None
        assert report.labels.accuracy.of == len(kept)
        assert {case.id for case in list_labelled(done, labels)} == {item.case for item in kept}
        assert replacement.cases == len(labels)


# ---------------------------------------------------------------- what is missing or forged


def leave_out_subjects(row: dict[str, Any]) -> None:
    """As an import from another tool."""
    row.pop("subject")


def leave_out_contents(row: dict[str, Any]) -> None:
    """As a label of another tool."""
    row["design"] = {name: row["design"][name] for name in ("plan", "stratum", "p")}


def forge_subject(row: dict[str, Any]) -> None:
    """A digest of nothing."""
    row["subject"] = "0" * 64


def forge_contents(row: dict[str, Any]) -> None:
    """The digest of another set."""
    row["design"]["contents"] = "0" * 64


def forge_cases(row: dict[str, Any]) -> None:
    """Another number of cases."""
    row["design"]["cases"] += 1


def forge_size(row: dict[str, Any]) -> None:
    """A stratum of a hundred thousand."""
    row["design"]["size"] = 100_000


def shrink_size(row: dict[str, Any]) -> None:
    """A stratum of fewer cases than have a label, in a set of as many cases as before."""
    sizes = {"s1": 3, "s2": row["design"]["cases"] - 3}
    row["design"]["size"] = sizes.get(row["design"]["stratum"], 3)


@pytest.mark.slow_table
@pytest.mark.parametrize(
    "edit",
    [leave_out_subjects, leave_out_contents, forge_subject, forge_contents, forge_cases, forge_size, shrink_size],
)
def test_labels_without_digests_or_with_forged_ones_are_never_a_random_sample(
    place: Path, line: Line, edit: Callable[[dict[str, Any]], None]
):
    """They are read, and counted where the content is not known to be another one."""
    change(place / "labels.jsonl", edit)
    folder = str(judge(place / "tuesday", make_cases(), is_short))
    document = line("agree", folder, "--labels", "labels.jsonl", "--json").document
    gate = line("report", folder, "--labels", "labels.jsonl", "--fail-under-corrected", "0.01")

    assert document["sampling"] == "unknown"
    assert document["labelled"] == (0 if edit is forge_subject else len(load_labels(place / "labels.jsonl")))
    assert document["unbound"] == (document["labelled"] if edit is leave_out_subjects else 0)
    assert gate.status == 3


def test_labels_without_digests_are_random_on_the_word_of_the_user_alone(place: Path, line: Line):
    """The first line of each command says how many are bound to no content; with digests it says nothing of it."""
    folder = str(judge(place / "tuesday", make_cases(), is_short))
    bare, some = place / "bare.jsonl", place / "some.jsonl"
    labels = [replace(each, design=None) for each in load_labels(place / "labels.jsonl")]
    write_labels(bare, [replace(each, subject=None) for each in labels])
    write_labels(some, [*labels[3:], *[replace(each, subject=None) for each in labels[:3]]])
    write_labels(place / "bound.jsonl", labels)
    for name, number in (("bare", len(labels)), ("some", 3), ("bound", 0)):
        arguments = ("--labels", f"{name}.jsonl", "--labels-are", "random")
        document = line("agree", folder, *arguments, "--json").document
        firsts = [line(command, folder, *arguments).out.splitlines()[0] for command in ("agree", "report")]

        shown = " ".join(line("agree", folder, *arguments).out.split())

        assert (document["sampling"], document["unbound"]) == ("random", number)
        for first in firsts:
            assert first.startswith(f"{number} of {len(labels)} labelled cases are bound to no content") == bool(number)
        # Nobody could look whether it is so: only the user says it.
        for text in (shown, " ".join(document["rate"]["assumptions"])):
            assert "You said that the labelled cases were drawn at random from this run" in text
            assert "The labelled cases were drawn" not in text


@pytest.mark.parametrize("bound", [True, False])
def test_labels_of_every_case_without_digests_are_counted_and_it_is_said(place: Path, line: Line, bound: bool):
    """Nothing is estimated then, and still nothing shows that last week's answers are not what people read."""
    folder = str(judge(place / "tuesday", make_cases(), is_short))
    with open_run(folder) as run:
        subjects = {item.case.id: item.result.subject for item in run.items()}
    write_labels(
        place / "every.jsonl",
        [Label(case=case, rater="ann", value=True, subject=at if bound else None) for case, at in subjects.items()],
    )
    document = line("agree", folder, "--labels", "every.jsonl", "--json").document
    firsts = [line(command, folder, "--labels", "every.jsonl").out.splitlines()[0] for command in ("agree", "report")]

    assert (document["sampling"], document["unbound"]) == ("census", 0 if bound else len(subjects))
    for first in firsts:
        assert first.startswith(f"{len(subjects)} of {len(subjects)} labelled cases are bound to no content") != bound


def test_sizes_of_strata_that_labels_state_are_called_stated(tmp_path: Path, line: Line):
    """In the run of the plan they count for nothing; in a run of another judge nothing shows that they are true."""
    monday, tuesday = judge(tmp_path / "monday", make_cases()), judge(tmp_path / "tuesday", make_cases(), is_short)
    label(monday, "plan")
    labels = read(monday)
    names = sorted({each.design.stratum for each in labels if each.design is not None})

    def shift(each: Label) -> Label:
        assert each.design is not None
        assert each.design.size is not None
        moved = {names[0]: 10, names[1]: -10}.get(each.design.stratum, 0)
        return replace(each, design=replace(each.design, size=each.design.size + moved))

    write_labels(tmp_path / "honest.jsonl", labels)
    write_labels(tmp_path / "shifted.jsonl", map(shift, labels))
    honest, shifted = (
        [line("agree", str(run), "--labels", str(tmp_path / name), "--json").document for run in (monday, tuesday)]
        for name in ("honest.jsonl", "shifted.jsonl")
    )

    assert shifted[0]["rate"] == honest[0]["rate"]
    for here, elsewhere in (honest, shifted):
        assert (here["sampling"], elsewhere["sampling"]) == ("plan", "plan")
        assert not [note for note in here["notes"] if "sizes of the strata" in note]
        assert [note for note in elsewhere["notes"] if "sizes of the strata are what the labels say" in note]
    assert "what the labels say" in " ".join(
        line("agree", str(tuesday), "--labels", str(tmp_path / "shifted.jsonl")).out.split()
    )


def forge_plan(name: str) -> Callable[[Path], None]:
    """Edits of one file in the folder of a run with a plan."""

    def edit(folder: Path) -> None:
        def inflate(plan: dict[str, Any]) -> None:
            plan["strata"][0]["size"] = 100_000

        def shift(plan: dict[str, Any]) -> None:
            plan["strata"][0]["size"] += 10
            plan["strata"][1]["size"] -= 10

        def other_contents(plan: dict[str, Any]) -> None:
            plan["contents"]["digest"] = "0" * 64

        def other_number(plan: dict[str, Any]) -> None:
            plan["contents"]["cases"] += 1

        def without(plan: dict[str, Any]) -> None:
            plan["contents"] = None

        def choose(plan: dict[str, Any]) -> None:
            drawn = {item["case"] for item in plan["order"]}
            item = next(item for item in plan["order"] if item["stratum"] == plan["strata"][0]["name"])
            with open_run(folder) as opened:
                outcome = plan["strata"][0]["about"]
                other = next(it.case for it in opened.items(outcome) if it.case.id not in drawn)  # type: ignore[arg-type]
            item |= {"case": other.id, "subject": digest_content(other.content)}

        def manifest(document: dict[str, Any]) -> None:
            document["dataset"]["contents"]["digest"] = "0" * 64

        path = folder / ("run.json" if name == "manifest" else "plan.json")
        change(path, locals()[name])

    return edit


@pytest.mark.slow_table
@pytest.mark.parametrize(
    "name", ["inflate", "shift", "other_contents", "other_number", "without", "choose", "manifest"]
)
def test_a_file_that_was_changed_alone_is_found_out(tmp_path: Path, line: Line, name: str):
    """``plan`` refuses it, ``agree`` and the gate give no rate: the three agree."""
    folder = judge(tmp_path / "run", make_cases())
    label(folder, "plan")
    honest = line("report", str(folder), "--fail-under-corrected", "0.5").status
    forge_plan(name)(folder)
    plan, ran = line("plan", str(folder)), line("agree", str(folder), "--json")
    gate = line("report", str(folder), "--fail-under-corrected", "0.01")

    assert honest == 0
    assert plan.status == 2
    assert gate.status != 0
    assert ran.status == 2 or ran.document["sampling"] == "unknown"


def keep_as_it_is(folder: Path) -> Path:
    """The folder of the run."""
    return folder


def copy_elsewhere(folder: Path) -> Path:
    """The same folder under another name, in another place."""
    return shutil.copytree(folder, folder.parent / "elsewhere" / "copied")


def write_anew(folder: Path) -> Path:
    """The same values in files that another tool wrote, with its own line ends and order of members."""
    for name in ("plan.json", "run.json"):
        document = json.loads((folder / name).read_text())
        (folder / name).write_text(json.dumps(dict(reversed(document.items())), indent=7))
    return folder


def judge_by_another(folder: Path) -> Path:
    """Another judge's run of the same contents, to which the labels were taken."""
    other = judge(folder.parent / "tuesday", make_cases(), is_short)
    with open_label_queue(other) as queue:
        queue.import_labels(read(folder))
    return other


def turn_labels_round(folder: Path) -> Path:
    """The same labels, the last first."""
    other = shutil.copytree(folder, folder.parent / "turned", ignore=shutil.ignore_patterns("labels.sqlite*"))
    with open_label_queue(other) as queue:
        queue.import_labels(read(folder)[::-1])
    return other


def redraw(folder: Path) -> Path:
    """A run whose plan was thrown away and drawn anew before anybody labelled a case."""
    other = judge(folder.parent / "redrawn", make_cases())
    with open_run(other) as opened:
        first = write_plan(make_plan(opened, within=0.05, seed=8), other)
    before = json.loads(first.read_text())["id"]
    first.unlink()
    label(other, "plan")
    assert json.loads(first.read_text())["id"] != before
    return other


@pytest.mark.slow_table
@pytest.mark.parametrize(
    "change_nothing", [keep_as_it_is, copy_elsewhere, write_anew, judge_by_another, turn_labels_round, redraw]
)
def test_what_changes_no_content_and_no_draw_leaves_a_plan_valid(
    tmp_path: Path, line: Line, change_nothing: Callable[[Path], Path]
):
    """``plan`` goes on, and ``agree`` and the gate give the rate: the three agree here too."""
    folder = judge(tmp_path / "run", make_cases())
    label(folder, "plan")
    honest = line("agree", str(folder), "--json").document
    changed = change_nothing(folder)
    has_plan = (changed / "plan.json").exists()
    plan = line("plan", str(changed)) if has_plan else None
    document = line("agree", str(changed), "--json").document
    gate = line("report", str(changed), "--fail-under-corrected", "0.5")

    assert has_plan == (change_nothing is not judge_by_another)
    assert plan is None or plan.status == 0
    assert gate.status == 0
    assert document["sampling"] == "plan"
    assert (document["other_contents"], document["other_draws"], document["unbound"]) == (0, 0, 0)
    assert document["rate"]["labels"] == honest["rate"]["labels"]
    assert document["rate"]["low"] < 0.75 < document["rate"]["high"]


def test_a_plan_with_more_drawn_cases_than_a_stratum_has_is_called_damaged(tmp_path: Path, line: Line):
    """By every command, with what to do; and nobody says that its labels are too many."""
    folder = judge(tmp_path / "run", make_cases())
    label(folder, "plan")

    def shrink(plan: dict[str, Any]) -> None:
        plan["strata"][1]["size"] += plan["strata"][0]["size"] - 3
        plan["strata"][0]["size"] = 3

    change(folder / "plan.json", shrink)
    for words in (("plan",), ("agree",), ("report", "--fail-under-corrected", "0.01")):
        ran = line(words[0], str(folder), *words[1:])
        assert ran.status == 2
        assert "parts do not fit together" in ran.sentence
        assert "draw another plan" in ran.sentence


def test_labels_of_a_plan_that_is_not_relied_on_are_not_called_those_of_other_contents(tmp_path: Path, line: Line):
    """They are of these contents; it is the plan that does not fit."""
    folder = judge(tmp_path / "run", make_cases())
    label(folder, "plan")
    forge_plan("shift")(folder)

    assert "drawn from other contents, or by a plan that does not fit them" in line("agree", str(folder)).out


def test_a_run_that_grew_while_it_was_labelled_says_how_many_were_drawn_before(tmp_path: Path, line: Line):
    """Labels drawn from the smaller run are counted in the first line, and are no sample of the larger."""
    folder = judge(tmp_path / "run", make_cases())
    label(folder, "order", 70)
    before = line("report", str(folder), "--fail-under-corrected", "0.5").status
    judge(folder, make_cases(2 * CASES), resume=True)
    document = line("agree", str(folder), "--json").document
    gate = line("report", str(folder), "--fail-under-corrected", "0.01")

    assert before == 0
    assert (document["sampling"], document["other_draws"]) == ("unknown", 70)
    assert "70 labelled cases" in gate.out.splitlines()[0]
    for words in (("agree", str(folder), "--markdown"), ("report", str(folder), "--markdown", "-")):
        assert "70 labelled cases" in line(*words).out.splitlines()[1]
    assert gate.status == 3


def test_a_run_that_grew_after_its_plan_certifies_nothing(tmp_path: Path, line: Line):
    """A rate that was drawn from the smaller one is not that of the larger: all three say so."""
    folder = judge(tmp_path / "run", make_cases())
    label(folder, "plan")
    before = line("report", str(folder), "--fail-under-corrected", "0.5").status
    judge(folder, [*make_cases(), *[Case(id=f"d{n}", content=f"a curt reply {n}") for n in range(800)]], resume=True)
    plan, document = line("plan", str(folder)), line("agree", str(folder), "--json").document
    gate = line("report", str(folder), "--fail-under-corrected", "0.01")

    assert before == 0
    assert plan.status == 2
    assert "960" in plan.sentence
    assert document["sampling"] == "unknown"
    assert document["other_draws"] == document["labelled"]
    assert gate.status == 3
    with open_label_queue(folder) as queue:
        assert queue.plan is None
        assert queue.draw_problem is not None
        assert queue.progress("ann").total == CASES + 800


# ---------------------------------------------------------------- before a run is complete


def grow(folder: Path, first: int, most: int) -> list[str]:
    """Label some cases of a run that is not finished, finish it, and return which were labelled."""
    cases = make_cases()
    started = run(cases, judge_function(is_kind), criteria="Is kind.", out=folder, concurrency=1)

    async def begin() -> None:
        done = 0
        async for _ in started:
            done += 1
            if done == first:
                break

    asyncio.run(begin())
    label(folder, "order", most)
    early = [item.case for item in read(folder)]
    judge(folder, cases, resume=True)
    return early


def test_cases_labelled_before_the_run_was_complete_are_no_sample_of_it(tmp_path: Path, line: Line):
    """The first forty were all there was to draw from; what is finished later gives no rate of them."""
    folder = tmp_path / "run"
    early = grow(folder, 40, 30)
    document = line("agree", str(folder), "--json").document

    assert len(early) == 30
    assert document["labelled"] == 30
    assert document["sampling"] == "unknown"
    assert line("report", str(folder), "--fail-under-corrected", "0.01").status == 3


def test_early_labels_count_when_the_order_comes_to_them(tmp_path: Path):
    """Then the labelled cases are those that the random order over the whole run drew, in their places."""
    folder = tmp_path / "run"
    early = grow(folder, 40, 30)
    with open_label_queue(folder) as queue:
        later = []
        for _ in range(60):
            task = queue.next("ann")
            assert task is not None
            later.append(task.case)
            queue.record("ann", task.case, is_good(str(task.content)))
        counted = [item.case for item in queue.labels() if item.design is not None]
        draws = queue.list_draws()
    with open_label_queue(judge(tmp_path / "other", make_cases()), seed=3) as queue:
        order = []
        while (task := queue.next("ann")) is not None:
            order.append(task.case)
            queue.record("ann", task.case, True)

    assert set(counted) == set(order[: order.index(later[-1]) + 1])
    assert set(later) < set(counted) <= set(early) | set(later)
    assert draws is not None
    assert len(draws.draws) == len(counted)


def test_picked_cases_count_when_the_order_comes_to_them(tmp_path: Path):
    """Somebody labels the worst first: without these, what the order hands out afterwards would look too good."""
    folder = judge(tmp_path / "run", make_cases())
    with open_label_queue(folder, seed=3) as queue:
        for case in make_cases():
            if not is_good(str(case.content)):
                queue.record("ann", case.id, False)
        assert all(item.design is None for item in queue.labels())
        while (task := queue.next("ann")) is not None:
            queue.record("ann", task.case, is_good(str(task.content)))
            drawn = [item for item in queue.labels() if item.design is not None]
            if len(drawn) >= 80:
                break
        bad = sum(item.value is False for item in drawn)

    assert 8 <= bad <= 32
    with open_run(folder) as opened:
        measurement = make_measurement(opened)
    assert measurement.sampling == "plan"
    assert measurement.rate is not None


def test_a_label_without_a_digest_fills_no_place(place: Path):
    """Its case comes up all the same, and the label that is given then counts in its place."""
    folder = judge(place / "tuesday", make_cases())
    labels = [Label(case=f"c{n}", rater="ann", value=False) for n in range(0, CASES, 4)]
    with open_label_queue(folder, seed=1) as queue:
        imported = queue.import_labels(labels)
        seen = set()
        while (task := queue.next("ann")) is not None:
            seen.add(task.case)
            queue.record("ann", task.case, is_good(str(task.content)))
        again = queue.import_labels(labels)

        assert (imported.added, again.added) == (len(labels), 0)
        assert len(seen) == CASES
        assert all(item.subject is not None for item in queue.labels())


# ---------------------------------------------------------------- all ways in


def test_importing_leaves_labels_of_another_content_out(place: Path, line: Line):
    """The first line says how many cases, and where nothing is left the command fails."""
    cases = [replace(case, content=f"{case.content}!") if int(case.id[1:]) % 2 else case for case in make_cases()]
    judge(place / "tuesday", cases)
    judge(place / "other", [replace(case, content=f"{case.content}!") for case in make_cases()])
    labels = load_labels(place / "labels.jsonl")
    odd = sum(int(item.case[1:]) % 2 for item in labels)
    ran = line("label", "tuesday", "--import", "labels.jsonl")
    refused = line("label", "other", "--import", "labels.jsonl")

    assert ran.status == 0
    assert str(odd) in ran.out.splitlines()[0]
    assert f"{len(labels) - odd} labels taken in" in ran.out
    assert refused.status == 2
    assert "another content" in refused.sentence
    assert len(read(place / "tuesday")) == len(labels) - odd


def test_imported_labels_keep_their_draw_in_a_run_of_the_same_contents(place: Path):
    """Another judge's run has the same labels, drawn as they were."""
    folder = judge(place / "tuesday", make_cases()[::-1], is_short)
    with open_label_queue(folder) as queue:
        queue.import_labels(load_labels(place / "labels.jsonl"))
    with open_run(folder) as opened:
        assert make_measurement(opened).sampling == "plan"


def test_an_answer_about_another_content_is_refused(place: Path):
    """A page that was loaded before the run was made again holds another text."""
    with open_label_queue(judge(place / "tuesday", make_cases()), seed=1) as queue:
        task = queue.next("ann")
        assert task is not None
        assert task.subject == digest_content(task.content)
        with pytest.raises(UsageError, match="another content"):
            queue.record("ann", task.case, True, subject="0" * 64)
        assert list(queue.labels()) == []
        assert queue.record("ann", task.case, True, subject=task.subject).subject == task.subject
        with pytest.raises(UsageError, match="another content"):
            queue.adjudicate("zoe", task.case, True, subject="0" * 64)


def test_labels_of_a_data_set_are_drawn_for_every_run_of_it(tmp_path: Path):
    """People may label before anybody judges; the contents are the same afterwards."""
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps({"id": case.id, "content": case.content}) + "\n" for case in make_cases()))
    with open_label_queue(path, seed=1) as queue:
        for _ in range(60):
            task = queue.next("ann")
            assert task is not None
            queue.record("ann", task.case, is_good(str(task.content)))
        labels = list(queue.labels())
    done = run(path, judge_function(is_kind), criteria="Is kind.", out=tmp_path / "run").finish_sync()

    assert make_measurement(done, labels=labels).sampling == "plan"
    with path.open("a") as file:
        file.write('{"id": "more", "content": "one more"}\n')
    more = run(path, judge_function(is_kind), criteria="Is kind.", out=tmp_path / "more").finish_sync()
    assert make_measurement(more, labels=labels).sampling == "unknown"
    with open_label_queue(path) as queue:
        assert {item.design.cases for item in queue.labels() if item.design is not None} == {CASES}


def test_the_swapped_sides_of_a_pair_are_another_content(tmp_path: Path):
    """Whoever preferred the first said nothing of a pair whose first was the second; how it is written is no matter."""

    def keep(folder: Path, *cases: Case) -> Run:
        return run(list(cases), Judge(Prefer()), criteria="Is good.", pairs=True, out=folder).finish_sync()

    pairs = [Case(id=f"p{n}", content={"a": f"left {n}", "b": f"right {n}"}) for n in range(40)]
    turned = [replace(pairs[0], content={"a": "right 0", "b": "left 0"}), *pairs[1:]]
    written = [Case(id=case.id, content=dict(reversed(case.content.items()))) for case in pairs]
    done = keep(tmp_path / "run", *pairs)
    with open_label_queue(done, seed=1) as queue:
        for _ in range(30):
            task = queue.next("ann")
            assert task is not None
            queue.record("ann", task.case, "first")
        labels = list(queue.labels())
    results = {item.case.id: item.result.subject for item in done.items()}

    assert all(item.subject == results[item.case] for item in labels)
    assert make_measurement(done, labels=labels).sampling == "plan"
    assert make_measurement(keep(tmp_path / "written", *written), labels=labels).sampling == "plan"
    labels = [*labels, replace(labels[0], case="p0", subject=results["p0"])]
    measurement = make_measurement(keep(tmp_path / "turned", *turned), labels=labels)
    assert measurement.sampling == "unknown"
    assert measurement.other_contents >= 1


class Prefer:
    """A model that prefers whatever is shown first."""

    name = "first"

    async def complete(self, request: Any, /) -> Any:
        """Prefer the first."""
        return make_scripted_reply({"reasoning": "r", "preferred": "first"}, request, "first")


def test_verdicts_in_a_file_are_of_contents_too(tmp_path: Path):
    """A model's row says what it judged; a person's label of another content does not count against it."""
    contents = {f"c{n}": digest_content(f"answer {n}") for n in range(20)}
    judged = [
        Label(case=case, rater="judge", kind="model", value=True, subject=subject) for case, subject in contents.items()
    ]
    people = [Label(case=case, rater="ann", value=True, subject=subject) for case, subject in contents.items()]
    write_labels(tmp_path / "same.jsonl", [*judged, *people])
    write_labels(tmp_path / "other.jsonl", [*judged, *[replace(item, subject="0" * 64) for item in people]])

    assert [item.labelled for item in measure_file(tmp_path / "same.jsonl")] == [20]
    (measurement,) = measure_file(tmp_path / "other.jsonl")
    assert (measurement.labelled, measurement.other_contents) == (0, 20)


def test_a_plan_counts_labels_of_its_contents_alone(tmp_path: Path):
    """Labels of last week's answers fill no place of this week's plan, and neither do labels without a digest."""
    with open_run(judge(tmp_path / "run", make_cases())) as done:
        plan = make_plan(done, within=0.1, seed=1)
        good = [Label(case=item.case, rater="ann", value=True, subject=item.subject) for item in plan.order]
        old = [replace(item, subject=digest_content(f"last week's {item.case}")) for item in good]
        bare = [replace(item, subject=None) for item in good]

        assert not find_plan_status(plan, good).pending
        assert find_plan_status(plan, [*old, *good]) == replace(find_plan_status(plan, good), other_contents=len(old))
        stale, unbound = find_plan_status(plan, old), find_plan_status(plan, bare)
        assert (len(stale.pending), stale.other_contents) == (len(plan.order), len(old))
        assert (len(unbound.pending), unbound.unbound) == (len(plan.order), len(bare))
        assert continue_plan(plan, done, stale) is plan


def test_a_plan_and_a_measurement_count_the_same_cases(tmp_path: Path):
    """Also where some were labelled before the plan was drawn: they are in the draw that drew them."""
    folder = judge(tmp_path / "run", make_cases())
    label(folder, "order", 20)
    label(folder, "plan")
    with open_run(folder) as done:
        plan = load_plan(done)
        assert plan is not None
        status, measurement = find_plan_status(plan, read(folder)), make_measurement(done)
        planned = {item.case for item in plan.order}
        before = [item for item in read(folder) if item.case in planned and (item.at or plan.at) < plan.at]

    assert before
    assert status.pending == ()
    assert measurement.rate is not None
    assert measurement.rate.to_dict()["labels"] == sum(status.labelled) == len(plan.order)


def test_a_list_of_cases_says_what_is_to_be_read(tmp_path: Path, line: Line):
    """What comes back from a spreadsheet is bound to the contents, and counts for another judge's run."""
    folder = judge(tmp_path / "run", make_cases())
    line("plan", str(folder), "--within", "10", "--seed", "1", "--out", "cases.csv", "--rater", "ann")
    text = Path("cases.csv").read_text()
    Path("cases.csv").write_text(text.replace('"person",""', '"person","true"'))
    labels = load_labels("cases.csv")
    other = str(judge(tmp_path / "other", make_cases(), is_short))

    assert {item.subject for item in labels} <= {digest_content(case.content) for case in make_cases()}
    assert line("plan", str(folder), "--labels", "cases.csv").status == 0
    assert line("agree", other, "--labels", "cases.csv", "--json").document["sampling"] == "plan"


# ---------------------------------------------------------------- the digest of a set


def test_the_manifest_says_which_contents_were_judged(place: Path):
    """The same in every run of them; SHA-256 over the sorted digests, and their number."""
    with open_run(place / "monday") as one, open_run(judge(place / "tuesday", make_cases()[::-1], is_short)) as other:
        digests = sorted(bytes.fromhex(digest_content(case.content)) for case in make_cases())

        assert one.contents == other.contents == one.find_contents()
        assert one.contents is not None
        assert one.contents.digest == hashlib.sha256(b"".join(digests)).hexdigest()
        assert one.contents.cases == CASES
        plan = load_plan(one)
        assert plan is None or plan.contents == one.contents


def test_a_set_counts_what_is_repeated_and_not_the_order():
    """A million digests are sorted in pieces, with the same result."""
    digests = [digest_content(str(n)) for n in range(140_000)]

    assert make_content_set(digests) == make_content_set(reversed(digests))
    assert make_content_set(digests) != make_content_set([*digests, digests[0]])
    assert make_content_set(digests[:2]) != make_content_set([digests[0]] * 2)


def test_a_content_has_the_digest_that_its_results_have(tmp_path: Path):
    """Text, JSON and conversations; and what no judge can be shown has one of its own."""
    contents: list[Any] = [
        "text",
        {"b": 1, "a": [1, 2.5, None, True, "é"], "c": {}},
        [{"role": "user", "content": "hi"}],
        5,
        True,
    ]
    cases = [Case(id=f"c{n}", content=content) for n, content in enumerate(contents)]
    done = run(cases, judge_function(judge_all), criteria="Is good.", out=tmp_path / "run").finish_sync()

    for item in done.items():
        assert item.result.subject == digest_content(item.case.content)
    strange = ["\ud800", "a\x00b", {"image": "\udfff"}]
    assert len({digest_content(content) for content in strange}) == len(strange)


def judge_all(content: object) -> bool:
    """A judge of anything."""
    return content is not None
