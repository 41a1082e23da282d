"""Ranks that really meet, in processes of a real torch: FA_FORENSICS_REAL_PYTHON.

That Python needs this program's dependencies too, from its own packages or from the
directory that FA_FORENSICS_REAL_DEPENDENCIES names.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.real

ROOT = Path(__file__).parent.parent
PYTHON = os.environ.get("FA_FORENSICS_REAL_PYTHON", "")

#: Runs the program as ``-m fa_forensics.ranks`` does, and lets one rank end otherwise.
ACT = """
import os, runpy, signal, sys, time
from fa_forensics.ranks import gather, run
whole = run.facts_of_this_rank
def act(environ):
    if os.environ["RANK"] == os.environ.get("ODD"):
        {act}
    return whole(environ)
run.run_rank.__defaults__ = (act,)
sys.argv[0] = "ranks"
runpy.run_module("fa_forensics.ranks", run_name="__main__")
"""


@pytest.fixture(autouse=True)
def _torch() -> None:
    if not PYTHON:
        pytest.skip("FA_FORENSICS_REAL_PYTHON names no Python with torch")


def environ(**more: str) -> dict[str, str]:
    path = [str(ROOT), os.environ.get("FA_FORENSICS_REAL_DEPENDENCIES", "")]
    names = ("PATH", "HOME", "LANG")
    kept = {name: os.environ[name] for name in names if name in os.environ}
    return {**kept, "PYTHONPATH": ":".join(filter(None, path)), "OMP_NUM_THREADS": "1", **more}


def free_port() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return str(found.getsockname()[1])


def started(
    size: int, *options: str, script: Path | None = None, absent: int | None = None,
    odd: dict[int, dict[str, str]] | None = None, timeout: str = "90",
) -> dict[int, subprocess.CompletedProcess[str]]:  # fmt: skip
    """Every rank as a process of its own, as mpirun and srun start them."""
    meet = {"WORLD_SIZE": str(size), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port()}
    program = [str(script)] if script else ["-m", "fa_forensics.ranks"]
    command = [PYTHON, *program, "--timeout", timeout, *options]
    running = {
        rank: subprocess.Popen(
            command, env=environ(RANK=str(rank), **meet, **(odd or {}).get(rank, {})), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )
        for rank in range(size) if rank != absent
    }  # fmt: skip
    done = {}
    for rank, process in running.items():
        out, err = process.communicate(timeout=240)
        done[rank] = subprocess.CompletedProcess(command, process.returncode, out, err)
    return done


def acting(tmp_path: Path, act: str) -> Path:
    script = tmp_path / "act.py"
    script.write_text(textwrap.dedent(ACT).format(act=act))
    return script


@pytest.mark.parametrize("size", [2, 4])
def test_ranks_that_are_the_same_end_with_0(size: int) -> None:
    done = started(size, "--fail-on-difference")
    assert {rank: one.returncode for rank, one in done.items()} == dict.fromkeys(range(size), 0)
    assert f"{size} of {size} ranks answered" in done[0].stdout
    assert "nothing differs" in done[0].stdout
    assert all(one.stdout == "" for rank, one in done.items() if rank)


@pytest.mark.parametrize("size", [2, 4])
def test_one_rank_is_different_and_all_end_with_1(size: int) -> None:
    odd = {size - 1: {"NVIDIA_TF32_OVERRIDE": "0"}}
    done = started(size, "--fail-on-difference", "--format", "json", odd=odd)
    assert {one.returncode for one in done.values()} == {1}
    shown = json.loads(done[0].stdout)
    (difference,) = shown["differences"]
    assert (difference["group"], difference["subject"]) == ("variables", "NVIDIA_TF32_OVERRIDE")
    assert difference["values"][1] == {"value": "0", "reports": [size - 1]} or size == 2
    assert difference["numbers"] == "can"


def test_a_difference_alone_does_not_fail_the_job_unless_asked() -> None:
    done = started(2, odd={1: {"NVIDIA_TF32_OVERRIDE": "0"}})
    assert {one.returncode for one in done.values()} == {0}
    assert "NVIDIA_TF32_OVERRIDE" in done[0].stdout


def test_what_is_loaded_is_compared(tmp_path: Path) -> None:
    """One rank preloads a library that the others do not have."""
    script = acting(tmp_path, "import ctypes; ctypes.CDLL('libutil.so.1')")
    done = started(2, "--format", "json", script=script, odd={0: {"ODD": "1"}, 1: {"ODD": "1"}})
    shown = json.loads(done[0].stdout)
    assert [(row["group"], row["subject"], row["aspect"]) for row in shown["differences"]] == [
        ("libraries", "libutil.so.1", "")
    ]


@pytest.mark.parametrize("act", ["os._exit(9)", "os.kill(os.getpid(), signal.SIGKILL)"])
def test_a_rank_that_dies_is_named_and_all_others_end_with_3(tmp_path: Path, act: str) -> None:
    start = time.monotonic()
    odd = {rank: {"ODD": "2"} for rank in range(4)}
    script = acting(tmp_path, act)
    done = started(4, "--format", "json", script=script, odd=odd, timeout="600")
    shown = json.loads(done[0].stdout)
    states = {row["rank"]: row["state"] for row in shown["ranks"]}
    assert states == {0: "answered", 1: "answered", 2: "died", 3: "answered"}
    assert {done[rank].returncode for rank in (0, 1, 3)} == {3}
    assert time.monotonic() - start < 300  # it did not wait for the time-out


def test_a_rank_that_fails_is_told_in_its_own_words(tmp_path: Path) -> None:
    script = acting(tmp_path, "raise ValueError('an odd rank')")
    done = started(2, script=script, odd={0: {"ODD": "1"}, 1: {"ODD": "1"}})
    assert "error[FA861]: rank 1" in done[0].stdout and "an odd rank" in done[0].stdout
    assert {one.returncode for one in done.values()} == {3}


def test_a_rank_that_never_comes_is_named_after_the_time_out() -> None:
    done = started(4, absent=3, timeout="25")
    assert "error[FA860]: rank 3 never answered" in done[0].stdout
    assert {one.returncode for one in done.values()} == {3}


def test_a_rank_that_hangs_is_named_after_the_time_out(tmp_path: Path) -> None:
    script = acting(tmp_path, "time.sleep(45)")
    done = started(2, script=script, odd={0: {"ODD": "1"}, 1: {"ODD": "1"}}, timeout="25")
    assert "error[FA860]: rank 1" in done[0].stdout
    assert "handed in nothing within 25 s" in " ".join(done[0].stdout.split())
    assert done[0].returncode == 3


def test_without_rank_0_the_others_say_so() -> None:
    done = started(2, absent=0, timeout="5")
    assert done[1].returncode == 3 and done[1].stdout == ""
    assert "does not answer within 5 s" in done[1].stderr


def torchrun(size: int, *program: str, **more: str) -> subprocess.CompletedProcess[str]:
    command = [PYTHON, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={size}"]
    return subprocess.run(
        [*command, *program], env=environ(**more), capture_output=True, text=True, timeout=240
    )


@pytest.mark.parametrize("size", [2, 4])
def test_torchrun_starts_them(size: int) -> None:
    done = torchrun(size, "-m", "fa_forensics.ranks", "--fail-on-difference")
    assert done.returncode == 0, done.stderr
    assert f"{size} of {size} ranks answered" in done.stdout
    assert done.stdout.count("ranks answered") == 1


def test_under_torchrun_a_rank_that_dies_is_named(tmp_path: Path) -> None:
    """torchrun ends all others as soon as one has died; rank 0 says which before it goes."""
    script = acting(tmp_path, "time.sleep(20); os._exit(9)")
    done = torchrun(4, str(script), ODD="2")
    assert done.returncode != 0
    assert "error[FA861]: rank 2" in done.stdout or "error[FA860]: rank 2" in done.stdout
