"""The servers that readers of pages have started before their first command."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from kit import docs
from kit.cli import ME
from kit.environment import require
from kit.example_model import ExampleModel
from kit.house import ROOT
from kit.listening import listen
from kit.page_inputs import read_file, set_variables, write_files
from kit.page_ledgers import TYPED, call

LEDGER = ("--ledger", "adjudge.db")


def create_key(scope: str) -> dict[str, Any]:
    """Create a key of the server whose ledger is in the working directory, as the command line describes it."""
    return json.loads(call("keys", "create", "shop", "--scope", scope, "--json", *LEDGER))


def start(directory: Path, model: ExampleModel, config: str) -> str:
    """Start ``adjudge serve`` in the working directory, until the page has run; its address."""
    require("curl", shutil.which("curl"), "install curl")
    from kit.server import run_server

    return model.opened.enter_context(run_server(directory, config)).url


# ---------------------------------------------------------------- adjudge serve

MORE = """
[defaults]
judge = "openai:gpt-6.1-terra"

[gates.calls]
rules = [{not_contains = "rm -rf"}]

[hook]
tools = {delete_file = "calls"}
"""
"""A judge for requests that name none, and a guard of calls: the page takes both for granted."""


def prepare_server(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Start the server of the page's gate in code; somebody types passwords, and has a key already."""
    write_files(directory, {name: read_file("docs/server.md", name) for name in ("polite.yaml", "polite.py")})
    shown = [block.text for block in docs.read_blocks(ROOT / "docs/server.md") if block.title == "adjudge.toml"]
    url = start(directory, model, next(text for text in shown if "[gates.requests]" in text) + MORE)
    return {"54343b4accb3": create_key("judge")["key"]["prefix"], "http://127.0.0.1:8318": url, **TYPED}


REFUNDS = """
[gates.refunds]
rules = [{not_contains = "never"}]
rubric = "polite.yaml"
judge = "http://127.0.0.1:9/v1#small"

[ledger]
url = "sqlite:///adjudge.db"
"""
"""A gate whose judge cannot decide, because nobody listens there."""


def prepare_results(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Start a server that has judged a refund, and could not decide."""
    write_files(directory, {"polite.yaml": read_file("docs/server.md", "polite.yaml"), "reply.txt": "Please wait.\n"})
    url = start(directory, model, REFUNDS)
    call("gate", "check", "refunds", "reply.txt", status=3)
    set_variables(model, ADJUDGE_KEY=create_key("read")["text"])
    return {"https://adjudge.example.com": url}


# ---------------------------------------------------------------- a shop behind a gate


def open_shop(directory: Path, model: ExampleModel) -> str:
    """Serve the application of docs/fastapi.md, whose requests the account running this may decide; its address."""
    require("curl", shutil.which("curl"), "install curl")
    from kit.server import serve_app

    path = directory / "shop.py"
    path.write_text(read_file("docs/fastapi.md", "app.py").replace('"ana"', f'"{ME}"'), encoding="utf-8")
    spec = spec_from_file_location("shop", path)
    assert spec is not None
    assert spec.loader is not None
    shop = module_from_spec(spec)
    spec.loader.exec_module(shop)
    listener = listen()
    model.opened.enter_context(serve_app(shop.app, listener))
    return f"http://127.0.0.1:{listener.getsockname()[1]}"


def order_crane(url: str) -> tuple[str, str]:
    """Order what a person has to approve; the request's id, and what stands for what a person is shown of it."""
    from kit.server import httpx

    headers = {"Authorization": "Bearer a-token", "Content-Type": "application/json"}
    held = httpx.post(f"{url}/orders", content='{"item": "crane"}', headers=headers)  # the bytes that curl sends
    ident = str(held.headers["Adjudge-Approval"])
    return ident, str(json.loads(call("approvals", "show", ident, "--json", *LEDGER))["shown"])


def prepare_shop(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Serve the shop, which holds back an order."""
    url = open_shop(directory, model)
    ident, seen = order_crane(url)
    ids = {"4f8e19724": ident[-12:], "3c0f5e2b91aa": seen[:12], "Adjudge-Approval: ID": f"Adjudge-Approval: {ident}"}
    return {"http://127.0.0.1:8000": url, **ids}


def prepare_approved_order(directory: Path, model: ExampleModel) -> Mapping[str, str]:
    """Serve the shop, in which somebody has approved an order."""
    url = open_shop(directory, model)
    ident, seen = order_crane(url)
    call("approvals", "approve", ident, "--reason", "we need one", "--seen", seen, *LEDGER)
    set_variables(model, TOKEN="a-token")
    return {"https://shop.example": url, "Adjudge-Approval: ID": f"Adjudge-Approval: {ident}"}


PREPARED: Mapping[str, Callable[[Path, ExampleModel], Mapping[str, str]]] = {
    "docs/fastapi.md": prepare_shop,
    "docs/gate-web.md": prepare_approved_order,
    "docs/pages.md": prepare_results,
    "docs/server.md": prepare_server,
}
"""By the page's place in the repository: see ``kit.page_files``."""
