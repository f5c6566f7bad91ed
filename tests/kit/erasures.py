"""The texts kept about two customers, in every kind of place, for tests that delete what is about one of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

from adjudge import Approvals, Gate, Judge, Ledger
from adjudge import run as run_cases
from adjudge.dataset import Label, write_labels
from adjudge.erasure.choice import read_choice
from adjudge.erasure.forget import Places, forget
from adjudge.erasure.ledger import Order
from adjudge.erasure.report import ForgetReport
from adjudge.labels import open_label_queue
from adjudge.models import RecordingModel, ReplyCache
from adjudge.models.replies.cache import CachedModel
from adjudge.testing import ScriptedModel

SECRET = "Ada Lovelace lives at 12 St James's Square"
"""A part of every text about the customer who is forgotten."""

OTHER = "The weather is fine today"
"""A part of every text about another customer, which has to stay."""

RUBRIC = {"name": "Kind", "criteria": [{"name": "criteria", "description": "Is kind."}]}


class Echo:
    """A model that quotes the content in its reply, and says that it is bad."""

    name = "echo"
    identity: ClassVar[dict[str, int]] = {"version": 1}
    hosts = ()
    structured = False

    async def complete(self, request: Any) -> Any:
        about = SECRET if SECRET in request.user else OTHER
        reply = {"criteria": [{"reasoning": f"It says: {about}", "score": 0.2}]}
        return await ScriptedModel(reply).complete(request)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Everything that was kept, in a folder and a ledger."""

    folder: Path
    url: str

    @property
    def files(self) -> Iterator[Path]:
        """Every file that adjudge wrote, with the logs beside databases."""
        return (path for path in sorted(self.folder.rglob("*")) if path.is_file() and path.name != "data.jsonl")

    def find(self, text: str) -> list[str]:
        """The names of the files whose bytes hold a text."""
        forms = {text.encode(), json.dumps(text)[1:-1].encode()}
        return [path.name for path in self.files if any(form in path.read_bytes() for form in forms)]

    def forget(self, *, dry_run: bool = False, subject: str | None = None, **metadata: str) -> ForgetReport:
        """Do what ``adjudge forget`` does in all of it."""
        choice = [f"{name}={value}" for name, value in metadata.items()]
        return asyncio.run(self._forget(subject, choice[0] if choice else None, dry_run=dry_run))

    async def _forget(self, subject: str | None, metadata: str | None, *, dry_run: bool) -> ForgetReport:
        order = Order(choice=read_choice(subject, metadata), reason="asked for", by="ana")
        names = {"caches": "cache.sqlite", "recordings": "recorded.jsonl", "labels": "labels.jsonl", "runs": "monday"}
        there = {name: tuple(path for path in [self.folder / file] if path.exists()) for name, file in names.items()}
        async with Ledger(self.url) as ledger:
            return await forget(order, Places(ledger=ledger, **there), dry_run=dry_run)  # type: ignore[arg-type]


def count(report: ForgetReport) -> dict[str, int]:
    """Count the texts that a report says were deleted, by place."""
    return {each.place: each.count for each in report.deleted if each.count}


async def fill(
    folder: Path, url: str, *, about: Mapping[str, Any], other: Mapping[str, Any], store_content: Any = "full"
) -> Kept:
    """Keep something about two customers, whose metadata are these: decisions, approvals, replies, a run and labels."""
    await fill_ledger(folder, url, about=about, other=other, store_content=store_content)
    rows = [
        {"id": f"case-{number}", "content": f"{text} {number}", "label": True, "metadata": metadata, "group": "g"}
        for number, (text, metadata) in enumerate([(SECRET, about), (OTHER, other)] * 2)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    await run_cases(folder / "data.jsonl", Judge(Echo(), name="echo"), RUBRIC, out=folder / "monday")
    queue = open_label_queue(folder / "monday")
    labels = [
        queue.record("ben", f"case-{number}", True, comment=f"I read: {SECRET if number % 2 == 0 else OTHER}")
        for number in range(4)
    ]
    queue.close()
    bare = [
        Label(case=label.case, rater="cy", value=True, subject=label.subject, comment=label.comment) for label in labels
    ]
    write_labels(folder / "labels.jsonl", bare)
    return Kept(folder=folder, url=url)


async def fill_ledger(
    folder: Path, url: str, *, about: Mapping[str, Any], other: Mapping[str, Any], store_content: Any = "full"
) -> Kept:
    """Keep decisions, requests that people decided and that are open, replies and a recording."""
    async with Ledger(url, store_content=store_content) as ledger:
        approvals = Approvals(ledger)
        cache = ReplyCache(folder / "cache.sqlite")
        judge = Judge(RecordingModel(CachedModel(Echo(), cache), folder / "recorded.jsonl"), name="echo")
        ask = {"approvers": ["ana"]}
        gate = Gate("mail", RUBRIC, judge, on_failed="ask", approvals=approvals, ask=ask, show_content=True, wait=False,
                    ledger=ledger)  # fmt: skip
        for text, metadata in ((SECRET, about), (OTHER, other)):
            decided = await gate.check(text, task=f"About: {text}", metadata={**metadata, "title": text})
            assert decided.approval_id is not None
            await approvals.decide(decided.approval_id, "ana", True, f"because {text}")
            assert await gate.resume(decided)
            await gate.check(f"{text}!", metadata={**metadata, "title": text})
        cache.close()
    return Kept(folder=folder, url=url)


SUBJECT = sha256(SECRET.encode()).hexdigest()
"""The digest of the first content."""
