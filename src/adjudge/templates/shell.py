"""The values for the frame around every page: the navigation, the person who is signed in, and what waits for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Theme = Literal["auto", "light", "dark"]
"""``auto`` follows the system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NavLink:
    """A page in the navigation, as far as this caller may see it: a template asks for no permission."""

    path: str
    name: str
    waiting: int | None = None
    """The number that wait there; ``None`` shows none."""
    key: str = ""
    """The letter that leads there after ``g``."""
    urgent: bool = False
    counts: bool = False
    """True for a page where something can wait: its number comes later too, by a script."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NavSection:
    """Pages that belong together."""

    title: str
    links: tuple[NavLink, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerNotice:
    """The notice on the ledger at the foot of the navigation: in words, because only who checked it can say how."""

    state: str
    """One of ``STATES``."""
    word: str
    more: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shell:
    """Everything that ``base.html`` shows beside the page itself."""

    place: str
    """The name of this server, below the brand."""
    current: str
    """The path of the page's entry in the navigation."""
    sections: tuple[NavSection, ...] = ()
    person: str | None = None
    """The person who is signed in; ``None`` shows a link to sign in."""
    has_accounts: bool = True
    """False where nobody signs in: the pages are for whoever began to view them."""
    roles: str = ""
    csrf: str = ""
    """The secret that every form of the page sends along."""
    theme: Theme = "auto"
    keys: bool = True
    """True if letters are keys; somebody who dictates can switch them off."""
    local_times: bool = True
    """True if scripts show times in the reader's zone; without scripts, and where it is false, they are UTC."""
    waits: int = 0
    """The requests that wait for this person, for the title of the page."""
    notifies: bool = False
    """True for somebody whom the browser can tell about new requests."""
    ledger: LedgerNotice | None = None
    home: NavLink | None = None
    """The first page that this caller may see; ``None`` where there is none, or nobody is signed in."""
    static: str = "/static"
    """The path of the folder of the stylesheet, the icon and the scripts."""
