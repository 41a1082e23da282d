"""How often ``built_on`` is right: ``python -m benchmarks.built_on DIR [--rows] [--list]``.

``DIR`` holds unpacked wheels, one directory each, with their ``dist-info``. Counted are the
wheels whose metadata pins torch exactly, and the files in them that use torch: whether the pinned
release is among those that the tool says the file can have been built on, and whether its best
single guess names the pinned minor release (of the file by itself, and with the other files of its
wheel). The metadata is what is compared with; the tool does not see it. ``--rows`` also compares
*links with* with ``fixtures/truth/link_truth.json``; ``--list`` shows every file.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from fa_forensics.atlas.builds import minor_of
from fa_forensics.atlas.built import Built, built_on, judged_together
from fa_forensics.atlas.store import Atlas
from fa_forensics.atlas.window import TorchSymbol, Window, links_with
from fa_forensics.errors import ForensicsError
from fa_forensics.facts.demangle import demangle
from fa_forensics.facts.elf.dynamic import STB_WEAK, DynamicObject
from fa_forensics.facts.elf.facts import read_facts
from fa_forensics.facts.fatbin.provenance import read_toolkits
from fa_forensics.facts.fatbin.reader import read_device_code
from fa_forensics.facts.owner import is_torch, owner_of
from fa_forensics.facts.traces import read_traces
from fa_forensics.resolve.neighbours import Neighbours

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TRUTH = os.path.join(ROOT, "fixtures", "truth", "link_truth.json")


@dataclass(slots=True)
class Placed:
    """One file that uses torch: where it stands, and the milliseconds that took."""

    member: str
    machine: str
    window: Window
    built: Built
    ms: float


@dataclass(slots=True)
class Wheel:
    """One unpacked wheel: the release its metadata pins (None: no exact pin), and its files."""

    name: str
    pin: str | None
    files: list[Placed] = field(default_factory=list)


def pinned_release(directory: str) -> str | None:
    """The torch release that the metadata in an unpacked wheel asks for with ``==``."""
    for info in sorted(os.listdir(directory)):
        path = os.path.join(directory, info, "METADATA")
        if info.endswith(".dist-info") and os.path.isfile(path):
            with open(path, encoding="utf-8", errors="replace") as file:
                for line in file:
                    found = re.match(r"Requires-Dist:\s*torch\s*\(?\s*==\s*([0-9.]+)", line)
                    if found:
                        return found[1]
    return None


def shared_objects(directory: str) -> Iterator[str]:
    """The shared objects below a directory, sorted."""
    for folder, folders, files in os.walk(directory):
        folders.sort()
        for name in sorted(files):
            if re.search(r"\.so(\.\d+)*$", name):
                yield os.path.join(folder, name)


def place(path: str, member: str, atlas: Atlas) -> Placed | None:
    """Where one file stands; None where it uses nothing of torch."""
    with_owner = []
    dynamic = DynamicObject.open(path)
    try:
        elf = read_facts(dynamic)
        for symbol in elf.undefined:
            name = symbol.name.decode("utf-8", "surrogateescape")
            owner = owner_of(name, symbol.version, demangle(name))
            if symbol.bind != STB_WEAK and is_torch(owner):
                with_owner.append(TorchSymbol(name, owner))
        if not with_owner or not atlas.releases(elf.machine):
            return None
        toolkits = read_toolkits(dynamic.image, read_device_code(dynamic.image)).toolkits
        started = time.perf_counter()
        traces = read_traces(dynamic, elf)
        with Neighbours(path, elf) as siblings:
            window = links_with(with_owner, elf.machine, atlas, siblings)
        built = built_on(window, atlas, traces, [t.release for t in toolkits], member)
        taken = (time.perf_counter() - started) * 1000
        return Placed(member, elf.machine, window, built, taken)
    finally:
        dynamic.close()


def read_wheel(directory: str, atlas: Atlas) -> Wheel:
    """Place every file of an unpacked wheel. Files that cannot be read are told of and left out."""
    wheel = Wheel(os.path.basename(directory), pinned_release(directory))
    for path in shared_objects(directory):
        try:
            placed = place(path, os.path.relpath(path, directory), atlas)
        except ForensicsError as error:
            print(f"{path}: {error.message}", file=sys.stderr)
            continue
        if placed is not None:
            wheel.files.append(placed)
    return wheel


def truth_rows() -> dict[tuple[str, str], tuple[str, ...]]:
    """(directory of the wheel, member) to the releases it really links with."""
    with open(TRUTH, encoding="utf-8") as file:
        rows = json.load(file)["rows"]
    return {
        (f"{row['pkg'].replace('-', '_')}-{row['version']}", row["so"]): tuple(row["links_with"])
        for row in rows
    }


def truth_releases() -> tuple[str, ...]:
    """The releases that the truth speaks of."""
    with open(TRUTH, encoding="utf-8") as file:
        return tuple(json.load(file)["releases"])


def compare_rows(wheels: list[Wheel]) -> int:
    """Print how many rows of the truth come out exactly; returns how many do not."""
    rows, asked = truth_rows(), set(truth_releases())
    same = wrong = 0
    for wheel in wheels:
        for file in wheel.files:
            expected = rows.get((wheel.name, file.member))
            if expected is None:
                continue
            found = tuple(r for r in file.window.releases if r in asked)
            same, wrong = (same + 1, wrong) if found == expected else (same, wrong + 1)
            if found != expected:
                print(f"  {wheel.name} {file.member}: {found}, expected {expected}")
    print(f"links with: {same} of {len(rows)} rows exact, {wrong} wrong")
    return wrong


def compare_pins(wheels: list[Wheel], every: bool) -> int:
    """Print how often the pinned release is found; returns how often it is ruled out."""
    lost = alone = together = count = wide = 0
    for wheel in wheels:
        joint = judged_together([file.built for file in wheel.files])
        for file, both in zip(wheel.files, joint, strict=True):
            assert wheel.pin is not None
            count += 1
            wide += len(both.releases)
            inside = wheel.pin in file.built.releases and wheel.pin in both.releases
            lost += not inside
            minor = minor_of(wheel.pin)
            alone += file.built.best is not None and minor_of(file.built.best) == minor
            right = both.best is not None and minor_of(both.best) == minor
            together += right
            if every or not inside or not right:
                print(
                    f"  {wheel.name} {file.member}: pinned {wheel.pin}, best {both.best} "
                    f"({both.confidence}) of {', '.join(both.releases)}"
                )
    print(f"{len(wheels)} wheels with an exact pin, {count} files that use torch")
    print(f"pinned release in built_on: {count - lost} of {count}")
    print(f"best guess names its minor: {together} of {count} ({together / max(count, 1):.1%})")
    print(f"... from the file alone:    {alone} of {count} ({alone / max(count, 1):.1%})")
    print(f"releases in built_on, mean: {wide / max(count, 1):.1f}")
    return lost


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; 1 when a pinned release is ruled out or a row is wrong."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.built_on")
    parser.add_argument("directory", metavar="DIR")
    parser.add_argument("--rows", action="store_true", help="compare links-with as well")
    parser.add_argument("--list", action="store_true", help="show every file")
    options = parser.parse_args(arguments)
    atlas = Atlas.open()
    places = [os.path.join(options.directory, n) for n in sorted(os.listdir(options.directory))]
    wheels = [
        read_wheel(place, atlas)
        for place in places
        if os.path.isdir(place) and any(n.endswith(".dist-info") for n in os.listdir(place))
    ]
    wheels = [wheel for wheel in wheels if wheel.files]
    wrong = compare_rows(wheels) if options.rows else 0
    wrong += compare_pins([wheel for wheel in wheels if wheel.pin], options.list)
    times = sorted(file.ms for wheel in wheels for file in wheel.files)
    if times:
        print(
            f"time a file: median {times[len(times) // 2]:.1f} ms, "
            f"95 % {times[len(times) * 95 // 100]:.1f} ms, longest {times[-1]:.1f} ms"
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
