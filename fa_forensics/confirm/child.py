"""Load one shared object for real, step by step, and say each step before taking it.

Run as a file by the interpreter of the inspected environment (Python 3.8 or later), with the job
as one JSON argument. Standard library and torch only: nothing of this project can be imported
here. This is the only place that imports torch or dlopens the file under test, either of which
may crash, hang or call exit(); therefore each step is reported before it starts, on a file
descriptor of its own (`report_fd`), as one JSON object a line:

    {"step": "dlopen", "status": "begin", "detail": "/path/to/file.so", "ms": 0.1, "pid": 4711,
     "nonce": "..."}

and again with the status "ok", "failed" or "not-run" once it is over; `ms` is what it took. The
nonce is the job's: a library that writes on every descriptor it finds does not know it. Where
the descriptor was closed or replaced, the child leaves at once with the code REPORT_LOST.

Job: {"path", "report_fd", "nonce", "needs_torch", "timeout_s", "adapter": {...} | null,
"preload": []}.
"""

from __future__ import annotations

import os
import sys

# `python child.py` puts this folder first on the path: its neighbours must not shadow modules.
if sys.path and os.path.realpath(sys.path[0]) == os.path.dirname(os.path.realpath(__file__)):
    del sys.path[0]

import importlib
import importlib.machinery
import importlib.util
import json
import re
import signal
import time
from typing import Any, NoReturn

OLDEST_PYTHON = (3, 8)
REPORT_LOST = 193  # exit code; judge.py has the same. No code that sysexits.h or shells give
TEXT_LIMIT = 16384  # characters of an error text; torch can list hundreds of operators in one
SHAPE = (1, 128, 2, 64)  # batch, sequence, heads, head size: the smallest every kernel accepts
# Largest absolute difference allowed from the float32 reference. The inputs are N(0, 1) and the
# results stay near 1; a kernel rounds the probabilities and the result to its own type
# (half an ulp at 1: 2^-11 for float16, 2^-8 for bfloat16), and a handful of those may add up.
# A result that is all zeros is off by more than 0.2.
TOLERANCE = {"float16": 5e-3, "bfloat16": 3e-2}


class Reporter:
    """Writes steps to the report descriptor, unbuffered: what was sent survives a crash."""

    def __init__(self, fd: int, nonce: str) -> None:
        self.fd = fd
        self.nonce = nonce
        self.pipe = os.fstat(fd)
        self.pid = os.getpid()
        self.started = time.monotonic()
        # Programs that torch starts (ldconfig, gcc) must not hold the pipe open.
        os.set_inheritable(fd, False)

    def send(self, step: str, status: str, detail: str, **facts: Any) -> None:
        """Send one step. A copy of this process made by fork() in a constructor stays silent."""
        if os.getpid() != self.pid:
            return
        line = {"step": step, "status": status, "detail": detail[:TEXT_LIMIT], "pid": self.pid}
        line["ms"] = round((time.monotonic() - self.started) * 1000, 3)
        line.update(facts, nonce=self.nonce)
        # The first line break ends what a library may have written there without one.
        data = ("\n" + json.dumps(line) + "\n").encode("ascii")
        try:
            # A library may have closed the descriptor and opened a file under the same number.
            if not os.path.samestat(os.fstat(self.fd), self.pipe):
                os._exit(REPORT_LOST)
            while data:
                data = data[os.write(self.fd, data) :]
        except OSError:  # nothing more can be said, and an exit code is all that is left to say it
            os._exit(REPORT_LOST)
        if status != "begin":
            self.started = time.monotonic()

    def begin(self, step: str, detail: str) -> None:
        """Say what is about to be tried; the clock of the step starts here."""
        self.started = time.monotonic()
        self.send(step, "begin", detail)


def error_text(error: BaseException) -> str:
    """The exception's type and message, on as many lines as it has."""
    return f"{type(error).__name__}: {error}"


def mapped_files() -> list[str]:
    """Every shared object mapped into this process, by real path, sorted."""
    found = set()
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        for line in maps:
            columns = line.rstrip("\n").split(None, 5)
            if len(columns) == 6 and columns[5].startswith("/"):
                name = columns[5]
                if re.search(r"\.so(\.|$|-| \(deleted\)$)", os.path.basename(name)):
                    found.add(os.path.realpath(name))
    return sorted(found)


def import_torch(report: Reporter, needed: bool) -> Any:
    """Import torch; None if the job needs none. Ends the process if the import fails."""
    if not needed:
        report.send("import-torch", "not-run", "the file asks nothing of torch")
        return None
    report.begin("import-torch", "import torch")
    try:
        torch = importlib.import_module("torch")
    except BaseException as error:  # SystemExit too: a broken package may raise anything
        import traceback

        traceback.print_exc()
        report.send("import-torch", "failed", error_text(error))
        finish(report)
    version = getattr(torch, "__version__", None)
    if version is None:
        places = list(getattr(torch, "__path__", []))
        report.send(
            "import-torch", "failed", f"{places} is a folder named torch, without torch in it"
        )
        finish(report)
    build = getattr(torch, "version", None)
    report.send(
        "import-torch",
        "ok",
        f"torch {version}",
        version=str(version),
        cuda=getattr(build, "cuda", None),
        hip=getattr(build, "hip", None),
        path=getattr(torch, "__file__", None),
    )
    return torch


