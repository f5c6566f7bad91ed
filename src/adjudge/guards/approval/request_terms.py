"""The terms of a request for approval, and the making of one: mistakes raise before anything is written or asked.

The judge that may answer before people do is asked in ``first_judge.py`` (``ask_first``).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from typing import Any, get_args

from adjudge.content import check_extent, content_text, digest_text
from adjudge.errors import Argument, UsageError
from adjudge.formats.arguments import check_choice, check_whole_number
from adjudge.formats.text import clean, show
from adjudge.guards.approval.approval import Approval, OnExpiry, make_approval_id, read_name
from adjudge.guards.approval.first_judge import open_first
from adjudge.guards.approval_digest import CONTEXT, describe_terms, digest_request
from adjudge.guards.decision import Decision
from adjudge.ledger.payload import check_text
from adjudge.result import JudgeChainResult, JudgeResult, read_result

MOST_APPROVERS = 100

LONGEST_TEXT = 100_000
"""Characters of a message, and of the judge's reason that is kept with a request."""

LONGEST_REASON = 10_000
"""Characters of the reason that a person gives."""

LONGEST_UNDO = 300.0
"""Seconds for which a vote can be taken back, at most: the gate waits for them."""

LONGEST_TIME = 100 * 365 * 86_400
"""Seconds until a request expires, at most: a hundred years."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTerms:
    """The terms of a decision by people, which a gate can have checked before there is anything to decide about."""

    approvers: Any = ()
    required: int = 1
    expires_in: Any = None
    on_expiry: OnExpiry = "deny"
    first: Any = None
    execution: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    seconds: float | None = field(init=False, default=None)
    """``expires_in`` in seconds; ``None`` is never."""
    described: Mapping[str, Any] = field(init=False, default_factory=dict)
    """These terms as they were given, for the digest of the request."""

    def __post_init__(self) -> None:
        set_field = object.__setattr__  # the dataclass is frozen
        arguments = {member.name: getattr(self, member.name) for member in fields(self) if member.init}
        approvers: Any = self.approvers
        if isinstance(approvers, Iterable) and not isinstance(approvers, str | Mapping):
            arguments["approvers"] = list(approvers)  # an iterator yields its names only once
        set_field(self, "approvers", _read_approvers(arguments["approvers"]))
        _check_required(self.required, len(self.approvers))
        set_field(self, "seconds", _read_seconds(self.expires_in))
        check_choice("on_expiry", self.on_expiry, get_args(OnExpiry))
        if self.on_expiry == "approve" and self.seconds is None:
            raise UsageError(
                Argument("on_expiry", "'approve'"),
                " needs ",
                Argument("expires_in"),
                ": a request that never expires approves nothing",
                argument="on_expiry",
            )
        if self.execution is not None:
            check_text("execution", self.execution)
        if self.metadata is not None and not isinstance(self.metadata, Mapping):
            raise UsageError(f"metadata must be a mapping, got {type(self.metadata).__name__}", argument="metadata")
        check_extent(self.metadata, "metadata")
        if self.first is not None:
            set_field(self, "first", open_first(self.first))
        set_field(self, "described", describe_terms(arguments))


def make_approval(
    about: JudgeResult | Decision,
    message: str,
    content: object,
    terms: RequestTerms,
    now: datetime,
    *,
    texts: Mapping[str, object],
    audit: Mapping[str, float],
) -> tuple[Approval, JudgeResult]:
    """Make an open request and return it with the result it is about; raise ``UsageError`` for what cannot be asked."""
    result = about.result if isinstance(about, Decision) else about
    if isinstance(about, Decision) and result is None:
        raise UsageError("this decision has no result, so there is nothing that people could overrule; nobody is asked")
    if not isinstance(result, JudgeResult):
        raise UsageError(
            f"people are asked about a result or a decision, got {type(result).__name__}", argument="about"
        )
    if audit:
        _check_audit(about)
    check_text_length("message", message, LONGEST_TEXT)
    if not message.strip():
        raise UsageError("a request needs a message: what the people are asked", argument="message")
    if terms.first is not None and content is None:
        raise UsageError(
            "first needs ", Argument("content"), ": a judge cannot answer about what it is not shown", argument="first"
        )
    text = None if content is None else content_text(content)
    approval_id = make_approval_id()
    decision_subject = about.subject if isinstance(about, Decision) else None
    approval = Approval(
        id=approval_id,
        message=message,
        approvers=terms.approvers,
        required=terms.required,
        created_at=now,
        expires_at=None if terms.seconds is None else now + timedelta(seconds=terms.seconds),
        on_expiry=terms.on_expiry,
        result_id=result.id,
        outcome=result.outcome,
        undecided_because=result.undecided_because,
        judge=result.judge,
        score=None if audit else result.score,
        threshold=None if audit else result.threshold,
        # Nothing that the judge said is stored with an audit, so that no page can show it to people before they answer.
        reason="" if audit else _cut_reason(result.explain()),
        result=None if audit else _make_shown_result(result),
        # The request's own id where the digest of the content is not known: its entries are found by the subject.
        subject=decision_subject or result.subject or (approval_id if text is None else digest_text(text)),
        content=text,
        texts=_read_texts(texts),
        gate=about.gate if isinstance(about, Decision) else None,
        request=_digest_decision(about, terms) if isinstance(about, Decision) and not audit else None,
        execution=terms.execution,
        metadata={**about.metadata, **(terms.metadata or {})},
        audit=dict(audit),
    )
    # Reading the request back raises for a value that JSON cannot hold, such as a threshold that is NaN. Stored, such a
    # request could never be read again.
    return Approval.from_dict(approval.to_dict()), result


def _check_audit(about: JudgeResult | Decision) -> None:
    """Raise ``UsageError`` for an audit that is not about a decision which let a content through."""
    if not isinstance(about, Decision) or not about.allowed:
        raise UsageError("an audit is about a decision that let a content through; leave audit out", argument="audit")


def _read_texts(texts: Mapping[str, object]) -> dict[str, str]:
    """Return task, context and reference as texts, without those that are ``None``.

    Raises ``UsageError`` for any other name, and for a value that ``content_text`` refuses.
    """
    for name in texts:
        check_choice("texts", name, CONTEXT)
    return {name: content_text(value, label=name) for name, value in texts.items() if value is not None}


def _digest_decision(about: Decision, terms: RequestTerms) -> str:
    """Digest a decision and these terms as its gate did; a program that asks in other terms gets another digest."""
    return digest_request(
        gate=about.gate, subject=about.subject, basis=about.basis, metadata=about.metadata, terms=terms.described
    )


def check_text_length(name: str, text: object, longest: int) -> None:
    """Raise ``UsageError`` for a text that is too long, or that not every store can hold exactly."""
    if not isinstance(text, str):
        raise UsageError(f"{name} must be a text, got {type(text).__name__}", argument=name)
    if len(text) > longest:
        raise UsageError(f"{name} has at most {longest:,} characters, got {len(text):,}; shorten it", argument=name)
    content_text(text, label=name)  # NUL and halves of surrogate pairs


LONGEST_ANSWER = 300
"""Characters of an answer for the agent: enough for what to do instead, and too few for a program."""


def check_answer(answer: object, *, approved: bool) -> None:
    """Raise ``UsageError`` for a message to the agent that is no short line of text, or comes with an approval."""
    if not isinstance(answer, str) or len(answer) > LONGEST_ANSWER or not answer.isprintable():
        raise UsageError(
            f"answer must be one line of at most {LONGEST_ANSWER} printable characters, got {show(answer)}",
            argument="answer",
        )
    if answer and approved:
        raise UsageError("answer is what an agent is told whose call is denied; leave it out", argument="answer")


def _make_shown_result(result: JudgeResult) -> JudgeResult | None:
    """Return a result as people are shown it, without replies; ``None`` if it cannot be read back once stored."""
    try:
        return read_result(_drop_replies(result).to_dict())
    except UsageError:
        return None


def _drop_replies(result: JudgeResult) -> JudgeResult:
    """Return a result, and those of its seats, without the replies of their models."""
    bare = replace(result, raw_response=None, earlier_responses=())
    if isinstance(bare, JudgeChainResult):
        return replace(bare, results=tuple(map(_drop_replies, bare.results)))
    return bare


def _cut_reason(text: str) -> str:
    """Cut an explanation to the longest text that a request keeps; that of a program's own result can be longer."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]} …"


