"""Digests of the trees of real graphs, in this process or in one that is made to look like another machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

SETS = ["cora", "citeseer", "pubmed", "texas", "wisconsin", "cornell", "actor", "chameleon", "squirrel"]
BUILDERS = ["ward", "adjacency", "matching"]
COMMITTED = Path(__file__).parent / "tree_digests.json"
"""Of every builder, h = 4 and 8, on the nine sets: ``PEGFAN_DATA=... python tests/support/digests.py > ...``."""

OTHER_MACHINES = {
    **{core: {"OPENBLAS_CORETYPE": core} for core in ("Haswell", "Sandybridge", "Nehalem", "Prescott")},
    "one thread": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
    "two threads": {"OMP_NUM_THREADS": "2", "OPENBLAS_NUM_THREADS": "2"},
}


def digests(root: Path, names: list[str]) -> dict[str, str]:
    """Of every tree, by set, builder and h."""
    import pegfan as pf

    graphs = {name: pf.datasets.load(name, root=root, offline=True) for name in names}
    return {
        f"{name} {method} {h}": pf.build_tree(graph, method, h).digest
        for name, graph in graphs.items()
        for method in BUILDERS
        for h in (4, 8)
    }


def digests_on(machine: str, root: Path, names: list[str]) -> dict[str, str]:
    """The same in another process."""
    env = {**os.environ, **OTHER_MACHINES[machine], "PEGFAN_DATA": str(root)}
    run = subprocess.run([sys.executable, __file__, *names], env=env, capture_output=True, text=True, check=True)
    found: dict[str, str] = json.loads(run.stdout)
    return found


def committed(names: list[str]) -> dict[str, str]:
    """The digests that are committed."""
    stored: dict[str, str] = json.loads(COMMITTED.read_text())
    return {key: value for key, value in stored.items() if key.split()[0] in names}


if __name__ == "__main__":
    print(json.dumps(digests(Path(os.environ["PEGFAN_DATA"]), sys.argv[1:] or SETS), indent=0))
