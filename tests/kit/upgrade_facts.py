"""The facts that a version's files hold, read through public names, as JSON: to be compared with another's."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from adjudge import Approvals, Ledger, ToolRegistry, load_rubric, load_rules, open_dataset, open_run
from adjudge.agents import read_run
from adjudge.dataset import load_labels
from adjudge.guards import load_probes, read_certificate, read_monitor
from adjudge.labels import find_truths, load_looks, load_plan, open_label_queue
from adjudge.measurement import make_measurement, read_release_policy
from adjudge.report import make_report
from adjudge.server import list_accounts, list_keys


def describe_all(folder: Path, url: str | None = None) -> dict[str, Any]:
    """Everything that the files of a folder say, and the ledger at another address."""
    ledgers = {"sqlite": f"sqlite:///{folder / 'adjudge.db'}"} | ({} if url is None else {"postgresql": url})
    facts = {
        "ledgers": {name: asyncio.run(describe_ledger(folder, address)) for name, address in ledgers.items()},
        "runs": {place.name: describe_run(place) for place in sorted((folder / "runs").iterdir())},
        "files": describe_files(folder),
    }
    plain: dict[str, Any] = json.loads(json.dumps(facts, default=str))
    return plain


async def describe_ledger(folder: Path, url: str) -> dict[str, Any]:
    """The entries of a ledger, and everything that stands beside them in its database."""
    opened = Ledger(url, key=str(folder / "ledger-key.pem"))
    async with opened as ledger, Approvals(ledger) as approvals, ToolRegistry(ledger) as registry:
        entries = [entry async for entry in ledger.query()]
        checked = await ledger.verify()
        asked = [*await approvals.list(status=None), *await approvals.list(status=None, audits=True)]
        pending = await approvals.list_pending(status=None)
        return {
            "valid": checked.valid,
            "signatures": checked.signatures,
            "head": str(await ledger.head()),
            "entries": [[entry.seq, entry.kind, entry.subject, entry.hash] for entry in entries],
            "failed": [entry.seq async for entry in ledger.query(outcome="failed")],
            "seat": [entry.seq async for entry in ledger.query(judge="b")],
            "execution": [entry.seq async for entry in ledger.query(execution="nightly")],
            "approvals": {item.id: item.to_dict() for item in asked},
            "pending": [stored.decision.to_dict() for stored in pending],
            "waiting": [item.id for item in await approvals.list_queue()],
            "figures": (await approvals.compute_figures("ana")).to_dict(),
            "overrides": [label.to_dict() async for label in approvals.override_labels()],
            "monitor": (await read_monitor(ledger, "audited")).to_dict(),
            "tools": [tool.to_dict() for tool in await registry.list()],
            "keys": [[key.prefix, key.name, key.revoked_at] for key in await list_keys(ledger)],
            "accounts": [account.name for account in await list_accounts(ledger)],
        }


def describe_run(place: Path) -> dict[str, Any]:
    """The results of a run, and what people said of its cases."""
    facts: dict[str, Any] = {}
    with open_run(place) as found:
        facts["run"] = found.to_dict()
        facts["items"] = [
            [item.case.id, item.subject, item.result.outcome, item.result.score, item.result.model]
            for item in found.items()
        ]
        facts["report"] = make_report(found).to_dict()
        if (place / "plan.json").exists():
            plan = load_plan(found)
            assert plan is not None
            facts["plan"] = plan.to_dict()
            facts["looks"] = [look.to_dict() for look in load_looks(place)]
            facts["measurement"] = make_measurement(found).to_dict()
    if "plan" in facts:
        with open_label_queue(place) as queue:
            facts["labels"] = [label.to_dict() for label in queue.labels()]
            facts["progress"] = queue.progress("ann").to_dict()
    return facts


def describe_files(folder: Path) -> dict[str, Any]:
    """Describe what stands alone in a file."""
    names = ("labels.jsonl", "labels.csv")
    labels = {name: load_labels(folder / name) for name in names}
    policy = read_release_policy(folder / "policy.json")
    return {
        **{name: [label.to_dict() for label in found] for name, found in labels.items()},
        "truths": {case: truth.to_dict() for case, truth in find_truths(labels["labels.jsonl"]).items()},
        "letters.jsonl": [case.to_dict() for case in open_dataset(folder / "letters.jsonl")],
        "polite.yaml": load_rubric(folder / "polite.yaml").to_dict(),
        "rules.yaml": [rule.name for rule in load_rules(folder / "rules.yaml")],
        "probes.yaml": [entry.name for entry in load_probes(folder / "probes.yaml").entries],
        "agent-run.json": read_run(folder / "agent-run.json").to_dict(),
        "certificate.json": read_certificate(folder / "certificate.json").to_dict(),
        "policy.json": policy.to_dict(),
    }


def find_differences(expected: Any, now: Any, place: str = "") -> Iterator[str]:
    """Find where a version reads something else than the one before; a member that is new is no difference."""
    if isinstance(expected, Mapping) and isinstance(now, Mapping):
        for name, value in expected.items():
            yield from find_differences(value, now.get(name, "absent"), f"{place}/{name}")
    elif isinstance(expected, list) and isinstance(now, list) and len(expected) == len(now):
        for number, (one, other) in enumerate(zip(expected, now, strict=True)):
            yield from find_differences(one, other, f"{place}/{number}")
    elif isinstance(expected, float) and isinstance(now, float | int):
        # Statistics in floating point may differ in the last digits between versions of NumPy and of processors.
        if not math.isclose(expected, now, rel_tol=1e-9, abs_tol=1e-12):
            yield f"{place}: {expected!r} was read before, and {now!r} now"
    elif expected != now:
        yield f"{place}: {expected!r} was read before, and {now!r} now"
