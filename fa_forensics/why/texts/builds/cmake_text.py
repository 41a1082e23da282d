"""Answers to CMake's trial of the CUDA compiler, which ends before anything is built."""

from __future__ import annotations

from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows, which_toolkit
from fa_forensics.why.texts.clues import package_in


def cuda_compiler_unknown(seen: Seen) -> Answer:
    """``The CUDA compiler identification is unknown``: none found, or one that does not work."""
    detail = seen.mention.detail
    nvcc = detail.get("nvcc", "")
    missing = nvcc == "NOTFOUND"
    if missing:
        cause = "CMake found no nvcc, so that nothing was compiled."
    elif nvcc:
        cause = (
            f"CMake took {nvcc} for the CUDA compiler, and it did not compile a small trial file, "
            "so that nothing was built. Most often that toolkit is too old for the host's gcc, or "
            "is not whole."
        )
    else:
        cause = (
            "CMake found no nvcc, or one that did not compile a small trial file, so that nothing "
            "was built. Two causes fit: no toolkit is where CMake looks (PATH, CUDACXX), or the "
            "one that it took is too old for the host's gcc or is not whole. The second "
            "command tells them apart."
        )
    if detail.get("archs"):
        cause += " That CMake knows no architectures only follows from it."
    home = f"/usr/local/cuda-{seen.torch_cuda}" if seen.torch_cuda else "/usr/local/cuda"
    what = package_in(seen) or "PACKAGE"
    again = f"{seen.pip} install --no-build-isolation {what}"
    helps = [which_toolkit(seen)]
    if on_windows(seen):
        helps += ["where cl", again]
    else:
        helps += [
            "echo '__global__ void k() {}' > /tmp/trial.cu && nvcc -c /tmp/trial.cu -o /dev/null",
            f"CUDACXX={home}/bin/nvcc CUDA_HOME={home} {seen.pip} install "
            f"--no-build-isolation {what}",
        ]
    return seen.answer(
        "wrong-torch", "FA883", cause, owner="nvcc", direction="none", confidence="medium",
        help=tuple(helps),
        notes=(
            "The reason stands in CMakeFiles/CMakeError.log (newer CMake: CMakeConfigureLog.yaml) "
            "of the build directory. An older g++ beside the other is named by CUDAHOSTCXX.",
            "CMakeCache.txt keeps the compiler of the failed try: remove the build directory "
            "before the next.",
        ),
    )  # fmt: skip
