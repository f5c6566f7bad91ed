"""Write one of each file that a later version has to read, with the version that is installed.

    PYTHONPATH=tests python -m kit.upgrade_files FOLDER [ADDRESS OF A POSTGRESQL DATABASE]

Uses public names alone, and nothing that only a developer has, so that it also runs in an environment with nothing but
a wheel and its extras. ``expected.json`` says what the version that wrote the files reads in them
(``kit.upgrade_facts``). Ids, times and keys are new each time; what the files say is the same.

``tests/upgrade`` reads the files of every version that was released. CONTRIBUTING.md says when they are written.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from adjudge import (
    Approvals,
    Case,
    EmergentJudge,
    Gate,
    Judge,
    JudgeChain,
    Ledger,
    ReplyCache,
    ToolCandidate,
    ToolRegistry,
    ToolTest,
    UsageError,
    open_run,
    run,
)
from adjudge.agents import AgentCall, AgentRun, Step
from adjudge.dataset import Label, write_cases, write_labels
from adjudge.guards import Audit, ToolCall, ToolGuard, read_certificate, reset_monitor
from adjudge.judges import with_layers
from adjudge.labels import continue_plan, find_plan_status, make_plan, open_label_queue, write_plan
from adjudge.ledger import create_signing_key, derive_audit
from adjudge.measurement import calibrate, certify, read_release_policy, write_release_policy
from adjudge.models import RecordingModel, Reply, Request
from adjudge.server import add_account, create_key, make_permissions, revoke_key, rotate_key
from adjudge.testing import ScriptedModel, make_scripted_reply
from adjudge.tools import forge
from kit.upgrade_facts import describe_all

CONFIG = """\
[defaults]
judge = "careful"
rubric = "polite"
timeout = 20.0

[judges.careful]
seats = ["openai:gpt-6.1-terra", "anthropic:claude-haiku-5-5"]
strategy = "consensus"

[judges.cheap-first]
seats = ["http://127.0.0.1:8080/v1#qwen", "careful"]
strategy = "fallback"
timeout = 5.0

[rubrics]
polite = "polite.yaml"

[gates.letters]
rules = ["secrets", {name = "length", max = 40}]
on_failed = "ask"
ask = {approvers = ["ana", "ben"], required = 2}

[gates.answers]
rubric = "polite"
judge = "careful"
audit = {share = 0.02, promise = 0.05}
require_certificate = "certificate.json"
release_policy = "policy.json"
min_specificity = 0.5
max_age = "30d"

[gates.shell]
rules = [{not_contains = "curl"}]

[gates.deploys]
rules = [{regex = "^$"}]
on_rule = "ask"

[ledger]
url = "sqlite:///adjudge.db"
key = "ledger-key.pem"
store_content = "full"

[approvals]
approvers = ["ana"]
show_content = true
command = true

[hook]
tools = {"Bash" = "shell", "deploy" = "deploys"}
unchecked = ["Read"]

[server]
runs = "runs"
labels_per_case = 2
undo_seconds = 0.0

[agents.helper]
command = ["helper", "{prompt}"]
timeout = 60.0

[prices]
"openai:gpt-6.1-terra" = {input = 0.25, output = 2.0}

[forget]
runs = ["runs/*"]
recordings = ["recording.jsonl"]
"""

RUBRIC = """\
schema: adjudge/rubric/1
name: Polite
passing_threshold: 0.5
criteria:
  - name: polite
    description: It is good.
    levels: {0: rude, 0.6: dry, 1: kind}
"""

PROBES = """\
schema: adjudge/probes/1
thresholds: {low: 0.8}
contract: {description: Answers questions about returns., read_only: true, rules: [Names no customer.]}
probes:
  - {name: return period, input: {question: How long?}, expected: {text: You have 14 days.}}
"""

RULES = """\
schema: adjudge/rules/1
rules:
  - {name: length, max: 40}
  - {regex: refund, absent: true}
