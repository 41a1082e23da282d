"""What a wheel must be for: the environment's own Python and torch, or what was asked for."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from fa_forensics.asked import asked_for, read_requests
from fa_forensics.errors import UsageError
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.nvml import AskedGpus, asked_gpus
from fa_forensics.facts.wheel_matrix import CXX11, PRE_CXX11, Wanted
from fa_forensics.facts.wheel_tags import TagHost
from fa_forensics.placing import ReleaseTable
from fa_forensics.records import dataclass
from fa_forensics.report import JudgedTorch

_FLAVOURS = {
    "true": CXX11, "1": CXX11, "cxx11": CXX11, "false": PRE_CXX11, "0": PRE_CXX11,
    "pre-cxx11": PRE_CXX11,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line asks for; None leaves it to the environment."""

    python: str | None = None
    torch: str | None = None
    cuda: str | None = None
    abi: str | None = None
    platform: str | None = None
    gpu: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Situation:
    """The Python, the torch and the machine that a wheel is wanted for.

    ``torch_version`` is the whole text, ``torch`` the release "2.6.0"; ``cuda`` None where it
    is not known and "" for a torch without CUDA; ``flavour`` None where it is not known.
    ``own_python`` is false where another Python version was asked for.
    ``requests`` and ``gpu_words`` are texts of ``--torch`` and ``--gpu`` for ``inspect``;
    ``sources`` say how each part is known. ``unknown`` are sentences on what could not be told.
    """

    environment: Environment
    python: str
    own_python: bool
    host: TagHost
    platform: str
    torch_version: str | None
    torch: str | None
    cuda: str | None
    flavour: str | None
    rocm: bool
    gpus: AskedGpus
    gpu_words: tuple[str, ...]
    requests: tuple[str, ...]
    sources: Mapping[str, str]
    unknown: tuple[str, ...]
    table: ReleaseTable

    @property
    def minor(self) -> str | None:
        """torch's minor release, "2.6"."""
        return None if self.torch is None else ".".join(self.torch.split(".")[:2])

    @property
    def wanted(self) -> Wanted:
        """The row of the matrix to look for."""
        return Wanted(self.minor, self.python, self.cuda or None, self.flavour, self.platform)

    @property
    def command(self) -> str:
        """The interpreter to write into commands."""
        return self.environment.python if self.own_python else f"python{self.python}"

    @property
    def glibc(self) -> str | None:
        """The glibc of this machine; None where it is not known or another machine is meant."""
        version = self.host.libc_version
        return None if version is None else f"{version[0]}.{version[1]}"


def read_situation(asked: Asked, environ: Mapping[str, str]) -> Situation:
    """Look at the environment and at what was asked for beside it.

    Raises ``UsageError`` for words that mean nothing and ``EnvironmentNotFound``.
    """
    version = re.fullmatch(r"(\d\.\d{1,2})(t?)", asked.python or "")
    environment = find_environment(None if version else asked.python, None, environ)
    sources = {"python": environment.found_by, "platform": "the interpreter's own"}
    python, flags = environment.version_short, environment.abiflags
    if version:
        python, flags, sources["python"] = version[1], version[2], "--python"
        environment = replace(environment, version_short=python, version=python, abiflags=flags)
    machine = environment.machine
    if asked.platform is not None:
        machine = _machine(asked.platform)
        sources["platform"] = "--platform"
    here = machine == environment.machine and environment.libc == "glibc"
    libc = _glibc_here() if here else None
    implementation = environment.implementation
    host = TagHost(python, flags, implementation, machine, environment.libc, libc)
    table = ReleaseTable()
    torch = _torch(asked, environment, machine, table, sources)
    return Situation(
        environment=environment,
        python=python,
        own_python=version is None,
        host=host,
        platform=f"linux_{machine}",
        torch_version=torch.version,
        torch=torch.release,
        cuda=torch.cuda,
        flavour=torch.flavour,
        rocm=torch.rocm,
        gpus=asked_gpus(asked.gpu),
        gpu_words=asked.gpu,
        requests=torch.requests,
        sources=sources,
        unknown=torch.unknown,
        table=table,
    )


def parse_flavour(text: str) -> str:
    """``TRUE``, ``cxx11`` → "cxx11"; ``FALSE``, ``pre-cxx11`` → "pre-cxx11".

    Raises ``UsageError`` for other words.
    """
    flavour = _FLAVOURS.get(text.strip().lower())
    if flavour is None:
        raise UsageError(
            f"{text!r} is no std::string flavour", "give --abi TRUE (cxx11) or FALSE (pre-cxx11)"
        )
    return flavour


