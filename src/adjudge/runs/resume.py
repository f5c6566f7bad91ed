"""The judgements that a resumed run makes: those that have no result yet, and those to be retried.

Whether a run may be resumed at all is decided in ``folder.py`` (``check_resumable``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from adjudge.errors import Reason, UsageError
from adjudge.formats.text import clean
from adjudge.result import Outcome
from adjudge.runs.store import RunStore

BROKEN: tuple[Reason, ...] = (
    "refused",
    "truncated",
    "off_scale",
    "missing_criterion",
    "unparseable",
    "error",
    "timeout",
    "cancelled",
)
"""The reasons that are failures of a judge. The others are answers: judges disagree, are unsure, or see an attack."""

UNANSWERED: tuple[Reason, ...] = ("budget", "timeout", "error")
"""The reasons of undecided items for which a reply is missing: the replies that did come are used again. For any other
reason everything was answered, and to no use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Due:
    """A judgement that is to be made, for the first time or again."""

    sample: int
    replaces: Outcome | None = None
    """The outcome of the item that this one is to take the place of."""
    anew: bool = False
    """True if the replies that led to that item are asked for again."""


def find_due(kept: Mapping[int, str | None], repeat: int, retry: Collection[str]) -> Iterator[Due]:
    """Yield the judgements of a case that are to be made, for the first time or again.

    Args:
        kept: The samples that have a result, each with the reason why it is undecided, or ``None``.
        repeat: How often each case is judged.
        retry: Reasons for which undecided items are judged again.
    """
    for sample in range(repeat):
        if sample not in kept:
            yield Due(sample=sample)
            continue
        reason = kept[sample]
        if reason in retry:
            yield Due(sample=sample, replaces="undecided", anew=reason not in UNANSWERED)


def find_kept(store: RunStore, place: int, name: str, subject: str) -> Mapping[int, str | None]:
    """Return the kept samples of a case, each with the reason why it is undecided, or ``None``.

    Raises ``UsageError`` if the run has judged another case at this place.
    """
    kept_case = store.find_case(place)
    if kept_case is None:
        return {}
    if kept_case != (name, subject):
        raise UsageError(
            f"case {place} of the data set is not the one that was judged: it was {shorten_id(kept_case[0])}, and now "
            f"it is {shorten_id(name)}{' with another content or label' if kept_case[0] == name else ''}; resume with "
            "the data the run began with, or begin another run"
        )
    return store.list_kept(place)


def shorten_id(name: str) -> str:
    """Write an id for a message: in quotes, and at most 80 characters of it."""
    return repr(clean(name[:80], keep_lines=False))
