"""One world for every test, whoever runs them and wherever."""

from __future__ import annotations

import os

# What a shell has activated or preloaded would choose another environment to judge in, or other
# libraries to find. A test that wants one of these sets it.
for _name in (
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYTHONPATH",
    "PYTHONHOME",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "NO_COLOR",
    "FORCE_COLOR",
):
    os.environ.pop(_name, None)
os.environ["COLUMNS"] = "100"
