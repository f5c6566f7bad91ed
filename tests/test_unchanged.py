"""What was judged is one copy of the content; what a person approved is what runs, or is handed on."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest

from adjudge import Blocked, Gate, Judge, ToolCandidate, ToolRegistry, improve
from adjudge.guards import ApprovalAnswer
from adjudge.integrations.asgi import GateMiddleware
from adjudge.testing import ScriptedModel
from kit.gates import GOOD, Book, word
from kit.registries import HERE, add, run

pytestmark = pytest.mark.timed


PASS = {"criteria": [{"name": "good", "reasoning": "Fine.", "score": 1.0}]}


@dataclasses.dataclass
class Order:
    """Somebody's own type, which can be changed."""

    items: list[str]
    note: str = ""


class Told:
    """An object that stands for its output."""

    def __init__(self) -> None:
        self.output = {"text": "fine"}


class Counting:
    """An object that says something else whenever it is looked at."""

    count = 0

    @property
    def output(self) -> str:
        self.count += 1
        return f"look {self.count}"


HELD: dict[str, tuple[Callable[[], Any], Callable[[Any], object]]] = {
    "a list": (lambda: ["fine"], lambda held: held.append("rm -rf /")),
    "a list, emptied": (lambda: ["fine"], lambda held: held.clear()),
    "a nested list": (lambda: {"a": [{"b": ["fine"]}]}, lambda held: held["a"][0]["b"].append("rm -rf /")),
    "in a tuple": (lambda: (["fine"],), lambda held: held[0].append("rm -rf /")),
    "a dictionary": (lambda: {"to": "ana"}, lambda held: held.update(to="mallory")),
    "a new member": (lambda: {"to": "ana"}, lambda held: held.update(bcc="mallory")),
    "another type": (lambda: {"n": 1}, lambda held: held.update(n="1")),
    "a mapping of another type": (lambda: OrderedDict(to="ana"), lambda held: held.update(to="mallory")),
    "a dataclass": (lambda: Order(["fine"]), lambda held: setattr(held, "note", "rm -rf /")),
    "in a dataclass": (lambda: Order(["fine"]), lambda held: held.items.append("rm -rf /")),
    "a dataclass in a list": (lambda: [Order(["fine"])], lambda held: held[0].items.append("rm -rf /")),
    "what an object stands for": (Told, lambda held: held.output.update(text="rm -rf /")),
    "what cannot be compared": (Counting, lambda held: None),
    "what cannot be read any more": (lambda: ["fine"], lambda held: held.append(object())),
    "what holds itself": (lambda: ["fine"], lambda held: held.append(held)),
}
"""Something that a caller can hold on to, and what becomes of it while a person is waited for."""


def make_gate(during: Callable[[], object], **options: Any) -> tuple[Gate, Book]:
    """A gate whose judge passes everything, once something was done."""

    def answer(request: Any) -> dict[str, Any]:
        during()
        return PASS

    book = Book()
    return Gate("door", rubric=GOOD, judge=ScriptedModel(answer), ledger=book, **options), book


def make_asking_gate(during: Callable[[], object]) -> tuple[Gate, Book]:
    """A gate that asks a person about everything, who approves once something was done."""

    class Slow:
        async def request(self, decision: Any, message: str, /, **options: Any) -> str:
            return "a-1"

        async def wait(self, approval: str, /) -> ApprovalAnswer:
            during()
            return ApprovalAnswer(True, "ana", "fine")

    book = Book()
    return Gate("door", rules=[lambda text: False], on_failed="ask", approvals=Slow(), ledger=book), book


