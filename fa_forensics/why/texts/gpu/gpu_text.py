"""Answers about GPU code: none for this GPU, refused by the package, or not known to a compiler."""

from __future__ import annotations

from collections.abc import Sequence

from fa_forensics.facts.flash_limits import Limits
from fa_forensics.facts.gpus import Gpu
from fa_forensics.report_why import Answer
from fa_forensics.rules.coverage import NONE, what_would_run
from fa_forensics.rules.gpu_remedy import rebuild
from fa_forensics.why.seen import Answerer, Seen
from fa_forensics.why.texts.builds.toolkit_commands import named_alone, on_windows
from fa_forensics.why.texts.clues import (
    base,
    called,
    driver_of,
    flash_rows,
    gpus_of,
    inspect_for,
    package_of_line,
    version_of,
)
from fa_forensics.why.texts.gpu.bitsandbytes_gpu import reported
from fa_forensics.why.texts.gpu.code_here import CodeHere, code_here
from fa_forensics.why.texts.gpu.cuda_alike import nvidia_alone
from fa_forensics.why.texts.gpu.flash_builds import (
    flash_again,
    gpu_at_hand,
    hopper_alone,
    part_of_flash,
)
from fa_forensics.why.texts.gpu.flashinfer_text import (
    EITHER,
    FLASHINFER,
    either_lacks,
    flashinfer_lacks,
    in_its_words,
    of_flashinfer,
    without_flashinfer,
)
from fa_forensics.why.texts.gpu.gpu_code_owner import (
    bundler,
    called_module,
    in_every_torch,
    listed_alone,
    most_likely,
    of_bitsandbytes,
    own_copy,
    package_shown,
    plain_torch,
    printed_by_fa3,
    shown,
    sure_of_package,
    two_runtimes,
)
from fa_forensics.why.texts.gpu.gpu_refusals import KIND, TORCH_ARCHS, build_of, refused
from fa_forensics.why.texts.gpu.gpu_suspects import (
    both_covered,
    built_for,
    list_has,
    listed_packages,
    named_module,
    second_of_mamba,
    suspects,
    told_package,
    two_gpus,
    with_own_list,
)
from fa_forensics.why.texts.gpu.gpu_torch_text import (
    beliefs,
    mixed,
    older_than_torch,
    torch_answer,
    torch_lacks,
    torch_list,
    torch_says_nothing,
    torchs_with,
)
from fa_forensics.why.texts.gpu.option_text import by_its_option
from fa_forensics.why.texts.gpu.own_build import (
    again_by_name,
    again_for_unknown,
    build_for,
    directory_notes,
    idle,
    in_its_directory,
    instead_of,
    lists_gpus_itself,
    operator,
    origin,
    past_the_list,
    unnamed_again,
    windows_notes,
    windows_wheel,
)
from fa_forensics.why.texts.gpu.servers import (
    newer_server,
    of_server,
    server_cause,
    server_notes,
    told_by_name,
    too_old_for,
    with_its_program,
)
from fa_forensics.why.texts.gpu.several_gpus import (
    all_gpus,
    both_values,
    built_beside,
    built_without,
    file_archs,
    hide_note,
    not_served,
    of_another,
    one_of_several,
    to_serve,
    told_apart,
)
from fa_forensics.why.texts.gpu.torch_for_gpu import most_of_cuda

_BUILD_NOTE = (
    "A build takes the GPUs that it sees where no list is given: one made on another machine, or "
    "in an image build without a GPU, holds code for other GPUs."
)

_SERVES_EITHER = "A build with both of them in its list, as the command has it, serves either GPU."


def _whose(seen: Seen) -> str | None:
    """The package that a message is about, by all that the text shows of it."""
    package = of_bitsandbytes(seen) or package_shown(seen) or called_module(seen)
    package = package or told_package(seen) or seen.mention.detail.get("part")
    package = package or with_own_list(seen)
    package = package or ("detectron2" if file_archs(seen) else None)
    if package == "detectron2" and of_another(seen):
        return None
    package = package or of_server(seen)
    if package is not None and plain_torch(seen) and package_of_line(seen) is None:
        return None
    if not listed_alone(seen, package) or package in ("sgl-kernel", *FLASHINFER):
        return package
    # Who speaks in its own words is not the one that a list of versions has beside them.
    return None if in_its_words(seen) or _refuses(seen, package) else package


