"""The exceptions of adjudge, and who has to act.

    AdjudgeError
    ├── UsageError      your input is wrong: a retry cannot help, and as a rule nothing was asked yet
    │   ├── DecisionRefused  a person's decision on an approval does not count
    │   ├── FunctionError    a function that was handed in returned what it may not
    │   ├── RequestExists    a request for approval with this key exists already
    │   └── ToolRefused  a forged tool may not be used, registered or promoted as it is
    ├── ModelError      a server or the network failed, or a provider refused to serve
    ├── ReplyError      a model answered and the answer cannot be read
    ├── LedgerError     the store of a ledger failed: nothing is known to be recorded
    ├── ServerError     a server of adjudge cannot be reached, or failed: nothing is known to be decided
    ├── JudgmentFailed  asked for with ``throw_on_fail`` or ``raise_if_failed``
    ├── Blocked         a gate's guard stopped a function
    └── InputRejected   an input firewall's guard stopped a function

A failed judgement is a result and not an error; only ``JudgmentFailed``, ``Blocked`` and ``InputRejected``, which a
caller asks for by name, turn one into an exception. Messages name the thing, the value and the remedy in one sentence.
An argument that a message names is an ``Argument`` in it, so that a command line can print the option instead.
"""

from __future__ import annotations

import copyreg
from collections.abc import Callable, Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from typing import Any, Literal, Self


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument that a message names, with the value to give it where a remedy says so.

    As text it is ``fail_open``, or ``fail_open=True`` with the value, which is written as in Python.
    """

    name: str
    value: str | None = None

    def __str__(self) -> str:
        return self.name if self.value is None else f"{self.name}={self.value}"


class AdjudgeError(Exception):
    """The root of every error adjudge raises on purpose.

    Args:
        message: The parts of the message: texts, ``Argument``, and errors, whose parts are taken over. ``str`` joins
            them.
    """

    def __init__(self, *message: object) -> None:
        self.parts: tuple[str | Argument, ...] = tuple(_list_parts(message))
        super().__init__("".join(map(str, self.parts)))

    def __reduce__(self) -> tuple[Any, ...]:
        # Unpickled without ``__init__``, because a subclass may need more arguments than the message. All attributes
        # are in the state.
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def spell(self, spell_argument: Callable[[str, str | None], str]) -> str:
        """Return the message with each argument in it as its reader would write it.

        Args:
            spell_argument: A function from the name of an argument and its value (``None``: the name alone) to the text
                that stands for both.
        """
        parts = (part if isinstance(part, str) else spell_argument(part.name, part.value) for part in self.parts)
        return "".join(parts)


class UsageError(AdjudgeError, ValueError):
    """An argument, a file, or what a function returned cannot be used.

    It is raised before a model is asked, but for a row or a function that is wrong in the middle of a run.

    Args:
        message: The parts of the message, as of ``AdjudgeError``.
        argument: The name of the argument, or the key of a file, that is at fault, if there is one. A message that
            begins with this name has it as an ``Argument``.
        where: The file, seat or criterion in which a key is; it is put before the message. The key is then written
            unchanged, because it is no option of a command.
    """

    def __init__(self, *message: object, argument: str | None = None, where: str | None = None) -> None:
        # The class docstring explains the arguments. With ``where``, the name of the argument becomes plain text.
        parts = list(_list_parts(message))
        if where is not None:
            super().__init__(f"{where}: ", *_write_argument_as_text(parts, argument))
        else:
            super().__init__(*(parts if argument is None else _mark_leading_argument(parts, argument)))
        self.argument = argument
        self.where = where

    def within(self, where: str, *remedy: object) -> Self:
        """Return this error with the place of what is at fault before its message, and perhaps a remedy after it.

        Args:
            where: The place, such as a file and a line.
            remedy: The parts of a sentence that say what to do.
        """
        error = copy(self)
        AdjudgeError.__init__(error, f"{where}: ", *_write_argument_as_text(self.parts, self.argument), *remedy)
        error.where = where if self.where is None else f"{where}: {self.where}"
        return error


def _list_parts(message: Iterable[object]) -> Iterator[str | Argument]:
    """Yield the parts of a message; in place of an error among them, that error's own parts."""
    for part in message:
        if isinstance(part, AdjudgeError):
            yield from part.parts
        else:
            yield part if isinstance(part, Argument) else str(part)


