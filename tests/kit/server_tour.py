"""Every page of a server, one after the other, in a browser: with requests for people and cases to label in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from adjudge import Approvals, Case, Gate, Judge, JudgeChain, Ledger, open_run, run
from adjudge.guards import Audit
from adjudge.labels import make_plan, open_label_queue, write_plan
from adjudge.labels import store as label_store
from adjudge.measurement import compare_judges
from adjudge.testing import ScriptedModel
from kit import server_demo
from kit.audited import make_gate
from kit.differences import draw, is_good, label_planned, make_judges, make_systems
from kit.house import TESTS
from kit.labels import label_all, make_pairs_run, make_run
from kit.observed_calls import judge_calls, make_call_case
from kit.server import PASSWORD, RunningServer, run_server

CONFIG = (
    server_demo.CONFIG.replace('runs = "runs"', 'runs = "runs"\nlabels_per_case = 2\nundo_seconds = 60')
    + """
[gates.deletes]
rules = [{contains = "scratch"}]
on_rule = "ask"
ask = {approvers = ["Ana"], show_content = true}

[hook]
tools = {"delete_*" = "deletes"}
"""
)

PEOPLE = ("Ana", "Ben Okafor", "Chiara Conti")

SEATS = ("openai:gpt-6.1-terra", "anthropic:claude-haiku-5-5", "local:qwen3-8b")

REPLY = """Dear Ms Lindqvist,

thank you for writing, and I am sorry that your tent came after your trip. I have refunded the full 184.00 euros to \
your card, including the 12.00 euros for express shipping. You will have the money within 24 hours.

You can keep the tent or send it back at our cost with the label in this message. As an apology you will have priority \
on any future order.

Kind regards,
Fernhill Support"""

RUBRIC: dict[str, Any] = {
    "name": "Refund replies",
    "passing_threshold": 0.8,
    "criteria": [
        {
            "name": "follows the policy",
            "description": "Says and does only what the refund policy allows. A date that it does not give is bad.",
            "quote": True,
            "threshold": 0.9,
        },
        {
            "name": "the amount is right",
            "description": "Every sum can be found in the order, or follows from it.",
            "quote": True,
            "threshold": 0.8,
        },
        {
            "name": "promises nothing more",
            "description": "No gift and no exception that nobody granted.",
            "quote": True,
        },
        {
            "name": "clear and polite",
            "description": "The customer knows what happens next, and when.",
            "threshold": 0.7,
        },
    ],
}

_SAID = (
    ("The policy gives ten working days, and not a day.", "You will have the money within 24 hours", 0.40),
    ("Shipping is included, and the parcel was three days late, not five.", "including the 12.00 euros", 0.55),
    ("It offers priority, which nobody granted.", "priority on any future order", 0.62),
    ("It names the delay, apologises once, and says what happens next.", "", 0.96),
)

_QUEUE = (
    ("Refund 1,240.00 EUR on order 77390", "undecided", 41),
    ("Reply to Jonas Weber: the warranty on his stove", "failed", 52),
    ("Credit 40.00 EUR to account 20931", "failed", 70),
    ("Cancel subscription 2291", "undecided", 180),
)

_ASKED = (
    "I ordered two sleeping bags and got one. The tracking page says that both were delivered. Can you send the other "
    "one, or give me half of the money back? I leave on Saturday."
)

_ANSWERED = """Hello Mr Haddad,

I am sorry that only one of your two sleeping bags arrived. I have checked with the warehouse: the second one left \
in its own parcel on Wednesday and is due on Friday before noon. Here is its tracking number: 3SFH-2210-77{number}.

If it is not with you by Friday evening, answer this message and we will refund the 89.00 euros for it at once.

Kind regards,
Fernhill Support"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tour:
    """A server with a demo in it; ``place`` is that of the ledger's entry that ends a whole story."""

    server: RunningServer
    place: int
    request: str
    """A request with everything in it, that somebody approved already."""
    incomplete: str
    long: str
    """A request whose content is longer than what is shown at first."""
    withheld: str
    """A case that Ana is to label before she is shown what the judge said."""


