"""Answers to the words of xformers, which catches the error of its compiled part."""

from __future__ import annotations

import re
from dataclasses import replace

from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.python_api import is_older, pair_for, partner_of
from fa_forensics.facts.torch_cuda import published_cuda
from fa_forensics.facts.torch_index import index_option
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import on_windows, with_variable
from fa_forensics.why.texts.clues import inspect_package
from fa_forensics.why.texts.python.pairs import (
    LAST_OF_ONE,
    OF_MANY,
    XFORMERS_SINCE,
    cuda_of,
    index_note,
    index_tag,
)
from fa_forensics.why.texts.python.xformers_cuda import other_toolkit
from fa_forensics.why.texts.python.xformers_kernels import (
    NONE,
    for_another_torch,
    torch_with_kernels,
    with_next_torch,
    without_kernels,
)
from fa_forensics.why.texts.python.xformers_python import other_python
from fa_forensics.why.texts.python.xformers_rocm import of_another_maker, without_kernel

BANNER = "FA886"

_TORCH = lazily(
    r"(?P<built>\d+\.\d+[\w.+]*)\s+with\s+CUDA\s+(?:\d+|None)\s+"
    r"\(you have (?P<have>[\w.+]+)\)"
)
_ONE_OF_TWO = (
    "One of the two installations is enough: the first keeps the torch that is here, the second "
    "changes torch, for all other packages too."
)
_PYTHON = lazily(r"Python\s+(?P<built>[\d.]+)\s+\(you have (?P<have>[\d.]+)\)")


def xformers(seen: Seen) -> Answer:
    """``xFormers can't load C++/CUDA extensions. xFormers was built for: ...``."""
    detail, text = seen.mention.detail, " ".join((seen.mention.line, *seen.mention.detail.values()))
    torch, python = _TORCH.search(text), _PYTHON.search(text)
    built = detail.get("built_torch") or (torch["built"] if torch else None)
    have = detail.get("here_torch") or (torch["have"] if torch else None) or seen.torch
    pythons = [detail.get("built_python"), detail.get("here_python")]
    if python is not None:
        pythons = [python["built"], python["have"]]
    notes = [] if _is_told(seen) else [_HIDDEN]
    if pythons[0] and pythons[1] and _minor(pythons[0]) == _minor(pythons[1]):
        notes.append("Python's patch release plays no part: only the minor version counts.")
    helps = [*(() if _is_told(seen) else _more_details(seen)), *_inspected(seen)]
    direction, code, confidence = "unknown", BANNER, "high"
    if detail.get("os") == "macOS" and built and have and _release(built) == _release(have):
        return _on_a_mac(seen, built)
    makers = of_another_maker(seen, built, have)
    if makers is not None:
        return makers
    listed = detail.get("listed_torch", "")
    if built and have and listed and _release(listed) not in (_release(have), _release(built)):
        return _two_environments(seen, built, have, listed, tuple(notes))
    if built and have and "+cpu" in have and "+cpu" not in built:
        cause = _of_cpu_torch(built, have)
        code = "FA601"
        get = f"{seen.pip} install --force-reinstall --no-cache-dir"
        helps.insert(0, f'{get} "torch=={built}"{index_option(_tag(built))}')
        notes += [*index_note(_tag(built)),
                  "torchvision and torchaudio have to come from there too."]  # fmt: skip
    elif built and have and _release(built) != _release(have):
        direction = _direction(built, have)
        cause = for_another_torch(built, have, direction, detail.get("built_cuda", ""))
        commands, more = _one_of_the_two(seen, built, have, pythons[1] or seen.python_version)
        helps[:0] = commands
        notes[:0] = more
        notes += _python_note(pythons)
    elif built and have and detail.get("built_cuda") == NONE:
        return without_kernels(seen, built, have, tuple(helps))
    elif built and have and _tag(built) != _tag(have) and (_tag(built) and _tag(have)):
        notes += _python_note(pythons)
        return _other_cuda(seen, built, have, tuple(helps), tuple(notes))
    elif built and have and pythons[0] and pythons[1] and _minor(pythons[0]) != _minor(pythons[1]):
        return other_python(seen, pythons[0], pythons[1], tuple(helps))
    elif built and have and built != have:
        return _other_cuda(seen, built, have, tuple(helps), tuple(notes))
    elif built and have and (toolkit := _other_toolkit(detail.get("built_cuda", ""), have)):
        return other_toolkit(seen, toolkit, have, tuple(helps), tuple(notes))
    else:
        cause = (
            "xformers could not load its compiled part, and the banner does not say why: the "
            "versions in it agree, or are not all there. That it was only a warning does not make "
            "it harmless: the fast kernels are missing."
        )
        confidence = "low"
    return seen.answer(
        "wrong-torch", code, cause, owner="xformers", direction=direction, confidence=confidence,
        help=tuple(helps), notes=tuple(notes),
    )  # fmt: skip