"""

WRITTEN = {"adjudge.toml": CONFIG, "polite.yaml": RUBRIC, "probes.yaml": PROBES, "rules.yaml": RULES}
"""The files that people write by hand."""

LONG = "Thank you for your order, which leaves our house tomorrow morning."
"""A letter that the gate ``letters`` puts before people."""

PASSWORD = "correct horse battery staple"

LARGE = 8_000
"""Bytes from which on a file is kept compressed."""

DUMP = "ledger.postgresql.sql"


class Grader:
    """A model that scores what says good, fair and bad, and reports a name of its own."""

    identity: ClassVar = {"address": "none"}
    name = "provider:grader"

    def __init__(self, reports: str = "grader-2026") -> None:
        self.reports = reports
        self.asked = 0

    async def complete(self, request: Request, /) -> Reply:
        self.asked += 1
        content = request.user.partition("<<content")[2]
        score = 1.0 if "good" in content else 0.6 if "fair" in content else 0.0
        answer = {"criteria": [{"name": "polite", "reasoning": "as it says", "score": score}]}
        return replace(make_scripted_reply(answer, request, self.name), model=self.reports)


def make_cases(number: int) -> list[Case]:
    """Cases that are good, fair and bad in turn."""
    words = ("bad", "good", "fair", "good")
    return [Case(id=f"case-{n}", content=f"a {words[n % 4]} text {n}", group=f"g-{n // 4}") for n in range(number)]


def is_good(case: str) -> bool:
    """Return what people say of a case: what is bad is, and of the fair ones every second."""
    number = int(case.removeprefix("case-"))
    return number % 4 in (1, 3) or number % 8 == 2


# ---------------------------------------------------------------- runs, labels and replies


async def make_runs(folder: Path) -> None:
    """A run that people labelled as planned, and one that was left at half."""
    rubric = folder / "polite.yaml"
    cases = make_cases(80)
    write_cases(folder / "letters.jsonl", cases)
    await run(cases, Judge(Grader(), name="grader"), rubric, out=folder / "runs" / "monday", concurrency=1)
    running = run(cases[:12], Judge(Grader(), name="grader"), rubric, out=folder / "runs" / "left", concurrency=1)
    async for item in running:
        if item.place >= 5:
            break
    await running


def label_run(place: Path) -> None:
    """Label what a plan draws, differ about some cases, and settle one of them."""
    with open_run(place) as found:
        plan = make_plan(found, within=0.12, seed=1, ignore_groups=True)
        write_plan(plan, place)
    with open_label_queue(place) as queue:
        while (task := queue.next("ann")) is not None:
            queue.record("ann", task.case, is_good(task.case), comment="as it says", subject=task.subject)
            if queue.progress("ann").mine >= len(plan.order):
                status = find_plan_status(plan, queue.labels())
                with open_run(place) as found:
                    further = continue_plan(plan, found, status)
                if further is plan:
                    break
                plan = further
                write_plan(plan, place)


def write_label_files(folder: Path) -> None:
    """The labels of a run in both forms of a label file."""
    with open_label_queue(folder / "runs" / "monday") as queue:
        labels = list(queue.labels())
    more = [
        Label(case="case-0", rater="ben", value=True, comment="It is short."),
        Label(case="case-0", rater="zoe", value=False, kind="adjudication"),
        Label(case="case-4", rater="ben", value="cannot_tell", blind=False),
    ]
    for name in ("labels.jsonl", "labels.csv"):
        write_labels(folder / name, [*labels, *more])


async def make_replies(folder: Path) -> None:
    """A recording and a cache, each with the replies to two contents."""
    recorded = Judge(RecordingModel(Grader(), folder / "recording.jsonl"))
    with ReplyCache(folder / "replies.sqlite") as cache:
        chain = JudgeChain([Judge(Grader(), name="a"), Judge(Grader(), name="b")], strategy="consensus")
        for content in ("a good text", "a bad text {{token}}"):
            for judge in (recorded, with_layers(chain, cache=cache)):
                await judge.evaluate(content, folder / "polite.yaml", task="Answer it.")


def write_agent_run(folder: Path) -> None:
    """An agent's run in our own form."""
    call = AgentCall(tool="Bash", arguments={"command": "ls backup"}, call_id="c1", result="a.tar")
    steps = [Step(role="user", text="What is in it?"), Step(role="assistant", call=call, turn=1)]
    made = AgentRun(steps=steps, answer="One archive: a.tar.", unknown=("files",))
    (folder / "agent-run.json").write_text(json.dumps(made.to_dict()), "utf-8")


# ---------------------------------------------------------------- the ledger


