"""Facts for the rules about floors: what a file needs at least, and what the system has."""

from __future__ import annotations

from typing import Any

from support.contexts import (
    PATH,
    VersionMiss,
    distribution,
    elf,
    environment,
    missing,
    resolution,
)

from fa_forensics.facts.floors import Claim, Floor, Floors
from fa_forensics.facts.manylinux import Satisfied
from fa_forensics.facts.stable_abi import StableAbi
from fa_forensics.resolve.system import SystemHere, SystemLibrary
from fa_forensics.rules import abi, alignment, file, floors, link, own, python
from fa_forensics.rules.base import Rule

LIBC = "/lib/x86_64-linux-gnu/libc.so.6"
#: A file built on Ubuntu 22.04: names of glibc 2.34 and libstdc++ of GCC 11.
NEEDS = (("libc.so.6", "GLIBC_2.17", False), ("libc.so.6", "GLIBC_2.34", False))


def claim(*platform_tags: str, python_tags: tuple[str, ...] = ("cp311",), abi: str = "cp311",
          source: str = "a.whl") -> Claim:  # fmt: skip
    """What a wheel is tagged."""
    return Claim(python_tags, (abi,), platform_tags, source)


def floor_facts(**changes: Any) -> Floors:
    """A file that needs glibc 2.34."""
    facts: dict[str, Any] = {
        "versions": (Floor("GLIBC", "GLIBC_2.34", "libc.so.6"),), "unversioned": (),
        "manylinux": Satisfied("manylinux_2_34_x86_64", (), ("libc10.so",), ()), "python": None,
        "claim": None,
    }  # fmt: skip
    return Floors(**{**facts, **changes})


def system(glibc: str = "2.36", **changes: Any) -> SystemHere:
    """A system with one glibc and pages of 4 KiB."""
    libc = SystemLibrary("libc.so.6", LIBC, ("GLIBC_2.2.5", "GLIBC_2.17", f"GLIBC_{glibc}"))
    facts: dict[str, Any] = {"libraries": (libc,), "page_size": 4096}
    return SystemHere(**{**facts, **changes})


#: A healthy file's two segments; the same moved by a tool; the same for small pages alone.
SEGMENTS = ((0, 0, 0x1000), (0x2E68, 0x3E68, 0x1000))
MOVED = ((0, 0, 0x1000), (0x2E58, 0x3E68, 0x1000))
OWN_ALIGNMENT = ((0, 0, 0x200000), (0x2E68, 0x3E68, 0x200000))

UNMET = VersionMiss(PATH, "libc.so.6", "GLIBC_2.38", LIBC, ("GLIBC_2.4", "GLIBC_2.36"))
MY_KERNEL = missing("_Z9my_kernelv", "my_kernel()", "extension")
OTHER_KERNEL = missing("_Z5otherv", "other()", "extension", 8)
ELSEWHERE = {"_Z9my_kernelv": "/x/my_config.so"}

ABI3 = StableAbi(("_PyLong_Sign",), (3, 2), ("PyList_New",))
NEW_ABI3 = StableAbi((), (3, 12), ("PyType_GetName",))
OLD_ABI3 = StableAbi((), (3, 2), ("PyList_New",))
FOR_39 = claim("linux_x86_64", python_tags=("cp39",), abi="abi3")
FOR_312 = claim("linux_x86_64", python_tags=("cp312",), abi="abi3")
OLD_TAG = claim("manylinux1_x86_64", "manylinux_2_5_x86_64")

FOR_TORCH_23 = distribution("fbgemm-gpu", "0.7.0", "torch==2.3.0")
FREE_THREADED = environment(version_short="3.14", abiflags="t")

