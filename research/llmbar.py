#!/usr/bin/env python3
"""Check that recorded judges come to their published figures: LLMBar pairs, both orders, Vanilla and CoT prompts.

``--data DIR`` holds ``llmbar_items.jsonl.gz``, ``llmbar_pairwise.jsonl.gz`` and ``llmbar_expected.json`` (LLMBar by
princeton-nlp, MIT). The items become cases and the recorded replies become recordings, one file for each judge and
prompt. They are then compared like any others, by ``adjudge run --pairs --judge replay:FILE --reader STYLE``: a run
for each recording, over the pairs that it has replies to. ``--keep DIR`` keeps cases, recordings and runs, the latter
for ``adjudge report``. Accuracies, order agreement and what else is published are computed from what the runs hold, for
each subset, and printed beside the expected figures; the exit status is 1 when one of them differs and the difference
is not accounted for.

A reply is accounted for, and its row says so, when it holds no verdict and the source counts one all the same. The
source's parser looks for "Output (b) is better" anywhere, and so takes a reply that was cut off before its verdict, or
"I cannot claim that either Output (a) or Output (b) is better", for a vote; here they are undecided. That a row differs
by such replies alone is checked: with the source's votes put in their place, every figure is the published one. They
may be one in fifty of a row's replies, are listed, and are kept as ``voted-...``.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "bench"))
import common
import suite

sys.path.insert(0, str(suite.SOURCE))

from adjudge import PairResult, open_dataset, open_run
from adjudge.dataset import Case
from adjudge.judges.pair_summary import PairSummary, summarise_pairs

READERS = {"Vanilla": "Output (a)", "CoT": "Output (a) is better"}
CRITERIA = "Executes the instruction of the task honestly, precisely and closely; then: helpful, accurate, harmless."
VOTES = {"first": "Output (a) is better.", "second": "Output (b) is better."}
"""The text to put in place of a reply that holds no verdict, for the vote that the source counts."""
MOST_WITHOUT = 0.02
"""The share of a row's replies that may hold no verdict and yet be counted by the source."""

Place = tuple[str, str]
"""An item and an order."""
Row = Mapping[str, Any]


def read_lines(path: Path) -> Iterator[dict[str, Any]]:
    """The objects of a compressed file of JSON lines."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> None:
    """A file of JSON lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def name_subset(item: str) -> str:
    """The subset an item belongs to: what stands before its number."""
    return item.rpartition("/")[0]


def convert_item(row: Row) -> dict[str, Any]:
    """An item as a case of a data set."""
    return {
        "id": row["item_id"],
        "content": {"a": row["output_1"], "b": row["output_2"]},
        "task": row["input"],
        "label": {1: "first", 2: "second"}[row["label"]],
        "group": name_subset(row["item_id"]),
    }


def convert_reply(row: Row) -> dict[str, Any]:
    """A recorded reply as a row of a recording."""
    reply = {"text": row["raw"], "finish_reason": row["finish_reason"] or "stop", "usage": None, "logprobs": None}
    return {
        "schema": "adjudge/recording/1",
        "case": row["item_id"],
        "order": row["order"].lower(),
        "attempt": 1,
        "model": row["judge"],
        "reply": reply,
    }


def convert(data: Path, out: Path) -> tuple[Path, dict[Place, Path], dict[Place, dict[Place, str]]]:
    """Write the cases, and a recording for each judge and prompt; where they are, and the votes the source counts."""
    cases = out / "cases.jsonl"
    write_lines(cases, [convert_item(row) for row in read_lines(data / "llmbar_items.jsonl.gz")])
    replies: dict[Place, list[dict[str, Any]]] = {}
    votes: dict[Place, dict[Place, str]] = {}
    for row in read_lines(data / "llmbar_pairwise.jsonl.gz"):
        key = (row["judge"], row["prompt"])
        if row["prompt"] in READERS:
            replies.setdefault(key, []).append(convert_reply(row))
            votes.setdefault(key, {})[row["item_id"], row["order"].lower()] = row["verdict_shown"]
    paths = {key: out / f"{key[0]}-{key[1]}.jsonl" for key in replies}
    for key, path in paths.items():
        write_lines(path, replies[key])
    return cases, paths, votes


def compare_all(cases: Path, recording: Path, prompt: str) -> dict[str, PairResult]:
    """Find what a recorded judge says of the pairs it has replies to, by ``adjudge run --pairs``."""
    answered = {json.loads(line)["case"] for line in recording.read_text("utf-8").splitlines()}
    rows = [row for row in map(json.loads, cases.read_text("utf-8").splitlines()) if row["id"] in answered]
    own, folder = recording.with_name(f"pairs-{recording.name}"), recording.with_name("runs") / recording.stem
    write_lines(own, rows)
    shutil.rmtree(folder, ignore_errors=True)
    words = ["run", own, "--pairs", "--judge", f"replay:{recording}", "--reader", READERS[prompt]]
    words += ["--criteria", CRITERIA, "--out", folder, "--json"]
    command = [sys.executable, "-m", "adjudge", *map(str, words)]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(suite.SOURCE)})
    with open_run(folder) as run:
        results = {item.case.id: item.result for item in run.items() if isinstance(item.result, PairResult)}
        shown = json.loads(done.stdout)["pairs"]
        if len(results) != len(rows) or shown != run.sum_up_pairs().to_dict():
            raise SystemExit(f"{folder} does not hold what the command said: {len(results)} of {len(rows)} pairs")
    return results


def sum_up(cases: list[Case], results: list[PairResult]) -> dict[str, float]:
    """The figures of some comparisons."""
    return list_figures(summarise_pairs((result, case.label) for result, case in zip(results, cases, strict=True)))