@dataclass(frozen=True, slots=True)
class Desk:
    """A ledger, those who are asked, and the folder of the files."""

    folder: Path
    ledger: Ledger
    approvals: Approvals

    def open_gate(self, name: str, **options: Any) -> Gate:
        """A gate that puts before ana what it does not pass."""
        members = {"ask": {"approvers": ["ana", "ben"]}, "show_content": True, "wait": False} | options
        return Gate(name, ledger=self.ledger, approvals=self.approvals, **members)

    def open_letters(self) -> Gate:
        """A gate with rules that are written as data."""
        return self.open_gate("notes", rules=[{"name": "length", "max": 40}], on_failed="ask")

    def open_certified(self) -> Gate:
        """A gate that observed until its judge was certified."""
        return self.open_gate(
            "certified",
            rubric=self.folder / "polite.yaml",
            judge=Judge(Grader(), name="grader"),
            audit=Audit(share=1e-9, promise=0.5),
            require_certificate=self.folder / "certificate.json",
            release_policy=self.folder / "policy.json",
            mode="enforce_when_certified",
        )

    def open_guard(self) -> ToolGuard:
        """A guard of an agent's calls: one tool asks people about every call, one is stopped by a word."""
        deletes = self.open_gate("deletes", rules=[{"regex": "^$"}], on_rule="ask")
        shell = self.open_gate("commands", rules=[{"not_contains": "curl"}])
        return ToolGuard({"delete_*": deletes, "Bash": shell, "Read": None}, most_denials=2)


@asynccontextmanager
async def open_desk(folder: Path, url: str) -> AsyncIterator[Desk]:
    """The ledger at an address, signed with the key of the folder."""
    ledger = Ledger(url, key=str(folder / "ledger-key.pem"), store_content="full")
    async with ledger, Approvals(ledger) as approvals:
        yield Desk(folder, ledger, approvals)


async def fill_ledger(desk: Desk) -> dict[str, str]:
    """Entries of every kind; returns the secrets that a later version needs: keys of the server."""
    ledger = desk.ledger
    await ledger.append({"previous": "elsewhere.db", "head": "2:" + "0" * 64}, kind="anchor")
    await ledger.append({"passed": 12, "failed": 1}, kind="run", execution="nightly")
    await judge_some(desk)
    await hold_some(desk)
    await guard_calls(desk)
    await audit_some(desk)
    await keep_tools(desk)
    return await make_keys(ledger)


async def judge_some(desk: Desk) -> None:
    """A result of a judge and of a chain; then one of them is erased."""
    ledger, rubric = desk.ledger, desk.folder / "polite.yaml"
    chain = JudgeChain([Judge(Grader(), name="a"), Judge(Grader(), name="b")], strategy="majority", name="panel")
    await ledger.append(await Judge(Grader(), name="grader").evaluate("a good text", rubric), content="a good text")
    await ledger.append(await chain.evaluate("a bad text", rubric, metadata={"case": 7}))
    gone = await ledger.append({"about": "somebody"}, kind="run")
    await ledger.erase(gone, reason="asked for by the person", by="dpo")


async def hold_some(desk: Desk) -> None:
    """Requests that were approved and used, approved and not used, denied, commented, and never answered."""
    gate, approvals = desk.open_letters(), desk.approvals
    held = [await gate.check(f"{LONG} {n}", task="Confirm it.", metadata={"customer": f"c-{n}"}) for n in range(5)]
    used, unused, denied, doubted, _ = [decision.approval_id for decision in held]
    await approvals.decide(used, "ana", True, "we agreed so")
    await gate.resume(used)
    await approvals.decide(unused, "ben", True, "it is right")
    await approvals.decide(denied, "ana", False, "it promises a day", answer="Name no day.")
    await gate.resume(denied)
    await approvals.comment(doubted, "ben", "Who wrote this?")
    await approvals.decide(doubted, "ana", True, "looks right", undo_seconds=300)
    await approvals.withdraw(doubted, "ana")


