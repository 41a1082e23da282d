"""One world for every test, whoever runs them and wherever."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from trees import make_prefix, make_venv

# What a shell has activated, preloaded or set for Python would choose another environment to
# judge in, other libraries to find or other output. A test that wants one of these sets it.
_CHANGES = {"VIRTUAL_ENV", "CONDA_PREFIX", "LD_LIBRARY_PATH", "LD_PRELOAD", "LD_DEBUG"}
_CHANGES |= {"NO_COLOR", "FORCE_COLOR"}
for _name in list(os.environ):
    if _name in _CHANGES or _name.startswith("PYTHON"):
        del os.environ[_name]
os.environ["COLUMNS"] = "100"
# Servers on localhost are asked directly, whatever proxy leads to the world.
for _name in ("no_proxy", "NO_PROXY"):
    os.environ[_name] = ",".join(filter(None, (os.environ.get(_name), "127.0.0.1")))


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The python of an environment without torch: a text and the tables are all that is known."""
    directory: Path = tmp_path_factory.mktemp("bare")
    make_venv(directory / "bare", make_prefix(directory / "base"))
    return str(directory / "bare/bin/python")