def load(report: Reporter, path: str, preload: list[str]) -> None:
    """dlopen the file as the interpreter's import would. Ends the process if the loader refuses.

    ``preload`` is opened first, as ``torch.ops.load_library`` opens a package's own libraries.
    """
    report.begin("dlopen", path)
    try:
        # ctypes itself may be missing from a hand-built interpreter: that is not the file's fault.
        ctypes = importlib.import_module("ctypes")
    except ImportError as error:
        report.send("dlopen", "not-run", f"this Python has no ctypes: {error}")
        finish(report)
    try:
        for first in preload:
            ctypes.CDLL(first, mode=os.RTLD_NOW | os.RTLD_LOCAL)
        library = ctypes.CDLL(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)
    except OSError as error:
        report.send("dlopen", "failed", str(error))
        finish(report)
    report.send("dlopen", "ok", "every symbol bound", handle=library._handle)


def report_maps(report: Reporter, step: str) -> None:
    """Report the mapped shared objects as a step of its own."""
    report.begin(step, "read /proc/self/maps")
    try:
        files = mapped_files()
    except OSError as error:
        report.send(step, "failed", error_text(error))
        return
    report.send(step, "ok", f"{len(files)} shared objects mapped", files=files)


def driver_release() -> str | None:
    """The NVIDIA kernel driver's release (such as 550.54.15); None where there is none."""
    try:
        with open("/proc/driver/nvidia/version") as text:
            found = re.search(r"(\d+\.\d+(?:\.\d+)?)\s", text.read())
    except OSError:
        return None
    return found.group(1) if found else None


def find_device(report: Reporter, torch: Any) -> tuple[int, int] | None:
    """Report the CUDA device; its compute capability, or None where no kernel can be launched."""
    if torch is None:
        report.send("device", "not-run", "torch was not imported")
        return None
    report.begin("device", "ask torch for a CUDA device")
    try:
        if not torch.cuda.is_available():
            reason = "torch sees no CUDA device"
            if getattr(torch.version, "cuda", None) is None:
                reason = "this torch is built without CUDA"
            report.send("device", "not-run", reason, driver=driver_release())
            return None
        major, minor = torch.cuda.get_device_capability(0)
        name = torch.cuda.get_device_name(0)
        supported = getattr(torch._C, "_cuda_getDriverVersion", None)
        report.send(
            "device",
            "ok",
            f"{name}, compute capability {major}.{minor}",
            driver=driver_release(),
            driver_supports_cuda=supported() if supported else None,
        )
    except Exception as error:  # whatever the driver and torch make of it is the finding
        report.send("device", "failed", error_text(error))
        return None
    return major, minor


def find_module(dotted: str) -> str | None:
    """The file that `import dotted` would load, without running any package on the way."""
    names = dotted.split(".")
    spec = importlib.util.find_spec(names[0])
    for depth in range(1, len(names)):
        if spec is None or spec.submodule_search_locations is None:
            return None
        places = list(spec.submodule_search_locations)
        spec = importlib.machinery.PathFinder.find_spec(".".join(names[: depth + 1]), places)
    return spec.origin if spec is not None else None


def same_file(one: str | None, other: str) -> bool:
    """Whether both paths lead to one file."""
    return one is not None and os.path.exists(one) and os.path.samefile(one, other)


def import_name(dotted: str) -> Any:
    """The module or the attribute of a module that a dotted name stands for."""
    try:
        return importlib.import_module(dotted)
    except ImportError:
        parent, _, name = dotted.rpartition(".")
        if parent not in sys.modules:
            raise
        return getattr(sys.modules[parent], name)


def loaded_by_python(torch: Any, module: str, path: str) -> bool:
    """Whether Python, not only our own dlopen, has loaded the file under test."""
    loaded = getattr(sys.modules.get(module), "__file__", None)
    libraries = getattr(torch.ops, "loaded_libraries", ())
    return same_file(loaded, path) or any(same_file(str(one), path) for one in libraries)


def why_not_launch(torch: Any, adapter: dict[str, Any], path: str) -> str | None:
    """Import the wrapper package; the reason it would not launch this very file, or None."""
    module = adapter["module"]
    origin = find_module(module)
    if origin is None:
        return f"this Python finds no module {module}: the file is not installed in it"
    if not same_file(origin, path):
        return f"import {module} would load {origin}, not the file under test"
    try:
        importlib.import_module(adapter["wrapper"])
    except Exception as error:  # a wrapper may fail for reasons of its own (a missing einops)
        return f"import {adapter['wrapper']} failed: {error_text(error)}"
    if not loaded_by_python(torch, module, path):
        return f"import {adapter['wrapper']} did not load the file under test"
    if adapter["needs_op"]:
        namespace, name = adapter["needs_op"].split(".")
        try:
            getattr(getattr(torch.ops, namespace), name)
        except (AttributeError, RuntimeError):
            return (
                f"the file registers no {namespace}::{name}: it has no attention kernel to launch"
            )
    return None


