"""The retirement of models, as their providers' APIs say; three of them do.

Sources, each a type of the provider's own package: ``shutdown_date`` of OpenAI's model object; ``lifecycle`` and
``retires_at`` of Anthropic's; ``deprecation`` and ``deprecation_replacement_model`` of Mistral's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, ClassVar, Literal
from urllib.parse import quote

from adjudge.errors import AdjudgeError
from adjudge.formats.model_name import LONGEST_NAME
from adjudge.formats.record import Layout, write_record
from adjudge.formats.text import clean
from adjudge.models.model import Model
from adjudge.models.providers.base import HttpModel
from adjudge.models.wrapper import find_innermost

SOON = 90
"""Days before a retirement from which on it is a warning."""

WITHIN = 5.0
"""Seconds that a provider has to say when a model is retired."""

Lifecycle = Literal["active", "deprecated", "retired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Retirement:
    """The end of a model, as its provider announces it."""

    _layout: ClassVar[Layout] = Layout(
        computed={"on": lambda retirement: None if retirement.on is None else retirement.on.isoformat()}
    )

    model: str
    """The name the model is asked by, such as ``openai:NAME``."""
    state: Lifecycle
    """``retired`` only where the provider says so: a date that has passed may be overdue."""
    on: date | None = None
    """The day on which the model is retired, if one is announced."""
    replacement: str | None = None
    """The model that the provider names in its place."""

    def warn(self, today: date) -> str | None:
        """A sentence for a model that is retired, deprecated or soon retired; ``None`` for any other.

        Args:
            today: The day of the warning.
        """
        days = None if self.on is None else (self.on - today).days
        if self.state == "active" and (days is None or days > SOON):
            return None
        instead = f"; its provider names {self.replacement}" if self.replacement else ""
        remedy = f"{instead}; find out which judge may replace it with adjudge replace-judge"
        if self.state == "retired":
            return f"{self.model} is retired{remedy}"
        if self.on is None or days is None:
            return f"{self.model} is deprecated, without a date yet{remedy}"
        if days < 0:
            return f"{self.model} was to be retired on {self.on}, and may end any day{remedy}"
        return f"{self.model} is retired on {self.on}, in {days:,} days{remedy}"

    def to_dict(self) -> dict[str, Any]:
        """This value as plain data."""
        return write_record(self)


async def find_retirement(model: Model, *, within: float = WITHIN) -> Retirement | None:
    """Find when a model is retired; ``None`` where its provider has no such answer, or gave none in time.

    Asks the provider's list of models, which costs nothing. Never raises for what the provider does: whether a model is
    retired must not keep anybody from asking it.

    Args:
        model: The model.
        within: Seconds to wait for the provider's answer.
    """
    innermost = find_innermost(model)
    read_members = _READERS.get(innermost.endpoint.provider.prefix) if isinstance(innermost, HttpModel) else None
    # An address of one's own is a server or proxy that need not know of retirements.
    if not isinstance(innermost, HttpModel) or read_members is None or innermost.endpoint.base_url is not None:
        return None
    try:
        access = innermost.access
        url = f"{access.base_v1}/models/{quote(innermost.model, safe='')}"
        status, _, body = await innermost.transport.ask_once(
            "GET", url, access.headers, within=within, secrets=access.secrets
        )
        return read_members(innermost.name, _decode_body(body)) if status == 200 else None
    except (AdjudgeError, ValueError, TypeError, RecursionError):
        return None


def _decode_body(body: bytes) -> Mapping[str, Any]:
    """Decode a JSON object. Raises ``ValueError`` for anything else."""
    import msgspec

    return msgspec.json.decode(body, type=dict[str, Any])


def _read_openai(model: str, members: Mapping[str, Any]) -> Retirement:
    """Read the retirement in OpenAI's description of a model."""
    on = _read_day(members.get("shutdown_date"))
    return Retirement(model=model, state="active" if on is None else "deprecated", on=on)


def _read_anthropic(model: str, members: Mapping[str, Any]) -> Retirement:
    """Read the retirement in Anthropic's description of a model."""
    state = members.get("lifecycle")
    lifecycle: Lifecycle = "retired" if state == "retired" else "deprecated" if state == "deprecated" else "active"
    return Retirement(model=model, state=lifecycle, on=_read_day(members.get("retires_at")))


def _read_mistral(model: str, members: Mapping[str, Any]) -> Retirement:
    """Read the retirement in Mistral's description of a model, with the model that it names as replacement."""
    on, name = _read_day(members.get("deprecation")), members.get("deprecation_replacement_model")
    replacement = clean(name[:LONGEST_NAME], keep_lines=False) if isinstance(name, str) and name else None
    return Retirement(model=model, state="active" if on is None else "deprecated", on=on, replacement=replacement)


_READERS: Mapping[str, Callable[[str, Mapping[str, Any]], Retirement]] = {
    "openai": _read_openai,
    "anthropic": _read_anthropic,
    "mistral": _read_mistral,
}


def _read_day(text: object) -> date | None:
    """Read a day, or the day in UTC of a time in any zone; ``None`` for what is no text, or too long a one.

    Raises ``ValueError`` for a text that is neither.
    """
    if not isinstance(text, str) or len(text) > 40:
        return None
    moment = datetime.fromisoformat(text)
    return moment.date() if moment.tzinfo is None else moment.astimezone(UTC).date()
