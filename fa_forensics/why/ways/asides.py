"""What a text tells by the way, in its answer: a file's flavour, what follows, a second name."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from fa_forensics.facts.demangle import mentions_cxx11
from fa_forensics.facts.owner import is_torch
from fa_forensics.facts.python_api import partner_of
from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.judgement import DRIFT, FLAVOUR, NEWER
from fa_forensics.why.place import Place
from fa_forensics.why.seen import file_of, module_of, package_of
from fa_forensics.why.ways.first_use import at_first_use
from fa_forensics.why.ways.hidden import of_another_source
from fa_forensics.why.ways.one_channel import beside_condas_torch, of_one_channel
from fa_forensics.why.ways.own_ops import compiled_by_deepspeed, of_a_program

if TYPE_CHECKING:
    from fa_forensics.facts.paste import Paste

_DEEPMD = "/deepmd/lib/"


def with_asides(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer with what other lines of the text say of the file or of its package."""
    answer = _refused_afterwards(_nothing_else(answer, paste), paste)
    if answer.kind not in DRIFT or not is_torch(answer.owner or ""):
        return answer
    answer = _of_its_nightly(_flavour_told(answer, paste), paste, place, name)
    answer = of_another_source(_without_a_wheel(answer, paste, place))
    answer = of_one_channel(at_first_use(answer, paste, place), paste, place)
    answer = beside_condas_torch(answer, paste, place)
    return _with_a_way(of_a_program(compiled_by_deepspeed(answer, paste, name), paste))


#: A command that changes something.
_A_WAY = lazily(r"\bpip install\b|^rm -rf|install ")


def _with_a_way(answer: Answer) -> Answer:
    """The answer with the way that every such file has, where none is told so far."""
    if answer.notes or any(_A_WAY.search(text) for text in answer.help):
        return answer
    note = (
        "The file is compiled again for the torch that is loaded, from an empty build directory, "
        "or taken in its wheel for that torch; where its source itself still uses the name, a "
        "newer source or a torch of the source's time is the way."
    )
    return replace(answer, notes=(note,))


def _refused_afterwards(answer: Answer, paste: Paste) -> Answer:
    """The answer for flash-attn's file with a word on a GPU that it refuses once it loads."""
    told = paste.versions.get("gpu") or paste.versions.get("capability")
    if not told or module_of(file_of(paste)) != "flash_attn_2_cuda":
        return answer
    from fa_forensics.facts.flash_limits import all_limits
    from fa_forensics.why.texts.clues import called, named_gpu

    gpu = named_gpu(told)
    rows = [row for row in all_limits() if row.id == "fa2"]
    if gpu is None or not rows or any(row.accepts(gpu.capability) for row in rows):
        return answer
    older = " FlashAttention 1 (flash-attn 1.x) takes it." if gpu.capability == (7, 5) else ""
    note = (
        f"A build of flash-attn 2 that loads does not run on {called(gpu)} all the same: its own "
        f"check asks for compute capability 8.0 or newer, and no build changes that.{older} "
        "On such a GPU flash-attn is best taken off, and the program set to torch's own "
        "scaled_dot_product_attention (sdpa)."
    )
    return replace(answer, notes=(note, *answer.notes))


#: vLLM's packages have FlashAttention's kernels in vllm/vllm_flash_attn since 0.5 (its setup.py).
_LEFT_OUT = (
    "vLLM has FlashAttention's kernels of its own (vllm.vllm_flash_attn): where nothing else in "
    "the program imports flash_attn, python -m pip uninstall -y flash-attn is a way out as well."
)


