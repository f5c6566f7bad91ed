#!/usr/bin/env python3
"""Check that thresholds keep their promises, and are of use, for recorded judges whose truth is known for every case.

``--data DIR`` holds ``triviaqa_judges.jsonl.gz`` (UMass-Meta-LLM-Eval/llm_eval), ``rb2_scores_{base,criteria}_both_k8``
and ``rb2_scores_base_full_k8_t0p0`` (composo-ai/llm-judge-criteria-ensembling) and ``llmbar_{items,pairwise}``
(princeton-nlp/LLMBar), all ``.jsonl.gz``.
Each draw takes the labels of random cases without replacement, and gives them to the functions that ``adjudge
calibrate`` uses, at the first look. *Broken* is the share of draws whose threshold does not keep the promise on all
cases. The exit status is 1 when a bound below is not kept (less what chance explains with fewer than 500 draws).
``--write`` puts the tables into docs/coverage.md.

What stands for the score of a judge: for TriviaQA the share of six judges that passed an answer; for RewardBench 2 the
distance of the best of four answers to the next, in means of eight scores; for LLMBar that both orders of a pair led to
one verdict.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import common
import numpy as np
import suite
from measured_page import MeasuredPage, add_data, write_rows

sys.path.insert(0, str(suite.SOURCE))
from real_judges import read_rows

from adjudge.measurement.calibration import name_outcome
from adjudge.measurement.cascade_calibration import CascadeAdvice, choose_advice
from adjudge.trust import (
    Risk,
    ThresholdSearch,
    count_labelled,
    find_look_level,
    find_paired_difference,
    make_threshold_steps,
    search_threshold,
)
from adjudge.trust.threshold import compute_p_value

PAGE = MeasuredPage("coverage.md", "thresholds.py")
SEED, CONFIDENCE, MOST_BROKEN, LEAST_REFUSED = 20261128, 0.95, 0.07, 0.93
LEAST_SAVED, MOST_MISADVISED, LEAST_ADVISED = 0.60, 0.05, 0.80
"""Of the price of the strong judge, by a cascade; and draws that call a cheap judge better that is not, and, with 1,000
labels, one that is."""
VOTERS = ("GPT-4", "Llama-13B", "Llama-7B", "Mistral-7B", "Llama3-8B", "Gemma-2B")
PRICES = {"full": (2.5, 15.0), "mini": (0.75, 4.5)}
"""Dollars for a million tokens in and out."""
PROMPTS = ("Vanilla", "CoT", "Metrics", "Reference")

Array = np.ndarray


@dataclass(frozen=True)
class Recorded:
    """The verdicts of a judge and of people on the same cases."""

    name: str
    score: Array
    """NaN where the judge did not pass the case."""
    wrong: Array
    price: float = 0.0
    """The price of the cheap judge of a cascade, in prices of the strong one; 0 is unknown."""
    right: tuple[Array, Array] | None = None
    """Of a cascade, the cases that the cheap and the strong judge decide rightly."""

    @property
    def lead(self) -> float:
        """The share of cases that the cheap judge of a cascade is right about, less that of the strong one."""
        return 0.0 if self.right is None else float(self.right[0].mean() - self.right[1].mean())


@dataclass(frozen=True)
class Goal:
    """A promise, how many labels, and what has to come of it."""

    risk: Risk
    bound: float
    labels: int
    most_refused: dict[str, float]
    """By the beginning of the judge's name."""
    least_released: float = 0.0


GOALS = (
    Goal("wrong_pass", 0.05, 200, {"RewardBench": 0.05, "TriviaQA": 0.30}, 0.40),
    Goal("wrong_given_pass", 0.10, 500, {"RewardBench": 0.05, "TriviaQA": 0.05}, 0.54),
    Goal("wrong_given_pass", 0.05, 1000, {}),
)


def main() -> None:
    """Draw, print, and say whether the bounds are kept."""
    parser = PAGE.make_parser(__doc__, draws=500)
    add_data(parser)
    options = parser.parse_args()
    judges = [read_votes(options.data), *read_scores(options.data)]
    alone = [measure(judge, goal, options.draws) for goal in GOALS for judge in judges]
    pairs = [
        measure(judge, Goal("wrong_given_pass", 0.10, 200, {}), options.draws) for judge in read_pairs(options.data)
    ]
    cascades = [
        measure(judge, Goal("lost", 0.05, labels, {}), options.draws)
        for judge in read_cascades(options.data)
        for labels in ((200,) if not judge.price else (500, 1000) if judge.lead > 0 else (500,))
    ]
    looks = [measure_looks(read_votes(options.data), every, options.draws) for every in (25, 100)]
    common.print_table(HEAD, [show(row) for row in alone])
    common.print_table(PAIR_HEAD, [show_pair(row) for row in pairs])
    common.print_table(CASCADE_HEAD, [show_cascade(row) for row in cascades])
    common.print_table(LOOKS_HEAD, [show_looks(row) for row in looks])
    if options.write:
        write_page(alone, pairs, cascades, looks, options.draws)
    missed = list(list_missed(alone, pairs, cascades, options.draws))
    missed += [f"looks: broken in {row['broken']:.3f}" for row in looks if row["broken"] > MOST_BROKEN]
    figures = {"broken": max(row["broken"] for row in (*alone, *pairs, *cascades, *looks)), "missed": missed}
    common.print_verdict("thresholds", figures, met=not missed)


