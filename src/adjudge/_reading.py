"""From a reply to an answer: the provider's own signals first, then the form, then the probabilities."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from adjudge._logprobs import Said, add_confidence
from adjudge._readers import GRADES
from adjudge.errors import ReplyError, UsageError
from adjudge.models._types import Form, Reply
from adjudge.question import Answer, Question
from adjudge.reply import Reader, ReadOptions, find_object, find_reader, read_object
from adjudge.result import Reason
from adjudge.score import answer_score, choose

OWN = "adjudge"
"""The name of adjudge's own reply form."""

_ASKS = {
    "score": "Give one score from {low:g} to {high:g}, and end the reply in this style: {name}",
    "label": "End the reply in this style: {name}",
}


_CHOICES = {
    "[[A]]": "Give your reasons, then end the reply with [[A]] when `first` is better or [[B]] when `second` is",
    "[[A>B]]": "Give your reasons, then end the reply with [[A>>B]] or [[A>B]] when `first` is much or slightly "
    "better, or with [[B>>A]] or [[B>A]] when `second` is",
    "Output (a)": "Reply with Output (a) when `first` is better or with Output (b) when `second` is, and nothing else",
    "Output (a) is better": 'Give your reasons, then end the reply with "Therefore, Output (a) is better." when '
    '`first` is better or with "Therefore, Output (b) is better." when `second` is',
    "A:": "Begin the reply with the letter A when `first` is better or with B when `second` is, then a colon, and give "
    "your reasons after it",
    "name": "Reply with the one word first when `first` is better or second when `second` is, and nothing else",
    "ordered_models": "Reply with one JSON object of this shape, in which the better of the two has rank 1: "
    '{"ordered_models": [{"model": "first", "rank": 2}, {"model": "second", "rank": 1}]}',
    "json winner": 'Reply with {"winner": "A"} when `first` is better or {"winner": "B"} when `second` is',
}
"""What to say of each reader of a preference."""

_TIES = {
    "[[A]]": ", or with [[C]] for a tie",
    "A:": "; begin it with C for a tie",
    "[[A>B]]": ", or with [[A=B]] for a tie",
    "json winner": ', or {"winner": "tie"} for a tie',
}
"""What to say more where a tie is on offer; the other readers have no form for one."""

_NAMES = ("first", "second")
"""What the two compared are called in prompt and reply, for the readers that are told the names."""

_NAMED = {
    "name": "Reply with the one word {first} when `first` is better or {second} when `second` is, and nothing else",
    "ordered_models": "Reply with one JSON object whose member ordered_models lists {first}, which is `first`, and "
    "{second}, which is `second`, each as an object with model and rank; the better has rank 1",
    "json winner": "Reply with one JSON object whose member winner is {first} when `first` is better or {second} when "
    "`second` is",
}
"""The same as in ``_CHOICES`` where the caller gave the names."""

_LABELLED = {
    "label": "Reply with one of these labels and nothing else: {labels}",
    "GRADE: C": "End the reply with GRADE: and one of these labels: {labels}",
}

_TAKES_LABELS = ("label", "name", "ordered_models", "json winner", "GRADE: C", "Rating: 7")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyStyle:
    """How a judge's replies are read: the reader, and what it has to be told."""

    reader: str = OWN
    labels: tuple[str, ...] = ()
    """The names behind it: of the two places, the one shown first first; or every label that is offered."""
    passes: tuple[str, ...] = ()
    """Which labels pass, for a reader of labels."""

    def check(self, question: Question | None = None) -> None:
        """Raise ``UsageError`` for an unknown reader, wrong labels, or a reader that cannot answer the question."""
        _check_labels(self)
        check_reader(self, question)


def give_up(because: Reason, detail: str, question: Question) -> Answer:
    """The answer when there is none: why, in one line of at most 500 characters."""
    said = " ".join(detail.split())[:500]
    return Answer(outcome="undecided", because=because, detail=said, threshold=question.threshold)


def read_reply(
    reply: Reply, question: Question, *, token: str | None, style: ReplyStyle, scoring: Literal["stated", "expected"]
) -> Answer:
    """Read a reply; whatever cannot be read is a reason, and nothing is repaired."""
    if reply.finish_reason == "refusal":
        return give_up("refused", "the provider says the model refused to answer", question)
    if reply.finish_reason == "length":
        # Even if an object can be read: the judge may have been about to take it back.
        return give_up("truncated", "the reply was cut off at the output limit; raise max_output_tokens", question)
    try:
        if style.reader != OWN:
            return _read_named(reply.text or "", question, style)
        found = read_object(reply.text, token)
        answer = question.answer(found, question)
        if reply.logprobs and reply.text and answer.because is None:
            start = find_object(reply.text, token)
            said = Said(text=reply.text, found=found, start=start, tokens=reply.logprobs)
            answer = add_confidence(answer, question, said, expect=scoring == "expected")
    except ReplyError as error:
        return give_up(error.because, error.detail, question)
    return answer


