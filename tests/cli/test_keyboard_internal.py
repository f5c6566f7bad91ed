"""Keys of a terminal that are waited for while signals come."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import pytest

from adjudge.cli.keyboard import read_key, watching_terminal
from kit.patience import HANG

pytestmark = pytest.mark.skipif(os.name != "posix", reason="terminals of POSIX")


@pytest.mark.timed
def test_a_signal_that_interrupts_no_wait_is_acted_on_without_a_key(monkeypatch):
    """It may come between Python's look for signals and the wait; here another thread takes it, to the same effect."""
    import pty
    import termios

    typist, terminal = pty.openpty()
    ended = threading.Event()

    def hang_up() -> None:
        until = time.monotonic() + HANG
        while termios.tcgetattr(terminal)[3] & termios.ICANON and time.monotonic() < until:
            time.sleep(0.005)
        time.sleep(0.1)  # so that the wait began
        signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
        if not ended.wait(30):  # a second is enough; the key ends a wait that nothing else does
            os.write(typist, b"x")

    with os.fdopen(terminal, encoding="utf-8") as keys:
        monkeypatch.setattr(sys, "stdin", keys)
        other = threading.Thread(target=hang_up)
        other.start()
        with watching_terminal(lambda: None), pytest.raises(KeyboardInterrupt):
            read_key()
        ended.set()
        other.join()
    os.close(typist)
