"""Ask NVIDIA's cuobjdump for its list of the same file: find it, run it, read its output.

It is started in the background and collected later, with a time-out. It reads and
decompresses the whole file, so on large ones it takes seconds where the native reader takes
milliseconds. What its list says about ours is judged in ``agreement``.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: More output than this is not read: 100,000 images with names of 80 bytes.
MAX_OUTPUT = 8 << 20
MAX_ERROR = 4_096
DEFAULT_TIMEOUT_S = 30.0

#: Both lists at once, and both fatbin sections, in the order of the native list.
LIST_OPTIONS = ("-all", "-lelf", "-lptx")

_ENTRY = re.compile(r"^(ELF|PTX) file +(\d+): ", re.MULTILINE)
_ARCH = re.compile(r"\.(sm_\d+[a-z]?)\.(?:cubin|ptx)\s*\Z")
_VERSION = re.compile(r"release (\d+\.\d+)")


class Listing(NamedTuple):
    """What one run of cuobjdump said.

    version: ``13.5``, None when it did not say.
    elf, ptx: the architecture in each listed name, in order.
    exit_code: None when it was ended for taking too long; negative for a signal.
    message: the last line on its standard error.
    not_run: why it could not be started; else None.
    unreadable: what was wrong with its output; else None.
    seconds: from its start to its end.
    """

    exe: str
    version: str | None
    elf: tuple[str, ...]
    ptx: tuple[str, ...]
    exit_code: int | None
    message: str
    not_run: str | None
    unreadable: str | None
    seconds: float


def find_cuobjdump(site_dirs: Sequence[str], environ: Mapping[str, str]) -> str | None:
    """Path of cuobjdump: on PATH, in CUDA_HOME, in ``site_dirs`` (packages), in conda.

    One that may not be executed is returned only when there is no other.
    """
    fallback = None
    for place in candidate_places(site_dirs, environ):
        if os.path.isfile(place):
            if os.access(place, os.X_OK):
                return place
            fallback = fallback or place
    return fallback


def candidate_places(site_dirs: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """Where cuobjdump is looked for, in order. Relative entries of PATH are left out."""
    for directory in environ.get("PATH", "").split(os.pathsep):
        if os.path.isabs(directory):
            yield os.path.join(directory, "cuobjdump")
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if environ.get(variable):
            yield os.path.join(environ[variable], "bin", "cuobjdump")
    for site in site_dirs:
        for directory in _nvidia_packages(os.path.join(site, "nvidia")):
            yield os.path.join(directory, "bin", "cuobjdump")
        yield os.path.join(site, "triton", "backends", "nvidia", "bin", "cuobjdump")
        yield os.path.join(site, "triton", "third_party", "cuda", "bin", "cuobjdump")
    if environ.get("CONDA_PREFIX"):
        yield os.path.join(environ["CONDA_PREFIX"], "bin", "cuobjdump")
    for site in site_dirs:
        # PREFIX/lib/python3.X/site-packages
        yield os.path.normpath(os.path.join(site, "..", "..", "..", "bin", "cuobjdump"))
    yield "/usr/local/cuda/bin/cuobjdump"


def _nvidia_packages(directory: str) -> list[str]:
    """Folders of the nvidia namespace package, the newest CUDA first (cu13 before cu12)."""
    try:
        names = os.listdir(directory)
    except OSError:
        return []  # no nvidia package in this environment

    def newest_first(name: str) -> tuple[int, str]:
        digits = name[2:] if name.startswith("cu") else ""
        return (-int(digits) if digits.isdecimal() else 0, name)

    return [os.path.join(directory, name) for name in sorted(names, key=newest_first)]


def start(path: str, exe: str, timeout_s: float = DEFAULT_TIMEOUT_S) -> Running:
    """Start cuobjdump on a file and return at once; ``finish`` collects its list.

    ``timeout_s`` counts from here. Nothing is raised: a cuobjdump that cannot be started is
    told by ``finish``.
    """
    return Running(os.path.abspath(path), os.path.abspath(exe), timeout_s)


class Running:
    """A cuobjdump at work. Either ``finish`` or ``stop`` must be called."""

    def __init__(self, path: str, exe: str, timeout_s: float) -> None:
        self.exe = exe
        self._started = time.monotonic()
        self._deadline = self._started + timeout_s
        self._not_run: str | None = None
        self._version: _Child | None = None
        self._list: _Child | None = None
        try:
            self._version = _Child([exe, "--version"])
            self._list = _Child([exe, *LIST_OPTIONS, path])
        except OSError as error:
            self._not_run = f"{exe} cannot be run: {error.strerror}"
            if isinstance(error, PermissionError):
                self._not_run += f" (make it executable: chmod +x {exe})"

    def finish(self) -> Listing:
        """Wait for the end, or for the time-out, and read what was printed."""
        version = None
        if self._version is not None:
            text = self._version.collect(self._deadline).output
            found = _VERSION.search(text.decode("utf-8", "replace"))
            version = found.group(1) if found else None
        if self._list is None:
            return Listing(self.exe, version, (), (), None, "", self._not_run, None, 0.0)
        result = self._list.collect(self._deadline)
        seconds = time.monotonic() - self._started
        elf, ptx, unreadable = parse_list(result.output.decode("utf-8", "replace"))
        if result.cut:
            unreadable = f"it printed more than {MAX_OUTPUT:,} bytes"
        lines = result.error.decode("utf-8", "replace").strip().splitlines()
        message = lines[-1].strip() if lines else ""
        code = result.exit_code
        return Listing(self.exe, version, elf, ptx, code, message, None, unreadable, seconds)

    def stop(self) -> None:
        """End it without looking at what it printed."""
        for child in (self._version, self._list):
            if child is not None:
                child.collect(0.0)


def parse_list(text: str) -> tuple[tuple[str, ...], tuple[str, ...], str | None]:
    """Architectures of the ELF and of the PTX names in a list, and what was odd about it.

    Names may hold any character, a line break too; only their ends are looked at.
    """
    lists: dict[str, list[str]] = {"ELF": [], "PTX": []}
    parts = _ENTRY.split(text)
    for kind, number, name in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        found = _ARCH.search(name[-64:])
        if found is None:
            return (), (), f"no architecture in its line for {kind} file {number}"
        lists[kind].append(found.group(1))
        if int(number) != len(lists[kind]):
            return (), (), f"it numbered {kind} file {len(lists[kind])} as {number}"
    return tuple(lists["ELF"]), tuple(lists["PTX"]), None


class _Result(NamedTuple):
    output: bytes
    error: bytes
    exit_code: int | None
    cut: bool


class _Child:
    """A child process in its own process group, with both outputs in pipes.

    ``os.posix_spawn`` rather than ``subprocess``: importing that takes 10 ms, which is more
    than listing the file.
    """

    def __init__(self, command: list[str]) -> None:
        import signal

        self._out, out = os.pipe()
        self._err, err = os.pipe()
        actions = (
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, out, 1),
            (os.POSIX_SPAWN_DUP2, err, 2),
        )
        try:
            self._pid = os.posix_spawn(
                command[0],
                command,
                os.environ,
                file_actions=actions,
                setpgroup=0,
                setsigdef=(signal.SIGPIPE,),  # Python ignores it, and children inherit that
            )
        except OSError:
            os.close(self._out)
            os.close(self._err)
            raise
        finally:
            os.close(out)
            os.close(err)
        self._enlarge_pipe()

    def _enlarge_pipe(self) -> None:
        """Let a list of some thousand images fit, so that the child never waits for us."""
        import fcntl

        # Where a privilege or a kernel feature is missing it only works more slowly.
        with contextlib.suppress(OSError, AttributeError):
            fcntl.fcntl(self._out, fcntl.F_SETPIPE_SZ, 1 << 20)

    def collect(self, deadline: float) -> _Result:
        """Read to the end, or to the deadline (then the whole group is killed), and reap."""
        texts, finished = self._read(deadline)
        exit_code = self._wait(deadline) if finished else None
        if exit_code is None:
            self._kill()
        output, error = texts[self._out], texts[self._err]
        return _Result(bytes(output), bytes(error), exit_code, len(output) > MAX_OUTPUT)

    def _read(self, deadline: float) -> tuple[dict[int, bytearray], bool]:
        """Both outputs, and whether both ended in time and within bounds."""
        import select

        texts = {self._out: bytearray(), self._err: bytearray()}
        poll = select.poll()
        for descriptor in texts:
            poll.register(descriptor, select.POLLIN)
        still_open = set(texts)
        while still_open:
            left = deadline - time.monotonic()
            if left <= 0 or len(texts[self._out]) > MAX_OUTPUT:
                break
            for descriptor, _event in poll.poll(left * 1000):
                block = os.read(descriptor, 1 << 16)
                text = texts[descriptor]
                if not block:
                    poll.unregister(descriptor)
                    still_open.discard(descriptor)
                elif descriptor == self._out:
                    text += block
                else:
                    text[:] = (text + block)[-MAX_ERROR:]
        for descriptor in texts:
            os.close(descriptor)
        return texts, not still_open

    def _wait(self, deadline: float) -> int | None:
        """The exit code, once both outputs are closed; None at the deadline."""
        pause = 0.0005
        while True:
            pid, status = os.waitpid(self._pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() >= deadline:
                return None
            time.sleep(pause)
            pause = min(0.02, pause * 2)

    def _kill(self) -> None:
        import signal

        # It may have ended by itself a moment ago.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
