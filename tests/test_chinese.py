"""Chinese output: every sentence that can be said has a translation, and it is laid out well."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest
import render_samples as samples
from click.testing import CliRunner
from support.inspecting import validator
from support.sentences import sentences_in

import fa_forensics
from fa_forensics.cli import main
from fa_forensics.facts.owner import title_of
from fa_forensics.render.answers import CODE_WORDS, KIND_WORDS, answer_lines
from fa_forensics.render.lang import columns, plain, speaker
from fa_forensics.render.lang.translate import Words, is_prose, parse_template, words_of
from fa_forensics.render.style import painter
from fa_forensics.render.terminal import inspect_text
from fa_forensics.report_why import Answer
from fa_forensics.why import explain

PACKAGE = Path(fa_forensics.__file__).parent
TABLE: dict[str, Any] = json.loads((PACKAGE / "data/zh.json").read_text(encoding="utf-8"))
HAN = re.compile("[\u4e00-\u9fff]")
RUNNER = CliRunner()

NAMES = "names and numbers alone, the same in every language"
PART = "a part of a sentence that the table has as a whole"
WORDS = "a text of another program, which is looked for or quoted"

#: Texts of the sources that are not in the table, with the reason.
EXCEPTIONS = {
    " since {1}": PART,
    " in {1}": PART,
    " of {1}": PART,
    " than {1}": PART,
    " and {1} {2}": PART,
    "by {1}": PART,
    "s are": PART,
    "has {1} ({2})": PART,
    "{1} and {2}": PART,
    "{1} became {2}": PART,
    "{1} export{2}": PART,
    "{1} needs {2}, which ": PART,
    "{1} to {2}": PART,
    "{1}, so what is imported as flash_attn is not ": PART,
    "that package: {1}, and the rest of flash_attn is flash-attn 2's, which is ": PART,
    "not installed beside it. No compiled file is at fault.": PART,
    "whole, or not that package. Three causes fit: {1}; a directory named flash_attn comes first, "
    "or an installation left half of the files; or it is a flash-attn 0 or 1.": PART,
    "The compiled library of {1} has {2} with other parameters than its caller ": PART,
    "passes: it takes {1} and is passed {2}": PART,
    "passes: it wants {1}, which the caller does not pass": PART,
    "passes: it has no {1}": PART,
    ". The Python files and the compiled library are of two revisions of {1}, and the compiled one "
    "is most likely the {2}: parameters are added with time. The library did load; torch only "
    "reports it and is not at fault.": PART,
    "It belongs to {1}. ": PART,
    "Every {1} on record exports it, from {2} ": PART,
    "The file was built for a torch that is {1} than {2}: only ": PART,
    "flash-attn has {1} since {2}; {3} is older: the caller was ": PART,
    "Installing another torch changes": WORDS,
    "One of the two commands": WORDS,
    "Another build of": WORDS,
    "Where pip compiled": WORDS,
    "A file that was compiled": WORDS,
    "A build of the extension": WORDS,
    "The command that begins with": WORDS,
    "The published torch": WORDS,
    "import torch": WORDS,
    "asked for": WORDS,
    'ctypes.CDLL("{1}", ctypes.RTLD_GLOBAL)': NAMES,
    "LD_DEBUG=libs python YOUR_SCRIPT.py 2>&1 | grep 'calling init: .*libcudnn'": NAMES,
    "cmake -S . -B build -DCUDAToolkit_ROOT=/usr/local/cuda-{1} "
    "-DCUDA_TOOLKIT_ROOT_DIR=/usr/local/cuda-{2}": NAMES,
    "import torch; print(torch.__version__.split(chr(43))[0])": NAMES,
    '"torch[=>]=|^rm -rf build': WORDS,
    r"--no-binary ({1}) \1$": WORDS,
    "--no-binary {1} {2}": NAMES,
    "--no-binary {1} {2}$": NAMES,
    "--force-reinstall .": NAMES,
    "free -h": NAMES,
    " install --force-reinstall --no-deps --no-cache-dir ": NAMES,
    "{1} --version": NAMES,
    "where python": NAMES,
    "where cl & nvcc --version": NAMES,
    "where cl & cl & nvcc --version": NAMES,
    "where cudart64_*.dll & echo %CUDA_HOME% %CUDA_PATH%": NAMES,
    "vcvars64.bat -vcvars_ver={1}": NAMES,
    "dumpbin /dependents {1}.pyd": NAMES,
    "MKL_THREADING_LAYER=GNU {1} YOUR_PROGRAM.py": NAMES,
    "HSA_OVERRIDE_GFX_VERSION={1} {2} YOUR_PROGRAM.py": NAMES,
    'set "TORCH_CUDA_ARCH_LIST={1}"': NAMES,
    "{1}=/usr/local/cuda/bin/ptxas {2} YOUR_PROGRAM.py": NAMES,
    "{1}=XY FLASH_ATTENTION_FORCE_BUILD=TRUE {2} install --no-build-isolation --no-cache-dir "
    "--force-reinstall --no-deps {3}": NAMES,
    "apk add {1}": NAMES,
    "docker run --rm -it python:3.11-slim bash": NAMES,
    "Rscript -e 'torch::install_torch(reinstall = TRUE)'": NAMES,
    "not recogni": WORDS,
    "tasklist | findstr python": NAMES,
    "cmake -DCMAKE_CXX_STANDARD={1} ..": NAMES,
    "--threads[ =]?[2-9]": WORDS,
    "Python {1}": NAMES,
    "Python {1}.{2}": NAMES,
    "flash-attn {1}": NAMES,
    "FFmpeg {1}": NAMES,
    "docker info | grep -i 'default runtime'": NAMES,
    "npu-smi info": NAMES,
    "$({1} show {2} | sed -n 's/^Version: //p')": NAMES,
    "$(ldconfig -p | grep -o '/.*libgomp.so.1$')": NAMES,
    "strings {1} | grep -E '^G?(OMP|OACC)_[0-9.]+$' | sort -V | tr '\\n' ' '": NAMES,
    "cd {1} && git log -1 --format=%cd && {2} install -v --no-build-isolation -e .": NAMES,
    "~ /tmp": NAMES,
    "LD_LIBRARY_PATH=$CONDA_PREFIX/lib {1}": NAMES,
    "LD_LIBRARY_PATH=~/newer-libstdcxx/lib {1}": NAMES,
    "dir /b {1}\\{2}\\{3}*": NAMES,
    "dpkg -S {1} || rpm -qf {2}": NAMES,
    "readlink -f {1}; readelf -dW {2} | grep SONAME": NAMES,
    "$(find / -name {1} 2>/dev/null)": NAMES,
    "--python {1} ": NAMES,
    "torch {1}": NAMES,
    "e_machine {1}": NAMES,
    "says {1}": NAMES,
    "says {1} {2} ({3})": NAMES,
    "PT_LOAD at offset {1}, address {2}, alignment {3}": NAMES,
    "Requires-Dist: torch{1}": NAMES,
    "Requires-Python: {1}": NAMES,
    "NVCC_PREPEND_FLAGS='-ccbin g++-{1}' CC=gcc-{2} CXX=g++-{3}": NAMES,
    "NVCC_PREPEND_FLAGS='-ccbin g++-{1}' CC=gcc-{2} CXX=g++-{3} {4} install --no-build-isolation "
    "PACKAGE": NAMES,
    "--upgrade pip setuptools packaging wheel": NAMES,
    "--upgrade pip setuptools wheel": NAMES,
    "curl -sIL {1} | head -1": NAMES,
    "mkdir -p ~/tmp && TMPDIR=~/tmp {1} install --no-build-isolation --no-cache-dir {2}": NAMES,
    "{1} cache purge": NAMES,
    "{1}--no-build-isolation PACKAGE": NAMES,
    '{1}="{2}" {3} install --no-build-isolation PACKAGE': NAMES,
    "CUDA_HOME=$CONDA_PREFIX {1} install --no-build-isolation PACKAGE": NAMES,
    "mkdir -p ~/tmp && TMPDIR=~/tmp {1}": NAMES,
    "{1}--no-build-isolation {2}": NAMES,
    "CUDACXX=/usr/local/cuda/bin/nvcc CUDA_HOME=/usr/local/cuda {1}": NAMES,
    "CC=gcc-N CXX=g++-N {1}": NAMES,
    "CC=gcc CXX=g++ {1}": NAMES,
    "NVCC_PREPEND_FLAGS='-ccbin g++-{1}' CC=gcc-{2} CXX=g++-{3} {4}": NAMES,
    "chcp 65001": NAMES,
    "df -h ${TMPDIR:-/tmp} ~/.cache": NAMES,
    "cargo clean -p torch-sys && LIBTORCH_USE_PYTORCH=1 cargo build": NAMES,
    "{1} {2} --index-url INDEX": NAMES,
    "--index-url INDEX": WORDS,
    "grep -rn '{1}' --include='*.cpp' --include='*.h' --include='*.cu' .": NAMES,
    "A build by CMake: {1}": PART,
    "set DISTUTILS_USE_SDK=1": NAMES,
    "set MAX_JOBS={1}": NAMES,
    'set "CUDA_HOME={1}"': NAMES,
    "C:\\Program Files\\NVIDIA GPU Computing Toolkit\\CUDA\\v{1}": NAMES,
    "CUDA_HOME=/usr/local/cuda-{1} {2}": NAMES,
    "reg add HKLM\\SYSTEM\\CurrentControlSet\\Control\\FileSystem /v LongPathsEnabled "
    "/t REG_DWORD /d 1 /f": NAMES,
    "git config --global core.longpaths true": NAMES,
    "free -g; df -h ${TMPDIR:-/tmp}": NAMES,
    "mkdir -p ~/tmp && TMPDIR=~/tmp {1} install --no-build-isolation PACKAGE": NAMES,
    "pwd; echo CUDA_HOME=$CUDA_HOME": NAMES,
    "readlink -f $(command -v nvcc); ls -d /usr/local/cuda*": NAMES,
    "set VSLANG=1033": NAMES,
    "where cl": NAMES,
    "streamlit run APP.py --server.fileWatcherType none": NAMES,
    "free -g": NAMES,
    "grep -rn '<long' --include='*.cpp' --include='*.h' --include='*.mm' .": NAMES,
    "cd {1} && {2} install -v --no-build-isolation -e .": NAMES,
    "g++ -print-file-name=libstdc++.so.6 | xargs strings | grep -o 'GLIBCXX_3[0-9.]*' | sort -V "
    "| tail -1": NAMES,
    "gem install {1} -- --with-torch-dir=/path/to/libtorch": NAMES,
    "cmake -S . -B build -LA | grep -iE 'torch_dir|cxx_flags'": NAMES,
    "The command": WORDS,
    "One of the two": WORDS,
    "Compiled on that machine": WORDS,
    "Where pip": WORDS,
    "The package index": WORDS,
    "Installing another": WORDS,
    "Built from source: take": WORDS,
    "the extension's own": WORDS,
    "{1}'s own": PART,
    "{1}up to {2}": PART,
    "{1}with code for the GPU in the text": PART,
    '{1} "torch=={2}"': NAMES,
    '{1} "torch=={2}" --index-url INDEX': NAMES,
    "{1} --index-url INDEX": NAMES,
    "export LIBRARY_PATH=/usr/local/cuda/lib64:$LIBRARY_PATH": NAMES,
    "sudo apt-get install {1}-dev-{2}": NAMES,
    "rm -rf ~/.cache/torch_extensions/*/{1}": NAMES,
    " --index-url INDEX": NAMES,
    '{1} "xformers=={2}"{3}': NAMES,
    '{1} "xformers>={2}"{3}': NAMES,
    "{1} config list; env | grep -i proxy": NAMES,
    "gcc {1}": NAMES,
    "readlink -f $(command -v {1}); g++ --version": NAMES,
    "from versions: ([^)\\n]{0,4000})": WORDS,
    "'not found'": WORDS,
    "[Cc]annot allocate memory": WORDS,
    "Invalid argument": WORDS,
    "Permission denied": WORDS,
    "WinError 193": WORDS,
    "forward compatibility": WORDS,
    "Arch conditional": WORDS,
    "wasn't build with CUDA": WORDS,
    "wasn't build|wasn't built|Operator wasn|device=cpu": WORDS,
    "capability|bf16 is only|dtype=": WORDS,
    "bf16 is only": WORDS,
    "(too new)": WORDS,
    "(too old)": WORDS,
    "not a valid Win32": WORDS,
    "not page-aligned": WORDS,
    "not yet initialized": WORDS,
    "required|not found|No such file": WORDS,
    "the provided PTX was compiled with an unsupported toolchain": WORDS,
    "set {1}=XY": NAMES,
    "set FLASH_ATTENTION_FORCE_BUILD=TRUE": NAMES,
    "rmdir /s /q build": NAMES,
    '{1} && TORCH_CUDA_ARCH_LIST="{2}" {3} setup.py build install': NAMES,
    "NVCC_APPEND_FLAGS=-gencode arch=compute_XY,code=sm_XY": NAMES,
    "{1} --version; ls -d /usr/local/cuda*": NAMES,
    "{1}={2}/bin/ptxas {3} YOUR_PROGRAM.py": NAMES,
}


def dummies(template: str) -> str:
    """A template with a word of no language in each gap."""
    return re.sub(r"\{(\d)\}", r"Q\1", template)


def words() -> Words:
    """The shipped table, which also knows what the dummies are called."""
    named = {f"Q{number}": f"\u95ee{number}" for number in range(10)}
    return words_of({**TABLE["labels"], **named}, TABLE["sentences"])


def is_said(text: str, table: Words) -> bool:
    """Whether a text is Chinese but for names; the end of a sentence is known after its start."""
    said = table.say((f"Q9{text}" if text[0] in " ,:;." else text).rstrip(" "))
    return HAN.search(said) is not None and not is_prose(said.replace("not found", "_"))


@pytest.mark.parametrize("room", ["why", "rules"])
def test_every_sentence_of_the_sources_is_in_the_table(room: str) -> None:
    table = words()
    missing = [
        f"{path.name}: {text}"
        for path in sorted((PACKAGE / room).rglob("*.py"))
        for text in sentences_in(path)
        if text.isascii() and text not in EXCEPTIONS and not is_said(dummies(text), table)
    ]
    assert not missing, "add to data/zh.json:\n" + "\n".join(missing)


def test_the_rows_of_the_table_are_sound() -> None:
    english = [row[0] for row in TABLE["sentences"]]
    assert len(english) == len(set(english))
    for old, new in [*TABLE["sentences"], *TABLE["labels"].items()]:
        parse_template(old, new)
        assert re.search("[\u3000-\uffef]|ABI", new) and old.isascii(), old
        # A name in quotes stands in both.
        assert re.findall(r"--[a-z-]+|[A-Z]+_[A-Z_]+", old) == sorted_as(old, new), old


def sorted_as(old: str, new: str) -> list[str]:
    """The options and variables of a translation, in the order of the original."""
    found = re.findall(r"--[a-z-]+|[A-Z]+_[A-Z_]+", new)
    order = re.findall(r"--[a-z-]+|[A-Z]+_[A-Z_]+", old)
    return sorted(found, key=lambda name: order.index(name) if name in order else -1)


def test_every_kind_code_and_owner_has_a_word() -> None:
    say = speaker("zh")
    for text in (*KIND_WORDS.values(), *CODE_WORDS.values(), "owner", "exported by", "see also"):
        assert HAN.search(say(text)), text
    for owner in ("libc", "libstdc++", "cudart", "python", "cuda-driver", "hip"):
        assert HAN.search(say(title_of(owner))), owner


ROWS = [
    json.loads(line)
    for path in sorted((Path(__file__).parent / "data").glob("cases_*.jsonl"))
    for line in path.read_text(encoding="utf-8").splitlines()
]


def test_public_reports_are_answered_in_chinese(bare: str) -> None:
    say = speaker("zh")
    left = []
    for row in ROWS:
        report = explain([row["error"]], bare, {})
        for answer in report.answers:
            changes = [other.change for other in answer.overloads if other.change]
            for text in (answer.cause, *answer.notes, *changes):
                said = say(text)
                if not HAN.search(said) or is_prose(said.replace("not found", "_")):
                    left.append(f"{row['id']}: {said}")
    assert not left, "\n".join(left)


def test_why_in_chinese(bare: str) -> None:
    text = "undefined symbol: _ZN3c104cuda9SetDeviceEi"
    result = RUNNER.invoke(main, ["why", "--python", bare, "--lang", "zh", text])
    assert result.exit_code == 0
    for label in (
        "\u662f\u4ec0\u4e48",
        "\u5c5e\u4e8e",
        "\u5bfc\u51fa\u8005",
        "\u542b\u4e49",
        "\u8bf7\u8f93\u5165",
    ):
        assert re.search(rf"^{label} ", result.output, re.MULTILINE)
    assert "torch 2.1.0 \u2013 2.2.2 \u5bfc\u51fa\u5b83" in result.output
    assert "c10::cuda::SetDevice(int)" in result.output and "[FA201]" in result.output
    answered = RUNNER.invoke(main, ["why", "--python", bare, "--format", "json", text])
    commands = json.loads(answered.output)["answers"][0]["help"]
    assert commands and all(command in result.output for command in commands)


def test_the_locale_chooses_and_json_stays(bare: str) -> None:
    arguments = ["why", "--python", bare, "_ZN3c104cuda9SetDeviceEi"]
    chinese = RUNNER.invoke(main, arguments, env={"LC_ALL": "zh_CN.UTF-8", "LANGUAGE": ""})
    assert "\u542b\u4e49" in chinese.output
    plain_text = RUNNER.invoke(main, arguments, env={"LC_ALL": "C", "LANGUAGE": "zh"})
    assert plain_text.output.isascii() or "means" in plain_text.output
    documents = [
        RUNNER.invoke(main, [*arguments, "--format", "json", "--lang", lang]).output
        for lang in ("en", "zh")
    ]
    assert documents[0] == documents[1]
    validator().validate(json.loads(documents[0]))


def test_chinese_lines_are_as_wide_as_the_window() -> None:
    cause = "\u8be5\u6587\u4ef6\u662f\u4e3a torch 2.4.0 \u6784\u5efa\u7684\uff08\u5426" * 12
    answer = Answer(kind="symbol-drift", code="FA201", symbol=None, demangled=None, owner=None,
                    provider=None, exported_by=(), overloads=(), direction="none", cause=cause,
                    help=(), confidence="high", source_line=None)  # fmt: skip
    lines = answer_lines(answer, "here", painter(False), 60, speaker("zh"))
    assert len(lines) > 8
    for line in lines:
        assert columns(line) <= 62  # a mark that may not begin a line hangs over
        assert not line.endswith("\uff08") and line[12:13] != "\uff0c"


def test_what_has_no_translation_stays_as_it_is() -> None:
    say = speaker("zh")
    for text in ("", "x", "/tmp/the file is not there", "the frobnicator has a hiccup", "a, b; c"):
        assert say(text) == text
    mixed = say("The frobnicator is worn out. A newer patch release of the same Python is enough.")
    assert mixed.startswith("The frobnicator is worn out. ") and HAN.search(mixed)
    assert speaker("en") is plain and plain("means") == "means"


def test_names_in_gaps_are_kept() -> None:
    table = words_of({}, [["{1} needs {2}", "{1}\u9700\u8981{2}"], ["{1!} on", "{1}\u8d77"]])
    assert table.say("a.so needs /x/the b.so") == "a.so \u9700\u8981 /x/the b.so"
    assert table.say("go on") == "go on"
    with pytest.raises(ValueError, match="do not agree"):
        parse_template("{1} is", "{2}")
    with pytest.raises(ValueError, match="divides"):
        parse_template("{1}{2} is", "{1}")


@pytest.mark.parametrize(
    "text", ["a it needs, which ; ", ", ", "; ", " (", "torch it: ", ". ", "A is. ", "{1} is {2}: "]
)
def test_hostile_texts_cost_little(text: str) -> None:
    table = words_of(TABLE["labels"], TABLE["sentences"])
    start = time.process_time()
    table.say(text * (6000 // len(text)))
    table.say(text * 100_000)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("width", [60, 100])
@pytest.mark.parametrize("verbose", [False, True])
def test_inspect_in_chinese_is_laid_out_as_in_english(width: int, verbose: bool) -> None:
    targets = (samples.HEALTHY, samples.FAILING, samples.UNREADABLE, samples.IN_WHEEL)
    for chosen in [*((target,) for target in targets), targets]:
        report = samples.report(*chosen)
        english = inspect_text(report, False, verbose, width)
        chinese = inspect_text(report, False, verbose, width, say=speaker("zh"))
        assert english.endswith("\n") and HAN.search(chinese) and not HAN.search(english)
        # Codes, names and commands are the same, and stand in the same order.
        for kept in (r"\[FA\d{3}\]", r"-m pip .*", r"_Z\w+", r"\bsm_\d+", r"\.dynsym\[\d+\]"):
            assert re.findall(kept, chinese) == re.findall(kept, english)
        for line in chinese.splitlines():
            # A name or a command that is wider than the window has a line of its own.
            assert columns(line) <= width + 2 or re.search(r"\S{30}|= |\w\(", line), line


def test_colours_stand_at_the_labels(bare: str) -> None:
    arguments = ["why", "--python", bare, "--lang", "zh", "--color", "_ZN3c104cuda9SetDeviceEi"]
    coloured = RUNNER.invoke(main, arguments).output
    arguments[5] = "--no-color"
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == RUNNER.invoke(main, arguments).output
    assert "\x1b[1;32m\u8bf7\u8f93\u5165\x1b[0m" in coloured


@pytest.mark.parametrize(
    "command", [["env"], ["wheels", "--torch", "2.4.0", "--cuda", "12", "--abi", "FALSE"]]
)
def test_env_and_wheels_speak_chinese(command: list[str], bare: str) -> None:
    result = RUNNER.invoke(main, [*command, "--python", bare, "--lang", "zh"])
    assert result.exit_code in (0, 1, 4) and HAN.search(result.output)
    document = [
        RUNNER.invoke(main, [*command, "--python", bare, "--lang", lang, "--format", "json"])
        for lang in ("en", "zh")
    ]
    assert document[0].output == document[1].output and not HAN.search(document[0].output)
