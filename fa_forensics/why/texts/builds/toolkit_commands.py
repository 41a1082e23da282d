"""Commands about the CUDA toolkit of a build, in the words of the system that the text is from."""

from __future__ import annotations

import re

from fa_forensics.why.seen import Seen

_DRIVE = re.compile(r"(?<![A-Za-z])[A-Za-z]:[\\/]{1,2}\w")


def on_windows(seen: Seen) -> bool:
    """Whether the text is of Windows: by its paths, or what it says of the system."""
    told = seen.mention.detail.get("os") or seen.versions.get("os", "")
    texts = (*seen.paste.places, seen.mention.line, *seen.mention.detail.values())
    return "windows" in told.lower() or any(_DRIVE.search(text) for text in texts)


def which_toolkit(seen: Seen) -> str:
    """Print which nvcc is taken and which toolkits there are."""
    if on_windows(seen):
        return "nvcc --version & where nvcc & echo %CUDA_HOME% %CUDA_PATH%"
    return "nvcc --version; command -v nvcc; echo CUDA_HOME=$CUDA_HOME; ls -d /usr/local/cuda*"


def with_toolkit(seen: Seen, cuda: str, command: str) -> tuple[str, ...]:
    """Run a command with the toolkit of a CUDA version, where its installer puts it."""
    if on_windows(seen):
        home = f"C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v{cuda}"
        return f'set "CUDA_HOME={home}"', command
    return (f"CUDA_HOME=/usr/local/cuda-{cuda} {command}",)


def with_jobs(seen: Seen, jobs: int, command: str) -> tuple[str, ...]:
    """Run a build with so many compilers at once."""
    if on_windows(seen):
        return f"set MAX_JOBS={jobs}", command
    return (f"MAX_JOBS={jobs} {command}",)
