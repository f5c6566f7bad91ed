"""The dispatcher of batches: it sends the requests that wait, polls their jobs and collects the results.

Where the code for each step of a job is:

* ``_send_part`` keeps the intent (``planned``), uploads (``uploading``) and sends the creation once (``creating``, then
  ``waiting``).
* ``_poll_jobs`` asks the provider about each job that is due. ``_collect_results`` keeps every line of the results of
  one that has ended, and gives each other request the job's reason (``collected``). Where there is no reason, the
  request may have been run: the job is ``doubtful``.
* ``_mark_doubtful`` is for a creation without an answer: the job may exist, and may cost money (``doubtful``).
  ``_search_doubtful`` looks for it among the provider's jobs: if it is found, it is waited for.
* ``_requeue_requests`` puts the requests of a job that never ran back among those to be sent (``refused``).
* ``recover`` does the same for what an earlier process left half done.
* How many requests, and of what size, go into one job is decided in ``models/batch/lines.py`` (``split_by_limits``).

Each state is on disk before the next step is taken. To find out what became of a batch, begin with
``adjudge batch list RUN --json``: it has the state, the label, the provider's id and the last message of each.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
import time
from base64 import b32encode
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from adjudge.errors import AdjudgeError, Argument, ModelError, ReplyError, UsageError
from adjudge.formats.text import clean
from adjudge.models.batch.job import BatchApi, CreateError, Job, Kind, ResultLine, State
from adjudge.models.batch.lines import count_tokens, split_by_limits
from adjudge.models.batch.open import open_batch_api
from adjudge.models.model import Request
from adjudge.models.providers.base import HttpModel
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.batch.store import OPEN, BatchStore, KeptBatch, KeptRequest, LineCounts

_log = logging.getLogger("adjudge")

QUIET_SECONDS = 0.5
"""Seconds without a new request after which the waiting requests are sent. If every running judgement waits for a
request, the time until the first poll of a job is enough, if that is less."""

QUIET_TURNS = 50
"""Turns of the event loop during which no new request may come either."""

MOST_TRIES = 3
"""The number of times that a request goes into a batch, in all, while each time the provider does not run it.
``BatchedModel`` gives up then."""

LINES_AT_ONCE = 500
"""Lines of results that are written to the file in one transaction."""

MOST_REFUSALS = 12
"""Creations in a row that are refused before the run stops: halving a part finds the one line that is to blame, unless
all of them are."""

MOST_FAILED_UPLOADS = 5
"""Uploads in a row that fail before the run stops."""

CLOCK_SKEW = 3_600.0
"""Seconds by which a provider's clock may be behind ours when its jobs are searched for one of ours."""

MOST_POLL_GROWTH = 10.0
"""The factor to which the time between two polls of a job grows."""

OVERDUE_SECONDS = 3_600.0
"""Seconds after the end of a provider's own time window from which on a job is overdue."""

_STOPPING_STATUSES = frozenset({401, 402, 403})
"""Statuses that end the run: the key is refused, or the account cannot pay."""

_NO_LIST_STATUSES = frozenset({404, 405, 501})
"""Statuses of a provider that has no list of its jobs."""

_UNREAD_STATES = ("waiting", "cancelling", "ended")
"""The states of a job whose results are not read to their end."""

_TEMPORARY_STATUSES = frozenset({408, 409, 425, 429})
"""Statuses from 400 to 499 of a request that may be answered later."""


@dataclass(eq=False, slots=True, kw_only=True)
class _WaitingRequest:
    """A request that waits for its outcome."""

    place: str
    """Case, order, sample, model, seat and attempt, as ``make_reply_key`` writes them."""
    key: str
    """The digest of the request itself: what is kept at the same place for other words does not count."""
    model: HttpModel
    request: Request
    held_usd: float
    """Dollars of the budget that are held for it."""
    outcome: asyncio.Future[KeptRequest] = field(repr=False)


@dataclass(slots=True)
class _NextPoll:
    """The time at which a job is polled next."""

    due: float
    """The time of the poll, on ``time.monotonic``."""
    wait: float
    """Seconds until the poll after that; they grow."""


