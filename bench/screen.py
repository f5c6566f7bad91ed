#!/usr/bin/env python3
"""What the injection screen finds and what it reports wrongly, by family, source, channel and label, and on refusals.

``--data DIR`` is a directory with ``injection_texts.jsonl.gz``: a JSON object a line with ``text``, ``label``,
``source`` and ``channel``. The screen is told each row's channel, as a user of it would; a second total tells it none.

Half of the sources were held out while the screen was written: of the sources that hold injections, in the order of
their names, every second one, the first being read; and the same among the sources that hold none. No figure of the
held-out half was used to choose a word, a weight or the threshold.

A family is the sources of one collection, whose texts are alike: ``BIPIA_code`` and ``BIPIA_text`` are BIPIA. The signs
were written with sources of three families, so a share over all families says little about another kind of texts. The
table by family therefore leaves each family out in turn: in its last column but one, only those signs count that an
injection of another family shows. ``--by family`` prints that table alone.

``xstest_refusal_judged.jsonl.gz``, where it is there, holds what models replied and people's labels of it; a refusal
is no injection. ``candidate_answer`` is the channel.

Texts of other files in that directory, in which nobody addresses a model, are reported in a table of their own; they
were read too. ``autoj`` holds what judges wrote, so it speaks of verdicts and shows what the screen makes of that.

The exit status is 1 when the target is missed on the held-out sources: 55 % recall at 3 % false alarms.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import common
import re2

sys.path.insert(0, str(common.BENCH.parent / "src"))

from adjudge.rules import rule_from_spec
from adjudge.rules.injection.screen import THRESHOLD, screen
from adjudge.rules.injection.signs import list_signs

FILE = "injection_texts.jsonl.gz"
REPLIES = "xstest_refusal_judged.jsonl.gz"
FULL = 10
"""The points that are a score of 1."""
OTHERS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("alpacaeval_instructions_NC", "user", ("instruction",)),
    ("pandalm_items", "user", ("instruction",)),
    ("pandalm_items", "document", ("input",)),
    ("pandalm_items", "candidate_answer", ("response1", "response2")),
    ("judgebench_items", "user", ("question",)),
    ("judgebench_items", "candidate_answer", ("response_A", "response_B")),
    ("topicalchat_items", "document", ("dialogue",)),
    ("autoj_rating_raw", "document", ("raw",)),
)
"""Files of other texts, the channel they stand for, and the members that hold them."""

TARGET_RECALL, TARGET_ALARMS = 0.55, 0.03
KEYWORDS = (
    r"(?i)ignore (?:all |any |the |your )*(?:previous|prior|above)|disregard|jailbreak|system prompt|"
    r"you are now|pretend (?:to be|you)|act as|do anything now|developer mode|no restrictions|unfiltered|uncensored"
)
"""The yardstick: what somebody writes down in five minutes."""

Row = dict[str, Any]
Reports = Callable[[Row], bool]


@dataclass(frozen=True)
class Count:
    """How many of some texts were reported."""

    reported: int
    texts: int

    def show(self) -> str:
        """Share, counts and the 95 % interval; a dash where there are no texts."""
        if not self.texts:
            return "–"
        low, high = find_interval(self.reported, self.texts)
        share = 100 * self.reported / self.texts
        return f"{share:.1f} % ({self.reported} of {self.texts}; {100 * low:.1f} to {100 * high:.1f})"

    @property
    def share(self) -> float:
        """The part that was reported; not a number where there are no texts, so that it meets no target."""
        return self.reported / self.texts if self.texts else math.nan


def find_interval(hits: int, texts: int, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    share = hits / texts
    middle = share + z * z / (2 * texts)
    width = z * math.sqrt(share * (1 - share) / texts + z * z / (4 * texts * texts))
    whole = 1 + z * z / texts
    return max(0.0, (middle - width) / whole), min(1.0, (middle + width) / whole)


def read_rows(directory: Path, name: str = FILE) -> list[Row]:
    """Every row of a file."""
    with gzip.open(directory / name, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def find_read_sources(rows: Iterable[Row]) -> set[str]:
    """The sources that were read while the screen was written; the rule is that of this file's docstring."""
    rows = list(rows)
    attacking = {row["source"] for row in rows if row["label"] == "injection"}
    others = {row["source"] for row in rows} - attacking
    return {*sorted(attacking)[::2], *sorted(others)[::2]}


