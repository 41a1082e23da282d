"""Pasted text: the same failure in every dress that it comes in.

The undressed texts are those of glibc 2.36, musl, dyld, GNU ld, lld and CPython.
"""

from __future__ import annotations

import json

import pytest

from fa_forensics.facts.paste import Mention, read_paste

DEVICE = "_ZN3c104cuda9SetDeviceEi"
FILE = "/opt/conda/lib/python3.10/site-packages/flash_attn_2_cuda.cpython-310-x86_64-linux-gnu.so"
ERROR = f"ImportError: {FILE}: undefined symbol: {DEVICE}"
TRACEBACK = f"""Traceback (most recent call last):
  File "/srv/app/run.py", line 3, in <module>
    from flash_attn import flash_attn_func
  File "/opt/conda/lib/python3.10/site-packages/flash_attn/__init__.py", line 10, in <module>
    import flash_attn_2_cuda as flash_attn_cuda
{ERROR}"""
LONG = (
    "_ZN3c107WarningC1ESt7variantIJNS0_11UserWarningENS0_18DeprecationWarningEEERKNS_14Source"
    "LocationENSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEb"
)


def first(text: str) -> Mention:
    return read_paste(text).mentions[0]


def prefixed(prefix: str) -> str:
    return "\n".join(prefix + line for line in TRACEBACK.splitlines())


DRESSES = {
    "the error alone": ERROR,
    "a traceback": TRACEBACK,
    "without the exception's name": f"{FILE}: undefined symbol: {DEVICE}",
    "torchrun's ranks": prefixed("[rank3]: "),
    "torchrun's default ranks": prefixed("[default3]:"),
    "mpirun": prefixed("[1,3]<stderr>:"),
    "srun -l": prefixed("3: "),
    "docker compose": prefixed("vllm-1  | "),
    "docker compose and ranks": prefixed("worker_2 | [rank3]: "),
    "vllm's engine": prefixed("(EngineCore pid=4711) ERROR 08-20 14:02:10 [core.py:586] "),
    "vllm's older engine": prefixed("ERROR 07-11 10:00:00 engine.py:190] "),
    "ray": prefixed("(RayWorkerWrapper pid=1234, ip=10.0.0.1) "),
    "ray in colour": prefixed("\x1b[36m(train_fn pid=123)\x1b[0m "),
    "journald": prefixed("Aug 20 14:02:10 gpu-7 vllm[4711]: "),
    "kubernetes": prefixed("2024-08-20T14:02:10.123456789Z stderr F "),
    "GitHub Actions": prefixed("2024-08-20T14:02:10.1234567Z "),
    "python's logging": prefixed("2024-08-20 14:02:10,123 - vllm.worker - ERROR - "),
    "loguru": prefixed("2024-08-20 14:02:10.123 | ERROR    | app.main:run:42 - "),
    "glog": prefixed("E0820 14:02:10.123456 4711 worker.cc:12] "),
    "buildkit": prefixed("#12 34.56 "),
    "mail": prefixed("> "),
    "mail, answered twice": prefixed(">> > "),
    "pytest": prefixed("E   "),
    "Jupyter": TRACEBACK.replace("ImportError", "\x1b[0;31mImportError\x1b[0m").replace(
        "undefined", "\x1b[1;32mundefined\x1b[0m"
    ),
    "a notebook's file":
        '"\\u001b[0;31mImportError\\u001b[0m: ' + f'{FILE}: undefined symbol: {DEVICE}",',
    "colours without their escape": f"[0;31mImportError[0m: {FILE}: undefined symbol: {DEVICE}[0m",
    "carriage returns": TRACEBACK.replace("\n", "\r\n"),
    "a progress bar before": f" 12%|#   | 1/8\r 25%|##  | 2/8\r{ERROR}",
    "Markdown code": f"I get `{ERROR}` since yesterday",
    "Markdown with escapes": ERROR.replace("_", r"\_"),
    "a code block": f"```\n{TRACEBACK}\n```",
    "HTML": f"<pre><code>{ERROR}</code></pre>".replace("'", "&#39;"),
    "HTML entities": f"&quot;{ERROR}&quot;",
    "an address": ERROR.replace(" ", "%20").replace(":", "%3A"),
    "an address, encoded twice": ERROR.replace(" ", "%2520").replace(":", "%253A"),
    "a JSON log": '{"log":"' + ERROR + '\\n","stream":"stderr","time":"2024-08-20T14:02:10Z"}',
    "a traceback in JSON": json.dumps({"message": TRACEBACK}),
    "a repr":
        f"Failed to import from flash_attn with ImportError('{FILE}: undefined symbol: "
        f"{DEVICE}')",
    "fullwidth punctuation": ERROR.replace(": ", "\uff1a"),
    "typographic quotes": f"\u201c{ERROR}\u201d",
    "Chinese around it": f"\u62a5\u9519\u4fe1\u606f\uff1a{ERROR}"
    "\u3002\u8bf7\u95ee\u600e\u4e48\u89e3\u51b3\uff1f",
    "Chinese touching the path": f"\u9519\u8bef{FILE}: undefined symbol: {DEVICE}"
    "\uff0c\u6c42\u52a9",
    "Korean around it": f"\uc5d0\ub7ec\uac00 \ub098\uc694 {ERROR} \ub3c4\uc640\uc8fc\uc138\uc694",
    "a sentence": f"After upgrading I see {FILE}: undefined symbol: {DEVICE}. What now?",
    "transformers around it": "RuntimeError: Failed to import transformers.models.llama because of "
    f"the following error (look up to see its traceback):\n{FILE}: undefined symbol: {DEVICE}",
    "wrapped after the path": f"ImportError: {FILE}:\nundefined symbol: {DEVICE}",
    "wrapped before the symbol": f"ImportError: {FILE}: undefined symbol:\n{DEVICE}",
    "no-break spaces": ERROR.replace(" ", "\xa0"),
    "zero-width spaces": ERROR.replace("symbol: ", "symbol: \u200b"),
    "UTF-16": ERROR.encode("utf-16-le").decode("latin-1"),
    "Windows-1252 quotes": f"\xe2\u20ac\u0153{ERROR}\xe2\u20ac\x9d",
    "a lazy binding": f"python: symbol lookup error: {FILE}: undefined symbol: {DEVICE}",
    "rich's frame": f"\u2502 {ERROR} \u2502",
}  # fmt: skip