_HIDDEN = "What really failed is hidden: the loader's message comes with XFORMERS_MORE_DETAILS=1."


def _is_told(seen: Seen) -> bool:
    """Whether the text has the loader's message, too: what a file named nowhere else lacks."""
    what = ("undefined-symbol", "bare-symbol")
    near = [m for m in seen.paste.mentions[:20] if m.what in what and m.symbol]
    return any(not m.file or "xformers" in m.file for m in near)


def _more_details(seen: Seen) -> tuple[str, ...]:
    return with_variable(seen, "XFORMERS_MORE_DETAILS=1", f"{seen.python} -m xformers.info")


def _inspected(seen: Seen) -> tuple[str, ...]:
    """fa-forensics reads libraries of Linux."""
    return () if on_windows(seen) else (inspect_package(seen, "xformers"),)


def _of_cpu_torch(built: str, have: str) -> str:
    return (
        f"xformers was built for torch {built}, and torch {have} is a build without CUDA. Its "
        "release is not what is wrong, nor is the CUDA toolkit of the system."
        if _release(built) == _release(have)
        else f"xformers was built for torch {built}, and torch {have} is a build without CUDA, "
        "and of another release."
    )


def _on_a_mac(seen: Seen, built: str) -> Answer:
    """macOS has no CUDA: what xformers compiles for CUDA can never load there."""
    return seen.answer(
        "damaged-file", "FA880",
        f"This is macOS, which has no CUDA, and the compiled part of xformers is for CUDA (built "
        f"with torch {built}): it can never load here. The versions agree, and neither another "
        "torch nor another xformers changes it.",
        owner="xformers", direction="none", confidence="medium",
        help=(f"{seen.pip} uninstall xformers",
              f"{seen.python} -c 'import torch; print(torch.__version__, "
              "torch.backends.mps.is_available())'"),
        notes=("It is a warning: the program goes on without xformers where it can do with "
               "torch's own scaled_dot_product_attention, on the CPU or on Apple's GPU (mps).",),
    )  # fmt: skip


def _one_of_the_two(
    seen: Seen, built: str, have: str, python: str | None
) -> tuple[list[str], list[str]]:
    """(commands, notes): xformers for the torch that is here, or the torch it was built for."""
    release, tag = _release(have), index_tag(seen, "xformers", have)
    fitting = partner_of("xformers", release)
    get = f"{seen.pip} install --force-reinstall --no-deps"
    commands, notes = [], []
    if fitting and "+rocm" not in have:
        pair = pair_for("xformers", release, python)
        if pair is not None and pair[1] != release:
            return with_next_torch(seen, pair, python or "", release)
        commands.append(f'{get} "xformers=={fitting}"{index_option(tag)}')
    elif _direction(have, LAST_OF_ONE) != "file-older":
        tag = _tag(have) if cuda_of(have) else ""
        commands.append(f'{get} "xformers>={OF_MANY}"{index_option(tag)}')
        notes.append(
            f"xformers is no longer for one release of torch since {OF_MANY}, which takes torch "
            "2.10 and newer."
        )
        fitting = OF_MANY
    pinned = built if _tag(built).startswith("cu") else _release(built)
    cudas = published_cuda().get(".".join(pinned.split(".")[:2]), ())
    if pinned == _release(built) and on_windows(seen) and cuda_of(have) and cudas:
        pinned += f"+{cuda_label(cudas[-1])}"  # the package index has none with CUDA there
    ends = _tag(pinned)
    second = [f'{seen.pip} install "torch=={pinned}"{index_option(ends)}']
    if seen.mention.detail.get("built_cuda") == NONE:
        second = torch_with_kernels(seen, pinned, built, index_option(ends))
    commands += second
    ends = ends if "--index-url" in "".join(second) else ""
    if fitting and second:
        notes.insert(0, _ONE_OF_TWO)
        notes.append(
            "In the second, torchvision and torchaudio have to be changed with torch, from the "
            "same index."
        )
    else:
        notes.append("An xformers release for the torch that is here is the other way out.")
    tags = [one for one in dict.fromkeys((tag, ends)) if one]
    if len(tags) == 2:
        return commands, [*notes, _two_indexes(*tags)]
    return commands, [*notes, *index_note("".join(tags))]


