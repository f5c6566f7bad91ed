"""Whether a judge may replace another: the same question about the same labelled cases, flips both ways, and a rule."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from adjudge import Case, Judge, Usage, UsageError, open_run, run
from adjudge.measurement import compare_replacements, list_labelled, make_measurement
from adjudge.models import Reply, Request
from adjudge.trust import find_grouped_difference, find_interval, find_paired_difference
from kit.cli import Line
from kit.environment import find_data
from kit.judges import names
from kit.runs import Words, make_cases

pytestmark = pytest.mark.timed


pytest.importorskip("scipy", reason="measuring needs the extra trust")

CRITERIA = "Is good."


def says(wrong: set[str], content: str) -> bool:
    """A judge in code that is right but for some contents."""
    return ("good" in content) != (content in wrong)


def judge(folder: Path, name: str, wrong: Any, cases: list[Case]) -> Any:
    """The run of a judge that is wrong about these cases."""
    contents = {cases[place].content for place in wrong}
    return run(cases, Judge(partial(says, contents), name=name), criteria=CRITERIA, out=folder / name).finish_sync()


@pytest.mark.slow
def test_flips_are_counted_both_ways_and_agreement_is_that_of_the_measurement(tmp_path):
    """Gained and lost cases, the agreement of both, and the test of their difference."""
    cases = make_cases(300)
    old = judge(tmp_path, "old", range(20), cases)
    new = judge(tmp_path, "new", range(10, 25), cases)

    replacement = compare_replacements(old, [new])
    [candidate] = replacement.candidates

    assert (candidate.gained, candidate.lost) == (10, 5)
    assert (candidate.agreement.before, candidate.agreement.after, candidate.agreement.of) == (280, 285, 300)
    assert sum(candidate.flips.values()) == 15
    assert [flip.case for flip in candidate.listed[:5]] == [f"case-{place}" for place in range(20, 25)]
    measured = make_measurement(new)
    assert candidate.agreement.after == measured.count("passed", "good") + measured.count("failed", "bad")
    assert candidate.wrong_passes is not None
    assert candidate.wrong_passes.after == measured.count("passed", "bad")
    assert (candidate.agreement.low, candidate.agreement.high) == find_paired_difference(10, 5, 300)


@pytest.mark.parametrize(
    ("wrong", "number", "standing"),
    [
        pytest.param(range(5), 1500, "may replace", id="as-good"),
        pytest.param(range(0, 1500, 4), 1500, "may not replace", id="worse"),
        pytest.param(range(2), 40, "unknown", id="too-few-labels"),
        pytest.param([0, *range(3, 500, 3)][:30], 1500, "unknown", id="passes-what-people-failed"),
    ],
)
def test_a_candidate_follows_only_where_the_labels_show_that_it_may(tmp_path, wrong, number, standing):
    """A worse one is told apart from one of which too little is known; only the first is shown to be worse."""
    cases = make_cases(number)
    old = judge(tmp_path, "old", range(5), cases)
    new = judge(tmp_path, "new", wrong, cases)

    replacement = compare_replacements(old, [new])

    assert replacement.candidates[0].standing == standing
    assert [item.judge for item in replacement.replacements] == (["new"] if standing == "may replace" else [])


class Counted(Words):
    """A model whose replies say how many tokens they used."""

    async def complete(self, request: Request, /) -> Reply:
        return replace(await super().complete(request), usage=Usage(input_tokens=100, output_tokens=10))


class CountedByPlace(Words):
    """A model that uses more tokens for the second case of each group, or for every other group."""

    def __init__(self, name: str, *, by_group: bool) -> None:
        super().__init__(name)
        self.by_group = by_group

    async def complete(self, request: Request, /) -> Reply:
        place = int(str(request.case).rpartition("-")[2])
        tokens = 100 + 50 * ((place // 2 if self.by_group else place) % 2)
        return replace(await super().complete(request), usage=Usage(input_tokens=tokens, output_tokens=10))


@pytest.mark.parametrize("by_group", [False, True])
def test_what_groups_cost_has_an_interval_unless_all_cost_the_same(tmp_path, by_group: bool):
    """Equal means of groups say nothing of other groups, and an interval without width would."""
    cases = [replace(case, group=f"g{place // 2}") for place, case in enumerate(make_cases(60))]
    old = judge(tmp_path, "old", [], cases)
    model = CountedByPlace("new", by_group=by_group)
    prices = {"new": {"input": 1.0, "output": 5.0}}
    new = run(cases, Judge(model), criteria=CRITERIA, out=tmp_path / "new", prices=prices).finish_sync()
    [candidate] = compare_replacements(old, [new]).candidates

    assert candidate.cost_usd[1] == pytest.approx(175e-6)
    assert (candidate.cost_interval is None) == (not by_group)
    if candidate.cost_interval is not None:
        assert candidate.cost_interval[0] < 175e-6 < candidate.cost_interval[1]


@pytest.mark.slow
def test_an_unknown_cost_does_not_put_a_candidate_first(tmp_path):
    """Of two that agree as often, the one whose cost is known comes first: unknown is not free."""
    cases = make_cases(900)
    old = judge(tmp_path, "old", range(5), cases)
    prices = {"known": {"input": 1.0, "output": 5.0}}
    unknown, known = (
        run(cases, Judge(Counted(name)), criteria=CRITERIA, out=tmp_path / name, prices=prices).finish_sync()
        for name in ("unknown", "known")
    )

    replacement = compare_replacements(old, [unknown, known])

    assert [item.cost_usd[1] is None for item in replacement.candidates] == [True, False]
    assert [item.judge for item in replacement.replacements] == ["known", "unknown"]


@pytest.mark.slow
def test_several_candidates_need_more_evidence_each(tmp_path):
    """All statements together are as sure as one, so each interval is wider."""
    cases = make_cases(600)
    old = judge(tmp_path, "old", range(5), cases)
    every = [judge(tmp_path, f"new-{at}", range(at), cases) for at in range(3)]

    alone = compare_replacements(old, every[:1]).candidates[0].agreement
    together = compare_replacements(old, every).candidates[0].agreement

    assert together.low < alone.low < alone.high < together.high


@pytest.mark.slow
def test_cases_of_few_groups_are_not_taken_for_independent_ones(tmp_path):
    """Cases of one group err together: below ten groups nothing is known of the difference."""
    cases = [
        Case(id=case.id, content=case.content, label=case.label, group=f"g{at % 4}")
        for at, case in enumerate(make_cases(900))
    ]
    old, new = judge(tmp_path, "old", range(5), cases), judge(tmp_path, "new", range(5), cases)

    candidate = compare_replacements(old, [new]).candidates[0]

    assert candidate.standing == "unknown"
    assert "groups" in candidate.why


def test_whoever_is_to_label_more_is_told_the_price(tmp_path):
    """The limits are for one look, and labelling on is a further one."""
    old, new = (judge(tmp_path, name, range(5), make_cases(40)) for name in ("old", "new"))
    candidate = compare_replacements(old, [new]).candidates[0]

    assert candidate.standing == "unknown"
    assert "label more cases, but these limits are for one look" in candidate.why


def test_judges_of_different_questions_or_cases_are_not_compared(tmp_path):
    """The difference would not be the judges' alone; the message says what to do."""
    cases = make_cases(30)
    old = judge(tmp_path, "old", (), cases)
    other = run(cases, Judge(partial(says, set())), criteria="Is kind.", out=tmp_path / "kind").finish_sync()
    fewer = judge(tmp_path, "fewer", (), cases[:20])

    with pytest.raises(UsageError) as question:
        compare_replacements(old, [other])
    with pytest.raises(UsageError) as part:
        compare_replacements(old, [fewer])
    with pytest.raises(UsageError) as nobody:
        compare_replacements(old, [])

    assert names(question.value, str(old.folder))
    assert names(part.value, "20", "30")
    assert names(nobody.value, "candidate")


