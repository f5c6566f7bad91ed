"""The application: everything that ``adjudge serve`` answers.

What is checked around every request is decided in ``protection.py`` (``RequestProtection``), who asks in ``caller.py``
(``identify_caller``), and what they may in ``permissions.py`` (``Permissions``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from fastapi import FastAPI
from starlette.middleware import Middleware

from adjudge import __version__
from adjudge.server.api.approvals import router as approvals_api
from adjudge.server.api.evaluate import router as evaluate_api
from adjudge.server.api.firewalls import router as firewalls_api
from adjudge.server.api.gates import router as gates_api
from adjudge.server.api.health import router as health_router
from adjudge.server.api.hooks import router as hooks_api
from adjudge.server.api.labels import router as labels_api
from adjudge.server.api.ledger import router as ledger_api
from adjudge.server.api.metrics import router as metrics_api
from adjudge.server.api.results import router as results_api
from adjudge.server.api.runs import router as runs_api
from adjudge.server.api.tools import router as tools_api
from adjudge.server.expiry_task import close_due_requests
from adjudge.server.metrics import Metrics
from adjudge.server.pages.approvals import router as approvals_router
from adjudge.server.pages.audits import router as audits_router
from adjudge.server.pages.call_rates import router as call_rates_router
from adjudge.server.pages.compare import router as compare_router
from adjudge.server.pages.decisions import router as decisions_router
from adjudge.server.pages.errors import add_page_handlers
from adjudge.server.pages.labels import router as labels_router
from adjudge.server.pages.ledger import router as ledger_router
from adjudge.server.pages.monitors import router as monitors_router
from adjudge.server.pages.overview import router as overview_router
from adjudge.server.pages.preferences import router as preferences_router
from adjudge.server.pages.result import router as result_router
from adjudge.server.pages.results import router as results_router
from adjudge.server.pages.run_case import router as case_router
from adjudge.server.pages.runs import router as runs_router
from adjudge.server.pages.signin import router as signin_router
from adjudge.server.pages.static_files import router as static_router
from adjudge.server.pages.stopped_run import router as stopped_run_router
from adjudge.server.pages.waiting import router as waiting_router
from adjudge.server.problem import add_handlers
from adjudge.server.protection import RequestProtection
from adjudge.server.state import StateHolder

ROUTERS = (
    approvals_api,
    evaluate_api,
    firewalls_api,
    gates_api,
    hooks_api,
    labels_api,
    ledger_api,
    metrics_api,
    results_api,
    runs_api,
    tools_api,
    health_router,
    static_router,
    preferences_router,
    signin_router,
    waiting_router,
    decisions_router,
    stopped_run_router,  # before the pages of requests: "/approvals/reopen" is no request of that name
    approvals_router,
    audits_router,
    labels_router,
    overview_router,
    monitors_router,
    results_router,
    result_router,
    ledger_router,
    runs_router,
    compare_router,
    case_router,
    call_rates_router,
)
"""Every file with addresses. A new page or endpoint is added here."""


def make_app(
    config: str | Path | None = None,
    *,
    host: str | None = None,
    port: int | None = None,
    uds: str | None = None,
    uds_mode: str | None = None,
    allow_anonymous: bool = False,
) -> FastAPI:
    """The ASGI application over an ``adjudge.toml``.

    The file is read when the application starts (its lifespan), which raises ``UsageError`` for what is wrong in it.

    Args:
        config: The file; by default the one in the working directory.
        host: Where it will listen, over ``host`` of ``[server]``.
        port: The port, over ``port`` of ``[server]``.
        uds: The path of a Unix socket on which it will listen too, over ``uds`` of ``[server]``.
        uds_mode: Who may connect to that, over ``uds_mode``: ``0600`` or ``0660``.
        allow_anonymous: Let requests without a key judge and read. Refused unless it listens on this machine's own
            addresses alone.
    """
    holder = StateHolder(
        path=None if config is None else Path(config),
        host=host,
        port=port,
        uds=uds,
        uds_mode=uds_mode,
        allow_anonymous=allow_anonymous,
    )

    @asynccontextmanager
    async def manage_lifespan(_app: FastAPI) -> AsyncIterator[None]:
        """Open the state, close expired requests while the application runs, and close the state at its end."""
        try:
            # ``adjudge serve`` has opened it already, so that it can show an error as a sentence.
            if holder.current is None:
                await holder.open()
            async with close_due_requests(holder):
                yield
        finally:
            await holder.aclose()

    metrics = Metrics()
    app = FastAPI(
        title="adjudge",
        version=__version__,
        lifespan=manage_lifespan,
        docs_url=None,  # its page loads scripts of another host
        redoc_url=None,
        openapi_url="/openapi.json",
        middleware=[Middleware(RequestProtection, holder=holder, metrics=metrics)],
        redirect_slashes=False,
    )
    app.state.holder = holder
    app.state.metrics = metrics
    add_handlers(app)
    add_page_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    return app
