#!/usr/bin/env python3
"""Check that reading stays linear, whatever a reply holds: hostile text of 50, 100, 200 and 400 KB.

Every function that reads what a model or a content wrote is timed on every kind of text; doubling the text must not
do much more than double the time. The exponent is that of time over length, fitted from 100 KB on: a reply of more
than 200 brackets has its depth checked before it is decoded, which is a step between 50 and 100 KB and no slope.
Below half a millisecond the clock says more than the code, and such rows count as met. Target: exponent at most 1.4,
and at most 250 ms for 100 KB.

Beside it, a run of an agent with 2,000 calls, each with a result of 5,000 characters, is rendered for a judge. Target:
at most 200 ms.

``--data DIR`` instead counts, for the recorded replies of judges in ``DIR/verdict_parsing.jsonl.gz``, how each style is
read: as recorded, refused, or otherwise. Target: no reply that is clean is read otherwise.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import json
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import common
import suite

sys.path.insert(0, str(suite.SOURCE))

from adjudge import AdjudgeError
from adjudge.agents import AgentCall, AgentRun, Step
from adjudge.content import content_text
from adjudge.formats.text import clean
from adjudge.models import Reply, TokenLogprob
from adjudge.models.providers.error import make_http_error, read_error_body
from adjudge.question import Question
from adjudge.question.question import Part
from adjudge.question.readers import READERS, ReadOptions
from adjudge.question.reply import read_reply
from adjudge.question.reply_object import read_object
from adjudge.question.reply_style import ReplyStyle
from adjudge.question.score import answer_yes_no

SIZES = (50_000, 100_000, 200_000, 400_000)
MOST_EXPONENT, MOST_SECONDS, NOISE_SECONDS = 1.4, 0.25, 0.0005
MOST_RUN_SECONDS = 0.2
TOKEN = "abcdefgh"
OPTIONS = ReadOptions(scale=(1.0, 10.0), labels=("yes", "no"))

# What is repeated to fill a text; what stands before and after it where that matters.
PATTERNS: dict[str, str] = {
    "brackets": "[",
    "closing": "]}",
    "objects": '{"a":',
    "opening tokens": f'{{"token": "{TOKEN}", ',
    "wrong tokens": '{"token": "zzzzzzzz", ',
    "braces and spaces": "{ \t\n",
    "quotes": '"',
    "backslashes": "\\",
    "escaped quotes": '\\"',
    "escapes": "\\ud800",
    "think": "<think>",
    "thought": "<think></think>",
    "fences": "```json\n",
    "fences and braces": "```\n{",
    "spaces": " ",
    "lines": "\n",
    "digits": "9",
    "numbers": "1.",
    "ratings": "Rating: [[7]] ",
    "half ratings": "Rating: [[7",
    "rate": "rate ",
    "letters": "[[A]] ",
    "stars": "***",
    "labels": "yes no ",
    "outputs": "Output (a) is better ",
    "tags": "<answer>",
    "boxes": "\\boxed{",
    "words": "score ",
    "colons": "a: ",
    "direction marks": "\u202e\u200b",
    "emoji": "\U0001f600",
}


def make_texts(size: int) -> Iterator[tuple[str, str]]:
    """Every hostile text of about this size, with its name."""
    for name, piece in PATTERNS.items():
        yield name, piece * (size // len(piece))
    half = size // 2
    yield "string never closed", '{"token": "' + TOKEN + '", "reasoning": "' + "\\" * (size - 60)
    yield "nested in the answer", '{"token": "' + TOKEN + '", "a": ' + "[" * half + "]" * half + "}"
    yield "nested objects", '{"token": "' + TOKEN + '", "a": ' + '{"a":' * (size // 6) + "1" + "}" * (size // 6) + "}"
    yield "duplicate keys", '{"token": "' + TOKEN + '"' + ', "a": 1' * (size // 8) + "}"
    yield "many criteria", '{"token": "' + TOKEN + '", "criteria": [' + '{"name": "x", "score": 1},' * (size // 26)
    yield "long integer", '{"token": "' + TOKEN + '", "a": ' + "9" * size + "}"
    yield "valid, long", '{"token": "' + TOKEN + '", "safe": true, "reasoning": "' + "a:b,{}" * (size // 6) + '"}'
    yield "prose, then a fence", "x" * size + '```json\n{"safe": true}\n```'


def list_functions() -> dict[str, Callable[[str], Any]]:
    """Everything that reads hostile text, by name."""
    question = Question(wording=None, parts=(Part(label="prompt", text="x"),), answer=answer_yes_no, digest="")
    functions: dict[str, Callable[[str], Any]] = {
        "read_object, token": lambda text: read_object(text, TOKEN),
        "read_object, none": lambda text: read_object(text, None),
        "clean": clean,
        "content_text": content_text,
        "content as a list": lambda text: content_text([text, {"a": text}]),
        "read_error_body": lambda text: make_http_error(
            "host", 400, read_error_body(text.encode("utf-8", "replace")).message
        ),
        "logprobs": lambda text: read_probabilities(question, text),
    }
    for name, reader in READERS.items():
        functions[f"reader {name}"] = lambda text, read=reader.read: read(text, OPTIONS)
    return functions


def read_probabilities(question: Question, text: str) -> Any:
    """The confidence of a reply that holds this text beside its verdict, a token for every four characters."""
    said = json.dumps({"reasoning": text, "safe": True}, ensure_ascii=False)
    pieces = [said[at : at + 4] for at in range(0, len(said), 4)]
    reply = Reply(text=said, logprobs=tuple(TokenLogprob(token=piece, logprob=-0.1) for piece in pieces))
    return read_reply(reply, question, token=None, style=ReplyStyle(), scoring="stated")


def take_time(function: Callable[[str], Any], text: str) -> float:
    """Seconds of CPU, the best of three; a refusal is an answer, any other exception ends the benchmark."""
    best = math.inf
    for _ in range(3):
        started = time.process_time()
        with contextlib.suppress(AdjudgeError):
            function(text)
        best = min(best, time.process_time() - started)
        if best > 2:
            break
    return best


def time_run() -> float:
    """Seconds of CPU in which a run of 2,000 calls is rendered, the best of three."""
    steps = [
        Step(
            role="assistant",
            call=AgentCall(tool="read", arguments={"path": f"/f{n}"}, call_id=str(n), result="x" * 5_000),
            turn=n,
        )
        for n in range(2_000)
    ]
    run = AgentRun(steps=steps, answer="answer" * 1_000)
    return take_time(lambda _: run.render(), "")


def fit(times: list[float]) -> float:
    """The exponent of time over length."""
    if max(times) < NOISE_SECONDS:
        return 0.0
    lengths = [math.log(size) for size in SIZES[1:]]
    return statistics.linear_regression(lengths, [math.log(max(value, 1e-7)) for value in times[1:]]).slope


def is_linear(seconds: float, exponent: float) -> bool:
    """Return True if a function met the target on a text."""
    return exponent <= MOST_EXPONENT and seconds <= MOST_SECONDS


STYLES = {
    "fastchat [[A]]": "[[A]]", "arena_hard [[A>>B]]": "[[A>B]]", "fastchat Rating: [[n]]": "Rating: [[7]]",
    "autoj Rating: [[n]]": "Rating: [[7]]", "bare integer 0-9": "Rating: 7", "geval": "Rating: 7",
    "llmbar Vanilla Output (a)/(b)": "Output (a)", "llmbar CoT Output (a)/(b)": "Output (a) is better",
    "llmbar Swap Output (a)/(b)": "Output (a) is better", "inspect_ai GRADE: C": "GRADE: C",
    "category label": "label", "single letter m/M": "name", "json ordered_models": "ordered_models",
    "leading letter": "A:",
}  # fmt: skip
"""The reader for each style of the recorded replies."""


def read_row(row: dict[str, Any], name: str) -> Any:
    """Read what a recorded reply says under a reader, or ``None`` where it is refused."""
    offered = row["options"]
    scale = (offered["min"], offered["max"]) if isinstance(offered, dict) else None
    takes = name in {"label", "name", "ordered_models", "GRADE: C"}
    try:
        return READERS[name].read(row["raw"], ReadOptions(scale=scale, labels=tuple(offered) if takes else ()))
    except AdjudgeError:
        return None


def find_recorded(row: dict[str, Any]) -> Any:
    """Find what the source's own parser read, in the words of the readers."""
    expected = row["expected"]
    if "verdict_name" in expected:
        return dict(zip(row["options"], ("first", "second"), strict=True)).get(expected["verdict_name"])
    return next((expected[key] for key in ("verdict", "score", "grade", "label") if key in expected), None)