def find_exact(gained: int, lost: int, of: int) -> tuple[float, float]:
    """The limits that were used before: exact ones of both counts (Clopper-Pearson), each at half the error."""
    one, other = (find_interval(count, of, 0.975, method="exact") for count in (gained, lost))
    return one[0] - other[1], one[1] - other[0]


def test_an_interval_of_a_difference_covers_what_it_says():
    """Over known shares and sizes it holds in 95 of 100 samples, and is much narrower than the exact ones together."""
    random = np.random.default_rng(1)
    held, widths, before = {}, 0.0, 0.0
    for better, worse, of in product((0.0, 0.01, 0.05, 0.2), (0.02, 0.1, 0.3), (50, 100, 400)):
        drawn = random.multinomial(of, [better, worse, 1 - better - worse], size=400)
        limits = [find_paired_difference(int(gained), int(lost), of) for gained, lost, _ in drawn]
        held[better, worse, of] = np.mean([low <= better - worse <= high for low, high in limits])
        widths += sum(high - low for low, high in limits[:20])
        before += sum(
            high - low for low, high in (find_exact(int(gained), int(lost), of) for gained, lost, _ in drawn[:20])
        )

    assert np.mean(list(held.values())) >= 0.945
    assert min(held.values()) >= 0.92, held
    assert before / widths > 1.35


