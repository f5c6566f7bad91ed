"""Jobs as providers describe them: states, limits, and the outcome of each request."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

from adjudge.errors import ModelError
from adjudge.models.model import Request

State = Literal[
    "planned", "uploading", "creating", "doubtful", "refused", "waiting", "cancelling", "ended", "collected"
]
"""The stage of a job. ``planned`` and ``uploading``: nothing was created, for certain. ``creating``: the one request
that creates it may have been sent. ``doubtful``: it was sent, and its answer is not known; or it ended without some of
its answers, which may have been paid for. ``refused``: the provider created nothing. ``ended``: nothing more will be
answered, whatever the provider calls it. ``collected``: each of its requests has an outcome on disk."""

Phase = Literal["waiting", "cancelling", "ended"]
"""The phase of a job at the provider, whatever word it has for that."""

Kind = Literal["reply", "again", "never"]
"""The kind of a line's outcome: a ``reply`` to read; no reply, which another try may mend (``again``); an error that
another try will meet as well (``never``)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a provider for one job."""

    requests: int
    """Lines of a job."""
    size: int
    """Bytes of a job, UTF-8, with newlines. Jobs are filled to 95 % of it."""
    window: float
    """Seconds after which the provider has ended a job by its own rules; an hour later it is overdue."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A provider's job, as it says it is now."""

    id: str
    word: str
    """The provider's word for its state."""
    phase: Phase
    """The meaning of that word."""
    known: bool = True
    """True if the word is known. One that is not is taken for ``waiting``: never a failure, and never an end."""
    reason: str = "lost"
    """The fate of a request without a line, once the job has ended: ``expired``, ``cancelled``, ``failed``, or
    ``lost`` where nothing says why."""
    files: tuple[str, ...] = ()
    """The files of its results; at every end each of them is read."""
    done: int | None = None
    """Requests that are answered, for display only: providers count them wrongly after a cancellation."""
    total: int | None = None
    """Requests in it, where the provider says that."""
    label: str = ""
    """The label it was created with; empty where the provider keeps none."""
    created_at: float | None = None
    """Seconds since 1970."""
    message: str = ""
    """The reason for its failure, in the provider's words."""
    bad_lines: Mapping[int, str] | None = None
    """The lines, from 0, that made the provider refuse all of it, each with the error. Nothing of it was run."""
    queue_full: bool = False
    """True if it failed because the account's queue of tokens was full: it may be created later."""
    fatal: bool = False
    """True if the provider refused it for what any other job would have as well: the model, the account."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultLine:
    """One line of the results."""

    id: str
    kind: Kind
    body: bytes = b""
    """The reply as the provider's live interface would have sent it; or its error body."""
    name: str = ""
    """The error's name, as the provider has it."""
    message: str = ""


class CreateError(ModelError):
    """A creation failed; ``because`` says what that means.

    ``refused``: nothing was created, by what is in it; ``stop``: nothing was created, and no other job will be, for the
    key or the model; ``wait``: nothing was created now, and may be in ``seconds``; ``doubtful``: nobody knows.
    """

    def __init__(
        self,
        message: str,
        *,
        because: Literal["refused", "stop", "wait", "doubtful"],
        seconds: float | None = None,
        status: int | None = None,
    ) -> None:
        super().__init__(message, status=status)
        self.because: Literal["refused", "stop", "wait", "doubtful"] = because
        self.seconds = seconds


class BatchApi(Protocol):
    """A provider's batch interface, for one model."""

    @property
    def limits(self) -> Limits:
        """The limits of one job."""
        ...

    @property
    def labelled(self) -> bool:
        """True if the provider keeps the label of a job, so that a job can be found by it."""
        ...

    @property
    def digest(self) -> str:
        """SHA-256 of address and key: jobs are visible only to the account that created them."""
        ...

    def render_line(self, name: str, request: Request) -> bytes:
        """Render a request as a line of a job, under an id of at most 64 of the characters ``A-Za-z0-9_-``."""
        ...

    async def upload(self, lines: Sequence[bytes], label: str) -> str:
        """Upload the lines of a job and return the file's name. It costs nothing, and may be repeated.

        The name is empty for a provider that takes the lines in the creation.
        """
        ...

    async def create(self, file: str, lines: Sequence[bytes], label: str) -> Job:
        """Create the job, with exactly one request; raises ``CreateError``."""
        ...

    async def fetch_job(self, name: str) -> Job:
        """Return a job as it is now; raise ``ModelError`` where that fails."""
        ...

    async def read_results(self, job: Job, take: Callable[[ResultLine], None]) -> int:
        """Hand every line of the results to ``take``, in any order, perhaps twice; return how many were unreadable.

        Raises ``ModelError`` when they could not be read to the end; then some lines may have been handed on.
        """
        ...

    async def list_jobs(self, since: float) -> Sequence[Job]:
        """List every job that was created after ``since``, in seconds since 1970; earlier ones may be among them."""
        ...

    async def cancel(self, name: str) -> None:
        """Ask the provider to end a job; what is answered by then is still delivered."""
        ...

    async def aclose(self) -> None:
        """Close the connections."""
        ...


def has_reached(page: Sequence[Job], since: float) -> bool:
    """Return whether a page of a list of jobs, newest first, ends before ``since``, so that later pages are not needed.

    False for a list in another order, or without times: it is read to its end, because a job that is overlooked would
    be created, and paid for, once more.
    """
    times = [job.created_at for job in page if job.created_at is not None]
    has_all_times = len(times) == len(page) > 1
    return has_all_times and times[0] > times[-1] and times[-1] < since


def read_time(text: str | None) -> float | None:
    """Read a time in ISO 8601 as seconds since 1970; ``None`` for what is no time."""
    try:
        return None if text is None else datetime.fromisoformat(text).timestamp()
    except ValueError:
        return None


AGAIN_STATUS = frozenset({408, 409, 429})

AGAIN_NAMES = frozenset({
    "batch_expired", "expired", "timeout_error", "api_error", "overloaded_error", "rate_limit_error",
    "rate_limit_exceeded", "server_error", "internal_error", "internal_server_error",
})  # fmt: skip
"""Names of errors that another try may mend."""

AGAIN_CODES = frozenset({4, 8, 10, 13, 14})
"""gRPC's codes that another try may mend: deadline exceeded, resource exhausted, aborted, internal, unavailable."""


def classify(*, status: int | None = None, name: str = "") -> Kind:
    """Classify a request that has no reply, by the error's HTTP status and name: ask ``again``, or ``never``."""
    if name in AGAIN_NAMES:
        return "again"
    if status is not None and (status in AGAIN_STATUS or status >= 500):
        return "again"
    return "never"
