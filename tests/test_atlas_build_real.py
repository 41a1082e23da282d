"""The shipped tables against nm on real libraries of torch."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

import pytest

pytest.importorskip("pypi_simple", reason="pypi-simple is not installed")
pytest.importorskip("remotezip", reason="remotezip is not installed")

from support.torch_wheels import nm_by_bind

from fa_forensics.atlas.build import index, torch
from fa_forensics.atlas.store import Atlas

#: Read by range where no environment has them: a CPU build and one of each string flavour.
PUBLISHED = (("2.2.2", "aarch64"), ("2.7.1", "x86_64"))

Exported = dict[str, set[tuple[str, str]]]


def environments() -> list[str]:
    """The environments with a real torch that were fetched (make test-real)."""
    return [e for e in os.environ.get("FA_FORENSICS_REAL_ENVS", "").split(":") if e]


def by_nm(libraries: Iterable[Path]) -> Exported:
    """Name to (library, bind) of all that nm lists."""
    found: Exported = {}
    for path in libraries:
        for bind, names in nm_by_bind(path).items():
            for name in names:
                found.setdefault(name, set()).add((path.name, bind))
    return found


def by_store(release: str, machine: str) -> Exported:
    """Name to (library, bind) of all that the shipped tables say of a build."""
    atlas = Atlas.open()
    found: Exported = {}
    for raw, _number in atlas.names_and_sets():
        name = raw.decode("utf-8", "surrogateescape")
        rows = {(e.library, e.bind) for e in atlas.exports(name, machine) if e.release == release}
        if rows:
            found[name] = rows
    return found


@pytest.mark.real
@pytest.mark.parametrize("environment", environments() or [None])
def test_the_shipped_answer_for_every_name_is_that_of_nm(environment: str | None) -> None:
    if environment is None:
        pytest.skip("FA_FORENSICS_REAL_ENVS names no environment with a real torch")
    (version_py,) = Path(environment).glob("lib/python3*/site-packages/torch/version.py")
    version = re.findall(r"__version__ = '(.*)'", version_py.read_text())[0]
    built = Atlas.open().build(version.partition("+")[0])
    if built is None or built.version != version:
        pytest.skip(f"torch {version} is not the build that PyPI has")
    found = by_nm((version_py.parent / "lib" / name) for name in built.libraries)
    assert by_store(built.release, built.machine) == found


@pytest.mark.online
@pytest.mark.parametrize(("release", "machine"), PUBLISHED)
def test_the_shipped_answer_is_that_of_nm_on_the_published_wheel(
    tmp_path: Path, release: str, machine: str
) -> None:
    built = Atlas.open().build(release, machine)
    assert built is not None
    with index.open_wheel(torch.wheel_of(release, machine)) as wheel:
        assert wheel.file.filename == built.wheel
        for name in built.libraries:
            wheel.save(f"torch/lib/{name}", str(tmp_path / name))
    assert by_store(release, machine) == by_nm(tmp_path / name for name in built.libraries)
