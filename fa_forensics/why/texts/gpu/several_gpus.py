"""Texts that name several GPUs: which of them the code that is there does not serve."""

from __future__ import annotations

import re
from collections.abc import Sequence

from fa_forensics.facts.gpus import Gpu, capability_text
from fa_forensics.facts.paste.several_gpus import BETWEEN
from fa_forensics.report_why import Answer
from fa_forensics.rules.gpu_remedy import rebuild
from fa_forensics.why.seen import Seen
from fa_forensics.why.texts.builds.build_targets import the_list, with_list
from fa_forensics.why.texts.builds.toolkit_commands import on_windows
from fa_forensics.why.texts.clues import called, inspect_for, named_gpu
from fa_forensics.why.texts.gpu.gpu_refusals import KIND, build_of
from fa_forensics.why.texts.gpu.gpu_suspects import list_has
from fa_forensics.why.texts.gpu.gpu_torch_text import torch_answer, torch_list
from fa_forensics.why.texts.gpu.own_build import (
    build_for,
    directory_notes,
    in_its_directory,
    operator,
    windows_wheel,
)
from fa_forensics.why.texts.gpu.servers import newer_server, server_notes
from fa_forensics.why.texts.gpu.torch_for_gpu import covers

#: Prints what torch has code for, and every GPU that this process sees.
_EVERY = (
    "-c 'import torch; print(torch.__version__, torch.cuda.get_arch_list(), "
    "[torch.cuda.get_device_capability(i) for i in range(torch.cuda.device_count())])'"
)


def _under(seen: Seen, *keys: str) -> tuple[Gpu, ...]:
    """The GPUs that stand under some keys of the text's versions, one for each capability."""
    names = [name for key in keys for name in seen.versions.get(key, "").split(BETWEEN)]
    found: dict[tuple[int, int], Gpu] = {}
    for name in names:
        if (gpu := named_gpu(name)) is not None:
            found.setdefault(gpu.capability, gpu)
    return tuple(found.values())


def all_gpus(seen: Seen) -> tuple[Gpu, ...]:
    """The GPUs that the text names, where it names several of different capability."""
    found = _under(seen, "gpus")
    return found if len(found) > 1 else ()


def to_serve(seen: Seen, gpus: Sequence[Gpu]) -> tuple[Gpu, ...]:
    """The GPUs that a new build is to serve: those that fail, and the one it was made on."""
    return all_gpus(seen) or _under(seen, "gpus_fail", "gpus_made") or tuple(gpus)


def told_apart(seen: Seen, gpu: Gpu) -> tuple[str, ...]:
    """Which of several GPUs is not served, where the sentences of the text tell it."""
    fails, fine = _under(seen, "gpus_fail"), _under(seen, "gpus_made", "gpus_fine")
    fine = tuple(one for one in fine if one.capability not in {f.capability for f in fails})
    if gpu.capability not in {one.capability for one in fails} or not fine:
        return ()
    works, lost = " and ".join(map(called, fine)), " and ".join(map(called, fails))
    if "gpus_made" in seen.versions:
        return (
            f"By the text it was built or set up on {works}, and fails on {lost}: a build that was "
            "made without a list of targets has code for the GPUs of its own machine.",
        )
    return (
        f"By the text it runs on {works}, and fails on {lost}: a build that was made without a "
        "list of targets has code for the GPUs of its own machine.",
    )


def file_archs(seen: Seen) -> tuple[str, ...]:
    """What the file itself was compiled for, as detectron2's report has it: ("sm_75",)."""
    told = seen.versions.get("archs:detectron2", "")
    found = re.findall(r"(?<![\w.])(?:sm_)?(\d{1,2})\.?(\d)(?![\w.])", told)
    return tuple(f"sm_{major}{minor}" for major, minor in found)


def not_served(seen: Seen) -> tuple[Gpu, ...]:
    """Of several GPUs those that the file has no code for, by its report or the list it took."""
    archs, every = file_archs(seen), all_gpus(seen)
    if not archs and the_list(seen):
        lacking = tuple(gpu for gpu in every if not list_has(seen, gpu))
        return lacking if len(lacking) < len(every) else ()
    return tuple(gpu for gpu in every if archs and not covers(archs, gpu))


