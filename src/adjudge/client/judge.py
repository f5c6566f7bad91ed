"""A server's judge, with the method ``evaluate`` of a local judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from adjudge.client.connection import Connection
from adjudge.client.request_members import (
    check_subject,
    make_unreachable_result,
    read_answer,
    write_arguments,
    write_content_member,
    write_metadata,
)
from adjudge.errors import ServerError, UsageError
from adjudge.result import JudgeResult, read_result
from adjudge.rubric.file import load_rubric
from adjudge.rubric.rubric import Rubric, make_rubric
from adjudge.sync import make_sync_method


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteJudge:
    """A judge of a server; ``None`` as its name is the server's default."""

    name: str | None
    """The name of the server's judge; ``None`` is its default."""
    connection: Connection
    """The way to the server."""

    async def evaluate(
        self,
        content: object,
        rubric: Rubric | Mapping[str, Any] | str | None = None,
        *,
        criteria: str | Sequence[str] | Mapping[str, str] | None = None,
        threshold: float | None = None,
        reference: object = None,
        task: object = None,
        context: object = None,
        rules: Sequence[str | Mapping[str, Any]] = (),
        instructions: str | None = None,
        throw_on_fail: bool = False,
        metadata: Mapping[str, Any] | None = None,
    ) -> JudgeResult:
        """Judge some content and return the result, as ``Judge.evaluate`` does.

        A server that cannot be reached, is too busy or fails gives an ``undecided`` result; this is not an exception.
        Raises ``UsageError`` for what the server refuses, and ``JudgmentFailed`` only with ``throw_on_fail=True``.

        Args:
            content: What to judge, as for ``Judge.evaluate``.
            rubric: The name of a rubric that the server has, a shipped name, or a ``Rubric`` or mapping, which is
                sent along; its ``model`` does not count.
            criteria: Instead of a rubric: a sentence, a list of sentences, or a mapping of names to sentences.
            threshold: The passing threshold for ``criteria``, or in place of the rubric's own, in 0 to 1.
            reference: A known good answer to compare with; shown to the judge as data.
            task: What the content was asked to do; shown to the judge as data.
            context: What the content may rely on; shown to the judge as data.
            rules: Shipped rules, by name or as mappings; functions cannot be sent.
            instructions: More instructions, which the judge obeys; never put content here.
            throw_on_fail: Raise ``JudgmentFailed`` unless the content passed; also if it is undecided.
            metadata: Copied to the result, never sent to a model.
        """
        member, subject = write_content_member(content)
        body: dict[str, Any] = {**member, "judge": self.name, "criteria": _write_criteria(criteria)}
        body |= {"rubric": _write_rubric(rubric), "threshold": None if threshold is None else float(threshold)}
        body |= {"instructions": instructions, "rules": _write_rules(rules), "metadata": write_metadata(metadata)}
        body |= write_arguments({"task": task, "context": context, "reference": reference})
        try:
            reply = await self.connection.post("v1", "evaluate", body=body)
            result = read_answer(read_result, reply, self.connection.url, "result")
            check_subject(result.subject, subject, self.connection.url)
            _check_criteria(result, rubric, criteria, threshold, self.connection.url)
        except ServerError as error:
            result = make_unreachable_result(
                error, judge=self.name or "server", subject=subject, metadata=metadata or {}
            )
        return result.raise_if_failed() if throw_on_fail else result

    evaluate_sync = make_sync_method(evaluate)

    async def aclose(self) -> None:
        """Close the connections to the server."""
        await self.connection.aclose()


def _check_criteria(
    result: JudgeResult,
    rubric: Rubric | Mapping[str, Any] | str | None,
    criteria: str | Sequence[str] | Mapping[str, str] | None,
    threshold: float | None,
    url: str,
) -> None:
    """Raise ``ServerError`` for a result that passed by other criteria, or under another threshold, than were sent.

    The criteria of a rubric that was sent by its name are not compared, because only the server knows them.
    """
    if criteria is not None:
        sent_rubric: Rubric | None = make_rubric(criteria, threshold)
    else:
        sent_rubric = None if rubric is None or isinstance(rubric, str) else load_rubric(rubric)
    sent_threshold = threshold if threshold is not None or sent_rubric is None else sent_rubric.passing_threshold
    sent_names = None if sent_rubric is None else {criterion.name for criterion in sent_rubric.criteria}
    if not result.passed:
        return  # rules may have decided before all criteria were judged
    names = {criterion.name for criterion in result.criteria}
    has_other_criteria = sent_names is not None and bool(names) and names != sent_names
    if has_other_criteria or (sent_threshold is not None and result.threshold not in (None, sent_threshold)):
        raise ServerError(f"{url} answered about other criteria than were sent, so the answer does not count")


def _write_criteria(criteria: str | Sequence[str] | Mapping[str, str] | None) -> Any:
    """Return criteria as plain data for the server: a text, a list or a mapping as JSON has them."""
    if criteria is None or isinstance(criteria, str):
        return criteria
    return dict(criteria) if isinstance(criteria, Mapping) else list(criteria)


def _write_rubric(rubric: Rubric | Mapping[str, Any] | str | None) -> Any:
    """Return a rubric as plain data for the server; a name stays a name. Raises ``UsageError`` for anything else."""
    if isinstance(rubric, Rubric):
        return rubric.to_dict()
    if rubric is None or isinstance(rubric, str):
        return rubric
    if not isinstance(rubric, Mapping):
        raise UsageError(
            f"a rubric must be a Rubric, a mapping or a name, not {type(rubric).__name__}", argument="rubric"
        )
    return dict(rubric)


def _write_rules(rules: Sequence[str | Mapping[str, Any]]) -> list[Any]:
    """Return rules as plain data for the server; raises ``UsageError`` for one that is no name and no mapping."""
    for rule in rules:
        if not isinstance(rule, str | Mapping):
            raise UsageError(
                f"a rule that is sent to a server is a name or a mapping, not {type(rule).__name__}", argument="rules"
            )
    return [rule if isinstance(rule, str) else dict(rule) for rule in rules]
