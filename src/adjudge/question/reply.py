"""Read a reply: the provider's own signals first, then its text, then the probabilities.

The object in the text is found by ``reply_object.py``, or by a named reader (``readers.py``); ``score.py`` makes the
score and the outcome of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from adjudge.errors import Reason, ReplyError
from adjudge.models.model import FunctionIdentity, Reply
from adjudge.question.code_judge import read_returned
from adjudge.question.logprobs import ParsedReply, add_confidence
from adjudge.question.question import Answer, Question
from adjudge.question.reply_object import TextAfterError, find_object, read_object
from adjudge.question.reply_style import ADJUDGE_FORM, ReplyStyle
from adjudge.question.score import answer_choice, answer_score

_DEFAULT_NAMES = ("first", "second")
"""The names of the two compared in prompt and reply, for the readers that are given names."""


def make_undecided(because: Reason, detail: str, question: Question) -> Answer:
    """Make the undecided answer: a reason, and its detail in one line of at most 500 characters."""
    line = " ".join(detail.split())[:500]
    return Answer(outcome="undecided", because=because, detail=line, threshold=question.threshold)


def read_reply(
    reply: Reply,
    question: Question,
    *,
    token: str | None,
    style: ReplyStyle,
    scoring: Literal["stated", "expected"],
    function: FunctionIdentity | None = None,
) -> Answer:
    """Read a reply. What cannot be read gives a reason, and nothing is repaired.

    ``function`` is the judge in code that was asked, ``None`` where it was a model.
    """
    if reply.function is not None and function is None:
        # A function's reply has no token. Any file may say that a reply is a function's, which must not let a reply
        # without a token count for a model.
        return replace(make_undecided("unparseable", _FUNCTION_REPLY_TO_MODEL, question), final=True)
    if reply.finish_reason == "refusal":
        return make_undecided("refused", "the provider says the model refused to answer", question)
    if reply.finish_reason == "length":
        # Even if an object can be read: in the text that is missing, the judge may have taken it back.
        return make_undecided(
            "truncated", "the reply was cut off at the output limit; raise max_output_tokens", question
        )
    try:
        if function is not None:
            return read_returned(reply, question, function)
        return _read_text(reply, question, token, style, scoring)
    except ReplyError as error:
        answer = make_undecided(error.because, error.detail, question)
        return replace(answer, text_after=isinstance(error, TextAfterError))


_FUNCTION_REPLY_TO_MODEL = (
    "the reply says of itself that a function returned it, and the judge is a model; let the function be the judge"
)


def _read_text(
    reply: Reply, question: Question, token: str | None, style: ReplyStyle, scoring: Literal["stated", "expected"]
) -> Answer:
    """Read a model's reply in the form of adjudge, or by the reader that the style names. Raises ``ReplyError``.

    If the reply has log probabilities, a decided answer gets its confidence from them.
    """
    if style.reader != ADJUDGE_FORM:
        return _read_named(reply.text or "", question, style)
    reply_object = read_object(reply.text, token)
    answer = question.answer(reply_object, question)
    if reply.logprobs and reply.text and answer.because is None:
        start = find_object(reply.text, token)
        parsed = ParsedReply(text=reply.text, members=reply_object, start=start, tokens=reply.logprobs)
        answer = add_confidence(answer, question, parsed, expect=scoring == "expected")
    return answer


def _read_named(text: str, question: Question, style: ReplyStyle) -> Answer:
    """Read a reply by the reader that the style names, and make the answer for the value that it reads.

    Raises ``ReplyError``.
    """
    from adjudge.question.readers import ReadOptions, find_reader

    named_reader = find_reader(style.reader)
    if named_reader.kind == "preference":
        names = style.labels or (_DEFAULT_NAMES if named_reader.name in {"name", "ordered_models"} else ())
        return answer_choice(str(named_reader.read(text, ReadOptions(labels=names))), question)
    scale = question.rubric.scale if question.rubric else None
    value = named_reader.read(text, ReadOptions(scale=scale, labels=style.labels))
    if isinstance(value, float):
        return answer_score(value, question)
    if style.passes:
        return Answer(outcome="passed" if value in style.passes else "failed", value=value)
    if question.passes is None:
        raise ReplyError("error", f"nothing says which labels pass; the reply says {value!r}")
    return Answer(outcome="passed" if question.passes(value) is True else "failed", value=value)
