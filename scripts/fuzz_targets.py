"""The inputs of scripts/fuzz: real examples, the damage to them, their readers, and what a reader may not do.

Examples are those of the tests: transcripts, events of coding agents, conformance cases, and the files that a released
version wrote. A JSON example is changed in its structure (members taken away, swapped, repeated, replaced by what a
reader may not expect) and then in its bytes, any other one in its bytes and lines.
"""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import os
import re
import sqlite3
import tempfile
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st

from adjudge import (
    AdjudgeError,
    Approvals,
    EmergentJudge,
    Gate,
    InputFirewall,
    Judge,
    Ledger,
    PromptFirewall,
    ReplyError,
    SemanticProbe,
    ToolRegistry,
    compare,
    evaluate_probe,
    load_rubric,
    load_rules,
    open_dataset,
    open_run,
)
from adjudge.agents import read_run
from adjudge.config.file import read_config
from adjudge.config.hook import read_hook_settings
from adjudge.config.server import read_server
from adjudge.dataset import load_labels
from adjudge.guards import ToolGuard, find_signature_problem, load_probes, parse_certificate
from adjudge.harness.events import HARNESSES, CallEvent, read_event
from adjudge.harness.hook_guard import HookGuard
from adjudge.labels import load_looks, load_plan, open_label_queue
from adjudge.ledger import read_audit, verify_export
from adjudge.measurement import read_release_policy
from adjudge.models import ReplayModel, Reply, Request
from adjudge.question import READERS, ReadOptions
from adjudge.report import make_report
from adjudge.rules import as_rule
from adjudge.runs import redecide
from kit.house import TESTS
from kit.tools import approval, candidate, review
from kit.upgrade_files import LONG, open_desk, unpack

Form = Literal["json", "lines", "text", "bytes"]
"""The form in which an example is damaged: as one JSON document, as lines of them, as text with lines, or as bytes
alone."""

HOSTILE: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 1.0, 1e308, -1e-300, 10**17, 10**400, float("nan"), float("inf"), "", " ", "1",
    "true", "null", "\x00", "\ud800", "\u202e", "\u0131", "x" * 3_000, "../../etc/passwd", "2026-11-28T00:00:00Z",
    "9999-99-99", [], {}, [[]], [None], {"": None}, {"schema": "adjudge/result/99"}, [[[[[[[[]]]]]]]],
)  # fmt: skip
"""Values that a reader may not expect where they stand."""

TOKENS = (
    b"{", b"}", b"[", b"]", b'"', b",", b":", b"\\", b"\n", b"\r\n", b"\x00", b"\xff", b"\xef\xbb\xbf", b"```", b"NaN",
    b"1e999",
    b"-", b"{{token}}", b"[[A]]", b"Rating: [[10]]", b'"score": 1.0,', b'"passed": true,', b"<<end content", b"\x1b[2J",
)  # fmt: skip
"""Bytes that are put into an example."""

MOST_PLACES = 300
"""Places of a document that may be changed: of a long one the first."""


class WrongPass(Exception):
    """A reader let through what nothing in its input justifies."""


def expect(holds: object, message: str) -> None:
    """Raise ``WrongPass`` unless something holds."""
    if not holds:
        raise WrongPass(message)


@dataclass(frozen=True, slots=True)
class Target:
    """One reader, with the examples that it is fed."""

    name: str
    form: Form
    examples: Sequence[bytes]
    read: Callable[[bytes], None]
    """Reads an input; raises ``WrongPass`` for a pass that nothing justifies."""
    structured: bool = True
    """True if the structure of a JSON example is changed before its bytes."""

    def draw(self, data: st.DataObject) -> bytes:
        """Draw an example, and damage it."""
        raw = data.draw(st.sampled_from(self.examples))
        if self.form == "json" and self.structured:
            raw = damage_document(data, raw)
        elif self.form == "lines":
            raw = damage_lines(data, raw)
        elif self.form == "text":
            raw = damage_text(data, raw)
        return damage_bytes(data, raw, least=int(self.form == "bytes"))

    def feed(self, raw: bytes) -> None:
        """Have an input read; whatever adjudge refuses on purpose is as it should be."""
        with suppress(AdjudgeError):
            self.read(raw)


# ---------------------------------------------------------------- damage


