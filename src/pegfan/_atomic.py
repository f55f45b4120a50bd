"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of `path` when the block ends, and vanishes if it fails."""
    target = Path(path)
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".part")
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        _publish(temporary, 0o666)
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def write_figure(figure: Any, path: Path, **options: Any) -> None:
    """Write a figure of Matplotlib in the format that the file's name ends with."""
    buffer = BytesIO()
    figure.savefig(buffer, format=path.suffix[1:].lower(), dpi=160, **options)
    with replacing(path) as file:
        file.write(buffer.getvalue())


@contextmanager
def replacing_folder(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Make a folder that takes the place of `path` when the block ends, and vanishes if it fails.

    What was there is removed once the new folder is in place. Whether it may be removed is the caller's decision.
    """
    target = Path(path)
    temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
    try:
        yield temporary
        _publish(temporary, 0o777)
        _move(temporary, target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def _publish(temporary: str | Path, mode: int) -> None:
    """Temporary files are private; what a user saves gets the permissions of anything new."""
    mask = os.umask(0)
    os.umask(mask)
    os.chmod(temporary, mode & ~mask)


def _move(temporary: Path, target: Path) -> None:
    if not target.exists() or not any(target.iterdir()):
        if target.exists():
            target.rmdir()
        temporary.rename(target)
        return
    aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}.old."))
    target.rename(aside / "old")
    try:
        temporary.rename(target)
    except BaseException:
        (aside / "old").rename(target)
        aside.rmdir()
        raise
    shutil.rmtree(aside, ignore_errors=True)
