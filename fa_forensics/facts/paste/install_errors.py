"""How an installation ends without a compiler: no GPU to ask, a stale lock, a file that is none."""

from __future__ import annotations

import re

from fa_forensics.facts.paste import cmake_errors
from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.model import Mention
from fa_forensics.facts.paste.recogniser import Recogniser, by_pattern, plain
from fa_forensics.patterns import lazily


def recognisers() -> tuple[Recogniser, ...]:
    """The texts of setup.py files, pip, CMake and torch's JIT loader."""
    return (*_of_targets(), *_of_toolkits(), *_of_files(), *_of_tools(), *_of_windows())


def _of_targets() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("arch_list[-1]", "_get_cuda_arch_flags"),
            r"arch_list\[-1\] \+= '\+PTX'|in _get_cuda_arch_flags",
            _no_target,
        ),
        by_pattern(
            ("unknown compute capability. specify", "specify the target compute capabilities",
             "no target compute capabilities"),
            r"(?:Unknown compute capability|No GPUs? found|No target compute capabilities)"
            r"[^\n]{0,60}pecify (?:the )?(?:target )?(?:GPU )?compute capabilities"
            r"(?:[^\n]{0,60}?(?P<variable>TCNN_CUDA_ARCHITECTURES|TORCH_CUDA_ARCH_LIST))?",
            _no_target,
        ),
        by_pattern(
            ("file_baton.py",),
            r"torch[/\\]utils[/\\]file_baton\.py\W{1,4}(?:line )?\d{0,4},? ?in wait",
            _stale_lock,
        ),
    )  # fmt: skip


def _no_target(line: Line, match: re.Match[str]) -> Mention | None:
    """torch's helper asks the GPUs that it sees which code to build; it saw none."""
    around = [line.body, *(a.body for a in line.above(40)), *(b.body for b in line.below(25))]
    text = "\n".join(around)
    variable = match.groupdict().get("variable") or ""
    if not variable and "compute cap" not in match[0] and "list index out of range" not in text:
        return None
    cpu = re.search(r"torch_extensions[/\\]py\d{2,3}_cpu\b|\+cpu\b", text)
    detail = {
        "variable": variable,
        "cpu": cpu[0] if cpu else "",
        "no_runtime": "yes" if "No CUDA runtime is found" in text else "",
        "docker": "yes" if re.search(r"Dockerfile|failed to solve|docker build", text) else "",
        "cpu_tag": "yes" if cpu else "",
    }
    return line.mention("no-target", match.start(), detail=detail)


def _stale_lock(line: Line, match: re.Match[str]) -> Mention:
    for near in (*line.above(30), *line.below(30)):
        at = near.body.find("torch_extensions")
        if at >= 0:
            start = max(0, at - 300)
            word = near.body[start:at].split(" ")[-1]
            rest = re.match(r"[\w./\\+-]{1,200}", near.body[at:])
            file = f"{word}{rest[0] if rest else ''}".strip("'\",:")
            return line.mention("stale-lock", match.start(), file=file)
    return line.mention("stale-lock", match.start())


#: Names that setup.py files set only once they asked nvcc for its release.
_OF_NVCC = r"bare_metal_\w{1,20}|nvcc_cuda_version"


def _of_toolkits() -> tuple[Recogniser, ...]:
    return (
        plain(
            "cuda-home-missing",
            ("bare_metal_", "nvcc_cuda_version"),
            rf"(?:NameError|UnboundLocalError)[^\n]{{0,60}}['\"](?:{_OF_NVCC})['\"]",
            unset="yes",
        ),
        by_pattern(
            ("'nonetype' and 'str'", "os.pathlike object, not nonetype"),
            r"unsupported operand type\(s\) for \+: 'NoneType' and 'str'"
            r"|expected str, bytes or os\.PathLike object, not NoneType",
            _none_for_a_toolkit,
        ),
        by_pattern(
            ("expected string or bytes-like object", "'nonetype' object has no attribute"),
            r"expected string or bytes-like object"
            r"|'NoneType' object has no attribute '(?:split|replace|major)'",
            _no_cuda_of_torch,
        ),
        plain(
            "torch-lacks-wheels",
            ("'cublas_path'", "'cudnn_path'", "not found in the system path"),
            r"variable '(?P<unset>cublas_path|cudnn_path)'"
            r"|(?P<library>lib(?:cu|nv|nccl)\w{1,30}\.so[\w.*\[\]-]{0,20}) not found in the system "
            r"path|cublas and cudnn not found in the system path",
        ),
        *cmake_errors.recognisers(),
    )  # fmt: skip