def list_places(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places in a document, each as the names and numbers that lead there."""
    yield here
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, child in children:
        yield from list_places(child, (*here, name))


def find_at(value: Any, place: Iterable[Any]) -> Any:
    """The value at a place."""
    for name in place:
        value = value[name]
    return value


def damage_document(data: st.DataObject, raw: bytes) -> bytes:
    """Change the structure of a JSON document in one to four places."""
    document = json.loads(raw)
    for _ in range(data.draw(st.integers(0, 4))):
        places = [place for place, _ in zip(list_places(document), range(MOST_PLACES), strict=False)]
        document = change_at(data, document, data.draw(st.sampled_from(places)), places)
    return json.dumps(document).encode()


def change_at(data: st.DataObject, document: Any, place: tuple[Any, ...], places: Sequence[Any]) -> Any:
    """Change a document at one place."""
    change = data.draw(st.sampled_from(("replace", "copy", "remove", "rename", "repeat", "wrap", "write")))
    if not place or change == "replace":
        return put_at(document, place, copy.deepcopy(data.draw(st.sampled_from(HOSTILE))))
    holder, name = find_at(document, place[:-1]), place[-1]
    if change == "copy":
        return put_at(document, place, copy.deepcopy(find_at(document, data.draw(st.sampled_from(places)))))
    if change == "remove":
        del holder[name]
    elif change == "rename" and isinstance(holder, dict):
        other = data.draw(st.sampled_from(("", "x", str(name).upper(), f"{name} ", "schema", "passed")))
        holder[other] = holder.pop(name)
    elif change == "repeat" and isinstance(holder, list):
        holder[name:name] = [holder[name]] * data.draw(st.sampled_from((1, 2, 200)))
    elif change == "wrap":
        holder[name] = data.draw(st.sampled_from(([holder[name]], {"": holder[name]}, str(holder[name])[:2_000])))
    else:
        holder[name] = data.draw(st.text(max_size=20) | st.floats() | st.integers())
    return document


def put_at(document: Any, place: Sequence[Any], value: Any) -> Any:
    """Put a value at a place of a document, and return the document."""
    if not place:
        return value
    find_at(document, place[:-1])[place[-1]] = value
    return document


def damage_lines(data: st.DataObject, raw: bytes) -> bytes:
    """Change some of the documents of a file of lines, and the order and number of its lines."""
    lines = raw.splitlines()
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, max(0, len(lines) - 1)))
        change = data.draw(st.sampled_from(("document", "document", "remove", "repeat", "swap")))
        if not lines:
            break
        if change == "document":
            with suppress(ValueError):
                lines[at] = damage_document(data, lines[at])
        elif change == "remove":
            del lines[at]
        elif change == "repeat":
            lines.insert(at, lines[at])
        else:
            lines[at], lines[0] = lines[0], lines[at]
    return b"\n".join(lines) + data.draw(st.sampled_from((b"\n", b"")))


def damage_text(data: st.DataObject, raw: bytes) -> bytes:
    """Change the lines of a text, and the values in them."""
    lines = raw.split(b"\n")
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, max(0, len(lines) - 1)))
        change = data.draw(st.sampled_from(("value", "value", "remove", "repeat", "swap", "indent")))
        if not lines:
            break
        if change == "value":
            value = json.dumps(data.draw(st.sampled_from(HOSTILE))).encode()
            head, mark, _ = (
                re.split(rb"([=:] *)", lines[at], maxsplit=1) if re.search(b"[=:]", lines[at]) else (b"",) * 3
            )
            lines[at] = head + mark + value
        elif change == "remove":
            del lines[at]
        elif change == "repeat":
            lines.insert(at, lines[at])
        elif change == "swap":
            lines[at], lines[0] = lines[0], lines[at]
        else:
            lines[at] = b"  " + lines[at]
    return b"\n".join(lines)


def damage_bytes(data: st.DataObject, raw: bytes, *, least: int = 0) -> bytes:
    """Cut, repeat, overwrite and insert some bytes."""
    for _ in range(data.draw(st.integers(least, 3))):
        at = data.draw(st.integers(0, len(raw)))
        length = data.draw(st.integers(0, 40))
        change = data.draw(st.sampled_from(("cut", "repeat", "insert", "end", "overwrite", "move")))
        if change == "cut":
            raw = raw[:at] + raw[at + length :]
        elif change == "repeat":
            raw = raw[:at] + raw[at : at + length] * 2 + raw[at + length :]
        elif change == "insert":
            raw = raw[:at] + data.draw(st.sampled_from(TOKENS)) + raw[at:]
        elif change == "end":
            raw = raw[:at]
        elif change == "overwrite":
            raw = raw[:at] + data.draw(st.binary(min_size=1, max_size=8)) + raw[at + 1 :]
        else:
            raw = raw[at : at + length] + raw[:at] + raw[at + length :]
    return raw


# ---------------------------------------------------------------- replies of judges

RUBRIC = {"name": "Two", "criteria": [{"name": "right", "description": "R."}, {"name": "kind", "description": "K."}]}

VERDICT = {
    "token": "{{token}}",
    "criteria": [{"name": "right", "reasoning": "r", "score": 0.0}, {"name": "kind", "reasoning": "k", "score": 0.2}],
    "reasoning": "it is wrong",
    "suggestions": ["begin anew"],
}


def write_replies(*objects: Any) -> list[bytes]:
    """Replies that hold these objects, as models write them: alone, in a fence, after prose."""
    texts = [json.dumps(value) for value in objects]
    shapes = ("{}", "```json\n{}\n```", "I looked at it.\n\n{}\n\nThat is all.")
    return [shape.replace("{}", text, 1).encode() for text in texts for shape in shapes]


class Conversation:
    """A judge whose model replies with the input, asked everything that a judge can be asked."""

    name = "fuzzed"

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.reply = ""
        self.judge = Judge(self, reask=0)

    async def complete(self, request: Request, /) -> Reply:
        """Reply with the input; the token stands where the input has its place."""
        return Reply(text=self.reply.replace("{{token}}", request.token or ""))

    def answer(self, raw: bytes, ask: Callable[[Judge], Awaitable[Any]]) -> Any:
        """Return what a question comes to when the model replies with the input."""
        self.reply = raw.decode("utf-8", "replace")
        return self.loop.run_until_complete(ask(self.judge))

    def read_verdict(self, raw: bytes) -> None:
        """Read a reply to a rubric: a pass is one that a strict reader finds too."""
        result = self.answer(raw, lambda judge: judge.evaluate("The content.", RUBRIC))
        expect(not result.passed or is_justified(self.reply), f"passed: {result.explain()}")

    def read_tokens(self, ask: Callable[[Judge], Awaitable[Any]], is_pass: Callable[[Any], bool]) -> Any:
        """A reader of replies to one kind of question: without the token nothing passes."""

        def read(raw: bytes) -> None:
            answered = self.answer(raw, ask)
            expect("{{token}}" in self.reply or not is_pass(answered), f"passed without the token: {answered}")

        return read


def is_justified(reply: str) -> bool:
    """Return True if a strict reader, which is not ours, finds one object in a reply that passes both criteria."""

    def refuse_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len({name for name, _ in pairs}) < len(pairs):
            raise ValueError("a member stands there twice")
        return dict(pairs)

    begin, end = reply.find("{"), reply.rfind("}")
    # The token in braces is no JSON by itself; a model writes eight letters there.
    text = reply[begin : end + 1]
    try:
        found = json.loads(text, object_pairs_hook=refuse_repeated)
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or found.get("token") != "{{token}}":
        return False
    entries = found.get("criteria")
    if isinstance(entries, dict):
        entries = [{"name": name, **entry} for name, entry in entries.items() if isinstance(entry, dict)]
    scores = {
        entry["name"]: entry.get("score")
        for entry in entries or ()
        if isinstance(entry, dict) and isinstance(entry.get("name"), str)
    }
    numbers = [scores.get(name) for name in ("right", "kind")]
    return all(isinstance(n, int | float) and not isinstance(n, bool) and 0 <= n <= 1 for n in numbers) and (
        sum(numbers) / 2 >= 0.7  # type: ignore[arg-type] - numbers, as the line above says
    )


PROBE = SemanticProbe(name="p", input={"q": 1}, expected={"a": 1})


def make_reply_targets(conversation: Conversation) -> Iterator[Target]:
    """Every kind of question."""
    yield Target("reply", "text", write_replies(VERDICT), conversation.read_verdict)
    yield Target("reply.object", "json", [json.dumps(VERDICT).encode()], conversation.read_verdict)
    token = {"token": "{{token}}"}
    unsafe = {**token, "safe": False, "rejected": [{"index": 1, "reason": "r"}]}
    threat = {**token, "safe": False, "threats": [{"field": "path", "type": "path_traversal", "reason": "r"}]}
    probe = {**token, "similarityScore": 0.1, "contractViolated": True, "violations": ["v"], "reasoning": "r"}
    no = {**token, **approval(approved=False)}
    questions: Mapping[str, tuple[Any, Callable[[Judge], Awaitable[Any]], Callable[[Any], bool]]] = {
        "pair": ({**token, "reasoning": "r", "preferred": "tie"},
                 lambda judge: compare("a", "b", judge=judge, criteria="Is clear."),
                 lambda found: found.preferred is not None),
        "prompt_firewall": (unsafe, lambda judge: PromptFirewall(judge).check(["Be kind.", "Be brief."]),
                            lambda found: bool(found.allowed)),
        "input_firewall": (threat, lambda judge: InputFirewall(judge).check({"path": "../a"}),
                           lambda found: found.passed),
        "probe": (probe, lambda judge: evaluate_probe(PROBE, judge, actual={"a": 2}),
                  lambda found: found.outcome == "passed"),
        "creation": (no, lambda judge: EmergentJudge(judge).review_creation(candidate()),
                     lambda found: found.approved),
        "promotion": ({**token, **review(approved=False)},
                      lambda judge: EmergentJudge(judge, judge).review_creation(candidate()),
                      lambda found: found.approved),
    }  # fmt: skip
    for name, (example, ask, is_pass) in questions.items():
        yield Target(f"reply.{name}", "json", [json.dumps(example).encode()], conversation.read_tokens(ask, is_pass))


STYLES: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "[[A]]": ("It is vague. [[B]]", ()),
    "[[A>B]]": ("Verdict: [[B>A]]", ()),
    "Rating: [[7]]": ("It works.\n\nRating: [[2]]", ()),
    "Rating: 7": ("Rating: 1\nRationale: It ends in 1984.", ()),
    "Output (a)": ("Output (b)", ()),
    "Output (a) is better": ("Therefore, Output (b) is better.", ()),
    "GRADE: C": ("It says the same.\n\nGRADE: I", ()),
    "label": (" refusal\n", ("refusal", "answer")),
    "name": ("tea", ("tea", "Tea")),
    "json score": ('Here:\n```json\n{"rating": 2.5}\n```\nAnything else?', ()),
    "json winner": ('{"winner": "B"}', ()),
    "ordered_models": ('{"ordered_models": [{"model": "b", "rank": 1}, {"model": "a", "rank": 2}]}', ("a", "b")),
}
"""A reply in the style of each reader, with the labels that are offered."""


def make_reader_targets() -> Iterator[Target]:
    """Replies in the styles of other tools' judges."""
    for name, reader in READERS.items():
        text, labels = STYLES.get(name, ("Yes", ()))
        options = ReadOptions(labels=labels)

        def read(raw: bytes, reader: Any = reader, options: ReadOptions = options) -> None:
            with suppress(ReplyError):
                found = reader.read(raw.decode("utf-8", "replace"), options)
                expect(isinstance(found, str | float | int), f"read {found!r}")

        yield Target(f"reader.{name}", "text", [text.encode()], read)


# ---------------------------------------------------------------- files


MONDAY = "runs/monday"
"""The run that people labelled."""


class Files:
    """The files that a released version wrote, in a folder where each input takes the place of one."""

    def __init__(self, folder: Path, loop: asyncio.AbstractEventLoop) -> None:
        self.folder, self.loop = folder, loop
        self.head = json.loads((folder / "expected.json").read_text("utf-8"))["ledgers"]["sqlite"]["head"]
        self.address, self.key = f"sqlite:///{folder / 'adjudge.db'}", str(folder / "ledger-key.pem")
        self.request = self.find_request()
        self.exported = (folder / "ledger.jsonl").read_bytes()
        self.certificate = (folder / "certificate.json").read_bytes()
        self.public_key = parse_certificate(self.certificate).public_key or ""

    def find_request(self) -> str:
        """The id of a request that nobody has decided, of a gate whose rules are data."""

        async def find() -> str:
            async with Ledger(self.address, key=self.key) as ledger, Approvals(ledger) as approvals:
                return next(item.id for item in await approvals.list() if item.content == f"{LONG} 4")

        return self.loop.run_until_complete(find())

    def make(self, name: str, form: Form, read: Callable[[Path], Any], *, structured: bool = True) -> Target:
        """A target of one file, which is put back afterwards."""
        path = self.folder / name
        example = path.read_bytes()

        def feed(raw: bytes) -> None:
            try:
                for beside in path.parent.glob(f"{path.name}-*"):  # what a database leaves beside it
                    beside.unlink()
                path.write_bytes(raw)
                read(path)
            finally:
                path.write_bytes(example)

        return Target(f"file.{name}", form, [example], feed, structured)

    def make_row(self, name: str, table: str, column: str, read: Callable[[], Any], where: str = "TRUE") -> Target:
        """A target of one value in a database, which is put back afterwards."""
        path = self.folder / name
        with closing(sqlite3.connect(path)) as connection:
            row, value = connection.execute(f"SELECT rowid, {column} FROM {table} WHERE {where}").fetchone()  # noqa: S608

        def put(written: bytes | str) -> None:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (written, row))  # noqa: S608

        def feed(raw: bytes) -> None:
            try:
                put(raw if isinstance(value, bytes) else raw.decode("utf-8", "replace"))
                read()
            finally:
                put(value)

        example = value if isinstance(value, bytes) else value.encode()
        return Target(f"row.{name}.{table}.{read.__name__.strip('<>')}", "json", [example], feed)

    def read_replies(self) -> None:
        """Decide the labelled run once more from the replies that it kept."""
        with open_run(self.folder / MONDAY) as opened:
            redecide(opened, rubric=self.folder / "polite.yaml")

    def read_requests(self) -> None:
        """List requests and pending decisions, and look who waits."""

        async def read() -> None:
            async with Ledger(self.address, key=self.key) as ledger, Approvals(ledger) as approvals:
                for work in (
                    approvals.list(status=None),
                    approvals.list_pending(status=None),
                    approvals.summarise([self.request]),
                    approvals.find_gaps(self.request),
                ):
                    with suppress(AdjudgeError):
                        await work

        self.loop.run_until_complete(read())

    def resume(self) -> None:
        """Go on with what nobody has approved, whatever the tables beside the ledger say of it."""

        async def read() -> bool:
            async with open_desk(self.folder, self.address) as desk, asyncio.timeout(2.0):
                return (await desk.open_letters().resume(self.request)).allowed

        try:
            allowed = self.loop.run_until_complete(read())
        except TimeoutError:  # it waits for people
            return
        expect(not allowed, "a request that nobody approved was let through")

    def read_tools(self) -> None:
        """List the forged tools, and look which may run."""

        async def read() -> None:
            async with Ledger(self.address, key=self.key) as ledger, ToolRegistry(ledger) as registry:
                await registry.list()
                await registry.usable(agent="ana", session="s1")

        self.loop.run_until_complete(read())

    def list_rows(self) -> Iterator[Target]:
        """List what the databases hold as JSON, changed behind their back."""
        store, request = f"{MONDAY}/results.sqlite", f"id = '{self.request}'"
        yield self.make_row(store, "results", "body", lambda: self.read_run(self.folder))
        yield self.make_row(store, "cases", "body", lambda: self.read_run(self.folder))
        yield self.make_row(store, "replies", "body", self.read_replies)
        yield self.make_row("adjudge.db", "adjudge_approvals", "body", self.read_requests, request)
        yield self.make_row("adjudge.db", "adjudge_pending", "decision", self.read_requests)
        yield self.make_row("adjudge.db", "adjudge_tools", "body", self.read_tools)
        with closing(sqlite3.connect(self.folder / "adjudge.db")) as connection, connection:
            # As somebody would who wants it through: the tables say that it was approved, and the ledger does not.
            (body,) = connection.execute(f"SELECT body FROM adjudge_approvals WHERE {request}").fetchone()  # noqa: S608
            forged = json.loads(body) | {"status": "approved", "decided_by": "human", "closed_by": ["ana"]}
            statement = "UPDATE adjudge_approvals SET status = 'approved', body = ? WHERE id = ?"
            connection.execute(statement, (json.dumps(forged), self.request))
        yield self.make_row("adjudge.db", "adjudge_approvals", "body", self.resume, request)
        pending = f"approval = '{self.request}'"
        yield self.make_row("adjudge.db", "adjudge_pending", "decision", self.resume, pending)

    def read_run(self, _: Path) -> None:
        """Read everything of the labelled run, whichever of its files is damaged."""
        with open_run(self.folder / MONDAY) as opened:
            list(opened.items())
            make_report(opened)
            load_plan(opened)
            load_looks(self.folder / MONDAY)

    def read_queue(self, _: Path) -> None:
        """Read the labels of a run, and go on labelling."""
        with open_label_queue(self.folder / MONDAY) as queue:
            list(queue.labels())
            queue.truths()
            queue.next("ben")

    def read_ledger(self, path: Path) -> None:
        """Verify a ledger and search in it."""

        async def read() -> None:
            async with Ledger(f"sqlite:///{path}") as ledger:
                await ledger.verify()
                [entry async for entry in ledger.query(outcome="failed")]

        self.loop.run_until_complete(read())

    def read_export(self, path: Path) -> None:
        """Verify an export with its head: only the bytes of then are valid."""
        checked = verify_export(path, head=self.head)
        expect(not checked or path.read_bytes() == self.exported, "a changed export was found valid")

    def read_certificate(self, path: Path) -> None:
        """Read a certificate: only the bytes of then have a signature that holds."""
        raw = path.read_bytes()
        certificate = parse_certificate(raw)
        holds = find_signature_problem(certificate, self.public_key) is None
        expect(not holds or raw == self.certificate, "a changed certificate has a signature that holds")

    def replay(self, path: Path) -> None:
        """Judge by a recording."""
        judge = Judge(ReplayModel(path))
        self.loop.run_until_complete(judge.evaluate("a good text", self.folder / "polite.yaml", task="Answer it."))

    def list_targets(self) -> Iterator[Target]:
        """Every file of the folder."""
        yield self.make(f"{MONDAY}/run.json", "json", self.read_run)
        yield self.make(f"{MONDAY}/plan.json", "json", self.read_run)
        yield self.make(f"{MONDAY}/looks.jsonl", "lines", self.read_run)
        yield self.make(f"{MONDAY}/results.sqlite", "bytes", self.read_run)
        yield self.make(f"{MONDAY}/labels.sqlite", "bytes", self.read_queue)
        yield self.make("adjudge.db", "bytes", self.read_ledger)
        yield self.make("labels.jsonl", "lines", load_labels)
        yield self.make("labels.csv", "text", load_labels)
        yield self.make("letters.jsonl", "lines", lambda path: list(open_dataset(path)))
        yield self.make("recording.jsonl", "lines", self.replay)
        yield self.make("certificate.json", "json", self.read_certificate)
        yield self.make("policy.json", "json", read_release_policy)
        yield self.make("ledger.jsonl", "lines", self.read_export)
        yield self.make("audit.json", "json", lambda path: read_audit(path.read_bytes().decode("utf-8", "replace")))
        yield self.make("agent-run.json", "json", read_run)
        yield self.make("polite.yaml", "text", load_rubric)
        yield self.make("rules.yaml", "text", load_rules)
        yield self.make("probes.yaml", "text", load_probes)
        yield self.make("adjudge.toml", "text", read_configuration)