def _two_indexes(first: str, second: str) -> str:
    return (
        f"The addresses ending in /{first} and /{second} are torch's own indexes for those builds: "
        "the package index has one CUDA version of each release."
    )


def _python_note(pythons: list[str | None]) -> list[str]:
    """Another Python than the one that built it: xformers' _C has no tag, and names none of Python.

    xformers' setup.py builds it with no_python_abi_suffix=True. Where its loader finds no file it
    says "Need to compile C++ extensions" (_cpp_lib.py); this banner is of a file that was found.
    """
    one, other = pythons
    if not one or not other or _minor(one) == _minor(other):
        return []
    return [
        f"Python {one} against {other} plays no part: the first is of the machine that built "
        "xformers, whose compiled part has no Python in its name, and the banner comes only where "
        "that file was found."
    ]


def _two_environments(
    seen: Seen, built: str, have: str, listed: str, notes: tuple[str, ...]
) -> Answer:
    """The banner is of another Python than the one whose pip the text lists."""
    cause = (
        f"Two environments are at work: torch {have} ran, with an xformers that was built for "
        f"torch {built}, and the pip that the text shows lists torch {listed}, which is another "
        "Python's. What is right there does not reach the program."
    )
    look = (
        "PROGRAMS_PYTHON -c 'import sys, torch, xformers; print(sys.executable, "
        "torch.__version__, xformers.__version__, xformers.__file__)'"
    )
    fitting = partner_of("xformers", _release(have))
    helps = [look]
    tag = index_tag(seen, "xformers", have)
    if fitting:
        helps.append(
            f'PROGRAMS_PYTHON -m pip install --force-reinstall --no-deps "xformers=={fitting}"'
            f"{index_option(tag)}"
        )
        notes = (*index_note(tag), *notes)
    return seen.answer(
        "wrong-torch", "FA607", cause, owner="xformers", direction=_direction(built, have),
        confidence="high", help=tuple(helps), notes=(
            "PROGRAMS_PYTHON is the Python that the program starts with: the one in its own venv "
            "(venv/bin/python, on Windows venv\\Scripts\\python.exe), not the first on PATH.",
            *notes,
        ),
    )  # fmt: skip


def _other_cuda(
    seen: Seen, built: str, have: str, helps: tuple[str, ...], notes: tuple[str, ...]
) -> Answer:
    """One release of torch, in builds for two CUDA versions, which may have two flavours."""
    from fa_forensics.atlas.requested import variant_flavour

    release = _release(built)
    flavours = [
        variant_flavour(release, cuda_of(version), seen.place.machine) for version in (built, have)
    ]
    cause = (
        f"xformers was built for torch {built}, and torch {have} is here: one release, but "
        "builds for other CUDA versions"
    )
    differ = flavours[0] != flavours[1]
    if differ:
        cause += (
            ", and their std::string flavours differ: names with std::string in them are not found"
        )
    fitting = partner_of("xformers", release)
    pin = f"xformers=={fitting}" if fitting else "xformers"
    tag = index_tag(seen, "xformers", have)
    get = f'{seen.pip} install --force-reinstall --no-deps "{pin}"{index_option(tag)}'
    more = index_note(tag)
    if tag:
        more += (
            "The package index has one build of each xformers alone, so an install from there "
            "gets the same file again.",
        )
    if is_older(release, XFORMERS_SINCE):
        get = f'{seen.pip} install "torch=={built}"{index_option(_tag(built))}'
        more = (
            *index_note(_tag(built)),
            f"xformers for torch {release} was published for one CUDA alone, so that torch is what "
            "has to change, with torchvision and torchaudio from the same index.",
        )
    return seen.answer(
        "wrong-torch", BANNER, f"{cause}.", owner="xformers", direction="unknown",
        confidence="high" if differ else "medium", help=(get, *helps), notes=(*more, *notes),
    )  # fmt: skip