def list_missed(
    alone: Sequence[dict[str, Any]], pairs: Sequence[dict[str, Any]], cascades: Sequence[dict[str, Any]], draws: int
) -> Iterator[str]:
    """Yield what is not as it has to be."""
    slack = 3 * math.sqrt(0.05 * 0.95 / draws) * (draws < 500)
    for row in (*alone, *pairs, *cascades):
        if row["broken"] > MOST_BROKEN + slack:
            yield f"{row['judge']}, {row['promise']}: broken in {row['broken']:.3f}"
    for row in alone:
        most = next((most for name, most in row["goal"].most_refused.items() if row["judge"].startswith(name)), 1.0)
        if row["refused"] > most + slack or row["released"] < row["goal"].least_released - slack:
            yield f"{row['judge']}, {row['promise']}: refused in {row['refused']:.3f}, releases {row['released']:.3f}"
    for row in (*pairs, *cascades):
        if not row["possible"] and row["refused"] < LEAST_REFUSED - slack:
            yield f"{row['judge']}: refused in {row['refused']:.3f}"
    yield from list_useless(cascades, slack)


def list_useless(cascades: Sequence[dict[str, Any]], slack: float) -> Iterator[str]:
    """Yield the cascades that keep their promise and are of less use than was asked for, or are advised wrongly."""
    for row in cascades:
        if saves_too_little(row):
            yield f"{row['judge']}: saves {row['saves']:.3f}"
        if row["lead"] <= 0 and row["advice"]["cheap alone"] > MOST_MISADVISED + slack:
            yield f"{row['judge']}: the cheap one is called better in {row['advice']['cheap alone']:.3f}"
        if row["lead"] > 0 and row["labels"] >= 1000 and row["advice"]["cheap alone"] < LEAST_ADVISED - slack:
            yield f"{row['judge']}: the cheap one is called better only in {row['advice']['cheap alone']:.3f}"


def saves_too_little(row: dict[str, Any]) -> bool:
    """Return whether a cascade saves less than is asked for, where its price is known."""
    return row["saves"] is not None and row["saves"] < LEAST_SAVED


# ---------------------------------------------------------------- the judges


def read_votes(folder: Path) -> Recorded:
    """Answers of exam takers: the share of six judges that passed each; more than half is a pass."""
    rows = [row for row in read_rows(folder / "triviaqa_judges.jsonl.gz") if row["human"] is not None]
    rows = [row for row in rows if None not in (row["judges"][name] for name in VOTERS)]
    score = np.asarray([np.mean([row["judges"][name] for name in VOTERS]) for row in rows])
    wrong = np.asarray([not row["human"] for row in rows])
    return Recorded("TriviaQA, GPT-4 and five small ones", np.where(score > 0.5, score, np.nan), wrong)


def read_scores(folder: Path) -> Iterator[Recorded]:
    """The best of four answers by each judge, which is wrong unless it is the right one."""
    for prompt in ("base", "criteria"):
        rows = list(read_rows(folder / f"rb2_scores_{prompt}_both_k8.jsonl.gz"))
        for slot, model in (("full", "gpt-5.4"), ("mini", "gpt-5.4-mini")):
            choices = [choice for row in rows if (choice := choose(row, slot)) is not None]
            yield Recorded(
                f"RewardBench 2, {model}, {prompt}",
                np.asarray([margin for margin, _ in choices]),
                np.asarray([not right for _, right in choices]),
            )


def choose(row: dict[str, Any], slot: str) -> tuple[float, bool] | None:
    """The distance of the best answer to the next, from 0 to 1, and whether it is the right one; ties are wrong."""
    scores = [[score for score in answer if score is not None] for answer in row[f"{slot}_scores"]]
    if not all(scores):
        return None
    means = [float(np.mean(answer)) for answer in scores]
    first, second = sorted(means, reverse=True)[:2]
    return (first - second) / 10, means[0] > max(means[1:])


