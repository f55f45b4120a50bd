"""``python -m pegfan`` and ``pegfan``: the command line as a program of its own."""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line; Ctrl-C and a kill end it in order, from the first import to the last line."""
    try:
        _prepare()
        from pegfan.cli import app

        app(prog_name="pegfan")
    except KeyboardInterrupt:
        sys.exit(130)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # at the end, a second Ctrl-C ends it at once


def _prepare() -> None:
    """Give streams and signals that are left to chance a meaning."""
    try:
        while os.open(os.devnull, os.O_RDWR) < 3:  # a file of ours must not become a closed stream
            pass
    except OSError:
        return
    for name in ("SIGTERM", "SIGHUP"):  # what is begun is cleared away, as with Ctrl-C
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, lambda got, _: sys.exit(128 + got))


if __name__ == "__main__":
    main()
