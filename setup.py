"""The C extension, where there is a compiler, and a bill of materials; everything else is in pyproject.toml."""

import json
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.bdist_wheel import bdist_wheel


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
    cmdclass={"bdist_wheel": WithBill},
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
