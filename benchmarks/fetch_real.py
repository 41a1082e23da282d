"""Fetch the real files for the tests marked ``real``.

``python benchmarks/fetch_real.py DIR [TORCH...]``

Fetches with `pip download` the wheels that fixtures/husks/wanted.json names (about 2 GB), checks
their SHA-256, and unpacks their extension files and metadata as ``DIR/NAME/...``, as the husks do;
a cuobjdump; and for each TORCH release an environment ``DIR/envs/torch-RELEASE`` (about 5 GB with
its CUDA libraries). ``DIR/env.sh`` then sets, where they are not set, the variables that the tests
read. What is there already is kept; what cannot be fetched is said, and its comparisons skip.
"""

from __future__ import annotations

import glob
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from fixtures.make_husks import fetch_wheel, open_wheel

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CUOBJDUMP = "nvidia-cuda-cuobjdump"


def wanted_wheels() -> dict[str, dict[str, Any]]:
    """The wheels, by the name of their husk."""
    with open(os.path.join(ROOT, "fixtures", "husks", "wanted.json")) as stream:
        wheels: dict[str, dict[str, Any]] = json.load(stream)["wheels"]
    return wheels


def fetch(name: str, wanted: dict[str, Any], folder: str) -> None:
    """Fetch and unpack one wheel, unless that was done before. The folder appears whole."""
    dest = os.path.join(folder, name)
    if os.path.isdir(dest):
        return
    print(f"fetching {wanted['wheel']}", flush=True)
    scratch = tempfile.mkdtemp(prefix=f".{name}-", dir=folder)
    try:
        fetch_wheel(wanted, scratch)
        with open_wheel(wanted, scratch, scratch) as wheel:
            _unpack(wheel, wanted["members"], os.path.join(scratch, "tree"))
        os.rename(os.path.join(scratch, "tree"), dest)
    finally:
        shutil.rmtree(scratch)


def _unpack(wheel: zipfile.ZipFile, members: list[str], dest: str) -> None:
    names = [n for n in wheel.namelist() if ".dist-info/" in n and not n.endswith("/")]
    for name in [*members, *names]:
        wheel.extract(name, dest)


def fetch_cuobjdump(folder: str) -> str:
    """The path of a cuobjdump under ``folder``; empty when there is none for this machine."""
    dest = os.path.join(folder, "cuobjdump")
    if not os.path.isdir(dest):
        print(f"fetching {CUOBJDUMP}", flush=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps"]
        done = subprocess.run([*command, "--target", dest, CUOBJDUMP], check=False)
        if done.returncode:
            print(f"{CUOBJDUMP} could not be fetched; its comparisons are skipped", flush=True)
            return ""
    found = glob.glob(os.path.join(dest, "**", "bin", "cuobjdump"), recursive=True)
    return os.path.abspath(found[0]) if found else ""


def make_environment(release: str, folder: str) -> str | None:
    """The path of an environment with this torch, or None when it cannot be made here."""
    dest = os.path.join(folder, "envs", f"torch-{release}")
    ready = os.path.join(dest, ".ready")
    if not os.path.exists(ready):
        print(f"making an environment with torch {release}", flush=True)
        python = os.path.join(dest, "bin", "python")
        install = [python, "-m", "pip", "install", "--quiet", f"torch=={release}", "numpy<2"]
        for command in ([sys.executable, "-m", "venv", "--clear", dest], install):
            if subprocess.run(command, check=False).returncode:
                print(f"no torch {release} for this Python; its comparisons are skipped")
                return None
        open(ready, "w").close()
    return dest


def write_variables(folder: str, cuobjdump: str, environments: list[str]) -> None:
    """Write ``env.sh``: what the tests read, each variable only where it is not set."""
    values = {
        "FA_FORENSICS_REAL_DIR": folder,
        "FA_FORENSICS_CUOBJDUMP": cuobjdump,
        "FA_FORENSICS_REAL_ENVS": ":".join(environments),
    }
    with open(os.path.join(folder, "env.sh"), "w") as stream:
        for name, value in values.items():
            if value:
                stream.write(f'[ -n "${name}" ] || export {name}={shlex.quote(value)}\n')


def main(arguments: list[str]) -> int:
    """Run the command line; return its exit code (0 done, 1 could not, 2 wrong usage)."""
    if not arguments or arguments[0].startswith("-"):
        print("usage: python benchmarks/fetch_real.py DIR [TORCH...]", file=sys.stderr)
        return 2
    folder = os.path.abspath(arguments[0])
    os.makedirs(folder, exist_ok=True)
    try:
        for name, wanted in wanted_wheels().items():
            fetch(name, wanted, folder)
    except (subprocess.CalledProcessError, OSError, zipfile.BadZipFile) as error:
        print(f"fetch_real: {error}", file=sys.stderr)
        return 1
    made = [make_environment(release, folder) for release in arguments[1:]]
    write_variables(folder, fetch_cuobjdump(folder), [path for path in made if path])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
