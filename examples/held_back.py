"""An agent's answers held back, decided by people, and proven a year later from an export alone.

Run it: python examples/held_back.py
It asks nobody and needs no key: the judge is a stand-in, and the people are two lines of this program. It writes to a
temporary folder.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from adjudge import Approvals, Decision, Gate, Ledger
from adjudge.ledger import Head, derive_audit, verify_export
from adjudge.models import Request
from adjudge.testing import ScriptedModel

RUBRIC = {
    "name": "Support answer",
    "criteria": [{"name": "in-policy", "description": "Promises nothing that the policy does not say."}],
}
POLICY = "A return label is in every box. Only a person may promise a refund."
ANSWERS = {
    "label": "The return label is in the box.",
    "refund": "You get a full refund within two days.",
    "voucher": "You get a refund and a voucher of 500 on top.",
}


def stand_in(request: Request) -> dict[str, object]:
    """A judge that looks for one word."""
    promises = "refund" in request.user.partition("<<content")[2]
    said = "The policy leaves refunds to a person." if promises else "It is in the policy."
    return {"criteria": [{"name": "in-policy", "reasoning": said, "score": 0.1 if promises else 1.0}]}


def make_gate(ledger: Ledger, approvals: Approvals) -> Gate:
    """Make a gate that holds failed answers back until Ana or Bob has decided, and does not wait for them."""
    return Gate(
        "answers",
        rubric=RUBRIC,
        judge=ScriptedModel(stand_in, name="policy-judge"),
        on_failed="ask",
        approvals=approvals,
        ask={"approvers": ["ana", "bob"], "expires_in": 86_400},
        show_content=True,
        wait=False,
        ledger=ledger,
    )


async def hold_and_decide(folder: Path) -> tuple[dict[str, str], Head]:
    """Put the answers through the gate, let people decide, export the ledger; return digests and head."""
    async with Ledger(f"sqlite:///{folder / 'adjudge.db'}") as ledger, Approvals(ledger) as approvals:
        gate = make_gate(ledger, approvals)
        held = {name: await gate.check(text, context=POLICY) for name, text in ANSWERS.items()}
        for name, decision in held.items():
            tell(name, decision)

        for request in await approvals.list(approver="ana"):  # what a person sees
            print(f"  to decide: {request.content!r}, which {request.reason}")
        await approvals.decide(held["refund"].approval_id or "", "ana", True, "the policy changed this morning")
        await approvals.decide(held["voucher"].approval_id or "", "bob", False, "nobody agreed to a voucher")

        for name, decision in held.items():
            if decision.pending:  # to_dict() and from_dict() take it to another process
                tell(name, await gate.resume(Decision.from_dict(decision.to_dict())))
        head = await ledger.export(folder / "ledger.jsonl")
    return {decision.subject or "": name for name, decision in held.items()}, head


def tell(name: str, decision: Decision) -> None:
    """Describe a decision in one line."""
    word = "held back" if decision.pending else "sent" if decision else "not sent"
    print(f"  {name}: {word}; {decision.explain()}")


def delete_store(folder: Path) -> None:
    """Delete the ledger, so that only its export is left."""
    for file in folder.glob("adjudge.db*"):
        file.unlink()


def tell_votes(export: Path, names: dict[str, str]) -> None:
    """List who decided what, and why, from the entries of the export."""
    for line in export.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        if entry["kind"] == "approval.voted":
            vote = entry["payload"]
            word = "approved" if vote["approved"] else "denied"
            print(f"  entry {entry['seq']}: {names[entry['subject']]} {word} by {vote['by']}: {vote['reason']}")


async def prove(export: Path, names: dict[str, str], head: Head) -> None:
    """Show what the export alone proves, without the store, the gate or the judge."""
    checked = verify_export(export, head=head)
    print(f"  {'in order' if checked.valid else checked.detail}: {checked.entries} entries, up to the head we kept")
    tell_votes(export, names)
    audit = await derive_audit(export, head=head)
    for item in audit.judged:
        print(f"  {names[item.subject]} {item.outcome}, and was {item.became} by {item.by or item.judge}")
    print(f"  opinion {audit.explain()}")
    for found in audit.found:
        print(f"    {found.severity}: {found.detail} (entry {found.seq})")


def forge(export: Path, head: Head) -> None:
    """Change one letter in a copy, so that a denial seems to be somebody else's."""
    copy = export.with_name("forged.jsonl")
    copy.write_bytes(export.read_bytes().replace(b'"by":"bob"', b'"by":"rob"', 1))
    found = verify_export(copy, head=head)
    print(f"  {'in order' if found.valid else f'not in order: {found.detail} [{found.code}]'}")


async def main(folder: Path) -> None:
    """Run the whole example, from the first answer to the forged copy."""
    print("The gate decides, and then people do:")
    names, head = await hold_and_decide(folder)
    delete_store(folder)
    print(f"The store is deleted. The export is left, and its head {head.seq}:{head.hash[:12]}..., kept elsewhere:")
    await prove(folder / "ledger.jsonl", names, head)
    print("A copy of the export in which one letter was changed:")
    forge(folder / "ledger.jsonl", head)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        asyncio.run(main(Path(temporary)))