def read_configuration(path: Path) -> None:
    """Read everything of adjudge.toml that is read before anything is asked."""
    config = read_config(path)
    read_server(config)
    read_hook_settings(config)


# ---------------------------------------------------------------- agents


def make_transcript_targets() -> Iterator[Target]:
    """Every reader of transcripts, by the files that the real tools wrote."""
    by_format: dict[str, list[bytes]] = {}
    for path in sorted((TESTS / "data" / "agents").glob("*.json*")):
        first = path.name.partition("-")[0]
        name = "pydantic_ai" if first == "pydantic" else first
        by_format.setdefault(f"{name}{path.suffix}", []).append(path.read_bytes())
    for name, examples in by_format.items():
        known, _, suffix = name.partition(".")

        def read(raw: bytes, suffix: str = suffix, known: str = known) -> None:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder) / f"run.{suffix}"
                path.write_bytes(raw)
                for named in (None, known):
                    with suppress(AdjudgeError):
                        found = read_run(path, named)  # type: ignore[arg-type] - a format by its name
                        expect(type(found).from_dict(found.to_dict()) == found, "what was read cannot be written")

        yield Target(f"transcript.{name}", "lines" if suffix == "jsonl" else "json", examples, read)


class Hooks:
    """A hook over a gate that stops what says curl."""

    def __init__(self, ledger: Ledger, loop: asyncio.AbstractEventLoop) -> None:
        shell = Gate("shell", rules=[{"not_contains": "curl"}], ledger=ledger)
        self.loop = loop
        self.guard = ToolGuard({"Bash": shell, "*": shell}, match="content", ledger=ledger)
        # A guard refuses whatever goes wrong in it, and says so in the log alone.
        self.problems: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.problems.append(record.getMessage())  # type: ignore[method-assign]
        logging.getLogger("adjudge").addHandler(handler)

    def list_targets(self) -> Iterator[Target]:
        """The events of each harness."""
        for harness, file in zip(HARNESSES, ("claude-2.1.330.jsonl", "codex-0.169.0.jsonl"), strict=True):
            lines = (TESTS / "data" / "harness" / file).read_bytes().splitlines()
            stopped = [line.replace(b'"echo hi"', b'"curl evil"') for line in lines]

            def read(raw: bytes, harness: Any = harness) -> None:
                event = read_event(harness, raw)
                self.problems.clear()
                answer = self.loop.run_until_complete(HookGuard(harness=harness, guard=self.guard).answer(event))
                expect(not self.problems, f"something went wrong: {self.problems}")
                if isinstance(event, CallEvent) and answer == {}:
                    said = json.dumps(json.loads(raw).get("tool_input"), ensure_ascii=False)
                    expect("curl" not in said, f"a call passed that says curl: {said}")

            yield Target(f"hook.{harness}", "json", [*lines, *stopped], read)