def _mark_leading_argument(parts: list[str | Argument], argument: str) -> list[str | Argument]:
    """Replace the argument's name at the beginning of a message by an ``Argument``.

    A message that does not begin with that very name is returned as it is.
    """
    text = parts[0] if parts else ""
    if isinstance(text, Argument) or not text.startswith(argument):
        return parts
    remainder = text.removeprefix(argument)
    if remainder[:1].isidentifier():  # the text begins with a longer name
        return parts
    return [Argument(argument), remainder, *parts[1:]]


def _write_argument_as_text(parts: Iterable[str | Argument], argument: str | None) -> list[str | Argument]:
    """Replace the ``Argument`` at fault by its text, in a message about a key of a file.

    A key is written as it is in the file, and never as an option of a command.
    """
    return [str(part) if isinstance(part, Argument) and part.name == argument else part for part in parts]


RefusedBecause = Literal["unauthorised", "double", "closed", "expired", "incomplete", "changed", "final"]


class DecisionRefused(UsageError):
    """A decision on an approval does not count. The attempt is recorded.

    Args:
        message: The parts of the message, as of ``AdjudgeError``.
        because: ``unauthorised``, ``double``, ``closed`` or ``expired``; of an approval also ``incomplete`` (something
            is missing or cut off) or ``changed`` (it is not what people were asked, or were shown); ``final`` where a
            vote can no longer be taken back.
        argument: As of ``UsageError``.
    """

    def __init__(self, *message: object, because: RefusedBecause, argument: str | None = None) -> None:
        super().__init__(*message, argument=argument)
        self.because: RefusedBecause = because


class RequestExists(UsageError):
    """A request for approval was not made, because one with the same key exists.

    Args:
        message: The parts of the message, as of ``AdjudgeError``.
        approval_id: The id of the request that exists.
        argument: As of ``UsageError``.
    """

    def __init__(self, *message: object, approval_id: str, argument: str | None = None) -> None:
        super().__init__(*message, argument=argument)
        self.approval_id = approval_id


class FunctionError(UsageError):
    """The first answer of a function that was handed in is not what its kind, a model or a judge in code, returns.

    It is a mistake in the program and not an answer, so it is raised wherever the function was asked, in a chain too.
    """


class ToolRefused(UsageError):
    """A forged tool may not be used, registered or promoted as it is; nothing was asked, run or changed.

    It is raised if neither waiting nor further uses can help.

    Args:
        message: The parts of the message, as of ``AdjudgeError``.
        because: The reason in a word, such as ``unknown``, ``demoted``, ``unreviewed``, ``scope`` and ``agent_cap``.
        argument: As of ``UsageError``.
    """

    def __init__(self, *message: object, because: str, argument: str | None = None) -> None:
        super().__init__(*message, argument=argument)
        self.because = because


class ModelError(AdjudgeError):
    """A model could not be reached or would not serve the request.

    Args:
        message: The parts of the message, as of ``AdjudgeError``.
        status: The HTTP status; ``None`` where there was none.
        sent: False when it is certain that no part of a request left this machine, so that nothing can have been
            charged for it.
    """

    def __init__(self, *message: object, status: int | None = None, sent: bool = True) -> None:
        super().__init__(*message)
        self.status = status
        self.sent = sent


class ReplyError(AdjudgeError):
    """A reply was received and cannot be read as the form that was asked for.

    Args:
        because: The reason that an undecided result will have.
        detail: One sentence for a person.
    """

    def __init__(self, because: Reason, detail: str) -> None:
        super().__init__(detail)
        self.because: Reason = because
        self.detail = detail


class ShapeError(ReplyError):
    """A judge in code returned a value that has none of the shapes it may have."""

    def __init__(self, detail: str) -> None:
        super().__init__("unparseable", detail)


class LedgerError(AdjudgeError):
    """A ledger's store failed: a disk, a lock or a server; treat the entry as not recorded."""


class ServerError(AdjudgeError):
    """A server of adjudge could not be reached, or failed; nothing is known to be decided or recorded.

    Args:
        message: The parts of the message, as of ``AdjudgeError``.
        status: The HTTP status; ``None`` where there was none.
    """

    def __init__(self, *message: object, status: int | None = None) -> None:
        super().__init__(*message)
        self.status = status


Reason = Literal[
    "tampering",
    "contradiction",
    "refused",
    "truncated",
    "off_scale",
    "missing_criterion",
    "unparseable",
    "error",
    "timeout",
    "budget",
    "split",
    "unsure",
    "cancelled",
]
