"""The Ray cluster that a run is spread over, and the connection to it."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from adjudge.errors import AdjudgeError, Argument, UsageError
from adjudge.formats.arguments import check_whole_number
from adjudge.formats.text import clean

CPUS_PER_ACTOR = 0.5
"""Logical CPUs that an actor asks Ray for. A judge mostly waits for its provider; and actors that ask for less than
they could find a place on the nodes that are left when one is lost."""

OBJECT_STORE_BYTES = 256 * 2**20
"""Memory for the cases on the way to actors, in a cluster that is begun here. What is more goes to disk."""


_SETTINGS = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent to Ray's makers
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # else 127.0.0.1 becomes an address that other machines reach
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".*",  # standard output is the command's, and Ray reports lost actors there
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}
"""Environment variables that Ray reads when it is imported; those that are set already stay as they are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RayCluster:
    """The cluster of a run's actors, and their number."""

    address: str | None = None
    """``host:port`` of the cluster, or ``auto``; by default that of ``RAY_ADDRESS``, else one is begun on this machine
    for the time of the run."""
    actors: int | None = None
    """Processes that judge; by default one for each CPU of the cluster, at most as many as the concurrency."""

    def __post_init__(self) -> None:
        if self.actors is not None:
            check_whole_number("ray_actors", self.actors, least=1)
        if self.address is not None and "://" in self.address:
            raise UsageError(
                Argument("ray_address", repr(clean(self.address))),
                " is that of a Ray client, which keeps this process out of the cluster; run adjudge on a node of it, "
                "with auto or HOST:PORT",
                argument="ray_address",
            )


def load_ray() -> Any:
    """Import the package ``ray`` with ``ray.data``, and return it. Raises ``UsageError`` if it is not installed."""
    for name, value in _SETTINGS.items():
        os.environ.setdefault(name, value)
    try:
        ray = importlib.import_module("ray")
        importlib.import_module("ray.data")
    except ImportError as error:
        raise UsageError(
            Argument("engine", "'ray'"), f" needs Ray ({error}); pip install 'adjudge[ray]'", argument="engine"
        ) from None
    return ray


@contextmanager
def connect(cluster: RayCluster) -> Iterator[Any]:
    """Open a block in which this process is connected to the cluster; its value is the package ``ray``.

    An existing connection is used, and stays open. Call this in a thread other than the main one, so that Ray does not
    change the handling of signals. Raises ``UsageError`` if the cluster cannot be reached.
    """
    ray = load_ray()
    if ray.is_initialized():
        yield ray
        return
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    address = cluster.address or os.environ.get("RAY_ADDRESS", "").strip() or None
    if address is None:
        # A new cluster, which only this machine can reach.
        options |= {"include_dashboard": False, "object_store_memory": OBJECT_STORE_BYTES, "address": "local"}
        options |= {"_node_ip_address": "127.0.0.1"}
    else:
        options["address"] = address
    try:
        ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        cluster_name = "a cluster on this machine" if address is None else f"the cluster at {clean(address)}"
        raise UsageError(f"{cluster_name} cannot be reached: {shorten_error(error)}") from None
    try:
        yield ray
    finally:
        ray.shutdown()


def choose_actors(ray: Any, cluster: RayCluster, concurrency: int) -> int:
    """Choose the number of actors. Raises ``UsageError`` for more than the CPUs or the concurrency allow."""
    cpus = float(ray.cluster_resources().get("CPU", 0.0))
    actors = cluster.actors or max(1, min(int(cpus), concurrency))
    if actors > concurrency:
        raise UsageError(
            f"concurrency of {concurrency} cannot be shared out among {actors} actors; use fewer actors, or raise it",
            argument="concurrency",
        )
    if actors * CPUS_PER_ACTOR > cpus:
        # Without this error, Ray would wait for another machine for ever.
        raise UsageError(
            f"{actors} actors need {actors * CPUS_PER_ACTOR:g} CPUs, and the cluster has {cpus:g}; use fewer, or add "
            "nodes",
            argument="ray_actors",
        )
    return actors


def shorten_error(error: BaseException) -> str:
    """Shorten an error of Ray to one line: the type and the message of its cause, without the traces."""
    cause = getattr(error, "cause", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    message = lines[0] if lines and not lines[0].startswith("Traceback") else (lines or [""])[-1]
    return clean(f"{type(cause).__name__}: {message}"[:300], keep_lines=False)


def make_failure(error: BaseException) -> AdjudgeError:
    """Make the error that ends a run because Ray failed."""
    return AdjudgeError(
        f"Ray gave the run up ({shorten_error(error)}); what was judged until then is kept, so resume it"
    )
