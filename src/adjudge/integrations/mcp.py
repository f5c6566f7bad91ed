"""A guard in front of tools of the Model Context Protocol: on the server that has them, and on the client that calls.

``GateMiddleware`` and ``GateExtension`` guard the server's tools (``mcp/server.py``), ``GuardedClient`` what a client
calls (``mcp/client.py``).

For the official SDK, ``mcp`` 2.0 or later.
"""

from __future__ import annotations

try:
    from adjudge.mcp.client import GuardedClient, read_pins
    from adjudge.mcp.elicited_votes import FindPrincipal
    from adjudge.mcp.pins import Pins
    from adjudge.mcp.server import GateExtension, GateMiddleware, IdentifyClient
except ModuleNotFoundError as error:
    # Version 1 of the package has the name, and no extensions.
    if error.name not in {"mcp", "mcp.server.extension", "mcp_types"}:
        raise
    message = "adjudge.integrations.mcp needs the package mcp, 2.0 or later; to have it, pip install 'adjudge[mcp]'"
    raise ModuleNotFoundError(message, name=error.name) from None

__all__ = ["FindPrincipal", "GateExtension", "GateMiddleware", "GuardedClient", "IdentifyClient", "Pins", "read_pins"]