def read_winners(folder: Path) -> dict[tuple[str, str], dict[str, tuple[bool, bool]]]:
    """For each judge, prompt and pair: whether both orders led to one verdict, and whether the first is right."""
    labels = {row["item_id"]: int(row["label"]) for row in read_rows(folder / "llmbar_items.jsonl.gz")}
    winners: dict[tuple[str, str], dict[str, dict[str, int | None]]] = {}
    for row in read_rows(folder / "llmbar_pairwise.jsonl.gz"):
        if row["item_id"] in labels and row["prompt"] in PROMPTS and row["phase"] == "final":
            items = winners.setdefault((row["judge"], row["prompt"]), {})
            items.setdefault(row["item_id"], {})[row["order"]] = row["winner"]
    return {
        name: {
            item: (
                orders.get("AB") is not None and orders.get("AB") == orders.get("BA"),
                orders.get("AB") == labels[item],
            )
            for item, orders in items.items()
        }
        for name, items in winners.items()
    }


def read_pairs(folder: Path) -> Iterator[Recorded]:
    """Pairs of answers, released where both orders led to one verdict."""
    for (judge, prompt), items in sorted(read_winners(folder).items()):
        yield Recorded(
            f"LLMBar, {judge}, {prompt}",
            np.asarray([1.0 if agree else np.nan for agree, _ in items.values()]),
            np.asarray([not right for _, right in items.values()]),
        )


def read_cascades(folder: Path) -> Iterator[Recorded]:
    """The small model of RewardBench 2 first, and the large one where it is not sure; two models of LLMBar likewise."""
    base, criteria = (list(read_rows(folder / f"rb2_scores_{name}_both_k8.jsonl.gz")) for name in ("base", "criteria"))
    yield make_cascade("gpt-5.4-mini, else gpt-5.4, base", base, base)
    yield make_cascade("gpt-5.4-mini, else gpt-5.4, criteria", criteria, criteria)
    cold = list(read_rows(folder / "rb2_scores_base_full_k8_t0p0.jsonl.gz"))
    yield make_cascade("gpt-5.4-mini, criteria, else gpt-5.4 at temperature 0, base", criteria, cold)
    winners = read_winners(folder)
    for cheap in ("ChatGPT", "LLaMA2"):
        items, strong_items = winners[cheap, "Vanilla"], winners["GPT-4", "Vanilla"]
        yield Recorded(
            f"LLMBar, {cheap}, else GPT-4",
            np.asarray([1.0 if agree else np.nan for agree, _ in items.values()]),
            np.asarray([not right and strong_items[item][1] for item, (_, right) in items.items()]),
            right=(
                np.asarray([right for _, right in items.values()]),
                np.asarray([strong_items[item][1] for item in items]),
            ),
        )


def make_cascade(name: str, cheap_rows: Sequence[dict[str, Any]], strong_rows: Sequence[dict[str, Any]]) -> Recorded:
    """The small model by one recording and the large one by another, on the questions that both decided."""
    strong_by_id = {(row["subset"], row["id"]): row for row in strong_rows}
    pairs = [
        (row, other)
        for row in cheap_rows
        if (other := strong_by_id.get((row["subset"], row["id"]))) is not None
        and choose(row, "mini") is not None
        and choose(other, "full") is not None
    ]
    cheap, strong = [choose(row, "mini") for row, _ in pairs], [choose(other, "full") for _, other in pairs]
    cheap_right, strong_right = (np.asarray([choice[1] for choice in side if choice]) for side in (cheap, strong))
    return Recorded(
        f"RewardBench 2, {name}",
        np.asarray([choice[0] for choice in cheap if choice]),
        ~cheap_right & strong_right,
        price=sum(find_price(row, "mini") for row, _ in pairs) / sum(find_price(other, "full") for _, other in pairs),
        right=(cheap_right, strong_right),
    )


def find_price(row: dict[str, Any], slot: str) -> float:
    """The price of a row's scores by one of its models."""
    return sum(
        row["cost"][f"{slot}_{side}_tokens"] * price
        for side, price in zip(("input", "output"), PRICES[slot], strict=True)
    )


# ---------------------------------------------------------------- measuring


