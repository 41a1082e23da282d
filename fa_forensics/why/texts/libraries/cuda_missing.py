"""A library of the CUDA toolkit that is not found: its toolkit against that of torch."""

from __future__ import annotations

import shlex

from fa_forensics.atlas.builds import interval_text, minor_of
from fa_forensics.facts.cuda_labels import cuda_label
from fa_forensics.facts.drivers import driver_table
from fa_forensics.facts.library_names import exact_toolkit, is_of_cuda_10, is_of_cuda_10_too
from fa_forensics.facts.python_api import partner_of
from fa_forensics.facts.torch_cuda import published_cuda
from fa_forensics.facts.torch_index import index_option
from fa_forensics.facts.wheel_matrix import PACKAGE
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import NEWER, NONE, OLDER, UNKNOWN
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.libraries.bitsandbytes_text import of_bitsandbytes
from fa_forensics.why.texts.libraries.brought_text import (
    known_releases,
    major_of,
    of_old_driver,
    told_cuda,
    torch_again,
    torches_bringing,
    wheel_of,
)
from fa_forensics.why.texts.libraries.cuda10_text import of_cuda_10
from fa_forensics.why.texts.libraries.cupti_text import cupti_of_one_release
from fa_forensics.why.texts.libraries.in_wheels import in_a_wheel, is_late, not_by_torch
from fa_forensics.why.texts.libraries.inside_torch import (
    OWN_NAME,
    has_cuda_inside,
    in_torch_lib,
    inside_before_wheels,
)
from fa_forensics.why.texts.libraries.listed import as_guess
from fa_forensics.why.texts.libraries.major_alone import EXACT, ONE_RUNTIME, major_alone
from fa_forensics.why.texts.libraries.needing import (
    import_torch_first,
    is_guessed,
    needing,
    package_needing,
    rebuild_commands,
    rebuild_notes,
    who_needs_it,
)
from fa_forensics.why.texts.libraries.nvrtc_text import fault_of_2_0, nvrtc_of_cudnn
from fa_forensics.why.texts.libraries.other_cuda_text import (
    of_another_maker,
    of_program,
    without_torch,
)
from fa_forensics.why.texts.libraries.page_torch import about_page, with_torch_of_page
from fa_forensics.why.texts.libraries.part_text import part_answer
from fa_forensics.why.texts.libraries.preloaded import is_preloaded
from fa_forensics.why.texts.libraries.torch_itself import is_torch_itself, of_torch_itself
from fa_forensics.why.torch_names.history import order_key

KIND, CODE = "missing-library", "FA202"


def cuda_major_of_soname(seen: Seen, soname: str) -> str | None:
    """The one CUDA major version whose wheels carry a soname ("12"); None for several or none."""
    from fa_forensics.rules.groups import cuda_major_of

    own = cuda_major_of(soname)
    if own is not None:
        return own
    there = seen.torch_cuda or seen.versions.get("cuda") or ""
    if is_of_cuda_10(soname) or (is_of_cuda_10_too(soname) and there.startswith("10.")):
        return "10"
    table = seen.tables.libraries
    if table is None:
        return None
    majors = {major_of(row.distribution) for row in table.releases(soname)}
    return majors.pop() if len(majors) == 1 else None


def cuda_library(seen: Seen, soname: str, owner: str | None) -> Answer:
    """A library of the CUDA toolkit: its major version against that of torch."""
    major = cuda_major_of_soname(seen, soname)
    if major is None and (tried := seen.mention.detail.get("tried")):
        major = cuda_major_of_soname(seen, tried)
    if is_torch_itself(seen) or is_preloaded(seen, owner, major):
        return of_torch_itself(seen, soname, owner, major)
    bits = of_bitsandbytes(seen, soname, owner, exact_toolkit(soname) or major)
    special = (
        of_another_maker(seen, soname, owner)
        or (as_guess(bits, seen, soname, "bitsandbytes") if bits is not None else None)
        or without_torch(seen, soname, owner, major)
        or of_program(seen, soname, owner, major)
        or part_answer(seen, soname, owner)
    )
    if special is not None and not soname.endswith(".so"):
        return special
    if soname.endswith(".so"):
        return _unnumbered(seen, soname, owner)
    if owner == "cudnn" and soname.endswith(".so.8") and has_cuda_inside(seen):
        return in_torch_lib(seen, soname, owner, "11")
    if (paged := with_torch_of_page(seen, major)) is not None:
        return about_page(cuda_library(paged, soname, owner), seen)
    torch_cuda = seen.torch_cuda
    told = told_cuda(seen) if torch_cuda is None else None
    cuda = torch_cuda or (told[0] if told is not None else None)
    own = cuda.split(".")[0] if cuda else None
    exact = exact_toolkit(soname)
    if cuda is None and major is not None and (by_driver := of_old_driver(seen, major)):
        cuda, told = by_driver[0], by_driver
        own = cuda.split(".")[0]
    if cuda is not None and exact is not None:
        own, major = ".".join(cuda.split(".")[:2]), exact
        if "." not in own and exact.split(".")[0] == own:
            own = None
    if major is not None and own is not None and own != major:
        return other_toolkit(seen, soname, owner, major, cuda or "", told[1] if told else "")
    if seen.torch is not None and "+cpu" in seen.torch:
        return _cpu_torch(seen, soname, owner)
    if major is not None and (beside := in_a_wheel(seen, soname, owner, major)) is not None:
        return beside
    bringing = torches_bringing(seen, soname)
    present = seen.place.present
    other_index = major is not None and major == own and _is_of_another_index(seen)
    on_record = present is not None and present.release in known_releases(seen)
    if bringing and present is not None and on_record and not other_index:
        if present.release not in bringing:
            return _other_torches(seen, soname, owner, bringing, major)
        if major is None:
            return _same_major(seen, soname, owner, (torch_cuda or "12").split(".")[0])
    if major == "10" and not seen.mention.detail.get("torch_loads"):
        older = of_cuda_10(seen, soname, owner, own)
        if older is not None:
            return older
    if major is None and (cupti := cupti_of_one_release(seen, soname, owner)) is not None:
        return cupti
    if major is None or own is None:
        return major_alone(seen, soname, owner, major, bringing)
    return _same_major(seen, soname, owner, major)