def _refuses(seen: Seen, package: str | None) -> bool:
    """Whether a package stops before any kernel on the GPU: no kernel of its own was missing."""
    rows = [row for row in flash_rows(seen, package) if row.id != "fa3"]
    gpus = gpus_of(seen)[:1]
    return bool(rows and gpus) and not any(row.accepts(gpus[0].capability) for row in rows)


def no_kernel(seen: Seen) -> Answer:
    """``no kernel image is available``, ``invalid device function``: nothing fits this GPU."""
    gpus, package = gpus_of(seen)[:1], _whose(seen)
    several = all_gpus(seen)
    gpus = gpus or not_served(seen)[:1]
    if (found := part_of_flash(seen, gpus)) is not None:
        return found
    if in_its_words(seen) and package in (None, *FLASHINFER) and of_flashinfer(seen):
        return flashinfer_lacks(seen)
    old = too_old_for(seen, package, gpus[0]) if gpus and not in_its_words(seen) else None
    if old is not None:
        return old
    if gpus and torch_lacks(seen, gpus[0]):
        return with_its_program(seen, torch_answer(seen, gpus[0], torch_list(seen)), gpus[0])
    if gpus and package in (None, "xformers") and (found := by_its_option(seen, gpus[0])):
        return found
    if gpus and package is None and (found := mixed(seen, gpus[0])):
        return found
    if package in (None, *FLASHINFER) and of_flashinfer(seen):
        return flashinfer_lacks(seen)
    rows = flash_rows(seen, package)
    if package is None and not several and (found := older_than_torch(seen, gpus)):
        return found
    if not gpus and several and not rows:
        return one_of_several(seen, package, several)
    if not gpus:
        if package is None and both_covered(seen):
            package = named_alone(seen)
        return reported(seen, _gpu_not_named(seen, package, rows), None)
    gpu = gpus[0]
    bundled = bundler(seen) if rows and rows[-1].id == "fa3" else None
    if rows and rows[-1].id == "fa3":
        package = bundled or rows[-1].distributions[0]
    if rows and not any(row.accepts(gpu.capability) for row in rows):
        return refused(seen, gpu, package, rows)
    code = code_here(seen, package)
    if code is not None:
        return _looked_into(seen, gpu, package, rows, code)
    return reported(seen, _not_here(seen, gpus, package, rows), gpu)