async def guard_calls(desk: Desk) -> None:
    """Calls that were made as they were let pass, and otherwise; that wait; and a run that was stopped and reopened."""
    guard = desk.open_guard()
    made = ToolCall("Bash", {"command": "ls"}, "c-1", "session-1")
    await guard.record_pass(made, await guard.check(made))
    await guard.record_run(made)
    await guard.record_run(ToolCall("Bash", {"command": "ls -l"}, "c-2", "session-2"))
    await guard.reopen("session-2", by="ana", reason="another hook was at fault")
    await guard.check(HELD_CALL)
    approved = replace(HELD_CALL, call_id="c-4", arguments={"path": "/srv/may-have-run"})
    await desk.approvals.decide((await guard.check(approved)).approval_id, "ana", True, "it is old")
    await guard.check(approved)
    denied = replace(HELD_CALL, call_id="c-5", run_id="session-4")
    await desk.approvals.decide((await guard.check(denied)).approval_id, "ana", False)
    await guard.check(denied)


HELD_CALL = ToolCall("delete_file", {"path": "/srv/old.db"}, "c-3", "session-3")
"""A call that people have not decided about."""


async def audit_some(desk: Desk) -> None:
    """Audits that are open, answered, made up and put to nobody; a model that changed; a monitor that began anew."""

    async def check(content: str, reports: str = "grader-2026", **more: Any) -> Gate:
        judge = Judge(Grader(reports), name="grader")
        gate = desk.open_gate("audited", rubric=desk.folder / "polite.yaml", judge=judge, audit=everything, **more)
        await gate.check(content)
        return gate

    def redact(value: object) -> object:
        redacted.append(value)
        if len(redacted) > 1:
            raise ValueError("it cannot be shown")
        return value

    redacted: list[object] = []
    everything = Audit(share=1.0, promise=0.1)
    gate = await check("a good text that is answered")
    await check("a good text of another model", "grader-2027")
    await check("a good text that cannot be shown", redact=redact)
    await gate.plant("made up", by="ana", reason="do people look?")
    for audit in (await desk.approvals.list(audits=True))[:2]:
        await desk.approvals.decide(audit.id, "ana", "another" in str(audit.content), "read it")
    await reset_monitor(desk.ledger, "audited", by="ana", reason="measured again")
    await check("a good text that waits")


async def keep_tools(desk: Desk) -> None:
    """A forged tool that rose a tier, and one that was demoted."""
    approval = {
        "safety": {"passed": True, "concerns": []},
        "correctness": {"passed": True, "failedTests": []},
        "determinism": {"likely": True, "reasoning": "no clock"},
        "bounded": {"likely": True, "reasoning": "no loop"},
        "reasoning": "It adds.",
        "confidence": 0.9,
        "approved": True,
    }
    review = {"reasoning": "so", "confidence": 0.9, "approved": True}
    judge = EmergentJudge(ScriptedModel(approval, name="creation"), ScriptedModel(review, name="panel"))
    async with ToolRegistry(desk.ledger) as registry:
        for name in ("add", "plus"):
            made = ToolCandidate(
                name=name,
                description="Adds two numbers.",
                input_schema={"type": "object"},
                output_schema={"type": "object", "required": ["sum"]},
                source=f"function {name}(input) {{ return {{sum: input.a + input.b}} }}",
                mode="sandbox",
                tests=(ToolTest(input={"a": 1, "b": 2}, output={"sum": 3}, success=True),),
            )
            forged = await forge(made, judge, registry, agent="ana", session="s1", allow_sandbox=True)
            assert forged.tool is not None
            for _ in range(5):
                await registry.record_use(forged.tool.id, True, 1.0)
            await registry.promote(forged.tool.id, judge, to="agent")
        await registry.demote(forged.tool.id, "it is the same as add", by="ana")


async def make_keys(ledger: Ledger) -> dict[str, str]:
    """Keys and accounts of the server; returns the text of the keys that are valid."""
    caller = make_permissions(["judge", "read"])
    key, first = await create_key(ledger, name="website", permissions=caller, by="system:ana")
    _, second = await rotate_key(ledger, key.prefix, by="system:ana")
    gone, _ = await create_key(ledger, name="gone", permissions=caller)
    await revoke_key(ledger, gone.prefix)
    _, hook = await create_key(ledger, name="laptop", permissions=make_permissions(["hook"]))
    _, voter = await create_key(ledger, name="ana", permissions=make_permissions(["approve", "read"], approver="ana"))
    _, other = await create_key(ledger, name="ben", permissions=make_permissions(["approve", "read"], approver="ben"))
    person = make_permissions(["approve", "read", "label"], approver="cy", rater="cy")
    await add_account(ledger, name="cy", password=PASSWORD, permissions=person)
    return {"rotated": first, "website": second, "laptop": hook, "ana": voter, "ben": other}


