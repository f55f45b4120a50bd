"""``python -m pegfan`` and ``pegfan``: the command line as a program of its own."""

from __future__ import annotations

import _thread
import contextlib
import os
import signal
import sys
import threading
from typing import Any

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C and a kill end it in order, from the first import to the last line."""
    try:
        _fill_streams()
        _hear_signals()
        from pegfan.cli import app

        app(prog_name="pegfan")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # at the end, a second Ctrl-C ends it at once


def _fill_streams() -> None:
    """Open streams that are closed, to nowhere: else a file of ours would become one of them."""
    with contextlib.suppress(OSError):
        while (last := os.open(os.devnull, os.O_RDWR)) < 3:
            pass
        os.close(last)


def _hear_signals() -> None:
    """Let a kill clear away what is begun, as Ctrl-C does."""
    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda got, _: sys.exit(128 + got))
    sys.unraisablehook = _hear_again


def _hear_again(lost: Any) -> None:
    """Where Python swallows an exception, as it must in a callback, the signal that it stood for comes again."""
    number = None
    if lost.exc_type is KeyboardInterrupt:
        number = int(signal.SIGINT)
    elif lost.exc_type is SystemExit and isinstance(lost.exc_value.code, int) and lost.exc_value.code > 128:
        number = lost.exc_value.code - 128
    if number is None:
        sys.__unraisablehook__(lost)
        return
    with contextlib.suppress(RuntimeError):  # it is ending already
        threading.Timer(0.01, _thread.interrupt_main, [number]).start()


if __name__ == "__main__":
    main()
