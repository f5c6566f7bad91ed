"""The calls and commands that cause the messages of ``data/messages.json``; ``test_messages.py`` says what for.

A call is what anybody can write. It raises a ``UsageError``, returns a sentence or a result, or runs a command.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import re
import shlex
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from adjudge import (
    Approvals,
    Budget,
    Case,
    CriterionResult,
    Dataset,
    Gate,
    InputFirewall,
    Judge,
    JudgeChain,
    JudgeResult,
    Ledger,
    PairResult,
    PromptFirewall,
    Rubric,
    Rules,
    SemanticProbe,
    UsageError,
    compare_sync,
    evaluate_probes,
    judge,
    judge_function,
    load_rubric,
    load_rules,
    open_dataset,
    open_model,
    run,
)
from adjudge.dataset import Label, import_inspect, import_promptfoo
from adjudge.errors import LedgerError
from adjudge.guards import ApprovalAnswer, Webhook, verify_webhook
from adjudge.integrations.asgi import GateMiddleware
from adjudge.judges import read_result, with_layers
from adjudge.models import Price
from adjudge.runs import redecide
from adjudge.testing import FaultyModel, ScriptedModel
from adjudge.trust import Heap, find_interval, make_internal_rate
from kit import cli
from kit.approvals import ask, make_result, use
from kit.cli import WORDS, Line
from kit.firewalls import chain, reject, script, threaten
from kit.gates import Desk, check, gate
from kit.judges import NO, YES, Seat, failed, passed, scores, silent
from kit.ledgers import connect, record, verify
from kit.loops import run_virtual
from kit.pinned_messages import Written
from kit.probes import by_output, many, probed, probed_with, violated
from kit.redecisions import Told, do, make_cases, score
from kit.tools import errors

CRITERION = {"name": "a", "description": "b"}
RUBRIC = Rubric(name="r", criteria=[CRITERION])


def evaluate(content: Any = "Hello.", *, judge: Any = None, **arguments: Any) -> JudgeResult:
    """Ask a judge, whose model has not been asked where the call is wrong."""
    model = ScriptedModel(scores(1.0))
    try:
        return (judge or Judge(model)).evaluate_sync(content, **arguments)
    except UsageError:
        assert model.requests == []
        raise


def evaluate_many(**arguments: Any) -> None:
    """Ask about nothing."""

    async def main() -> None:
        async for _ in Judge(ScriptedModel(YES)).evaluate_many([], criteria="Good.", **arguments):
            pass

    asyncio.run(main())


class Small(ScriptedModel):
    """A model that takes ten characters."""

    max_input_characters = 10


class Picture:
    """An object with bands, as an image has them."""

    def getbands(self) -> tuple[str, ...]:
        """Return the bands."""
        return ("R", "G", "B")


def hold_itself() -> list[object]:
    """A list that holds itself."""
    loop: list[object] = []
    loop.append(loop)
    return loop


def ask_small_seat() -> None:
    """Ask a chain of which an inner seat cannot take the question: no other seat may be asked before that is known."""
    first = ScriptedModel(NO)
    try:
        JudgeChain([first, JudgeChain([Small(YES, name="small")])]).ask_sync("x" * 11)
    finally:
        assert first.requests == []


def open_without_address() -> None:
    """Open a model of Azure, which has an address of its own for each customer."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
        patch.setenv("AZURE_OPENAI_API_KEY", "k")
        open_model("azure:d").check()  # type: ignore[attr-defined]


def make_format(name: str, **members: Any) -> type[Any]:
    """A result format with these members."""
    return dataclasses.make_dataclass(name, members.items())


A = ("a", lambda prompt: YES)


def read(text: str, name: str = "c.jsonl", **options: Any) -> list[Any]:
    """The cases of a file with this text, in the working directory."""
    Path(name).write_bytes(text.encode("utf-8", "surrogateescape"))
    return list(open_dataset(name, **options))


def write(name: str, text: str) -> Path:
    """A file in the working directory."""
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def read_log(*samples: Any) -> None:
    """The cases of a log of Inspect with these samples."""
    log = {"version": 2, "status": "success", "eval": {"task": "t"}, "samples": list(samples)}
    list(import_inspect(write("log.json", json.dumps(log))))


def read_one(row: dict[str, Any], fields: dict[str, str]) -> None:
    """One row of a list."""
    list(Dataset.of([row], fields=fields))


def greets(content: str) -> bool:
    """A rule of one's own."""
    return content.startswith("Hello")


def read_twice() -> None:
    """A generator that is read a second time."""
    dataset = Dataset.of({"content": text} for text in "ab")
    for _ in range(2):
        list(dataset)


async def run_again(first: Any, second: Any, **options: Any) -> None:
    """A run in a folder, and another in the same one."""
    model = ScriptedModel(scores(1.0))
    await run(first, model, criteria="Good.", out="run", **options.pop("before", options))
    await run(second, model, criteria="Good.", out="run", **options)


async def list_approvals(**options: Any) -> None:
    """Approvals of an empty ledger."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.list(**options)


async def ask_people(**options: Any) -> None:
    """A request that nobody could decide."""
    terms = {"about": JudgeResult(**PASSED), "message": "?", "approvers": ["ana", "bob"]} | options
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.request(terms.pop("about"), terms.pop("message"), **terms)


async def decide(*vote: Any, of: str | None = None, before: tuple[Any, ...] = ()) -> None:
    """A decision about a request whose id is ID in the message, and perhaps one before it."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        ident = await approvals.request(JudgeResult(**PASSED), "?", approvers=["ana", "bob"])
        try:
            for each in (before, vote):
                await (approvals.decide(of or ident, *each) if each else asyncio.sleep(0))
        except UsageError as error:
            raise UsageError(str(error).replace(ident, "ID"), argument=error.argument) from error


