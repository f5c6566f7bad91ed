"""``adjudge view`` in this process, and the browser of whoever opens its address."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from kit.http_client import open_http_client
from kit.patience import HANG, wait_for

uvicorn = pytest.importorskip("uvicorn")
for needed in ("argon2", "fastapi", "multipart", "prometheus_client"):
    pytest.importorskip(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewing:
    """Runs that are shown at ``url``; ``address`` lets the first one in who opens it."""

    url: str
    address: str
    app: Any = field(repr=False, default=None)
    clients: list[Any] = field(default_factory=list)

    def open_browser(self, **headers: str) -> Any:
        """A browser that has opened nothing yet."""
        self.clients.append(open_http_client(self.url, headers={"Accept": "text/html"} | headers))
        return self.clients[-1]

    def enter(self) -> Any:
        """A browser that has opened the address, first of all."""
        browser = self.open_browser()
        assert browser.get(self.address).status_code == 200
        return browser


def view_below(folder: Path) -> AbstractContextManager[Viewing]:
    """Show the runs in a folder, as without arguments."""
    from adjudge.server.view_command import find_runs_below

    return _open_view(partial(find_runs_below, folder))


def view_named(folders: Sequence[Path]) -> AbstractContextManager[Viewing]:
    """Show the runs in these folders."""
    from adjudge.server.view_command import find_named_runs

    return _open_view(partial(dict, find_named_runs(folders)))


@contextmanager
def _open_view(scan: Callable[[], Mapping[str, Path]]) -> Iterator[Viewing]:
    from adjudge.config.server import ServerSettings
    from adjudge.server.listening import listen
    from adjudge.server.run_library import RunLibrary
    from adjudge.server.view_command import OPEN, make_view_app

    listener = listen(ServerSettings(port=0))
    app, holder = make_view_app(RunLibrary(scan=scan, writes=False), listener.getsockname()[1])
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="on", server_header=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    url = holder.state.settings.base_url
    viewing = Viewing(url=url, address=f"{url}{OPEN}{holder.secret}", app=app)
    thread.start()
    try:
        wait_for(lambda: server.started or not thread.is_alive())
        yield viewing
    finally:
        for client in viewing.clients:
            client.close()
        server.should_exit = True
        thread.join(timeout=HANG)
        listener.close()
