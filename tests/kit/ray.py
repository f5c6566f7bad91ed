"""A Ray cluster on this machine for tests, and what a run on it asked."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from adjudge import Case
from kit.cli import Provider, answer, find_content
from kit.environment import require
from kit.patience import HANG

OBJECT_STORE = 100_000_000


class Words(Provider):
    """A provider that passes what says good and fails what says bad; ``broken`` is answered with an error."""

    def say(self, body: Any) -> dict[str, Any]:
        prompt = "\n".join(message["content"] for message in body["messages"])
        content = find_content(prompt)
        reply = super().say(body)
        text = "no verdict" if "broken" in content else answer(prompt, 1.0 if "good" in content else 0.0)
        reply["choices"][0]["message"]["content"] = text
        reply["usage"] = {"prompt_tokens": 1000, "completion_tokens": 10}
        return reply


def count_asked(provider: Provider) -> Counter[str]:
    """Count how often each case was asked about, by the number that its content ends with."""
    return Counter(re.findall(r"case (\d+)\b", json.dumps(body["messages"]))[-1] for body in provider.bodies)


def make_cases(number: int) -> list[Case]:
    """Cases of which every third is bad and every fiftieth gets no verdict."""
    words = ["bad" if place % 3 == 0 else "good" for place in range(number)]
    words = ["broken" if place % 50 == 49 else word for place, word in enumerate(words)]
    return [
        Case(id=f"case-{place}", content=f"a {word} text of case {place}", label=place % 3 != 0)
        for place, word in enumerate(words)
    ]


def list_actors() -> list[int]:
    """The processes of the actors that judge."""
    processes = []
    for name in os.listdir("/proc"):  # noqa: PTH208 - there are no other entries that are numbers
        if name.isdigit():
            with suppress(OSError):
                if b"RayWorker" in Path("/proc", name, "cmdline").read_bytes():
                    processes.append(int(name))
    return processes


def _begin_cluster(head: dict[str, Any]) -> Any:
    """Begin a cluster with its head. Ray gives a node 30 s to begin; on a busy machine that is tried several times."""
    make_cluster = importlib.import_module("ray.cluster_utils").Cluster
    for left in reversed(range(10)):
        try:
            return make_cluster(initialize_head=True, head_node_args=head)
        except Exception as error:  # Ray raises no more special one
            if "timed out during startup" not in str(error) or not left:
                raise
    raise AssertionError


@contextmanager
def open_cluster(nodes: Sequence[int] = (2,)) -> Iterator[Any]:
    """A cluster of nodes with so many CPUs each, all on 127.0.0.1, which this process belongs to."""
    require("ray", find_spec("ray"), "pip install 'adjudge[ray]'")
    # Read when Ray is imported: an address of this machine alone stays what it is, and nobody is told of the tests.
    settings = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
    os.environ |= settings | {"RAY_DEDUP_LOGS_SKIP_REGEX": ".*", "RAY_BACKEND_LOG_LEVEL": "fatal"}
    # Ray gives its workers the lowest priority but four: beside other work on the machine they would hardly run. And
    # it asks for a minute whether a node has started, which is over before a busy machine has answered.
    os.environ |= {"RAY_worker_niceness": "0", "RAY_gcs_server_request_timeout_seconds": str(int(HANG))}
    ray = importlib.import_module("ray")

    head, *others = nodes
    options = {"object_store_memory": OBJECT_STORE, "include_dashboard": False, "node_ip_address": "127.0.0.1"}
    cluster = _begin_cluster({"num_cpus": head, **options})
    try:
        for cpus in others:
            cluster.add_node(num_cpus=cpus, object_store_memory=OBJECT_STORE, node_ip_address="127.0.0.1")
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()
