"""The ledgers, requests, gates and accounts that readers of pages have before their first command."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from adjudge import Approvals, Case, Gate, Ledger
from adjudge.dataset import write_cases
from adjudge.guards import Audit
from adjudge.ledger import create_signing_key
from kit import approvals, audited, certificates, docs, erasures, house
from kit.cli import ME
from kit.example_model import ExampleModel

URL = "sqlite:///adjudge.db"
"""The ledger that the pages name."""

ENOUGH = 150
"""The cases that it takes to show that a candidate is at most 2 points worse."""

TYPED = {
    f"adjudge accounts {command}": f"echo 'eleven crows and a key' | adjudge accounts {command}"
    for command in ("add", "password")
}
"""The commands that ask for a password on a terminal, with one on standard input in place of what a reader types."""


def call(*arguments: str, status: int = 0) -> str:
    """Call adjudge, which has to end with this status, and return what it printed."""
    ended, printed = docs.run_commands([list(arguments)], goes_on=True)
    assert ended == status, printed
    return printed


def find_file(page: str, title: str) -> str:
    """The text of a file that a page shows."""
    return next(block.text for block in docs.read_blocks(house.ROOT / page) if block.title == title)


def hold_answer(directory: Path, approver: str) -> str:
    """Have the gate of docs/gate.md ask somebody about an answer, and return the id of the request."""
    config = find_file("docs/gate.md", "adjudge.toml").replace('"ana"', f'"{approver}"')
    (directory / "adjudge.toml").write_text(config, encoding="utf-8")
    (directory / "answer.txt").write_text("You get a refund.\n", encoding="utf-8")
    call("gate", "check", "publish", "answer.txt", status=3)
    [request] = json.loads(call("approvals", "list", "--json"))["approvals"]
    return str(request["id"])


def prepare_request(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """A request that the account running this may decide."""
    ident = hold_answer(directory, ME)
    seen = json.loads(call("approvals", "show", ident, "--json"))["shown"]
    return {"8f3a21c0b7de": ident[-12:], "3c0f5e2b91aa": seen[:12], "ana": ME}


def prepare_decided_request(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """A request that Ana approved."""
    ident = hold_answer(directory, "ana")
    approvals.use(URL, lambda made: made.decide(ident, "ana", True, "the policy changed today"))
    return {"APPROVAL": ident}


def name_own_request(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Name the one request of the page itself by the characters with which all ids of these weeks begin."""
    return {"show ID": f"show {approvals.make_result().id[:4]}"}


def prepare_request_elsewhere(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """A request in a ledger of its own, for the page counts the entries of the one that it makes."""
    ident = approvals.use(
        "sqlite:///requests.db",
        lambda made: made.request(approvals.make_result(), "Publish it?", approvers=["ana"]),
    )
    return {"adjudge.db --approval da6844894e98": f"requests.db --approval {ident[-12:]}"}


def prepare_customers(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Texts about two customers in every place that keeps some, one of which names the other customer."""
    places = (
        'runs = ["monday"]\ncaches = ["cache.sqlite"]\nrecordings = ["recorded.jsonl"]\nlabels = ["labels.jsonl"]\n'
    )
    config = f'[ledger]\nurl = "{URL}"\nstore_content = "full"\n\n[forget]\n{places}'
    (directory / "adjudge.toml").write_text(config, encoding="utf-8")
    one, other = {"customer": "C-20931"}, {"customer": "C-1"}

    async def fill() -> None:
        await erasures.fill(directory, URL, about=one, other=other)
        async with Ledger(URL, store_content="full") as ledger:
            gate = Gate("answers", rules=[{"regex": "refund", "absent": True}], ledger=ledger)
            await gate.check("We asked C-20931 too.", metadata=other)

    asyncio.run(fill())
    return {}


def type_passwords(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Somebody who types passwords."""
    return TYPED


def prepare_certified_gate(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """A signed ledger with a certificate and a gate of which people audited enough, and the price of the double."""
    (directory / "ledger.pub").write_text(create_signing_key(directory / "ledger-key.pem"), encoding="utf-8")
    # adjudge knows no price at the double's address, and the script has a budget.
    prices = '"gpt-6.1-terra" = {input = 1.0, output = 5.0}'
    config = f'[ledger]\nurl = "{URL}"\nkey = "ledger-key.pem"\n\n[prices]\n{prices}\n'
    (directory / "adjudge.toml").write_text(config, encoding="utf-8")
    ledger = Ledger(URL, key="ledger-key.pem")
    run = certificates.make_labelled_run(directory / "monday", cases=30, labelled=20)
    certificates.make_certificate_file(run, ledger, directory / "certificate.json")

    async def audit() -> None:
        async with ledger, Approvals(ledger) as asked:
            gate = audited.make_gate(ledger, asked, audit=Audit(share=1.0, approvers=("ana",)))
            await audited.label(gate, asked, [True] * 50)

    asyncio.run(audit())
    return {}


def prepare_checkout(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """A checkout of the base branch as the working directory, the answers to judge, and a run of those before."""
    trusted = directory / ".trusted"
    (trusted / "rubrics").mkdir(parents=True)
    rubric = {"name": "Support", "criteria": [{"name": "polite", "description": "Is polite."}]}
    (trusted / "rubrics" / "support.yaml").write_text(json.dumps(rubric), encoding="utf-8")
    for name, greeting in (("before", "Hello"), ("answers", "Dear Ann")):
        cases = [Case(id=f"{number}", content=f"{greeting}, parcel {number} left.") for number in range(ENOUGH)]
        write_cases(directory / f"{name}.jsonl", cases)
    os.chdir(trusted)
    options = ("--rubric", "rubrics/support.yaml", "--judge", "openai:gpt-6.1-terra", "--out", "../baseline")
    call("run", "../before.jsonl", *options)
    return {}


PREPARED: Mapping[str, Callable[[Path, ExampleModel], Mapping[str, str]]] = {
    "README.md": name_own_request,
    "docs/ci.md": prepare_checkout,
    "docs/decide-requests.md": prepare_request,
    "docs/gate.md": prepare_decided_request,
    "docs/ledger.md": prepare_request_elsewhere,
    "docs/nightly.md": prepare_certified_gate,
    "docs/retention.md": prepare_customers,
    "docs/typescript.md": type_passwords,
}
"""By the page's place in the repository: see ``kit.page_files``."""
