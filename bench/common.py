"""The shared part of drivers. A driver is ``drivers/NAME_.py`` and calls ``main(peer, distribution, {variant: make})``.

``make(ctx)`` returns ``J(judge=...)``, with an async function from an item to a verdict: True (passed), False (failed),
None (no verdict) or the reason why there is none; or ``J(batch=...)``, with an async function that is handed all items,
how many may be in flight, and a function that takes each verdict, in any order.

``ctx`` has ``base_url``, ``model``, ``timeout``, ``retries``, the two as the openai SDK takes them (``given``), and
``options``. The harness keeps ``--c`` judgements in flight, warms up first, and prints one line: ``RESULT {json}``. The
mock always answers "passed", so False counts as wrong.

CPU is that of the whole process, user and system, without imports, set-up and warm-up; the garbage collector is on.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.metadata
import json
import os
import resource
import statistics
import sys
import time
import urllib.request
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

BENCH = Path(__file__).resolve().parent
Item = dict[str, Any]

# Nobody asks the world anything, and no proxy stands between a client and the mock.
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
    os.environ.pop(name, None)
os.environ.update(OPENAI_API_KEY="sk-mock", NO_PROXY="127.0.0.1,localhost", DO_NOT_TRACK="1", BRAINTRUST_DISABLE="1")
os.environ.update(
    ANONYMIZED_TELEMETRY="false",
    CONFIDENT_TRACE_FLUSH="NO",
    DEEPEVAL_DISABLE_DOTENV="1",
    DEEPEVAL_TELEMETRY_OPT_OUT="YES",
    HF_HUB_OFFLINE="1",
    LANGSMITH_TRACING="false",
    LITELLM_LOCAL_MODEL_COST_MAP="True",
    LITELLM_TELEMETRY="False",
    MLFLOW_DISABLE_TELEMETRY="true",
    OTEL_SDK_DISABLED="true",
    PYDANTIC_DISABLE_PLUGINS="1",
    RAGAS_DO_NOT_TRACK="true",
    TQDM_DISABLE="1",
)

CRITERION = (
    "The output answers the question in the input correctly, completely and without unsupported claims; "
    "it stays on topic, is consistent with common knowledge and gives no unsafe advice."
)
_INPUT = (
    "Explain how {topic} affects the long-term stability of a small public library's budget, and list the three "
    "measures which a director could take within one year. Mention at least one risk of each measure."
)
_OUTPUT = (
    "A small public library depends on a stable yearly grant. {topic} changes both income and spending. First, the "
    "director can renegotiate the service contracts; the risk is a lower quality of support. Second, opening hours can "
    "follow the visitor counts; the risk is that some visitors stop coming. Third, a friends' association can pay for "
    "acquisitions; the risk is that such gifts are not steady. Each of these measures should be reviewed after six "
    "months with figures for visits, loans and costs, so that the board can decide with evidence. "
)
_TOPICS = (
    "inflation",
    "a hiring freeze",
    "digital lending",
    "a new branch",
    "energy cost",
    "a roof repair",
    "training",
)


PROMPT = f"You are a strict judge. Criterion: {CRITERION}"
"""The prompt that libraries that take one are given."""


class J(SimpleNamespace):
    """A driver's judge: ``J(judge=async function, close=async function or None)``, or ``batch`` instead."""


