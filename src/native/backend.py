"""The build backend: setuptools, with a C compiler from PyPI where the machine has none.

`ziglang` is a wheel that holds a C compiler. It is asked for only where no other compiler runs.
"""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
import sysconfig
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (the hooks that need no compiler)

ZIG = "ziglang==0.17.0"
NEWEST_GLIBC = (2, 34)
"""Of the versions that the system may have, the one to link for at most: older programs run with newer ones."""


def system_compiler() -> str | None:
    """The command of the first C compiler that runs: CC if it is set, else Python's own, or another; None without."""
    commands = [os.environ["CC"]] if "CC" in os.environ else [sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    return next((command for command in commands if command and _runs(command)), None)


def zig_compiler() -> str:
    """The command of the compiler in `ziglang`, for this kind of processor and no newer system than this."""
    machine = {"arm64": "aarch64", "i686": "x86", "i386": "x86"}.get(platform.machine(), platform.machine())
    library, version = platform.libc_ver()
    if sys.platform == "darwin":
        target = f"{machine}-macos"
    elif library == "glibc":
        glibc = min(NEWEST_GLIBC, tuple(int(part) for part in version.split(".")[:2]))
        target = f"{machine}-linux-gnu.{glibc[0]}.{glibc[1]}"
    else:
        target = f"{machine}-linux-musl"
    return shlex.join([sys.executable, "-m", "ziglang", "cc", "-target", target, "-fno-sanitize=all"])


def get_requires_for_build_wheel(config_settings: Any = None) -> list[str]:
    """What setuptools needs, and a compiler."""
    return [*build_meta.get_requires_for_build_wheel(config_settings), *_compiler_requirement()]


def get_requires_for_build_editable(config_settings: Any = None) -> list[str]:
    """What setuptools needs, and a compiler."""
    return [*build_meta.get_requires_for_build_editable(config_settings), *_compiler_requirement()]


def _compiler_requirement() -> list[str]:
    """Microsoft's compiler is found by setuptools, which names it where it is missing."""
    return [] if sys.platform == "win32" or system_compiler() else [ZIG]


def _runs(command: str) -> bool:
    try:
        return subprocess.run([*shlex.split(command), "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False