def find_without(cases: list[Case], results: list[PairResult], votes: Mapping[Place, str]) -> dict[Place, str]:
    """The replies without a verdict that the source counts, and what it counts them for."""
    silent = [
        (case.id, item.order)
        for case, result in zip(cases, results, strict=True)
        for item in result.orders
        if item.preferred is None
    ]
    return {place: votes[place] for place in silent if votes[place] is not None}


def list_figures(summary: PairSummary) -> dict[str, float]:
    """The published figures, in per cent, and the counts beside them, of a summary."""
    ab, ba = summary.accuracy_ab, summary.accuracy_ba
    shares = {
        "acc_AB": ab.rate,
        "acc_BA": ba.rate,
        "acc_avg": (ab.count + ba.count) / (ab.of + ba.of),
        "both_correct": summary.both_right.rate,
        "positional_agreement": summary.agreement.rate,
    }
    votes = {
        "first_position_votes": summary.shown_first.count,
        "second_position_votes": summary.shown_first.of - summary.shown_first.count,
        "unparsed": 2 * summary.pairs - summary.shown_first.of,
    }
    ends = dict(zip(("low", "high"), ab.interval or (0.0, 1.0), strict=True))
    return {name: 100 * (value or 0.0) for name, value in (shares | ends).items()} | votes


def list_expected(row: Row) -> dict[str, float]:
    """The same figures as they are expected."""
    counts = {name: row[name] for name in ("first_position_votes", "second_position_votes", "unparsed")}
    return row["recomputed"] | dict(zip(("low", "high"), row["wilson95_acc_AB"], strict=True)) | counts


def differ(found: Mapping[str, float], expected: Mapping[str, float]) -> list[str]:
    """The figures that are not as expected, to the last digit that is given."""
    slack = {"low": 0.006, "high": 0.006}
    return [name for name in expected if abs(found[name] - expected[name]) > slack.get(name, 0.00006)]


def put_votes(recording: Path, votes: Mapping[Place, str]) -> Path:
    """The recording with the source's votes in place of replies without a verdict."""
    rows = [json.loads(line) for line in recording.read_text("utf-8").splitlines()]
    for row in rows:
        vote = votes.get((row["case"], row["order"]))
        if vote is not None:
            row["reply"] |= {"text": VOTES[vote], "finish_reason": "stop"}
    path = recording.with_name(f"voted-{recording.name}")
    write_lines(path, rows)
    return path


def check_row(
    row: Row, cases: list[Case], said: Mapping[str, PairResult], votes: Mapping[Place, str], replace: Callable[..., Any]
) -> tuple[list[str], bool]:
    """One line of the table, and whether its figures are the expected or accounted for.

    ``replace`` gives what is said with the source's votes in place of replies without a verdict.
    """
    results = [said[case.id] for case in cases]
    found, expected = sum_up(cases, results), list_expected(row)
    bad = differ(found, expected)
    met, verdict = not bad, f"differs in {', '.join(bad)}" if bad else "as expected"
    without = find_without(cases, results, votes)
    if bad and 0 < len(without) <= MOST_WITHOUT * 2 * len(cases):
        voted = replace(without)
        again = sum_up(cases, [voted[case.id] for case in cases])
        met = not differ(again, expected)
        named = ", ".join(f"{item} {order}" for item, order in without)
        verdict += f"; only by replies without a verdict: {named}" if met else ""
    names = ("acc_AB", "acc_BA", "acc_avg", "both_correct", "positional_agreement")
    shown = [f"{found[name]:.2f} ({expected[name]:.2f})" for name in names]
    return [row["subset"], row["judge"], row["prompt"], str(len(cases)), *shown, verdict], met and len(cases) == row[
        "n"
    ]


def check_all(data: Path, out: Path) -> None:
    """Print the table, and leave with 1 unless every row is met."""
    path, recordings, votes = convert(data, out)
    cases = list(open_dataset(path))
    rows = [row for row in json.loads((data / "llmbar_expected.json").read_text("utf-8"))["rows"] if is_ours(row)]
    lines, met, said = [], bool(rows), {}
    for row in rows:
        own, key = [case for case in cases if case.group == row["subset"]], (row["judge"], row["prompt"])
        recording, prompt = recordings[key], row["prompt"]
        if key not in said:
            said[key] = compare_all(path, recording, prompt)

        def replace(without: Mapping[Place, str], recording: Path = recording, prompt: str = prompt) -> Any:
            return compare_all(path, put_votes(recording, without), prompt)

        line, good = check_row(row, own, said[key], votes[key], replace)
        lines.append(line)
        met = met and good
    head = ["subset", "judge", "prompt", "n", "order AB", "order BA", "mean", "both right", "orders agree", "verdict"]
    common.print_table(head, lines)
    exact = sum(line[-1] == "as expected" for line in lines)
    common.print_verdict("llmbar", {"rows": len(lines), "as_expected": exact}, met=met)


def is_ours(row: Row) -> bool:
    """Return True if a row of the expected figures is of the prompts that are read here."""
    return row["prompt"] in READERS


def main() -> None:
    """Convert, compare, print, and leave with 1 where a figure differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="the folder with the three LLMBar files")
    parser.add_argument("--keep", type=Path, help="a folder to keep cases, recordings and runs in")
    options = parser.parse_args()
    if options.keep is not None:
        options.keep.mkdir(parents=True, exist_ok=True)
        check_all(options.data, options.keep)
    with tempfile.TemporaryDirectory() as folder:
        check_all(options.data, Path(folder))


if __name__ == "__main__":
    main()
