"""The paper's tables and figures: its printed numbers, the runs that make ours, and pages that show both.

`published` holds what the paper prints; `synthetic` (Tables I and II), `benchmarks` (III) and `times` (IV) plan
runs and judge them by `cells`; `figures` draws; `documents` writes. Tables of our own are `leak_free`, all models by
one protocol, and `automatic` with `automatic_page`, automatic training as it is. ``pegfan reproduce`` is their command.
"""