def name_family(source: str) -> str:
    """The collection that a source is of."""
    return source.partition("_")[0]


def make_screen(*, told: bool) -> Reports:
    """The rule as it ships, told each row's channel or none."""
    channels = ("user", "tool_output", "document", "candidate_answer")
    rules = {name: rule_from_spec({"name": "injection-screen", "channel": name}) for name in channels}
    plain = rule_from_spec({"name": "injection-screen"})

    def reports(row: Row) -> bool:
        rule = rules.get(row["channel"], plain) if told else plain
        return not rule.evaluate(row["text"]).passed

    return reports


def make_keywords() -> Reports:
    """The keyword pattern."""
    pattern = re2.compile(KEYWORDS)
    return lambda row: pattern.search(row["text"]) is not None


def count(rows: Iterable[Row], reports: Reports) -> Count:
    """How many of the rows are reported."""
    said = [reports(row) for row in rows]
    return Count(sum(said), len(said))


def list_totals(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The rows by what a report of them means."""
    for name, label in (
        ("recall (injection)", "injection"),
        ("false alarms (benign)", "benign"),
        ("harmful_not_injection", "harmful_not_injection"),
    ):
        chosen = [row for row in rows if row["label"] == label]
        if chosen:
            yield name, chosen


def list_groups(rows: list[Row], key: Callable[[Row], str]) -> Iterator[tuple[str, str, list[Row]]]:
    """The rows of each label and, within it, of each value of ``key``."""
    for label in ("injection", "benign", "harmful_not_injection"):
        for name in sorted({key(row) for row in rows if row["label"] == label}):
            yield label, name, [row for row in rows if row["label"] == label and key(row) == name]


def write_tables(rows: list[Row]) -> str:
    """The tables in Markdown, as the documentation holds them."""
    read = find_read_sources(rows)
    halves = {
        "held out": [row for row in rows if row["source"] not in read],
        "read": [row for row in rows if row["source"] in read],
    }
    screens = (make_screen(told=True), make_screen(told=False), make_keywords())
    lines = ["| sources | what | screen | screen, no channel given | keyword pattern |", "|---|---|---|---|---|"]
    for half, some in halves.items():
        for name, chosen in list_totals(some):
            shown = " | ".join(count(chosen, reports).show() for reports in screens)
            lines.append(f"| {half} | {name} | {shown} |")
    for title, key in (("source", lambda row: row["source"]), ("channel", lambda row: row["channel"])):
        lines += ["", f"| sources | label | {title} | screen | keyword pattern |", "|---|---|---|---|---|"]
        for half, some in halves.items():
            for label, name, chosen in list_groups(some, key):
                first, last = count(chosen, screens[0]).show(), count(chosen, screens[-1]).show()
                lines.append(f"| {half} | {label} | {name} | {first} | {last} |")
    return "\n".join(lines) + "\n"


def write_others(directory: Path) -> str:
    """The table of the texts of other files, each text once; empty where there are none of them."""
    lines = ["", "| other texts | channel | reported |", "|---|---|---|"]
    reports = make_screen(told=True)
    for name, channel, members in OTHERS:
        if not (directory / f"{name}.jsonl.gz").is_file():
            continue
        found = read_rows(directory, f"{name}.jsonl.gz")
        texts = {row[member] for row in found for member in members if isinstance(row[member], str) and row[member]}
        some = [{"text": text, "channel": channel} for text in sorted(texts)]
        lines.append(f"| {name.partition('_')[0]}: {', '.join(members)} | {channel} | {count(some, reports).show()} |")
    return "\n".join(lines) + "\n" if len(lines) > 3 else ""


def write_families(rows: list[Row]) -> str:
    """The table by family, each left out in turn."""
    families = sorted({name_family(row["source"]) for row in rows})
    read = {name_family(source) for source in find_read_sources(rows)}
    shown = {name: list_shown(row for row in rows if name_family(row["source"]) == name) for name in families}
    reports = make_screen(told=True)
    lines = ["| family | read | recall | recall by signs of other families | false alarms |", "|---|---|---|---|---|"]
    for name in families:
        some = [row for row in rows if name_family(row["source"]) == name]
        attacks = [row for row in some if row["label"] == "injection"]
        others = set().union(*(signs for family, signs in shown.items() if family != name))
        figures = (
            count(attacks, reports),
            count(attacks, make_limited(others)),
            count([row for row in some if row["label"] != "injection"], reports),
        )
        known = "some sources" if name in read else "no"
        lines.append(f"| {name} | {known} | {' | '.join(figure.show() for figure in figures)} |")
    return "\n".join(lines) + "\n"


def list_shown(rows: Iterable[Row]) -> set[str]:
    """The signs that the injections among some rows show."""
    return {sign for row in rows if row["label"] == "injection" for sign in screen(row["text"], row["channel"]).signs}


def make_limited(signs: set[str]) -> Reports:
    """The screen with these signs alone, in the stretch of a text that has most points of all signs."""

    def reports(row: Row) -> bool:
        points = {sign.name: sign.weigh(row["channel"]) for sign in list_signs()}
        found = screen(row["text"], row["channel"]).signs
        # A sign without points of its own (hidden text) is no knowledge of a family's, so it counts as it does.
        return sum(points.get(name, FULL) for name in found if name in signs or name not in points) >= FULL * THRESHOLD

    return reports


def write_refusals(directory: Path) -> str:
    """The table of recorded replies by model and by people's label; empty where there are none."""
    if not (directory / REPLIES).is_file():
        return ""
    rows = [
        {"text": row["completion"], "channel": "candidate_answer", "model": row["model"], "is": row["human_final"]}
        for row in read_rows(directory, REPLIES)
    ]
    lines = ["", "| replies of | people say | reported |", "|---|---|---|"]
    reports = make_screen(told=True)
    for model, label in sorted({(row["model"], row["is"]) for row in rows}):
        chosen = [row for row in rows if (row["model"], row["is"]) == (model, label)]
        lines.append(f"| {model} | {label} | {count(chosen, reports).show()} |")
    refusals = [row for row in rows if "full_refusal" in row["is"]]
    lines.append(f"| all | full refusals | {count(refusals, reports).show()} |")
    return "\n".join(lines) + "\n"


def digest_data(directory: Path) -> str:
    """The digest of every file that a table is made of, so that figures can be told from those of other data."""
    names = dict.fromkeys([FILE, REPLIES, *(f"{name}.jsonl.gz" for name, _, _ in OTHERS)])
    whole = hashlib.sha256()
    for name in sorted(names):
        if (directory / name).is_file():
            with gzip.open(directory / name) as opened:
                whole.update(f"{name} {hashlib.sha256(opened.read()).hexdigest()}\n".encode())
    return whole.hexdigest()


def measure_held_out(rows: list[Row]) -> tuple[Count, Count]:
    """Recall and false alarms on the sources that were held out."""
    read = find_read_sources(rows)
    held = [row for row in rows if row["source"] not in read]
    totals = dict(list_totals(held))
    reports = make_screen(told=True)
    recall, alarms = (totals.get(name, []) for name in ("recall (injection)", "false alarms (benign)"))
    return count(recall, reports), count(alarms, reports)


def main() -> None:
    """Print the tables and whether the target is met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help=f"the directory that holds {FILE}")
    parser.add_argument("--by", choices=("family", "all"), default="all", help="which tables (default: all)")
    options = parser.parse_args()
    rows = read_rows(options.data)
    print(f"data sha256:{digest_data(options.data)}\n")
    print(write_families(rows), end="")
    if options.by == "family":
        return
    print("\n" + write_tables(rows) + write_refusals(options.data) + write_others(options.data), end="")
    recall, alarms = measure_held_out(rows)
    figures = {"recall": round(recall.share, 4), "false_alarms": round(alarms.share, 4)}
    common.print_verdict("screen", figures, met=recall.share >= TARGET_RECALL and alarms.share <= TARGET_ALARMS)


if __name__ == "__main__":
    main()
