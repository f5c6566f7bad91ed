"""The shape of a model: one request in, one reply out.

``Model`` is a Protocol with a name and one coroutine method, so anything can be one: a provider, a local server, a
recording, a function. A model does not know what a rubric is, and a judge does not know what HTTP is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, runtime_checkable

from adjudge.formats.record import write_record
from adjudge.formats.text import clean
from adjudge.result import Usage

FinishReason = Literal["stop", "length", "refusal", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """The JSON Schema a reply must fit, for providers that can hold a model to one.

    It is constant for a rubric, so a provider compiles it once. What comes back is still read and checked in code.

    Args:
        name: Letters, digits, ``_`` and ``-``, at most 64 characters, as providers ask.
        schema: The JSON Schema.
        digest: SHA-256 of the schema's canonical form; tells two forms apart in caches and recordings.
    """

    name: str
    """Letters, digits, ``_`` and ``-``, at most 64 characters, as providers ask."""
    schema: Mapping[str, Any] = field(hash=False)
    """The JSON Schema."""
    digest: str
    """SHA-256 of the schema's canonical form; tells two forms apart in caches and recordings."""


class Listener(Protocol):
    """An object that is told how a provider answers, such as a ``Pace``."""

    def note(self, status: int, headers: Mapping[str, str], /) -> None:
        """Take an answer into account: its status, and the headers that say what is left of the provider's limits.

        Args:
            status: The status of the HTTP answer.
            headers: The headers of the HTTP answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The terms under which a request is made. Nothing of it is sent, kept, or part of any digest or key.

    Args:
        pace: The listener that is told how the provider answers.
        pay_again: Awaited before a request that broke off on the way is sent again: the provider may charge for both,
            and a budget has to hold for both. It raises where the budget has no room.
        anew: True if this repeats an earlier question because of its answer; then no stored reply may answer it.
        secret: The secret of whoever asks, from which the token is made; ``None`` is the process's own. A run whose
            replies are fetched by another process has one.
    """

    pace: Listener | None = None
    """The listener that is told how the provider answers."""
    pay_again: Callable[[], Awaitable[None]] | None = None
    """Awaited before a request that broke off on the way is sent again: the provider may charge for both, and a budget
    has to hold for both. It raises where the budget has no room."""
    anew: bool = False
    """True if this repeats an earlier question because of its answer; then no stored reply may answer it."""
    secret: bytes | None = field(default=None, repr=False)
    """The secret of whoever asks, from which the token is made; ``None`` is the process's own. A run whose replies are
    fetched by another process has one."""