def _other_toolkit(code: str, have: str) -> str:
    """The CUDA that the banner tells (1107 for 11.7), where torch's is another; "" else."""
    found = re.fullmatch(r"(\d{1,2})(\d\d)", code)
    told = f"{found[1]}.{int(found[2])}" if found else ""
    own = cuda_of(have)
    return told if told and own and told != own else ""


def _tag(version: str) -> str:
    return version.partition("+")[2]


def no_operator(seen: Seen) -> Answer:
    """``No operator found for memory_efficient_attention_forward``: no kernel of xformers fits."""
    text = " ".join((seen.mention.line, *seen.mention.detail.values()))
    banner = next(
        (m for m in seen.paste.mentions
         if m.what == "xformers-banner" and m.detail.get("built_torch")), None,
    )  # fmt: skip
    if banner is not None:
        return xformers(replace(seen, mention=banner))
    if "wasn't build with CUDA" in text or "wasn't built with CUDA" in text:
        return _without_code(seen)
    if "device=cpu" in text:
        return _on_the_cpu(seen)
    if (found := without_kernel(seen)) is not None:
        return found
    cause = (
        "xformers has no kernel for what it was given. Two causes fit: its compiled part did not "
        'load (the list below the message then says "wasn\'t build with CUDA support"), or each '
        "kernel refuses the GPU, the type or the shape, for the reason that the list names."
    )
    return seen.answer(
        "wrong-torch", BANNER, cause, owner="xformers", direction="unknown", confidence="medium",
        help=(*_more_details(seen), *_inspected(seen)),
        notes=("The first command tells the two apart.",),
    )  # fmt: skip


def _without_code(seen: Seen) -> Answer:
    """xformers says so of each kernel where its library did not load, or has no CUDA code."""
    torch = _release(seen.torch) if seen.torch else None
    fitting = partner_of("xformers", torch) if torch else None
    helps = [*_more_details(seen)]
    tag = index_tag(seen, "xformers", seen.torch or "") if fitting else ""
    if fitting:
        pinned = f'"xformers=={fitting}"'
        helps.append(f"{seen.pip} install --force-reinstall --no-deps {pinned}{index_option(tag)}")
    helps += [f"{seen.pip} show torch xformers", *_inspected(seen)]
    return seen.answer(
        "wrong-torch", BANNER,
        "xformers runs without its compiled part: it says so of each kernel (\"wasn't build with "
        'CUDA support"), whatever else it lists. Most often that part was built for another torch '
        "than the one that is here and did not load; else this xformers was built without CUDA.",
        owner="xformers", direction="unknown", confidence="high", help=tuple(helps),
        notes=(
            "The lines on capability, type and shape play no part: each is said of one kernel, and "
            "others serve what it refuses.",
            "The first command shows the error of the load. Each release of xformers before 0.0.35 "
            "is for one release of torch; without xformers most programs take torch's own "
            "scaled_dot_product_attention.",
            *index_note(tag),
        ),
    )  # fmt: skip


def _on_the_cpu(seen: Seen) -> Answer:
    return seen.answer(
        "gpu-arch", "FA507",
        "The tensors are on the CPU, and the kernels of xformers are for GPUs: none of its files "
        "is at fault. Two causes fit: the program put them there, or torch sees no GPU.",
        owner="xformers", direction="none", confidence="high",
        help=(
            f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda, "
            "torch.cuda.is_available())'",
        ),
    )  # fmt: skip


def _release(version: str) -> str:
    return version.partition("+")[0]


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def _direction(built: str, have: str) -> str:
    from fa_forensics.why.torch_names.history import order_key

    one, other = order_key(_release(built)), order_key(_release(have))
    return "file-newer" if one > other else "file-older"


ANSWERERS: dict[str, Answerer] = {
    "xformers-banner": xformers,
    "xformers-no-operator": no_operator,
}
