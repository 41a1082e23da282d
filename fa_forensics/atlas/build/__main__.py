"""The maintainer's command that keeps the shipped tables up to date.

    python -m fa_forensics.atlas.build torch            read what is missing, write the tables
    python -m fa_forensics.atlas.build torch 2.16.0     add one release
    python -m fa_forensics.atlas.build early            write the tables of 1.0.0 to 1.11.0
    python -m fa_forensics.atlas.build --check          which published releases are missing

Exit codes: 0 done; 1 ``--check`` found something missing; 2 usage; 3 the index or a file on
it could not be read (what was read is kept, and the same command goes on from there).
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterable, Sequence

from fa_forensics.atlas.build import torch
from fa_forensics.atlas.build.index import version_key
from fa_forensics.atlas.build.progress import Progress, concurrently
from fa_forensics.atlas.build.records import load_record
from fa_forensics.atlas.tables import SHIPPED
from fa_forensics.errors import EXIT_FINDINGS, EXIT_OK, ForensicsError, UsageError

#: (release, machine)
Key = tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.check:
            return check(options.data)
        run = getattr(options, "run", None)
        if run is None:
            raise UsageError("say what to do: torch, early, cuda, compile or --check")
        code: int = run(options)
        return code
    except ForensicsError as error:
        print(f"error: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"help: {error.hint}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print("interrupted; the same command goes on from here", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m fa_forensics.atlas.build",
        description="Keep the tables of what torch and CUDA releases export up to date.",
    )
    parser.add_argument(
        "--check", action="store_true", help="only say which published releases are missing"
    )
    parser.add_argument(
        "--data", metavar="DIR", default=SHIPPED, help="where the tables are (default: shipped)"
    )
    parser.add_argument(
        "--records", metavar="DIR", default=os.path.join("build", "atlas"),
        help="where what was read is kept until then (default: build/atlas)",
    )  # fmt: skip
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    one = commands.add_parser("torch", help="read torch wheels and write the tables")
    one.add_argument("releases", nargs="*", metavar="RELEASE", help="only these")
    one.add_argument("--machine", choices=torch.MACHINES, action="append", help="only this one")
    one.set_defaults(run=run_torch)
    first = commands.add_parser("early", help="read torch 1.0.0 to 1.11.0 and write their tables")
    first.set_defaults(run=run_early)
    both = commands.add_parser("compile", help="write the tables from what was read")
    both.add_argument(
        "--fresh", action="store_true", help="from that alone: forget the tables there are"
    )
    both.set_defaults(run=run_compile)
    third = commands.add_parser("headers", help="read torch's headers and write their table")
    third.set_defaults(run=run_headers)
    _add_cuda(commands.add_parser("cuda", help="read nvidia-* wheels and write the tables"))
    return parser


def _add_cuda(parser: argparse.ArgumentParser) -> None:
    from fa_forensics.atlas.build import cuda

    cuda.add_arguments(parser)
    parser.set_defaults(run=cuda.run)


# --- torch ------------------------------------------------------------------------------------


def run_torch(options: argparse.Namespace) -> int:
    """Read the builds that are wanted and not there yet, then write the tables."""
    machines = tuple(options.machine or torch.MACHINES)
    folder = os.path.join(options.records, "torch")
    shipped = set(_shipped(options.data))
    wanted = _wanted(tuple(options.releases), machines)
    if not options.releases:
        wanted = [key for key in wanted if key not in shipped]
    named = bool(options.releases)
    _read([key for key in wanted if not _at_hand(folder, key, named)], folder)
    if not wanted:
        print("nothing is missing: every published release is in the tables", file=sys.stderr)
        return EXIT_OK
    _compile([torch.record_path(folder, *key) for key in wanted], options.data, bool(shipped))
    return run_headers(options)


def run_early(options: argparse.Namespace) -> int:
    """Read the early releases that are not read yet, then write their tables."""
    from fa_forensics.atlas.build import early

    folder = os.path.join(options.records, "early")
    keys = [(release, early.MACHINE) for release in early.published()]
    _read([key for key in keys if not _at_hand(folder, key, False)], folder)
    made = early.compile_early(folder, os.path.join(options.data, "early"))
    print(f"{made.builds} builds of torch, {made.names:,} names", file=sys.stderr)
    return EXIT_OK


def _wanted(releases: tuple[str, ...], machines: Iterable[str]) -> list[Key]:
    """The builds asked for, newest first. Raises UsageError for a release that nobody published."""
    there = {machine: torch.published(machine) for machine in machines}
    for release in releases:
        if not any(release in known for known in there.values()):
            newest = max((known[-1] for known in there.values()), key=version_key)
            raise UsageError(
                f"the package index has no torch {release} for Linux {' or '.join(there)}",
                f"The newest one there is {newest}, the oldest one of the atlas {torch.OLDEST}.",
            )
    return [
        (release, machine)
        for machine, known in there.items()
        for release in reversed(known)
        if not releases or release in releases
    ]


def _at_hand(folder: str, key: Key, newest: bool) -> bool:
    """Whether a build was read already; with ``newest`` from the wheel that the index has now."""
    path = torch.record_path(folder, *key)
    if not os.path.exists(path):
        return False
    return not newest or load_record(path)["wheel"] == torch.wheel_of(*key).filename


def _read(keys: Sequence[Key], folder: str) -> None:
    """Write the record of each build. Raises ForensicsError; what was finished is kept."""
    progress = Progress(len(keys))

    def work(key: Key) -> None:
        release, machine = key
        name = f"torch {release} {machine}"
        progress.start(name)
        torch.write_record(folder, release, machine, lambda count: progress.add(name, count))
        progress.done(name)

    concurrently(keys, work, progress)


def _compile(paths: Sequence[str], data: str, keep: bool) -> None:
    """Write the tables from these records, and (``keep``) from what the tables hold already."""
    from fa_forensics.atlas.build.compile import compile_torch

    records = (load_record(path) for path in paths)
    made = compile_torch(records, data, data if keep else None)
    print(
        f"{data}: {made.builds} builds of torch, {made.names:,} names, {made.size:,} bytes",
        file=sys.stderr,
    )


# --- headers ----------------------------------------------------------------------------------


def run_headers(options: argparse.Namespace) -> int:
    """Write the table of the headers of every release that the torch tables have."""
    from fa_forensics.atlas.build import headers
    from fa_forensics.atlas.store import Atlas

    releases = Atlas.open(options.data).releases(headers.MACHINE)
    named = getattr(options, "releases", ())
    folder = os.path.join(options.records, "headers")
    size = headers.update(releases, named, folder, options.data)
    print(f"{options.data}: headers of {len(releases)} releases, {size:,} bytes", file=sys.stderr)
    return EXIT_OK


# --- compile, --check -------------------------------------------------------------------------


def run_compile(options: argparse.Namespace) -> int:
    """Write the tables from the records at hand, without the index."""
    from fa_forensics.atlas.build import cuda, headers

    folder = os.path.join(options.records, "torch")
    names: list[str] = []
    with contextlib.suppress(FileNotFoundError):
        names = sorted(name for name in os.listdir(folder) if name.endswith(".json.xz"))
    if names:
        keep = not options.fresh and bool(_shipped(options.data))
        _compile([os.path.join(folder, name) for name in names], options.data, keep)
    made = cuda.compile_all(options)
    at_hand = os.path.join(options.records, "headers")
    if headers.compile_at_hand(at_hand, options.data, options.fresh) is not None:
        made = True
    if not names and not made:
        raise UsageError(
            f"{options.records} holds no records",
            "Read some first: python -m fa_forensics.atlas.build torch",
        )
    return EXIT_OK


def check(data: str) -> int:
    """Print what the index has and the tables lack; returns the exit code."""
    from fa_forensics.atlas.build import cuda

    shipped = _shipped(data)
    lines = []
    for key in reversed(_wanted((), torch.MACHINES)):
        if key not in shipped:
            lines.append(f"torch {key[0]} {key[1]}: missing")
        elif (wheel := torch.wheel_of(*key).filename) != shipped[key]:
            print(f"torch {key[0]} {key[1]}: read from {shipped[key]}, now there is {wheel}")
            print(f"read it again: python -m fa_forensics.atlas.build torch {key[0]}")
    headers = [f"headers of torch {release}: missing" for release in _without_headers(data)]
    missing = {"torch": lines, "headers": headers, "cuda": cuda.missing(data)}
    for command, those in missing.items():
        print("\n".join(those), end="\n" if those else "")
        if those:
            print(f"add them: python -m fa_forensics.atlas.build {command}", file=sys.stderr)
    lines = [line for those in missing.values() for line in those]
    if not lines:
        print("every published release is in the tables")
    return EXIT_FINDINGS if lines else EXIT_OK


def _without_headers(data: str) -> list[str]:
    """The releases in the torch tables whose headers are in no table."""
    from fa_forensics.atlas.build.headers import MACHINE
    from fa_forensics.atlas.headers import Headers

    there: tuple[str, ...] = ()
    if os.path.exists(os.path.join(data, "headers.json")):
        there = Headers.open(data).releases
    known = sorted({r for r, machine in _shipped(data) if machine == MACHINE}, key=version_key)
    return [release for release in known if release not in there]


def _shipped(data: str) -> dict[Key, str]:
    """(release, machine) to wheel of each build in the tables; empty when there are no tables.

    Raises AtlasDamaged for tables that are there and damaged.
    """
    from fa_forensics.atlas.store import Atlas

    if not os.path.exists(os.path.join(data, "torch.json")):
        return {}
    builds = Atlas.open(data).all_builds()
    return {(build.release, build.machine): build.wheel for build in builds}


if __name__ == "__main__":
    sys.exit(main())
