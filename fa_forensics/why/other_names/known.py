"""What is known of a library without looking at a copy of it: the driver, libstdc++, ROCm, MKL."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.drivers import driver_table, parse_cuda
from fa_forensics.facts.owner import OWN, PYTHON, is_rocm, title_of
from fa_forensics.facts.symbol_text import SymbolText
from fa_forensics.facts.system_names import driver_since, libstdcxx_since
from fa_forensics.facts.system_releases import brings, family_of, gcc_of
from fa_forensics.patterns import lazily
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN, Judgement
from fa_forensics.why.place import Place
from fa_forensics.why.ways.commands import needed_libraries

_SMI = "nvidia-smi --query-gpu=driver_version --format=csv,noheader"
#: hip/hip_runtime_api.h of ROCm 6.0: hipGetDeviceProperties, hipChooseDevice and their structure
#: are defined as the names with this ending.
_SINCE_ROCM_6 = "R0600"
_FINITE = lazily(r"__\w+_finite")

#: Owners with an answer of their own for names with a version.
_OWN_ANSWER = ("libstdc++", "python", "libgcc_s")

Known = tuple[Judgement, tuple[str, ...]]


def judge_known(
    symbol: SymbolText, name: str, owner: str, place: Place, needed_by: Sequence[str]
) -> Known | None:
    """(judgement, commands) on a name that nothing here exports; None where nothing is known."""
    if owner == "cuda-driver":
        return _driver(name, place, needed_by)
    if owner == "nvml":
        return _nvml(name)
    if owner == PYTHON:
        from fa_forensics.why.other_names.python_names import judge_python

        return judge_python(name, place, needed_by)
    if owner == "libstdc++":
        return libstdcxx(symbol, name, needed_by)
    if is_rocm(owner):
        return _rocm(owner, name, needed_by)
    if owner == "mkl":
        from fa_forensics.why.other_names.mkl_names import mkl_name

        return mkl_name(name, place, needed_by)
    if symbol.version is None and owner in ("blas", "libgomp", "libomp"):
        from fa_forensics.why.other_names.blas_names import blas_name, omp_name

        found = (blas_name if owner == "blas" else omp_name)(name, place, needed_by)
        if found is not None:
            return found
    if owner == "libgomp" and name.startswith("GOMP_"):
        from fa_forensics.why.other_names.openmp import openmp_name

        return openmp_name(name, needed_by)
    if symbol.version is not None and family_of(symbol.version) == "GLIBC":
        return _old_glibc(name, symbol.version)
    if symbol.version is not None and owner not in _OWN_ANSWER:
        return _other_version(owner, symbol.version, needed_by)
    if owner == "libc" and _FINITE.fullmatch(name):
        return _finite(name)
    return None


#: The version of names that the parts of one glibc share with one another.
PRIVATE = "GLIBC_PRIVATE"


def two_glibcs(file: str, library: str = "") -> Known:
    """A name of GLIBC_PRIVATE is missing: parts of two glibcs are in one process."""
    other = f" and {library}" if library else ""
    cause = (
        "GLIBC_PRIVATE is no release: by it the parts of one glibc (libc, libm, libdl, librt, "
        "libpthread, ld.so) know one another, and they fit those of the very same build alone. "
        f"{file}{other} come from two: one of them is a copy of another system's, in the "
        "program's directory or on LD_LIBRARY_PATH. No newer glibc is needed."
    )
    notes = (
        "The copy is to be taken away from there (LD_LIBRARY_PATH, the package's lib directory), "
        "so that all of them are the system's own.",
    )
    commands = (
        "echo $LD_LIBRARY_PATH",
        "LD_DEBUG=libs true 2>&1 | grep -E 'lib(c|m|dl|rt|pthread)[.]so'",
    )
    return Judgement("versioned-symbol", "FA204", UNKNOWN, cause, notes), commands


def _old_glibc(name: str, version: str) -> Known:
    if version == PRIVATE:
        return two_glibcs("The file that needs the name", "libc.so.6")
    first = brings(version)
    cause = f"{name} came with {version}"
    cause += f", {first}: the C library of this system is older." if first else "."
    notes = (
        "glibc belongs to the system and is not to be changed: a build of the file for this "
        "system, or a system (a container) with that glibc, are the two ways.",
    )
    return Judgement("glibc", "FA203", NEWER, cause, notes), ("ldd --version | head -1",)


def _other_version(owner: str, version: str, needed_by: Sequence[str]) -> Known:
    """A name with the version of some library: which copy is loaded decides."""
    whose = title_of(owner) if owner != OWN else "the library that has versions of that sort"
    cause = (
        f"The file asks for this name in the version {version} of {whose}: the copy that is loaded "
        "does not define it. Where conda and the system, or two packages, each have one, the one "
        "that was loaded first serves everybody."
    )
    commands = (needed_libraries(needed_by), "echo $LD_LIBRARY_PATH")
    notes: tuple[str, ...] = ()
    if needed_by and needed_by[0].startswith(("/lib", "/usr/lib")):
        notes = (
            "The file that asks is the system's own, so that the copy that is loaded is most "
            "likely one of Python's environment (conda, a wheel), under the same name. The "
            "system's copy, opened before all other imports "
            'by ctypes.CDLL("/path/to/it", ctypes.RTLD_GLOBAL), serves both where it is the newer '
            "one (ldconfig -p names its path); or all of them come from one source: that file's "
            "package from the environment's own channel too, or the copy of the environment "
            "removed.",
        )
    return Judgement("versioned-symbol", "FA204", UNKNOWN, cause, notes, "medium"), commands


def _driver(name: str, place: Place, needed_by: Sequence[str]) -> Known | None:
    """A function of libcuda.so.1: the driver is older, or the file is not linked with it."""
    since = driver_since(name)
    if since is None:
        return None
    first = driver_table().driver_for(parse_cuda(since))
    cause = f"{name} is a function of the NVIDIA driver (libcuda.so.1) since CUDA {since}"
    cause += f" (driver {first})" if first else ""
    if place.told is None and needed_by and _names(needed_by[0], "libcuda.so.1") is False:
        cause += (
            f". {needed_by[0].rsplit('/', 1)[-1]} does not list that library among those it needs: "
            "it was linked without -lcuda (libraries=['cuda'] in setup.py). No driver changes that."
        )
        return Judgement("gpu-driver", "FA210", NONE, cause), (needed_libraries(needed_by),)
    told = place.told.driver_cuda if place.told else None
    commands = (_SMI, needed_libraries(needed_by))
    if parse_cuda(since) < min(driver_table().releases):
        return _in_every_driver(name, needed_by)
    below = place.told.driver_below if place.told else None
    if below is not None and below <= parse_cuda(since) and told is None:
        told = (0, 0)
        cause += (
            f"; the driver there is older than that of CUDA {below[0]}.{below[1]}, as the text "
            "says: it is too old."
        )
    elif told is not None and told < parse_cuda(since):
        cause += f"; the driver there supports CUDA {told[0]}.{told[1]} only: it is too old."
    if told is not None and told < parse_cuda(since):
        newer = f"The driver {first} or newer is the way out" if first else "A newer driver is it"
        ways = (
            f"{newer}, or a build or a release of the package that does without this function; a "
            "container takes the driver of its host. No toolkit, torch or wheel brings "
            "libcuda.so.1.",
        )
        return Judgement("gpu-driver", "FA209", NEWER, cause, ways), commands[:1]
    unlinked = (
        "the file does not list libcuda.so.1 among the libraries it needs, because it was linked "
        "without -lcuda (libraries=['cuda'] in setup.py)"
    )
    if told is not None:
        cause += f"; the driver there supports CUDA {told[0]}.{told[1]} and has it: {unlinked}."
        return Judgement("gpu-driver", "FA209", NONE, cause, (), "high"), commands[1:]
    cause += (
        f". Two causes fit: the driver is older than that, or {unlinked}. The first command says "
        "which driver there is, the second whether the file names the library."
    )
    notes = (
        f"Where the driver is older: {first or 'a newer one'} or newer is the way out, or a "
        "release of the package that does without this function. Where the file does not name the "
        "library: a build with -lcuda, from the package's source.",
        "Names that begin with cu and a capital are the driver's, those with cuda the CUDA "
        "runtime's: no toolkit or wheel brings libcuda.so.1.",
    )
    return Judgement("gpu-driver", "FA209", UNKNOWN, cause, notes, "medium"), commands


def _in_every_driver(name: str, needed_by: Sequence[str]) -> Known:
    """A function that is older than all drivers on record: no driver can be too old for it."""
    cause = (
        f"{name} is a function of the NVIDIA driver (libcuda.so.1), and every driver has it: none "
        "is too old for it. The file does not list libcuda.so.1 among the libraries it needs, "
        "because it was linked without -lcuda (libraries=['cuda'] in setup.py), or the library of "
        "that name that is loaded is not the driver's (a stub, an emulation)."
    )
    notes: tuple[str, ...] = (
        "Triton builds such a file itself (cuda_utils.so, below ~/.triton/cache) with the "
        "libcuda.so that it finds: where the text shows triton, that directory is to be removed "
        "after ldconfig -p lists libcuda.so.1 again.",
    )
    commands = (needed_libraries(needed_by), "ldconfig -p | grep libcuda.so")
    if any("/.triton/" in one or "/triton/" in one for one in needed_by):
        cause, notes = _of_triton(name)
        commands = ("ldconfig -p | grep libcuda.so; echo $LD_LIBRARY_PATH", "rm -r ~/.triton/cache")
    return Judgement("gpu-driver", "FA209", NONE, cause, notes, "medium"), commands


def _of_triton(name: str) -> tuple[str, tuple[str, ...]]:
    """(cause, notes): the helper that Triton compiles itself, always with -lcuda."""
    return (
        f"{name} is a function of the NVIDIA driver (libcuda.so.1), and every driver has it: none "
        "is too old for it. Triton compiled this file itself and links it with the libcuda.so that "
        "it found then: that, or the one that is loaded now, is not the driver's (a stub of the "
        "toolkit or of a container's image, another library of that name).",
        (
            "The cache is removed once the first command lists the driver's own libcuda.so.1 and "
            "no directory with stubs in its name: the file is compiled again at the next run. "
            "TRITON_LIBCUDA_PATH names the driver's directory, where Triton finds another one.",
            "A container or a distrobox takes libcuda.so.1 from the host: docker run --gpus all, "
            "distrobox create --nvidia.",
        ),
    )


def _nvml(name: str) -> Known:
    """A function of libnvidia-ml.so.1, which comes with the driver alone."""
    cause = (
        f"{name} is a function of the driver's management library (libnvidia-ml.so.1), which no "
        "toolkit and no wheel brings: the driver is older than what was built, or the "
        "libnvidia-ml.so that is loaded is a toolkit's stub or another driver's."
    )
    notes = (
        "A newer driver is the way out where it is too old (on the host, for a container), or a "
        "release that does not ask for the function: where the message is of c10/cuda/"
        "driver_api.cpp, it is torch itself that asks, as it starts on several GPUs, and the "
        "torch that worked before is that release.",
    )
    commands = (_SMI, "ldconfig -p | grep libnvidia-ml")
    return Judgement("gpu-driver", "FA209", UNKNOWN, cause, notes, "medium"), commands


def _names(path: str, soname: str) -> bool | None:
    """Whether a file lists a library among those it needs; None where it cannot be read."""
    from fa_forensics.facts.dependents import needed_libraries as listed

    needed = listed(path)
    return None if needed is None else soname in needed


def libstdcxx(symbol: SymbolText, name: str, needed_by: Sequence[str] = ()) -> Known:
    """A name of the C++ library: the copy that is loaded is older than the compiler was."""
    version = symbol.version or libstdcxx_since(name)
    cause = "It is the C++ library's (libstdc++.so.6), not torch's"
    gcc = gcc_of(version) if version else None
    if version and gcc:
        cause += f", and came with {version}, {brings(version)}"
    if gcc and int(gcc.split(".")[0]) < _EVERY_HAS:
        return _no_whole_copy(cause, needed_by)
    cause += (
        ": the libstdc++.so.6 that is loaded is older than the compiler that built the file. In a "
        "conda environment its own copy goes before the system's."
    )
    notes = [_OLDER_COMPILER]
    if mentions_cxx11(name, symbol.demangled):
        notes.append(
            "The __cxx11 in it is the C++ library's own; torch's std::string flavour plays no part."
        )
    if "filesystem" in symbol.demangled:
        notes.append(
            "GCC 8 had std::filesystem in a library of its own (-lstdc++fs), which the build may "
            "have left out."
        )
    commands = libstdcxx_commands(version)
    return Judgement("libstdcxx", "FA203", NEWER, cause, tuple(notes)), commands


#: What GCC before 5 (2015) brought, every libstdc++ has that a Python of today runs with.
_EVERY_HAS = 5


def _no_whole_copy(cause: str, needed_by: Sequence[str]) -> Known:
    """A name that every libstdc++ of the last ten years has."""
    cause += (
        ", so that every libstdc++ of the last ten years has it. No release is too old: the "
        "libstdc++.so.6 that is loaded is not GCC's whole one, but a copy that another program, a "
        "vendor or an image brought, which LD_LIBRARY_PATH, LD_PRELOAD or an RPATH puts first."
    )
    file = shlex.quote(needed_by[0]) if needed_by else "/path/to/the/failing.so"
    looks = (
        "env -u LD_LIBRARY_PATH -u LD_PRELOAD python -c 'import torch'",
        f"ldd {file} | grep stdc++; echo $LD_LIBRARY_PATH $LD_PRELOAD",
    )
    notes = (
        "Where the first command works, these variables are the cause: they are unset for this "
        "program. Else the copy that the second one shows is replaced by the system's, or by "
        "conda's libstdcxx-ng.",
    )
    return Judgement("libstdcxx", "FA203", UNKNOWN, cause, notes, "medium"), looks


#: ldd would name the copy that the system has first; what counts is the one in Python's process.
_LOADED_COPY = (
    'python -c \'import torch; print(*{line.split()[-1] for line in open("/proc/self/maps") '
    'if "libstdc++" in line})\''
)
_OLDER_COMPILER = (
    "The first command prints the copy that Python loads. Compiled with an older g++ (CC and CXX "
    "name it; in conda gxx_linux-64 is its own), the file asks for no newer one."
)


def libstdcxx_commands(version: str | None) -> tuple[str, ...]:
    """Which copy is taken, and a newer one where conda brings it."""
    gcc = gcc_of(version) if version else None
    wanted = f'"libstdcxx-ng>={gcc}"' if gcc else "libstdcxx-ng"
    return (_LOADED_COPY, f"conda install -c conda-forge {wanted}")


def _rocm(owner: str, name: str, needed_by: Sequence[str]) -> Known:
    from fa_forensics.why.other_names.rocm_of_torch import needed_by_rocm, needed_by_torch

    title = title_of(owner)
    if (found := needed_by_torch(owner, name, needed_by)) is not None:
        return found
    if owner == "composable-kernel":
        cause = (
            "It is a kernel of Composable Kernel (ck::), which MIOpen is built with: the two come "
            "from builds for other GPUs. Names with xdl need matrix cores (gfx90a, gfx94x), which "
            "gfx10 and gfx11 do not have, so a Composable Kernel for those alone lacks them. torch "
            "is not to blame, and no NVIDIA library is concerned."
        )
        look = "ls -l /opt/rocm*/lib/libMIOpen.so* ; cat /opt/rocm*/.info/version"
        return Judgement("rocm", "FA204", UNKNOWN, cause, (), "medium"), (look,)
    if (found := needed_by_rocm(owner, name, needed_by)) is not None:
        return found
    commands = (
        "python -c 'import torch; print(torch.__version__, torch.version.hip)'",
        needed_libraries(needed_by),
    )
    if name.endswith(_SINCE_ROCM_6):
        cause = (
            f"It belongs to {title}, and the ending R0600 is that of the headers of ROCm 6.0 and "
            "newer: the file was built with such a ROCm, and the HIP runtime that is loaded is "
            "older (a torch for ROCm 5.x brings its own), or none is, because the file was linked "
            "without it."
        )
        notes: tuple[str, ...] = (
            "The first command says which ROCm torch was built with. Below 6.0: a torch for the "
            "ROCm that the file was built with, or the file built again with torch's ROCm, is the "
            "way out; else it is the link.",
        )
        return Judgement("rocm", "FA204", NEWER, cause, notes, "medium"), commands
    cause = (
        f"It belongs to {title}: the file was built for AMD GPUs. Either it was linked without "
        "that library (hipified build scripts often leave it out), or the ROCm that is loaded is "
        "another release than the one it was built with."
    )
    notes = (
        "The file has to be built again on the torch and the ROCm that are there, with that "
        "library among those that it is linked with (libraries=[...] in setup.py); where it came "
        "as a wheel, one for this ROCm is the way out.",
    )
    if any("_cpu" in path for path in needed_by):
        notes += (
            "A torch_extensions directory that ends in _cpu can be a ROCm build: torch has no CUDA "
            "version then, and the directory is named after that.",
        )
    return Judgement("rocm", "FA204", UNKNOWN, cause, notes, "medium"), commands


def _finite(name: str) -> Known:
    cause = (
        f"{name} is a name that glibc's libm offered for programs built with -ffast-math, up to "
        "glibc 2.30; newer ones keep it for old programs alone. The file has it unversioned, so it "
        "was built against an older glibc and linked without libm."
    )
    return Judgement("glibc", "FA203", OLDER, cause, (), "medium"), ()
