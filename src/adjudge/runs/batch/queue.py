"""What waits for batches, and the one task that sends it, looks how it goes, and collects what came back."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import random
import secrets
import time
from base64 import b32encode
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from adjudge.errors import AdjudgeError, ModelError, UsageError
from adjudge.formats.text import clean
from adjudge.models.batch.job import BatchApi, CreateError, Job, ResultLine
from adjudge.models.batch.lines import count_tokens, split_by_limits
from adjudge.models.batch.open import open_batch_api
from adjudge.models.model import Request
from adjudge.models.providers.base import HttpModel
from adjudge.runs.batch.options import BatchOptions
from adjudge.runs.batch.store import OPEN, BatchStore, KeptBatch, KeptRequest

_log = logging.getLogger("adjudge")

QUIET = 0.5
"""Seconds without another request after which those that wait are sent, where nobody is to ask more; and at most the
first wait between two looks at a job."""

TURNS = 50
"""Turns of the event loop for which it has to stay so."""

TRIES = 3
"""How often a request goes into a batch, in all, while each time the provider does not run it."""

CHUNK = 500
"""Lines of results that are kept at once."""

REFUSALS = 12
"""Creations in a row that are refused before the run stops: halving a part finds the one line that is to blame, unless
all of them are."""

UPLOADS = 5
"""Uploads in a row that fail before the run stops."""

SKEW = 3_600.0
"""Seconds by which a provider's clock may be behind ours when its jobs are searched for one of ours."""

SLOWEST = 10.0
"""How many times the first wait the time between two looks at a job grows to."""

OVERDUE = 3_600.0
"""Seconds after a provider's own window has ended."""

_STOPPING = frozenset({401, 402, 403})

_CANNOT_LIST = frozenset({404, 405, 501})


@dataclass(eq=False, slots=True, kw_only=True)
class _Waiting:
    """A request that waits for its outcome."""

    place: str
    key: str
    model: HttpModel
    request: Request
    held: float
    outcome: asyncio.Future[KeptRequest] = field(repr=False)


@dataclass(slots=True)
class _Looks:
    """When a job is looked at next."""

    due: float
    wait: float