async def find_request(*parts: Any) -> None:
    """Requests that are named by a part of an id, or by something else."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.request(JudgeResult(**PASSED), "?", approvers=["ana"])
        for part in parts:
            await approvals.find(part)


async def append_context(url: str) -> None:
    """An entry whose context has another name than those there are."""
    async with Ledger(url) as ledger:
        await ledger.append(JudgeResult(**PASSED), content="a", context={"outcome": "b"})


async def export_twice() -> None:
    """The labels of a ledger, written to a file that is there."""
    async with Approvals("sqlite:///adjudge.db") as approvals:
        await approvals.request(JudgeResult(**PASSED), "?", approvers=["ana"])
        for _ in range(2):
            await approvals.export_labels("labels.jsonl")


PASSED: dict[str, Any] = {"outcome": "passed", "judge": "j"}
UNDECIDED: dict[str, Any] = {"outcome": "undecided", "judge": "j", "undecided_because": "timeout"}
LABEL: dict[str, Any] = {"reader": "label", "reader_labels": ("a", "b"), "reader_passes": ("a",)}
PROBE = SemanticProbe(name="p", input="x", expected="x", contract="Polite.")
PRICE = Price(input=1.0, output=1.0)
ENDLESS = {"config": [{}] * 400, "tests": [{}] * 400}
ASSERTION = {"vars": {"q": "a"}, "assert": [{"type": 7}]}
SCENARIO = '{"scenarios": [7]}'

SECRET = "a secret of enough bytes"
DOOR = Gate("door", rules=["secrets"])
HALF = {"0": score(a=1.0, b=0.5)}


@dataclasses.dataclass
class Review:
    passed: bool
    issues: list[str]


class OddJudge:
    """A judge of somebody who thought that a yes is enough."""

    name = "odd"

    async def ask(self, question: object, /) -> Any:
        return True


class OddModel:
    """A model of the same."""

    name = "odd"

    async def complete(self, request: object, /) -> Any:
        return 7


def ask_within(budget: Budget) -> JudgeResult:
    """The result of a judge whose next call may cost 3 dollars."""
    model = Judge(ScriptedModel(scores(1.0)), max_output_tokens=3)
    judge = with_layers(model, budget=budget, prices={"scripted": Price(input=0.0, output=1_000_000.0)})
    return judge.evaluate_sync("Hello.", criteria="Good.")


def ask_form(**reply: Any) -> JudgeResult:
    """The result of a judge whose reply has these members."""
    return Judge(ScriptedModel(reply), reask=0).evaluate_sync("Hello.", result_format=Review)


def tell_first(judge: Any, **options: Any) -> str:
    """Tell what a request says of the judge that was asked first."""

    async def ask(approvals: Approvals) -> str:
        terms = {"approvers": ["ana"], "first": judge, "content": "The content."} | options
        about = terms.pop("about", make_result())
        return (await approvals.get(await approvals.request(about, "Publish it?", **terms))).first_said

    return use("sqlite:///adjudge.db", ask)


def resume(answer: Any, **gates: Any) -> str:
    """The detail of a decision that waited, after this answer."""
    desk = Desk(answer)
    pending = check(gate(Seat("failed"), on_failed="ask", approvals=desk, wait=False))
    later = gate(Seat("failed"), **{"on_failed": "ask", "approvals": desk, "wait": False} | gates)
    return run_virtual(later.resume(pending)).detail


def resume_unbound() -> str:
    """The detail of one that waits without a request digest."""
    made = gate(Seat("failed"), on_failed="ask", approvals=Desk(), wait=False)
    return run_virtual(made.resume(dataclasses.replace(check(made), request=None))).detail


def resume_another() -> str:
    """The detail of one that is resumed with another content."""
    made = gate(Seat("failed"), on_failed="ask", approvals=Desk(), wait=False)
    return run_virtual(made.resume(check(made), content="Another.")).detail


def reject_rules(judge: Any, place: int, *rules: str, **options: Any) -> str:
    """Return why a prompt firewall rejected one of these rules."""
    verdict = run_virtual(PromptFirewall(judge, **options).check(rules))
    return next(item.reason for item in verdict.rejected if item.index == place)


def refuse_arguments(judge: Any) -> str:
    """The detail of an input firewall's verdict."""
    return run_virtual(InputFirewall(judge).check({"q": "x"})).detail


def change_payload() -> str:
    """Return what a ledger's verification says of an entry that was written over."""
    record("sqlite:///adjudge.db", {"n": 1})
    with connect("sqlite:///adjudge.db") as connection:
        connection.execute("DROP TRIGGER adjudge_ledger_no_update")
        connection.execute("UPDATE adjudge_ledger SET payload = ? WHERE seq = 2", (b'{"n":7}',))
        connection.commit()
    return verify("sqlite:///adjudge.db").detail


def compare_flipped(**options: Any) -> PairResult:
    """A pair of which the judge prefers whichever comes first."""
    reply = {"preferred": "first", "reasoning": "so"}
    return compare_sync("a", "b", criteria="Good.", judge=ScriptedModel(reply), **options)


def redecide_short(*panel: Any, before: str, **policy: Any) -> str:
    """Return why a redecision cannot say what would have been."""
    judge = JudgeChain(list(panel), strategy=before, timeout=None) if len(panel) > 1 else panel[0]
    do(make_cases(1), judge, out="run")
    (reason,) = redecide("run", **policy).unknown_because
    return reason


def keep_one(dataset: Dataset) -> str:
    """The note of a data set that has one."""
    list(dataset)
    (note,) = dataset.notes
    return note


class Never(Told):
    """A model that never answers."""

    async def complete(self, request: Any, /) -> Any:
        await asyncio.Event().wait()


class Slowly(Seat):
    """A judge whose answer holds up the loop, and so comes after the request has expired."""

    async def ask(self, question: Any, /) -> JudgeResult:
        time.sleep(0.05)  # noqa: ASYNC251 - what it is about
        return await super().ask(question)


class Picky(Seat):
    """A judge that will not be asked."""

    def check(self, question: object) -> None:
        raise UsageError("it will not do")


def break_rule(content: str) -> bool:
    """A rule that raises, with an escape sequence."""
    raise LookupError(f"no table\x1b[2J for {content}")


def rule_message(rule: Any, content: str) -> str:
    """Return what the first of these rules says of a content."""
    return Rules([rule]).evaluate_sync(content)[0].message


def put_files() -> None:
    """Contents and data sets that cannot be read, or hold nothing."""
    Path("folder").mkdir()
    Path("binary.bin").write_bytes(b"abc\0d")
    Path("latin.txt").write_bytes("Grüße".encode("latin-1"))
    for name in ("empty.txt", "none.jsonl"):
        Path(name).touch()
    Path("bad.jsonl").write_text("{\n" * 150 + '{"content": "x"}\n', "utf-8")
    Path("answers.csv").write_text("content\nx\n", "utf-8")
    Path("hidden").mkdir()
    Path("hidden/.env").touch()


def put_configurations() -> None:
    """Configurations that cannot be read, one that names a judge, and a case."""
    put_files()
    Path("binary.toml").write_bytes(b"\xff\xfe\x00")
    write("rubrics.toml", '[rubrics]\ngone = "gone.yaml"\n')
    write("c.jsonl", '{"content": "x"}\n')


def put_careful() -> None:
    """An ``adjudge.toml`` with a judge."""
    configure("[judges.careful]\nseats = ['rules']\n")()


def put_rubrics() -> None:
    """Rubrics that are wrong, and one that is not read as text."""
    Path("twice.yaml").write_text("name: x\ncriteria:\n  - {name: a, description: b}\n  - {name: a, description: c}\n")
    Path("percent.yaml").write_text("name: x\npassing_threshold: 70\ncriteria:\n  - {name: a, description: b}\n")
    Path("key.yaml").write_text("name: x\ncritera: []\n")
    Path("latin.yaml").write_bytes("Grüße".encode("latin-1"))
    Path("folder").mkdir()


