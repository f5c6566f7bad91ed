"""A client believes an answer only about what it asked: every other answer blocks, rejects or raises."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from adjudge import (
    Approvals,
    Client,
    Decision,
    EmergentJudge,
    Gate,
    InputFirewall,
    Judge,
    PromptFirewall,
    ServerError,
    UsageError,
)
from adjudge.testing import ScriptedModel
from adjudge.tools import ToolCandidate
from kit import tools
from kit.answering import answering
from kit.firewalls import CLEAN, SAFE, reject
from kit.patience import HANG

pytestmark = pytest.mark.timed


RULES = [{"name": "length", "max": 3}]
ASK: dict[str, Any] = {"approvers": ["Ana"]}


@dataclass(frozen=True, slots=True)
class Held:
    """What a gate held back, and the decision once it was approved."""

    waits: Decision
    approved: Decision


async def hold(folder: Path, content: str, *, gate: str = "held", **data: Any) -> Held:
    """Ask people about a content, in a ledger of its own, and have them approve it."""
    async with Approvals(f"sqlite:///{folder / 'adjudge.db'}") as approvals:
        asking = Gate(gate, rules=RULES, on_failed="ask", approvals=approvals, ask=ASK, wait=False)
        waits = await asking.check(content, **data)
        await approvals.decide(str(waits.approval_id), "Ana", True)
        return Held(waits, await asking.resume(str(waits.approval_id), content=content))


@pytest.fixture(scope="module")
def held(tmp_path_factory) -> Held:
    return asyncio.run(hold(tmp_path_factory.mktemp("ledger"), "the content", task="the task"))


@pytest.fixture(scope="module")
def others(tmp_path_factory) -> dict[str, Held]:
    """Approvals that are about something else."""

    async def make() -> dict[str, Held]:
        folder = tmp_path_factory.mktemp("ledger")
        return {
            "another content": await hold(folder, "other content", task="the task"),
            "another gate": await hold(folder, "the content", gate="lax", task="the task"),
            "another task": await hold(folder, "the content", task="other task"),
            "no task": await hold(folder, "the content"),
            "another time": await hold(folder, "the content", task="the task"),
        }

    return asyncio.run(make())


OTHERS = ("another content", "another gate", "another task", "no task", "another time")


def get_answer(body: object, ask: Callable[[Client], Any], *, verb: str = "POST") -> Any:
    """What a client makes of an answer."""
    with answering((200, {}, json.dumps(body).encode()), verb=verb) as (url, _):
        client = Client(url, timeout=HANG)
        try:
            return ask(client)
        finally:
            client.close()


def resume(answer: Decision, asked: Decision | str, **options: Any) -> Decision:
    return get_answer(answer.to_dict(), lambda client: client.gate("held").resume_sync(asked, **options))


@pytest.mark.parametrize("asks", ["decision", "id"])
@pytest.mark.parametrize("options", [{}, {"content": "the content"}, {"content": "the content", "task": "the task"}])
def test_an_answer_about_what_was_asked_goes_on(asks: str, options: dict[str, Any], held: Held):
    """With the decision or its id, with what is used or without."""
    asked: Any = held.waits if asks == "decision" else held.waits.approval_id

    assert resume(held.approved, asked, **options) == held.approved


@pytest.mark.parametrize("asks", ["decision", "id"])
@pytest.mark.parametrize("about", OTHERS)
def test_an_approval_of_something_else_blocks(asks: str, about: str, held: Held, others: dict[str, Held]):
    """Whichever of its parts is another, and whether its id is its own or the one that was asked about."""
    asked: Any = held.waits if asks == "decision" else held.waits.approval_id
    for answer in (others[about].approved, others[about].waits):
        decision = resume(answer, asked, content="the content", task="the task")

        assert (decision.allowed, decision.pending, decision.decided_by) == (False, False, "policy")
        assert "does not count" in decision.detail
        assert decision.approval_id == held.waits.approval_id


@pytest.mark.parametrize("about", ["another content", "another gate", "another task", "no task"])
def test_an_approval_with_an_id_put_in_blocks(about: str, held: Held, others: dict[str, Held]):
    """Its parts are compared as well, with what is about to be used."""
    answer = replace(others[about].approved, approval_id=held.waits.approval_id)
    for asked in (held.waits, str(held.waits.approval_id)):
        decision = resume(answer, asked, content="the content", task="the task")

        assert (decision.allowed, decision.decided_by) == (False, "policy")


@pytest.mark.parametrize(
    "options", [{"content": "other"}, {"content": "the content", "task": "other"}, {"task": None}, {"context": "any"}]
)
def test_what_is_about_to_be_used_has_to_be_what_was_approved(options: dict[str, Any], held: Held):
    """The client compares by itself: a server that was changed could leave it out."""
    for asked in (held.waits, str(held.waits.approval_id)):
        assert resume(held.approved, asked, **options).allowed is False
        assert resume(held.waits, asked, **options).pending is False


def test_a_denial_stays_the_servers_own(held: Held):
    """A block about another content is what the server found, with its place in the ledger."""
    blocked = replace(held.approved, allowed=False, decided_by="policy", detail="the content is another", ledger_seq=7)

    assert resume(blocked, str(held.waits.approval_id), content="other") == blocked


@pytest.mark.parametrize(("about", "data"), [("another task", {"task": "the task"}), ("no task", {"task": "the task"})])
def test_people_who_are_asked_about_another_task_are_not_waited_for(about, data, others: dict[str, Held]):
    """What waits is blocked at the check."""
    document = others[about].waits.to_dict()
    decision = get_answer(document, lambda client: client.gate("held").check_sync("the content", **data))

    assert (decision.allowed, decision.pending) == (False, False)


def test_a_pending_decision_that_is_about_what_was_sent_waits(held: Held):
    """With its task."""
    document = held.waits.to_dict()
    decision = get_answer(document, lambda client: client.gate("held").check_sync("the content", task="the task"))

    assert decision == held.waits


def test_a_decision_that_waits_for_no_approval_blocks(held: Held):
    """Nobody could be asked for it."""
    document = replace(held.waits, approval_id=None).to_dict()
    decision = get_answer(document, lambda client: client.gate("held").check_sync("the content", task="the task"))

    assert (decision.allowed, decision.pending) == (False, False)


@pytest.mark.parametrize("about", ["an allowed one", "another gate"])
def test_a_list_of_pending_decisions_holds_nothing_else(about: str, held: Held, others: dict[str, Held]):
    """Nor one that could be taken for allowed."""
    other = held.approved if about == "an allowed one" else others[about].waits
    document = {"schema": "adjudge/decisions/1", "decisions": [held.waits.to_dict(), other.to_dict()]}
    with pytest.raises(ServerError):
        get_answer(document, lambda client: client.gate("held").pending_sync(), verb="GET")


def list_approvals(folder: Path) -> list[Any]:
    async def make() -> list[Any]:
        async with Approvals(f"sqlite:///{folder / 'adjudge.db'}") as approvals:
            gate = Gate("held", rules=RULES, on_failed="ask", approvals=approvals, ask=ASK, wait=False)
            for content in ("first content", "second content"):
                await gate.check(content)
            return list(await approvals.list())

    return asyncio.run(make())


def test_an_approval_is_the_one_that_was_asked_about(tmp_path: Path):
    """To look at, and to decide."""
    first, second = list_approvals(tmp_path)
    document = second.to_dict()

    assert get_answer(document, lambda client: client.approvals().get_sync(second.id), verb="GET") == second
    assert get_answer(document, lambda client: client.approvals().decide_sync(second.id, False)) == second
    with pytest.raises(ServerError, match="another approval"):
        get_answer(document, lambda client: client.approvals().get_sync(first.id), verb="GET")
    with pytest.raises(ServerError, match="another approval"):
        get_answer(document, lambda client: client.approvals().decide_sync(first.id, False))


def judge_content(content: str = "the content", **options: Any) -> dict[str, Any]:
    judge = Judge(lambda content: True, name="calm")
    return judge.evaluate_sync(content, **({"criteria": "Polite."} | options)).to_dict()


TWO = {"polite": "Polite.", "short": "Short."}


@pytest.mark.parametrize(
    ("document", "asked"),
    [
        (judge_content("other content"), {"criteria": "Polite."}),
        (judge_content(), {"criteria": TWO}),
        (judge_content(criteria="Polite.", threshold=0.1), {"criteria": "Polite."}),
        (judge_content(criteria="Polite.", threshold=0.1), {"criteria": "Polite.", "threshold": 0.9}),
        (
            judge_content(),
            {"rubric": {"name": "r", "criteria": [{"name": "short", "description": "Short."}]}},
        ),
    ],
)
def test_a_pass_by_other_criteria_than_were_sent_is_none(document: dict[str, Any], asked: dict[str, Any]):
    """Or about another content."""
    assert document["outcome"] == "passed"
    assert (
        get_answer(document, lambda client: client.judge().evaluate_sync("the content", **asked)).outcome == "undecided"
    )


@pytest.mark.parametrize(
    "asked", [{"criteria": "Polite."}, {"criteria": "Polite.", "threshold": 0.9}, {"criteria": ["Polite."]}]
)
def test_a_pass_by_the_criteria_that_were_sent_counts(asked: dict[str, Any]):
    """However they are written."""
    document = judge_content(**asked)

    assert get_answer(document, lambda client: client.judge().evaluate_sync("the content", **asked)).passed


def test_arguments_that_passed_are_those_that_were_sent():
    """Another value, or another name, is rejected."""
    document = InputFirewall(Judge(ScriptedModel(CLEAN))).check_sync({"to": "ana"}).to_dict()

    assert document["passed"] is True
    assert get_answer(document, lambda client: client.input_firewall().check_sync({"to": "ana"})).passed is True
    for other in ({"to": "ben"}, {"from": "ana"}, {"to": "ana", "cc": "ben"}):
        assert (
            get_answer(document, lambda client, other=other: client.input_firewall().check_sync(other)).passed is False
        )


def test_rules_that_are_kept_or_rejected_are_those_that_were_sent():
    """Each by its place and its words."""
    document = PromptFirewall(Judge(ScriptedModel(SAFE))).check_sync(["Be kind.", "Be short."]).to_dict()

    def check(document: object, rules: list[str]) -> tuple[str, ...]:
        return get_answer(document, lambda client: client.prompt_firewall().check_sync(rules)).allowed

    assert check(document, ["Be kind.", "Be short."]) == ("Be kind.", "Be short.")
    for other in (
        ["Be kind."],
        ["Be short.", "Be kind."],
        ["Be kind.", "Be rude."],
        ["Be kind.", "Be short.", "More."],
    ):
        assert check(document, other) == ()
    strict = PromptFirewall(Judge(ScriptedModel(reject(2))), on_unsafe="drop_flagged")
    gone = strict.check_sync(["Be kind.", "Be short."]).to_dict()
    assert check(gone, ["Be kind.", "Be short."]) == ("Be kind.",)
    assert check(gone, ["Be kind.", "Be rude."]) == ()


def test_a_review_is_of_the_tool_that_was_sent():
    """Nothing else is approved, and no output of another question is valid."""
    model = ScriptedModel(tools.approval())
    candidate = tools.candidate()
    document = asyncio.run(EmergentJudge(Judge(model)).review_creation(candidate)).to_dict()
    other = ToolCandidate.from_dict({**candidate.to_dict(), "source": candidate.source + "\n# changed\n"})

    assert get_answer(document, lambda client: client.emergent_judge().review_creation_sync(candidate)).approved is True
    assert get_answer(document, lambda client: client.emergent_judge().review_creation_sync(other)).approved is False


def test_an_output_is_valid_for_the_question_that_was_asked():
    """The answer holds the digest of tool, output, schema and history."""
    asked = ("tool-1", {"sum": 3}, tools.INTEGER)
    document = answer_reuse(*asked)

    def check(*asked: Any, **more: Any) -> bool:
        return get_answer(document, lambda client: client.emergent_judge().validate_reuse_sync(*asked, **more)).valid

    assert check(*asked) is True
    assert check("tool-2", *asked[1:]) is False
    assert check("tool-1", {"sum": 4}, asked[2]) is False
    assert check("tool-1", {"sum": 3}, {}) is False
    assert check(*asked, strict_properties=True) is False


def answer_reuse(tool: str, output: object, schema: object) -> dict[str, Any]:
    """A real server's answer, which the digest of the client's own body is compared with."""
    requests: list[Any] = []
    with answering((200, {}, b"{}")) as (url, received):
        client = Client(url, timeout=HANG)
        client.emergent_judge().validate_reuse_sync(tool, output, schema)
        client.close()
        requests += received
    body = json.loads(requests[0][1])
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    return {"schema": "adjudge/reuse-verdict/1", "valid": True, "schema_errors": [], "request": digest}


def test_a_gate_resumes_the_decision_of_the_id_that_it_was_given(tmp_path: Path, held: Held):
    """In one program as well: an asker that gives the decision of another id is refused."""

    class Mixed(Approvals):
        """Approvals that give any id the same decision."""

        first = ""

        async def pending(self, id: str) -> Any:  # noqa: A002 - as in Approvals
            return await super().pending(self.first)

    async def run() -> Decision:
        async with Mixed(f"sqlite:///{tmp_path / 'adjudge.db'}") as mixed:
            gate = Gate("held", rules=RULES, on_failed="ask", approvals=mixed, ask=ASK, wait=False)
            first, second = [await gate.check(content) for content in ("first content", "second content")]
            mixed.first = str(first.approval_id)
            await mixed.decide(mixed.first, "Ana", True)
            return await gate.resume(str(second.approval_id))

    with pytest.raises(UsageError, match="waits for approval"):
        asyncio.run(run())