def _is_of_another_index(seen: Seen) -> bool:
    """Whether torch is a build for another CUDA major version than the package index has of it.

    What that one brings says nothing then: 2.2.0+cu118 asks for NVIDIA's wheels for CUDA 11.
    """
    asked = seen.place.requested
    if asked is None or not asked.cuda or not asked.build.cuda:
        return False
    return asked.cuda.split(".")[0] != asked.build.cuda.split(".")[0]


def tensorflow(seen: Seen, soname: str, owner: str | None) -> Answer:
    """TensorFlow looks for CUDA libraries by name and goes on without them."""
    cause = (
        f"TensorFlow looks for {soname} by name, does not find it, and goes on without the GPU: "
        "the line is a warning, and torch has no part in it. It counts only where TensorFlow "
        "itself is meant to use the GPU; then it needs the libraries of the CUDA that it was "
        "built with."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(f"{seen.pip} list | grep -iE '^(tensorflow|nvidia)'",
              f"{seen.python} -c 'import tensorflow as t; print(t.sysconfig.get_build_info())'"),
    )  # fmt: skip


def _other_torches(
    seen: Seen, soname: str, owner: str | None, bringing: tuple[str, ...], major: str | None
) -> Answer:
    """torch is there, and it is none of those that bring the library."""
    present = seen.place.present
    own = order_key(present.version) if present is not None else order_key("0.0")
    newer = own < order_key(bringing[0])
    span = interval_text(bringing, known_releases(seen))
    cause = (
        f"torch {span} bring {soname}; torch {seen.torch} brings another version of that library "
        f"or none: {needing(seen)} was built for {'a newer' if newer else 'another'} torch."
    )
    direction = NEWER if newer else OLDER if own > order_key(bringing[-1]) else UNKNOWN
    if major is not None and major == (seen.torch_cuda or "").split(".")[0]:
        return _of_the_toolkit(seen, soname, owner, span, major)
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=direction, confidence="medium",
        help=(*rebuild_commands(seen), seen.inspect_command()),
    )  # fmt: skip


def _of_the_toolkit(seen: Seen, soname: str, owner: str | None, span: str, major: str) -> Answer:
    """torch is for that CUDA and brings this library not: a toolkit has it, or another torch."""
    who = needing(seen)
    cause = (
        f"{soname} is a library of CUDA {major}, as torch {seen.torch} is, and this torch does not "
        f"bring it: {who} takes it from a CUDA {major} toolkit, which is not there or not where "
        "the loader looks"
    )
    cause += f", or was built for a torch that brings it ({span})."
    wheel = wheel_of(seen, soname, major)
    stem = soname.split(".so")[0]
    helps = [f"find / -name {shlex.quote(stem + '.so*')} -not -path '/proc/*' 2>/dev/null"]
    helps += [f"{seen.pip} install {wheel}"] if wheel else []
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=UNKNOWN, confidence="medium",
        help=(*helps, *rebuild_commands(seen), who_needs_it(seen)),
        notes=(
            f"The directory of a {soname} that the first command finds, a toolkit's lib64 or a "
            "wheel's nvidia/.../lib, has to be on LD_LIBRARY_PATH when the program starts; the "
            "library of another CUDA major version under that name does not count.",
            f"The other way out is a torch that brings it: torch {span}.",
        ),
    )  # fmt: skip


