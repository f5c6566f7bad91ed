"""A server that answers what a test tells it to, as a server of adjudge would not."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

HEAD = {"Adjudge-Head": f"1:{'0' * 64}"}
"""The header of an export that says where the ledger ends."""


@contextmanager
def answering(*answers: tuple[int, dict[str, str], bytes], verb: str = "POST"):
    """A server that says what it is told to, one after the other and the last for ever; with the requests it got."""
    left, requests = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def answer(self):
            requests.append((dict(self.headers), self.rfile.read(int(self.headers.get("Content-Length", 0)))))
            status, headers, body = left.pop(0) if len(left) > 1 else left[0]
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    setattr(Handler, f"do_{verb}", Handler.answer)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}", requests
        serving.shutdown()