@contextmanager
def open_tour(folder: Path, *, days: int = 28) -> Iterator[Tour]:
    """The server, until the block ends. Open it before a browser, whose driver keeps a loop running."""
    asyncio.run(server_demo.fill_ledger(folder, days=days))
    place = asyncio.run(server_demo.tell_story(folder))
    server_demo.keep_runs(folder)
    keep_labels(folder / "runs" / "refunds")
    make_pairs_run(folder / "runs" / "two-versions", 8)
    keep_comparisons(folder / "runs")
    keep_calls(folder / "runs" / "calls")
    withheld = keep_plan(folder / "runs" / "planned")
    with open_label_queue(make_run(folder / "runs" / "finished", 1), per_case=2) as queue:
        for name in PEOPLE[:2]:
            label_all(queue, name, lambda _: True)
    with run_server(folder, CONFIG) as server:
        server.add_account("Ana")
        server.add_account("Nobody", "approve", "label", gates=["replies"])
        server.make_key("judge", "read", name="support-agent")
        server.make_key("read", name="dashboard")
        request, incomplete, long = server.change(ask_people)
        yield Tour(server=server, place=place, request=request, incomplete=incomplete, long=long, withheld=withheld)


def sign_in(page: Any, tour: Tour, name: str = "Ana") -> None:
    """Fill in the form that is open."""
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(lambda url: "/signin" not in url)


def press(button: Any) -> None:
    """Press a button that sends a form, and wait for the page that follows: before, there may be no document at all."""
    with button.page.expect_navigation():
        button.click()


def open_pages(page: Any, tour: Tour) -> Iterator[str]:
    """The name of each page, while it is open."""
    url = tour.server.url
    page.goto(f"{url}/signin?next=/approvals")
    yield "signin"
    page.get_by_label("Name").fill("Nobody")
    page.get_by_label("Password").fill("not this one")
    press(page.get_by_role("button", name="Sign in"))
    yield "signin-refused"
    sign_in(page, tour, "Nobody")
    yield "approvals-empty"
    for name, path in {"forbidden": "/ledger", "refused": "/approvals?gate=%00"}.items():
        page.goto(url + path)
        yield name
    page.context.clear_cookies()
    page.goto(f"{url}/signin?next=/ledger")
    sign_in(page, tour)
    press(page.get_by_role("button", name="Verify now"))
    for name, path in {
        "overview": "/",
        "results": "/results",
        "result": f"/results/{tour.place}",
        "ledger": "/ledger",
        "entry": f"/ledger/{tour.place}",
        "runs": "/runs",
        "run": "/runs/support",
        "compare": "/compare?a=a&b=b",
        "compare-judges": "/compare?a=careless&b=careful&show=all",
        "compare-one": "/compare?run=support",
        "labelled-run": "/runs/refunds",
        "withheld": f"/runs/planned/case?id={tour.withheld}",
        "case": "/runs/b/case?id=q-6&beside=a",
        "calls": "/runs/calls/calls",
        "no-calls": "/runs/support/calls",
        "no-audits": "/audits",
        "no-monitors": "/monitors",
        "empty": "/results?q=nothing+has+this",
        "missing": "/results/999999",
        "labels": "/labels",
        "label": "/labels/refunds",
        "labels-finished": "/labels/finished",
        "pair": "/labels/two-versions",
        "differences": "/labels/refunds/differences",
        "others": "/labels/refunds/others",
        "approvals": f"/approvals/{tour.request}",
        "incomplete": f"/approvals/{tour.incomplete}",
        "cut": f"/approvals/{tour.long}",
        "no-match": "/approvals?q=nothing+has+this",
        "deny": "/approvals/deny",
        "deny-some": "/approvals/deny?agent=support-refunds",
        "deny-none": "/approvals/deny?agent=nobody",
        "decisions": "/approvals/mine?when=all",
        "no-decisions": "/approvals/mine?did=approved&when=day",
    }.items():
        page.goto(url + path)
        yield name
    yield from _open_reviews(page, tour)


def _open_reviews(page: Any, tour: Tour) -> Iterator[str]:
    """Open what a page is only after somebody did something."""
    url = tour.server.url
    page.goto(f"{url}/approvals/{tour.request}")
    press(page.get_by_role("button", name="Hide the judge until I decide"))
    yield "hidden"
    press(page.get_by_role("button", name="Show the judge at once"))

    denied = tour.server.change(lambda ledger: ask(ledger, "Credit 25.00 EUR to account 18820", expires_in=5_000))
    page.goto(f"{url}/approvals/{denied}")
    press(page.get_by_role("button", name="Deny", exact=False).first)
    page.goto(f"{url}/approvals/{tour.request}")
    yield "undo"
    press(page.locator(".toast").get_by_role("button", name="Undo").first)
    yield "undone"

    first = tour.server.change(lambda ledger: ask(ledger, "Close account 5512", expires_in=900))
    page.goto(f"{url}/approvals/{first}")
    tour.server.change(lambda ledger: _decide(ledger, first, "Ben Okafor", "The customer asked for it twice.", False))
    page.get_by_label("Your reason").fill("It is what the customer asked for.")
    press(page.get_by_role("button", name="Approve"))
    yield "conflict"
    page.goto(f"{url}/approvals/{stop_run(tour.server)}")
    yield "stopped"
    audit = tour.server.change(audit_some)
    for name, path in {"audits": "/audits", "audit": f"/audits/{audit}", "monitors": "/monitors"}.items():
        page.goto(url + path)
        yield name
    yield from _open_calls(page, tour)


