"""What stands around an error of GPU code: the C++ stack below it, and how its file was built."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.denied import is_denied
from fa_forensics.facts.paste.lines import Line
from fa_forensics.patterns import lazily

#: ``(0x7f… in /…/x.so)`` as Linux shows a step of the stack, ``x.pyd!Name`` as Windows does.
_STEP = lazily(
    r"\bin (?P<path>/[^\s()]{1,300}\.so[.\d]{0,12})\)"
    r"|(?<![\w\\/.-])(?P<name>[\w.+-]{2,120}\.(?:pyd|dll))!"
)
#: Files of torch, of CUDA, of Python and of the system: what reports or calls, not what fails.
_REPORTS = lazily(
    r"(?:lib)?(?:c10|torch|_C\.|shm|caffe2|cudart|cublas|cudnn|nvrtc|nvcuda|cuda\.so|amdhip|hip"
    r"|hsa|c\.so|c-2|m\.so|pthread|dl\.so|stdc|gcc|gomp|ffi|_ctypes|_asyncio|python|ucrt|kernel"
    r"|ntdll|msvc|vcrun|conda)",
    re.IGNORECASE,
)
#: A kernel's own words: ``error in ms_deformable_im2col_cuda: no kernel image is available``.
_PRINTS = lazily(r"\berror in (\w{4,60}) ?: ?$", re.IGNORECASE)
#: ``built in mask2former/modeling/pixel_decoder/ops``; a path with such a directory in it.
_FOLDER = lazily(
    r"(?:\b(?:built|compiled|build|compile|installed|make\.sh|setup\.py) (?:it )?in |\bcd )"
    r"['\"`]?(?P<told>[\w.~-]{1,60}(?:/[\w.-]{1,60}){1,8})"
    r"|(?P<path>(?:/?[\w.~-]{1,60}/){1,12}ops)/(?:functions|modules|src|setup\.py|build)\b"
)


def stack_file(line: Line) -> str:
    """The first file of the stack below a message that is an extension's own; "" for none."""
    if "exception raised from" not in line.source.lower:
        return ""
    for below in line.below(40):
        for step in _STEP.finditer(below.body[:2_000]):
            path = step["path"] or step["name"]
            if not _REPORTS.match(path.rsplit("/", 1)[-1]):
                return path
    return ""


#: A step that calls a package's own compiled part: ``_C.rasterize(``, ``self.native_module.fwd(``.
_CALLS = lazily(
    r"(?<!\w)(?:_(?:C|ext|cuda|backend|ops|kernels?)\w{0,20}|ext_module)\.\w{1,60}\("
    r"|\bnative_\w{1,40}\.\w{1,60}\(|_backend\.\w{1,60}\("
)
_IN_PACKAGE = lazily(r"(?:site|dist)-packages[/\\](?P<name>[A-Za-z]\w{2,40})[/\\]")
#: The file of a package in a checkout of its own name: /root/mmcv/mmcv/ops/focal_loss.py.
_IN_CHECKOUT = lazily(r"/(?P<name>[A-Za-z]\w{2,40})/(?P=name)/(?:\w{1,60}/){0,6}\w{1,60}\.py\b")
_IMPORTS = lazily(r"^\s*from (?P<name>[A-Za-z]\w{3,60})(?:\.\w{1,40}){0,3} import _\w{1,20}\b")
#: Whose compiled parts have a reader of their own, or that only pass a call on.
_NOT_THESE = ("torch", "triton", "torchvision", "transformers", "accelerate", "diffusers")


def compiled_part_of(line: Line) -> str:
    """The package whose own compiled part the last step above a message calls; "" for none."""
    steps = [near for near in line.above(6) if near.body]
    if not any(_CALLS.search(near.body[:1_000]) for near in steps[:3]):
        # A debugger prints the message first, and the steps below it.
        steps = [near for near in line.below(8) if near.body]
        if not any(_CALLS.search(near.body[:1_000]) for near in steps):
            return ""
    for near in steps:
        body = near.body[:1_000]
        found = _IN_PACKAGE.search(body) or _IN_CHECKOUT.search(body) or _IMPORTS.match(body)
        if found is not None:
            return "" if found["name"] in _NOT_THESE else found["name"]
    return ""