@pytest.mark.parametrize("dress", DRESSES)
def test_the_symbol_and_the_file_are_found_in_every_dress(dress: str) -> None:
    mention = first(DRESSES[dress])
    assert (mention.what, mention.symbol, mention.file) == ("undefined-symbol", DEVICE, FILE)


@pytest.mark.parametrize(
    ("dress", "stream"),
    [
        ("torchrun's ranks", "rank 3"),
        ("torchrun's default ranks", "rank 3"),
        ("mpirun", "rank 3"),
        ("srun -l", "rank 3"),
        ("docker compose", "container vllm-1"),
        ("docker compose and ranks", "container worker_2, rank 3"),
        ("vllm's engine", "EngineCore pid=4711"),
        ("ray", "RayWorkerWrapper pid=1234, ip=10.0.0.1"),
        ("ray in colour", "train_fn pid=123"),
        ("journald", "vllm[4711]"),
        ("a traceback", ""),
        ("mail", ""),
    ],
)
def test_whose_line_it_is_is_told(dress: str, stream: str) -> None:
    assert first(DRESSES[dress]).stream == stream


@pytest.mark.parametrize(
    "dress", ["a traceback", "vllm's engine", "docker compose and ranks", "mail"]
)
def test_the_import_that_failed_is_found_above(dress: str) -> None:
    assert first(DRESSES[dress]).detail["import"] == "flash_attn_2_cuda"


def test_the_line_and_its_number_are_those_of_the_paste() -> None:
    mention = first("hello\r\n\r\n" + TRACEBACK.replace("\n", "\r\n"))
    assert mention.number == 8
    assert mention.line == ERROR


