"""How property tests run: the same examples every time, so that a red run can be repeated."""

import os

import numpy as np
from hypothesis import HealthCheck, settings

settings.register_profile(
    "quick", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("thorough", parent=settings.get_profile("quick"), max_examples=1000, derandomize=False)
settings.load_profile(os.environ.get("PEGFAN_HYPOTHESIS", "quick"))
np.seterr(all="warn")