def measure(judge: Recorded, goal: Goal, draws: int) -> dict[str, Any]:
    """Measure how often a promise is refused and broken, and how much is released."""
    rng = np.random.default_rng(SEED)
    cases = len(judge.score)
    steps = make_threshold_steps(judge.score[~np.isnan(judge.score)].tolist())
    risks = [find_risk(judge, step.threshold, goal.risk) for step in steps]
    kept = [step.released for step, risk in zip(steps, risks, strict=True) if risk <= goal.bound]
    broken, by_sight, released, impossible, needed, advice = 0, 0, [], 0, [], Counter[CascadeAdvice]()
    for _ in range(draws):
        drawn = rng.choice(cases, goal.labels, replace=False)
        places = drawn[~np.isnan(judge.score[drawn])]
        labelled = zip(judge.score[places].tolist(), judge.wrong[places].tolist(), strict=True)
        counts = count_labelled(steps, labelled)
        search = search_threshold(
            steps,
            counts,
            goal.risk,
            bound=goal.bound,
            level=find_look_level(CONFIDENCE, 1),
            cases=cases,
            labels=goal.labels,
        )
        released.append(0 if search.certified is None else search.certified.released)
        impossible += search.impossible
        needed += [] if search.needed is None else [search.needed]
        advice[find_advice(judge, drawn, search)] += 1
        of = [count.released if goal.risk == "wrong_given_pass" else goal.labels for count in counts]
        best = [
            risk for count, number, risk in zip(counts, of, risks, strict=True) if count.wrong <= goal.bound * number
        ]
        by_sight += bool(best) and best[-1] > goal.bound
        if search.certified is not None:
            broken += find_risk(judge, search.certified.threshold, goal.risk) > goal.bound
    share = float(np.mean(released)) / cases
    return {
        "judge": judge.name,
        "goal": goal,
        "promise": f"{goal.risk}<={goal.bound:g}",
        "labels": goal.labels,
        "cases": cases,
        "wrong": float(np.mean(judge.wrong[~np.isnan(judge.score)])),
        "possible": max(kept, default=0) / cases,
        "released": share,
        "refused": float(np.mean([number == 0 for number in released])),
        "none can": impossible / draws,
        "needed": float(np.median(needed)) if needed else None,
        "lead": judge.lead,
        "advice": {name: advice[name] / draws for name in ("cheap alone", "does not pay")},
        "broken": broken / draws,
        "by sight": by_sight / draws,
        "saves": share - judge.price if judge.price else None,
    }


def find_advice(judge: Recorded, drawn: Array, search: ThresholdSearch) -> CascadeAdvice:
    """The advice of the command on the labels of these cases; of one judge alone it means nothing."""
    cheap, strong = (right[drawn] for right in judge.right or (judge.wrong, judge.wrong))
    level = find_look_level(CONFIDENCE, 1)
    gained, lost = int((cheap & ~strong).sum()), int((strong & ~cheap).sum())
    released = 0 if search.certified is None else search.certified.released
    return choose_advice(
        name_outcome(search),
        find_paired_difference(gained, lost, len(drawn), level=level),
        released / len(judge.score) - judge.price if judge.price else None,
        is_dearer=judge.price > 1,
    )


