"""Choosing and opening the judge: from the command line, the configuration, or the keys and servers of this machine."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

from adjudge.config.file import CHAIN_KEYS, JUDGE_KEYS, MODEL_KEYS, Config, find_recording
from adjudge.config.modules import importing
from adjudge.errors import UsageError
from adjudge.formats.arguments import check_choice, check_seconds
from adjudge.formats.json import nests_too_deeply
from adjudge.guards.release_policy import read_release_policy
from adjudge.judges.chain import JudgeChain
from adjudge.judges.chain_outcome import Strategy
from adjudge.judges.judge import Judge
from adjudge.models.defaults import default_spec
from adjudge.models.model import Model
from adjudge.models.open import open_model
from adjudge.rubric.rubric import Rubric
from adjudge.sync import run_sync

PROVIDERS = (
    ("OPENAI_API_KEY", default_spec("openai")),
    ("ANTHROPIC_API_KEY", default_spec("anthropic")),
    ("GEMINI_API_KEY", default_spec("gemini")),
    ("GOOGLE_API_KEY", default_spec("gemini")),
    ("MISTRAL_API_KEY", default_spec("mistral")),
    ("GROQ_API_KEY", default_spec("groq")),
    ("TOGETHER_API_KEY", default_spec("together")),
    ("OPENROUTER_API_KEY", default_spec("openrouter")),
)
"""Environment variables with a provider's key, each with the model to ask if it is set."""


LOCAL_PORTS = ((11434, "Ollama"), (8080, "llama.cpp"), (8000, "vLLM"), (1234, "LM Studio"), (30000, "SGLang"))
"""The ports on which local servers usually listen on 127.0.0.1."""


SEAT_SECONDS = 60.0
"""Seconds that each judge of a chain may take unless ``adjudge.toml`` or the command line says otherwise.

The library's 5 seconds are right for a gate that holds up a user; a person at a terminal waits for a slow model.
"""


_LARGEST_ANSWER = 65_536
"""The most bytes that are read of a local port's answer."""


def find_keys() -> list[str]:
    """List the names of the key variables that are set; their values are not returned."""
    return [variable for variable, _ in PROVIDERS if os.environ.get(variable, "").strip()]


def find_configured() -> Iterator[tuple[str, str]]:
    """Yield the model of each provider whose key is set, and the reason to choose it, ordered as ``PROVIDERS``."""
    keys, seen = find_keys(), set[str]()
    for variable, spec in PROVIDERS:
        if variable in keys and spec not in seen:
            seen.add(spec)
            yield spec, f"{variable} is set"


def find_local(timeout: float = 0.3) -> Iterator[tuple[str, str]]:
    """Yield the first model of each local server that answers on a usual port, with the reason to choose it.

    ``timeout`` is in seconds, for the whole answer of one port.
    """
    for port, server in LOCAL_PORTS:
        name = _find_first_model(port, timeout)
        if name:
            yield f"http://127.0.0.1:{port}/v1#{name}", f"{server}'s port {port} answers"


def _find_first_model(port: int, timeout: float) -> str | None:
    """Find the first model that a local port lists; ``None`` for no answer, or a name that cannot be used."""
    import json

    try:
        text = run_sync(_fetch_models(port, timeout)).decode()
        name = None if nests_too_deeply(text) else json.loads(text)["data"][0]["id"]
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        return None
    # In a model's name a question mark begins options, so a model whose name has one is not offered.
    return name if isinstance(name, str) and name.isprintable() and "?" not in name else None