def _without_a_wheel(answer: Answer, paste: Paste, place: Place) -> Answer:
    """The answer for flash-attn's file where no wheel of its releases is for the torch there."""
    from fa_forensics.facts.wheel_matrix import PACKAGE, as_of, builds

    there = place.present
    if package_of(file_of(paste)) != PACKAGE or there is None or not there.published:
        return answer
    minor = ".".join(there.release.split(".")[:2])
    notes = []
    if not any(build.torch == minor for build in builds()):
        notes.append(
            f"None of flash-attn's releases has a wheel for torch {minor} (as of {as_of()}), so "
            "the build from source is the one that is for it."
        )
    if "pkg:vllm" in paste.versions:
        notes.append(_LEFT_OUT)
    return replace(answer, notes=(*answer.notes, *notes)) if notes else answer


def _nothing_else(answer: Answer, paste: Paste) -> Answer:
    """The answer with a word on an operator that the failed load left out."""
    told = re.match(
        r"(\w+)' object has no attribute '(\w+)", paste.versions.get("flag:no-operator", "")
    )
    loaded = answer.symbol or answer.kind == "missing-library"
    if told is None or not loaded or not file_of(paste):
        return answer
    note = (
        f"That torch.ops.{told[1]} has no {told[2]} (AttributeError) only follows from it: the "
        "library that registers the operator did not load."
    )
    return replace(answer, notes=(note, *answer.notes))


def _flavour_told(answer: Answer, paste: Paste) -> Answer:
    """The answer where the text says in which flavour the file was compiled."""
    flag = paste.versions.get("flag:file-abi")
    own = "1" if mentions_cxx11(answer.symbol or "", answer.demangled or "") else "0"
    if flag != own or answer.direction != FLAVOUR:
        return answer
    other = "0" if flag == "1" else "1"
    note = (
        f"The text says that the file was compiled with CXX11_ABI_FLAG={flag}: that is its "
        f"flavour, so the torch that lacks the name has the other one ({other}), and a build for "
        "it has to be of that."
    )
    notes, helps = [note], answer.help
    if _DEEPMD in file_of(paste):
        # deepmd-kit's source/CMakeLists.txt, and deepmd/pt/cxx_op.py on DP_ENABLE_PYTORCH.
        notes.append(
            "deepmd-kit's CMake takes OP_CXX_ABI from TensorFlow where it is built with that, and "
            "keeps it in CMakeCache.txt: TensorFlow and torch have to be of one flavour, or "
            "DP_ENABLE_TENSORFLOW=0 leaves TensorFlow out. A -D_GLIBCXX_USE_CXX11_ABI of one's own "
            f"in CMAKE_ARGS or CXXFLAGS is taken out, or set to {other}."
        )
        built = "python -m pip install --no-build-isolation"
        helps = tuple(text.replace(built, f"DP_ENABLE_PYTORCH=1 {built}") for text in helps)
    return replace(answer, help=helps, confidence="high", notes=(*notes, *answer.notes))


def _of_its_nightly(answer: Answer, paste: Paste, place: Place, name: str | None) -> Answer:
    """The answer where a package's nightlies have a name of their own, and the same directory."""
    nightly = paste.versions.get("flag:nightly-name", "").lower().replace("_", "-")
    if not nightly or name is None or not nightly.startswith(f"{name}-"):
        return answer
    alone = re.compile(rf"(?<![\w-]){re.escape(name)}(?![\w-])")
    pip = f"{place.python or 'python'} -m pip"
    helps = tuple(
        f"{pip} uninstall -y {nightly} && {text}"
        if text.startswith(f"{pip} install ") and alone.search(text)
        else text
        for text in answer.help
    )
    notes = []
    if helps != answer.help:
        notes.append(
            f"{nightly} and {name} are two distributions that write one directory, and pip lets "
            "one go over the other: what is installed goes first."
        )
    there = place.present
    if answer.direction == NEWER and there is not None and not there.published:
        partner = partner_of(name, there.release)
        if partner is not None:
            notes.append(
                f"{name} {partner} is the release for torch {there.release}: it and the release "
                f"{there.release} of torch in place of a nightly are the other pair."
            )
    return replace(answer, help=helps, notes=(*notes, *answer.notes))
