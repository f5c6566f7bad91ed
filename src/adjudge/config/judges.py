"""The choice of a judge: from the command line, the configuration, or what this machine has."""

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
"""The variable that configures a provider, and the model that is asked then."""


LOCAL_PORTS = ((11434, "Ollama"), (8080, "llama.cpp"), (8000, "vLLM"), (1234, "LM Studio"), (30000, "SGLang"))
"""The ports on which local servers usually listen on 127.0.0.1."""


SEAT_SECONDS = 60.0
"""Seconds that each judge of a chain may take where neither ``adjudge.toml`` nor the command line says.

The library's 5 seconds are right for a gate that holds up a user; a person at a terminal waits for a slow model.
"""


_LARGEST_ANSWER = 65_536
"""Bytes that are read of what a port answers."""


def find_keys() -> list[str]:
    """Find the names of the key variables that are set; their values go nowhere."""
    return [variable for variable, _ in PROVIDERS if os.environ.get(variable, "").strip()]


def find_configured() -> Iterator[tuple[str, str]]:
    """Find the model of each provider whose key is set, and the reason to take it; most usual first."""
    keys, seen = find_keys(), set[str]()
    for variable, spec in PROVIDERS:
        if variable in keys and spec not in seen:
            seen.add(spec)
            yield spec, f"{variable} is set"


def find_local(timeout: float = 0.3) -> Iterator[tuple[str, str]]:
    """Find the first model of each local server that answers on the usual ports, and the reason to take it.

    ``timeout`` is in seconds, for one port and all that it says.
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
    # A question mark would begin the options of a model's name; a server of such a name can be named in full.
    return name if isinstance(name, str) and name.isprintable() and "?" not in name else None


async def _fetch_models(port: int, timeout: float) -> bytes:
    """Fetch what a port of this machine answers in the time, at most 64 KB; nothing where nobody speaks HTTP.

    Anybody may listen there, and say a little for ever. Neither proxies nor redirects: nobody else should learn of it.
    """
    import aiohttp

    body = bytearray()
    # Not the models' transport: it asks again, which helps nobody who only looks whether somebody is there.
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
    except TimeoutError:  # a server that does not close may still have said all
        pass
    except aiohttp.ClientError:
        return b""
    return bytes(body)


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """An opener of judges: the configuration, and what the command line says about every seat."""

    config: Config
    seat: Mapping[str, Any] = field(default_factory=dict)
    """Options of every single judge, over those of the configuration: ``reader`` and what it is told, ``token``."""
    record: str | None = None
    """The file that every model's replies are added to."""
    named_in: Path | None = None
    """The folder of the file that names what is opened; ``None``: the command line does. The seats of the
    configuration's own judges are named in that."""

    def open(
        self, name: str, *, chain: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Judge | JudgeChain:
        """Open the judge of a name.

        ``chain`` holds options over those of the judge's own table (for a model: those of a chain of one); with
        ``timeout``, where neither says otherwise. Raises ``UsageError`` for a name that cannot be opened.
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
        """Open a seat of a chain: the chain's own limit is the only one a model has there."""
        if name in self.config.judges:
            return self._open_table(name, {}, ())
        return Judge(self._open_named(name), timeout=None, **self.seat)

    def _open_named(self, name: str) -> Model:
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
        # The labels of a table belong to the reader of that table, not to the one that is named in its place.
        replaced = {"reader_labels", "reader_passes"} if "reader" in self.seat else set[str]()
        judge_options = {key: table[key] for key in JUDGE_KEYS if key in table and key not in replaced} | dict(
            self.seat
        )
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
    with importing(name, name, folder):
        return open_model(name, allow_python=True, **options)


def _move_recording(model: Model, folder: Path) -> None:
    """Have a replay read its recording from a folder; one of the working directory could be anybody's."""
    from adjudge.models.replies.replay import ReplayModel

    if isinstance(model, ReplayModel):
        model.path = folder / model.path


def _read_escalation(value: Any, config: Config) -> Any:
    """Read the release policies that are named in the place of numbers, from the file's folder."""
    if isinstance(value, list):
        return [_read_escalation(bound, config) for bound in value]
    return read_release_policy(config.resolve_path(value)) if isinstance(value, str) else value


@contextmanager
def _prefix_errors(where: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise error.within(where) from None


_NOTHING = (
    "there is no judge: set OPENAI_API_KEY, ANTHROPIC_API_KEY or another provider's key, "
    "start a local server such as Ollama, or name one with --judge (--judge rules where rules alone decide); "
    "adjudge demo judges without one, and adjudge doctor says what is set here"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """The options of the command line about who judges."""

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
        """Raise ``UsageError`` for options that no judge can have; no table of the file is at fault."""
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
        # The caller has said who judges. A rubric's model must not take the place of a consensus of the
        # configuration, nor go to the network where a recording was named.
        from dataclasses import replace

        rubric = replace(rubric, model=None)
    return Choice(judge=_open_panel(names, panel, config), rubric=rubric, reason=reason)


def _open_panel(names: list[str], panel: Panel, config: Config) -> Judge | JudgeChain:
    """Open the judges that were named: one as it is, several as a chain."""
    seat: dict[str, Any] = ({} if panel.reader is None else {"reader": panel.reader}) | (
        {} if panel.token else {"token": False}
    )
    for argument, names_given in (("reader_labels", panel.labels), ("reader_passes", panel.passes)):
        if names_given is not None:
            seat[argument] = _split_names(argument, names_given)
    # The environment, which may name a judge where neither does, is as the command line: no file's folder is meant.
    named_in = panel.named_in if panel.judges else config.folder if config.defaults.get("judge") else None
    opener = Opener(config=config, seat=seat, record=panel.record, named_in=named_in)
    options: dict[str, Any] = dict(panel.chain) | ({} if panel.timeout is None else {"timeout": panel.timeout})
    default: float | None = config.defaults.get("timeout")
    if len(names) == 1:
        return opener.open(names[0], chain=options, timeout=default)
    limits: Mapping[str, Any] = {"timeout": SEAT_SECONDS if default is None else default}
    return JudgeChain([opener.open_seat(name) for name in names], **{**limits, **options})


def _split_names(argument: str, text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(","))
    if not all(names) or len(set(names)) != len(names):
        raise UsageError(
            f"{argument} must be different names separated by commas, like m,M, got {text!r}", argument=argument
        )
    return names


def _find_default(config: Config, rubric: Rubric | None) -> tuple[list[str], str]:
    """Find who judges when the command line names nobody, and why, where that is not written down by the user.

    Raises ``UsageError`` where nobody does.
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
        raise UsageError(_NOTHING)
    name, why = candidate
    return [name], why


def refuse_code(name: str, where: str) -> str:
    """Refuse a model's name that would run code and does not come from the user's own command line (``UsageError``)."""
    if name.startswith("python:"):
        raise UsageError(f"{where} names {name}, which runs code; name it with --judge or in adjudge.toml")
    return name