def count_styles(data: Path) -> None:
    """Print, for each style and whether its replies are clean, how many are read as recorded, refused or otherwise."""
    counts: dict[tuple[str, str, str], Counter[str]] = {}
    with gzip.open(data / "verdict_parsing.jsonl.gz", "rt", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    for row in rows:
        style = "geval" if row["style"].startswith("geval ") else row["style"].partition(" / ")[0]
        if style not in STYLES:
            continue
        got, recorded = read_row(row, STYLES[style]), find_recorded(row)
        kind = "clean" if row["clean"] else "arguable"
        count = counts.setdefault((STYLES[style], style, kind), Counter())
        count["rows"] += 1
        if got is None:
            count["refused" if recorded is not None else "no verdict"] += 1
        else:
            count["read" if got == recorded else "otherwise"] += 1
    columns = ("rows", "read", "no verdict", "refused", "otherwise")
    shown = [[*key, *(str(count[column]) for column in columns)] for key, count in sorted(counts.items())]
    common.print_table(["reader", "style", "replies", *columns], shown)
    wrong = sum(count["otherwise"] for (_, _, kind), count in counts.items() if kind == "clean")
    figures = {"replies": sum(count["rows"] for count in counts.values()), "clean_read_otherwise": wrong}
    common.print_verdict("reading styles", figures, met=wrong == 0 and bool(counts))


def main() -> None:
    """Measure, print the slowest, and say whether everything is linear."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="functions whose name contains this")
    parser.add_argument("--data", type=Path, help="a folder with verdict_parsing.jsonl.gz: count how styles are read")
    options = parser.parse_args()
    if options.data is not None:
        count_styles(options.data)
        return
    texts = {size: dict(make_texts(size)) for size in SIZES}
    rows: list[tuple[float, float, str, str]] = []
    for name, function in list_functions().items():
        for kind in texts[SIZES[0]] if options.only in name else ():
            times = [take_time(function, texts[size][kind]) for size in SIZES]
            for _ in range(3):
                if is_linear(times[1], fit(times)):
                    break
                # Something else ran beside it, or it is so: the quicker of two attempts is nearer to the truth.
                again = [take_time(function, texts[size][kind]) for size in SIZES]
                times = [min(pair) for pair in zip(times, again, strict=True)]
            rows.append((times[1], fit(times), name, kind))
    slowest = {name: max(row for row in rows if row[2] == name) for name in dict.fromkeys(row[2] for row in rows)}
    shown = [[name, row[3], f"{1000 * row[0]:.2f}", f"{row[1]:.2f}"] for name, row in slowest.items()]
    common.print_table(["function", "slowest on", "ms for 100 KB", "exponent"], shown)
    bad = [row for row in rows if not is_linear(row[0], row[1])]
    for seconds, exponent, name, kind in bad:
        print(f"not linear: {name} on {kind}: {1000 * seconds:.2f} ms for 100 KB, exponent {exponent:.2f}")
    run_seconds = time_run()
    print(f"a run of 2,000 calls: {1000 * run_seconds:.1f} ms")
    figures = {"pairs": len(rows), "worst_ms_100_kb": round(1000 * max(rows)[0], 2), "not_linear": len(bad)}
    figures |= {"run_2000_calls_ms": round(1000 * run_seconds, 1)}
    common.print_verdict("reading", figures, met=not bad and run_seconds <= MOST_RUN_SECONDS)


if __name__ == "__main__":
    main()
