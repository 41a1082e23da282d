"""What packages say of their own operations that were compiled without CUDA."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.around import frame
from fa_forensics.facts.paste.build_around import package_above, packages_near
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern
from fa_forensics.patterns import lazily

#: Programs with such words of their own, which have nothing to do with torch.
_OTHERS = lazily(
    r"xgboost|lightgbm|opencv|tensorflow|faiss|onnx|\bjax|ggml|llama|open3d|catboost|pcl\b"
    r"|ffmpeg|mpi\b|\bucx|ctranslate2",
    re.IGNORECASE,
)


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of a missing part for CUDA."""
    return (
        by_pattern(
            ("implementation for device",),
            r"(?P<op>\w{2,80}): implementation for device (?P<device>[a-z]{2,12})(?::\d{1,3})? "
            r"not found",
            _by_device,
        ),
        by_pattern(
            ("compiled with gpu support", "compiled with cuda support", "compiled with cuda"),
            r"(?:(?P<op>[A-Za-z_][\w.]{1,60})\s(?:(?:is|was)\s)?)?\bnot compiled with "
            r"(?:(?:GPU|CUDA) support|CUDA(?=\W{0,3}$|[!.]\s{1,3}[A-Z]))",
            _said,
        ),
        by_pattern(
            ("failed to load custom c++ ops",),
            r"Failed to load custom C\+\+ ops\b",
            _of_custom_ops,
        ),
        by_pattern(
            ("could not find module '_",),
            r"Could not find module '(?P<module>_\w{1,60})' in (?:[^\n'\"]{1,300}[/\\])?"
            r"(?P<top>torch_(?:scatter|sparse|cluster|spline_conv))\b",
            _of_pyg,
        ),
    )


def _of_pyg(line: Line, match: re.Match[str]) -> Mention:
    """PyG's packages look for their libraries in their own directory (__init__.py)."""
    detail = {
        "module": f"{match['top']}.{match['module']}",
        "package": match["top"].replace("_", "-"),
        "frame": frame(line)[0] or f"{match[0].partition(' in ')[2]}/__init__.py",
        "own_library": "yes",
    }
    return line.mention("no-module", match.start(), detail=detail)


def _by_device(line: Line, match: re.Match[str]) -> Mention:
    """mmcv's registry of operations (mmcv/ops/csrc/common/pytorch_device_registry.hpp)."""
    detail = {"op": match["op"], "device": match["device"].lower(), "package": "mmcv"}
    return line.mention("built-without-cuda", match.start(), detail=detail)


def _said(line: Line, match: re.Match[str]) -> Mention | None:
    if _OTHERS.search(line.body) or (match["op"] or "").lower() in ("torch", "pytorch"):
        return None
    package, operation = packages_near(line), match["op"] or ""
    if package and operation.replace("_", "-").lower() == package:
        operation = ""  # NATTEN says so of itself
    detail = {"op": operation, "device": "cuda", "package": package}
    return line.mention("built-without-cuda", match.start(), detail=detail)


_GROUNDING_DINO = lazily(r"(?i)grounding[-_ ]?dino")


def _of_custom_ops(line: Line, match: re.Match[str]) -> Mention:
    """Said where the import of compiled operations failed, by several projects.

    groundingdino's ms_deform_attn.py is one (IDEA-Research/GroundingDINO); what has deformable
    attention of that origin has the sentence too, so that a sign of a project has to stand near.
    """
    package = packages_near(line, spoken=False) or package_above(line)
    if not package and _GROUNDING_DINO.search(line.source.text):
        package = "groundingdino"
    detail = {"sort": "extension", "package": package}
    return line.mention("caught-import", match.start(), detail=detail)