def _open_calls(page: Any, tour: Tour) -> Iterator[str]:
    """Open a request about a call of each kind, the list of keys, and what a form leads to without key or session."""
    for line in (TESTS / "data" / "tool_calls.jsonl").read_text("utf-8").splitlines():
        call = json.loads(line)
        content = json.dumps({"tool": call["tool"], "arguments": call["arguments"]}, ensure_ascii=False)
        ident = tour.server.change(lambda ledger, content=content, title=call["title"]: ask(ledger, title, content))
        page.goto(f"{tour.server.url}/approvals/{ident}?whole=true")
        yield f"call-{call['id'].replace(' ', '-')}"
    page.keyboard.press("?")
    page.locator("#keys").wait_for()
    yield "keys"
    page.keyboard.press("Escape")
    address = page.url
    page.evaluate("localStorage.clear()")
    _deny(page)
    yield "password"
    page.goto(address)
    page.context.clear_cookies()
    _deny(page)
    yield "session-ended"


def _deny(page: Any) -> None:
    page.get_by_label("Your reason").fill("It is not what the customer asked for.")
    press(page.get_by_role("button", name="Deny", exact=False).first)


# ---------------------------------------------------------------- requests


async def ask_people(ledger: Ledger) -> tuple[str, str, str]:
    """A queue: one that somebody approved, like one that was approved before; one without its content; a long one."""
    action = _write_action("172.00", "not included", REPLY.replace("184.00", "172.00"))
    before = await ask(ledger, "Refund 172.00 EUR on order 76950", action)
    for name in ("Ben Okafor", "Chiara Conti"):
        await _decide(ledger, before, name, "As the policy says.")
    for title, reason in (
        ("Credit 75.00 EUR to account 11873", "The amount is not in the order."),
        ("Close account 4410", "Nobody asked for it."),
    ):
        await _decide(ledger, await ask(ledger, title), "Ana", reason, approved=False)
    action = _write_action("184.00", "included, 12.00 EUR", REPLY)
    first = await ask(ledger, "Refund 184.00 EUR on order 77418", action, expires_in=26 * 60)
    await _decide(ledger, first, "Ben Okafor", "The carrier confirmed the delay. Fine with me if the shipping is.")
    for title, outcome, minutes in _QUEUE:
        await ask(ledger, title, undecided=outcome == "undecided", expires_in=60 * minutes)
    incomplete = await ask(ledger, "Reply to Hotel Birkenhof: bulk order", expires_in=7_200, show_content=False)
    long = await ask(ledger, "Send the terms of 2027", REPLY + "\n\nIt is as it was." * 2_000, expires_in=8_000)
    return first, incomplete, long


async def ask(
    ledger: Ledger,
    title: str,
    content: str = REPLY,
    *,
    undecided: bool = False,
    expires_in: int = 3_600,
    show_content: bool = True,
) -> str:
    """The id of a request of the gate ``refunds``, whose judge has three seats."""
    names = [item["name"] for item in RUBRIC["criteria"]]

    def seat(name: str, better: float) -> Judge:
        grades = [
            {"name": criterion, "reasoning": reason, "quote": quote, "score": min(1.0, score + better)}
            for criterion, (reason, quote, score) in zip(names, _SAID, strict=True)
        ]
        return Judge(ScriptedModel("I cannot say." if undecided else {"criteria": grades}), name=name)

    judge = JudgeChain(
        [seat(name, better) for name, better in zip(SEATS, (0.0, 0.02, 0.36), strict=True)],
        strategy="majority", name="careful",
    )  # fmt: skip
    asks: dict[str, Any] = {"approvers": list(PEOPLE), "required": 2, "expires_in": expires_in}
    metadata = {"title": title, "agent": "support-refunds", "tool": "payments.refund"}
    rules: Any = [{"name": "length", "max": 4_000, "severity": "warning"}, "secrets"]
    async with Approvals(ledger) as approvals:
        gate = Gate(
            "refunds", judge=judge, rubric=RUBRIC, rules=rules, approvals=approvals, ask=asks, on_failed="ask",
            on_undecided="ask", show_content=show_content, wait=False, ledger=ledger,
        )  # fmt: skip
        decision = await gate.check(content, metadata=metadata)
        assert decision.approval_id is not None, decision.explain()
        return decision.approval_id