class BatchQueue:
    """The requests of a run that wait for batches.

    ``fetch`` is for any number of tasks; ``work`` is the one that sends and collects. ``is_all_asked`` says that nobody
    will ask more until something is answered. ``on_change`` is called when something was sent or came back,
    ``on_paid_twice`` with the dollars of requests that are sent again though a provider may run them.
    """

    def __init__(
        self,
        store: BatchStore,
        options: BatchOptions,
        *,
        is_all_asked: Callable[[], bool] = lambda: True,
        on_change: Callable[[], None] = lambda: None,
        on_paid_twice: Callable[[float], None] = lambda _: None,
    ) -> None:
        self._store, self._options = store, options
        self._is_all_asked, self._on_change, self._on_paid_twice = is_all_asked, on_change, on_paid_twice
        self._apis: dict[str, BatchApi] = {}
        self._unsent: dict[str, list[_Waiting]] = {}
        self._sent: dict[str, _Waiting] = {}
        self._looks: dict[int, _Looks] = {}
        self._doubtful_since: dict[int, float] = {}
        self._untellable: set[int] = set()
        self._strangers: dict[int, set[str]] = {}
        self._used: list[str] = []
        self._used_places: list[str] = []
        self._most_tokens: dict[str, int] = {}
        self._refusals: dict[str, int] = {}
        self._uploads: dict[str, int] = {}
        self._not_before: dict[str, float] = {}
        self._news = asyncio.Event()
        self._last = time.monotonic()
        self._held = 0.0
        self._halting = False

    # ---------------------------------------------------------------- for those who ask

    def register(self, model: HttpModel) -> None:
        """Make a model known, so that its jobs can be looked at; raises ``UsageError`` where it has no batches."""
        if model.name not in self._apis:
            self._apis[model.name] = open_batch_api(model)
            said = self._store.find_fact(_name_refused(model.name))
            model.refuse_parameters(said.split() if said else ())

    @property
    def held(self) -> float:
        """The dollars that are held for what waits here: a run that goes on asks for the same, and holds it again."""
        return max(self._held, 0.0)

    @property
    def unsent(self) -> int:
        """Requests that are in no job yet."""
        return sum(len(items) for items in self._unsent.values())

    async def fetch(
        self, model: HttpModel, request: Request, *, place: str, key: str, held: float = 0.0, after: str | None = None
    ) -> KeptRequest:
        """What came of a request, once that is known; ``after`` is the id of a try that was in vain.

        An outcome that a judgement was given before counts again only where it is a reply, and the request may be
        answered by a kept one.
        """
        row = self._store.find_request(place)
        if row is not None and row.key == key and row.id != after:
            if row.state == "sent":
                self.register(model)
                waiting = self._sent[row.id] = self._make_waiting(model, request, place, key, held)
                self._touch()
                return await waiting.outcome
            if not row.used or (row.state == "reply" and row.body and not request.call.anew):
                return row
        self.register(model)
        waiting = self._make_waiting(model, request, place, key, held)
        self._unsent.setdefault(model.name, []).append(waiting)
        self._touch()
        return await waiting.outcome

    def _make_waiting(self, model: HttpModel, request: Request, place: str, key: str, held: float) -> _Waiting:
        outcome = asyncio.get_running_loop().create_future()
        self._held += held

        def let_go(_: object) -> None:
            self._held -= held

        outcome.add_done_callback(let_go)
        return _Waiting(place=place, key=key, model=model, request=request, held=held, outcome=outcome)

    def count_tries(self, place: str, key: str) -> int:
        """How often a request was in a batch in vain, since a judgement was last told of it."""
        return self._store.count_tries(place, key)

    def note_used(self, row: KeptRequest) -> None:
        """Take note that a judgement was given this; on disk a moment later."""
        if not row.used:
            self._used.append(row.id)

    def note_place_used(self, place: str) -> None:
        """Take note that a judgement was told that every try for a place was in vain."""
        self._used_places.append(place)

    def refuse_parameters(self, model: HttpModel, names: Iterable[str]) -> None:
        """Leave parameters out of what is sent from now on, in other processes too."""
        model.refuse_parameters(names)
        said = " ".join(sorted(model.refused))
        if self._store.find_fact(_name_refused(model.name)) != said:
            self._store.keep_fact(_name_refused(model.name), said)

    def halt(self) -> None:
        """Send nothing more; ``work`` returns when the step it is at has ended."""
        self._halting = True
        self._news.set()

    # ---------------------------------------------------------------- the task

    async def work(self) -> None:
        """Send, look and collect until halted; raises ``AdjudgeError`` where a run cannot go on."""
        self.recover()
        while not self._halting:
            self.write_used()
            await self.look()
            await self._send_what_is_ready()
            self._check_whether_stuck()
            await self._pause(self.find_wait())
        self.write_used()

    async def look(self) -> None:
        """Look at every job that is due, and keep what has come back."""
        await self._look_up_doubtful()
        await self._look_at_jobs()

    async def cancel(self, batch: KeptBatch) -> None:
        """Ask the provider to end a job; raises ``ModelError`` when it refuses."""
        api = self._find_api(batch)
        if api is not None:
            await api.cancel(batch.job)
            self._store.change(batch.number, state="cancelling")

    def _touch(self) -> None:
        self._last = time.monotonic()
        self._news.set()

    async def _pause(self, seconds: float) -> None:
        self._news.clear()
        if self._halting:
            return
        try:
            async with asyncio.timeout(seconds):
                await self._news.wait()
        except TimeoutError:
            pass

    def find_wait(self) -> float:
        """Seconds until there is something to do, as far as that is known."""
        now = time.monotonic()
        due = [looks.due - now for looks in self._looks.values()]
        # News wakes this at once; while requests come one by one, it is looked whether they have stopped.
        if self.unsent:
            due.append(min(QUIET, self._options.poll) / 5)
        return min(max(min(due, default=self._options.poll), 0.01), self._options.poll)

    def write_used(self) -> None:
        """Write down what judgements were given."""
        used, self._used = self._used, []
        places, self._used_places = self._used_places, []
        if used:
            self._store.note_used(used)
        if places:
            self._store.note_places_used(places)

    # ---------------------------------------------------------------- what was before

    def recover(self) -> None:
        """Put right what a process that ended left half done: sent or not is known by the state that it wrote first."""
        now = time.monotonic()
        for batch in self._store.list_batches(OPEN):
            if batch.state in ("planned", "uploading"):
                said = "the process ended before it was created; its requests are sent in another"
                self._store.forget_requests(batch.number, "refused", said)
            elif batch.state == "creating":
                self._doubt(batch.number, "the process ended while it was created")
                self._looks[batch.number].due = now
            elif batch.state == "doubtful":
                self._doubtful_since[batch.number] = now
            else:
                self._looks[batch.number] = _Looks(now, self._options.poll)

    def _doubt(self, number: int, why: str) -> None:
        self._store.change(number, state="doubtful", message=why)
        self._doubtful_since[number] = time.monotonic()
        self._looks[number] = _Looks(time.monotonic() + self._grace, self._grace)
        batch = self._store.find_batch(number)
        _log.warning("batch %s (%s, %s requests) is doubtful: %s", number, batch.model, batch.requests, why)

    @property
    def _grace(self) -> float:
        """Seconds that a provider has to list a job that it created."""
        return 2 * self._options.poll

    def _find_api(self, batch: KeptBatch) -> BatchApi | None:
        """The interface of a job's model, once somebody has asked that model; raises where the key is another."""
        api = self._apis.get(batch.model)
        if api is not None and api.digest != batch.account:
            raise UsageError(
                f"batch {batch.number} of {batch.model} was created with another key or at another address, where it "
                "goes on; set those it was created with"
            )
        return api

    # ---------------------------------------------------------------- doubtful

    async def _look_up_doubtful(self) -> None:
        for batch in self._store.list_batches(("doubtful",)):
            looks = self._looks.setdefault(batch.number, _Looks(0.0, self._options.poll))
            api = self._find_api(batch)
            if api is None or looks.due > time.monotonic():
                continue
            self._schedule(looks)
            await self._look_up(batch, api)

    async def _look_up(self, batch: KeptBatch, api: BatchApi) -> None:
        """Find a doubtful job among the provider's; what cannot be told stays as it is."""
        try:
            jobs = await api.list_jobs(batch.created_at - SKEW)
            found, open_ends = await self._search(batch, api, jobs)
        except ModelError as error:
            if error.status in _STOPPING:
                raise
            if error.status in _CANNOT_LIST:
                self._untellable.add(batch.number)
            self._keep_message(batch, f"its provider's batches cannot be searched: {error}")
            self._release_doubtful(batch)
            return
        if found is not None:
            self._adopt(batch, api, found)
        elif open_ends:
            self._keep_message(batch, "a batch that has not ended yet may be it, and only its results can tell")
            self._release_doubtful(batch)
        elif time.monotonic() >= self._doubtful_since.get(batch.number, 0.0) + self._grace:
            self._take_back(batch.number, "the provider has no such batch; its requests are sent in another")

    async def _search(self, batch: KeptBatch, api: BatchApi, jobs: Sequence[Job]) -> tuple[Job | None, bool]:
        """The job with the label, or with our ids in its results; and whether some cannot be told yet."""
        if api.labelled:
            return next((job for job in jobs if job.label == batch.label), None), False
        ours = {item.job for item in self._store.list_batches()}
        # Nothing of a doubtful job was collected, so that all its requests are among those that were sent.
        names = {name for name, _ in self._store.list_sent(batch.number)}
        strangers, open_ends = self._strangers.setdefault(batch.number, set()), False
        for job in jobs:
            if job.id in ours or job.id in strangers or job.total not in (None, batch.requests):
                continue
            if job.means != "ended":
                open_ends = True
            elif await _holds_any(api, job, names):
                return job, False
            else:
                strangers.add(job.id)
        return None, open_ends

    def _release_doubtful(self, batch: KeptBatch) -> None:
        """With ``pay_again``, what cannot be told is sent again."""
        if not self._options.pay_again:
            return
        self._on_paid_twice(self._store.add_held(batch.number))
        self._take_back(batch.number, "it could not be told whether it was created; its requests were sent again")

    def _adopt(self, batch: KeptBatch, api: BatchApi, job: Job) -> None:
        deadline = batch.created_at + api.limits.window + OVERDUE
        changes: dict[str, Any] = {"word": job.word, "deadline": deadline, "message": ""}
        self._store.change(batch.number, state="waiting", job=job.id, **changes)
        self._looks[batch.number] = _Looks(time.monotonic(), self._options.poll)
        self._doubtful_since.pop(batch.number, None)
        self._untellable.discard(batch.number)
        self._on_change()

    def _take_back(self, number: int, why: str) -> None:
        """Have the requests of a job that never ran sent in another."""
        names = [name for name, _ in self._store.list_sent(number)]
        self._store.forget_requests(number, "refused", why)
        self._looks.pop(number, None)
        self._doubtful_since.pop(number, None)
        self._untellable.discard(number)
        for name in names:
            waiting = self._sent.pop(name, None)
            if waiting is not None and not waiting.outcome.done():
                self._unsent.setdefault(waiting.model.name, []).append(waiting)
        self._touch()
        self._on_change()

    def _keep_message(self, batch: KeptBatch, said: str) -> None:
        said = clean(said[:500], keep_lines=False)
        if said != batch.message:
            self._store.change(batch.number, message=said)
            _log.warning("batch %s of %s: %s", batch.number, batch.model, said)

    # ---------------------------------------------------------------- looking and collecting

    async def _look_at_jobs(self) -> None:
        for batch in self._store.list_batches(("waiting", "cancelling", "ended")):
            looks = self._looks.setdefault(batch.number, _Looks(0.0, self._options.poll))
            api = self._find_api(batch)
            if api is None or looks.due > time.monotonic():
                continue
            self._schedule(looks)
            try:
                await self._look(batch, api)
            except ModelError as error:
                if error.status in _STOPPING:
                    raise
                self._keep_message(batch, f"it could not be looked at, and is again later: {error}")

    def _schedule(self, looks: _Looks) -> None:
        looks.due = time.monotonic() + looks.wait * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
        looks.wait = min(looks.wait * 1.5, self._options.poll * SLOWEST)

    async def _look(self, batch: KeptBatch, api: BatchApi) -> None:
        job = await api.look(batch.job)
        if job.means != "ended":
            self._note_under_way(batch, job)
            return
        ended_at = batch.ended_at or time.time()
        self._store.change(batch.number, state="ended", word=job.word, ended_at=ended_at, message=job.message[:500])
        await self._collect(self._store.find_batch(batch.number), api, job)

    def _note_under_way(self, batch: KeptBatch, job: Job) -> None:
        state = "cancelling" if job.means == "cancelling" or batch.state == "cancelling" else "waiting"
        if (batch.state, batch.word, batch.done) != (state, job.word, job.done or 0):
            self._store.change(batch.number, state=state, word=job.word, done=job.done or 0)
        if not job.known:
            said = f"the provider says {job.word[:60]!r}, which is no state that is known; it is waited for"
            self._keep_message(batch, said)
        if self._is_overdue(batch) and self._options.pay_again:
            self._release_doubtful(batch)

    async def _collect(self, batch: KeptBatch, api: BatchApi, job: Job) -> None:
        """Keep every line there is, whatever the end is called, and give each other request the job's reason."""
        notes: list[str] = []
        got = _Gathered(self._store, batch.number, self._deliver)
        unreadable = await api.read_results(job, got.take)
        got.flush()
        missing = self._store.list_sent(batch.number)
        if job.fatal and not got.fresh:
            self._take_back(batch.number, job.message or f"the provider ended it as {job.word}")
            raise AdjudgeError(
                f"{batch.model}: the provider refused batch {batch.number}, and would refuse the next: {job.message}; "
                "nothing of it was run; put it right, and go on with resume (--resume)"
            )
        if job.bad_lines is not None:
            bad = [(name, job.bad_lines[line]) for name, line in missing if line in job.bad_lines]
            self._keep(batch.number, [_make_failed(name, "invalid_request", said) for name, said in bad])
            self._take_back(batch.number, f"{job.message}; its other requests are sent in another")
            return
        if job.queue_full:
            self._most_tokens[batch.model] = max(self._store.count_tokens(batch.model), batch.tokens // 2, 1)
            self._take_back(batch.number, "the queue of tokens was full; its requests are sent later")
            self._not_before[batch.model] = time.monotonic() + self._options.poll
            return
        kind = "never" if job.reason == "cancelled" else "again"
        said = job.message or f"the batch ended as {job.word} without an answer to this request"
        rest = [ResultLine(id=name, kind=kind, name=job.reason, message=said) for name, _ in missing]
        self._keep(batch.number, rest)
        if unreadable:
            notes.append(f"{unreadable:,} lines of its results could not be read")
        if got.unknown:
            notes.append(f"{got.unknown:,} lines of its results have ids of no request")
        if got.differing:
            notes.append(f"{got.differing:,} requests were answered twice, differently; the first answer counts")
        if rest:
            notes.append(f"{len(rest):,} requests were not answered: {job.reason}")
        if notes:
            _log.warning("batch %s of %s: %s", batch.number, batch.model, "; ".join(notes))
        message = clean("; ".join((job.message, *notes))[:500], keep_lines=False).removeprefix("; ")
        self._store.change(batch.number, state="collected", message=message, done=got.fresh + len(rest))
        self._looks.pop(batch.number, None)
        self._on_change()

    def _keep(self, number: int, lines: Sequence[ResultLine]) -> None:
        for begin in range(0, len(lines), CHUNK):
            fresh, _, _ = self._store.keep_lines(number, lines[begin : begin + CHUNK])
            self._deliver(fresh)

    def _deliver(self, names: Sequence[str]) -> None:
        """Tell those who wait; what is on disk is told, and nothing else."""
        told: list[tuple[_Waiting, KeptRequest]] = []
        for row in self._store.find_requests([name for name in names if name in self._sent]):
            waiting = self._sent.pop(row.id)
            if not waiting.outcome.done():
                told.append((waiting, row))
        self._store.note_used([row.id for _, row in told if row.state == "reply"])
        for waiting, row in told:
            waiting.outcome.set_result(replace(row, used=True) if row.state == "reply" else row)
        if told:
            self._touch()

    # ---------------------------------------------------------------- sending

    async def _send_what_is_ready(self) -> None:
        for name in list(self._unsent):
            waiting = [item for item in self._unsent[name] if not item.outcome.done()]
            self._unsent[name] = waiting
            if not waiting or self._not_before.get(name, 0.0) > time.monotonic() or self._halting:
                continue
            api = self._apis[name]
            if len(waiting) < api.limits.requests and not await self._stays_quiet():
                continue
            await self._send(name, api)

    def _is_quiet(self) -> bool:
        return time.monotonic() - self._last >= min(QUIET, self._options.poll) and self._is_all_asked()

    async def _stays_quiet(self) -> bool:
        """Whether nobody asks for a while, and for some turns of the loop.

        On a busy machine, time alone does not tell whether those who are to ask have had their turn.
        """
        last = self._last
        for _ in range(TURNS if self._is_quiet() else 0):
            await asyncio.sleep(0)
        return self._last == last and self._is_quiet()

    async def _send(self, model: str, api: BatchApi) -> None:
        """Send what waits for a model, as far as its queue has room."""
        waiting, self._unsent[model] = self._unsent[model], []
        # What the live check has found that the provider does not take, for a process that goes on without one.
        self.refuse_parameters(waiting[0].model, ())
        sizes: dict[int, int] = {}
        fit: list[_Waiting] = []
        for item in waiting:
            try:
                sizes[id(item)] = len(api.render_line("-" * 64, item.request))
            except UsageError as error:  # what cannot be sent live either
                item.outcome.set_exception(error)
            else:
                fit.append(item)
        room = self._find_room(model)
        parts = split_by_limits(fit, api.limits, lambda item: sizes[id(item)], tokens=room)
        queued = self._store.count_tokens(model)
        for number, part in enumerate(parts):
            tokens = count_tokens(sum(sizes[id(item)] for item in part))
            most = self._find_most_tokens(model)
            full = most is not None and queued > 0 and queued + tokens > most
            if full or self._halting or self._not_before.get(model, 0.0) > time.monotonic():
                # The rest goes when what is queued has ended.
                self._unsent[model] = [*(item for rest in parts[number:] for item in rest), *self._unsent[model]]
                return
            await self._send_part(model, api, part)
            queued = self._store.count_tokens(model)

    def _find_most_tokens(self, model: str) -> int | None:
        known = [most for most in (self._options.tokens, self._most_tokens.get(model)) if most is not None]
        return min(known, default=None)

    def _find_room(self, model: str) -> int | None:
        """The tokens that a part may come to; an empty queue takes at least one request."""
        most = self._find_most_tokens(model)
        if most is None:
            return None
        queued = self._store.count_tokens(model)
        return max(most - queued, 1) if queued < most else most

    async def _send_part(self, model: str, api: BatchApi, part: Sequence[_Waiting]) -> None:
        """One job, from its intent to the provider's name for it; where it is refused, in halves."""
        part = [item for item in part if not item.outcome.done()]
        if not part:
            return
        label = f"adjudge-{secrets.token_hex(8)}"
        names = [_make_name(label, item) for item in part]
        lines = [api.render_line(name, item.request) for name, item in zip(names, part, strict=True)]
        size = sum(map(len, lines))
        # The intent, with the label, before anything leaves: a process that is killed from here on can be asked what
        # it did. Nothing between this and the answer may be done in another order.
        number = await asyncio.to_thread(
            self._store.plan,
            label=label,
            model=model,
            account=api.digest,
            size=size,
            tokens=count_tokens(size),
            digest=hashlib.sha256(b"".join(lines)).hexdigest(),
            now=time.time(),
            requests=[(name, item.place, item.key, item.held) for name, item in zip(names, part, strict=True)],
        )
        self._sent.update(zip(names, part, strict=True))
        self._on_change()
        if not await self._upload(number, model, api, lines, label):
            return
        file = self._store.find_batch(number).file
        try:
            job = await self._create(number, api, file, lines, label)
        except CreateError as error:
            await self._handle_refusal(number, error, api, model=model, part=part, names=names)
            return
        self._refusals[model] = 0
        if job is not None:
            deadline = time.time() + api.limits.window + OVERDUE
            self._store.change(number, state="waiting", job=job.id, word=job.word, deadline=deadline)
            self._looks[number] = _Looks(time.monotonic() + self._options.poll, self._options.poll)
            self._on_change()

    async def _upload(self, number: int, model: str, api: BatchApi, lines: Sequence[bytes], label: str) -> bool:
        self._store.change(number, state="uploading")
        try:
            file = await api.upload(lines, label)
        except ModelError as error:
            self._take_back(number, f"its file could not be uploaded: {error}"[:500])
            self._uploads[model] = self._uploads.get(model, 0) + 1
            if (error.status is not None and error.status < 500 and error.status != 429) or self._uploads[
                model
            ] >= UPLOADS:
                raise
            self._not_before[model] = time.monotonic() + 2 * self._options.poll
            return False
        self._uploads[model] = 0
        self._store.change(number, state="creating", file=file)
        return True

    async def _create(self, number: int, api: BatchApi, file: str, lines: Sequence[bytes], label: str) -> Job | None:
        """The job; ``None`` where it is doubtful, or was put off. Raises ``CreateError`` where it is refused."""
        while True:
            try:
                return await api.create(file, lines, label)
            except CreateError as error:
                if error.because == "doubtful":
                    self._doubt(number, f"its creation was not answered: {error}"[:500])
                    return None
                if error.because != "wait":
                    raise
                # Nothing was created: a server that says 429 did not take it, and one that was not reached knows of
                # nothing.
                seconds = min(max(error.seconds or self._options.poll, 0.05), 600.0)
                self._store.change(number, message=f"waiting to create it: {error}"[:500])
            await asyncio.sleep(seconds if not self._halting else 0.0)
            if self._halting:
                self._take_back(number, "it was not created before the run was interrupted")
                return None

    async def _handle_refusal(
        self,
        number: int,
        error: CreateError,
        api: BatchApi,
        *,
        model: str,
        part: Sequence[_Waiting],
        names: Sequence[str],
    ) -> None:
        self._refusals[model] = self._refusals.get(model, 0) + 1
        said = clean(str(error)[:500], keep_lines=False)
        if error.because == "stop" or (self._refusals[model] > REFUSALS and len(part) > 1):
            self._take_back(number, said)
            raise AdjudgeError(
                f"{model}: no batch can be created: {said}; nothing of it was sent; put it right, and go on with "
                "resume (--resume)"
            )
        if len(part) == 1:
            self._keep(number, [_make_failed(names[0], "refused", said)])
            self._store.change(number, state="refused", message=said)
            return
        # One line can be to blame for the whole: each half is tried by itself.
        self._take_back(number, said)
        mine = set(map(id, part))
        self._unsent[model] = [item for item in self._unsent.get(model, ()) if id(item) not in mine]
        middle = len(part) // 2
        for position, half in enumerate((part[:middle], part[middle:])):
            try:
                await self._send_part(model, api, half)
            except BaseException:
                rest = part[middle:] if position == 0 else ()
                self._unsent[model] = [*rest, *self._unsent[model]]
                raise

    # ---------------------------------------------------------------- where nothing goes on

    def _is_overdue(self, batch: KeptBatch) -> bool:
        return batch.deadline is not None and time.time() > batch.deadline

    def _check_whether_stuck(self) -> None:
        """Raise where everything that is waited for may never come, and only a person can say what is to be done."""
        if not self._sent or self.unsent or not self._is_quiet():
            return
        left = [item for item in self._store.list_batches(OPEN) if item.model in self._apis]
        doubtful = [item for item in left if item.number in self._untellable]
        overdue = [item for item in left if self._is_overdue(item) and item.number not in self._untellable]
        if not left or len(doubtful) + len(overdue) < len(left):
            return
        numbers = ", ".join(str(item.number) for item in (*doubtful, *overdue))
        what = "doubtful: it cannot be told whether the provider has it" if doubtful else "overdue"
        raise AdjudgeError(
            f"batch {numbers} is {what}, and nothing else is left to wait for; see adjudge batch list, and go on "
            "later with resume (--resume), or send its requests again with pay_again (--pay-again)"
        )


class _Gathered:
    """Lines as they come, kept by the chunk."""

    def __init__(self, store: BatchStore, number: int, deliver: Callable[[Sequence[str]], None]) -> None:
        self._store, self._number, self._deliver = store, number, deliver
        self._lines: list[ResultLine] = []
        self.fresh = self.differing = self.unknown = 0

    def take(self, line: ResultLine) -> None:
        """Take a line."""
        self._lines.append(line)
        if len(self._lines) >= CHUNK:
            self.flush()

    def flush(self) -> None:
        """Keep what was taken, and tell those who wait."""
        lines, self._lines = self._lines, []
        fresh, differing, unknown = self._store.keep_lines(self._number, lines)
        self.fresh += len(fresh)
        self.differing += differing
        self.unknown += unknown
        self._deliver(fresh)


async def _holds_any(api: BatchApi, job: Job, names: set[str]) -> bool:
    """Whether the results of a job have a line with one of these ids."""
    met = False

    def take(line: ResultLine) -> None:
        nonlocal met
        met = met or line.id in names

    await api.read_results(job, take)
    return met


def _make_name(label: str, item: _Waiting) -> str:
    """A request's id: at most 64 of ``A-Za-z0-9_-``, as the strictest provider wants it, and in no other job."""
    digest = hashlib.sha256(f"{item.place}\n{item.key}".encode(errors="surrogatepass")).digest()[:16]
    short = b32encode(digest).decode().rstrip("=").lower()
    return f"{label.removeprefix('adjudge-')}-{short}-{item.request.sample}-{item.request.attempt}"[:64]


def _make_failed(name: str, error: str, said: str) -> ResultLine:
    return ResultLine(id=name, kind="never", name=error, message=said)


def _name_refused(model: str) -> str:
    return f"refused by {model}"
