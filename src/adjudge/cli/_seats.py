"""Opening judges by name: a model's name, or the name of a table of ``adjudge.toml``."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from adjudge import Judge, JudgeChain, Model, open_model
from adjudge.cli._config import CHAIN_KEYS, JUDGE_KEYS, MODEL_KEYS, Config
from adjudge.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Opener:
    """How judges are opened: the configuration, and what the command line says about every seat."""

    config: Config
    seat: Mapping[str, Any] = field(default_factory=dict)
    """Options of every single judge, over those of the configuration: ``reader`` and what it is told, ``token``."""
    record: str | None = None
    """The file that every model's replies are added to."""

    def open(
        self, name: str, *, chain: Mapping[str, Any] | None = None, timeout: float | None = None
    ) -> Judge | JudgeChain:
        """The judge of a name.

        ``chain`` holds options over those of the judge's own table (for a model: those of a chain of one); with
        ``timeout``, where neither says otherwise. Raises ``UsageError`` for a name that cannot be opened.
        """
        more: dict[str, Any] = dict(chain or {})
        if name in self.config.judges:
            own: dict[str, Any] = (
                {} if timeout is None or "timeout" in self.config.judges[name] else {"timeout": timeout}
            )
            return self._open_table(name, own | more, ())
        if timeout is not None:
            more.setdefault("timeout", timeout)
        if set(more) <= {"timeout"}:
            return Judge(self._open_model(name), **self.seat, **more)
        return JudgeChain([self.open_seat(name)], **more)

    def open_seat(self, name: str) -> Judge | JudgeChain:
        """A seat of a chain: the chain's own limit is the only one a model has there."""
        if name in self.config.judges:
            return self._open_table(name, {}, ())
        return Judge(self._open_model(name), timeout=None, **self.seat)

    def _open_table(self, name: str, more: Mapping[str, Any], opening: tuple[str, ...]) -> Judge | JudgeChain:
        where = f"{self.config.path}: [judges.{name}]"
        if name in opening:
            raise UsageError(f"{where} has itself as a seat ({' > '.join((*opening, name))}); take it out")
        table = {**self.config.judges[name], **more}
        chain = {key: table[key] for key in CHAIN_KEYS if key in table}
        # The labels of a table belong to the reader of that table, not to the one that is named in its place.
        left = {"reader_labels", "reader_passes"} if "reader" in self.seat else set[str]()
        own = {key: table[key] for key in JUDGE_KEYS if key in table and key not in left} | dict(self.seat)
        options = {key: table[key] for key in MODEL_KEYS if key in table}
        names = table["seats"]
        nested = {seat: self._open_table(seat, {}, (*opening, name)) for seat in names if seat in self.config.judges}
        with _at(where):
            if len(names) == 1 and not nested and set(chain) <= {"timeout"}:
                return Judge(self._open_model(names[0], options), name=name, **own, **chain)
            seats = [
                nested[seat] if seat in nested else Judge(self._open_model(seat, options), timeout=None, **own)
                for seat in names
            ]
            return JudgeChain(seats, name=name, **chain)

    def _open_model(self, name: str, options: Mapping[str, Any] | None = None) -> Model:
        self._check_name(name)
        model = _open_function(name, options or {}) if name.startswith("python:") else open_model(name, **options or {})
        if self.record is None:
            return model
        from adjudge.models import RecordingModel

        return RecordingModel(model, self.record)

    def _check_name(self, name: str) -> None:
        """A name that is no model's is most likely a judge's, so those are what the sentence offers."""
        if ":" in name or name == "rules" or not name.strip() or self.config.path is None:
            return
        near = get_close_matches(name, self.config.judges, 1)
        known = f"did you mean {near[0]!r}?" if near else f"its judges are {', '.join(self.config.judges) or 'none'}"
        raise UsageError(f"{name!r} is neither a model nor a judge of {self.config.path}; {known}")


def admit_working_directory() -> None:
    """Let ``python:`` find modules of the working directory.

    The installed command has its own folder on the path instead. The directory comes last, and only once something of
    ``python:`` was named: what is judged may lie here too, and a file ``yaml.py`` beside it must never be imported in
    place of the library.
    """
    if sys.flags.safe_path:
        return
    with suppress(OSError):  # the working directory was removed
        here = str(Path.cwd())
        if here not in sys.path:
            sys.path.append(here)


def _open_function(name: str, options: Mapping[str, Any]) -> Model:
    with importing(name):
        return open_model(name, allow_python=True, **options)


@contextmanager
def importing(what: str) -> Iterator[None]:
    """A block that imports a module somebody named: it runs, and can do anything then, even end the program."""
    admit_working_directory()
    try:
        yield
    except UsageError:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a sentence, whatever the module does
        raise UsageError(f"{what} cannot be imported: {type(error).__name__}: {error}; mend the module") from None


@contextmanager
def _at(where: str) -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