def _none_for_a_toolkit(line: Line, match: re.Match[str]) -> Mention | None:
    """CUDA_HOME of torch is None where it finds no toolkit; setup.py files go on with it."""
    for above in line.above(6):
        if re.search(r"CUDA_HOME|cuda_dir|cuda_home|nvcc", above.body):
            return line.mention("cuda-home-missing", match.start(), detail={"unset": "yes"})
    return None


def _no_cuda_of_torch(line: Line, match: re.Match[str]) -> Mention | None:
    """``parse(torch.version.cuda)`` where that is None: the torch of the build is a CPU build."""
    for above in line.above(8):
        if "torch.version.cuda" in above.body:
            return line.mention("torch-cpu-in-build", match.start())
    return None


def _of_files() -> tuple[Recogniser, ...]:
    return (
        by_pattern(
            ("is invalid.", "is not a zip file", "badzipfile", "bad crc-32", "bad magic number for",
             "has an invalid wheel", "file name in directory", "overlapped entries",
             "dist-info directory not found",
             "do not match the hashes", "is not a valid wheel filename", "invalid wheel filename"),
            r"Wheel '(?P<package>[^'\n]{1,80})' located at (?P<file>[^\n]{1,300}?) is invalid"
            r"|Bad CRC-32 for file ['\"](?P<member>[^'\"\n]{1,300})"
            r"|(?P<crc>Bad CRC-32 for file(?! ['\"])"
            r"|Bad magic number for (?:file header|central directory)"
            r"|File name in directory [^\n]{1,200}? and header|Overlapped entries)"
            r"|(?P<reason>BadZipFile(?!: (?:Bad |File name in|Overlapped)|\()"
            r"|has an invalid wheel|File is not a zip file|DO NOT MATCH THE HASHES"
            r"|\.dist-info directory not found)"
            r"|^(?:ERROR: )?(?P<file2>[^\n]{1,200}?\.whl) is not a valid wheel (?P<named>filename)"
            r"|Invalid (?P<named2>wheel filename)[^\n]{0,40}: '?(?P<file3>[^'\n]{1,200})",
            _wheel_damaged,
        ),
        plain(
            "wheel-damaged",
            ("inconsistent version:", "inconsistent name:"),
            r"inconsistent (?P<part>version|name): (?:expected|filename has) "
            r"'(?P<told>[^'\n]{1,60})', but metadata has '(?P<metadata>[^'\n]{1,60})'",
        ),
        plain(
            "wheel-moved",
            ("cross-device link",),
            r"Invalid cross-device link:? ?'?(?P<file>[^\s'\"]{1,200}\.whl)?",
        ),
        by_pattern(
            ("http error 404", "http error 403", "404 client error"),
            r"HTTP ?Error (?P<status>40[34])|(?P<status2>404) Client Error",
            _wheel_not_there,
        ),
        plain(
            "no-prebuilt",
            ("precompiled wheel not found", "guessing wheel url", "prebuilt wheel not found"),
            r"(?P<said>(?:Precompiled|Prebuilt) wheel not found)"
            r"|Guessing wheel URL:\s{0,4}(?P<url>https?://\S{1,300}\.whl)",
        ),
    )  # fmt: skip


#: A wheel that pip was given, or fetches: ``Processing ./flash_attn-2.7.3+cu11-...whl``.
_WHEEL = lazily(r"[\w.+~/\\:%-]{3,300}\.whl\b")


