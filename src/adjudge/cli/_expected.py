"""How many cases a file is likely to hold, for the time left: counted beside the run, which reads as it goes."""

from __future__ import annotations

from pathlib import Path

_BLOCK = 1 << 20


class Expected:
    """The number of lines of a file of JSON lines, once a thread has counted them; of anything else, unknown.

    A guess: lines may be empty, or no cases. It is shown and never computed with.
    """

    def __init__(self, path: str, *, times: int = 1) -> None:
        self.number: int | None = None
        """How many judgements there will be; ``None`` while that is not known."""
        self._path, self._times = Path(path), times
        if self._path.suffix.lower() in {".jsonl", ".ndjson"} and self._path.is_file():
            import threading

            threading.Thread(target=self._count, daemon=True).start()

    def _count(self) -> None:
        lines, last = 0, b"\n"
        try:
            with self._path.open("rb", buffering=0) as file:
                while block := file.read(_BLOCK):
                    lines, last = lines + block.count(b"\n"), block[-1:]
        except OSError:
            return
        self.number = (lines + (last != b"\n")) * self._times