def _not_here(
    seen: Seen, gpus: Sequence[Gpu], package: str | None, rows: Sequence[Limits]
) -> Answer:
    """The file is not here: by what the text tells of it and of the GPU."""
    gpu, bundled = gpus[0], bundler(seen) if rows and rows[-1].id == "fa3" else None
    advice = rebuild(build_of(seen, package), rows, to_serve(seen, gpus))
    values = both_values(seen, gpu) if len(to_serve(seen, gpus)) > 1 else None
    cause = built_without(seen, gpu, package) if package == "detectron2" else ""
    cause = cause or _who_lacks_it(seen, gpu, package, bundled)
    helps = [*newer_server(seen, package, gpu), *again_by_name(seen, gpu, package, values)]
    helps[1:1] = [] if "server_image" in seen.versions else advice.help
    second, beside = second_of_mamba(seen, package, gpu)
    helps += second
    helps += [f"{seen.python} {TORCH_ARCHS}"] if torch_says_nothing(seen) else []
    look = inspect_for(seen, gpus, package)
    notes = [*_notes_on(seen, gpu, package, rows, advice.notes), *beside]
    if package == "bitsandbytes" and on_windows(seen):
        helps, notes = [*windows_wheel(seen)], [*windows_notes(seen, gpu)]
    if in_its_words(seen) and (package is None or listed_alone(seen, package)):
        cause = either_lacks(called(gpu))
        ours = [note for note in notes if note not in (*advice.notes, _BUILD_NOTE)]
        notes = [without_flashinfer(seen), *ours]
        told = package or "named:sglang" in seen.versions or "pkg:sglang" in seen.versions
        look = inspect_for(seen, gpus, "sgl-kernel" if told else "flashinfer-python")
    if package is None and in_its_directory(seen):
        notes = [*directory_notes(seen), *built_beside(seen, gpu),
                 *(n for n in notes if n not in advice.notes[:1])]  # fmt: skip
        helps = [*([] if list_has(seen, gpu) else build_for(seen, gpu, values)), *helps]
    if list_has(seen, gpu) and not lists_gpus_itself(package):
        commands, more = past_the_list(seen, gpu)
        notes = [*more, *(n for n in notes if n not in (*advice.notes[:1], _BUILD_NOTE))]
        helps = [*commands, *(one for one in helps if one not in advice.help)]
    two = two_runtimes(seen)
    sure = package is not None and not told_by_name(seen, package)
    sure = sure and (bool(bundled) or not listed_alone(seen, package))
    sure = sure and sure_of_package(seen, gpu, torch_says_nothing(seen))
    first = (*told_apart(seen, gpu), built_for(seen, gpu), named_module(seen, gpu, package), two)
    notes = [*(note for note in first if note), *notes]
    if package is None and not in_its_words(seen) and (others := suspects(seen)):
        notes.insert(0, listed_packages(others))
        *looks, look = (inspect_for(seen, gpus, name.split(" ")[0]) for name in others[:3])
        helps = [*helps, *looks]
    return seen.answer(
        KIND, "FA504", cause, owner=package or operator(seen), direction="none",
        confidence="high" if sure and not two else "medium",
        help=tuple(dict.fromkeys((*helps, *_where_told(seen, package, look, gpu)))),
        notes=tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def _notes_on(
    seen: Seen, gpu: Gpu, package: str | None, rows: Sequence[Limits], advised: Sequence[str]
) -> list[str]:
    """What to know of code for a GPU and of the build of a package, in that order."""
    bundled = bundler(seen) if rows and rows[-1].id == "fa3" else None
    notes = [own_copy(bundled)] if bundled else [*printed_by_fa3(seen)]
    notes += [*([] if file_archs(seen) else beliefs(gpu)), *server_notes(seen, package, gpu)]
    if package is None and operator(seen) is None and not in_every_torch(gpu):
        notes += torchs_with(seen, gpu)
    notes += [*([] if package == "lmdeploy" else advised), *hide_note(seen, gpu)]
    notes += [*origin(seen, package), *idle(seen), *instead_of(package)]
    if not rows and not lists_gpus_itself(package):
        notes.append(_BUILD_NOTE)
    return notes


def _where_told(seen: Seen, package: str | None, look: str, gpu: Gpu) -> tuple[str, ...]:
    """The look into the file, and a build of what no text names; none of a mere directory."""
    if package is None and operator(seen) is not None:
        return ()
    plain = package is None and not in_its_words(seen) and not in_its_directory(seen)
    return (look, *(unnamed_again(seen, gpu) if plain and not list_has(seen, gpu) else ()))


def _who_lacks_it(seen: Seen, gpu: Gpu, package: str | None, bundled: str | None) -> str:
    """What has no code for a GPU: a package, the extension, or one of it and torch."""
    which = shown(seen, gpu)
    runs = what_would_run(gpu.capability)
    package = package or operator(seen)
    if package is None and (torch_list(seen) is not None or in_every_torch(gpu)):
        return (
            f"The extension whose function failed holds no code for {which}, which runs {runs}; "
            "torch itself has code for it."
        )
    if told_by_name(seen, package):
        return server_cause(seen, str(package), gpu, torch_list(seen) is not None)
    if package is None:
        return (
            f"Something holds no code for {which}, which runs {runs}: the extension whose function "
            "failed, or torch itself."
        )
    version = version_of(seen, package)
    file = f"{package} {version}" if version else package
    if package == "flash-attn-3" and version is None:
        return f"The FlashAttention 3 that was called holds no code for {which}, which runs {runs}."
    if listed_alone(seen, package) and not bundled:
        torch_has = torch_list(seen) is not None or in_every_torch(gpu)
        return most_likely(seen, gpu, file, torch_has)
    if bundled:
        return f"The FlashAttention 3 in {file} holds no code for {which}, which runs {runs}."
    return f"The {file} that is installed holds no code for {which}, which runs {runs}."


def _looked_into(
    seen: Seen, gpu: Gpu, package: str | None, rows: Sequence[Limits], code: CodeHere
) -> Answer:
    """The file is here: what it holds decides."""
    found = code.fit(gpu, driver_of(seen))
    name = base(code.path)
    if found.runs != NONE:
        cause = (
            f"{name} holds code that runs on {called(gpu)} ({found.reason}), so it is not this "
            "file as a whole that lacks it: torch itself or another extension does, or this one "
            "kernel."
        )
        return seen.answer(
            KIND, "FA504", cause, owner=package, direction="none", confidence="medium",
            help=(
                f"{seen.python} {TORCH_ARCHS}",
                f"{inspect_for(seen, (gpu,), package)} --kernels",
            ),
        )  # fmt: skip
    advice = rebuild(build_of(seen, package), rows, (gpu,))
    cause = (
        f"{name} holds {code.archs} alone, and none of it runs on {called(gpu)}, which runs "
        f"{what_would_run(gpu.capability)}."
    )
    return seen.answer(
        KIND, "FA504", cause, owner=package, direction="none", confidence="high",
        help=(*advice.help, inspect_for(seen, (gpu,), package)),
        notes=tuple(dict.fromkeys((*beliefs(gpu), *advice.notes))),
    )  # fmt: skip


def _gpu_not_named(seen: Seen, package: str | None, rows: Sequence[Limits]) -> Answer:
    """The kind is clear; which of torch and the extension lacks the code is not."""
    name = package or operator(seen) or "an extension"
    if rows and rows[-1].id == "fa3":
        return hopper_alone(seen, rows[-1])
    own, listed = in_its_words(seen), listed_alone(seen, package)
    likely = ", most likely," if listed and not own else ""
    name = EITHER if own and (package is None or listed) else name
    cause = (
        f"A kernel was started that {name}{likely} has no code of for {gpu_at_hand(seen)}. "
        "The first command shows the GPU and what torch itself has code for: "
        "if torch's list covers the GPU, it is the extension that lacks it."
    )
    stack = base(seen.mention.file) if seen.mention.detail.get("stack") else ""
    if stack and package:
        cause = (
            f"{package} has no code for the GPU at hand: of the files on the stack {stack} is the "
            "one that started the kernel, and torch's (c10_cuda) only report what it got. The "
            "text does not name the GPU: the first command shows it, and what torch itself has "
            "code for."
        )
    notes = [] if rows or lists_gpus_itself(package) else [_BUILD_NOTE]
    both = two_gpus(seen)
    again: tuple[str, ...] = ()
    if package == "bitsandbytes" and on_windows(seen):
        again, notes = windows_wheel(seen), [*windows_notes(seen, None), *notes]
    elif not rows and package != "bitsandbytes":
        again, more = again_for_unknown(seen, package)
        notes = [*more, *notes]
    elif rows and rows[-1].arch_variable is not None:
        again, more = flash_again(seen, package, rows[-1])
        notes = [*more, *notes]
    if both and (targets := both_covered(seen)):
        whose = package or "an extension"
        cause = (
            f"A kernel was started that {whose} has no code of for {seen.versions['gpu']}. Torch "
            "itself has code for both GPUs of that name, so that it is not torch that lacks it."
        )
        again = tuple(text.replace('"X.Y"', f'"{targets}"') for text in again)
        notes = [both, _SERVES_EITHER, *notes[1:]]
    elif both:
        notes.insert(0, both)
    if newer := newer_server(seen, package, None):
        again = (*newer, *(one for one in again if " --upgrade " not in one))
        notes = [*server_notes(seen, package, None), *notes]
    notes += () if both else most_of_cuda(seen)
    return seen.answer(
        KIND, "FA504", cause, owner=package or operator(seen), direction="none",
        confidence="high" if stack and package else "medium",
        help=(f"{seen.python} {TORCH_ARCHS}", *_look(seen, package), *again),
        notes=tuple(notes),
    )  # fmt: skip


def _look(seen: Seen, package: str | None) -> tuple[str, ...]:
    """What shows the targets of the file: nothing where the text does not tell which file."""
    if on_windows(seen) or (package is None and in_its_directory(seen)):
        return ()
    return (inspect_for(seen, (), package),)


ANSWERERS: dict[str, Answerer] = {
    "no-kernel-image": nvidia_alone(no_kernel),
    "invalid-device-function": nvidia_alone(no_kernel),
}
