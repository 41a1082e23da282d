"""Texts about the system's own libraries: which glibc or libstdc++ a file asks for, and where."""

from __future__ import annotations

from support.asking import answers, first, said

from fa_forensics.facts.system_releases import system_named
from fa_forensics.why.seen import package_of

NOT_FOUND = "version `{version}' not found (required by {file})"
SITES = "/opt/conda/envs/detectron2/lib/python3.8/site-packages"


def line(version: str, file: str, library: str = "/lib64/libc.so.6") -> str:
    return f"ImportError: {library}: " + NOT_FOUND.format(version=version, file=file)


def test_an_environments_name_is_no_package() -> None:
    text = line("GLIBC_2.14", f"{SITES}/torch/_C.cpython-38-x86_64-linux-gnu.so")
    answer = first(text)
    assert "a file of torch itself" in answer.cause and "CentOS 6" in answer.cause
    assert not any("detectron2" in command.partition("/")[0] for command in answer.help)
    assert package_of("/opt/conda/envs/vllm/lib/libfoo.so.1") is None
    assert package_of("/home/me/vllm/lib/python3.10/site-packages/other/_x.so") is None
    assert package_of("/home/me/vllm/vllm/_C.abi3.so") == "vllm"


def test_the_newest_version_that_one_file_asks_for_decides() -> None:
    file = "./libtorch_cpu.so"
    lines = (
        line("GLIBC_2.28", file),
        line("GLIBC_2.29", file, "/lib/x86_64-linux-gnu/libm.so.6"),
    )
    found = answers("\n".join((*lines, "libtorch 2.3.1, ubuntu 18")))
    assert len(found) == 1 and "GLIBC_2.29" in found[0].cause
    assert "2.27 (Ubuntu 18.04)" in found[0].cause
    assert "wheel that is tagged" not in said(found[0])


def test_a_year_alone_names_an_ubuntu() -> None:
    assert system_named("Ubuntu 18") == ("Ubuntu 18.04", "2.27") == system_named("ubuntu18.04")
    assert system_named("Ubuntu 18.10") is None
    assert system_named("CentOS7") == ("RHEL 7", "2.17")


def test_a_warning_that_switches_a_package_off_is_told_as_one() -> None:
    file = "/usr/lib/python3.10/site-packages/torch_sparse/_metis_cuda.so"
    answer = first(
        "UserWarning: An issue occurred while importing 'torch-sparse'. Disabling its usage. "
        f"Stacktrace: {line('GLIBC_2.29', file)[13:]}\nCentOS, glibc 2.17"
    )
    assert "warning" in said(answer) and "pytorch_sparse" in said(answer)
    assert "C++17" in said(answer)
