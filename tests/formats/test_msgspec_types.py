"""Plain data is read into types from any number of threads, the first time as well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import adjudge

pytestmark = pytest.mark.integration


READ = """
import sys, threading, time
sys.path.insert(0, sys.argv[1])
from dataclasses import dataclass
from adjudge.formats.msgspec_types import prepare_type, read_typed, read_typed_json

class Slow:
    def __class_getitem__(cls, item):
        time.sleep(0.2)  # whoever looks the type up is kept here, and the others come meanwhile
        return int

@dataclass
class Inner:
    x: "Slow[0]"

@dataclass
class Outer:
    name: str
    inner: "Inner"

found = []
readers = {
    "values": lambda: read_typed({"name": "a", "inner": {"x": 1}}, Outer),
    "json": lambda: read_typed_json(b'{"name": "a", "inner": {"x": 1}}', Outer),
}
threads = [threading.Thread(target=lambda: found.append(readers[sys.argv[2]]())) for _ in range(4)]
for thread in threads:
    thread.start()
    time.sleep(0.03)
for thread in threads:
    thread.join()
assert found == [Outer(name="a", inner=Inner(x=1))] * 4
"""


@pytest.mark.parametrize("source", ["values", "json"])
def test_the_first_who_read_a_type_may_come_at_once(source: str):
    """A thread that finds a type half looked up waits for it; it does not end the process."""
    root = str(Path(adjudge.__file__).parents[1])
    done = subprocess.run([sys.executable, "-c", READ, root, source], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")