def other_toolkit(
    seen: Seen, soname: str, owner: str | None, wanted: str, own: str, by: str = ""
) -> Answer:
    """The file is a build for another CUDA than torch: "12" against 11.8, "10.1" against 10.0.

    ``by`` says how torch's CUDA is known where the text does not name it.
    """
    fitting = ".".join(own.split(".")[: 2 if "." in wanted else 1])
    newer = [int(part) for part in wanted.split(".")] > [int(part) for part in fitting.split(".")]
    who = needing(seen)
    cause = (
        f"{who[0].upper()}{who[1:]} is a CUDA {wanted} build (it needs {soname}), torch is a CUDA "
        f"{own} build: a build for CUDA {fitting} has to replace it, or torch has to be "
        f"one for CUDA {wanted}."
    )
    if by:
        cause += f" That torch is one for CUDA {own} is read from this: {by}."
    ask = (f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'",)
    notes = [EXACT if "." in wanted else ONE_RUNTIME]
    other = _torch_for(seen, wanted)
    notes += [_OTHER_TORCH] if other else []
    major = int(wanted.split(".")[0])
    if newer and (floor := driver_table().floors.get(major)):
        notes.append(f"A torch for CUDA {wanted} needs the NVIDIA driver {floor} or newer.")
    rebuilt = rebuild_commands(seen)
    notes += [_OWN_NVCC] if any("--no-build-isolation" in text for text in rebuilt) else []
    ready = ("fa-forensics wheels",) if package_needing(seen) == PACKAGE else ()
    return seen.answer(
        KIND, "FA602", cause, owner=owner, direction=NEWER if newer else OLDER,
        confidence="medium" if by or is_guessed(seen) else "high",
        help=(*(ask if by else ()), *ready, *rebuilt, *other, who_needs_it(seen)),
        notes=(*notes, *rebuild_notes(seen)),
    )  # fmt: skip


#: Said where a package is compiled again for torch's CUDA.
_OWN_NVCC = (
    "The nvcc that compiles it has to be of torch's CUDA: CUDA_HOME names that toolkit (nvcc "
    "--version shows it). The file that is there comes from a wheel for the other CUDA (of its "
    "project's own index, or one that pip kept from another torch), or an nvcc of another major "
    "version made it; torch's own check refuses such an nvcc."
)
_OTHER_TORCH = (
    "The command that installs torch is the other way: the same release, in the build for that "
    "CUDA. What else was built on the torch that is there has to be replaced with it."
)


#: GPUs of machines with an arm processor, where the package index has other builds of torch.
_ON_ARM = lazily(r"\bG[BH]\d{2,3}\b|\b(?:Orin|Thor|Jetson|Spark)\b")


def _torch_for(seen: Seen, wanted: str) -> tuple[str, ...]:
    """The same release of torch for another CUDA, where the package index has that build."""
    release = (seen.torch or "").partition("+")[0]
    atlas = seen.tables.atlas
    build = atlas.build(release, seen.place.machine) if atlas is not None and release else None
    detail, versions = seen.mention.detail, seen.versions
    other = (
        detail.get("conda") or detail.get("board") or "ngc" in versions
        or _ON_ARM.search(seen.gpu or "")
        or versions.get("machine", "x86_64") not in ("x86_64", "amd64")
    )  # fmt: skip
    if build is None or build.cuda is None or other or "torch_by" in versions:
        return ()
    if not f"{build.cuda}.".startswith(f"{wanted}."):
        return ()
    partners = [
        f" {name}=={fitting}"
        for name in ("torchvision", "torchaudio")
        if f"pkg:{name}" in seen.versions and (fitting := partner_of(name, release))
    ]
    again = f"install --force-reinstall --no-cache-dir torch=={release}{''.join(partners)}"
    return (f"{seen.pip} {again}",)


def _cpu_torch(seen: Seen, soname: str, owner: str | None) -> Answer:
    """torch is a build for the CPU: which of the two was meant, the text alone can tell."""
    wanted = exact_toolkit(soname) or cuda_major_of_soname(seen, soname)
    cuda = f"CUDA {wanted}" if wanted else "CUDA"
    told = seen.mention.file or seen.mention.detail.get("import") or package_needing(seen)
    who = needing(seen) if told else ""
    cause = (
        f"torch {seen.torch} is a build without CUDA and brings no {soname}, and "
        f"{who or 'a compiled part of some package'} is a build for {cuda} that needs it. The two "
        "have to agree: a build of that package for the CPU, or a torch for that CUDA. Installing "
        "CUDA alone does not mend it."
    )
    cpu = bool(seen.mention.detail.get("cpu_wanted")) or _for_each_build(seen)
    helps = list(rebuild_commands(seen)) if cpu else []
    release = (seen.torch or "").partition("+")[0]
    atlas = seen.tables.atlas
    build = atlas.build(release, seen.place.machine) if atlas is not None else None
    fits = build is not None and build.cuda is not None and wanted is not None
    if fits and build is not None and (build.cuda or "").startswith(f"{wanted}."):
        again = f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'
        helps.append(again)
    arm = _for_arm(seen, release, wanted or "")
    return seen.answer(
        KIND, "FA601", cause, owner=owner, direction=NONE,
        confidence="medium" if is_guessed(seen) else "high",
        help=(*arm, *helps, who_needs_it(seen)),
        notes=(*((_CPU_FOR_ARM,) if arm else ()), *(rebuild_notes(seen) if cpu else ())),
    )  # fmt: skip


def _for_each_build(seen: Seen) -> bool:
    """Whether PyTorch publishes the package for torch without CUDA too."""
    return package_needing(seen) in ("torchvision", "torchaudio")


_CPU_FOR_ARM = (
    "For aarch64 the package index has torch without CUDA, so that pip takes that one wherever no "
    "index is named: torch with CUDA for it is on torch's own index alone. A package that is built "
    "for another CUDA than that has to be the one for it."
)


def _for_arm(seen: Seen, release: str, wanted: str) -> tuple[str, ...]:
    """torch with CUDA for aarch64, whose indexes have all of a release's CUDAs since 2.9."""
    if seen.versions.get("machine") != "aarch64" or order_key(release)[:2] < (2, 9):
        return ()
    published = published_cuda().get(minor_of(release), ())
    of_major = [cuda for cuda in published if cuda.startswith(f"{wanted}.")]
    if not wanted or not of_major or seen.mention.detail.get("cpu_wanted"):
        return ()
    return (
        f'{seen.pip} install --force-reinstall --no-cache-dir "torch=={release}"'
        f"{index_option(cuda_label(of_major[-1]))}",
    )


def _unnumbered(seen: Seen, soname: str, owner: str | None) -> Answer:
    """``libnvrtc.so``: the name that only a toolkit's development files have."""
    stem = soname.removesuffix(".so")
    again = nvrtc_of_cudnn(seen, soname)
    if again is not None:
        return again
    cause = (
        f"{soname} without a number is the name that building needs: a CUDA toolkit has it, among "
        "its development files, and torch's wheels have the library under its numbered name alone. "
        f"Whoever opens it by that name ({needing(seen)}) counts on a toolkit's directory that is "
        "on the loader's path."
    )
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(f"find / -name {shlex.quote(stem + '.so*')} -not -path '/proc/*' 2>/dev/null",
              f"ldconfig -p | grep {shlex.quote(stem)}",
              f"{seen.python} -c 'import torch; print(torch.__version__, torch.version.cuda)'"),
        notes=("The toolkit has to be of the same CUDA as torch: its directory goes on "
               "LD_LIBRARY_PATH, for example /usr/local/cuda-11.8/lib64.",
               "NVIDIA's container images have it in the variant -devel, not in -base or -runtime; "
               "its packages are cuda-nvrtc-dev and the like.", *fault_of_2_0(seen, soname)),
    )  # fmt: skip