SYMBOLS = {
    f"{FILE}: undefined symbol: {DEVICE}": (DEVICE, None),
    f"undefined symbol: {DEVICE} (./x.so)": (DEVICE, None),
    f"undefined symbol {DEVICE}": (DEVICE, None),
    f"undefined symbol '{DEVICE}'": (DEVICE, None),
    f"undefined symbol: `{DEVICE}`": (DEVICE, None),
    f"Undefined Symbol: {DEVICE}.": (DEVICE, None),
    f"undefined symbol: {DEVICE}, aborting": (DEVICE, None),
    "undefined symbol: c10::cuda::SetDevice(int)": ("c10::cuda::SetDevice(int)", None),
    "undefined symbol: c10::MessageLogger::stream[abi:cxx11]()": (
        "c10::MessageLogger::stream[abi:cxx11]()", None,
    ),
    f"undefined symbol: c10::cuda::SetDevice(int) (i.e. {DEVICE})": (DEVICE, None),
    "undefined symbol: typeinfo for at::Type": ("typeinfo for at::Type", None),
    "undefined symbol: vtable for torch::autograd::Node in x": (
        "vtable for torch::autograd::Node", None,
    ),
    "undefined symbol: double* at::TensorBase::data_ptr<double>() const": (
        "double* at::TensorBase::data_ptr<double>() const", None,
    ),
    "undefined symbol: c10::operator<<(std::ostream&, c10::Device const&) when loading": (
        "c10::operator<<(std::ostream&, c10::Device const&)", None,
    ),
    "undefined symbol: operator new(unsigned long)": ("operator new(unsigned long)", None),
    "undefined symbol: at::_ops::zeros::call(c10::ArrayRef<long>, c10::optional<bool>), help": (
        "at::_ops::zeros::call(c10::ArrayRef<long>, c10::optional<bool>)", None,
    ),
    "undefined symbol: cudaLibraryGetKernel, version libcudart.so.12": (
        "cudaLibraryGetKernel", "libcudart.so.12",
    ),
    "undefined symbol: __nvJitLinkAddData_12_1@libnvJitLink.so.12": (
        "__nvJitLinkAddData_12_1", "libnvJitLink.so.12",
    ),
    "undefined symbol: memcpy@@GLIBC_2.14": ("memcpy", "GLIBC_2.14"),
    "libcublas.so.11: symbol cublasLtHSHMatmulAlgoInit version libcublasLt.so.11 not defined in "
    "file libcublasLt.so.11 with link time reference": (
        "cublasLtHSHMatmulAlgoInit", "libcublasLt.so.11",
    ),
    f"_C.so: undefined symbol: {DEVICE}\u5417": (DEVICE, None),
    f"/x/libx.so: undefined symbol: _{DEVICE[1:]}": (DEVICE, None),
    "Error relocating /x/libx.so: fcntl64: symbol not found": ("fcntl64", None),
}  # fmt: skip


@pytest.mark.parametrize("text", SYMBOLS)
def test_a_symbol_is_read_up_to_its_end(text: str) -> None:
    mention = first(text)
    assert (mention.symbol, mention.version) == SYMBOLS[text]


@pytest.mark.parametrize("text", ["_ZN3c1013MessageLog...", "_ZN3c1013MessageLog\u2026"])
def test_a_symbol_that_somebody_cut_off_says_so(text: str) -> None:
    mention = first(f"x.so: undefined symbol: {text}")
    assert mention.symbol == "_ZN3c1013MessageLog"
    assert mention.detail["cut"] == "yes"


@pytest.mark.parametrize("width", [40, 57, 72, 80, 100, 120])
@pytest.mark.parametrize("prefix", ["", "> ", "[rank0]: "])
def test_a_symbol_that_a_terminal_broke_is_put_together(width: int, prefix: str) -> None:
    text = f"ImportError: /x/selective_scan_cuda.so: undefined symbol: {LONG}"
    room = width - len(prefix)
    lines = [prefix + text[at : at + room] for at in range(0, len(text), room)]
    mention = first("\n".join([*lines, prefix + "Please help", ""]))
    assert mention.symbol == LONG


def test_what_follows_a_whole_symbol_is_not_taken_for_its_rest() -> None:
    assert first(f"x.so: undefined symbol: {DEVICE}\ndone\n").symbol == DEVICE
    assert first(f"x.so: undefined symbol: {DEVICE}\n{DEVICE}").symbol == DEVICE


@pytest.mark.parametrize(
    "text",
    ["Aborted (core dumped)   [no undefined symbol]", "there is no undefined symbol in it",
     "ldd -r shows without undefined symbols", "", "\n\n", "hello world", "it works, thanks"],
)  # fmt: skip
def test_where_none_is_undefined_none_is_found(text: str) -> None:
    assert [m for m in read_paste(text).mentions if m.what == "undefined-symbol"] == []


def test_dyld_names_lose_their_extra_underscore() -> None:
    text = f"""ImportError: dlopen(/x/vllm/_C.abi3.so, 0x0002): Symbol not found: _{DEVICE}
  Referenced from: <8B3C9A9E-1111-2222-3333-444455556666> /x/vllm/_C.abi3.so
  Expected in:     <0A0B0C0D-1111-2222-3333-444455556666> /x/torch/lib/libc10.dylib"""
    mention = first(text)
    assert (mention.what, mention.symbol) == ("symbol-not-found-macho", DEVICE)
    assert mention.file == "/x/vllm/_C.abi3.so"
    assert mention.library == "/x/torch/lib/libc10.dylib"
