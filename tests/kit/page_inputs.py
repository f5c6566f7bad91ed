"""The files and programs that readers of pages have before their first command."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from adjudge import Case, run
from adjudge.runs import BatchOptions
from kit import batch, docs
from kit.datasets import pack
from kit.environment import require
from kit.example_model import ExampleModel
from kit.house import ROOT, TESTS
from kit.mcp import SERVE_SCRIPT
from kit.patience import HANG, wait_for

JUDGE = "openai:gpt-6.1-terra"
"""The model that pages name."""

LOGIN = "def login(user, password):\n    return compare_digest(stored(user), scrypt(password))\n"
"""Code to judge."""

RUBRIC = "name: Support\ncriteria: [{name: polite, description: Thanks the reader.}]\n"
"""A rubric of the reader's, where the page is about something else."""

SAMPLE = {
    "id": "parcel",
    "epoch": 1,
    "input": "Where is my parcel?",
    "target": "It left on Monday.",
    "output": {"choices": [{"message": {"content": "On Monday."}, "stop_reason": "stop"}], "completion": "On Monday."},
    "scores": {},
}
"""A sample of Inspect's, as its log has it."""


# ---------------------------------------------------------------- for every page


def write_files(directory: Path, files: Mapping[str, str]) -> None:
    """Write texts by their places below a folder."""
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def write_rows(*rows: Mapping[str, Any]) -> str:
    """Write rows as JSON lines."""
    return "".join(f"{json.dumps(row)}\n" for row in rows)


def copy_data(directory: Path, *names: str) -> None:
    """Copy files of the tests' data into a folder."""
    directory.mkdir(parents=True, exist_ok=True)
    for name in names:
        shutil.copy(TESTS / "data" / name, directory)


def read_file(page: str, title: str) -> str:
    """Read a file that a page shows, for what was there before its block."""
    return next(block.text for block in docs.read_blocks(ROOT / page) if block.title == title)


def set_variables(model: ExampleModel, **variables: str) -> None:
    """Set variables of the environment until the page has run."""
    patch = model.opened.enter_context(pytest.MonkeyPatch.context())
    for name, value in variables.items():
        patch.setenv(name, value)


# ---------------------------------------------------------------- files