#: (rule, facts with which it speaks, its code and severity, facts with which it is silent)
FLOOR_TABLE: list[tuple[Rule, dict[str, Any], str, list[dict[str, Any]]]] = [
    (file.executable_stack, {"elf": elf(executable_stack=None, segments=SEGMENTS)},
     "FA105 warning", [{"elf": elf(executable_stack=None, segments=SEGMENTS, machine="aarch64"),
                        "environment": environment(machine="aarch64")}]),
    (file.executable_stack, {"elf": elf(executable_stack=True), "system": system("2.41")},
     "FA105 error", [{"system": system("2.41")}]),
    (file.executable_stack, {"elf": elf(executable_stack=True), "system": system("2.42"),
                             "environment": environment(variables={
                                 "GLIBC_TUNABLES": "a.b=1:glibc.rtld.execstack=2"})},
     "FA105 warning", [{}]),
    (file.static_tls, {"elf": elf(static_tls=True, tls_size=1600)}, "FA107 warning",
     [{"elf": elf(static_tls=True, tls_size=1000)},
      {"elf": elf(static_tls=True, tls_size=1600),
       "environment": environment(variables={
           "GLIBC_TUNABLES": "glibc.rtld.optional_static_tls=4096"})}]),
    (alignment.segment_alignment, {"elf": elf(segments=MOVED)}, "FA108 error",
     [{"elf": elf(segments=SEGMENTS)}, {"elf": elf(segments=())},
      {"elf": elf(segments=MOVED, expected_size=2000, loaded_size=1900)}]),
    (alignment.segment_alignment, {"elf": elf(segments=OWN_ALIGNMENT)}, "FA108 warning",
     [{"elf": elf(segments=SEGMENTS)}]),
    (alignment.segment_alignment, {"elf": elf(segments=OWN_ALIGNMENT), "system": system("2.34")},
     "FA108 error", [{"elf": elf(segments=SEGMENTS), "system": system("2.34")}]),
    (alignment.segment_alignment,
     {"elf": elf(segments=SEGMENTS, machine="aarch64"), "system": system(page_size=65536),
      "environment": environment(machine="aarch64")}, "FA108 error", [{}]),
    (alignment.segment_alignment,
     {"elf": elf(segments=SEGMENTS, machine="aarch64"), "system": system(),
      "environment": environment(machine="aarch64")}, "FA108 warning",
     [{"elf": elf(segments=((0, 0, 0x10000), (0x2E68, 0x12E68, 0x10000)), machine="aarch64"),
       "environment": environment(machine="aarch64")}]),
    (floors.wheel_tag, {"elf": elf(versions_needed=NEEDS), "floors": floor_facts(claim=OLD_TAG)},
     "FA109 warning",
     [{"floors": floor_facts(claim=OLD_TAG)}, {"elf": elf(versions_needed=NEEDS)},
      {"elf": elf(versions_needed=NEEDS), "floors": floor_facts()},
      {"elf": elf(versions_needed=NEEDS), "floors": floor_facts(claim=claim("linux_x86_64"))},
      {"elf": elf(versions_needed=NEEDS),
       "floors": floor_facts(claim=claim("manylinux_2_34_x86_64"))},
      {"elf": elf(versions_needed=NEEDS),
       "floors": floor_facts(claim=claim("manylinux_2_17_aarch64"))},
      {"elf": elf(versions_needed=NEEDS), "floors": floor_facts(claim=claim("any"))}]),
    (floors.wheel_tag, {"elf": elf(versions_needed=NEEDS), "floors": floor_facts(claim=OLD_TAG),
                        "resolution": None}, "FA109 warning", [{}]),
    (floors.wheel_tag, {"elf": elf(versions_needed=NEEDS), "floors": floor_facts(claim=OLD_TAG),
                        "system": system()}, "FA109 note", [{"system": system()}]),
    (link.versions, {"resolution": None, "system": system(unmet=(UNMET,))}, "FA203 error",
     [{"resolution": resolution(), "system": system(unmet=(UNMET,))},
      {"resolution": None, "system": system()}]),
    (own.own_symbols, {"missing": (MY_KERNEL,), "defined_in": ELSEWHERE}, "FA205 error",
     [{"defined_in": ELSEWHERE}]),
    (own.own_symbols, {"missing": (MY_KERNEL, OTHER_KERNEL), "defined_in": ELSEWHERE},
     "FA205 error", [{}]),
    (python.other_platform, {"name": "m.abi3.so", "environment": FREE_THREADED,
                             "elf": elf(python_tag="abi3")}, "FA404 warning",
     [{"name": "m.abi3.so"}, {"name": "m.so", "environment": FREE_THREADED}]),
    (python.other_platform, {"name": "m.abi3t.so", "environment": FREE_THREADED,
                             "elf": elf(python_tag="abi3t")}, "FA404 warning",
     [{"name": "m.abi3t.so", "environment": environment(version_short="3.15")},
      {"name": "m.abi3t.so", "environment": environment(version_short="3.15", abiflags="t")}]),
    (abi.other_torch_minor, {"distribution": FOR_TORCH_23}, "FA303 warning",
     [{"distribution": FOR_TORCH_23, "uses_torch_names": False}]),
    (python.outside_stable_abi, {"floors": floor_facts(python=ABI3)}, "FA408 warning",
     [{}, {"floors": floor_facts()}, {"floors": floor_facts(python=OLD_ABI3)}]),
    (python.newer_than_claimed, {"floors": floor_facts(python=NEW_ABI3, claim=FOR_39)},
     "FA409 warning",
     [{}, {"floors": floor_facts(python=OLD_ABI3, claim=FOR_39)},
      {"floors": floor_facts(python=NEW_ABI3)},
      {"floors": floor_facts(python=NEW_ABI3, claim=claim("any", python_tags=("cp39",)))},
      {"floors": floor_facts(python=NEW_ABI3, claim=FOR_312)}]),
    (python.newer_than_claimed, {"floors": floor_facts(python=NEW_ABI3), "resolution": None},
     "FA409 error",
     [{"floors": floor_facts(python=OLD_ABI3), "resolution": None},
      {"floors": floor_facts(python=NEW_ABI3), "resolution": None, "environment": None},
      {"floors": floor_facts(python=NEW_ABI3), "resolution": None,
       "environment": environment(version_short="3.12")}]),
]  # fmt: skip