def measure_looks(judge: Recorded, every: int, draws: int, most: int = 500) -> dict[str, Any]:
    """Measure how often somebody who looks after every so many labels certifies a threshold that breaks the promise.

    The promise is a little less than the risk of the tightest threshold, so that every threshold breaks it.
    """
    rng = np.random.default_rng(SEED)
    steps = make_threshold_steps(judge.score[~np.isnan(judge.score)].tolist())
    bound = find_risk(judge, steps[0].threshold, "wrong_pass") - 1e-6
    broken = {"broken": 0, "without": 0}
    for _ in range(draws):
        order = rng.permutation(len(judge.score))[:most]
        certified = dict.fromkeys(broken, False)
        for look, labels in enumerate(range(every, most + 1, every), 1):
            places = order[:labels]
            places = places[~np.isnan(judge.score[places])]
            counts = count_labelled(steps, zip(judge.score[places].tolist(), judge.wrong[places].tolist(), strict=True))
            p_value = compute_p_value(counts[0].wrong, labels, bound)
            certified["broken"] |= p_value <= 1 - find_look_level(CONFIDENCE, look)
            certified["without"] |= p_value <= 1 - CONFIDENCE
        for name, value in certified.items():
            broken[name] += value
    return {"every": every, "looks": most // every, **{name: number / draws for name, number in broken.items()}}


def find_risk(judge: Recorded, threshold: float, risk: Risk) -> float:
    """The risk on all cases."""
    released = judge.score >= threshold
    wrong = int((released & judge.wrong).sum())
    return wrong / (int(released.sum()) if risk == "wrong_given_pass" else len(judge.score))


# ---------------------------------------------------------------- for the page

HEAD = ["judge", "promise", "labels", "possible", "released", "refused", "broken", "by sight"]
PAIR_HEAD = ["judge", "released", "wrong of these", "refused", "none can", "would", "broken"]
CASCADE_HEAD = [
    "cascade",
    "labels",
    "lead",
    "possible",
    "by the cheap one",
    "refused",
    "saves",
    "broken",
    "cheap alone",
    "does not pay",
]
LOOKS_HEAD = ["a look every", "looks", "broken", "without"]


def show_looks(row: dict[str, Any]) -> list[str]:
    """A row of the last table."""
    return [f"{row['every']} labels", str(row["looks"]), f"{row['broken']:.3f}", f"{row['without']:.3f}"]


def show(row: dict[str, Any]) -> list[str]:
    """A row of the first table."""
    named = (row[name] for name in ("possible", "released", "refused", "broken", "by sight"))
    return [row["judge"], row["promise"], f"{row['labels']:,}", *(f"{value:.3f}" for value in named)]


def show_pair(row: dict[str, Any]) -> list[str]:
    """A row of the second."""
    released, wrong, refused, none_can, broken = (
        f"{row[name]:.3f}" for name in ("released", "wrong", "refused", "none can", "broken")
    )
    would = "" if row["needed"] is None else f"{row['needed']:,.0f}"
    return [row["judge"], released, wrong, refused, none_can, would, broken]


def show_cascade(row: dict[str, Any]) -> list[str]:
    """A row of the third."""
    saves = f"{row['saves']:.3f}" if row["saves"] is not None else "unknown"
    saves += f" (missed: {LEAST_SAVED:g})" if saves_too_little(row) else ""
    shares = [f"{row[name]:.3f}" for name in ("possible", "released", "refused")]
    advice = [f"{row['advice'][name]:.3f}" for name in ("cheap alone", "does not pay")]
    return [row["judge"], f"{row['labels']:,}", f"{row['lead']:+.3f}", *shares, saves, f"{row['broken']:.3f}", *advice]


TEXT = """## Thresholds with a promise

{draws} calibrations each, at the first look, with 95 % confidence. *Possible* is the share of cases that could be
released if the truth were known for all of them, *released* the mean share that was, with nothing where the promise was
*refused*. *Broken* is the share of calibrations whose threshold does not keep the promise on all cases: at most 0.05 is
promised. *By sight* is the same for the lowest threshold at which the labels themselves do not exceed the promise.

<!-- not run: needs data that are not part of the repository -->
```sh
nice -n 10 .venv/bin/python research/thresholds.py --data DIR --write
```

`DIR` holds the recorded verdicts, scores and labels: [where they come from](reproductions.md#where-the-rows-come-from).

| judge | promise | labels | possible | released | refused | broken | by sight |
|---|---|---|---|---|---|---|---|
{alone}

A share of the released cases of at most 5 % takes 1,000 labels and more.

Pairs of LLMBar, released where both orders led to one verdict; `wrong_given_pass<=0.1` with 200 labels of 239. *None
can* is the share of calibrations that said so. Some threshold of GPT-4 keeps this promise, but the share that is wrong
is near it, so 200 labels cannot tell: the promise is refused, and the command says about how many labels *would* tell
(the median).

| judge | released | wrong of these | refused | none can | would | broken |
|---|---|---|---|---|---|---|
{pairs}

Cascades: `lost<=0.05`. *Saves* is of the price of asking the strong judge alone, and *missed* stands where it is less
than the 0.6 that were asked for. *Lead* is how much more often the cheap judge is right
than the strong one, on all cases. The last two columns are the shares of calibrations that say that the cheap judge
alone is better, or that a cascade does not pay. A lead of four points takes about 1,000 labels: 500 show it in a part
of the calibrations, and the others advise the cascade.

| cascade | labels | lead | possible | by the cheap one | refused | saves | broken | cheap alone | does not pay |
|---|---|---|---|---|---|---|---|---|---|
{cascades}

Looking again and again, up to 500 labels, at a promise that every threshold breaks by a hair: how often some look
certifies one. *Without* is the same with all of the 5 % at every look.

| a look every | looks | broken | without |
|---|---|---|---|
{looks}
"""


def write_page(
    alone: list[dict[str, Any]],
    pairs: list[dict[str, Any]],
    cascades: list[dict[str, Any]],
    looks: list[dict[str, Any]],
    draws: int,
) -> None:
    """Put the tables between the two marks of the page."""
    text = TEXT.format(
        draws=draws,
        alone=write_rows(map(show, alone)),
        pairs=write_rows(map(show_pair, pairs)),
        cascades=write_rows(map(show_cascade, cascades)),
        looks=write_rows(map(show_looks, looks)),
    )
    PAGE.write(text)


if __name__ == "__main__":
    main()