# ---------------------------------------------------------------- all of them


async def make_all(folder: Path, url: str | None = None) -> None:
    """Write every file into a new folder, and a second ledger to another address."""
    (folder / "runs").mkdir(parents=True)
    for name, text in WRITTEN.items():
        (folder / name).write_text(text, "utf-8", newline="\n")
    create_signing_key(folder / "ledger-key.pem")
    await make_runs(folder)
    await make_replies(folder)
    write_agent_run(folder)
    await asyncio.to_thread(measure, folder)
    address = f"sqlite:///{folder / 'adjudge.db'}"
    secrets = {"sqlite": await make_ledger(folder, address)}
    async with Ledger(address, key=str(folder / "ledger-key.pem")) as ledger:
        await ledger.export(folder / "ledger.jsonl")
        (folder / "audit.json").write_text(json.dumps((await derive_audit(ledger)).to_dict()), "utf-8")
    if url is not None:
        secrets["postgresql"] = await make_ledger(folder, url)
    (folder / "server-keys.json").write_text(json.dumps(secrets, indent=1) + "\n", "utf-8")


def measure(folder: Path) -> None:
    """Label a run, and write its release policy."""
    monday = folder / "runs" / "monday"
    cases = [case.id for case in make_cases(80)]
    labels = [Label(case=case, rater="ann", value=is_good(case)) for case in cases]
    calibration = calibrate(monday, "wrong_pass<=0.2", labels=labels)
    assert calibration.policy is not None, calibration
    write_release_policy(calibration.policy, folder / "policy.json")
    label_run(monday)
    write_label_files(folder)


async def make_ledger(folder: Path, url: str) -> dict[str, str]:
    """Fill the ledger at an address, with the certificate of the run that people labelled."""
    async with open_desk(folder, url) as desk:
        out = folder / "certificate.json"
        try:
            await desk.ledger.append(read_certificate(out), kind="certificate")
        except UsageError:  # the first ledger makes it
            monday = folder / "runs" / "monday"
            await certify(monday, ledger=desk.ledger, release_policy=folder / "policy.json", out=out)
        await desk.ledger.append(read_release_policy(folder / "policy.json"), kind="calibration")
        await desk.open_certified().check("a good text")
        return await fill_ledger(desk)


def dump_postgresql(url: str) -> str:
    """The statements that make the tables of a PostgreSQL database and fill them, as ``pg_dump`` writes them."""
    options = ("--inserts", "--no-owner", "--no-privileges", "--no-comments")
    command = ["pg_dump", *options, url.replace("+psycopg", "")]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    # Without what psql alone understands, and with the tables in whatever schema reads them.
    statements = text[text.index("CREATE ") :].partition("\n\\unrestrict")[0]
    return statements.replace("public.adjudge_", "adjudge_") + "\n"


def pack(folder: Path) -> None:
    """Compress the large files of a folder, the same bytes for the same content."""
    for lock in folder.rglob("*.lock"):
        lock.unlink()
    for file in [file for file in folder.rglob("*") if file.is_file() and file.stat().st_size > LARGE]:
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes(), 9, mtime=0))
        file.unlink()


def unpack(folder: Path, target: Path) -> Path:
    """Copy a folder of files to a new place, each as it was written."""
    shutil.copytree(folder, target)
    for file in list(target.rglob("*.gz")):
        plain = file.with_suffix("")
        plain.write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    for file in target.rglob("*"):
        file.chmod(0o700 if file.is_dir() else 0o600)
    return target


def read_expected(folder: Path) -> Mapping[str, Any]:
    """Read what the version that wrote the files reads in them."""
    expected: dict[str, Any] = json.loads((folder / "expected.json").read_text("utf-8"))
    return expected


def main(folder: str, url: str | None = None) -> None:
    """Write the files, what they say, and of a PostgreSQL database its statements."""
    place = Path(folder)
    asyncio.run(make_all(place, url))
    (place / "expected.json").write_text(json.dumps(describe_all(place, url), indent=0) + "\n", "utf-8")
    if url is not None:
        (place / DUMP).write_text(dump_postgresql(url), "utf-8")
    pack(place)


if __name__ == "__main__":
    main(*sys.argv[1:])
