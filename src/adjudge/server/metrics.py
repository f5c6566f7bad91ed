"""``/metrics``: the server's work, in the form that Prometheus reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.requests import Request

from adjudge.guards.decision import Decision

if TYPE_CHECKING:
    from adjudge.server.work_queue import WorkQueue

_BUCKETS = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Metrics:
    """Counts and times of one application. No label holds anything that a request said."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "adjudge_requests", "Requests that were answered.", ("route", "method", "status"), registry=self._registry
        )
        self._seconds = Histogram(
            "adjudge_request_seconds",
            "How long an answer took.",
            ("route",),
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._decisions = Counter(
            "adjudge_decisions", "What gates decided.", ("gate", "decision", "by"), registry=self._registry
        )
        self._running = Gauge("adjudge_judging", "Contents that are being judged.", registry=self._registry)
        self._waiting = Gauge("adjudge_waiting", "Contents that wait to be judged.", registry=self._registry)

    def count_request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count an answer; ``route`` is the template of the address (``/v1/gates/{gate}/check``)."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def count_decision(self, decision: Decision) -> None:
        """Count what a gate decided."""
        effect = "pending" if decision.pending else "allowed" if decision.allowed else "blocked"
        self._decisions.labels(decision.gate, effect, decision.decided_by).inc()

    def render(self, queue: WorkQueue) -> bytes:
        """Render all counts and times, with the queue as it is now."""
        self._running.set(queue.running)
        self._waiting.set(queue.waiting)
        return generate_latest(self._registry)


def get_metrics(request: Request) -> Metrics:
    """Return the counts of the application that a request came to."""
    metrics: Metrics = request.app.state.metrics
    return metrics