class Answers(list[Any]):
    """Verdicts as they come, and the resident memory of the process forty times on the way."""

    def __init__(self, expected: int) -> None:
        self.step, self.samples = max(expected // 40, 1), list[tuple[int, int]]()

    def append(self, answer: Any) -> None:
        super().append(answer)
        if len(self) % self.step == 0:
            self.samples.append((len(self), read_memory()))

    def find_slope(self) -> float | None:
        """Bytes per verdict in the second half, by a straight line."""
        half = self.samples[len(self.samples) // 2 :]
        if len(half) < 5:
            return None
        return statistics.linear_regression([at for at, _ in half], [size for _, size in half]).slope


def read_memory() -> int:
    """Resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def make_item(number: int) -> Item:
    """An input and an output to judge, about 850 characters, different for every number."""
    topic = _TOPICS[number % len(_TOPICS)]
    return {
        "id": number,
        "input": f"[item-{number:06d}] {_INPUT.format(topic=topic)}",
        "output": f"{_OUTPUT.format(topic=topic)}(answer {number})",
    }


def write_user(item: Item) -> str:
    """An item for a library that takes a message as it is."""
    return f"<input>\n{item['input']}\n</input>\n<output>\n{item['output']}\n</output>"


def cpu() -> float:
    """Seconds of processor time of this process and the children it has waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def get(url: str) -> bytes:
    """GET an address of the mock."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read()


def read_options(variants: Mapping[str, Any]) -> argparse.Namespace:
    """The command line of a driver."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", default=next(iter(variants)), choices=list(variants))
    parser.add_argument("--n", type=int, default=2000)
    parser.add_argument("--c", type=int, default=64, help="judgements in flight")
    parser.add_argument("--cfg", default="", help="settings of the mock, like lat-200")
    parser.add_argument("--port", type=int, default=8099)
    parser.add_argument("--warm", type=int, default=512, help="judgements before the measured ones")
    parser.add_argument("--body", default="", help="a file with the request body to send (floor)")
    parser.add_argument("--criteria", type=int, default=1, help="criteria of the rubric (adjudge)")
    parser.add_argument("--timeout", type=float, default=0)
    parser.add_argument("--retries", type=int, default=-1)
    parser.add_argument("--limit", type=float, default=0, help="seconds after which what is under way counts as hung")
    parser.add_argument("--profile", default="", help="write a profile here instead of measuring")
    return parser.parse_args()


def main(peer: str, distribution: str, variants: Mapping[str, Callable[[Any], J]]) -> None:
    """Measure one variant and print its line."""
    options = read_options(variants)
    run = uuid.uuid4().hex[:10]
    root = f"http://127.0.0.1:{options.port}"
    settings = f"_{options.cfg}" if options.cfg else ""
    ctx = SimpleNamespace(
        base_url=f"{root}/run-{run}{settings}/v1",
        model="gpt-4o-mini",
        timeout=options.timeout or None,
        retries=options.retries if options.retries >= 0 else None,
        options=options,
    )
    given = {"timeout": ctx.timeout, "max_retries": ctx.retries}
    ctx.given = {name: value for name, value in given.items() if value is not None}  # for the openai SDK
    made = variants[options.variant](ctx)
    measured = asyncio.run(measure(made, options, f"{root}/reset?run={run}"))
    server = json.loads(get(f"{root}/stats?run={run}"))
    peak = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    facts = {"peer": peer, "variant": options.variant, "version": find_version(distribution), "cfg": options.cfg}
    shown = facts | {"n": options.n, "c": options.c, "peak_rss_mb": round(peak, 1)} | measured
    print("RESULT " + json.dumps(shown | {"server": server, "run": run}), flush=True)
    if measured["hung"]:
        os._exit(0)  # threads that will never end


async def measure(made: J, options: argparse.Namespace, reset: str) -> dict[str, Any]:
    """Warm up, then judge and take the time."""
    warm = Answers(options.warm)
    await run_items(made, range(900_000, 900_000 + options.warm), options, warm)
    await asyncio.to_thread(get, reset)
    gc.collect()
    profiler = start_profiler() if options.profile else None
    verdicts = Answers(options.n)
    started, used = time.perf_counter(), cpu()
    finished = await run_items(made, range(options.n), options, verdicts)
    wall, used = time.perf_counter() - started, cpu() - used
    if profiler:
        profiler.stop()
        await asyncio.to_thread(write_profile, profiler, options.profile)
    close = getattr(made, "close", None)
    if close and finished:
        await close()
    errors = [repr(item) for item in [*warm, *verdicts] if isinstance(item, BaseException)]
    absent = options.n - len(verdicts)
    return {
        "wall_s": wall,
        "per_second": options.n / wall,
        "cpu_us": 1e6 * used / options.n,
        "bytes_per_judgement": verdicts.find_slope(),
        "passed": verdicts.count(True),
        "wrong": verdicts.count(False),
        "none": verdicts.count(None),
        "outcomes": Counter(map(name_answer, verdicts)),
        "lost": absent if finished else 0,
        "hung": 0 if finished else absent,
        "errors": len(errors),
        "first_error": errors[0][:300] if errors else "",
    }


def name_answer(answer: Any) -> str:
    """A verdict, or what stands in its place, as tables call it."""
    if isinstance(answer, BaseException):
        return f"raised {type(answer).__name__}"
    return {True: "passed", False: "wrong", None: "no verdict"}.get(answer, str(answer))


async def run_items(made: J, numbers: range, options: argparse.Namespace, answers: Answers) -> bool:
    """Judge an item for every number; whether that ended within the limit, with answers or without."""
    if not numbers:
        return True
    try:
        async with asyncio.timeout(options.limit or None):
            if hasattr(made, "batch"):
                await made.batch(map(make_item, numbers), options.c, answers.append)
            else:
                await judge_all(made.judge, numbers, options.c, answers)
    except TimeoutError:
        return False
    except Exception as error:  # noqa: BLE001 - a runner that raises has lost what it did not hand out before
        print(f"the runner raised {error!r:.300}", file=sys.stderr)
    return True


async def judge_all(
    judge: Callable[[Item], Awaitable[Any]], numbers: range, in_flight: int, answers: list[Any] | None = None
) -> list[Any]:
    """Judge an item for every number, so many at once; an exception is an answer too."""
    waiting = iter(numbers)
    answers = [] if answers is None else answers

    async def work() -> None:
        for number in waiting:
            try:
                answers.append(await judge(make_item(number)))
            except Exception as error:  # noqa: BLE001 - counted, and shown by the suite
                answers.append(error)

    async with asyncio.TaskGroup() as group:
        for _ in range(min(in_flight, len(numbers))):
            group.create_task(work())
    return answers


def start_profiler() -> Any:
    """Pyinstrument, where it is installed."""
    from pyinstrument import Profiler

    profiler = Profiler(interval=0.0005, async_mode="disabled")
    profiler.start()
    return profiler


def write_profile(profiler: Any, name: str) -> None:
    """The profile as text."""
    Path(name).write_text(profiler.output_text(unicode=True, show_all=True), encoding="utf-8")


def find_version(distribution: str) -> str:
    """The version of an installed distribution."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "(this tree)"


def median(rows: list[dict[str, Any]], name: str) -> float:
    """The median of one figure over rounds."""
    return statistics.median(row[name] for row in rows)


def rotate(names: list[str], by: int) -> Iterator[str]:
    """The names, beginning further on each round, so that none always runs after the same other."""
    at = by % len(names)
    yield from names[at:]
    yield from names[:at]


def print_table(head: list[str], rows: list[list[str]]) -> None:
    """A table that is also Markdown."""
    widths = [max(len(row[at]) for row in [head, *rows]) for at in range(len(head))]
    for row in (head, ["-" * width for width in widths], *rows):
        print("| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |")


def print_verdict(name: str, figures: Mapping[str, Any], *, met: bool) -> None:
    """The line for programs, and the exit status: 1 where a target was missed."""
    print(json.dumps({"benchmark": name, "met": met} | dict(figures)), flush=True)
    sys.exit(0 if met else 1)