UNBOUND = Call()
"""The terms of a request that sets none: no pace, no budget, and stored replies may answer it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionIdentity:
    """The identity of the function of a judge in code: it tells its answers from another's, or another version's."""

    module: str
    """The module that it is in."""
    qualname: str
    """Its name in the module."""
    code: str
    """SHA-256 of its code (``models.function_identity`` says of what), or the text that was given in its place."""

    def to_dict(self) -> dict[str, str]:
        """This value as plain data."""
        return write_record(self)

    def __str__(self) -> str:
        # For sentences; it may come out of a file, and hold what a terminal would obey.
        return clean(f"{self.module}.{self.qualname}"[:200], keep_lines=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FunctionInput:
    """The input of a judge in code, in place of the prompt. A model never sees it, and nothing of it is sent."""

    arguments: Callable[[], Mapping[str, Any]]
    """Makes ``content``, ``task``, ``reference``, ``context`` and ``rubric``, where there are any: new values at each
    call, made from the very text that is judged, so that nobody can change what somebody else is given."""
    write: Callable[[Any], str]
    """Writes the function's return value as canonical JSON; raises ``ReplyError`` for a value that is not an answer."""
    key: str
    """The part of it that the prompt does not tell, for keys of caches and recordings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request to a model.

    Args:
        system: Instructions, the same bytes for every content judged by one rubric, so providers can cache them.
        user: The content and what belongs to it, as fenced data.
        form: Ask for structured output of this form; ``None`` asks for text.
        temperature: The temperature; ``None`` leaves it to the provider.
        seed: The seed, if the provider takes one.
        max_output_tokens: The most tokens of the reply; ``None`` leaves it to the provider.
        logprobs: Ask for token log-probabilities where the provider offers them.
        token: The token to mask in digests and recordings; never sent on its own.
        case: The id of the case in its data set, for recordings; never sent.
        subject: SHA-256 of the content, so that what is kept of it can be deleted; never sent.
        order: ``ab`` or ``ba`` when two are compared, for recordings; never sent.
        attempt: 1, or 2 for a re-ask, for recordings; never sent.
        sample: The number of the judgement, of several of the same content, that this belongs to, for caches; never
            sent.
        call: Pace, budget, and whether a kept reply may answer. A model around another one hands it on: with
            ``replace(request, ...)`` it stays, in a new ``Request`` without it a budget is not asked about another try.
        function_input: The input of a judge in code; ``None`` where a model is asked.
    """

    system: str
    """Instructions, the same bytes for every content judged by one rubric, so providers can cache them."""
    user: str
    """The content and what belongs to it, as fenced data."""
    form: Form | None = None
    """Ask for structured output of this form; ``None`` asks for text."""
    temperature: float | None = 0.0
    """The temperature; ``None`` leaves it to the provider."""
    seed: int | None = None
    """The seed, if the provider takes one."""
    max_output_tokens: int | None = 2048
    """The most tokens of the reply; ``None`` leaves it to the provider."""
    logprobs: bool = False
    """Ask for token log-probabilities where the provider offers them."""
    token: str | None = None
    """The token to mask in digests and recordings; never sent on its own."""
    case: str | None = None
    """The id of the case in its data set, for recordings; never sent."""
    subject: str | None = None
    """SHA-256 of the content, so that what is kept of it can be deleted; never sent."""
    order: str | None = None
    """``ab`` or ``ba`` when two are compared, for recordings; never sent."""
    attempt: int = 1
    """1, or 2 for a re-ask, for recordings; never sent."""
    sample: int = 0
    """The number of the judgement, of several of the same content, that this belongs to, for caches; never sent."""
    call: Call = field(default=UNBOUND, repr=False, compare=False)
    """Pace, budget, and whether a kept reply may answer. A model around another one hands it on: with
    ``replace(request, ...)`` it stays, in a new ``Request`` without it a budget is not asked about another try."""
    function_input: FunctionInput | None = field(default=None, repr=False, compare=False)
    """The input of a judge in code; ``None`` where a model is asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """One token of the reply with its log-probability and those of the alternatives the provider listed.

    Args:
        token: The token.
        logprob: The natural logarithm of its probability.
        top: (token, log-probability) pairs, the chosen token usually among them.
    """

    token: str
    """The token."""
    logprob: float
    """The natural logarithm of its probability."""
    top: tuple[tuple[str, float], ...] = ()
    """(token, log-probability) pairs, the chosen token usually among them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The answer of a model.

    Args:
        text: The answer's text; reasoning that a provider returns in a field of its own is never here.
        finish_reason: ``refusal`` comes from the provider's own signal, never from the words of the reply.
        usage: Tokens and calls; ``None`` is unknown.
        logprobs: The tokens with their log-probabilities; ``None`` where the provider gives none.
        model: The model as the provider reports it.
        model_requested: The model name that the provider was asked for; ``None`` for functions, which have none.
        model_expected: The name that replies reported first, where the provider may report any (deployments, routers,
            own servers).
        request_id: The provider's id of the request, for its support and its logs.
        function: The judge in code that returned this; ``None`` for a model's reply. Such an answer has no token, and
            it may come from a file that somebody else wrote. So a judge accepts it only if it asked exactly that
            function.
    """

    text: str | None = None
    """The answer's text; reasoning that a provider returns in a field of its own is never here."""
    finish_reason: FinishReason = "stop"
    """``refusal`` comes from the provider's own signal, never from the words of the reply."""
    usage: Usage | None = None
    """Tokens and calls; ``None`` is unknown."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The tokens with their log-probabilities; ``None`` where the provider gives none."""
    model: str | None = None
    """The model as the provider reports it."""
    model_requested: str | None = None
    """The model name that the provider was asked for; ``None`` for functions, which have none."""
    model_expected: str | None = None
    """The name that replies reported first, where the provider may report any (deployments, routers, own servers)."""
    request_id: str | None = None
    """The provider's id of the request, for its support and its logs."""
    function: FunctionIdentity | None = None
    """The judge in code that returned this; ``None`` for a model's reply. Such an answer has no token, and it may come
    from a file that somebody else wrote. So a judge accepts it only if it asked exactly that function.
    """


@runtime_checkable
class Model(Protocol):
    """Anything that turns a request into a reply.

    A model may also have: ``named(name)`` returning the same connection with another model's name; ``check()`` raising
    ``UsageError`` for mistakes that are found before anything is asked (a missing key); ``aclose()``; ``structured``
    (true if ``Request.form`` is honoured); ``max_input_characters``; ``function_identity`` (for a judge in code, and
    for a wrapper around one).
    """

    @property
    def name(self) -> str:
        """The name of this model in results and recordings."""
        ...

    async def complete(self, request: Request, /) -> Reply:
        """Answer, or raise ``ModelError``; must stop when cancelled.

        Args:
            request: The request that a judge makes.
        """
        ...


def find_function(model: object) -> FunctionIdentity | None:
    """Find the judge in code that would answer, inside every wrapper; ``None`` for a model."""
    identity = getattr(model, "function_identity", None)
    return identity if isinstance(identity, FunctionIdentity) else None