def put_judges() -> None:
    """A module that ends the process."""
    Path("ending_module.py").write_text("import sys\nsys.exit(0)\n", encoding="utf-8")


def configure(text: str) -> Callable[[], None]:
    """An ``adjudge.toml``."""

    def put() -> None:
        write("adjudge.toml", text)

    return put


def keep_runs() -> None:
    """Runs to compare and to redecide: of one judge, of two, of other cases, and of none."""
    good, bad = score(a=1.0, b=0.6), score(a=0.0, b=0.6)
    for name, lines in {"was": {"a": good, "b": bad}, "fewer": {"b": bad}, "other": {"z": good}}.items():
        do([Case(id=each, content="text") for each in lines], Judge(Told("x", lines)), out=name)
    pair = [Told(name, {str(at): good for at in range(4)}) for name in "xy"]
    do(make_cases(4), JudgeChain(pair), out="two")
    do([], Judge(Told("x", {})), out="nothing")
    write("one.jsonl", '{"content": "ugly"}\n')


def keep_long_runs() -> None:
    """Two runs that differ in more cases than are shown."""
    for name, value in {"many": 1.0, "worse": 0.0}.items():
        lines = {str(at): score(a=value, b=0.6) for at in range(120)}
        do(make_cases(120), Judge(Told("x", lines)), out=name)


class Scorer:
    """An object of a program that judges in code."""

    name = "scorer"

    def evaluate(self, content: str) -> float:
        """Score a content."""
        return 0.9


def returning(value: Any) -> Judge:
    """A function as judge in code that returns the same for every content."""
    return Judge(judge_function(lambda content: value, name="mine"))


def miss_rules(content: Any) -> bool:
    """A judge in code with a mistake in it."""
    return bool(content["rules"])


def keep_entries() -> None:
    """A ledger of four entries, and its head."""
    record("sqlite:///a.db", make_result(), make_result("passed"), {"n": 1})


def hold_back(shows: str = "true") -> str:
    """The id of the approval under which a gate of ``adjudge.toml`` holds a file back."""
    Path("polite.yaml").write_text("name: P\ncriteria: [{name: criteria, description: Is polite.}]\n", "utf-8")
    Path("bad.txt").write_text("bad", "utf-8")
    Path("another.txt").write_text("worse", "utf-8")
    configure(
        f'[judges.words]\nseats = ["{WORDS}"]\n[rubrics]\npolite = "polite.yaml"\n[gates.publish]\n'
        'rubric = "polite"\njudge = "words"\non_failed = "ask"\n[ledger]\nurl = "sqlite:///adjudge.db"\n'
        f'[approvals]\napprovers = ["{cli.ME}", "bob"]\nshow_content = {shows}\n'
    )()
    with pytest.raises(SystemExit):
        cli.main(["gate", "check", "publish", "bad.txt", "--json"])
    return use("sqlite:///adjudge.db", lambda approvals: approvals.list())[0].id


def hold_back_unseen() -> str:
    """The same, under which no content is kept."""
    return hold_back("false")


def hold_back_elsewhere() -> str:
    """The same, of a gate that the configuration does not have."""
    ident = hold_back()
    configure(f'[ledger]\nurl = "sqlite:///adjudge.db"\n[approvals]\napprovers = ["{cli.ME}"]\n')()
    return ident


def forget_a_case() -> None:
    """A run of which a case was forgotten."""
    put_files()
    rows = [{"id": name, "content": f"{name}.", "metadata": {"customer": name}} for name in ("a", "b")]
    write("one.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(SystemExit):
        cli.main(["run", "one.jsonl", "--criteria", "Is polite.", "--judge", WORDS, "--out", "was"])
    with pytest.raises(SystemExit):
        cli.main(["forget", "--metadata", "customer=a", "--reason", "asked", "--run", "was"])


def put_label_table() -> None:
    """A file of labels of another format than JSON lines."""
    write("l.csv", "case,rater,value,comment\n1,cy,true,kind\n")


def forget_held() -> str:
    """The id of an approval whose content was forgotten."""
    ident = hold_back()
    subject = use("sqlite:///adjudge.db", lambda approvals: approvals.list())[0].subject
    with pytest.raises(SystemExit):
        cli.main(["forget", "--subject", subject, "--reason", "asked"])
    return ident


def put_leak() -> None:
    """A content with a secret."""
    write("leak.txt", "one\nuse ghp_" + "a1B2c3D4" * 5)


def put_table() -> None:
    """A table, which is a content and may be a data set."""
    write("rows.csv", "content\ngood\n")


def put_demo() -> None:
    """A folder with the run of the demonstration."""
    with pytest.raises(SystemExit):
        cli.main(["demo", "--out", "folder"])


def keep_probes() -> None:
    """A probe without a baseline."""
    write("probes.yaml", "probes:\n  - {name: new, input: 1}\n")


LONG = "x" * 5000
IDENT = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}-[0-9a-f]{32}")


class Terminal:
    """The command line of the test that runs."""

    line: Line


def shell(command: str, prepare: Callable[[], str | None] | None = None) -> Written:
    """Run a command after ``prepare``: its status and its lines on standard error, or all that ``| grep TEXT`` lets by.

    ``WORDS`` is a judge, ``--polite`` a criterion, ``{id}`` the approval that ``prepare`` returns, ``{shown}`` the
    digest of what it shows, and ``{long}`` a name that is too long for a file.
    """
    ident = (prepare() if prepare is not None else None) or ""
    shown = Terminal.line("approvals", "show", ident, "--json").document["shown"] if "{shown}" in command else ""
    typed, _, pattern = command.partition(" | grep ")
    words = {"WORDS": WORDS, "--polite": "--criteria 'Is polite.'", "{id}": ident, "{shown}": shown, "{long}": LONG}
    for name, word in words.items():
        typed = typed.replace(name, word)
    ran = Terminal.line(*shlex.split(typed))
    text = IDENT.sub("ID", f"{ran.out}{ran.err}" if pattern else ran.err).replace(LONG, "LONG")
    text = re.sub(rf"\b{re.escape(cli.ME)}\b", "ME", text)
    lines = [line for line in text.splitlines() if pattern.strip("'") in line]
    return Written(status=ran.status, lines=tuple(lines))


