"""Answers about builds for AMD GPUs that stop: no ROCm, no file of it, a target, names, a check."""

from __future__ import annotations

import re
import shlex

from fa_forensics.facts.owner import owner_of_library, title_of
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import what_to_build
from fa_forensics.why.texts.clues import package_in
from fa_forensics.why.texts.gpu.rocm_code import target_of
from fa_forensics.why.torch_names.hip_twin import cuda_names_since

KIND = "rocm"
_HIP = "-c 'import torch; print(torch.__version__, torch.version.hip)'"


def library_not_there(seen: Seen, path: str = "") -> Answer:
    """``ninja: error: '/opt/rocm/lib/libamdhip64.so', ... missing and no known rule to make it``.

    CMake wrote the path down when it was configured, or the package's own files have it.
    """
    told = seen.mention.library or ""
    path = told if told.startswith("/") else path
    name = path.rsplit("/", 1)[-1]
    home = re.match(r"(.{0,200}?)/(?:hip/)?lib(?:64)?/", path)
    owner = owner_of_library(name) or "hip"
    cause = (
        f"The build wants to link {path if path == told else name}, a part of {title_of(owner)}, "
        "and there is no such file where it looks: "
        "this ROCm is installed in another directory (/opt/rocm-X.Y.Z without the link /opt/rocm, "
        "or a distribution's own place), or its development package is missing. No source is at "
        "fault, and nothing of NVIDIA's is missing."
    )
    root = shlex.quote(home[1] if home else "/opt/rocm")
    stem = name.split(".so")[0]
    return seen.answer(
        KIND, "FA883", cause, owner=owner, direction="none", confidence="high",
        help=(
            f"ls -ld /opt/rocm*; ls -l {root}/lib/{shlex.quote(stem)}.so*; command -v hipcc",
            f"find / -name {shlex.quote(f'{stem}.so*')} -not -path '*/site-packages/*' 2>/dev/null",
            f"ROCM_PATH=/opt/rocm-X.Y.Z ROCM_HOME=/opt/rocm-X.Y.Z {seen.pip} install "
            f"--no-build-isolation {what_to_build(seen)}",
        ),
        notes=(
            "ROCM_PATH and ROCM_HOME name the directory that the second command shows; the build "
            "directory has to be removed first (build/, CMakeCache.txt), since it has the old "
            "path written down.",
            "ROCm's installer makes the link /opt/rocm itself (update-alternatives): where it is "
            "missing, the package rocm-core or hip-dev (hip-devel) was not installed whole.",
        ),
    )  # fmt: skip


def no_toolkit(seen: Seen) -> Answer:
    """A build for AMD GPUs that finds no ROCm to build with."""
    cause = (
        "A build for AMD GPUs needs ROCm's compiler, headers and device libraries, and does not "
        "find them: torch's wheel brings the libraries that run, not those."
    )
    return seen.answer(
        KIND, "FA883", cause, owner="hip", direction="none", confidence="high",
        help=("ls -d /opt/rocm*; command -v hipcc; hipconfig --version",
              f"{seen.python} {_HIP}",
              f"ROCM_PATH=/opt/rocm ROCM_HOME=/opt/rocm {seen.pip} install --no-build-isolation "
              f"{what_to_build(seen)}"),
        notes=(
            "ROCM_PATH and ROCM_HOME name the directory; its release should be that of torch.",
            *(("Version 0.0.0 is what torch's CMake files read where hipconfig or HIP's own "
               "version file is not there: the development package of HIP is not whole.",)
              if "0.0.0" in seen.mention.line else ()),
        ),
    )  # fmt: skip


def unknown_target(seen: Seen) -> Answer:
    """clang of ROCm does not know a gfx target."""
    target = target_of(seen)
    cause = (
        f"The compiler of this ROCm does not know {target or 'the target that was asked for'}: its "
        "release is older than the GPU, or has dropped it."
    )
    return seen.answer(
        KIND, "FA883", cause, owner="hip", direction="none", confidence="high",
        help=("hipcc --version", "rocminfo | grep -m1 gfx"),
        notes=("The list of targets comes from PYTORCH_ROCM_ARCH, or from the GPUs that the build "
               "sees.",),
    )  # fmt: skip