#: ``KeyError("There is no item named 'x-1.0.dist-info/WHEEL' in the archive")``: the zip opens.
_NO_MEMBER = lazily(r"There is no item named '([^'\n]{1,200})' in the archive")


def _wheel_damaged(line: Line, match: re.Match[str]) -> Mention:
    """With the wheel that a line around names, where the message itself has none."""
    detail = {key: text for key, text in match.groupdict().items() if text}
    file = detail.pop("file", None)
    lost = _NO_MEMBER.search(line.body, match.end())
    if lost is not None:
        detail["lost"] = lost[1]
    if file is None and not (detail.get("file2") or detail.get("file3") or detail.get("member")):
        near = (line, *line.above(8), *line.below(4))
        found = next((one for other in near if (one := _WHEEL.search(other.body))), None)
        file = found[0] if found is not None else None
    return line.mention("wheel-damaged", match.start(), file=file, detail=detail)


def _wheel_not_there(line: Line, match: re.Match[str]) -> Mention | None:
    status = match["status"] or match["status2"]
    for near in (line, *line.below(8), *line.above(30)):
        found = re.search(r"https?://[^\s'\"]{1,400}\.whl", near.body)
        if found:
            detail = {"status": status, "url": found[0]}
            return line.mention("wheel-not-there", match.start(), detail=detail)
    return None


def _of_tools() -> tuple[Recogniser, ...]:
    return (
        plain(
            "setup-tool",
            ("invalid command 'bdist_wheel'", "'packaging' from 'pkg_resources'",
             "attribute 'impimporter'", "argument 'strip_trailing_zero'",
             "attribute 'install_layout'",
             "no module named 'distutils", "no module named 'imp'"),
            r"invalid command '(?P<tool>bdist_wheel)'"
            r"|cannot import name '(?P<tool2>packaging)' from 'pkg_resources'"
            r"|has no attribute '(?P<tool3>ImpImporter)'"
            r"|unexpected keyword argument '(?P<tool4>strip_trailing_zero)'"
            r"|has no attribute '(?P<tool5>install_layout)'"
            r"|No module named '(?P<tool6>distutils|imp)\b",
        ),
        *_of_runs(),
    )  # fmt: skip


def _of_runs() -> tuple[Recogniser, ...]:
    """What is no question of files, or is one of requirements alone."""
    return (
        plain(
            "run-time",
            ("out of memory", "outofmemoryerror"),
            r"(?:CUDA|HIP) (?:error: )?out of memory|OutOfMemoryError: (?:CUDA|HIP)"
            r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation",
            sort="memory",
        ),
        plain(
            "run-time",
            ("a working triton installation",),
            r"Cannot find a working triton installation",
            sort="triton",
        ),
        plain(
            "run-time",
            ("device-side assert triggered",),
            r"device-side assert triggered",
            sort="assertion",
        ),
        plain(
            "run-time",
            ("collective operation timeout",),
            r"collective operation timeout",
            sort="timeout",
        ),
        *_of_pip(),
        plain(
            "run-time",
            ("conflicting dependencies", "resolutionimpossible", "no solution found when resolving",
             "unsatisfiableerror", "packagesnotfounderror"),
            r"conflicting dependencies|ResolutionImpossible|No solution found when resolving"
            r"|(?:LibMamba)?UnsatisfiableError|PackagesNotFoundError",
            sort="conflict",
        ),
        plain(
            "run-time",
            ("externally-managed-environment",),
            r"externally-managed-environment",
            sort="managed",
        ),
        plain(
            "run-time",
            ("could not resolve host", "max retries exceeded", "unable to access 'https",
             "failure in name resolution", "<urlopen error", "certificate verify failed"),
            r"Could not resolve host|failure in name resolution|Max retries exceeded"
            r"|unable to access 'https?://|<urlopen error|certificate verify failed",
            sort="network",
        ),
        plain(
            "run-time",
            ("no space left on device",),
            r"No space left on device",
            sort="disk",
        ),
    )  # fmt: skip


