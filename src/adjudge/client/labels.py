"""A server's queue of labelling."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from adjudge.client.connection import Connection
from adjudge.client.request_members import read_answer
from adjudge.dataset.case import LabelValue
from adjudge.dataset.label import Label
from adjudge.errors import ServerError
from adjudge.formats.msgspec_types import read_typed
from adjudge.labels.task import LabelProgress, LabelTask
from adjudge.rubric.file import load_rubric
from adjudge.sync import make_sync_method

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteLabelQueue:
    """The queue of a server's run. The key's own name as a rater is who labels."""

    connection: Connection
    """The way to the server."""
    run: str
    """The run that is labelled, by its name on the server."""

    async def next(self, *, skipped: bool = False) -> LabelTask | None:
        """Draw the next question, blind, or ``None`` where nothing is left now; its contents are texts, as shown.

        Args:
            skipped: Draw from what was skipped.
        """
        return self._read_reply(_read_next_task, await self._post("next", {"skipped": skipped}), "task")

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

        Args:
            case: The id of the case.
            value: The answer: true, false, a number or ``cannot_tell``; of a pair which one is better.
            criterion: The criterion that it is about; ``None`` is the case as a whole.
            comment: What the person writes about it.
            subject: The ``subject`` of the task: an answer about another content is refused. ``None`` compares nothing.
        """
        body = {"case": case, "value": value, "criterion": criterion, "comment": comment, "subject": subject}
        return self._read_label(await self._post("labels", body), case, criterion, subject)

    async def skip(self, case: str) -> None:
        """Put a case off.

        Args:
            case: The id of the case.
        """
        await self._post("skip", {"case": case})

    async def undo(self) -> str | None:
        """Take back the last answer or skip, and return its case; ``None`` where there is none."""
        return self._read_reply(_read_undone_case, await self._post("undo", {}), "answer that was taken back")

    async def adjudicate(
        self,
        case: str,
        value: LabelValue,
        *,
        criterion: str | None = None,
        comment: str | None = None,
        subject: str | None = None,
    ) -> Label:
        """Keep how a difference was settled; the key needs the scope ``adjudicate``.

        Args:
            case: The id of the case.
            value: The answer: true, false, a number or ``cannot_tell``; of a pair which one is better.
            criterion: The criterion that it is about; ``None`` is the case as a whole.
            comment: What the person writes about it.
            subject: The digest of the content that was shown, from the task.
        """
        body = {"case": case, "value": value, "criterion": criterion, "comment": comment, "subject": subject}
        return self._read_label(await self._post("settle", body), case, criterion, subject)

    async def progress(self) -> LabelProgress:
        """Return the progress of labelling, for everybody and for the key's rater."""
        reply = await self.connection.get("v1", "labels", self.run, "progress")
        return self._read_reply(lambda members: read_typed(members, LabelProgress), reply, "progress")

    async def labels(self) -> tuple[Label, ...]:
        """Return everybody's labels, for a key that does not label."""
        reply = await self.connection.get("v1", "labels", self.run, "labels")
        return self._read_reply(
            lambda members: tuple([Label.from_dict(row) for row in members["labels"]]), reply, "labels"
        )

    next_sync = make_sync_method(next)  # noqa: A003 - the method above

    record_sync = make_sync_method(record)

    skip_sync = make_sync_method(skip)

    undo_sync = make_sync_method(undo)

    adjudicate_sync = make_sync_method(adjudicate)

    progress_sync = make_sync_method(progress)

    labels_sync = make_sync_method(labels)

    def _read_label(self, reply: object, case: str, criterion: str | None, subject: str | None) -> Label:
        """Read the label in a reply; raises ``ServerError`` if it is about another case, criterion or content."""
        label = self._read_reply(Label.from_dict, reply, "label")
        if (label.case, label.criterion) != (case, criterion) or subject not in (None, label.subject):
            raise ServerError(f"{self.connection.url} answered about another case than was labelled")
        return label

    async def _post(self, name: str, body: dict[str, Any]) -> Any:
        """Send a request about the run's labels; ``name`` is the last part of its address."""
        return await self.connection.post("v1", "labels", self.run, name, body=body, once=False)

    def _read_reply(self, read: Callable[[Any], T], reply: object, noun: str) -> T:
        return read_answer(read, reply, self.connection.url, noun)


def _read_next_task(members: dict[str, Any]) -> LabelTask | None:
    """Read the reply of ``next``: the next task, or ``None`` if there is none."""
    return None if members["task"] is None else _read_task(members["task"])


def _read_undone_case(members: dict[str, Any]) -> str | None:
    """Read the reply of ``undo``: the id of the case, or ``None`` if there was nothing to undo."""
    return None if members["undone"] is None else str(members["undone"]["case"])


def _read_task(members: dict[str, Any]) -> LabelTask:
    """Read a task as the server sends it.

    The server sends the contents of a pair as ``A`` and ``B`` in the order in which they are shown. The task has them
    as ``a`` and ``b``, the case's own names.
    """
    texts = {part["name"]: part["text"] for part in members["parts"]}
    order = members["order"]
    content: object = texts.get("content")
    if order is not None:
        name_of_a, name_of_b = ("A", "B") if order == "ab" else ("B", "A")
        content = {"a": texts.get(name_of_a), "b": texts.get(name_of_b)}
    rubric = None if members["rubric"] is None else load_rubric(members["rubric"])
    criterion_name = None if members["criterion"] is None else members["criterion"]["name"]
    criteria = () if rubric is None else rubric.criteria
    criterion = next((criterion for criterion in criteria if criterion.name == criterion_name), None)
    return LabelTask(
        case=members["case"],
        content=content,
        subject=members.get("subject"),
        task=texts.get("task"),
        reference=texts.get("reference"),
        context=texts.get("context"),
        rubric=rubric,
        criterion=criterion,
        order=order,
        comment=members["comment"],
        until=datetime.fromisoformat(members["until"]),
        skipped=members["skipped"],
    )
