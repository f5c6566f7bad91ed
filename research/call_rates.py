#!/usr/bin/env python3
"""Measure how often the intervals of call rates contain the truth, on 2,000 calls of which every one is known.

Each draw is a plan: its calls get the labels that are true, and the rates are compared with those of all calls. After
30 draws the sessions of ``examples/observed-calls`` are made anew, and their calls collected and judged. The exit
status is 1 when an interval of the harness, the rules or the judge contains the truth in less than 93 % of the draws.
``--write`` puts the table into docs/shadow.md.
"""

from __future__ import annotations

import asyncio
import importlib.util
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import common
from measured_page import MeasuredPage, write_rows

from adjudge import Judge, Rules, run
from adjudge.agents import read_run
from adjudge.dataset import Label
from adjudge.harness.observed_calls import CallCollection, add_transcripts
from adjudge.labels import continue_plan, find_plan_status, make_plan, write_plan
from adjudge.measurement import CallRates, make_call_rates
from adjudge.runs import Run

ROOT = common.BENCH.parent
PAGE = MeasuredPage("shadow.md", "call_rates.py")
EXAMPLE = ROOT / "examples" / "observed-calls"
DRAWS, EACH, SEED, WITHIN, LEAST = 300, 30, 20261128, 0.02, 0.93
SHARES = {
    "wrong_passes": "wrongly let through, of all calls",
    "wrong_passes_of_bad": "of the calls to stop",
    "wrong_stops": "wrongly stopped, of all calls",
    "wrong_stops_of_good": "of the calls to allow",
}


def load(name: str) -> Any:
    """A module of the example."""
    spec = importlib.util.spec_from_file_location(f"observed_{name}", EXAMPLE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SESSIONS, CAREFUL = load("make_sessions"), load("careful")
RULES = ({"not_contains": ["curl", "rm -rf ~", "/.ssh/"]},)


def judge_calls(folder: Path, seed: int) -> tuple[Run, Mapping[str, bool]]:
    """A run of the calls of new sessions, and what is true of each."""
    rng = random.Random(seed)
    commands = SESSIONS.make_commands(rng)
    collection = CallCollection()
    runs = (read_run(list(lines)) for lines in list_sessions(commands, rng))
    asyncio.run(add_transcripts(collection, runs, rules=tuple(Rules(RULES))))
    judged = run(
        list(collection.cases.values()), Judge(CAREFUL.allows), str(EXAMPLE / "may-run.yaml"), out=folder
    ).finish_sync()
    return judged, {row["case"]: row["value"] for row in SESSIONS.make_truth(commands)}


def list_sessions(commands: list[tuple[str, bool]], rng: random.Random) -> Iterator[Iterator[dict[str, Any]]]:
    """The lines of each session."""
    for number, start in enumerate(range(0, len(commands), SESSIONS.IN_SESSION)):
        yield SESSIONS.make_session(f"s{number}", commands[start : start + SESSIONS.IN_SESSION], rng)


def label_planned(judged: Run, truth: Mapping[str, bool], seed: int) -> list[Label]:
    """Label what a plan draws, until it has its planned labels."""
    plan = make_plan(judged, within=WITHIN, seed=seed)
    while True:
        labels = [
            Label(case=drawn.case, rater="ann", value=truth[drawn.case], subject=drawn.subject, blind=True)
            for drawn in plan.order
        ]
        status = find_plan_status(plan, labels)
        longer = plan if status.complete else continue_plan(plan, judged, status)
        if longer is plan:
            write_plan(plan, judged.folder)
            return labels
        plan = longer


def draw(draws: int) -> Iterator[tuple[CallRates, CallRates]]:
    """The rates of planned labels, and those of a label on every call, for each draw."""
    for first in range(0, draws, EACH):
        with tempfile.TemporaryDirectory(prefix="adjudge-calls-") as folder:
            judged, truth = judge_calls(Path(folder) / "run", SEED + first)
            with judged:
                every = [Label(case=case, rater="truth", value=value, subject=case) for case, value in truth.items()]
                counted = make_call_rates(judged, labels=every)
                for number in range(first, min(first + EACH, draws)):
                    labels = label_planned(judged, truth, SEED + number)
                    yield make_call_rates(judged, labels=labels), counted
                    (judged.folder / "plan.json").unlink()


def count_kept(rates: CallRates, truth: CallRates) -> Iterator[tuple[tuple[str, str], bool, float]]:
    """Each interval with whether it contains the truth, and how wide it is."""
    for found, true in zip(rates.deciders, truth.deciders, strict=True):
        for name in SHARES:
            estimate, value = getattr(found, name), getattr(true, name).value
            assert estimate.low is not None, estimate.note
            yield (found.name, name), estimate.low - 1e-9 <= value <= estimate.high + 1e-9, estimate.high - estimate.low


def main() -> None:
    """Draw, print, and say whether the intervals cover."""
    options = PAGE.make_parser(__doc__, draws=DRAWS).parse_args()
    kept, widths, labelled = Counter[tuple[str, str]](), Counter[tuple[str, str]](), []
    for rates, truth in draw(options.draws):
        labelled.append(sum(rates.labelled.values()))
        for key, is_kept, width in count_kept(rates, truth):
            kept[key] += is_kept
            widths[key] += width  # type: ignore[assignment] - a sum of floats
    rows = list_rows(kept, widths, options.draws)
    common.print_table(("who", *SHARES.values()), rows)
    if options.write:
        write_page(rows, options.draws, sum(labelled) / len(labelled))
    least = min(kept.values()) / options.draws
    common.print_verdict("call_rates", {"least coverage": least}, met=least >= LEAST)


def list_rows(
    kept: Mapping[tuple[str, str], int], widths: Mapping[tuple[str, str], float], draws: int
) -> list[Sequence[str]]:
    """A row for each decider: how often each interval contains the truth, and how wide it is on average."""
    return [
        [
            decider,
            *(f"{kept[decider, name] / draws:.3f} (± {50 * widths[decider, name] / draws:.1f})" for name in SHARES),
        ]
        for decider in ("harness", "rules", "judge")
    ]


def write_page(rows: Sequence[Sequence[str]], draws: int, labels: float) -> None:
    """Put the table into the page."""
    head = ["who", *SHARES.values()]
    PAGE.write(
        f"{draws:,} draws, each of {labels:.0f} planned labels on average for {SESSIONS.CALLS:,} calls, "
        f"{SESSIONS.BAD} of them planted:\n"
        "how often each interval contains the truth, and half its width in points.\n\n"
        f"{write_rows([head, ['---'] * len(head), *rows])}"
    )


if __name__ == "__main__":
    main()