def built_without(seen: Seen, gpu: Gpu, package: str) -> str:
    """The cause where a report shows what the file was compiled for; "" elsewhere."""
    archs = file_archs(seen)
    if not archs or covers(archs, gpu):
        return ""
    older = all(int(arch[3:]) < gpu.capability[0] * 10 + gpu.capability[1] for arch in archs)
    way = (
        "and evidently without PTX, which would run on a newer one"
        if older
        else ("and code for a newer GPU never runs on an older one")
    )
    others = [one for one in all_gpus(seen) if covers(archs, one)]
    rest = f"; {' and '.join(map(called, others))} {'is' if len(others) == 1 else 'are'} served"
    return (
        f"{package} was compiled for {', '.join(archs)} alone, as the text's report of it shows, "
        f"{way}: it has none for {called(gpu)}{rest if others else ''}."
    )


def of_another(seen: Seen) -> bool:
    """Whether the operator that prints its own name is none that detectron2 has."""
    prints = seen.mention.detail.get("prints", "")
    return bool(prints) and re.match(r"(?:modulated_)?deformable|deform", prints) is None


def built_beside(seen: Seen, gpu: Gpu) -> tuple[str, ...]:
    """What detectron2's report tells of another extension that was built on the same machine."""
    archs = file_archs(seen)
    if not archs or covers(archs, gpu):
        return ()
    return (
        f"detectron2 was compiled for {', '.join(archs)} alone, by the report in the text: what "
        "was built on the same machine in the same way lacks the GPU as well.",
    )


def both_values(seen: Seen, gpu: Gpu) -> str:
    """``6.1;7.5``: the capabilities of all GPUs of the text, for a list of targets."""
    every = to_serve(seen, (gpu,))
    return ";".join(capability_text(one) for one in sorted({g.capability for g in every}))


def hide_note(seen: Seen, gpu: Gpu | None) -> tuple[str, ...]:
    """That a process may be kept off a GPU, where another of the machine is served."""
    if not all_gpus(seen):
        return ()
    which = gpu.name if gpu else "the one that is not served"
    return (
        "Without a new build: CUDA_VISIBLE_DEVICES with the numbers of the other GPUs alone keeps "
        f"the process off {which} (nvidia-smi -L lists them; "
        "CUDA_DEVICE_ORDER=PCI_BUS_ID makes CUDA count as it does).",
    )


def one_of_several(seen: Seen, package: str | None, gpus: tuple[Gpu, ...]) -> Answer:
    """The text names several GPUs and does not say which one the code is missing for."""
    archs = torch_list(seen)
    lacking = [gpu for gpu in gpus if archs and not covers(archs, gpu)]
    if len(lacking) == 1:
        return torch_answer(seen, lacking[0], archs)
    whose = package or operator(seen)
    who = whose or "an extension, or torch itself,"
    cause = (
        f"A kernel was started that {who} has no code of for one of the GPUs that the text names: "
        f"{' and '.join(map(called, gpus))}."
    )
    if archs and not lacking:
        cause += (
            f" torch {seen.torch} itself has code for all of them, so it is "
            f"{whose or 'the extension whose function failed'} that lacks it for one."
        )
    cause += " A GPU on which the same program runs alone is not that one."
    advice = rebuild(build_of(seen, package), (), gpus)
    again = advice.help
    if package == "bitsandbytes" and on_windows(seen):
        again = windows_wheel(seen)
    elif package is None and in_its_directory(seen):
        again = build_for(seen, gpus[0], both_values(seen, gpus[0]))
    elif package is None or on_windows(seen):
        again = with_list(seen, both_values(seen, gpus[0]), package)
    # It reads libraries of Linux.
    nowhere = on_windows(seen) or (package is None and in_its_directory(seen))
    looks = () if nowhere else tuple(inspect_for(seen, (g,), package) for g in gpus)
    notes = advice.notes[1:] if package is None and in_its_directory(seen) else advice.notes
    return seen.answer(
        KIND, "FA504", cause, owner=whose, direction="none",
        confidence="high" if package and archs and not lacking else "medium",
        help=(f"{seen.python} {_EVERY}", *newer_server(seen, package, None), *again, *looks),
        notes=(*directory_notes(seen), *server_notes(seen, package, None),
               *([] if package == "lmdeploy" else notes), *hide_note(seen, None)),
    )  # fmt: skip