def _of_pip() -> tuple[Recogniser, ...]:
    return (
        plain(
            "python-refused",
            ("requires a different python",),
            r"Package '(?P<package>[\w.-]{1,80})' requires a different Python: "
            r"(?P<have>[\d.]{1,12}) not in '(?P<range>[^'\n]{1,60})'",
        ),
        plain(
            "no-matching-distribution",
            ("no wheels with a matching",),
            r"(?<![\w.\[\]=<>!~+,-])(?P<requirement>[A-Za-z][\w.\[\]=<>!~+,-]{0,100}) "
            r"ha(?:s|ve) no wheels with a matching "
            r"(?P<tag>[A-Za-z ]{3,40}tag)",
        ),
    )


def _of_windows() -> tuple[Recogniser, ...]:
    return (
        plain(
            "windows-build",
            ("unsupported microsoft visual studio version",),
            r"(?:CUDA[\\/]{1,2}v(?P<toolkit>\d{1,2}\.\d)[\\/][^\n]{1,120}?)?"
            r"unsupported Microsoft Visual Studio version!(?:\s{0,3}Only the versions between "
            r"(?P<range>20\d\d and 20\d\d))?",
            sort="newer",
        ),
        plain(
            "windows-build",
            ("stl100",),
            r"(?:error )?STL100[0-2]: Unexpected compiler version, expected (?P<wants>[\w +]{2,20}"
            r" [\d.]{1,6})",
            sort="stl",
        ),
        plain(
            "windows-build",
            ("'where', 'cl'", "compiler version for cl", "cl.exe", "'cl' is not recog",
             "microsoft visual studio", "microsoft visual c++"),
            r"Command '\['where', 'cl'\]'|checking compiler version for cl\b"
            r"|Cannot find (?:compiler )?'?cl\.exe|'cl' is not recogni[sz]ed"
            r"|command '(?:[^'\n]{0,200}[\\/])?cl(?:\.exe)?' failed: (?:None|No such file)"
            r"|(?:Could not set up the environment for |Cannot find |Could not locate a supported )"
            r"(?:the )?(?:Microsoft Visual Studio|Microsoft Visual C\+\+)"
            r"|Microsoft Visual C\+\+ [\d.]{1,6} (?:or greater )?is required",
            sort="absent",
        ),
        plain(
            "windows-build",
            ("distutils_use_sdk",),
            r"VC environment is activated but DISTUTILS_USE_SDK is not set",
            sort="sdk",
        ),
        plain(
            "windows-build",
            ("error c2872",),
            r"error C2872:? ?['\"“]?std['\"”]?[^\n]{0,60}",
            sort="std",
        ),
        by_pattern(
            ("winerror 206", "windows long path"),
            r"\[WinError 206\]|Windows Long Path support",
            _too_long,
        ),
        by_pattern(
            ("unicodedecodeerror",),
            r"UnicodeDecodeError: '(?P<codec>utf-8|utf8|gbk|cp\d{3,4}|oem)' codec can't decode",
            _words_of_cl,
        ),
    )  # fmt: skip


def _too_long(line: Line, match: re.Match[str]) -> Mention:
    """A path, or the command of a program: Windows has the same number for both."""
    near = (line, *line.above(4))
    if any(re.search(r"CreateProcess|subprocess\.py", one.body) for one in near):
        return line.mention("windows-build", match.start(), detail={"sort": "command"})
    detail = {"sort": "long"}
    for one in near:
        path = re.search(r"(?<![A-Za-z])[A-Za-z]:[\\/][^'\"\n]{60,600}", one.body)
        if path is not None:
            length = len(re.sub(r"[\\/]+", "/", path[0].strip()))
            detail["length"] = str(length) if length > 200 else ""
            break
    return line.mention("windows-build", match.start(), detail=detail)


def _words_of_cl(line: Line, match: re.Match[str]) -> Mention | None:
    """torch's helper reads what cl.exe prints; only where the traceback goes through it."""
    if not any("cpp_extension.py" in above.body for above in line.above(8)):
        return None
    return line.mention("windows-build", match.start(), detail={"sort": "decode"})
