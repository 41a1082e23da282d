"""A compiled part of xformers for the torch that is there, made with another CUDA toolkit."""

from __future__ import annotations

from fa_forensics.facts.python_api import partner_of
from fa_forensics.facts.torch_index import index_option
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.python.pairs import cuda_of, index_note, index_tag


def other_toolkit(
    seen: Seen, toolkit: str, have: str, helps: tuple[str, ...], notes: tuple[str, ...]
) -> Answer:
    """The banner's torch and Python agree with what runs, and its CUDA does not."""
    own = cuda_of(have) or ""
    release = have.partition("+")[0]
    one_major = toolkit.partition(".")[0] == own.partition(".")[0]
    cause = (
        f"The torch and the Python of the banner agree with those that run, and its CUDA does not: "
        f"xformers was compiled with CUDA {toolkit}, and torch {have} is for {own}. "
    )
    cause += (
        "Within one major version that alone need not keep a file from loading: why it did not, "
        "the banner hides."
        if one_major
        else "Such a file needs the runtime library of the other major version, which this torch "
        "does not bring: most likely that is what did not load."
    )
    fitting = partner_of("xformers", release)
    tag = index_tag(seen, "xformers", have)
    commands = list(helps[:1])
    if fitting:
        commands.append(
            f'{seen.pip} install --force-reinstall --no-deps "xformers=={fitting}"'
            f"{index_option(tag)}"
        )
        notes = (*index_note(tag), *notes)
    more = (
        f"A build of one's own for this torch is made with the toolkit {own} (CUDA_HOME, and its "
        "nvcc on PATH), from an empty build directory.",
    )
    if fitting and not on_windows(seen):
        home = f"/usr/local/cuda-{own}"
        commands.append(
            f"CUDA_HOME={home} PATH={home}/bin:$PATH MAX_JOBS=4 {seen.pip} install "
            f"--force-reinstall --no-deps --no-cache-dir --no-build-isolation --no-binary xformers "
            f'"xformers=={fitting}"'
        )
    return seen.answer(
        "wrong-torch", "FA602" if not one_major else "FA886", cause, owner="xformers",
        direction="unknown", confidence="medium", help=(*commands, *helps[1:]),
        notes=(*notes, *more),
    )  # fmt: skip