def launch(torch: Any, adapter: dict[str, Any], dtype: str, device: str) -> float:
    """Run one forward attention kernel; the largest difference from the float32 reference.

    Inputs and reference are computed on the CPU, so that only the kernel under test touches the
    device. NaN if the kernel wrote one.
    """
    torch.manual_seed(0)
    inputs = [torch.randn(SHAPE, dtype=torch.float32).to(getattr(torch, dtype)) for _ in range(3)]
    # (batch, sequence, heads, size) -> (batch, heads, sequence, size) for the matrix products
    q, k, v = [tensor.float().transpose(1, 2) for tensor in inputs]
    weights = torch.softmax(q @ k.transpose(2, 3) / SHAPE[3] ** 0.5, dim=-1)
    expected = (weights @ v).transpose(1, 2)

    function = getattr(importlib.import_module(adapter["wrapper"]), adapter["function"])
    options = {}
    if adapter["op"]:
        package, _, operator = adapter["op"].rpartition(".")
        options["op"] = (getattr(import_name(package), operator), None)
    with torch.no_grad():
        result = function(*[tensor.to(device) for tensor in inputs], **options)
        if device == "cuda":
            torch.cuda.synchronize()
    if isinstance(result, (tuple, list)):  # FlashAttention-3 before 2025 returns (out, lse)
        result = result[0]
    return float((result.float().cpu() - expected).abs().max().item())


def launch_kernel(report: Reporter, torch: Any, job: dict[str, Any], device: Any) -> None:
    """Launch the known kernel of the file, in float16 and bfloat16, and compare the results."""
    adapter = job["adapter"]
    if device is None:
        report.send("kernel", "not-run", "no CUDA device to launch on")
        return
    if adapter is None:
        report.send("kernel", "not-run", "no kernel of this file is known to this tool")
        return
    report.begin("kernel", f"import {adapter['wrapper']}")
    reason = why_not_launch(torch, adapter, job["path"])
    if reason is not None:
        report.send("kernel", "not-run", reason)
        return
    results = []
    for dtype in ["float16", "bfloat16"] if device >= (8, 0) else ["float16"]:
        call = f"{adapter['wrapper']}.{adapter['function']} in {dtype}"
        report.send("kernel", "begin", f"{call} on tensors of shape {SHAPE}")
        try:
            difference = launch(torch, adapter, dtype, "cuda")
        except Exception as error:  # the CUDA error, or the wrapper's refusal, is the finding
            report.send("kernel", "failed", f"{call}: {error_text(error)}")
            return
        allowed = TOLERANCE[dtype]
        result = f"{call}: largest difference from float32 {difference:.2g}, allowed {allowed:g}"
        if not difference <= allowed:  # written so that NaN fails
            report.send("kernel", "failed", f"wrong result of {result}")
            return
        results.append(result)
    report.send("kernel", "ok", "; ".join(results))


def finish(report: Reporter) -> NoReturn:
    """Report the end and leave at once, so that no destructor can spoil the verdict."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError) as error:  # a library closed it: no matter for the verdict
            report.send("done", "begin", f"what was printed is lost: {error}")
    report.send("done", "ok", "")  # the last thing: whoever says it and does not leave lies
    os._exit(0)


def limit_process(timeout_s: float) -> None:
    """No core dump; and an end of our own making should the parent be gone at the time-out."""
    try:
        resource = importlib.import_module("resource")
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    except (ImportError, OSError, ValueError) as error:
        print(f"core dumps stay enabled: {error}", file=sys.stderr)
    signal.setitimer(signal.ITIMER_REAL, timeout_s + 5)


def main() -> None:
    """Take the steps in order; every way out but a crash goes through `finish`."""
    job = json.loads(sys.argv[1])
    report = Reporter(job["report_fd"], job["nonce"])
    version = ".".join(str(part) for part in sys.version_info[:3])
    facts = {"version": version, "executable": sys.executable}
    if sys.version_info < OLDEST_PYTHON:
        report.send("start", "failed", f"Python {version} is older than 3.8", **facts)
        finish(report)
    limit_process(job["timeout_s"])
    report.send("start", "ok", f"Python {version} at {sys.executable}", **facts)
    torch = import_torch(report, job["needs_torch"])
    report_maps(report, "maps")
    load(report, job["path"], job.get("preload", []))
    report_maps(report, "maps-after")
    launch_kernel(report, torch, job, find_device(report, torch))
    finish(report)


if __name__ == "__main__":
    main()