#: A tree that a package was compiled in: ``/tmp/x/flashinfer-0.1.1+cu121/include/``, ``/x/csrc/``.
_TREE = lazily(
    r"/(?P<name>[A-Za-z][\w-]{2,40}?)-\d{1,4}(?:\.\d{1,4}){1,3}[\w.+-]{0,40}/(?:include|csrc|src|lib)/"
    r"|/(?P<csrc>[A-Za-z][\w-]{2,40})/csrc/"
)
#: Directories that hold sources of anything, and torch's own.
_NO_PROJECT = ("pytorch", "torch", "aten", "cuda", "ops", "kernels", "models", "build", "workspace",
               "home", "cutlass", "nccl", "cub", "thrust", "extensions", "src")  # fmt: skip
#: Projects by their words near the message: their names, or their kernels' own.
_PROJECTS = (
    (
        "flashinfer",
        re.compile(
            r"flashinfer|with_?kv_?cache kernel launch failed|prebuilt moe_utils", re.IGNORECASE
        ),
    ),
    ("GroundingDINO", re.compile(r"grounding[_ ]?dino", re.IGNORECASE)),
)


def tree_of(text: str) -> str:
    """The package whose source tree a path in a line goes through; "" for none."""
    for found in _TREE.finditer(text[:2_000]):
        name = found["name"] or found["csrc"]
        if name.lower() not in _NO_PROJECT:
            return str(name)
    return ""


def project_beside(line: Line) -> str:
    """The project that a line names, or the lines around it; "" for none."""
    for near in (line, *line.above(4), *line.below(4)):
        for name, words in _PROJECTS:
            found = words.search(near.body[:4_000])
            if found is not None and not is_denied(near.body, found.start()):
                return name
    return ""


#: "this happens only if I choose sageattn", "works fine without xformers", "disabling X fixes it".
_ONLY_WITH = lazily(
    r"\bonly (?:happens? |occurs? |fails? |crashe?s? |appears? )?(?:if|when|with|while)\b"
    r"(?P<with>[^.,;\n]{0,60})"
    r"|\b(?:works?|worked|fine|no error)\b[^.,;\n]{0,20}\bwithout\b(?P<without>[^.,;\n]{0,40})"
    r"|\b(?:disabling|removing|uninstalling)\b(?P<off>[^.,;\n]{0,40}?)"
    r"\b(?:fixe[sd]|solve[sd]|works|worked|helps|helped)\b",
    re.IGNORECASE,
)
#: What a program has a choice of, as its settings call it, and the package that it is.
_CHOICES = {
    "sageattention": lazily(r"\bsage[ _-]?att(?:n|ention)", re.IGNORECASE),
    "xformers": lazily(r"\bxformers\b", re.IGNORECASE),
    "flash-attn": lazily(r"\bflash[ _-]?att(?:n|ention)", re.IGNORECASE),
    "bitsandbytes": lazily(r"\bbitsandbytes\b|\bbnb\b", re.IGNORECASE),
    "flashinfer": lazily(r"\bflashinfer\b", re.IGNORECASE),
    "natten": lazily(r"\bnatten\b", re.IGNORECASE),
}


def only_with(line: Line) -> str:
    """The one package that the text around tells the error to depend on; "" for none."""
    for near in (line, *line.below(6), *line.above(4)):
        for found in _ONLY_WITH.finditer(near.body[:2_000]):
            words = found["with"] or found["without"] or found["off"] or ""
            names = [name for name, word in _CHOICES.items() if word.search(words)]
            if len(names) == 1:
                return names[0]
    return ""


def built_beside(line: Line, start: int) -> dict[str, str]:
    """Who says it (``prints``), of which project or ``part``, compiled where (``folder``).

    ``idle`` tells that ninja compiled nothing. A key is there as far as the text says it.
    """
    found: dict[str, str] = {}
    prints = _PRINTS.search(line.body[max(0, start - 80) : start])
    if prints is not None:
        found["prints"] = prints[1]
    project = project_beside(line)
    if project:
        found["project"] = project
    part = compiled_part_of(line) or tree_of(line.body) or only_with(line)
    if part:
        found["part"] = part
    for near in (*line.above(8), line, *line.below(6)):
        if "ninja: no work to do" in near.lower:
            found["idle"] = "ninja"
        folder = _FOLDER.search(near.body[:2_000]) if "/" in near.body else None
        if folder is not None:
            found.setdefault("folder", folder["told"] or folder["path"])
    return found
