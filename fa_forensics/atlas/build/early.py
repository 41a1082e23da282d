"""The tables of torch's early releases, 1.0.0 to 1.11.0: the names that extensions link with.

    python -m fa_forensics.atlas.build early

They serve one question, in which releases a name lived, so that names of the libraries that
torch was linked with (MKL, Sleef, oneDNN, Caffe2's operators, kernels) are left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from fa_forensics.atlas.ages import EARLY
from fa_forensics.atlas.build import torch
from fa_forensics.atlas.build.compile import Compiled, compile_torch
from fa_forensics.atlas.build.index import version_key
from fa_forensics.atlas.build.records import load_record

#: The first release with a libc10.so.
OLDEST = "1.0.0"
MACHINE = "x86_64"

#: What torch's own functions, classes and data begin with.
_OWN = re.compile(
    r"_Z(?:T[VISTHWc]|GV)?(?:N[KRO]{0,3})?"
    r"(?:2at\d|3c10|5torch\d|4c10d|6caffe2(?:8TypeMeta|6detail|5Error|5Tensor)|3THP"
    r"|8pybind116detail11type_casterIN(?:2at|3c10|5torch))"
    r"|_Z\d{1,2}THP|THC?P?[A-Z_]|THP"
)
#: Inner functions, and what headers make of templates of the standard library.
_INNER = re.compile(r"2at6native|UlvE|UlT_|EUl|3cub|6thrust|_Sp_counted|14_Function_handler")
#: Weak names longer than this are instances that each extension has of its own.
_LONGEST_WEAK = 160


def published() -> tuple[str, ...]:
    """The early releases on the index, oldest first. Raises IndexFailure."""
    first, end = version_key(OLDEST), version_key(torch.OLDEST)
    return tuple(
        version for version in torch.published(MACHINE, OLDEST)
        if first <= version_key(version) < end
    )  # fmt: skip


def kept(name: str, bind: str) -> bool:
    """Whether an extension may link with an exported name."""
    if not _OWN.match(name) or (bind == "weak" and len(name) > _LONGEST_WEAK):
        return False
    return bind != "weak" or not _INNER.search(name)


def compile_early(folder: str, directory: str = EARLY) -> Compiled:
    """Write the tables from the records in a folder. Raises ForensicsError for a damaged one."""
    paths = sorted(
        os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json.xz")
    )
    return compile_torch((_thinned(load_record(path)) for path in paths), directory)


def _thinned(record: Mapping[str, Any]) -> dict[str, Any]:
    libraries = {
        library: {bind: [n for n in names if kept(n, bind)] for bind, names in binds.items()}
        for library, binds in record["libraries"].items()
    }
    return {**record, "libraries": libraries}