CAUSES: Sequence[Callable[[], object]] = (
    # Calls
    evaluate,
    lambda: evaluate(criteria="Good.", rubric=RUBRIC),
    lambda: evaluate(threshold=0.8),
    lambda: evaluate(criteria="Good.", threshold=70),
    lambda: evaluate(criteria="Good.", threshold=math.nan),
    lambda: evaluate(rubric=RUBRIC, threshold=70),
    lambda: evaluate(criteria="Good.", treshold=0.7),
    lambda: evaluate(criteria="Good.", zzz=1),
    lambda: evaluate(criteria="Good.", instructions=["x"]),
    lambda: evaluate(criteria="Good.", model=5),
    lambda: evaluate(criteria="Good.", metadata=[1]),
    lambda: evaluate(criteria="Good.", rules={"length": 3}),
    lambda: evaluate(criteria="Good.", passes=True),
    lambda: evaluate(criteria=5),
    lambda: evaluate(criteria=[]),
    lambda: evaluate(criteria=[{"name": "polite", "weight": 2}]),
    lambda: evaluate(criteria="  "),
    lambda: evaluate(rubric=3),
    lambda: evaluate(criteria="Good.", passes=lambda value: True),
    lambda: evaluate(result_format=dict),
    lambda: evaluate(result_format="Verdict"),
    lambda: evaluate(criteria="Good.", model="gpt-6.1-terra", judge=Judge(("f", lambda prompt: YES))),
    lambda: evaluate(result_format=make_format("Opinion", text=str)),
    lambda: evaluate(result_format=make_format("Loose", passed=str)),
    lambda: evaluate(result_format=make_format("Mine", passed=bool, token=str)),
    lambda: evaluate(result_format=make_format("Mine", passed=bool, criteria=str)),
    lambda: judge("Hello.", criteria="Good."),
    lambda: Judge(ScriptedModel(YES)).ask(""),
    lambda: JudgeChain([ScriptedModel(YES)]).ask(""),
    lambda: Judge(ScriptedModel(YES)).ask(" \n"),
    lambda: JudgeChain([ScriptedModel(YES)]).ask(" \n"),
    lambda: Judge(ScriptedModel(YES)).ask(None),  # type: ignore[arg-type]
    lambda: JudgeChain([ScriptedModel(YES)]).ask(None),  # type: ignore[arg-type]
    lambda: Judge(ScriptedModel(YES)).ask(b"safe?"),  # type: ignore[arg-type]
    lambda: JudgeChain([ScriptedModel(YES)]).ask(b"safe?"),  # type: ignore[arg-type]
    # Contents
    # Functions
    lambda: evaluate(judge=returning(85), criteria="Good."),
    lambda: evaluate(judge=returning(8), criteria="Good."),
    lambda: evaluate(judge=returning(-1), criteria="Good."),
    lambda: evaluate(judge=returning(("It is good.", 0.9)), criteria="Good."),
    lambda: evaluate(judge=returning((0.9, "It is good.", "sure")), criteria="Good."),
    lambda: evaluate(judge=returning({"score": "0.9"}), criteria="Good."),
    lambda: evaluate(judge=returning({"score": 0.9, "reason": 3}), criteria="Good."),
    lambda: evaluate(judge=Judge(Scorer()), criteria="Good."),
    lambda: reject_rules(returning((0.9, "It is good.")), 1, "Be kind."),
    lambda: reject_rules(Judge(judge_function(miss_rules)), 1, "Be kind."),
    lambda: evaluate(b"\x89PNG", criteria="Good."),
    lambda: evaluate(bytearray(3), criteria="Good."),
    lambda: evaluate({1: "a", "1": "b"}, criteria="Good."),
    lambda: evaluate({"file": [b"abc"]}, criteria="Good."),
    lambda: evaluate("a\x00b", criteria="Good."),
    lambda: evaluate("caf\udce9", criteria="Good."),
    lambda: evaluate(
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]}], criteria="Good."
    ),
    lambda: evaluate({"role": "user", "content": [{"type": "image"}]}, criteria="Good."),
    lambda: evaluate(object(), criteria="Good."),
    lambda: evaluate({"score": math.nan}, criteria="Good."),
    lambda: evaluate(hold_itself(), criteria="Good."),
    lambda: evaluate(Picture(), criteria="Good."),
    lambda: evaluate(criteria="Good.", reference=b"abc"),
    lambda: evaluate("x" * 7, judge=Judge(Small(YES, name="small")), criteria="Good.", task="y" * 4),
    # Rubrics
    lambda: Rubric(name="r", criteria=[CRITERION, CRITERION]),
    lambda: Rubric(name="r", criteria=[{**CRITERION, "weight": 0}]),
    lambda: Rubric(name="r", criteria=[{**CRITERION, "weight": -1}]),
    lambda: Rubric(name="r", criteria=[{**CRITERION, "weight": math.inf}]),
    lambda: Rubric(name="r", criteria=[{**CRITERION, "threshold": 90}]),
    lambda: Rubric(name="r", criteria=[]),
    # Judges and readers
    lambda: Judge(ScriptedModel(YES), timeout=math.nan),
    lambda: Judge(ScriptedModel(YES), timeout=0.0),
    lambda: Judge(ScriptedModel(YES), timeout=-1),
    lambda: Judge(ScriptedModel(YES), timeout=math.inf),
    lambda: Judge(ScriptedModel(YES), reask=-1),
    lambda: Judge(ScriptedModel(YES), reask=True),
    lambda: Judge(ScriptedModel(YES), structured="yes"),
    lambda: Judge(ScriptedModel(YES), token="no"),
    lambda: Judge(ScriptedModel(YES), scoring="mean"),
    lambda: evaluate(judge=Judge(ScriptedModel(YES), reader="Rating: [[7]]"), criteria=["Short.", "True."]),
    lambda: evaluate(judge=Judge(ScriptedModel(YES), reader="[[A]]"), criteria="Good."),
    lambda: evaluate(judge=Judge(ScriptedModel(YES), reader="GRADE: C"), criteria="Good."),
    lambda: Judge(ScriptedModel(YES), reader="Rating: [[7]]").ask("Safe?"),
    lambda: FaultyModel(ScriptedModel(YES), ["explode"]),  # type: ignore[list-item]
    lambda: evaluate_many(concurrency=0),
    # Chains
    lambda: JudgeChain([A], strategy="voting"),
    lambda: JudgeChain([]),
    lambda: JudgeChain("openai:gpt-6.1-terra"),
    lambda: JudgeChain([A], timeout=math.nan),
    lambda: JudgeChain([A], timeout=0),
    lambda: JudgeChain([A], timeout=-1.5),
    lambda: JudgeChain([A], timeout=math.inf),
    lambda: JudgeChain([A], timeout=True),
    lambda: JudgeChain([A], timeout="5"),
    lambda: JudgeChain([A], deadline=math.nan),
    lambda: JudgeChain([A], deadline=-0.0),
    lambda: JudgeChain([A], strategy="hedged", hedge_after=math.inf),
    lambda: JudgeChain([A], fail_open="false"),
    lambda: JudgeChain([A], stop_early=None),
    lambda: JudgeChain([A], strategy="quorum"),
    lambda: JudgeChain([A], strategy="hedged"),
    lambda: JudgeChain([A], strategy="cascade"),
    lambda: JudgeChain([A], quorum=1),
    lambda: JudgeChain([A], strategy="majority", hedge_after=1.0),
    lambda: JudgeChain([A], abstain_below=0.5),
    lambda: JudgeChain([A, A], strategy="quorum", quorum=0),
    lambda: JudgeChain([A, A], strategy="quorum", quorum=3),
    lambda: JudgeChain([A], strategy="quorum", quorum=True),
    lambda: JudgeChain([A, A], strategy="cascade", escalate_below=70),
    lambda: JudgeChain([A, A], strategy="cascade", escalate_below=[0.5, 0.5]),
    lambda: JudgeChain([A, A], strategy="cascade", escalate_below=0.5, abstain_below=math.nan),
    lambda: JudgeChain([JudgeChain([A], fail_open=True, name="inner"), A]),
    lambda: JudgeChain([A], name="c").evaluate("text", criteria="Good.", model="m"),
    lambda: JudgeChain([A], name="c").evaluate("text", Rubric(name="r", model="m", criteria=[CRITERION])),
    ask_small_seat,
    # Results
    lambda: JudgeResult(outcome="undecided", judge="j"),
    lambda: JudgeResult(**UNDECIDED, score=0.0),
    lambda: JudgeResult(**PASSED, score=95),
    lambda: JudgeResult(**PASSED, threshold="0.5"),
    lambda: JudgeResult(**PASSED, confidence=math.nan),
    lambda: CriterionResult(name="a", passed=True, score=1.01),
    lambda: CriterionResult(name="a", passed=True, score=0.5, threshold=True),
    lambda: JudgeResult(**PASSED | {"outcome": "PASSED"}),
    lambda: JudgeResult(**UNDECIDED | {"undecided_because": "whatever"}),
    lambda: JudgeResult.from_dict({}),
    lambda: read_result({"schema": "adjudge/run/1"}),
    lambda: read_result({key: value for key, value in JudgeResult(**PASSED).to_dict().items() if key != "id"}),
    # Judges
    lambda: Judge(ScriptedModel(YES), on_result="log.txt"),
    lambda: Judge(ScriptedModel(YES), redact="[name]"),
    lambda: JudgeChain([ScriptedModel(YES)], on_result="log.txt"),
    lambda: Judge(ScriptedModel(YES), **LABEL).evaluate("x", criteria="Good.", passes=lambda label: True),
    open_without_address,
    # Rubrics
    lambda: Rubric(name="r", criteria=[CRITERION], passing_threshold=70),
    # Rules
    lambda: Rules("json"),
    lambda: load_rules(3),  # type: ignore[arg-type]
    lambda: Rules([greets, greets]),
    lambda: load_rules(Rules([greets]).to_dict()),
    # Data
    lambda: read('{"id": "a", "content": 1}\n{"id": "a", "content": 2}\n'),
    lambda: read('{"content": "a"}\n{"content": "\udcff"}\n'),
    lambda: read("id,text\n", "c.csv"),
    lambda: read("answer,output\nx,y\n", "c.csv"),
    lambda: JudgeChain([("careful", Judge("rules"))]),  # type: ignore[list-item]
    lambda: read("answer,gold\nx,y\n", "c.csv", fields={"content": "anser"}),
    read_twice,
    lambda: read_one({"answer": "x", "qid": 1, "metadata": {"qid": 2}}, {"content": "answer"}),
    lambda: list(import_promptfoo(write("c.yaml", SCENARIO))),
    lambda: list(import_promptfoo(write("c.yaml", json.dumps({"scenarios": [ENDLESS]})))),
    lambda: list(import_promptfoo(write("c.yaml", json.dumps({"tests": [ASSERTION]})))),
    lambda: load_rubric("securty"),
    lambda: load_rubric({"name": "r", "criteria": [CRITERION], "model": "python:a:b"}),
    lambda: load_rubric(write("folder/x.txt", "")),
    lambda: read_log({"id": 1, "input": "Q", "target": "T", "output": {"choices": []}}),
    lambda: read_log({"id": 1, "input": "Q", "output": {"choices": []}, "limit": {"type": "message", "limit": 1}}),
    lambda: read_log({"id": 1, "input": "Q", "error": {"message": "boom"}}),
    lambda: read_log(7),
    lambda: list(import_inspect(write("log.json", '{"eval": {}}'))),
    # Runs, ledgers and gates
    lambda: run_again([Case(id="a", content="x"), Case(id="a", content="y")], []),
    lambda: run_again(["a"], ["a", "b"], before={}, budget=5, prices={"scripted": PRICE}, resume=True),
    lambda: Ledger("mysql://x"),
    lambda: Budget(-1),
    lambda: evaluate_probes([(PROBE, "x")], ScriptedModel(YES), concurrency=0),
    lambda: open_model("gemini:a b"),
    lambda: open_model("opnai:a"),
    lambda: open_model("openai:a?max_concurency=3"),
    lambda: load_rules("none.yaml"),
    lambda: Gate("door", rules=["secrets"], judge=3),
    lambda: run_again(["a"], ["a"]),
    lambda: run_again(["a", "b"], ["a", "b", "c"], before={"sample": 1}, sample=1, resume=True),
    lambda: list_approvals(status="closed"),
    export_twice,
    # Approvals
    lambda: ask_people(approvers=[]),
    lambda: ask_people(approvers="ana"),
    lambda: ask_people(approvers={"ana": 1}),
    lambda: ask_people(approvers=["ana", 7]),
    lambda: ask_people(approvers=["ana "]),
    lambda: ask_people(approvers=[f"n{at}" for at in range(101)]),
    lambda: ask_people(required=3),
    lambda: ask_people(required=0),
    lambda: ask_people(expires_in=0),
    lambda: ask_people(expires_in=1e30),
    lambda: ask_people(on_expiry="allow"),
    lambda: ask_people(message=" "),
    lambda: ask_people(message=7),
    lambda: ask_people(message="x" * 100_001),
    lambda: ask_people(about=None),
    lambda: ask_people(metadata="x"),
    lambda: ask_people(first=print),
    lambda: Approvals(7),  # type: ignore[arg-type]
    lambda: Approvals("sqlite:///a.db", keep_for=0),
    lambda: append_context("sqlite:///a.db"),
    lambda: Approvals("sqlite:///a.db", webhook="https://x"),  # type: ignore[arg-type]
    lambda: decide("eve", True),
    lambda: decide("ana", True, before=("ana", True)),
    lambda: decide("bob", True, before=("ana", False)),
    lambda: decide("ana", "yes"),
    lambda: decide(None, True),
    lambda: decide("ana", True, None),
    lambda: decide("ana", True, "x" * 10_001),
    lambda: decide("ana", True, of="x\x1by"),
    lambda: find_request(7),
    lambda: find_request("abc"),
    # Webhooks
    lambda: Webhook("ftp://example.org/", secret=SECRET),
    lambda: Webhook("https://h/", secret="short"),
    lambda: Webhook("https://h/", secret=None),  # type: ignore[arg-type]
    lambda: Webhook("https://h/", secret="whsec_!!!"),
    lambda: Webhook("https://h/", secret=SECRET, retries=-1),
    lambda: Webhook("https://h/", secret=SECRET, timeout=0),
    lambda: verify_webhook({}, "{}", SECRET),  # type: ignore[arg-type]
    # Middleware
    lambda: GateMiddleware(None, DOOR, on="both"),  # type: ignore[arg-type]
    lambda: GateMiddleware(None, DOOR, largest=0),  # type: ignore[arg-type]
    lambda: GateMiddleware(None, "door"),  # type: ignore[arg-type]
    # Rows of a data set
    lambda: read("[1]"),
    lambda: read("{}"),
    lambda: read('{"text": 1}'),
    lambda: read('{"content": null}'),
    lambda: read('{"content": 1, "labl": 1}'),
    lambda: read('{"content": 1, "role": "user"}'),
    lambda: read('{"content": 1, "label": "yes"}'),
    lambda: read('{"content": 1, "label": "failed"}'),
    lambda: read('{"content": 1, "label": "meh"}'),
    lambda: read('{"content": 1, "labels": [1]}'),
    lambda: read('{"content": 1, "id": true}'),
    lambda: read('{"content": 1, "id": ""}'),
    lambda: read('{"content": 1, "schema": "adjudge/case/2"}'),
    lambda: read('{"content": "caf\\ud800"}'),
    lambda: read('{"content": 1, "label": NaN}'),
    lambda: read('{"content": 1, "content": 2}'),
    lambda: read("", on_bad_row="ignore"),
    lambda: read("", fields={"content": 3}),
    lambda: open_dataset("gone.jsonl"),
    lambda: read("", "c.json.gz"),
    lambda: find_interval(6, 5),
    lambda: make_internal_rate([Heap(verdict="passed", cases=5, good=-1)]),
    lambda: make_internal_rate([Heap(verdict="passed", cases=5, good=6)]),
    lambda: make_internal_rate([Heap(verdict="pass", cases=5)]),
    lambda: make_internal_rate([Heap(verdict="passed", cases=5)], target="world"),
    # Details of results that nobody could decide
    lambda: ask_within(Budget(5, spent=2.5)),
    lambda: ask_within(Budget(5, per=60, spent=3)),
    lambda: ask_form(issues=[]),
    lambda: ask_form(passed=True),
    lambda: JudgeChain([OddJudge()]).ask_sync("Safe?").results[0],
    lambda: Judge(OddModel()).ask_sync("Safe?"),
    # What a decision, a verdict, a rule or a redecision says
    lambda: tell_first(passed(confidence=0.95)),
    lambda: tell_first(passed()),
    lambda: tell_first(passed(confidence=0.69)),
    lambda: tell_first(passed(confidence=1.0, decided_by="policy")),
    lambda: tell_first(failed(confidence=1.0)),
    lambda: tell_first(silent("split")),
    lambda: tell_first(silent("timeout")),
    lambda: tell_first(passed(), about=make_result("undecided", undecided_because="tampering")),
    lambda: tell_first(Slowly("passed", confidence=1.0), expires_in=0.01),
    lambda: ask("sqlite:///adjudge.db", Approvals.get, required=2).explain(),
    lambda: ask("sqlite:///adjudge.db", Approvals.get, result=make_result(detail="it promises a refund")).reason,
    lambda: resume(ApprovalAnswer(True, "ana", "fine")),
    lambda: resume(LedgerError("gone")),
    lambda: resume(ApprovalAnswer(True, "ana", "fine", subject="5" * 64)),
    lambda: resume(ApprovalAnswer(True, "ana", "fine", gate="other")),
    lambda: resume(ApprovalAnswer(True, "ana", "fine"), on_undecided="ask"),
    resume_unbound,
    resume_another,
    lambda: check(gate(Seat("passed"), on_undecided="ask", approvals=Desk()), "\x00").detail,
    lambda: reject_rules(ScriptedModel(reject(2)), 1, "a", "b"),
    lambda: reject_rules(ScriptedModel({"rejected": [{"index": 1}], "safe": False}), 1, "a"),
    lambda: reject_rules(ScriptedModel(reject(2)), 1, "Do it!", "do  it!", "Fine.", on_unsafe="drop_flagged"),
    lambda: reject_rules(
        chain(script(reject(2), reject(2), RuntimeError("down"))), 1, "a", "b", on_unsafe="drop_flagged"
    ),
    lambda: reject_rules(JudgeChain([Picky("passed")]), 1, "a"),
    lambda: refuse_arguments(ScriptedModel(threaten())),
    lambda: refuse_arguments(ScriptedModel(RuntimeError("down"))),
    lambda: probed(violated(1.0, "It wrote to the disk.")).detail,
    lambda: probed_with(lambda given: asyncio.sleep(5), tool_timeout=0.05).detail,
    lambda: many(by_output(a=1.0, b=0.2), "a", "b").explain(),
    change_payload,
    lambda: JudgeResult(**PASSED, score=0.9, threshold=0.7).explain(),
    lambda: JudgeResult(**UNDECIDED, detail="no answer within 3 s").explain(),
    lambda: compare_flipped().explain(),
    lambda: compare_flipped(on_conflict="undecided").explain(),
    lambda: repr(compare_flipped(on_conflict="undecided")),
    lambda: redecide_short(Told("x", HALF), Told("y", HALF), before="fallback", strategy="consensus"),
    lambda: redecide_short(
        Told("x", {"0": score(a=0.0, b=0.0)}), Never("y", {}), before="consensus", strategy="majority"
    ),
    lambda: redecide_short(Seat("failed", name="own"), Told("x", HALF), before="majority", threshold=0.1),
    lambda: rule_message({"contains": ["salt", "hash"]}, "hash"),
    lambda: rule_message({"not_contains": "key"}, "a key"),
    lambda: rule_message({"regex": "k.y", "absent": True}, "a key"),
    lambda: rule_message({"regex": "k.y"}, "none"),
    lambda: rule_message({"length": 3}, "abcd"),
    lambda: rule_message({"name": "length", "min": 2}, "a"),
    lambda: rule_message("personal_data", "ssn 123-45-6789"),
    lambda: rule_message({"name": "urls", "allow": ["ok.example"]}, "a\nb https://evil.example/x c"),
    lambda: rule_message("secrets", "The token is checked."),
    lambda: rule_message({"name": "urls", "allow": ["ok.example"]}, "No address."),
    lambda: rule_message(break_rule, "Hello"),
    lambda: errors({"a": [1, {"b": {1}}]}, {})[0],
    lambda: errors({"a": {"b": math.nan}}, {})[0],
    lambda: errors([[{1: 2}]], {})[0],
    lambda: errors([0] * 2000001, {})[0],
    lambda: keep_one(Dataset.of([Case(id="a", content="x")]).with_labels([Label(case="x", rater="ann", value=True)])),
    # Commands: options
    lambda: shell("judge good.txt --judge rules"),
    lambda: shell("judge good.txt --threshold 0.5 --judge rules"),
    lambda: shell("judge good.txt --rubric security --polite --judge rules"),
    lambda: shell("judge good.txt --polite --threshold 70 --judge rules"),
    lambda: shell("judge good.txt --polite --threshold -1 --judge rules"),
    lambda: shell("judge good.txt --polite --threshold nan --judge rules"),
    lambda: shell("judge good.txt --polite --threshold high --judge rules"),
    lambda: shell("judge good.txt --polite --timeout nan --judge rules"),
    lambda: shell("judge good.txt --polite --timeout 0 --judge rules"),
    lambda: shell("judge good.txt --polite --timeout -3 --judge rules"),
    lambda: shell("judge good.txt --polite --timeout inf --judge rules"),
    lambda: shell("judge good.txt --polite --timeout 5s --judge rules"),
    lambda: shell("judge good.txt --polite --quorum two --judge rules"),
    lambda: shell("judge good.txt --polite --concurrency 0 --judge rules"),
    lambda: shell("judge good.txt --polite --strategy best --judge rules"),
    lambda: shell("judge good.txt --polite --strategy hedged --hedge-after nan --judge rules"),
    lambda: shell("judge good.txt --polite --strategy quorum --judge rules"),
    lambda: shell("judge good.txt --polite --strategy quorum --quorum 3 --judge rules"),
    lambda: shell("judge good.txt --polite --quorum 1 --judge rules"),
    lambda: shell("judge good.txt --polite --strateg best --judge rules"),
    lambda: shell("judge good.txt --polite --zzz --judge rules"),
    lambda: shell("judge good.txt --polite --rule 3 --judge rules"),
    lambda: shell("judge good.txt --criteria ' ' --judge rules"),
    lambda: shell("judge good.txt --polite --polite --judge rules"),
    lambda: shell("judge rows.csv --judge WORDS --polite | grep rows", put_table),
    lambda: shell("judge good.txt --polite --threshold 0.5 --threshold 0.7 --judge rules"),
    lambda: shell("run good.jsonl --polite --sample 5 --sample=6 --judge rules"),
    # adjudge.toml
    lambda: shell("judge good.txt --polite --judge rules", configure("[judge.x]\n")),
    lambda: shell("judge good.txt --polite --judge rules", configure("x = 1\n")),
    lambda: shell("judge good.txt --polite --judge rules", configure("judges = 3\n")),
    lambda: shell("judge good.txt --polite --judge rules", configure("[defaults]\njuge = 'x'\n")),
    lambda: shell(
        "judge good.txt --polite --judge rules", configure("[defaults]\njudge = 'x'\n[judges.y]\nseats = ['rules']\n")
    ),
    lambda: shell("judge good.txt --polite --judge rules", configure("[defaults]\njudge = 3\n")),
    lambda: shell("judge good.txt --polite --judge rules", configure("[defaults]\ntimeout = nan\n")),
    lambda: shell("judge good.txt --polite --judge rules", configure("[judges.x]\n")),
    lambda: shell("judge good.txt --polite --judge rules", configure("[judges.x]\nseats = []\n")),
    lambda: shell("judge good.txt --polite --judge rules", configure("[judges]\nx = 3\n")),
    lambda: shell(
        "judge good.txt --polite --judge rules", configure("[judges.x]\nseats = ['rules']\nstrateg = 'fallback'\n")
    ),
    lambda: shell("judge good.txt --polite --judge rules", configure("[rubrics]\nx = 3\n")),
    lambda: shell(
        "judge good.txt --polite --judge x", configure("[judges.x]\nseats = ['y']\n[judges.y]\nseats = ['x']\n")
    ),
    lambda: shell(
        "judge good.txt --polite --judge x", configure("[judges.x]\nseats = ['yy']\n[judges.yyy]\nseats = ['rules']\n")
    ),
    lambda: shell(
        "judge good.txt --polite --judge x", configure("[judges.x]\nseats = ['openai:a']\nrequests_per_minute = -1\n")
    ),
    lambda: shell("gate check publish good.txt", configure("[gates]\npublish = 3\n")),
    lambda: shell("gate check publish good.txt", configure('[gates.publish]\nrubrik = "x"\n')),
    lambda: shell("gate check publish good.txt", configure("[gates.publish]\nrubric = 3\n")),
    lambda: shell("gate check publish good.txt", configure('[gates.publish]\nrules = ["json"]\nmode = "off"\n')),
    lambda: shell("gate check publish good.txt", configure('[gates.publsh]\nrules = ["json"]\n')),
    lambda: shell("gate check publish good.txt", configure("")),
    lambda: shell(
        "gate check publish good.txt",
        configure('[gates.publish]\nrules = ["json"]\nrequire_certificate = "c.json"\n'),
    ),
    lambda: shell("gate check publish good.txt --max-age 30d", configure('[gates.publish]\nrules = ["json"]\n')),
    lambda: shell("gate check publish good.txt --max-age soon", configure('[gates.publish]\nrules = ["json"]\n')),
    lambda: shell(
        "gate check publish good.txt",
        configure('[gates.publish]\nrules = ["json"]\nmode = "enforce_when_certified"\n'),
    ),
    lambda: shell("calls collect --out calls.csv"),
    lambda: shell("calls collect --out calls.jsonl", configure("")),
    lambda: shell("calls collect gone --out calls.jsonl --since 2026-11-20T12:00Z"),
    lambda: shell("calls rates gone"),
    lambda: shell("certify gone"),
    lambda: shell("certificate verify gone.json"),
    lambda: shell("certificate verify good.txt", put_files),
    # Judges, files and rubrics
    lambda: shell("judge good.txt --polite", put_configurations),
    lambda: shell("judge good.txt --polite --judge carefull", put_careful),
    lambda: shell("rubric list --config gone.toml", put_configurations),
    lambda: shell("rubric list --config folder", put_configurations),
    lambda: shell("rubric list --config binary.toml", put_configurations),
    lambda: shell("rubric list --config rubrics.toml --json", put_configurations),
    lambda: shell("dataset convert c.jsonl x.jsonl --on-bad-row no", put_configurations),
    lambda: shell("judge good.txt --polite --judge rules", put_configurations),
    lambda: shell("judge good.txt --polite --judge WORDS --record no/such/folder.jsonl", put_configurations),
    lambda: shell("judge good.txt --polite --judge python:gone:judge", put_configurations),
    lambda: shell("judge --polite --judge WORDS", put_files),
    lambda: shell("judge --polite --judge WORDS - -", put_files),
    lambda: shell("judge --polite --judge WORDS gone.txt", put_files),
    lambda: shell("judge --polite --judge WORDS folder", put_files),
    lambda: shell("judge --polite --judge WORDS hidden", put_files),
    lambda: shell("judge --polite --judge WORDS binary.bin", put_files),
    lambda: shell("judge --polite --judge WORDS latin.txt", put_files),
    lambda: shell("judge --polite --judge WORDS empty.txt", put_files),
    lambda: shell("judge --polite --judge WORDS none.jsonl", put_files),
    lambda: shell("judge --polite --judge WORDS gone.jsonl", put_files),
    lambda: shell("judge --polite --judge WORDS good.txt --reference gone.md", put_files),
    lambda: shell("judge --polite --judge WORDS good.txt --task folder", put_files),
    lambda: shell("judge --polite --judge WORDS {long}", put_files),
    lambda: shell("judge --polite --judge WORDS good.txt gone.txt folder latin.txt good.txt", put_files),
    lambda: shell("judge --polite --judge WORDS good.txt | grep passed", put_files),
    lambda: shell("judge good.txt --polite --judge ''"),
    lambda: shell("judge good.txt --polite --judge openai:"),
    lambda: shell("judge good.txt --polite --judge http://127.0.0.1/v1"),
    lambda: shell("judge good.txt --polite --judge 'http://h:99999/v1#m'"),
    lambda: shell("judge good.txt --polite --judge openai:m"),
    lambda: shell("judge good.txt --polite --judge gemini:m"),
    lambda: shell("judge good.txt --polite --judge llama:m.gguf"),
    lambda: shell("judge good.txt --polite --judge replay:gone.jsonl"),
    lambda: shell("judge good.txt --polite --judge python:f"),
    lambda: shell("judge good.txt --polite --judge python:ending_module:f", put_judges),
    lambda: shell("rubric check twice.yaml", put_rubrics),
    lambda: shell("rubric check percent.yaml", put_rubrics),
    lambda: shell("rubric check key.yaml", put_rubrics),
    lambda: shell("rubric check latin.yaml", put_rubrics),
    lambda: shell("rubric check folder/", put_rubrics),
    lambda: shell("rubric check gone.yaml", put_rubrics),
    lambda: shell("juge"),
    lambda: shell("rubric list extra"),
    lambda: shell("ledger verify a.db"),
    lambda: shell("rubric show"),
    lambda: shell("judge x --timeout"),
    lambda: shell("demo --jsn"),
    lambda: shell("doctor | grep judges:"),
    lambda: shell("doctor | grep 'hosts this'"),
    lambda: shell("doctor | grep planted"),
    # What is held back; {id} is the approval's
    lambda: shell("gate check publish bad.txt", hold_back),
    lambda: shell("approvals approve {id} --reason yes --seen {shown}", hold_back),
    lambda: shell("approvals approve {id} --reason yes --seen {shown}", hold_back_elsewhere),
    lambda: shell("gate check publish bad.txt", hold_back_unseen),
    lambda: shell("approvals show {id} | grep approve", hold_back_unseen),
    lambda: shell("approvals approve {id} --reason yes --seen {shown}", hold_back_unseen),
    lambda: shell("approvals deny {id} --reason no", hold_back),
    lambda: shell("approvals deny {id} --reason no | grep 'denied by'", hold_back),
    lambda: shell("gate resume {id} another.txt", hold_back),
    lambda: shell("approvals list --status closed", hold_back),
    lambda: shell("approvals wait {id} --timeout -1", hold_back),
    # Runs, ledgers, data sets, rules and the rest
    lambda: shell("diff was fewer --no-regressions --json", keep_runs),
    lambda: shell("diff was was --fail-under 90", keep_runs),
    lambda: shell("diff was was --json --markdown", keep_runs),
    lambda: shell("diff was other --no-regressions", keep_runs),
    lambda: shell("diff was fewer --pass-if-unclear", keep_runs),
    lambda: shell("diff was fewer --fail-if-worse --by judge --json", keep_runs),
    lambda: shell("redecide was", keep_runs),
    lambda: shell("redecide two --strategy consensus", keep_runs),
    lambda: shell("report nothing --fail-under 0", keep_runs),
    lambda: shell("run one.jsonl --polite --judge WORDS --out R", keep_runs),
    lambda: shell("run one.jsonl --polite --judge WORDS --out R --cache c", keep_runs),
    lambda: shell("diff many worse", keep_long_runs),
    lambda: shell("redecide many --threshold 0.9 | grep 'are shown'", keep_long_runs),
    lambda: shell("ledger verify --ledger a.db", keep_entries),
    lambda: shell("ledger erase 2 --reason 'asked for' --ledger a.db | grep erased", keep_entries),
    lambda: shell("forget"),
    lambda: shell("forget --subject abc --ledger a.db"),
    lambda: shell("forget --metadata customer --ledger a.db"),
    lambda: shell(f"forget --metadata customer={'x' * 1_001} --ledger a.db"),
    lambda: shell("forget --metadata customer=C-1"),
    lambda: shell("forget --metadata customer=C-1 --reason x"),
    lambda: shell("forget --metadata customer=C-1 --reason x --by ''"),
    lambda: shell("forget --metadata customer=C-1 --reason x --ledger a.db"),
    lambda: shell("forget --metadata customer=C-1 --reason x --run missing"),
    lambda: shell("forget --metadata customer=C-1 --reason x --cache missing"),
    lambda: shell("forget --metadata customer=C-1 --reason x --labels l.csv", put_label_table),
    lambda: shell("forget --metadata customer=C-1 --show 2 --ledger a.db", keep_entries),
    lambda: shell("forget --metadata customer=C-1 --reason x", configure('[forget]\nruns = "runs"\n')),
    lambda: shell("approvals list --ledger a.db", configure("[approvals]\nkeep_for = 0\n")),
    lambda: shell("forget --metadata customer=C-1 --reason x --labels missing"),
    lambda: shell("run one.jsonl --polite --judge WORDS --out was --resume", forget_a_case),
    lambda: shell("redecide was --threshold 0.9 | grep forget", forget_a_case),
    lambda: shell("gate resume {id} bad.txt", forget_held),
    lambda: shell("approvals wait {id} --timeout 1", forget_held),
    lambda: shell("ledger report --opinion adverse --by Ada --reason known --record --ledger a.db", keep_entries),
    lambda: shell("ledger list --last 1 --ledger a.db", keep_entries),
    lambda: shell("dataset convert answers.csv answers.csv", put_files),
    lambda: shell("dataset convert bad.jsonl out.jsonl --on-bad-row skip", put_files),
    lambda: shell("dataset check answers.csv | grep case", put_files),
    lambda: shell("rules check leak.txt --rule secrets | grep leak.txt", put_leak),
    lambda: shell("rules check leak.txt --rule '{length: 20, severity: warning}' | grep leak.txt", put_leak),
    lambda: shell("gate list", configure("")),
    lambda: shell("probe probes.yaml --command cat --judge WORDS", keep_probes),
    lambda: shell("doctor --offline", configure('[rubrics]\nlogin = "gone.yaml"\n')),
    lambda: shell("demo --out folder", put_demo),
    lambda: shell("doctor --offline", configure('[judges.a]\nseats = ["openai:m", "mistral:m"]\n')),
)
"""Calls that anybody can make, and commands; messages.json has what is said of each."""