def parse_cuda(text: str) -> str:
    """``12``, ``12.4``, ``cu124``, ``cu12`` → "12" or "12.4"; else ``UsageError``."""
    found = re.fullmatch(r"(?:cu)?(\d{2})(?:\.?(\d{1,2}))?(?:\.\d{1,3})?", text.strip().lower())
    if found is None:
        raise UsageError(f"{text!r} is no version of CUDA", "give --cuda 12 or --cuda 12.4")
    return found[1] + (f".{int(found[2])}" if found[2] else "")


def _machine(text: str) -> str:
    found = re.fullmatch(r"(?:(?:many)?linux[\d_]*_)?(x86_64|aarch64)", text.strip().lower())
    if found is None:
        raise UsageError(
            f"{text!r} is no platform that official wheels are made for",
            "give --platform linux_x86_64 or linux_aarch64",
        )
    return found[1]


def _glibc_here() -> tuple[int, int] | None:
    """The glibc that this machine's programs run on."""
    try:
        text = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        return None
    found = re.fullmatch(r"glibc (\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


@dataclass(frozen=True, slots=True)
class _TorchWanted:
    version: str | None
    release: str | None
    cuda: str | None
    flavour: str | None
    rocm: bool
    requests: tuple[str, ...]
    unknown: tuple[str, ...]


def _torch(
    asked: Asked,
    environment: Environment,
    machine: str,
    table: ReleaseTable,
    sources: dict[str, str],
) -> _TorchWanted:
    """The torch that is asked for, else the environment's."""
    unknown: list[str] = []
    requests: tuple[str, ...] = ()
    version, release, cuda, flavour, rocm = None, None, None, None, False
    if asked.torch is not None:
        requests = (_request(asked.torch, asked),)
        judged = _judged(requests[0], environment, machine, table)
        version, release, cuda = judged.version, judged.release, judged.cuda
        rocm = "rocm" in asked.torch
        flavour = judged.cxx11_abi if judged.cxx11_abi in (CXX11, PRE_CXX11) else None
        if release is None or judged.judged_by == "nothing":
            release = _numbers(asked.torch) or release
            unknown.append(judged.note)
        if judged.judged_by == "table" and cuda is None:
            cuda = ""
        sources["torch"] = "--torch"
        sources["cuda"] = sources["cxx11_abi"] = "the published build of that release"
    elif environment.torch is not None:
        torch = environment.torch
        version, release, cuda = torch.version, torch.release, torch.cuda or ""
        flavour = torch.cxx11_abi if torch.cxx11_abi in (CXX11, PRE_CXX11) else None
        rocm = torch.hip is not None
        sources["torch"] = sources["cuda"] = "the installed torch"
        sources["cxx11_abi"] = torch.cxx11_evidence or "the installed torch"
    elif environment.torch_problem:
        unknown.append(environment.torch_problem)
    if asked.cuda is not None:
        cuda, sources["cuda"] = parse_cuda(asked.cuda), "--cuda"
    if asked.abi is not None:
        flavour, sources["cxx11_abi"] = parse_flavour(asked.abi), "--abi"
    if release is not None and flavour is None:
        unknown.append("the std::string flavour of that torch is not known: give --abi")
    return _TorchWanted(version, release, cuda, flavour, rocm, requests, tuple(unknown))


def _request(text: str, asked: Asked) -> str:
    """A text of ``--torch`` that carries what --cuda and --abi say too."""
    request = text.strip()
    if asked.cuda is not None and "." in parse_cuda(asked.cuda) and "+" not in request:
        request += "+cu" + parse_cuda(asked.cuda).replace(".", "")
    if asked.abi is not None and "cxx11abi" not in request:
        request += "+cxx11abi" if parse_flavour(asked.abi) == CXX11 else "-cxx11abi"
    return request


def _judged(text: str, environment: Environment, machine: str, table: ReleaseTable) -> JudgedTorch:
    request = read_requests((text,), table, environment)[0]
    return asked_for(request, table, environment, machine).judged


def _numbers(text: str) -> str | None:
    found = re.search(r"\d{1,4}\.\d{1,4}(?:\.\d{1,4})?", text)
    return found[0] if found else None
