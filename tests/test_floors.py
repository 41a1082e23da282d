"""What a file needs at least: the same as readelf and auditwheel read, the same as dlopen needs.

Files are husks of real wheels, tiny ones, and ones compiled here.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import trees
from support import oracles
from support.auditwheel import auditwheels_tag, libraries_outside
from support.inspecting import document_of
from support.material import DYNAMIC_FILES, file_of, require

from fa_forensics.atlas.build import manylinux
from fa_forensics.facts.elf.dynamic import DynamicObject
from fa_forensics.facts.elf.facts import ElfFacts, read_facts
from fa_forensics.facts.floors import Claim, claim_of_tags, read_floors
from fa_forensics.facts.manylinux import satisfied
from fa_forensics.facts.owner import owner_of

PYTHON = Path(sys.executable)


def facts_of(path: Path) -> ElfFacts:
    dynamic = DynamicObject.open(str(path))
    try:
        return read_facts(dynamic)
    finally:
        dynamic.close()


def owners_of(elf: ElfFacts) -> dict[int, tuple[str, str]]:
    names = {s.index: s.name.decode("utf-8", "backslashreplace") for s in elf.undefined}
    versions = {s.index: s.version for s in elf.undefined}
    return {i: (name, owner_of(name, versions[i], name)) for i, name in names.items()}


def compiled(path: Path, source: str, *options: str) -> Path:
    """A shared object compiled here from a text; skips the test without a compiler."""
    path.parent.mkdir(parents=True, exist_ok=True)
    command = [require("gcc"), "-w", "-shared", "-fPIC", "-o", str(path), "-x", "c", "-"]
    command += ["-x", "none", *options]
    subprocess.run(command, input=source, text=True, check=True, timeout=60)
    return path


def inspected(path: Path, **options: Any) -> dict[str, Any]:
    """The one target of an inspection in this Python, which has no torch or need not have one."""
    (target,) = document_of(path, PYTHON, **options)["targets"]
    return dict(target)


def codes(target: dict[str, Any]) -> dict[str, str]:
    return {f["code"]: f["severity"] for f in target["findings"]}


def number(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.partition("_")[2].split(".")))


@pytest.mark.parametrize("identity", DYNAMIC_FILES)
def test_floors_are_the_newest_versions_that_readelf_lists_as_needed(identity: str) -> None:
    path = file_of(identity)
    elf = facts_of(path)
    text = oracles.output_of("readelf", "-VW", path)
    needs = text.partition("Version needs section")[2]
    listed, file = [], ""
    for line in needs.splitlines():
        file = match[1] if (match := re.search(r"File: (\S+)", line)) else file
        row = re.search(r"Name: ((?:GLIBC|GLIBCXX|CXXABI|GCC)_[\d.]+)\s+Flags: (\S+)", line)
        # libstdc++-1a2b3c4d.so.6, which a wheel brings itself, is no need of the system.
        if row and row[2] != "WEAK" and not re.search(r"-[0-9a-f]{8}", file):
            listed.append(row[1])
    expected = {}
    for name in sorted(listed, key=number):
        expected[name.partition("_")[0]] = name
    floors = read_floors(elf, owners_of(elf), None)
    found = {row.family: row.version for row in floors.versions}
    # Without section headers readelf shows no versions; DT_RELR is a version without a number.
    if elf.has_section_headers and "GLIBC_ABI_DT_RELR" not in needs:
        assert found == expected


@pytest.mark.parametrize("identity", DYNAMIC_FILES)
def test_a_file_satisfies_the_policy_that_auditwheel_names(identity: str) -> None:
    pytest.importorskip("auditwheel")
    path = file_of(identity)
    elf = facts_of(path)
    theirs = auditwheels_tag(path, elf.machine)
    needs = [(file, version) for file, version, _ in elf.versions_needed]
    names = [s.name.decode("utf-8", "backslashreplace") for s in elf.undefined]
    ours = satisfied(elf.machine, elf.needed, needs, names)
    assert (ours.tag, set(ours.aliases)) == (theirs.name, set(theirs.aliases))
    assert set(ours.libraries_outside) == libraries_outside(elf, theirs)


def test_the_shipped_policies_are_what_the_builder_makes_of_auditwheels() -> None:
    package = pytest.importorskip("auditwheel.policy")
    shipped = json.loads(Path(manylinux.TABLE).read_text())
    version = importlib.metadata.version("auditwheel")
    if not shipped["source"].endswith(f"auditwheel {version}"):
        pytest.skip(f"the table is of another auditwheel than {version}")
    source = Path(package.__file__).parent / "manylinux-policy.json"
    made = manylinux.compact(json.loads(source.read_text()), version, shipped["date"])
    assert made == shipped
    assert manylinux.written(made) == Path(manylinux.TABLE).read_text()


def test_the_builder_refuses_policies_that_do_not_nest() -> None:
    old = {
        "name": "manylinux_2_5",
        "aliases": [],
        "priority": 2,
        "blacklist": {},
        "symbol_versions": {"x86_64": {"GLIBC": ["2.5"]}},
        "lib_whitelist": ["libc.so.6"],
    }
    new = {**old, "name": "manylinux_2_12", "priority": 1}
    assert len(manylinux.compact([new, old], "1", "2026-01-01")["policies"]) == 2
    for lack in (
        {"lib_whitelist": []},
        {"symbol_versions": {"x86_64": {"GLIBC": ["2.12"]}}},
        {"blacklist": {"libc.so.6": ["f"]}},
    ):
        worse = {**old, "blacklist": {"libc.so.6": []}}
        with pytest.raises(ValueError):
            manylinux.compact([{**new, **lack}, worse], "1", "2026-01-01")


# --- names without a version ----------------------------------------------------------------------

OLD_NAME, NEW_NAME = "_ZNSt8ios_base4initEv", "_ZNSt8ios_base5laterEv"
BOTH = f"void {OLD_NAME}(void) {{}} void {NEW_NAME}(void) {{}}"


def with_own_libstdcxx(place: Path, other_exports: str) -> Path:
    """A file that takes two names of libstdc++ without a version, one of them a new one."""
    script = place / "versions"
    place.mkdir(parents=True, exist_ok=True)
    script.write_text(
        f"GLIBCXX_3.4.21 {{ global: {OLD_NAME}; local: *; }};\n"
        f"GLIBCXX_3.4.29 {{ global: {NEW_NAME}; }} GLIBCXX_3.4.21;\n"
    )
    plain = compiled(place / "plain" / "libstdc++.so.6", BOTH, "-Wl,-soname,libstdc++.so.6")
    other = compiled(place / "libother.so", other_exports, "-Wl,-soname,libother.so")
    needing = f"void {OLD_NAME}(void); void {NEW_NAME}(void);"
    file = compiled(
        place / "ext.so", needing + f"void go(void) {{ {OLD_NAME}(); {NEW_NAME}(); }}",
        "-Wl,--no-as-needed", str(plain), str(other), "-Wl,-rpath,$ORIGIN",
    )  # fmt: skip
    soname, map_file = "-Wl,-soname,libstdc++.so.6", f"-Wl,--version-script={script}"
    compiled(place / "libstdc++.so.6", BOTH, soname, map_file)
    return file


def test_names_without_a_version_are_judged_by_the_libstdcxx_that_exports_them(
    tmp_path: Path,
) -> None:
    file = with_own_libstdcxx(tmp_path, "void nothing(void) {}")
    assert oracles.really_load(file).error is None
    floors = inspected(file)["floors"]
    assert floors["unversioned"] == {"count": 2, "needs": "GLIBCXX_3.4.29", "release": "11.1"}
    assert "RHEL 9" in floors["systems"]


def test_a_name_that_another_library_has_too_needs_no_newer_libstdcxx(tmp_path: Path) -> None:
    file = with_own_libstdcxx(tmp_path, f"void {NEW_NAME}(void) {{}}")
    floors = inspected(file)["floors"]
    assert floors["unversioned"] == {"count": 2, "needs": "GLIBCXX_3.4.21", "release": "5.1"}
    # The proof: without it in libstdc++, the file still loads.
    compiled(tmp_path / "libstdc++.so.6", f"void {OLD_NAME}(void) {{}}",
             "-Wl,-soname,libstdc++.so.6")  # fmt: skip
    assert oracles.really_load(file).error is None


# --- what the wheel claims ------------------------------------------------------------------------


def in_wheel(path: Path, member: str, data: bytes, tags: str) -> Path:
    return trees.make_wheel(path, {member: data}, f"flash_attn-2.5.8-{tags}.whl")


def test_a_wheel_whose_tag_promises_less_than_its_file_needs_is_told(tmp_path: Path) -> None:
    file = compiled(tmp_path / "x.so", "#include <pthread.h>\n"
                    "int f(pthread_t *t) { return pthread_create(t, 0, 0, 0); }"
                    " void PyInit_x(void) {}")  # fmt: skip
    needs = inspected(file)["floors"]
    newest = next(row["needs"] for row in needs["versions"] if row["family"] == "GLIBC")
    if number(newest) <= (2, 12):
        pytest.skip(f"nothing newer than {newest} was linked on this system")
    wheel = in_wheel(tmp_path, "x.so", file.read_bytes(), "cp311-cp311-manylinux2010_x86_64")
    target = inspected(wheel)
    assert codes(target)["FA109"] == "note"
    assert target["floors"]["claimed"]["platform_tags"] == ["manylinux2010_x86_64"]
    honest = f"cp311-cp311-{needs['manylinux']['tag']}"
    assert "FA109" not in codes(inspected(in_wheel(tmp_path, "x.so", file.read_bytes(), honest)))


def test_tags_of_an_installed_package_are_those_of_its_wheel_file() -> None:
    tags = ("cp39-abi3-manylinux_2_17_x86_64", "cp39-abi3-manylinux2014_x86_64")
    claim = claim_of_tags(tags, "WHEEL")
    assert claim == Claim(
        ("cp39",), ("abi3",), ("manylinux_2_17_x86_64", "manylinux2014_x86_64"), "WHEEL"
    )
    assert claim is not None and claim.stable_abi
    assert claim_of_tags((), "WHEEL") is None
    assert claim_of_tags(("nonsense", "one-two"), "WHEEL") is None
    assert not Claim(("cp39",), ("abi3", "cp39"), (), "WHEEL").stable_abi


# --- Python's stable ABI --------------------------------------------------------------------------

NEEDS_PYTHON = (
    "void PyList_New(void); void _PyLong_Sign(void); void PyType_GetName(void);"
    "void __attribute__((weak)) _PyWeakly(void);"
)
USES = "void PyInit_m(void) { PyList_New(); %s if (_PyWeakly) _PyWeakly(); }"


@pytest.mark.parametrize(
    ("body", "outside", "python"),
    [("", [], "3.2"), ("PyType_GetName();", [], "3.11"),
     ("_PyLong_Sign();", ["_PyLong_Sign"], "3.2")],
)  # fmt: skip
def test_names_outside_the_stable_abi_and_the_python_it_needs(
    tmp_path: Path, body: str, outside: list[str], python: str
) -> None:
    file = compiled(tmp_path / "m.abi3.so", NEEDS_PYTHON + USES % body)
    target = inspected(file)
    stable = target["floors"]["stable_abi"]
    assert (stable["outside"], stable["python"]) == (outside, python)
    assert ("FA408" in codes(target)) == bool(outside)


def test_a_wheel_for_an_older_python_than_its_names_is_told(tmp_path: Path) -> None:
    file = compiled(tmp_path / "m.abi3.so", NEEDS_PYTHON + USES % "PyType_GetName();")
    wheel = in_wheel(tmp_path, "m.abi3.so", file.read_bytes(), "cp39-abi3-linux_x86_64")
    assert codes(inspected(wheel))["FA409"] == "warning"
    wheel = in_wheel(tmp_path, "m.abi3.so", file.read_bytes(), "cp311-abi3-linux_x86_64")
    assert "FA409" not in codes(inspected(wheel))


def test_a_file_for_one_python_claims_no_stable_abi(tmp_path: Path) -> None:
    file = compiled(tmp_path / "m.cpython-311-x86_64-linux-gnu.so", NEEDS_PYTHON + USES % "")
    assert inspected(file)["floors"]["stable_abi"] is None


# --- names of the package itself ------------------------------------------------------------------


def test_a_name_that_another_file_of_the_directory_defines_is_found_there(tmp_path: Path) -> None:
    compiled(tmp_path / "config.so", "void my_own_name(void) {} void PyInit_config(void) {}")
    compiled(tmp_path / "common.so", "void my_own_name(void);"
             "void PyInit_common(void) { my_own_name(); }", "-Wl,-z,now")  # fmt: skip
    targets = document_of(tmp_path, PYTHON)["targets"]
    common = next(t for t in targets if t["path"].endswith("common.so"))
    (finding,) = [f for f in common["findings"] if f["code"] == "FA205"]
    assert finding["confidence"] == "high"
    assert "config.so of the same package" in finding["title"]
    assert str(tmp_path / "config.so") in [e["file"] for e in finding["evidence"]]
    load = oracles.really_load(tmp_path / "common.so")
    assert load.error is not None and "undefined symbol: my_own_name" in load.error


def test_the_same_in_a_wheel(tmp_path: Path) -> None:
    one = compiled(tmp_path / "a" / "config.so", "void my_own_name(void) {}")
    two = compiled(tmp_path / "a" / "common.so", "void my_own_name(void);"
                   "void PyInit_common(void) { my_own_name(); }")  # fmt: skip
    members = {"p/config.so": one.read_bytes(), "p/common.so": two.read_bytes()}
    wheel = trees.make_wheel(tmp_path, members, "flash_attn-2.5.8-cp311-cp311-linux_x86_64.whl")
    (target,) = document_of(wheel, PYTHON)["targets"]
    (finding,) = [f for f in target["findings"] if f["code"] == "FA205"]
    assert "config.so of the same package" in finding["title"]
    assert not any("/tmp" in (e["file"] or "") for e in finding["evidence"])