def prepare_transcripts(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write the folder of transcripts that two coding agents left."""
    copy_data(directory / "transcripts", "agents/codex-json-clean.jsonl", "agents/claude-stream-clean.jsonl")
    return {}


def prepare_configured(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write the rubric that a configuration names, other configurations, and what is judged by them."""
    rubric = "name: Login\ncriteria: [{name: secure, description: Compares no passwords in plain text.}]\n"
    other = f'[defaults]\njudge = "{JUDGE}"\nrubric = "rubrics/login.yaml"\n'
    trusted = f'[defaults]\njudge = "{JUDGE}"\nrubric = "login"\n[rubrics]\nlogin = "login.yaml"\n'
    judged = {"login.py": LOGIN, "login.json": '{"user": "ann"}\n', "answer.txt": "Thank you for waiting.\n"}
    settings = {"other.toml": other, ".trusted/adjudge.toml": trusted, ".trusted/login.yaml": rubric}
    write_files(directory, {"rubrics/login.yaml": rubric, **settings, **judged})
    return {}


def prepare_replies(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write a pair and an answer, and what judges of two styles said of them."""
    pair = {"id": "hours", "content": {"a": "Yes.", "b": "It is open until six."}}
    said = [
        {"case": "hours", "order": "ab", "reply": {"text": "M"}},
        {"case": "hours", "order": "ba", "reply": {"text": "m"}},
        {"case": "no", "reply": {"text": "refusal"}},
    ]
    judged = {"pairs.jsonl": write_rows(pair), "data.jsonl": write_rows({"id": "no", "content": "No."})}
    write_files(directory, {**judged, "said.jsonl": write_rows(*said)})
    return {}


@contextmanager
def close_loops() -> Iterator[None]:
    """Close the loops that pydantic-evals makes, and leaves open, where a command has taken the thread's."""
    make, made = asyncio.new_event_loop, list[asyncio.AbstractEventLoop]()

    def keep() -> asyncio.AbstractEventLoop:
        made.append(make())
        return made[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio, "new_event_loop", keep)
        yield
    for loop in made:
        if not loop.is_running():
            loop.close()


def prepare_moving(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write the results that promptfoo made of a suite, and a packed log of Inspect."""
    lines = (TESTS / "data/promptfoo/results.jsonl").read_text("utf-8").splitlines()
    results = {"version": 3, "results": [json.loads(line) for line in lines]}
    write_files(directory, {"results.json": json.dumps({"evalId": "e", "results": results, "config": {}})})
    (directory / "logs").mkdir()
    shutil.move(pack(SAMPLE), directory / "logs/answers.eval")
    model.opened.enter_context(close_loops())
    return {}


def prepare_phoenix(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write spans of Phoenix with their annotations, as its client exports them."""
    copy_data(directory, "exports/phoenix/spans.json", "exports/phoenix/annotations.json")
    write_files(directory, {"support.yaml": RUBRIC})
    return {}


def prepare_stricter(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write the rubric of the page with a higher threshold."""
    rubric = read_file("docs/write-a-rubric.md", "rubrics/support.yaml")
    stricter = rubric.replace("passing_threshold: 0.75", "passing_threshold: 0.9")
    write_files(directory, {"rubrics/support-stricter.yaml": stricter})
    return {}


def load_one_plugin(model: ExampleModel) -> None:
    """Let pytest load no plugin but ours, for the others that are here start slowly."""
    set_variables(model, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1", PYTEST_PLUGINS="adjudge.testing.plugin")


def prepare_suite(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write the suite of the page, which its first block runs."""
    load_one_plugin(model)
    write_files(directory, {"test_answers.py": read_file("docs/pytest.md", "test_answers.py")})
    return {}


def prepare_branch(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Make a repository, of whose main branch the page's answers are."""
    load_one_plugin(model)
    for name in ("answers.jsonl", "rubrics/support.yaml", "adjudge.toml"):
        write_files(directory, {name: read_file("docs/pull-requests.md", name)})
    commit = ("-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "--message", "Answers")
    head = ("update-ref", "refs/remotes/origin/main", "HEAD")
    for words in (("init", "--quiet"), ("add", "."), commit, head):
        subprocess.run(["git", *words], cwd=directory, check=True)
    return {"../baseline": "../baseline-in-shell", "../candidate": "../candidate-in-shell"}  # its Python makes them too


def prepare_command_line(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write what the examples of the commands name."""
    questions = {"question.txt": "Where is my parcel?\n", "policy.txt": "Parcels leave within a day.\n"}
    rubrics = dict.fromkeys(["support.yaml", "rubrics/support.yaml", "login.yaml"], RUBRIC)
    answers = "qid,question,answer,gold,ok\n1,Why?,Because.,x,true\n2,How?,So.,y,false\n"
    files = {
        "login.py": LOGIN,
        "tool.py": LOGIN,
        "answers/first.txt": "Thank you.\n",
        "posts/first.md": "# Hello\n",
        "answers.jsonl": write_rows({"content": "Thank you."}),
        "answers.csv": answers,
        "promptfooconfig.yaml": read_file("docs/importing.md", "promptfooconfig.yaml"),
        "logs/run.json": json.dumps({"version": 2, "status": "success", "samples": [SAMPLE]}),
    }
    write_files(directory, {**questions, **rubrics, **files})
    return {}


def prepare_tickets(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write a table of answers, with a row that is none, and the run that judged the answers of before."""
    rubric = read_file("docs/runs.md", "polite.yaml")
    table = "Ticket #,Question,Bot Answer,OK?\n1,Where?,Dear Ann: it left.,yes\n2,When?,Dear Bob: today.,no\n3,Why?\n"
    write_files(directory, {"answers.csv": table, "polite.yaml": rubric})
    before = [Case(id="1", task="Where?", content="It left."), Case(id="2", task="When?", content="Dear Bob: soon.")]
    run(before, JUDGE, directory / "polite.yaml", out=directory / "baseline").finish_sync()
    return {}


# ---------------------------------------------------------------- servers


def prepare_local(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Let the double be Ollama, and a server on the port that pages name."""
    set_variables(model, OLLAMA_HOST=f"127.0.0.1:{model.port}")
    return {"http://127.0.0.1:8080/v1": model.url}


TOOL = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("shop", log_level="CRITICAL")


@server.tool(structured_output=False)
def answer(question: str) -> str:
    """Answer a question about the shop."""
    return "You have 14 days from delivery." if "back" in question else "From 9 to 18."


if __name__ == "__main__":
    server.run("stdio")
'''
"""A server of somebody else's: the program serves its standard input, and ``serve_tool`` an address."""


@contextmanager
def serve_tool(script: Path) -> Iterator[str]:
    """The address of a script's server over HTTP, in a process of its own."""
    words = [sys.executable, "-c", SERVE_SCRIPT.format(path=str(script), port=0)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp"
        finally:
            process.terminate()


def prepare_tool_server(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Start the server of a tool, and write the program that is the same server by a command."""
    require("mcp", find_spec("mcp"), "pip install 'adjudge[mcp]'")
    script = directory / "tool_server.py"
    write_files(directory, {script.name: TOOL})
    address = model.opened.enter_context(serve_tool(script))
    patient = {f"adjudge mcp {name}": f"adjudge mcp {name} --timeout {HANG:g}" for name in ("pin", "check")}
    return {"https://tools.example/mcp": address, "npx some-server": f"{sys.executable} {script.name}", **patient}


SHOP = """
import json
import sys


def answer(request):
    return {"text": "You have 14 days from delivery." if "back" in request["question"] else "From 9 to 18."}


if __name__ == "__main__":
    print(json.dumps(answer(json.load(sys.stdin))))
"""


def prepare_shop(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Write the reader's program beside the server of a tool."""
    write_files(directory, {"shop.py": SHOP})
    return {**prepare_tool_server(directory, model), "python shop.py": f"{sys.executable} shop.py"}


def prepare_batches(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Let a double with batches be OpenAI, and leave a run while it waits for its batch."""
    server = model.opened.enter_context(batch.serve(looks=1_000_000))
    set_variables(model, OPENAI_BASE_URL=server.base)
    rows = [{"id": str(number), "content": f"a good answer {number}"} for number in range(24)]
    write_files(directory, {"answers.jsonl": write_rows(*rows)})
    leave_batch(server, directory)
    server.looks = 0
    return {"--batch --out": "--batch --batch-poll 0.05 --out"}  # the double needs no day


def leave_batch(server: batch.BatchServer, directory: Path) -> None:
    """Begin a run by batches, and leave it once its batch waits at the provider."""
    options = BatchOptions(check=0, poll=0.05)
    folder = directory / "runs/tuesday"
    running = run(directory / "answers.jsonl", JUDGE, criteria="Answers the question.", out=folder, batch=options)

    def leave() -> None:
        wait_for(lambda: any(job.looks for job in server.jobs.values()))
        running.wind_down()

    leaving = threading.Thread(target=leave, daemon=True)
    leaving.start()
    running.finish_sync()
    leaving.join()


PREPARED: Mapping[str, Callable[[Path, ExampleModel], Mapping[str, str]]] = {
    "docs/agent-runs.md": prepare_transcripts,
    "docs/batch.md": prepare_batches,
    "docs/cli.md": prepare_command_line,
    "docs/config.md": prepare_configured,
    "docs/importing.md": prepare_phoenix,
    "docs/local-server.md": prepare_local,
    "docs/mcp.md": prepare_tool_server,
    "docs/moving.md": prepare_moving,
    "docs/probes.md": prepare_shop,
    "docs/pull-requests.md": prepare_branch,
    "docs/pytest.md": prepare_suite,
    "docs/reply.md": prepare_replies,
    "docs/runs.md": prepare_tickets,
    "docs/token.md": prepare_local,
    "docs/write-a-rubric.md": prepare_stricter,
}
"""By the page's place in the repository: see ``kit.page_files``."""