def _same_major(seen: Seen, soname: str, owner: str | None, major: str) -> Answer:
    own_name = owner in OWN_NAME and has_cuda_inside(seen)
    if seen.torch and order_key(seen.torch) < order_key("1.13.0") and not own_name:
        return inside_before_wheels(seen, soname, owner, major)
    if major == "11" and has_cuda_inside(seen) and not seen.mention.detail.get("torch_loads"):
        return in_torch_lib(seen, soname, owner, major)
    wheel = wheel_of(seen, soname, major)
    bringer = wheel or "the wheel that brings it"
    cause = (
        f"torch is a build for CUDA {major} too and loads {soname} itself: either "
        f"{needing(seen)} was imported before torch, or {bringer} is not installed in this "
        "environment."
    )
    if major == "11":  # 2.0 and 2.1 of PyTorch's own index for CUDA 11.8 take no wheels
        cause += " Builds for CUDA 11 of PyTorch's own indexes can have it in torch/lib instead."
    if seen.mention.detail.get("torch_loads"):
        cause = (
            f"torch is a build for CUDA {major} too, and it is torch that loads the file which "
            f"needs {soname}: {bringer} is not installed in this environment, or not whole."
        )
    elif owner == "nvrtc" or is_late(seen, owner):
        return not_by_torch(seen, soname, owner, major)
    commands = [import_torch_first(seen)]
    if wheel:
        commands.append(f"{seen.pip} show {wheel}")
    if seen.torch:
        commands.append(torch_again(seen, seen.torch.partition("+")[0]))
    return seen.answer(
        KIND, CODE, cause, owner=owner, direction=NONE, confidence="medium",
        help=(*commands, seen.inspect_command()),
    )  # fmt: skip