def _read_approvers(approvers: object) -> tuple[str, ...]:
    """Return the approvers' names in the given order, each once.

    Raises ``UsageError`` for a text, for no names and for too many.
    """
    if isinstance(approvers, str | Mapping) or not isinstance(approvers, Iterable):
        is_text = isinstance(approvers, str)
        kind = f"the text {clean(approvers[:80])!r}" if is_text else type(approvers).__name__
        raise UsageError(f"approvers must be a list of names, got {kind}", argument="approvers")
    names = tuple(dict.fromkeys(read_name(name, "approvers") for name in approvers))
    if not names:
        raise UsageError("a request needs approvers: nobody could ever approve it", argument="approvers")
    if len(names) > MOST_APPROVERS:
        raise UsageError(f"a request has at most {MOST_APPROVERS} approvers, got {len(names)}", argument="approvers")
    return names


def _check_required(required: object, approver_count: int) -> None:
    """Raise ``UsageError`` if ``required`` is no whole number from 1 to the number of approvers."""
    if check_whole_number("required", required, least=1) > approver_count:
        raise UsageError(
            Argument("required", repr(required)),
            f" needs as many different approvers, and there are {approver_count}; name more",
            argument="required",
        )


def _read_seconds(expires_in: object) -> float | None:
    """Return the seconds until a request expires; ``None`` is never. Raises ``UsageError`` for any other value."""
    if expires_in is None:
        return None
    seconds = expires_in.total_seconds() if isinstance(expires_in, timedelta) else expires_in
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds <= 0:
        raise UsageError(
            f"expires_in must be seconds or a timedelta above 0, or None for never; got {expires_in!r}",
            argument="expires_in",
        )
    if seconds > LONGEST_TIME:
        raise UsageError(
            f"expires_in is at most a hundred years, got {expires_in!r}; None means never", argument="expires_in"
        )
    return float(seconds)