class BatchDispatcher:
    """Sends the requests of a run as batches, and hands each its outcome.

    ``fetch`` is for any number of tasks; ``work`` is the one that sends and collects. ``is_all_asked`` says that nobody
    will ask more until something is answered, and ``count_judging`` how many judgements are under way. ``on_change`` is
    called when something was sent or came back, ``on_paid_twice`` with the dollars of requests that are sent again
    though a provider may run them.
    """

    def __init__(
        self,
        store: BatchStore,
        options: BatchOptions,
        *,
        is_all_asked: Callable[[], bool] = lambda: True,
        count_judging: Callable[[], int] = lambda: 0,
        on_change: Callable[[], None] = lambda: None,
        on_paid_twice: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._store, self._options = store, options
        self._is_all_asked, self._count_judging = is_all_asked, count_judging
        self._on_change, self._on_paid_twice = on_change, on_paid_twice
        self._apis: dict[str, BatchApi] = {}
        """By the model's name."""
        self._models: dict[str, HttpModel] = {}
        """By their names."""
        self._earlier_batches: frozenset[int] = frozenset()
        """The batches of earlier processes, which ``pay_again`` is about."""
        self._unsent: dict[str, list[_WaitingRequest]] = {}
        """By the model's name: requests that are in no job yet."""
        self._sent: dict[str, _WaitingRequest] = {}
        """By the request's id: requests in a job, for whose outcome a judgement of this process waits."""
        self._next_polls: dict[int, _NextPoll] = {}
        """By the batch's number, as are the next three."""
        self._doubtful_since: dict[int, float] = {}
        self._stuck_batches: set[int] = set()
        """Doubtful batches that waiting does not settle: their provider lists no jobs, or their results lack lines."""
        self._foreign_jobs: dict[int, set[str]] = {}
        """Jobs of the account that are not this doubtful batch, because their results have none of its ids."""
        self._used_ids: list[str] = []
        """Ids of requests whose outcome a judgement has used; they are written with the next step."""
        self._used_places: list[str] = []
        self._most_tokens: dict[str, int] = {}
        """By the model's name: tokens that may be queued, as found out when the provider refused more."""
        self._refusals: dict[str, int] = {}
        """By the model's name: creations in a row that were refused."""
        self._failed_uploads: dict[str, int] = {}
        """By the model's name: uploads in a row that failed."""
        self._not_before: dict[str, float] = {}
        """By the model's name: when the next job may be sent, on ``time.monotonic``."""
        self._has_news = asyncio.Event()
        self._last_activity = time.monotonic()
        """The time when a request was last handed in or answered, on ``time.monotonic``."""
        self._held_usd = 0.0
        self._is_halting = False

    # ---------------------------------------------------------------- for those who ask

    def register(self, model: HttpModel) -> None:
        """Open the batch interface of a model, so that its jobs can be polled. Raises ``UsageError`` if it has none."""
        if model.name not in self._apis:
            self._apis[model.name] = open_batch_api(model)
            self._models[model.name] = model
            refused = self._store.find_fact(_name_refused_fact(model.name))
            model.refuse_parameters(refused.split() if refused else ())

    @property
    def held_usd(self) -> float:
        """The dollars that are held for the waiting requests; a resumed run asks for the same and holds them again."""
        return max(self._held_usd, 0.0)

    @property
    def unsent_count(self) -> int:
        """The number of requests that are in no job yet."""
        return sum(len(items) for items in self._unsent.values())

    async def fetch(
        self,
        model: HttpModel,
        request: Request,
        *,
        place: str,
        key: str,
        held_usd: float = 0.0,
        failed_id: str | None = None,
    ) -> KeptRequest:
        """Wait for the outcome of a request: one that is on disk, that of a job under way, or that of a new job.

        ``failed_id`` is the id of the last try that had no reply, whose outcome is not returned again. An outcome that
        a judgement has used before is returned again only if it is an answer and the request accepts kept replies.
        """
        row = self._store.find_request(place)
        if row is not None and row.key == key and row.id != failed_id:
            # Until all results of the job are read, they may have a second answer to the same request.
            if row.state == "sent" or self._store.find_batch(row.batch).state in _UNREAD_STATES:
                self.register(model)
                waiting = self._sent[row.id] = self._make_waiting(model, request, place, key, held_usd)
                self._note_activity()
                return await waiting.outcome
            is_answer = (row.state == "reply" and row.body) or row.state == "contradiction"
            if not row.used or (is_answer and not request.call.anew):
                return row
        self.register(model)
        waiting = self._make_waiting(model, request, place, key, held_usd)
        self._unsent.setdefault(model.name, []).append(waiting)
        self._note_activity()
        return await waiting.outcome

    def _make_waiting(
        self, model: HttpModel, request: Request, place: str, key: str, held_usd: float
    ) -> _WaitingRequest:
        """Make a waiting request; its dollars are held from now on, until its outcome is there."""
        outcome = asyncio.get_running_loop().create_future()
        self._held_usd += held_usd

        def release_hold(outcome: asyncio.Future[KeptRequest]) -> None:
            # If the judgement was cancelled, the request is still under way and may have to be paid for.
            if not outcome.cancelled():
                self._held_usd -= held_usd

        outcome.add_done_callback(release_hold)
        return _WaitingRequest(place=place, key=key, model=model, request=request, held_usd=held_usd, outcome=outcome)

    def count_tries(self, place: str, key: str) -> int:
        """Count how often a request has been in a job that did not run it, since a judgement last used its outcome."""
        return self._store.count_tries(place, key)

    def note_used(self, row: KeptRequest) -> None:
        """Note that a judgement has used the outcome of a request; ``write_used`` writes it down."""
        if not row.used:
            self._used_ids.append(row.id)

    def note_place_used(self, place: str) -> None:
        """Note that a judgement has given up a place, after tries without a reply; ``write_used`` writes it down."""
        self._used_places.append(place)

    def refuse_parameters(self, model: HttpModel, names: Iterable[str]) -> None:
        """Leave parameters out of further requests to a model, also in a process that resumes the run."""
        model.refuse_parameters(names)
        names_text = " ".join(sorted(model.refused))
        if self._store.find_fact(_name_refused_fact(model.name)) != names_text:
            self._store.set_fact(_name_refused_fact(model.name), names_text)

    def halt(self) -> None:
        """Send nothing more; ``work`` returns after the step that is under way."""
        self._is_halting = True
        self._has_news.set()

    # ---------------------------------------------------------------- the task

    async def work(self) -> None:
        """Send, poll and collect until halted; raises ``AdjudgeError`` if the run cannot continue."""
        self.recover()
        while not self._is_halting:
            self.write_used()
            await self.poll()
            await self._send_ready()
            await self._check_progress()
            await self._wait_for_news(self.find_wait())
        self.write_used()

    async def poll(self) -> None:
        """Ask the providers about every job that is due, and keep the results that have come."""
        await self._search_doubtful()
        await self._poll_jobs()

    async def cancel(self, batch: KeptBatch) -> None:
        """Ask the provider to end a job; raises ``ModelError`` when it refuses."""
        api = self._find_api(batch)
        if api is not None:
            await api.cancel(batch.job)
            self._store.change(batch.number, state="cancelling")

    def _note_activity(self) -> None:
        """Note that a request was handed in or answered just now, and wake up ``work``."""
        self._last_activity = time.monotonic()
        self._has_news.set()

    async def _wait_for_news(self, seconds: float) -> None:
        """Wait until something happens, at most so many seconds.

        Call this without an ``await`` after the seconds were computed. The event is cleared here, so a change that came
        in between would be lost; changes before that are part of the computation.
        """
        self._has_news.clear()
        if self._is_halting:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._has_news.wait()
        except TimeoutError:
            pass

    def find_wait(self) -> float:
        """Compute the seconds until the next step is due: a poll of a job, or sending the waiting requests."""
        now = time.monotonic()
        waits = [next_poll.due - now for next_poll in self._next_polls.values()]
        # While requests come one by one, short waits find out when they have stopped.
        if self.unsent_count:
            waits.append(min(QUIET_SECONDS, self._options.poll) / 5)
        shortest_wait = min(waits, default=self._options.poll)
        return min(max(shortest_wait, 0.01), self._options.poll)

    def write_used(self) -> None:
        """Write down which outcomes judgements have used, and which places they have given up."""
        used, self._used_ids = self._used_ids, []
        places, self._used_places = self._used_places, []
        if used:
            self._store.note_used(used)
        if places:
            self._store.note_places_used(places)

    # ---------------------------------------------------------------- what was before

    def recover(self) -> None:
        """Continue with the open batches of an earlier process, each by its state on disk."""
        now = time.monotonic()
        self._earlier_batches = frozenset(open_batch.number for open_batch in self._store.list_batches(OPEN))
        for batch in self._store.list_batches(OPEN):
            if batch.state in ("planned", "uploading"):
                reason = "the process ended before it was created; its requests are sent in another"
                self._store.forget_requests(batch.number, "refused", reason)
            elif batch.state == "creating":
                self._mark_doubtful(batch.number, "the process ended while it was created")
                self._next_polls[batch.number].due = now
            elif batch.state == "doubtful":
                self._doubtful_since[batch.number] = now
            else:
                self._next_polls[batch.number] = _NextPoll(now, self._options.poll)

    def _mark_doubtful(self, number: int, reason: str) -> None:
        """Note that it is not known whether a job was created, and schedule a search among the provider's jobs."""
        self._store.change(number, state="doubtful", message=reason)
        self._doubtful_since[number] = time.monotonic()
        self._next_polls[number] = _NextPoll(time.monotonic() + self._listing_grace, self._listing_grace)
        batch = self._store.find_batch(number)
        _log.warning("batch %s (%s, %s requests) is doubtful: %s", number, batch.model, batch.requests, reason)

    @property
    def _listing_grace(self) -> float:
        """Seconds in which a provider should list a job that it has created."""
        return 2 * self._options.poll

    def _find_api(self, batch: KeptBatch) -> BatchApi | None:
        """Return the batch interface of a job's model; ``None`` if that model is not registered.

        Raises ``UsageError`` if the job was created with another key or at another address.
        """
        api = self._apis.get(batch.model)
        if api is not None and api.digest != batch.account:
            raise UsageError(
                f"batch {batch.number} of {batch.model} was created with another key or at another address, where it "
                "goes on; set those it was created with"
            )
        return api

    # ---------------------------------------------------------------- doubtful

    async def _search_doubtful(self) -> None:
        """Search the providers' jobs for each doubtful batch that is due."""
        for batch in self._store.list_batches(("doubtful",)):
            next_poll = self._next_polls.setdefault(batch.number, _NextPoll(0.0, self._options.poll))
            api = self._find_api(batch)
            if api is None or next_poll.due > time.monotonic():
                continue
            self._schedule_next_poll(next_poll)
            await self._search_for_batch(batch, api)

    async def _search_for_batch(self, batch: KeptBatch, api: BatchApi) -> None:
        """Search the provider's jobs for a doubtful batch.

        If it is found, it is waited for. If the provider has no such job, and had time to list it, the requests are
        requeued. Otherwise the batch stays doubtful. If its job is known, its results are read once more.
        """
        if batch.job:  # the job is known and has ended, but its results lacked lines
            await self._poll_again(batch, api)
            return
        try:
            jobs = await api.list_jobs(batch.created_at - CLOCK_SKEW)
            job, has_unfinished = await self._find_job(batch, api, jobs)
        except ModelError as error:
            if error.status in _STOPPING_STATUSES:
                raise
            if error.status in _NO_LIST_STATUSES:
                self._stuck_batches.add(batch.number)
            self._keep_message(batch, f"its provider's batches cannot be searched: {error}")
            self._requeue_if_allowed(batch)
            return
        if job is not None:
            self._adopt_job(batch, api, job)
        elif has_unfinished:
            self._keep_message(batch, "a batch that has not ended yet may be it, and only its results can tell")
            self._requeue_if_allowed(batch)
        elif time.monotonic() >= self._doubtful_since.get(batch.number, 0.0) + self._listing_grace:
            self._requeue_requests(batch.number, "the provider has no such batch; its requests are sent in another")

    async def _poll_again(self, batch: KeptBatch, api: BatchApi) -> None:
        """Read the results of a job once more, which lacked lines before."""
        try:
            await self._poll_job(batch, api)
        except ModelError as error:
            if error.status in _STOPPING_STATUSES:
                raise
            self._store.change(batch.number, state="doubtful")
            self._stuck_batches.add(batch.number)
            self._keep_message(batch, f"its results cannot be read again: {error}")
            self._requeue_if_allowed(batch)

    async def _find_job(self, batch: KeptBatch, api: BatchApi, jobs: Sequence[Job]) -> tuple[Job | None, bool]:
        """Find the job of a doubtful batch by its label, or by the ids of its requests in the results of a job.

        Returns the job, or ``None``; and true if a job that has not ended may be the one, which only its results can
        tell. A job whose results have none of the ids is remembered as foreign, and is not read again.
        """
        if api.labelled:
            return next((job for job in jobs if job.label == batch.label), None), False
        known_jobs = {known_batch.job for known_batch in self._store.list_batches()}
        # Nothing of a doubtful batch was collected, so all its requests still have the state ``sent``.
        request_ids = {request_id for request_id, _ in self._store.list_sent(batch.number)}
        foreign_jobs = self._foreign_jobs.setdefault(batch.number, set())
        has_unfinished = False
        for job in jobs:
            is_other_size = job.total not in (None, batch.requests)
            if job.id in known_jobs or job.id in foreign_jobs or is_other_size:
                continue
            if job.phase != "ended":
                has_unfinished = True
            elif await _has_any_result(api, job, request_ids):
                return job, False
            else:
                foreign_jobs.add(job.id)
        return None, has_unfinished

    def _requeue_if_allowed(self, batch: KeptBatch) -> None:
        """Requeue the unanswered requests of a job with the option ``pay_again``; without it, change nothing.

        The provider may have run them, so they may be paid for twice. This is done for jobs of earlier processes only,
        so that a request which this process sends again is not sent a third time.
        """
        if not self._options.pay_again or batch.number not in self._earlier_batches:
            return
        self._on_paid_twice(self._store.add_held(batch.number))
        self._store.note_paid_again(batch.number)
        if self._store.list_settled(batch.number):
            remark = "its requests without an answer were sent again"
            self._requeue_requests(batch.number, f"{batch.message}; {remark}".removeprefix("; "), state="collected")
            return
        reason = "it could not be told whether it was created" if not batch.job else "it was overdue, or lacked answers"
        self._requeue_requests(batch.number, f"{reason}; its requests were sent again")

    def _adopt_job(self, batch: KeptBatch, api: BatchApi, job: Job) -> None:
        """Note that a doubtful batch was found at the provider as ``job``, and wait for its results."""
        deadline = batch.created_at + api.limits.window + OVERDUE_SECONDS
        self._store.change(batch.number, state="waiting", job=job.id, word=job.word, deadline=deadline, message="")
        self._next_polls[batch.number] = _NextPoll(time.monotonic(), self._options.poll)
        self._doubtful_since.pop(batch.number, None)
        self._stuck_batches.discard(batch.number)
        self._on_change()

    def _requeue_requests(self, number: int, reason: str, *, state: State = "refused") -> None:
        """Put the unanswered requests of a job back among the unsent ones, so that they go into another job.

        Call this only for a job that certainly never ran, or with ``pay_again``; otherwise they would be paid for
        twice.
        """
        request_ids = [request_id for request_id, _ in self._store.list_sent(number)]
        self._store.forget_requests(number, state, reason)
        self._next_polls.pop(number, None)
        self._doubtful_since.pop(number, None)
        self._stuck_batches.discard(number)
        for request_id in request_ids:
            waiting = self._sent.pop(request_id, None)
            if waiting is not None and not waiting.outcome.done():
                self._unsent.setdefault(waiting.model.name, []).append(waiting)
        self._note_activity()
        self._on_change()

    def _keep_message(self, batch: KeptBatch, message: str) -> None:
        """Store and log a message about a batch, if it is a new one."""
        message = clean(message[:500], keep_lines=False)
        if message != batch.message:
            self._store.change(batch.number, message=message)
            _log.warning("batch %s of %s: %s", batch.number, batch.model, message)

    # ---------------------------------------------------------------- polling and collecting

    async def _poll_jobs(self) -> None:
        """Ask the provider about each job that is due; if that fails, note it and ask again later."""
        for batch in self._store.list_batches(("waiting", "cancelling", "ended")):
            next_poll = self._next_polls.setdefault(batch.number, _NextPoll(0.0, self._options.poll))
            api = self._find_api(batch)
            if api is None or next_poll.due > time.monotonic():
                continue
            self._schedule_next_poll(next_poll)
            try:
                await self._poll_job(batch, api)
            except ModelError as error:
                if error.status in _STOPPING_STATUSES:
                    raise
                self._keep_message(batch, f"it could not be looked at, and is again later: {error}")
                if self._is_overdue(batch) and _is_final(error):
                    # Without this, a batch whose results the provider has deleted could never be sent again.
                    self._requeue_if_allowed(batch)

    def _schedule_next_poll(self, next_poll: _NextPoll) -> None:
        """Set the time of a job's next poll; the time between two polls grows."""
        next_poll.due = time.monotonic() + next_poll.wait * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
        next_poll.wait = min(next_poll.wait * 1.5, self._options.poll * MOST_POLL_GROWTH)

    async def _poll_job(self, batch: KeptBatch, api: BatchApi) -> None:
        """Ask the provider about one job: note its state, or collect its results if it has ended."""
        job = await api.fetch_job(batch.job)
        if job.phase != "ended":
            self._note_under_way(batch, job)
            return
        ended_at = batch.ended_at or time.time()
        # If the job has no message, the earlier one is kept: it may say why the results could not be read.
        message = job.message[:500] or batch.message
        self._store.change(batch.number, state="ended", word=job.word, ended_at=ended_at, message=message)
        await self._collect_results(self._store.find_batch(batch.number), api, job)

    def _note_under_way(self, batch: KeptBatch, job: Job) -> None:
        """Note the state of a job that has not ended; with ``pay_again``, an overdue one is sent again."""
        state = "cancelling" if job.phase == "cancelling" or batch.state == "cancelling" else "waiting"
        if (batch.state, batch.word, batch.done) != (state, job.word, job.done or 0):
            self._store.change(batch.number, state=state, word=job.word, done=job.done or 0)
        if not job.known:
            message = f"the provider says {job.word[:60]!r}, which is no state that is known; it is waited for"
            self._keep_message(batch, message)
        if self._is_overdue(batch) and self._options.pay_again:
            self._requeue_if_allowed(batch)

    async def _collect_results(self, batch: KeptBatch, api: BatchApi, job: Job) -> None:
        """Keep every line of the results of a job that has ended, and decide about the requests without a line.

        They get the job's reason, are sent in another job, or, if they may have been run, make the batch doubtful.
        Raises ``AdjudgeError`` if the provider would refuse any other job as well.
        """
        result_lines = _ResultLines(self._store, batch.number, self._make_comparison(batch.model))
        unreadable_count = await api.read_results(job, result_lines.add)
        result_lines.flush()
        missing = self._store.list_sent(batch.number)
        if job.fatal and not result_lines.counts.fresh:
            self._requeue_requests(batch.number, job.message or f"the provider ended it as {job.word}")
            raise AdjudgeError(
                f"{batch.model}: the provider refused batch {batch.number}, and would refuse the next: {job.message}; "
                "nothing of it was run; put it right, and go on with ",
                Argument("resume"),
            )
        if job.bad_lines is not None:
            bad = [(request_id, job.bad_lines[line]) for request_id, line in missing if line in job.bad_lines]
            failed_lines = [_make_failed(request_id, "invalid_request", problem) for request_id, problem in bad]
            self._keep_lines(batch.number, failed_lines)
            self._requeue_requests(batch.number, f"{job.message}; its other requests are sent in another")
            return
        if job.queue_full:
            self._most_tokens[batch.model] = max(self._store.count_tokens(batch.model), batch.tokens // 2, 1)
            self._requeue_requests(batch.number, "the queue of tokens was full; its requests are sent later")
            self._not_before[batch.model] = time.monotonic() + self._options.poll
            return
        answered = self._store.list_settled(batch.number)
        # Requests without a line may have been run, and charged, if the job gives no reason, or if it failed half way.
        is_doubtful = bool(missing) and (job.reason == "lost" or (job.reason == "failed" and bool(answered)))
        if not is_doubtful:
            self._keep_lines(batch.number, _make_missing_lines(missing, job))
        self._deliver_outcomes(self._store.list_settled(batch.number))
        notes = [
            *result_lines.list_notes(unreadable_count),
            *_describe_missing(len(missing), job, is_doubtful=is_doubtful),
        ]
        message = clean("; ".join((job.message, *notes))[:500], keep_lines=False).removeprefix("; ")
        if notes and message != batch.message:
            _log.warning("batch %s of %s: %s", batch.number, batch.model, "; ".join(notes))
        state: State = "doubtful" if is_doubtful else "collected"
        done = len(answered) if is_doubtful else len(answered) + len(missing)
        self._store.change(batch.number, state=state, message=message, done=done)
        if is_doubtful:
            self._stuck_batches.add(batch.number)
            self._requeue_if_allowed(self._store.find_batch(batch.number))
        else:
            self._next_polls.pop(batch.number, None)
        self._on_change()

    def _make_comparison(self, model: str) -> Callable[[bytes, bytes], bool]:
        """Make a function that returns true for two replies with the same answer.

        Their ids and times do not count, because these differ if a request was run twice.
        """
        read_body = self._models[model].read_body

        def find_answer(body: bytes) -> object:
            try:
                reply = read_body(body)
            except (ModelError, ReplyError):
                return body
            return reply.text, reply.finish_reason

        return lambda first, second: first == second or find_answer(first) == find_answer(second)

    def _keep_lines(self, number: int, lines: Sequence[ResultLine]) -> None:
        """Write lines to the file, and deliver the outcomes of their job to the judgements that wait."""
        for start in range(0, len(lines), LINES_AT_ONCE):
            self._store.keep_lines(number, lines[start : start + LINES_AT_ONCE])
        self._deliver_outcomes(self._store.list_settled(number))

    def _deliver_outcomes(self, request_ids: Sequence[str]) -> None:
        """Deliver the outcomes of requests, as they are on disk, to the judgements that wait for them."""
        outcomes: list[tuple[_WaitingRequest, KeptRequest]] = []
        for row in self._store.find_requests([request_id for request_id in request_ids if request_id in self._sent]):
            waiting = self._sent.pop(row.id)
            if not waiting.outcome.done():
                outcomes.append((waiting, row))
        answered_ids = [row.id for _, row in outcomes if row.state in ("reply", "contradiction")]
        self._store.note_used(answered_ids)
        for waiting, row in outcomes:
            waiting.outcome.set_result(replace(row, used=row.used or row.id in answered_ids))
        if outcomes:
            self._note_activity()

    # ---------------------------------------------------------------- sending

    async def _send_ready(self) -> None:
        """Send the waiting requests of each model: a full batch at once, a smaller one after a quiet while."""
        for name in list(self._unsent):
            waiting = [request for request in self._unsent[name] if not request.outcome.done()]
            self._unsent[name] = waiting
            if not waiting or self._not_before.get(name, 0.0) > time.monotonic() or self._is_halting:
                continue
            api = self._apis[name]
            if len(waiting) < api.limits.requests and not await self._stays_quiet():
                continue
            await self._send_requests(name, api)

    def _is_quiet_now(self) -> bool:
        """Return whether no request has come for a while, and none is to be expected."""
        # A judgement that waits for no request may be about to ask, in a thread that has not run yet.
        have_all_asked = self._count_judging() <= self.unsent_count + len(self._sent)
        quiet_seconds = min(QUIET_SECONDS, self._options.poll) if have_all_asked else QUIET_SECONDS
        return time.monotonic() - self._last_activity >= quiet_seconds and self._is_all_asked()

    async def _stays_quiet(self) -> bool:
        """Return whether no request has come for a while, and none comes during some turns of the event loop.

        On a busy machine, time alone does not show whether the judgements that are about to ask have run.
        """
        activity_before = self._last_activity
        for _ in range(QUIET_TURNS if self._is_quiet_now() else 0):
            await asyncio.sleep(0)
        return self._last_activity == activity_before and self._is_quiet_now()

    async def _send_requests(self, model: str, api: BatchApi) -> None:
        """Send the waiting requests of a model in jobs, as far as its queue of tokens has room for them."""
        waiting, self._unsent[model] = self._unsent[model], []
        # Store the parameters that the live check found to be refused, for a process that resumes without a check.
        self.refuse_parameters(waiting[0].model, ())
        sizes: dict[int, int] = {}  # the bytes of each request's line, with an id of the longest kind
        sendable: list[_WaitingRequest] = []
        for request in waiting:
            try:
                sizes[id(request)] = len(api.render_line("-" * 64, request.request))
            except UsageError as error:  # this request could not be sent live either
                request.outcome.set_exception(error)
            else:
                sendable.append(request)
        free_tokens = self._find_free_tokens(model)
        parts = split_by_limits(sendable, api.limits, lambda request: sizes[id(request)], tokens=free_tokens)
        queued = self._store.count_tokens(model)
        for number, part in enumerate(parts):
            tokens = count_tokens(sum(sizes[id(request)] for request in part))
            most = self._find_most_tokens(model)
            is_full = most is not None and queued > 0 and queued + tokens > most
            if is_full or self._is_halting or self._not_before.get(model, 0.0) > time.monotonic():
                # The remaining parts are sent later.
                remaining = [request for remaining_part in parts[number:] for request in remaining_part]
                self._unsent[model] = [*remaining, *self._unsent[model]]
                return
            await self._send_part(model, api, part)
            queued = self._store.count_tokens(model)

    def _find_most_tokens(self, model: str) -> int | None:
        """Return the most tokens that may be queued for a model: by the options, or as the provider has shown."""
        limits = [most for most in (self._options.tokens, self._most_tokens.get(model)) if most is not None]
        return min(limits, default=None)

    def _find_free_tokens(self, model: str) -> int | None:
        """Return the most tokens that the next job of a model may have; ``None`` if there is no limit."""
        most = self._find_most_tokens(model)
        if most is None:
            return None
        queued = self._store.count_tokens(model)
        return max(most - queued, 1) if queued < most else most

    async def _send_part(self, model: str, api: BatchApi, part: Sequence[_WaitingRequest]) -> None:
        """Send some requests as one job: write the intent, upload the lines, create the job and note its id.

        If the provider refuses the job, its halves are sent as jobs of their own.
        """
        part = [request for request in part if not request.outcome.done()]
        if not part:
            return
        label = f"adjudge-{secrets.token_hex(8)}"
        request_ids = [_make_id(label, request) for request in part]
        lines = [
            api.render_line(request_id, request.request) for request_id, request in zip(request_ids, part, strict=True)
        ]
        size = sum(map(len, lines))
        # The intent, with the label, is on disk before anything is sent. If this process is killed later, another one
        # can find out by it what was sent. Keep the order of the steps from here to the provider's answer.
        number = await asyncio.to_thread(
            self._store.plan,
            label=label,
            model=model,
            account=api.digest,
            size=size,
            tokens=count_tokens(size),
            digest=hashlib.sha256(b"".join(lines)).hexdigest(),
            now=time.time(),
            requests=[
                (request_id, request.place, request.key, request.held_usd)
                for request_id, request in zip(request_ids, part, strict=True)
            ],
        )
        self._sent.update(zip(request_ids, part, strict=True))
        self._on_change()
        if not await self._upload_lines(number, model, api, lines, label):
            return
        file = self._store.find_batch(number).file
        try:
            job = await self._create_job(number, api, file, lines, label)
        except CreateError as error:
            await self._handle_refusal(number, error, api, model=model, part=part, request_ids=request_ids)
            return
        self._refusals[model] = 0
        if job is not None:
            deadline = time.time() + api.limits.window + OVERDUE_SECONDS
            self._store.change(number, state="waiting", job=job.id, word=job.word, deadline=deadline)
            self._next_polls[number] = _NextPoll(time.monotonic() + self._options.poll, self._options.poll)
            self._on_change()

    async def _upload_lines(self, number: int, model: str, api: BatchApi, lines: Sequence[bytes], label: str) -> bool:
        """Upload the lines of a job; return false, and put its requests back among the unsent ones, if that fails.

        Raises ``ModelError`` if another attempt would not help: the provider refuses the file, or several uploads in a
        row have failed.
        """
        self._store.change(number, state="uploading")
        try:
            file = await api.upload(lines, label)
        except ModelError as error:
            self._requeue_requests(number, f"its file could not be uploaded: {error}"[:500])
            failures = self._failed_uploads[model] = self._failed_uploads.get(model, 0) + 1
            is_refused = error.status is not None and error.status < 500 and error.status != 429
            if is_refused or failures >= MOST_FAILED_UPLOADS:
                raise
            self._not_before[model] = time.monotonic() + 2 * self._options.poll
            return False
        self._failed_uploads[model] = 0
        self._store.change(number, state="creating", file=file)
        return True

    async def _create_job(
        self, number: int, api: BatchApi, file: str, lines: Sequence[bytes], label: str
    ) -> Job | None:
        """Create the job at the provider, and return it; wait and try again while the provider asks for that.

        Returns ``None`` if the job is doubtful, or if the run is halted before it is created. Raises ``CreateError`` if
        the provider refuses it.
        """
        while True:
            try:
                return await api.create(file, lines, label)
            except CreateError as error:
                if error.because == "doubtful":
                    self._mark_doubtful(number, f"its creation was not answered: {error}"[:500])
                    return None
                if error.because != "wait":
                    raise
                # Nothing was created: the server answered 429, or it was not reached.
                seconds = min(max(error.seconds or self._options.poll, 0.05), 600.0)
                self._store.change(number, message=f"waiting to create it: {error}"[:500])
            await asyncio.sleep(seconds if not self._is_halting else 0.0)
            if self._is_halting:
                self._requeue_requests(number, "it was not created before the run was interrupted")
                return None

    async def _handle_refusal(
        self,
        number: int,
        error: CreateError,
        api: BatchApi,
        *,
        model: str,
        part: Sequence[_WaitingRequest],
        request_ids: Sequence[str],
    ) -> None:
        """Handle a refused creation: stop the run, give up a single request, or send each half as a job of its own.

        Raises ``AdjudgeError`` to stop the run.
        """
        self._refusals[model] = self._refusals.get(model, 0) + 1
        reason = clean(str(error)[:500], keep_lines=False)
        if error.because == "stop" or (self._refusals[model] > MOST_REFUSALS and len(part) > 1):
            self._requeue_requests(number, reason)
            raise AdjudgeError(
                f"{model}: no batch can be created: {reason}; nothing of it was sent; put it right, and go on with ",
                Argument("resume"),
            )
        if len(part) == 1:
            self._keep_lines(number, [_make_failed(request_ids[0], "refused", reason)])
            self._store.change(number, state="refused", message=reason)
            return
        # One line may be the reason why the whole is refused, so each half is sent by itself.
        self._requeue_requests(number, reason)
        part_ids = set(map(id, part))
        self._unsent[model] = [request for request in self._unsent.get(model, ()) if id(request) not in part_ids]
        middle = len(part) // 2
        for position, half in enumerate((part[:middle], part[middle:])):
            try:
                await self._send_part(model, api, half)
            except BaseException:
                remaining = part[middle:] if position == 0 else ()
                self._unsent[model] = [*remaining, *self._unsent[model]]
                raise

    # ---------------------------------------------------------------- where nothing goes on

    def _is_overdue(self, batch: KeptBatch) -> bool:
        """Return whether a batch should have ended by the provider's own rules."""
        return batch.deadline is not None and time.time() > batch.deadline

    async def _check_progress(self) -> None:
        """Raise ``AdjudgeError`` if all open batches are doubtful or overdue, so that the user has to decide."""
        if not self._sent or self.unsent_count or not await self._stays_quiet() or self.unsent_count:
            return
        open_batches = [batch for batch in self._store.list_batches(OPEN) if batch.model in self._apis]
        doubtful = [batch for batch in open_batches if batch.number in self._stuck_batches]
        overdue = [
            batch for batch in open_batches if self._is_overdue(batch) and batch.number not in self._stuck_batches
        ]
        if not open_batches or len(doubtful) + len(overdue) < len(open_batches):
            return
        numbers = ", ".join(str(batch.number) for batch in (*doubtful, *overdue))
        problem = "doubtful: it cannot be told whether the provider has it" if doubtful else "overdue"
        if any(batch.job for batch in doubtful):
            lost = sum(len(self._store.list_sent(batch.number)) for batch in doubtful)
            problem = f"doubtful: the provider may have run {lost:,} of its requests, and gave no answer to them"
        raise AdjudgeError(
            f"batch {numbers} is {problem}, and nothing else is left to wait for; see adjudge batch list, and go on "
            "later with ",
            Argument("resume"),
            ", or send its requests again with ",
            Argument("pay_again"),
        )


class _ResultLines:
    """The lines of a job's results while they are read, written to the file some at a time.

    Outcomes are delivered after the last line, because a later line may contradict an earlier one.
    """

    def __init__(self, store: BatchStore, number: int, is_same: Callable[[bytes, bytes], bool]) -> None:
        self._store, self._number, self._is_same = store, number, is_same
        self._lines: list[ResultLine] = []
        self.counts = LineCounts()

    def add(self, line: ResultLine) -> None:
        """Add a line, and write the lines so far if they are many."""
        self._lines.append(line)
        if len(self._lines) >= LINES_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write the lines that are not written yet."""
        lines, self._lines = self._lines, []
        self.counts += self._store.keep_lines(self._number, lines, is_same=self._is_same)

    def list_notes(self, unreadable: int) -> Iterator[str]:
        """Yield notes on lines that could not be used; ``unreadable`` is the number of those that could not be read."""
        if unreadable:
            yield f"{unreadable:,} lines of its results could not be read"
        if self.counts.unknown:
            yield f"{self.counts.unknown:,} lines of its results have ids of no request"
        if self.counts.differing:
            yield f"{self.counts.differing:,} requests were answered twice, differently, so neither answer counts"


def _make_missing_lines(missing: Sequence[tuple[str, int]], job: Job) -> list[ResultLine]:
    """Make a result line, with the job's reason, for each request that the provider did not run.

    ``missing`` has the ids of the requests, each with the number of its line.
    """
    kind: Kind = "never" if job.reason == "cancelled" else "again"
    message = job.message or f"the batch ended as {job.word} without an answer to this request"
    return [ResultLine(id=request_id, kind=kind, name=job.reason, message=message) for request_id, _ in missing]


def _describe_missing(number: int, job: Job, *, is_doubtful: bool) -> Iterator[str]:
    """Yield a note about the requests that a job left without an answer; nothing if there are none."""
    if is_doubtful:
        yield (
            f"it ended as {job.word} without an answer to {number:,} of its requests, which may have been run and "
            "charged; only --pay-again sends them again"
        )
    elif number:
        yield f"{number:,} requests were not answered: {job.reason}"


async def _has_any_result(api: BatchApi, job: Job, request_ids: set[str]) -> bool:
    """Return whether the results of a job have a line with one of these ids."""
    has_match = False

    def check_line(line: ResultLine) -> None:
        nonlocal has_match
        has_match = has_match or line.id in request_ids

    await api.read_results(job, check_line)
    return has_match


def _make_id(label: str, waiting: _WaitingRequest) -> str:
    """Make the id of a request in a job. No other job has it.

    It has at most 64 characters of ``A-Za-z0-9_-``, because the strictest provider wants that.
    """
    digest = hashlib.sha256(f"{waiting.place}\n{waiting.key}".encode(errors="surrogatepass")).digest()[:16]
    short = b32encode(digest).decode().rstrip("=").lower()
    return f"{label.removeprefix('adjudge-')}-{short}-{waiting.request.sample}-{waiting.request.attempt}"[:64]


def _make_failed(request_id: str, error: str, message: str) -> ResultLine:
    """Make the result line of a request with an error that another try would meet as well."""
    return ResultLine(id=request_id, kind="never", name=error, message=message)


def _is_final(error: ModelError) -> bool:
    """Return whether a provider will give the same error later too, such as 404 for results that it has deleted."""
    return error.status is not None and 400 <= error.status < 500 and error.status not in _TEMPORARY_STATUSES


def _name_refused_fact(model: str) -> str:
    """Return the name of the fact in ``batches.sqlite`` that lists the parameters a model does not take."""
    return f"refused by {model}"