def _write_action(amount: str, shipping: str, reply: str) -> str:
    action = {
        "amount": f"{amount} EUR",
        "order": "77418, Mara Lindqvist",
        "to": "the card that paid, ending 3304",
        "shipping": shipping,
        "reply": reply,
    }
    return json.dumps(action, ensure_ascii=False, indent=1)


async def _decide(ledger: Ledger, ident: str, name: str, reason: str, approved: bool = True) -> None:
    async with Approvals(ledger) as approvals:
        await approvals.decide(ident, name, approved, reason)


def stop_run(server: RunningServer) -> str:
    """The request of an agent's run that was stopped after it, because of a call that nobody had checked."""
    agent, run_id = server.open_client(key=server.make_key("hook", name="agent")), "nightly-cleanup"
    call = {"tool": "delete_file", "arguments": {"path": "/srv/data"}, "call_id": "c1", "run_id": run_id}
    held = agent.post("/v1/tools/check", json=call).json()
    made = {"tool_name": "Bash", "tool_input": {"command": "make"}, "tool_use_id": "t1", "tool_response": "ok"}
    event = {"session_id": run_id, "cwd": "/work", "hook_event_name": "PostToolUse", **made}
    assert agent.post("/v1/hooks/claude", json=event).status_code == 200
    return str(held["approval_id"])


async def audit_some(ledger: Ledger) -> str:
    """The id of an audit that waits for Ana, after one that she answered."""
    async with Approvals(ledger) as approvals:
        gate = make_gate(ledger, approvals, ask={"approvers": ["Ana"]}, audit=Audit(share=1.0, approvers=("Ana",)))
        for number in range(2):
            assert await gate.check(_ANSWERED.format(number=number), task=_ASKED)
            audit = max(await approvals.list(audits=True), key=lambda item: item.created_at)
            if number == 0:
                await approvals.decide(audit.id, "Ana", approved=True)
        return audit.id


# ---------------------------------------------------------------- labels


def keep_calls(place: Path) -> None:
    """A run of an agent's calls that two people labelled, with what its harness and the rules did."""
    judge_calls(place, [make_call_case(n, bad=n % 3 == 0, judge=n % 3 > 0 or n == 0) for n in range(24)])
    with open_label_queue(place, per_case=2) as queue:
        for name in ("Ana", "Ben Okafor"):
            for task in iter(lambda name=name: queue.next(name), None):
                queue.record(name, task.case, "bad " not in str(task.content))


def keep_labels(folder: Path, *, cases: int = 60, labelled: int = 24) -> None:
    """A run that two people began to label, a case in about twenty seconds, and differ about some."""
    rows = [
        Case(id=f"case-{number}", task=_ASKED, content=_ANSWERED.format(number=number), reference="The parcel is lost.")
        for number in range(cases)
    ]
    reply = {"criteria": [{"name": item["name"], "reasoning": "It is.", "score": 1.0} for item in RUBRIC["criteria"]]}
    plain = RUBRIC | {"criteria": [{**item, "quote": False} for item in RUBRIC["criteria"]]}
    run(rows, Judge(ScriptedModel(reply)), rubric=plain, out=folder).finish_sync()
    begun = datetime.now(UTC) - timedelta(minutes=20)
    with open_label_queue(folder, per_case=2) as queue:
        for number in range(labelled):
            moment = begun + timedelta(seconds=21 * number + number % 3)
            with server_demo.written_at(moment, label_store):
                _label(queue.next, queue.record, "Ana", number % 4 > 0)
                if number < labelled // 2:
                    _label(queue.next, queue.record, "Ben Okafor", number % 5 > 0)


def keep_plan(folder: Path) -> str:
    """A run with an open plan; a case of it that is still to label."""
    make_run(folder, 20)
    with open_run(folder) as planned:
        plan = make_plan(planned, seed=1)
    write_plan(plan, folder)
    return plan.order[0].case


def keep_comparisons(folder: Path) -> None:
    """Two systems and two judges, each pair compared by what people said."""
    systems, judges = make_systems(folder), make_judges(folder)
    draw(*systems, within=0.1)
    label_planned(*systems)
    with open_label_queue(judges[0]) as queue:
        for _ in range(40):
            task = queue.next("Ben Okafor")
            assert task is not None
            queue.record("Ben Okafor", task.case, is_good(str(task.content)))
    # The first comparison imports much of scipy, for which a page on a busy machine has too little time.
    assert compare_judges(*judges).agreement.of == 40
    for one in (*systems, *judges):
        one.close()


def _label(take: Callable[[str], Any], record: Callable[..., Any], rater: str, good: bool) -> None:
    task = take(rater)
    assert task is not None
    record(rater, task.case, good, comment=None if good else "The number of the parcel is not in the order.")
