"""What nm said of real torch builds (fixtures/torch_exports), by library."""

from __future__ import annotations

from functools import cache

from fixtures.stub_torch import Library, load_record, recorded_versions

#: The libraries of which every exported name was recorded.
WHOLE = ("libc10.so", "libc10_cuda.so")
_BIND = {"W": "weak", "V": "weak", "u": "unique"}


def cuda_releases() -> list[str]:
    """The releases with a recorded CUDA build from the package index."""
    return [v.split("+")[0] for v in recorded_versions() if "+cu" in v]


@cache
def libraries(release: str) -> dict[str, Library]:
    """The libraries in torch/lib of a release's recorded CUDA build, by file name."""
    version = next(v for v in recorded_versions() if v.startswith(f"{release}+cu"))
    torch = load_record(version).distributions[0]
    assert torch.name == "torch"
    return {entry.path.rsplit("/", 1)[1]: entry for entry in torch.libraries}


@cache
def recorded(release: str, library: str) -> frozenset[tuple[str, str]]:
    """(name, bind) of the names recorded of one library; all it exports for those in WHOLE."""
    symbols = libraries(release)[library].symbols.items()
    return frozenset(
        (name.split("@")[0], _BIND.get(letter[0], "global"))
        for letter, names in symbols
        for name in names
    )