def torch_headers(seen: Seen) -> Answer:
    """``'c10/hip/HIPStream.h' file not found``: headers that a torch for ROCm alone has whole."""
    cause = (
        f"{seen.mention.detail.get('header') or 'The header'} is one of torch's own headers for "
        "ROCm: the torch that the build reads is none for ROCm, or not the one that was meant. An "
        "isolated build fetches a torch of its own, from the index, and that one has no ROCm."
    )
    return seen.answer(
        KIND, "FA601", cause, owner="torch", direction="none", confidence="medium",
        help=(f"{seen.python} {_HIP}",
              f"{seen.pip} install --no-build-isolation --no-cache-dir {what_to_build(seen)}"),
        notes=("None in the first line is a torch without ROCm: the one for this ROCm comes from "
               "torch's own index (.../whl/rocmX.Y).",),
    )  # fmt: skip


def no_runtime(seen: Seen) -> Answer:
    """``cannot locate libamdhip64.so``, of Triton: it looks for the HIP runtime itself."""
    cause = (
        "Triton for AMD GPUs looks for the HIP runtime (libamdhip64.so) itself, in torch/lib, on "
        "LD_LIBRARY_PATH and in /opt/rocm/lib, and finds none: torch is no wheel for ROCm that "
        "brings it, or this Triton is none of the torch that is installed."
    )
    return seen.answer(
        KIND, "FA202", cause, owner="hip", direction="none", confidence="medium",
        help=(f"{seen.python} {_HIP}", f"{seen.pip} list | grep -iE 'torch|triton|rocm'",
              "find /opt/rocm*/ -name 'libamdhip64.so*'"),
        notes=(
            "TRITON_LIBHIP_PATH names the file; LD_LIBRARY_PATH its directory, before Python "
            "starts.",
            "pytorch-triton-rocm (triton-rocm) is the Triton of torch for ROCm, and triton that "
            "for CUDA.",
        ),
    )  # fmt: skip


def flash_refuses(seen: Seen) -> Answer:
    """flash-attention's checks for AMD GPUs, when it is built and when it runs."""
    target = target_of(seen)
    which = target or "this GPU"
    cause = (
        f"flash-attention refuses {which} by a check of its own: the Composable Kernel backend "
        "of this release is made for AMD Instinct, MI200 (gfx90a) and newer. No rebuild of that "
        "source and no other torch changes that."
    )
    return seen.answer(
        KIND, "FA507", cause, owner="flash-attn", direction="none", confidence="high",
        help=("rocminfo | grep -m1 gfx",
              f"FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE {seen.pip} install --no-build-isolation "
              "flash-attn"),
        notes=(
            "The Triton backend serves RDNA GPUs (RX 7000 and newer) too: "
            "FLASH_ATTENTION_TRITON_AMD_ENABLE=TRUE has to be set when it is installed and when it "
            "runs.",
            "torch's own scaled_dot_product_attention runs without flash-attn.",
        ),
    )  # fmt: skip


def hip_name_gone(seen: Seen, name: str) -> Answer:
    """A name of at::hip or c10::hip that sources for ROCm call: gone where CUDA's names stay."""
    since = cuda_names_since()
    own = name.replace("MasqueradingAsCUDA", "").replace("HIP", "CUDA").replace("hip", "cuda")
    cause = (
        f"The source calls {name}, as torch's ROCm builds before {since} have it. From torch "
        f"{since} on they have the names of CUDA, {own} and the namespaces c10::cuda and at::cuda: "
        "the source is for an older torch."
    )
    package = package_in(seen)
    return seen.answer(
        KIND, "FA883", cause, owner=package or "torch", direction="file-older",
        confidence="medium",
        help=(f"{seen.python} {_HIP}",
              f"grep -rn {name} . | head",),
        notes=(
            f"Two ways out: a release of the project for torch {since} or newer, or torch before "
            f"{since} from the index for ROCm.",
            "Sources that torch's build translates (hipify) need no change: a translated copy "
            "(*_hip.cpp, *.hip) of an earlier build has to be removed.",
        ),
    )  # fmt: skip


ANSWERERS: dict[str, Answerer] = {
    "rocm-flash-refused": flash_refuses,
    "rocm-library-not-there": library_not_there,
    "rocm-no-runtime": no_runtime,
    "rocm-no-toolkit": no_toolkit,
    "rocm-torch-headers": torch_headers,
    "rocm-unknown-target": unknown_target,
}