def call(function: Callable[..., Any], *arguments: Any) -> Any:
    returned = function(*arguments)
    return asyncio.run(returned) if inspect.iscoroutine(returned) else returned


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("is_async", [False, True])
def test_an_argument_that_was_changed_never_runs(kind: str, is_async: bool):
    """Whatever it is and wherever it was changed; the ledger ends with a decision that blocks."""
    build, change = HELD[kind]
    held = build()
    made, book = make_asking_gate(lambda: change(held))
    ran = []

    @made.guard(argument="value")
    def send(value: Any) -> None:
        ran.append(value)

    @made.guard(argument="value")
    async def send_later(value: Any) -> None:
        ran.append(value)

    with pytest.raises(Blocked) as caught:
        call(send_later if is_async else send, held)

    assert ran == []
    assert word(caught.value.decision) == ("blocked", "policy")
    assert "changed while a person was waited for" in caught.value.decision.explain()
    assert book.entries[-1][0].allowed is False
    assert caught.value.decision.ledger_seq == len(book.entries)


@pytest.mark.parametrize("kind", HELD)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_function_returned_is_not_handed_on_once_it_was_changed(kind: str, is_async: bool):
    """The function may still hold what it returned."""
    build, change = HELD[kind]
    held = build()
    made, _ = make_asking_gate(lambda: change(held))

    @made.guard()
    def find() -> Any:
        return held

    @made.guard()
    async def find_later() -> Any:
        return held

    with pytest.raises(Blocked) as caught:
        call(find_later if is_async else find)
    assert "changed while a person was waited for" in caught.value.decision.explain()


@pytest.mark.parametrize("kind", sorted(HELD.keys() - {"what cannot be compared"}))
@pytest.mark.parametrize("is_async", [False, True])
def test_what_stays_as_it_is_goes_on(kind: str, is_async: bool):
    """The very object that was handed in, or returned, and not a copy of it; one decision is recorded."""
    held = HELD[kind][0]()
    made, book = make_asking_gate(lambda: None)

    @made.guard(argument="value")
    def send(value: Any) -> Any:
        return value

    @made.guard()
    async def find() -> Any:
        return held

    assert (call(find) if is_async else send(held)) is held
    assert [entry.allowed for entry, _ in book.entries] == [True]


def test_a_rule_that_changes_what_it_is_given_changes_nothing_for_the_next():
    """Nor for the judge, nor for the caller."""
    held = {"cmd": "rm -rf /"}
    made, _ = make_gate(
        lambda: None, rules=[lambda content: bool(content.pop("cmd")), lambda content: "cmd" in content]
    )

    assert asyncio.run(made.check(held)).allowed
    assert held == {"cmd": "rm -rf /"}


def test_a_redaction_may_change_what_it_is_given():
    """It is handed a copy, and the content stays what it was."""

    def redact(value: dict[str, str]) -> dict[str, str]:
        value["name"] = "[name]"
        return value

    held = {"name": "Ana"}
    made, _ = make_gate(lambda: None, redact=redact)

    assert asyncio.run(made.check(held)).allowed
    assert held == {"name": "Ana"}


class Form(dict[str, Any]):
    """A form as web frameworks have it: it shows one of the values that it holds under a key."""

    def getlist(self, key: str) -> list[Any]:
        held = self[key]
        return [*held] if isinstance(held, tuple) else [held]

    def items(self) -> Any:
        return [(key, self.getlist(key)[0]) for key in self]


def test_a_form_that_shows_one_of_several_values_is_not_judged():
    """The function behind the gate could use the other one; with one value under each key it is a mapping like any."""
    made, book = make_gate(lambda: None)

    @made.guard(argument="form")
    def send(form: Form) -> str:
        return form.getlist("cmd")[-1]

    assert send(Form(cmd="ls")) == "ls"
    with pytest.raises(Blocked) as caught:
        send(Form(cmd=("ls", "rm -rf /")))
    assert "several values under one key" in caught.value.decision.explain()
    assert len(book.entries) == 2


@pytest.mark.parametrize("which", ["content", "task", "context", "reference"])
def test_an_object_is_judged_as_it_was_handed_in(which: str):
    """Rules and judge see one copy of it as plain data, whatever becomes of it while they look."""
    order, seen = Order(["fine"]), []

    def turn(content: Any) -> bool:
        order.items.append("rm -rf /")
        seen.append(content)
        return True

    model = ScriptedModel(PASS)
    made = Gate("door", rules=[turn], rubric=GOOD, judge=model)
    content = order if which == "content" else "fine"

    assert asyncio.run(made.check(content, **({} if which == "content" else {which: order}))).allowed
    assert seen == [{"items": ["fine"], "note": ""} if which == "content" else "fine"]
    assert "rm -rf /" not in model.requests[0].user


