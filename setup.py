"""The C extension and a bill of materials; everything else is in pyproject.toml."""

import json
import os
import sys
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, LinkError, PlatformError

sys.path.insert(0, str(Path(__file__).parent / "src" / "native"))
from backend import system_compiler, zig_compiler


class WithCompiler(build_ext):
    """The extension, built by a compiler of this machine, or else by the one that the build backend had PyPI bring."""

    def run(self):
        """Build, or say what is missing."""
        if sys.platform != "win32":  # there, setuptools finds Microsoft's
            self._choose_compiler()
        try:
            super().run()
        except (CompileError, LinkError, PlatformError) as error:
            fix = (
                "install Build Tools for Visual Studio, with what C++ needs"
                if sys.platform == "win32"
                else "it needs Python's headers (python3-dev or python3-devel) and a C compiler: CC=gcc names one, "
                "CC=false takes the one from PyPI (pip install ziglang)"
            )
            raise type(error)(f"{error}\nThe C extension of pegfan was not built: {fix}") from error

    def _choose_compiler(self):
        """Set what setuptools goes by: CC, and LDSHARED where linking is not as Python's own compiler does it."""
        compiler = system_compiler()
        if compiler is None:
            compiler = zig_compiler()
            shared = "-dynamiclib -undefined dynamic_lookup" if sys.platform == "darwin" else "-shared"
            os.environ["LDSHARED"] = f"{compiler} {shared}"
            os.environ.setdefault("ZIG_GLOBAL_CACHE_DIR", str(Path(self.build_temp, "zig").absolute()))
        os.environ["CC"] = compiler


class WithBill(bdist_wheel):
    """A wheel with a CycloneDX bill of materials where PEP 770 puts it.

    The wheel holds no code of others, so what it lists are the requirements, without versions: those are the user's.
    """

    def egg2dist(self, egginfo_path, distinfo_path):
        """Make the folder of metadata, and put the bill into it before the wheel is packed."""
        super().egg2dist(egginfo_path, distinfo_path)
        told = self.distribution.metadata
        project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
        needed = [(line, "required") for line in project["dependencies"]]
        needed += [(line, "optional") for lines in project["optional-dependencies"].values() for line in lines]
        parts = {}
        for line, scope in needed:
            name = line.split(">=")[0].split("[")[0].strip().lower().replace("_", "-")
            if name != told.get_name():
                parts.setdefault(name, (line, scope))
        own = f"pkg:pypi/{told.get_name()}@{told.get_version()}"
        bill = {
            "bomFormat": "CycloneDX",
            "specVersion": "1.6",
            "version": 1,
            "metadata": {
                "component": {
                    "type": "library",
                    "bom-ref": own,
                    "name": told.get_name(),
                    "version": told.get_version(),
                    "licenses": [{"license": {"id": project["license"]}}],
                    "purl": own,
                }
            },
            "components": [
                {
                    "type": "library",
                    "bom-ref": f"pkg:pypi/{name}",
                    "name": name,
                    "scope": scope,
                    "purl": f"pkg:pypi/{name}",
                    "properties": [{"name": "pegfan:requirement", "value": line}],
                }
                for name, (line, scope) in sorted(parts.items())
            ],
            "dependencies": [{"ref": own, "dependsOn": [f"pkg:pypi/{name}" for name in sorted(parts)]}],
        }
        folder = Path(distinfo_path) / "sboms"
        folder.mkdir(exist_ok=True)
        (folder / f"{told.get_name()}.cdx.json").write_text(json.dumps(bill, indent=1) + "\n", encoding="utf-8")


setup(
    cffi_modules=["src/native/build.py:builder"],
    cmdclass={"bdist_wheel": WithBill, "build_ext": WithCompiler},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