async def _fetch_models(port: int, timeout: float) -> bytes:
    """Fetch the list of models from a port of this machine, at most 64 KB; empty if no HTTP server answers.

    Any program may listen there, and may send a little for ever, so the time is limited. No proxy is used and no
    redirect followed, so that no other host learns of the request.
    """
    import aiohttp

    body = bytearray()
    # The transport of models is not used, because it retries, and this only checks if a server is there.
    try:
        async with (
            asyncio.timeout(timeout),
            aiohttp.ClientSession(trust_env=False, auto_decompress=False) as session,
            session.get(
                f"http://127.0.0.1:{port}/v1/models", allow_redirects=False, headers={"Accept-Encoding": "identity"}
            ) as answer,
        ):
            while len(body) < _LARGEST_ANSWER and (piece := await answer.content.read(_LARGEST_ANSWER - len(body))):
                body += piece
    except TimeoutError:  # a server that keeps the connection open may still have sent its whole answer
        pass
    except aiohttp.ClientError:
        return b""
    return bytes(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeOpener:
    """Opens judges by their names, with the configuration and the options of the command line for every judge."""

    config: Config
    seat: Mapping[str, Any] = field(default_factory=dict)
    """Options of every single judge (``reader``, ``reader_labels``, ``reader_passes``, ``token``), which replace those
    of the configuration."""
    record: str | None = None
    """The file that every model's replies are added to."""
    named_in: Path | None = None
    """The folder of the file that names the judge to open; ``None`` for the command line. It does not count for the
    seats of the configuration's own judges, which start from the configuration's folder."""

    def open(
        self, name: str, *, chain: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Judge | JudgeChain:
        """Open the judge of a name: one of the configuration, or a model.

        The options in ``chain`` replace those of the judge's own table; with them a model becomes a chain of one seat.
        ``timeout`` counts if neither has one. Raises ``UsageError`` for a name that cannot be opened.
        """
        options: dict[str, Any] = dict(chain or {})
        if timeout is not None and "timeout" not in self.config.judges.get(name, {}):
            options.setdefault("timeout", timeout)
        if name in self.config.judges:
            return self._open_table(name, options, ())
        if set(options) <= {"timeout"}:
            return Judge(self._open_named(name), **self.seat, **options)
        options.setdefault("timeout", SEAT_SECONDS)
        return JudgeChain([self.open_seat(name)], **options)

    def open_seat(self, name: str) -> Judge | JudgeChain:
        """Open a seat of a chain; a model as a seat has no timeout of its own, because the chain has one."""
        if name in self.config.judges:
            return self._open_table(name, {}, ())
        return Judge(self._open_named(name), timeout=None, **self.seat)

    def _open_named(self, name: str) -> Model:
        """Open a model that the caller (the command line, or the file in ``named_in``) names."""
        return self._open_model(name, {}, self.named_in)

    def _open_table(self, name: str, overrides: Mapping[str, Any], outer_names: tuple[str, ...]) -> Judge | JudgeChain:
        """Open ``[judges.NAME]``: a judge for one seat, else a chain, whose seats may be tables too.

        ``outer_names`` are the tables around it, of which none may be a seat of it.

        Raises ``UsageError`` for one that has itself as a seat.
        """
        where = f"{self.config.path}: [judges.{name}]"
        if name in outer_names:
            raise UsageError(f"{where} has itself as a seat ({' > '.join((*outer_names, name))}); take it out")
        table = {**self.config.judges[name], **overrides}
        chain = {key: table[key] for key in CHAIN_KEYS if key in table}
        # The labels of a table belong to its own reader, and not to a reader of the command line that replaces it.
        ignored = {"reader_labels", "reader_passes"} if "reader" in self.seat else set[str]()
        judge_options = {key: table[key] for key in JUDGE_KEYS if key in table and key not in ignored}
        judge_options |= self.seat
        model_options = {key: table[key] for key in MODEL_KEYS if key in table}
        names = table["seats"]
        nested = {
            seat: self._open_table(seat, {}, (*outer_names, name)) for seat in names if seat in self.config.judges
        }
        with _prefix_errors(where):
            if len(names) == 1 and not nested and set(chain) <= {"timeout"}:
                return Judge(
                    self._open_model(names[0], model_options, self.config.folder), name=name, **judge_options, **chain
                )
            seats = [
                nested[seat]
                if seat in nested
                else Judge(self._open_model(seat, model_options, self.config.folder), timeout=None, **judge_options)
                for seat in names
            ]
            chain.setdefault("timeout", SEAT_SECONDS)
            if "escalate_below" in chain:
                chain["escalate_below"] = _read_escalation(chain["escalate_below"], self.config)
            return JudgeChain(seats, name=name, **chain)

    def _open_model(self, name: str, options: Mapping[str, Any], folder: Path | None) -> Model:
        """Open a model by its name; ``python:`` imports it from ``folder``, and ``replay:`` reads a file from there.

        If ``record`` is set, its replies are recorded. Raises ``UsageError`` for a name that is no model's.
        """
        self._check_name(name)
        runs_code = name.strip().startswith("python:")
        model = _open_function(name.strip(), options, folder) if runs_code else open_model(name, **options)
        if folder is not None and find_recording(name) is not None:
            _move_recording(model, folder)
        if self.record is None:
            return model
        from adjudge.models.replies.recording import RecordingModel

        return RecordingModel(model, self.record)

    def _check_name(self, name: str) -> None:
        """Raise ``UsageError`` for a name that is no model's; it is most likely a judge's, so those are offered."""
        if ":" in name or name == "rules" or not name.strip() or self.config.path is None:
            return
        near = get_close_matches(name, self.config.judges, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"its judges are {', '.join(self.config.judges) or 'none'}"
        raise UsageError(f"{name!r} is neither a model nor a judge of {self.config.path}; {hint}")


def _open_function(name: str, options: Mapping[str, Any], folder: Path | None) -> Model:
    """Open a model that is a Python function, imported from a folder."""
    with importing(name, name, folder):
        return open_model(name, allow_python=True, **options)


def _move_recording(model: Model, folder: Path) -> None:
    """Let a replay read its recording from a folder, since the working directory may have another file of that name."""
    from adjudge.models.replies.replay import ReplayModel

    if isinstance(model, ReplayModel):
        model.path = folder / model.path


def _read_escalation(value: Any, config: Config) -> Any:
    """Return ``escalate_below`` with each path of a release policy replaced by the policy; numbers stay."""
    if isinstance(value, list):
        return [_read_escalation(bound, config) for bound in value]
    return read_release_policy(config.resolve_path(value)) if isinstance(value, str) else value


@contextmanager
def _prefix_errors(where: str) -> Iterator[None]:
    """Name the table ``where`` in a ``UsageError`` of the block."""
    try:
        yield
    except UsageError as error:
        raise error.within(where) from None


_NO_JUDGE_MESSAGE = (
    "there is no judge: set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, "
    "start a local server such as Ollama, or name one with --judge (--judge rules where rules alone decide); "
    "adjudge demo judges without one, and adjudge doctor says what is set here"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The options of the command line that choose the judges."""

    judges: tuple[str, ...] = ()
    timeout: float | None = None
    """Seconds for each judge; over what the configuration says."""
    chain: tuple[tuple[str, Any], ...] = ()
    """The options of a chain that were given, by name."""
    reader: str | None = None
    labels: str | None = None
    """The arguments of the reader, separated by commas."""
    passes: str | None = None
    """The labels of it that pass, separated by commas."""
    token: bool = True
    record: str | None = None
    named_in: Path | None = None
    """The folder of the file that names the judges; ``None``: the command line does."""

    def check(self) -> None:
        """Raise ``UsageError`` for invalid options of the command line, before any table of the file is read."""
        options = dict(self.chain)
        check_choice("strategy", options.get("strategy", "fallback"), get_args(Strategy))
        for argument, seconds in (("timeout", self.timeout), ("hedge_after", options.get("hedge_after"))):
            if seconds is not None:
                check_seconds(argument, seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The judge to ask, the rubric it is asked about, and why it was chosen when nobody named it."""

    judge: Judge | JudgeChain
    rubric: Rubric | None
    reason: str = ""


def choose(panel: Panel, config: Config, rubric: Rubric | None = None) -> Choice:
    """Choose the judge to ask; raises ``UsageError`` with what to set when there is none."""
    panel.check()
    names, reason = (list(panel.judges), "") if panel.judges else _find_default(config, rubric)
    if rubric is not None and rubric.model is not None and not reason:
        # The user has named the judge. A rubric's model must not replace a consensus of the configuration, nor ask a
        # server where the user named a recording.
        from dataclasses import replace

        rubric = replace(rubric, model=None)
    return Choice(judge=_open_panel(names, panel, config), rubric=rubric, reason=reason)


def _open_panel(names: list[str], panel: Panel, config: Config) -> Judge | JudgeChain:
    """Open the judges that were named: one as it is, several as a chain."""
    seat: dict[str, Any] = ({} if panel.reader is None else {"reader": panel.reader}) | (
        {} if panel.token else {"token": False}
    )
    for argument, label_text in (("reader_labels", panel.labels), ("reader_passes", panel.passes)):
        if label_text is not None:
            seat[argument] = _split_names(argument, label_text)
    # A judge that the environment names is treated like one of the command line: paths start from no file's folder.
    default_folder = config.folder if config.defaults.get("judge") else None
    named_in = panel.named_in if panel.judges else default_folder
    opener = JudgeOpener(config=config, seat=seat, record=panel.record, named_in=named_in)
    options: dict[str, Any] = dict(panel.chain) | ({} if panel.timeout is None else {"timeout": panel.timeout})
    default: float | None = config.defaults.get("timeout")
    if len(names) == 1:
        return opener.open(names[0], chain=options, timeout=default)
    limits: Mapping[str, Any] = {"timeout": SEAT_SECONDS if default is None else default}
    return JudgeChain([opener.open_seat(name) for name in names], **{**limits, **options})


def _split_names(argument: str, text: str) -> tuple[str, ...]:
    """Split names at commas. Raises ``UsageError`` for an empty or a repeated name."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(
            f"{argument} must be different names separated by commas, like m,M, got {text!r}", argument=argument
        )
    return names


def _find_default(config: Config, rubric: Rubric | None) -> tuple[list[str], str]:
    """Find the judge if the command line names none, and the reason for the choice.

    The reason is empty if the user's files or environment name the judge. Raises ``UsageError`` if there is none.
    """
    if rubric is not None and all(criterion.rule for criterion in rubric.criteria):
        return ["rules"], ""
    if config.defaults.get("judge"):
        return [config.defaults["judge"]], ""
    spec = os.environ.get("ADJUDGE_JUDGE", "").strip()
    if spec:
        return [refuse_code(spec, "ADJUDGE_JUDGE")], ""
    if rubric is not None and rubric.model is not None and ":" in rubric.model:
        return [refuse_code(rubric.model, f"the rubric {rubric.name!r}")], ""
    candidate = next(find_configured(), None) or next(find_local(), None)
    if candidate is None:
        raise UsageError(_NO_JUDGE_MESSAGE)
    name, reason = candidate
    return [name], reason


def refuse_code(name: str, where: str) -> str:
    """Refuse a model's name that would run code and does not come from the user's own command line (``UsageError``)."""
    if name.startswith("python:"):
        raise UsageError(f"{where} names {name}, which runs code; name it with --judge or in adjudge.toml")
    return name