def write_system(question: Question, *, structured: bool, token: bool, style: ReplyStyle) -> tuple[str, Form | None]:
    """The system part and, for structured output, the form; a ready-made prompt has neither."""
    wording = question.wording
    if wording is None:
        return "", None
    if style.reader == OWN:
        return wording.system(structured=structured, token=token), wording.form(token=token) if structured else None
    form = find_reader(style.reader)
    if question.choices:
        tie = _TIES.get(form.name, "") if "tie" in question.choices else ""
        said = _CHOICES[form.name]
        if style.labels:
            first, second = (json.dumps(name, ensure_ascii=False) for name in style.labels)
            said = _NAMED[form.name].format(first=first, second=second)
        return f"{wording.frame()}\n\n{said}{tie}.", None
    if style.labels and form.name in _LABELLED:
        shown = ", ".join(style.labels)
        return f"{wording.frame()}\n\n{_LABELLED[form.name].format(labels=shown)}.", None
    low, high = question.rubric.scale if question.rubric else (0.0, 1.0)
    return f"{wording.frame()}\n\n{_ASKS[form.kind].format(name=form.name, low=low, high=high)}", None


def _check_labels(style: ReplyStyle) -> None:
    ReadOptions(labels=style.labels)
    reader, labels, passes = style.reader, style.labels, style.passes
    form = None if reader == OWN else find_reader(reader)
    if labels and (form is None or form.name not in _TAKES_LABELS):
        known = ", ".join(repr(name) for name in _TAKES_LABELS)
        raise UsageError(f"reader {reader!r} takes no labels, got {labels!r}; readers that do: {known}")
    if (form is None or form.kind != "label") and passes:
        raise UsageError(f"reader_passes {passes!r} says which labels pass, and reader {reader!r} reads no label")
    if form is not None and form.kind == "preference" and labels and len(labels) != 2:
        raise UsageError(
            f"the reader {reader!r} needs the two names compared, the one shown first first, as reader_labels; "
            f"got {labels!r}"
        )
    offered = labels or GRADES
    for label in passes:
        if label not in offered:
            raise UsageError(f"reader_passes has {label!r}, which is none of the labels offered: {', '.join(offered)}")
    if passes and set(passes) == set(offered):
        raise UsageError(f"reader_passes names every label ({', '.join(passes)}), so that nothing could fail")


def check_reader(style: ReplyStyle, question: Question | None = None) -> None:
    """Raise ``UsageError`` for an unknown reader, or one that cannot answer the question."""
    reader = style.reader
    if reader == OWN:
        if question is not None and question.passes is not None and question.value_type is None:
            raise UsageError("passes= needs result_format=: give the type whose instances it looks at")
        return
    form = find_reader(reader)
    if question is None:
        return
    if question.wording is None or question.value_type is not None:
        raise UsageError(f"reader {reader!r} reads replies about a rubric, not ready-made prompts or a result_format")
    if question.choices:
        if form.kind != "preference":
            raise UsageError(f"reader {reader!r} reads a {form.kind}; a comparison needs a reader of preferences")
        return
    _check_form(form, style, question)


def _check_form(form: Reader, style: ReplyStyle, question: Question) -> None:
    rubric = question.rubric
    asked = [item for item in rubric.criteria if item.name not in question.settled] if rubric else []
    if form.kind == "score" and len(asked) != 1:
        raise UsageError(f"reader {form.name!r} reads one score, so it needs a rubric with one criterion for the model")
    if form.kind == "preference":
        raise UsageError(f"reader {form.name!r} says which of two is better; it answers comparisons, not a rubric")
    if form.name == "label" and not style.labels:
        raise UsageError(
            "reader 'label' needs the labels that were offered; give them as reader_labels=, or as --reader-labels"
        )
    if form.kind == "label" and question.settled:
        raise UsageError(f"reader {form.name!r} reads one label for the whole, so the rubric cannot have rules")
    if form.kind == "label" and question.passes is not None and style.passes:
        raise UsageError("passes= and reader_passes both say which labels pass; give one of them")
    if form.kind == "label" and question.passes is None and not style.passes:
        raise UsageError(f"reader {form.name!r} reads a label; say which pass with passes=lambda label: ...")


def _read_named(text: str, question: Question, style: ReplyStyle) -> Answer:
    form = find_reader(style.reader)
    if form.kind == "preference":
        names = style.labels or (_NAMES if form.name in {"name", "ordered_models"} else ())
        return choose(str(form.read(text, ReadOptions(labels=names))), question)
    scale = question.rubric.scale if question.rubric else None
    value = form.read(text, ReadOptions(scale=scale, labels=style.labels))
    if isinstance(value, float):
        return answer_score(value, question)
    if style.passes:
        return Answer(outcome="passed" if value in style.passes else "failed", value=value)
    if question.passes is None:
        raise ReplyError("error", f"nothing says which labels pass; the reply says {value!r}")
    return Answer(outcome="passed" if question.passes(value) is True else "failed", value=value)