def test_the_rules_of_a_judge_look_at_what_it_is_shown():
    """Though the caller's list is another one by the time they run."""
    held, seen = ["rm -rf /"], []

    async def wait(content: Any) -> bool:
        held[:] = ["fine"]
        seen.append(list(content))
        return True

    model = ScriptedModel(PASS)
    asyncio.run(Judge(model).evaluate(held, GOOD, rules=[wait, wait]))

    assert seen == [["rm -rf /"], ["rm -rf /"]]
    assert "rm -rf /" in model.requests[0].user


def test_improve_hands_back_what_was_judged():
    """The list as it was judged, whatever was done to it."""
    held = ["fine"]

    def turn(request: Any) -> dict[str, Any]:
        held.append("rm -rf /")
        return PASS

    done = asyncio.run(improve(held, ScriptedModel(turn), GOOD, lambda text, result: text))

    assert (done.outcome, done.content) == ("passed", ["fine"])


def test_a_tool_runs_on_the_arguments_that_fit_and_its_output_is_the_one_that_was_checked():
    """A caller that goes on changing its own, and a tool that keeps what it put out, change nothing."""
    sent, kept = {"a": 1}, {"sum": 2}
    seen = []

    async def double(made: ToolCandidate, arguments: Any) -> Any:
        sent.update(a="rm -rf /")  # type: ignore[arg-type]
        seen.append(dict(arguments))
        return kept

    async def go(registry: ToolRegistry) -> Any:
        use = await registry.use(await add(registry), double, sent, **HERE)
        kept.update(sum="rm -rf /")  # type: ignore[arg-type]
        return use

    use = run(go)

    assert seen == [{"a": 1}]
    assert use.output == {"sum": 2}


# ---------------------------------------------------------------- in front of an application


def respond(during: Callable[[Any], Any], **options: Any) -> list[Any]:
    """What a client is sent by an application that goes on while its response is judged."""
    sent: list[Any] = []
    going = asyncio.Event()

    async def look(content: Any) -> bool:
        going.set()
        await asyncio.sleep(0.01)
        return "secret" not in str(content)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

        async def go_on() -> None:
            await going.wait()
            await during((send, headers))

        async with asyncio.TaskGroup() as group:
            group.create_task(go_on())
            await send({"type": "http.response.body", "body": b"fine", "more_body": False})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    made = GateMiddleware(app, Gate("door", rules=[look], **options), on="response")
    scope = {"type": "http", "method": "GET", "path": "/", "headers": []}
    with pytest.MonkeyPatch.context():
        try:
            asyncio.run(made(scope, receive, send))
        except BaseExceptionGroup as group:
            assert group.subgroup((OSError, RuntimeError)) is not None  # noqa: PT017 - its own end is not the point
    return sent


def test_a_response_that_goes_on_while_it_is_judged_is_not_sent():
    """What another task of the application adds was not judged."""

    async def during(arguments: Any) -> None:
        await arguments[0]({"type": "http.response.body", "body": b" and a secret", "more_body": False})

    sent = respond(during)

    assert b"secret" not in b"".join(item.get("body", b"") for item in sent)
    assert [item["status"] for item in sent if item["type"] == "http.response.start"] in ([403], [])


def test_headers_that_are_changed_while_a_response_is_judged_are_not_sent():
    """By them the body was read, and by them a client reads it."""

    async def during(arguments: Any) -> None:
        arguments[1][:] = [(b"content-type", b"text/html")]

    sent = respond(during)

    assert sent[0]["headers"] == [(b"content-type", b"text/plain")]
    assert sent[1]["body"] == b"fine"