# ---------------------------------------------------------------- schemas

SCHEMAS: tuple[tuple[Any, Any], ...] = (
    ({"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 3}}}, {"a": 1}),
    ({"$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}, [[[]], "x"]),
    ({"anyOf": [{"const": 1}, {"enum": ["a", None]}], "not": {"type": "string", "pattern": "^(a|b)+$"}}, "abab"),
    ({"type": "array", "prefixItems": [{"format": "date"}], "uniqueItems": True, "contains": {"type": "null"}}, ["x"]),
    ({"patternProperties": {"^x": {"type": "number", "multipleOf": 0.01}}, "additionalProperties": False}, {"y": 1}),
)


def make_schema_target(loop: asyncio.AbstractEventLoop) -> Target:
    """The rule ``json_schema`` with a schema and a content."""

    def read(raw: bytes) -> None:
        try:
            document = json.loads(raw)
        except (ValueError, RecursionError):
            return
        if isinstance(document, dict) and {"schema", "content"} <= set(document):
            rule = as_rule({"json_schema": document["schema"]})
            loop.run_until_complete(rule.check(document["content"], None))

    examples = [json.dumps({"schema": schema, "content": content}).encode() for schema, content in SCHEMAS]
    return Target("schema", "json", examples, read)


# ---------------------------------------------------------------- a server

SERVER = """
[gates.publish]
rules = [{name = "length", max = 40}]

[gates.held]
rules = [{name = "length", max = 40}]
on_failed = "ask"
ask = {approvers = ["Ana"], show_content = true}

[gates.shell]
rules = [{not_contains = "curl"}]

[hook]
tools = {"Bash" = "shell"}

[ledger]
url = "sqlite:///adjudge.db"
store_content = "full"

[defaults]
judge = "words"

[judges.words]
seats = ["python:kit.cli:judge_words"]
"""

TOO_LONG = "x" * 41

BODIES: Mapping[str, tuple[dict[str, Any], ...]] = {
    "/v1/gates/publish/check": (
        {"content": TOO_LONG},
        {"content": {"a": [1, TOO_LONG]}, "task": "t", "metadata": {"k": "v"}},
    ),
    "/v1/gates/held/check": ({"content": TOO_LONG, "context": ["c"], "reference": "r"},),
    "/v1/gates/held/resume": ({"approval": "0" * 36, "content": TOO_LONG},),
    "/v1/evaluate": (
        {"content": TOO_LONG, "criteria": {"short": "Is short."}, "rules": [{"name": "length", "max": 40}]},
        {"rubric": {"name": "R", "criteria": [{"name": "c", "description": "d", "rule": "json"}]}, "content": TOO_LONG},
        {"run": {"schema": "adjudge/agent-run/1", "steps": [{"role": "user", "text": "x"}], "answer": "a",
                 "unknown": ["files"]}, "rules": ["no_errors"]},
    ),
    "/v1/firewall/input": ({"arguments": {"path": "../a"}},),
    "/v1/firewall/prompt": ({"rules": ["Be kind."]},),
    "/v1/tools/reuse": ({"tool": {"name": "add"}, "output": {"sum": 3}},),
    "/v1/approvals/unknown/votes": ({"approved": True, "reason": "r", "seen": "0" * 64},),
    "/v1/tools/check": ({"tool": "Bash", "arguments": {"command": "curl x"}, "call_id": "c", "run_id": "r"},),
    "/v1/hooks/claude": ({"hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_use_id": "t",
                          "tool_input": {"command": "curl x"}, "cwd": "/srv"},),
}  # fmt: skip


@contextmanager
def open_server_targets(folder: Path) -> Iterator[list[Target]]:
    """The addresses of a server on 127.0.0.1, each with bodies that it does not let through."""
    from kit.server import run_server

    with run_server(folder, SERVER) as server:
        clients = {
            True: server.open_client(key=server.make_key("hook")),
            False: server.open_client(key=server.make_key(approver="Ana", rater="Ana")),
        }

        def make(address: str, bodies: Sequence[dict[str, Any]]) -> Target:
            client = clients[address.startswith(("/v1/tools/check", "/v1/hooks"))]

            def read(raw: bytes) -> None:
                answer = client.post(address, content=raw, headers={"Content-Type": "application/json"})
                expect(answer.status_code < 500, f"{answer.status_code}: {answer.text[:300]}")
                if answer.status_code != 200:
                    return
                body, said = json.loads(raw), answer.json()
                if "/gates/publish" in address or "/gates/held" in address:
                    text = body["content"] if isinstance(body.get("content"), str) else json.dumps(body.get("content"))
                    expect(not said.get("allowed") or len(text) <= 120, f"let through: {text[:200]}")
                if address == "/v1/tools/check" and said.get("kind") == "allow":
                    expect("curl" not in json.dumps(body.get("arguments")), "a call passed that says curl")

            return Target(f"http{address}", "json", [json.dumps(body).encode() for body in bodies], read)

        yield [make(address, bodies) for address, bodies in BODIES.items()]


# ---------------------------------------------------------------- MCP


CALLS: tuple[dict[str, Any], ...] = (
    {"name": "shell", "arguments": {"cmd": "curl evil"}},
    {"name": "shell", "arguments": {"cmd": "ls"}, "_meta": {"progressToken": 1}},
    {"name": "delete_file", "arguments": {"path": "/srv/data"}},
)


@contextmanager
def open_mcp_target(folder: Path) -> Iterator[list[Target]]:
    """Calls of the tools of an MCP server, whose guard stops what says curl, by the official client."""
    from anyio.from_thread import start_blocking_portal
    from mcp import Client
    from mcp.server.mcpserver import MCPServer
    from mcp.shared.exceptions import MCPError
    from pydantic import ValidationError

    from adjudge.integrations.mcp import GateExtension

    ran: list[str] = []
    ledger = Ledger(f"sqlite:///{folder / 'mcp.db'}")
    gate = Gate("shell", rules=[{"not_contains": "curl"}], ledger=ledger)
    server = MCPServer("files", log_level="CRITICAL", extensions=[GateExtension(ToolGuard({"*": gate}, ledger=ledger))])

    @server.tool()
    def shell(cmd: str) -> str:
        """Run a command."""
        ran.append(cmd)
        return "ran"

    @server.tool()
    def delete_file(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return "deleted"

    with start_blocking_portal() as portal, portal.wrap_async_context_manager(Client(server)) as client:

        def call(raw: bytes) -> None:
            try:
                document = json.loads(raw)
            except (ValueError, RecursionError):
                return
            if not isinstance(document, dict):
                return
            ran.clear()
            with suppress(MCPError, ValidationError, TypeError, ValueError):  # what the protocol itself refuses
                name, arguments, meta = (document.get(member) for member in ("name", "arguments", "_meta"))
                portal.call(partial(client.call_tool, name, arguments, meta=meta))
            expect(not any("curl" in made for made in ran), f"a tool ran: {ran}")

        yield [Target("mcp", "json", [json.dumps(one).encode() for one in CALLS], call)]
        portal.call(ledger.aclose)


# ---------------------------------------------------------------- all

TARGETS = ("reply", "reader", "file", "row", "transcript", "hook", "schema", "http", "mcp")
"""The groups of targets, by which ``scripts/fuzz`` chooses."""


@contextmanager
def open_targets(groups: Sequence[str]) -> Iterator[list[Target]]:
    """The targets of some groups, with what they need."""
    loop = asyncio.new_event_loop()
    with ExitStack() as stack, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledger = Ledger(f"sqlite:///{folder / 'hooks.db'}")
        stack.callback(loop.close)
        stack.callback(lambda: loop.run_until_complete(ledger.aclose()))
        targets = [*make_reply_targets(Conversation(loop)), *make_reader_targets(), make_schema_target(loop)]
        targets += [*make_transcript_targets(), *Hooks(ledger, loop).list_targets()]
        newest = max((TESTS / "upgrade").glob("*/expected.json*")).parent
        targets += Files(unpack(newest, folder / "files"), loop).list_targets()
        if "row" in groups:
            targets += Files(unpack(newest, folder / "rows"), loop).list_rows()
        if "http" in groups:
            (folder / "server").mkdir()
            targets += stack.enter_context(open_server_targets(folder / "server"))
        if "mcp" in groups:
            targets += stack.enter_context(open_mcp_target(folder))
        os.environ.pop("ADJUDGE_JUDGE", None)
        yield [target for target in targets if re.split(r"[./]", target.name)[0] in groups]
