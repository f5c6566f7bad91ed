"""The runs and labels that readers of pages have before their first command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from adjudge import Case, open_run, run
from adjudge.dataset import Label, digest_content, write_cases, write_labels
from adjudge.labels import make_paired_plans, open_label_queue
from kit import audited, docs
from kit.certificates import is_good
from kit.example_model import ExampleModel
from kit.labels import label_all
from kit.page_inputs import read_file

Renamed = dict[str, str]
"""By what a page says: what it is called here."""

JUDGES = {
    "adjudge.toml": """
[defaults]
judge = "words"
rubric = "honest"

[rubrics]
honest = "support.yaml"

[judges.words]
seats = ["python:page_judge:judge_words"]

[judges.careful]
seats = ["python:page_judge:judge_carefully"]

[judges.voting]
seats = ["words", "careful", "words"]
strategy = "majority"
stop_early = false
""",
    "support.yaml": """
name: Support reply
criteria:
  - {name: helps, description: Says what happens next.}
""",
    "page_judge.py": '''
"""Two judges in code."""


def judge_carefully(content: str) -> float:
    return 0.95 if "good" in content else 0.1


def judge_words(content: str) -> float:
    """It is unsure of answers that end in 5, and passes them."""
    return 0.75 if content.endswith("5") else judge_carefully(content)
''',
}


def write_project(answers: int = 150, *, bad: int = 3) -> None:
    """Judges, a rubric, answers, of which every so many is bad, and what somebody says of each in people.jsonl."""
    write_judges()
    cases = list_answers(answers, bad)
    write_cases("answers.jsonl", cases)
    write_labels("people.jsonl", map(label_rightly, cases))


def write_judges() -> None:
    """The configuration, a rubric and the judges."""
    for name, text in JUDGES.items():
        Path(name).write_text(text, encoding="utf-8")


def list_answers(number: int, bad: int) -> list[Case]:
    """Answers in two languages, of which every so many is bad, and says so."""
    return [
        Case(
            id=f"answer-{place}",
            content=f"a {'good' if place % bad else 'bad'} text {place}",
            metadata={"language": ("en", "de")[place % 2]},
        )
        for place in range(number)
    ]


def label_rightly(case: Case) -> Label:
    """The label of somebody who read an answer."""
    is_right = "good" in str(case.content)
    subject = digest_content(case.content)
    return Label(case=case.id, rater="ann", value=is_right, subject=subject, at=datetime.now(UTC), blind=True)


def call(line: str) -> None:
    """A command of adjudge, which succeeds."""
    status, printed = docs.run_commands([shlex.split(line)], goes_on=False)
    assert status == 0, printed


def keep_labelled(name: str, labelled: int, *raters: str) -> None:
    """A run of which people labelled some answers in random order, which is the same each time."""
    call(f"run answers.jsonl --out {name}")
    with open_label_queue(name, per_case=len(raters), seed=1) as queue:
        for rater in raters:
            label_all(queue, rater, is_good, most=labelled)


def import_labels(command: str, file: str = "people.jsonl") -> Renamed:
    """A command that asks for keys, and takes in the labels of a file instead."""
    return {f"adjudge {command}\n": f"adjudge {command} --import {file}\n"}


def press_keys(command: str, keys: str) -> Renamed:
    """A command that asks for keys, with somebody who presses these."""
    typed = "".join(f"{key}\\n" for key in keys)
    return {f"adjudge {command}\n": f"printf '{typed}' | adjudge {command}\n"}


def prepare_agree(directory: Path, model: ExampleModel) -> Renamed:
    """Two labelled runs, labels in files, and a data set that a judge and a person rated."""
    write_project(bad=15)
    keep_labelled("monday", 60, "ann", "bob")
    keep_labelled("tonight", 60, "ann")
    with open_label_queue("monday") as queue:
        labels = queue.labels()
    write_labels("ann.csv", [label for label in labels if label.rater == "ann"])
    write_labels("bob.jsonl", [label for label in labels if label.rater == "bob"])
    ratings = [{"ann": place % 3 > 0, "gpt": place % 4 > 0} for place in range(40)]
    write_cases("data.jsonl", [Case(id=f"q{n}", content=f"text {n}", labels=said) for n, said in enumerate(ratings)])
    return {}


def prepare_calibrate(directory: Path, model: ExampleModel) -> Renamed:
    """Answers to judge with what people say of them, and labelled runs of a cheap judge and a strong one."""
    write_project()
    call("run answers.jsonl --judge voting --out runs/cheap")
    call("label runs/cheap --import people.jsonl")
    call("run answers.jsonl --judge careful --out runs/strong")
    return import_labels("label runs/monday") | import_labels("label runs/monday --store random.labels")


def prepare_certificates(directory: Path, model: ExampleModel) -> Renamed:
    """A labelled run, and the gate of the page, which demands its certificate, without a release policy."""
    write_project(300)
    call("run answers.jsonl --judge careful --out monday")
    call("label monday --import people.jsonl")
    gate = re.sub("release_policy.*", "", read_file("docs/certificates.md", "adjudge.toml"))
    Path("adjudge.toml").write_text(JUDGES["adjudge.toml"] + gate, encoding="utf-8")
    Path("answer.txt").write_text("a good text", encoding="utf-8")
    return {}


def prepare_monitor(directory: Path, model: ExampleModel) -> Renamed:
    """A ledger in which people answered 31 audits, and would have stopped 9 of the contents."""
    answers = [place % 3 > 0 or place > 24 for place in range(31)]
    audited.use("sqlite:///adjudge.db", lambda gate, approvals: audited.label(gate, approvals, answers))
    return {}


def prepare_replace_judge(directory: Path, model: ExampleModel) -> Renamed:
    """Answers, of which people fail half, and the address of the double for a provider that it does not stand for."""
    write_project(bad=2)
    Path("support.yaml").rename("polite.yaml")
    return {"mistral:mistral-small-2603": f"'{model.url}#mistral-small-2603'"} | import_labels("label runs/old")


def prepare_label(directory: Path, model: ExampleModel) -> Renamed:
    """Answers, and two people who label them and differ on half of them, until a third settles it."""
    write_project(6)
    Path("support.yaml").rename("polite.yaml")
    return (
        press_keys("label monday", "121212")
        | press_keys("label monday --rater bob --per-case 2", "111111")
        | press_keys("label monday --adjudicate --rater zoe", "211")
    )


def prepare_two_systems(directory: Path, model: ExampleModel) -> Renamed:
    """Runs of three systems and of two judges, what people say of their answers, and pairs that they compared."""
    write_judges()
    answers = {name: list_answers(200, bad) for name, bad in {"old": 3, "new": 4, "next": 5}.items()}
    for name, cases in answers.items():
        write_cases(f"{name}.jsonl", cases)
        call(f"run {name}.jsonl --out runs/{name}")
    with open_run("runs/old") as old, open_run("runs/new") as new:
        plan, _ = make_paired_plans(old, new, within=0.06, seed=7)
    drawn = {planned.case for planned in plan.order}
    for name in ("old", "new"):
        write_labels(f"{name}-labels.jsonl", [label_rightly(case) for case in answers[name] if case.id in drawn])
    for name, judge in {"a": "words", "b": "careful"}.items():
        call(f"run old.jsonl --judge {judge} --out runs/judge-{name}")
    write_labels("judged-labels.jsonl", map(label_rightly, answers["old"]))
    write_pairs(answers["old"][:60], answers["new"][:60])
    return (
        {"--within 6": "--within 6 --seed 7"}
        | import_labels("label runs/old", "old-labels.jsonl")
        | import_labels("label runs/new", "new-labels.jsonl")
        | import_labels("label runs/judge-a", "judged-labels.jsonl")
        | import_labels("label runs/pairs")
    )


def write_pairs(first: list[Case], second: list[Case]) -> None:
    """The answers of two systems side by side, and which of them somebody prefers."""
    pairs, labels = [], []
    for one, other in zip(first, second, strict=True):
        pair = Case(id=one.id, content={"a": one.content, "b": other.content})
        is_right = [label_rightly(side).value for side in (one, other)]
        value = "tie" if is_right[0] == is_right[1] else "first" if is_right[0] else "second"
        pairs.append(pair)
        labels.append(replace(label_rightly(pair), value=value))
    write_cases("answers.jsonl", pairs)
    write_labels("people.jsonl", labels)


def prepare_reports(directory: Path, model: ExampleModel) -> Renamed:
    """Two labelled runs of the same questions, of which the later one has better answers."""
    write_judges()
    for name, bad in {"friday": 3, "monday": 60}.items():
        cases = [*list_answers(150, bad), Case(id="late", content="a good text")]
        write_cases(f"{name}.jsonl", cases)
        write_labels(f"{name}-labels.jsonl", map(label_rightly, cases))
        call(f"run {name}.jsonl --judge careful --out {name}")
        call(f"label {name} --import {name}-labels.jsonl")
    return {}


def prepare_plan(directory: Path, model: ExampleModel) -> Renamed:
    """Make a run of 1,200 answers, of which a few have no verdict."""

    def judge(content: str) -> bool:
        number = int(content.removeprefix("Answer "))
        if number <= 28:
            raise ValueError("no verdict")
        return number > 28 + 433

    cases = [Case(id=f"case-{number}", content=f"Answer {number}") for number in range(1, 1201)]
    run(cases, judge, criteria="Says what happens next.", out=directory / "runs/monday").finish_sync()
    return {"adjudge label runs/monday\n": "printf '1\\nq\\n' | adjudge label runs/monday\n"}


PREPARED: Mapping[str, Callable[[Path, ExampleModel], Renamed]] = {
    "docs/agree.md": prepare_agree,
    "docs/calibrate.md": prepare_calibrate,
    "docs/certificates.md": prepare_certificates,
    "docs/label.md": prepare_label,
    "docs/label-two-systems.md": prepare_two_systems,
    "docs/monitor.md": prepare_monitor,
    "docs/plan.md": prepare_plan,
    "docs/replace-judge.md": prepare_replace_judge,
    "docs/reports.md": prepare_reports,
}
"""By the page's place in the repository: see ``kit.page_files``."""
