"""The options of a run by batches.

What they change is in ``dispatcher.py`` (sending and waiting) and ``first_cases.py`` (the live check).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Literal

from adjudge.errors import UsageError
from adjudge.formats.arguments import check_above_zero, check_choice, check_flag, check_whole_number
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import show


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchOptions:
    """Options of a run by batches. Raises ``UsageError`` for values that cannot be used.

    Args:
        check: The number of cases that are judged live first. If half of them or more are undecided, nothing is sent by
            batch. 0 checks none.
        then: The way of a request that has to be asked again (it failed, it expired, its reply could not be read): into
            the next ``batch``, or ``live`` to the provider at once, for the full price.
        size: The most cases that wait for batches at the same time. Each takes about 20 KB of memory, and its content.
        tokens: The most tokens that may be queued at the provider for one model. Your account's limits page shows it.
            Without it, a batch that is refused for a full queue is sent again in smaller parts.
        poll: Seconds until a batch is first looked at; the time grows to ten times that.
        pay_again: With ``resume``: send the requests again of batches that are doubtful, or have not ended in the time
            that the provider gives itself. If the provider has run them after all, you pay for both. It is about the
            batches of earlier processes: a batch that becomes doubtful after that is not sent a third time.
    """

    _layout: ClassVar[Layout] = Layout(members=("check", "then", "size", "tokens", "poll"))

    check: int = 20
    """The number of cases that are judged live first. If half of them or more are undecided, nothing is sent by
    batch. 0 checks none."""
    then: Literal["batch", "live"] = "batch"
    """The way of a request that has to be asked again (it failed, it expired, its reply could not be read): into the
    next ``batch``, or ``live`` to the provider at once, for the full price."""
    size: int = 20_000
    """The most cases that wait for batches at the same time. Each takes about 20 KB of memory, and its content."""
    tokens: int | None = None
    """The most tokens that may be queued at the provider for one model. Your account's limits page shows it. Without
    it, a batch that is refused for a full queue is sent again in smaller parts."""
    poll: float = 30.0
    """Seconds until a batch is first looked at; the time grows to ten times that."""
    pay_again: bool = False
    """With ``resume``: send the requests again of batches that are doubtful, or have not ended in the time that the
    provider gives itself. If the provider has run them after all, you pay for both. It is about the batches of earlier
    processes: a batch that becomes doubtful after that is not sent a third time."""

    def __post_init__(self) -> None:
        check_whole_number("check", self.check, least=0)
        check_choice("then", self.then, ("batch", "live"))
        check_whole_number("size", self.size, least=1)
        if self.tokens is not None:
            check_whole_number("tokens", self.tokens, least=1)
        check_above_zero("poll", self.poll)
        check_flag("pay_again", self.pay_again)

    def to_dict(self) -> dict[str, Any]:
        """Return the options that a resumed run keeps to."""
        return write_record(self)


def read_recorded(recorded: object, folder: Path) -> BatchOptions | None:
    """Read the options of a run by batches from its manifest; ``None`` for a live run.

    Raises ``UsageError`` for an option that this version does not know, and for a value that cannot be used.
    """
    if not isinstance(recorded, Mapping):
        return None
    names = [member.name for member in fields(BatchOptions)]
    for name in recorded:
        if name not in names:
            raise UsageError(
                f"the run {folder} was begun with the batch option {show(name)}, which this version of adjudge does "
                "not know; update adjudge, or begin another run"
            )
    return BatchOptions(**recorded)


def read_options(batch: object) -> BatchOptions | None:
    """Read the argument ``batch`` of ``run``; ``None`` is a live run. Raises ``UsageError`` for anything else."""
    if batch is None or batch is False:
        return None
    if batch is True:
        return BatchOptions()
    if isinstance(batch, BatchOptions):
        return batch
    raise UsageError(f"batch must be True or BatchOptions(...), got {type(batch).__name__}", argument="batch")
