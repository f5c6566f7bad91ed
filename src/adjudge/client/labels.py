"""A server's queue of labelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from adjudge.client.connection import Connection
from adjudge.client.payload import read_answer
from adjudge.dataset.case import LabelValue
from adjudge.dataset.label import Label
from adjudge.errors import ServerError
from adjudge.formats.typed import read_typed
from adjudge.labels.task import LabelProgress, LabelTask
from adjudge.rubric.file import load_rubric
from adjudge.sync import run_sync

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteLabelQueue:
    """The queue of a server's run. The key's own name as a rater is who labels."""

    connection: Connection
    run: str

    async def next(self, *, skipped: bool = False) -> LabelTask | None:
        """The next question, blind, or ``None`` where nothing is left now; its contents are texts, as shown."""
        return self._read(_read_next, await self._post("next", {"skipped": skipped}), "task")

    async def record(
        self,
        case: str,
        value: LabelValue,
        *,
        criterion: str | None = None,
        comment: str | None = None,
        subject: str | None = None,
    ) -> Label:
        """Keep an answer, and return it as a label; it replaces what was answered before.

        ``subject`` is that of the task: an answer about another content is refused.
        """
        body = {"case": case, "value": value, "criterion": criterion, "comment": comment, "subject": subject}
        return self._read_label(await self._post("labels", body), case, criterion, subject)

    async def skip(self, case: str) -> None:
        """Put a case off."""
        await self._post("skip", {"case": case})

    async def undo(self) -> str | None:
        """Take back the last answer or skip, and return its case; ``None`` where there is none."""
        return self._read(_read_undone, await self._post("undo", {}), "answer that was taken back")

    async def settle(
        self,
        case: str,
        value: LabelValue,
        *,
        criterion: str | None = None,
        comment: str | None = None,
        subject: str | None = None,
    ) -> Label:
        """Keep how a difference was settled; the key needs the scope ``adjudicate``."""
        body = {"case": case, "value": value, "criterion": criterion, "comment": comment, "subject": subject}
        return self._read_label(await self._post("settle", body), case, criterion, subject)

    async def progress(self) -> LabelProgress:
        """How far labelling is, for everybody and for the key's rater."""
        said = await self.connection.get("v1", "labels", self.run, "progress")
        return self._read(lambda data: read_typed(data, LabelProgress), said, "progress")

    async def labels(self) -> tuple[Label, ...]:
        """Everybody's labels, for a key that does not label."""
        said = await self.connection.get("v1", "labels", self.run, "labels")
        return self._read(lambda data: tuple([Label.from_dict(item) for item in data["labels"]]), said, "labels")

    def next_sync(self, *, skipped: bool = False) -> LabelTask | None:
        """``next`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.next(skipped=skipped))

    def record_sync(
        self,
        case: str,
        value: LabelValue,
        *,
        criterion: str | None = None,
        comment: str | None = None,
        subject: str | None = None,
    ) -> Label:
        """``record`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.record(case, value, criterion=criterion, comment=comment, subject=subject))

    def skip_sync(self, case: str) -> None:
        """``skip`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.skip(case))

    def undo_sync(self) -> str | None:
        """``undo`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.undo())

    def settle_sync(
        self,
        case: str,
        value: LabelValue,
        *,
        criterion: str | None = None,
        comment: str | None = None,
        subject: str | None = None,
    ) -> Label:
        """``settle`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.settle(case, value, criterion=criterion, comment=comment, subject=subject))

    def progress_sync(self) -> LabelProgress:
        """``progress`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.progress())

    def labels_sync(self) -> tuple[Label, ...]:
        """``labels`` without an event loop. It also works inside a running loop, and blocks it."""
        return run_sync(self.labels())

    def _read_label(self, said: object, case: str, criterion: str | None, subject: str | None) -> Label:
        label = self._read(Label.from_dict, said, "label")
        if (label.case, label.criterion) != (case, criterion) or subject not in (None, label.subject):
            raise ServerError(f"{self.connection.url} answered about another case than was labelled")
        return label

    async def _post(self, name: str, body: dict[str, Any]) -> Any:
        return await self.connection.post("v1", "labels", self.run, name, body=body, once=False)

    def _read(self, read: Callable[[Any], T], said: object, what: str) -> T:
        return read_answer(read, said, self.connection.url, what)


def _read_next(data: dict[str, Any]) -> LabelTask | None:
    return None if data["task"] is None else _read_task(data["task"])


def _read_undone(data: dict[str, Any]) -> str | None:
    return None if data["undone"] is None else str(data["undone"]["case"])


def _read_task(data: dict[str, Any]) -> LabelTask:
    parts = {item["name"]: item["text"] for item in data["parts"]}
    order = data["order"]
    content: object = parts.get("content")
    if order is not None:
        first, second = ("A", "B") if order == "ab" else ("B", "A")
        content = {"a": parts.get(first), "b": parts.get(second)}
    rubric = None if data["rubric"] is None else load_rubric(data["rubric"])
    named = None if data["criterion"] is None else data["criterion"]["name"]
    criterion = next((item for item in rubric.criteria if item.name == named), None) if rubric is not None else None
    return LabelTask(
        case=data["case"],
        content=content,
        subject=data.get("subject"),
        task=parts.get("task"),
        reference=parts.get("reference"),
        context=parts.get("context"),
        rubric=rubric,
        criterion=criterion,
        order=order,
        comment=data["comment"],
        until=datetime.fromisoformat(data["until"]),
        skipped=data["skipped"],
    )