@pytest.mark.parametrize(("gained", "lost", "of"), [(7, 3, 100), (0, 0, 1), (0, 0, 400), (5, 0, 5), (0, 40, 80)])
def test_an_interval_of_a_difference_is_bonett_and_prices(gained: int, lost: int, of: int):
    """The formula of their paper, cut at -1 and 1; it always has a width, and holds what was seen."""
    low, high = find_paired_difference(gained, lost, of)
    won, missed, z = (gained + 1) / (of + 2), (lost + 1) / (of + 2), 1.959963984540054
    reach = z * math.sqrt((won + missed - (won - missed) ** 2) / (of + 2))

    assert (low, high) == pytest.approx((max(won - missed - reach, -1), min(won - missed + reach, 1)))
    assert low < high
    assert low <= (gained - lost) / of <= high


@pytest.mark.parametrize("wrong", [(60, 50, 100), (-1, 0, 10), (0, 0, 0)])
def test_a_difference_of_counts_that_cannot_be_is_refused(wrong: tuple[int, int, int]):
    """Counts that are no part of the cases."""
    with pytest.raises(UsageError):
        find_paired_difference(*wrong)


@pytest.mark.parametrize("alike", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("groups", [12, 40])
def test_an_interval_of_a_difference_in_groups_covers(alike: float, groups: int):
    """Changes that come alone, partly together, and a whole group at once."""
    random, held = np.random.default_rng(5), 0
    for _ in range(300):
        together = random.choice([1, -1, 0], p=[0.1, 0.2, 0.7], size=groups).repeat(6)
        alone = random.choice([1, -1, 0], p=[0.1, 0.2, 0.7], size=groups * 6)
        drawn = np.where(random.random(groups).repeat(6) < alike, together, alone)
        low, high = find_grouped_difference(drawn.tolist(), np.arange(groups).repeat(6).tolist())
        held += low <= -0.1 <= high
        assert low < high

    assert held >= 0.92 * 300


def test_groups_without_any_change_still_leave_a_difference_open():
    """Each group counts as one case, for nothing shows how alike its cases are; other differences are refused."""
    low, high = find_grouped_difference([0] * 60, [at // 6 for at in range(60)])

    assert low < find_paired_difference(0, 0, 10)[0]
    assert high == -low
    for wrong in (([0.5, 1], ["a", "b"]), ([1, 1], ["a", "a"]), ([1], ["a", "b"])):
        with pytest.raises(UsageError):
            find_grouped_difference(*wrong)  # type: ignore[arg-type]


def judge_words(content: str) -> bool:
    """A judge in code for the command line."""
    return "good" in content


@pytest.mark.slow
def test_the_command_asks_the_candidates_and_ends_with_who_may_follow(tmp_path, capsys, monkeypatch):
    """A candidate is asked about the labelled cases alone, or read from its run; the exit status says the outcome."""
    labelled = make_cases(900)
    unlabelled = [Case(id=f"open-{at}", content=f"a good text of nobody {at}") for at in range(5)]
    old = judge(tmp_path, "old", range(5), [*labelled, *unlabelled])
    worse = judge(tmp_path, "worse", range(0, 900, 3), [*labelled, *unlabelled])
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    line = Line(capsys)
    words = ("replace-judge", "--judge", old.folder, "--candidate", "python:test_replacement:judge_words")

    ran = line(*words, "--candidate", worse.folder, "--out", tmp_path / "next", "--json")
    shown = line("replace-judge", "--judge", old.folder, "--candidate", worse.folder)
    few = line("replace-judge", "--judge", old.folder, "--candidate", worse.folder, "--margin", "2")

    assert ran.status == 0, ran.err
    assert ran.document["schema"] == "adjudge/replacement/1"
    assert len(ran.document["replacements"]) == 1
    assert [item["standing"] for item in ran.document["candidates"]] == ["may replace", "may not replace"]
    [folder] = (tmp_path / "next" / "candidates").iterdir()
    assert sum(open_run(folder).counts.values()) == 900
    assert shown.status == 1
    assert "may not replace" in shown.out
    assert few.status == 2
    assert names(few.sentence, "--margin")


def write_replies(path: Path, cases: list[Case], score: Callable[[str], bool]) -> Path:
    """A recording by hand: of each case the verdict of a judge."""
    rows = [
        {"case": case.id, "reply": {"text": json.dumps(make_reply_text(score(str(case.content))))}} for case in cases
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def make_reply_text(passes: bool) -> dict[str, Any]:
    """A reply as a model writes it; the token is put in its place when it is read."""
    entries = {"is-good": {"reasoning": "recorded", "score": 1.0 if passes else 0.0}}
    return {"token": "{{token}}", "criteria": entries, "reasoning": "recorded", "suggestions": []}


def recorded(score: Callable[[str, str], bool], name: str, content: str) -> bool:
    """A judge in code that says what a recorded one said."""
    return score(name, content)


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a shared file."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


Recorded = tuple[list[Case], Callable[[str, str], bool]]
"""Labelled cases, and what a judge that is named said of a content."""


@pytest.fixture(name="llmbar")
def provide_llmbar(cases) -> Recorded:
    """LLMBar, whose judges are recorded with ratings: 6 of 9 or more passes."""
    rows = read_rows(find_data(cases, "llmbar_ratings.jsonl.gz"))
    scores = {(row["judge"], row["item_id"], row["output"]): row["score"] for row in rows if row["prompt"] == "Rating"}
    labelled = [
        Case(id=f"{item['item_id']}/{number}", content=f"{item['item_id']} {number}", label=item["label"] == number)
        for item, number in product(read_rows(find_data(cases, "llmbar_items.jsonl.gz")), (1, 2))
        if all((name, item["item_id"], number) in scores for name in ("ChatGPT", "GPT-4"))
    ]

    def score(name: str, content: str) -> bool:
        item, number = content.rsplit(" ", 1)
        return (scores[name, item, int(number)] or 0) >= 6

    return labelled, score


def test_recorded_judges_follow_as_their_figures_say(llmbar: Recorded, tmp_path: Path):
    """Agreement is that of the measurement, and the weaker one may not replace it."""
    labelled, score = llmbar
    weak, strong = (
        run(
            labelled, Judge(partial(recorded, score, name), name=name), criteria=CRITERIA, out=tmp_path / name
        ).finish_sync()
        for name in ("ChatGPT", "GPT-4")
    )
    [candidate] = compare_replacements(weak, [strong]).candidates
    [back] = compare_replacements(strong, [weak]).candidates

    assert len(list_labelled(weak)) == candidate.agreement.of == len(labelled) > 100
    for done, right in ((weak, candidate.agreement.before), (strong, candidate.agreement.after)):
        measured = make_measurement(done)
        assert right == measured.count("passed", "good") + measured.count("failed", "bad")
    assert (candidate.gained, candidate.lost) == (back.lost, back.gained)
    assert candidate.gained > candidate.lost
    assert back.standing != "may replace"


def test_the_command_asks_recorded_judges_and_has_the_figures_of_agree(llmbar: Recorded, tmp_path: Path, capsys):
    """``adjudge run``, ``adjudge replace-judge`` and ``adjudge agree`` of the same recorded replies say the same."""
    labelled, score = llmbar
    rows = [{"id": case.id, "content": case.content, "label": case.label} for case in labelled]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    weak, strong = (
        f"replay:{write_replies(tmp_path / f'{name}.jsonl', labelled, partial(score, name))}"
        for name in ("ChatGPT", "GPT-4")
    )
    line = Line(capsys)
    ran = line("run", tmp_path / "data.jsonl", "--criteria", CRITERIA, "--judge", weak, "--out", tmp_path / "old")
    assert ran.status == 0, ran.err

    done = line("replace-judge", "--judge", tmp_path / "old", "--candidate", strong, "--json")
    assert done.err == "", done.err
    [candidate] = done.document["candidates"]
    for folder, figures, right in (
        (tmp_path / "old", done.document["measurement"], candidate["agreement"]["before"]),
        (candidate["folder"], candidate["measurement"], candidate["agreement"]["after"]),
    ):
        agreed = line("agree", folder, "--json").document
        for name in ("labelled", "verdicts", "table", "agreement", "sorts"):
            assert figures[name] == agreed[name]
        assert right == agreed["table"]["passed"]["good"] + agreed["table"]["failed"]["bad"]
