"""The official flash-attn wheel that a remedy names: the one that fits, or none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from support.contexts import SET_DEVICE, context, distribution, environment

from fa_forensics.facts.gpus import parse_gpu
from fa_forensics.rules.official_wheel import Home, official_wheel, wheel_command
from fa_forensics.rules.remedy import remedies, remedy_notes

HERE = Home("2.6.0+cu124", "pre-cxx11", "12.4", "3.10", "x86_64", "2.35")


def name_of(
    name: str = "flash-attn", version: str = "2.7.4.post1", home: Home = HERE
) -> str | None:
    build = official_wheel(name, version, home)
    return None if build is None else build.file_name


def test_the_release_that_is_installed_comes_first() -> None:
    wanted = "flash_attn-2.7.4.post1+cu12torch2.6cxx11abiFALSE-cp310-cp310-linux_x86_64.whl"
    assert name_of() == wanted
    assert name_of("flash_attn") == wanted


def test_a_release_without_such_a_wheel_gives_way_to_the_newest() -> None:
    found = official_wheel("flash-attn", "2.5.6", HERE)  # 2.5.6 is older than torch 2.6
    assert found is not None
    assert found.torch == "2.6" and found.release != "2.5.6"


@pytest.mark.parametrize(
    "home",
    [
        HERE._replace(torch="2.6.0a0+ecf3bae40a.nv25.01"),  # NVIDIA's own build
        HERE._replace(torch="2.6.0.dev20241112+cu121"),  # a nightly
        HERE._replace(torch="2.99.0+cu124"),
        HERE._replace(python=None),
        HERE._replace(python="3.99"),
        HERE._replace(cuda=None),
        HERE._replace(cuda="10.2"),
        HERE._replace(flavour="unknown"),
        HERE._replace(machine="riscv64"),
        HERE._replace(machine=None),
    ],
)
def test_what_no_wheel_is_made_for_or_is_not_known_gets_none(home: Home) -> None:
    assert name_of(home=home) is None


def test_a_package_without_a_table_gets_none() -> None:
    assert name_of("xformers") is None


def test_the_flavour_of_torch_decides() -> None:
    found = name_of(home=HERE._replace(flavour="cxx11"))
    assert found is not None and "cxx11abiTRUE" in found


def test_an_older_glibc_gets_an_older_release_or_none() -> None:
    """The wheels of 2.8.0 and later were made on a newer system than those before."""
    here = HERE._replace(torch="2.5.1+cu124")
    old = official_wheel("flash-attn", "2.8.3", here._replace(glibc="2.28"))
    new = official_wheel("flash-attn", "2.8.3", here)
    assert new is not None and new.release == "2.8.3" and new.glibc is not None
    assert old is None or old.glibc is None or old.glibc <= "2.28"


def test_a_wheel_that_is_called_by_the_wrong_flavour_is_not_named() -> None:
    """Issues 1717 and 1783: 2.8's files for torch 2.6 called cxx11abiFALSE are cxx11."""
    found = official_wheel("flash-attn", "2.8.3", HERE)
    assert found is not None and found.release == "2.7.4.post1"


def test_a_gpu_that_a_release_has_no_code_for_rules_it_out() -> None:
    turing = parse_gpu("sm_75")
    assert name_of(home=HERE._replace(gpus=tuple(turing))) is None


def test_the_very_file_that_does_not_load_is_not_offered_again() -> None:
    assert name_of(version="2.7.4.post1+cu12torch2.6cxx11abiFALSE") is None
    assert name_of(version="2.7.4.post1+cu12torch2.6cxx11abiTRUE") is not None


def test_the_command_changes_nothing_else() -> None:
    build = official_wheel("flash-attn", "2.7.4.post1", HERE)
    assert build is not None
    command = wheel_command("/opt/my env/bin/python", build)
    assert command.startswith("'/opt/my env/bin/python' -m pip install ")
    assert "--no-deps" in command and "--force-reinstall" in command
    assert command.endswith(f'"{build.url}"')


def test_inspect_names_the_wheel_before_another_torch() -> None:
    ctx = context(distribution=distribution("flash-attn", "2.5.6"), missing=(SET_DEVICE,))
    first = remedies(ctx)[0]
    assert first.startswith("/env/bin/python -m pip install")
    assert first.endswith('+cu12torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"')
    assert "flash-attn's own wheel for torch 2.4.0" in " ".join(remedy_notes(ctx))


def test_another_package_is_compiled_as_before() -> None:
    ctx = context(distribution=distribution("mamba-ssm", "2.2.2"), missing=(SET_DEVICE,))
    assert "--no-binary mamba-ssm mamba-ssm==2.2.2" in remedies(ctx)[0]


def test_a_torch_of_ones_own_is_not_replaced_by_a_package_that_brings_another() -> None:
    """torchvision's wheels each ask for one torch of the package index; Jetson's is none."""
    here = environment()
    assert here.torch is not None
    jetson = replace(here.torch, version="2.1.0a0+41361538.nv23.06", release="2.1.0")
    ctx = context(
        environment=replace(here, torch=jetson),
        distribution=distribution("torchvision", "0.19.1"),
        missing=(SET_DEVICE,),
    )
    commands = "\n".join(remedies(ctx))
    assert "--upgrade" not in commands
    assert "git+https://github.com/pytorch/vision@v0.16.0" in commands and "--no-deps" in commands
    assert "a build of its own" in " ".join(remedy_notes(ctx))
    built = remedies(replace(ctx, distribution=distribution("xformers", "0.0.28")))
    assert "--no-build-isolation" in built[0] and "--no-deps" in built[0]
    assert not any("--upgrade" in text for text in built)
