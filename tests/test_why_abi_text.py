"""``why`` on numpy's and pybind11's binary interfaces, linkers, and files that do not load."""

from __future__ import annotations

import pytest
from support.asking import first, said

SITE = "/x/lib/python3.10/site-packages"


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        # Sizes as __basicksize__ of these releases has them: dtype 96 before 2.0, 88 since.
        ("numpy.dtype size changed, may indicate binary incompatibility. Expected 96 from C "
         "header, got 88 from PyObject", '"numpy<2"'),
        ("numpy.dtype size changed, may indicate binary incompatibility. Expected 88 from C "
         "header, got 96 from PyObject", '"numpy>=2.0"'),
        ("numpy.ndarray size changed, may indicate binary incompatibility. Expected 88 from C "
         "header, got 80 from PyObject", '"numpy>=1.20,<2"'),
        ("numpy.ndarray size changed, may indicate binary incompatibility. Expected 96 from C "
         "header, got 88 from PyObject", '"numpy>=1.22,<2"'),
        ("numpy.ufunc size changed, may indicate binary incompatibility. Expected 216 from C "
         "header, got 192 from PyObject", '"numpy>=1.16,<2"'),
        ("RuntimeError: module compiled against API version 0xe but this version of numpy is 0xd",
         '"numpy>=1.20,<2"'),
        ("RuntimeError: module compiled against ABI version 0x1000009 but this version of numpy "
         "is 0x2000000", '"numpy<2"'),
        ("UserWarning: Failed to initialize NumPy: _ARRAY_API not found", '"numpy<2"'),
        ("UserWarning: Failed to initialize NumPy: No module named 'numpy'", "install numpy"),
    ],
)  # fmt: skip
def test_numpys_numbers_tell_which_numpy_is_wanted(line: str, wanted: str) -> None:
    answer = first(f"ValueError: {line}")
    assert (answer.code, answer.owner) == ("FA891", "numpy")
    assert wanted in answer.help[0]


def test_a_larger_struct_within_numpy_1_is_a_warning() -> None:
    answer = first(
        "RuntimeWarning: numpy.ufunc size changed, may indicate binary incompatibility. Expected "
        "192 from C header, got 216 from PyObject"
    )
    assert "warning" in answer.cause and answer.confidence == "medium"


def test_numpy_that_does_not_answer_has_two_causes() -> None:
    answer = first("ImportError: numpy.core.multiarray failed to import")
    assert answer.confidence == "medium" and "Two causes" in answer.cause


def test_the_package_that_was_imported_is_named_and_torch_is_told_apart() -> None:
    warning = "A module that was compiled using NumPy 1.x cannot be run in\nNumPy 2.0.1 as it may\n"
    step = 'Traceback (most recent call last):  File "%s", line 9, in <module>\n    import spam\n'
    assert "spam" in said(first(warning + step % f"{SITE}/spam/__init__.py"))
    for path in (f"{SITE}/torch/functional.py", r"C:\x\Lib\site-packages\torch\_sub\tensor.py"):
        answer = first(warning + step % path)
        assert "This torch" in answer.cause and "warning" in answer.cause


@pytest.mark.parametrize(
    ("line", "code", "words"),
    [
        ('ImportError: generic_type: type "Loss" referenced unknown base type "torch::nn::Module"',
         "FA893", "torch::nn::Module"),
        ('ImportError: generic_type: type "Reducer" is already registered!', "FA893", "twice"),
        ("SystemError: initialization of _C failed without raising an exception", "FA892", "_C"),
        ("ImportError: bad magic number in 'spam': b'B\\r\\r\\n'", "FA892", "Python 3.7"),
        ("ImportError: Interpreter change detected - this module can only be loaded into one "
         "interpreter per process.", "FA892", "second time"),
        ("Fatal Python error: PyThreadState_Get: no current thread", "FA892", "two Pythons"),
        ("TypeError: C function spam._eggs.f has wrong signature (expected void (int), got int)",
         "FA892", "spam"),
        ("ImportError: dynamic module does not define init function (init_C)", "FA403",
         "Python 2"),
        ("ImportError: dynamic module does not define module export function (PyInit__spam)",
         "FA403", "torch.utils.ffi"),
    ],
)  # fmt: skip
def test_modules_that_do_not_start(line: str, code: str, words: str) -> None:
    answer = first(line)
    assert (answer.kind, answer.code) == ("python-abi", code)
    assert words in said(answer)


def test_a_type_of_torch_registered_twice_while_torch_is_imported_is_torchs() -> None:
    answer = first(
        ">>> import torch\nterminate called after throwing an instance of 'std::runtime_error'\n"
        '  what():  generic_type: cannot initialize type "Work": an object with that name is '
        "already defined\nAborted"
    )
    assert (answer.code, answer.owner, answer.confidence) == ("FA893", "torch", "medium")


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("/usr/bin/ld: libspam.a(x.o): relocation R_X86_64_32 against `.rodata' can not be used "
         "when making a shared object; recompile with -fPIC", "elf-loader", "libspam.a"),
        ("/usr/bin/ld: x.o: relocation R_AARCH64_ADR_PREL_PG_HI21 against symbol `stdout' which "
         "may bind externally can not be used when making a shared object; recompile with -fPIC",
         "elf-loader", "-fPIC"),
        ("/usr/bin/ld: /opt/libpython3.11.a(abstract.o): relocation R_X86_64_32S against symbol "
         "`_Py_NoneStruct' can not be used when making a PIE object; recompile with -fPIE",
         "elf-loader", "--enable-shared"),
        ("x.o:(.eh_frame+0x20): relocation truncated to fit: R_X86_64_PC32 against `.text'",
         "elf-loader", "TORCH_CUDA_ARCH_LIST"),
        ("ld.lld: error: x.o:(.text+0x1): relocation R_X86_64_PC32 out of range: 2200000000 is "
         "not in [-2147483648, 2147483647]", "elf-loader", "2 GB"),
        ("/usr/bin/ld: failed to convert GOTPCREL relocation; relink with --no-relax",
         "elf-loader", "--no-relax"),
        ("/usr/bin/ld: x.o: undefined reference to symbol 'dlopen@@GLIBC_2.2.5'\n/usr/bin/ld: "
         "/lib/x86_64-linux-gnu/libdl.so.2: error adding symbols: DSO missing from command line",
         "missing-library", "LDFLAGS=-ldl"),
        ("/usr/bin/ld: /opt/libspam.so: file not recognized: file truncated", "damaged-file",
         "cut off"),
        ("/usr/bin/ld: x.o: error adding symbols: File in wrong format", "wrong-machine",
         "another machine"),
        ("/usr/bin/ld: skipping incompatible /usr/local/cuda/lib/libcublas.so when searching for "
         "-lcublas\n/usr/bin/ld: cannot find -lcublas", "wrong-machine", "libcublas.so"),
        ("/usr/bin/ld: libspam.a(x.o): unrecognized relocation (0x2a) in section `.text'",
         "elf-loader", "binutils"),
        ("collect2: fatal error: ld terminated with signal 7 [Bus error]", "damaged-file", "full"),
    ],
)  # fmt: skip
def test_what_linkers_refuse_is_told_apart(text: str, kind: str, words: str) -> None:
    answer = first(text)
    damaged = "libspam.so: file not recognized" in text  # a library, and no object of the build
    assert (answer.kind, answer.code) == (kind, "FA102" if damaged else "FA883")
    assert words in said(answer)


def test_a_library_that_was_passed_over_for_another_is_no_failure() -> None:
    line = "/usr/bin/ld: skipping incompatible /usr/lib/libm.so when searching for -lm"
    assert first(line).kind == "unrecognised"


def test_glibc_private_is_no_release() -> None:
    answer = first(
        "ImportError: /lib/x86_64-linux-gnu/libpthread.so.0: version `GLIBC_PRIVATE' not found "
        "(required by /opt/app/lib/librt.so.1)"
    )
    assert (answer.kind, answer.owner, answer.direction) == ("versioned-symbol", "libc", "unknown")
    assert "no release" in answer.cause and "librt.so.1" in answer.cause
    named = first("/opt/app/lib/libdl.so.2: undefined symbol: _dl_x, version GLIBC_PRIVATE")
    assert "no release" in named.cause


def test_the_systems_name_tells_its_glibc() -> None:
    line = "/lib64/libc.so.6: version `GLIBC_2.32' not found (required by /opt/spam.so)\n\nOS: "
    old, new = first(line + "CentOS Linux 7 (Core)"), first(line + "Ubuntu 22.04.3 LTS")
    assert "glibc 2.17" in old.cause and old.confidence == "high"
    assert "is enough" in new.cause and new.confidence == "medium"


def test_a_cached_build_of_another_node_is_removed_not_rebuilt() -> None:
    answer = first(
        "ImportError: /lib64/libc.so.6: version `GLIBC_2.34' not found (required by "
        "/home/u/.triton/cache/ab12/cuda_utils.so)"
    )
    assert answer.help[0] == "rm -r /home/u/.triton/cache"


@pytest.mark.parametrize(
    ("line", "kind", "words"),
    [
        ("Inconsistency detected by ld.so: dl-version.c: 205: _dl_check_map_versions: Assertion "
         "`needed != NULL' failed!", "damaged-file", "patchelf"),
        ("Inconsistency detected by ld.so: ../elf/dl-tls.c: 597: _dl_allocate_tls_init: Assertion "
         "`listp != NULL' failed!", "elf-loader", "2.34"),
        (f"ImportError: {SITE}/spam.so: cannot restore segment prot after reloc: Permission denied",
         "elf-loader", "text relocations"),
        ("OSError: /usr/lib/libcuda.so.1: cannot read file data: Is a directory", "damaged-file",
         "a directory"),
        ("x: error while loading shared libraries: libspam.so.1: ELF load command alignment not "
         "page-aligned", "elf-loader", "max-page-size=65536"),
        (f"ImportError: {SITE}/spam.so: ELF load command address/offset not page-aligned",
         "elf-loader", "patchelf"),
        ("<jemalloc>: Unsupported system page size", "elf-loader", "jemalloc"),
        (f"OSError: [Errno 8] Exec format error: '{SITE}/triton/backends/nvidia/bin/ptxas'",
         "wrong-machine", "ptxas"),
        ("ImportError: dlopen(/o/x.so, 2): tried: '/o/x.so' (mach-o file, but is an incompatible "
         "architecture (have 'x86_64', need 'arm64'))", "wrong-machine", "x.so is for x86_64"),
        (f"ImportError: {SITE}/spam/_spam_wrap.\nso: wrong ELF class: ELFCLASS32", "wrong-machine",
         "_spam_wrap.so"),
    ],
)  # fmt: skip
def test_what_the_loader_refuses_is_told_apart(line: str, kind: str, words: str) -> None:
    answer = first(line)
    assert answer.kind == kind and words in said(answer)


def test_a_git_lfs_pointer_in_the_text_is_read() -> None:
    pointer = "$ cat lib/libspam.so\nversion https://git-lfs.github.com/spec/v1\noid sha256:0f\n"
    pointer += "size 4711\n"
    alone = first(pointer)
    assert "Git LFS pointer" in alone.cause and "4711" in said(alone)
    answer = first(pointer + "OSError: /opt/lib/libspam.so: invalid ELF header")
    assert answer.help[1] == "cd /opt/lib && git lfs install && git lfs pull"


def test_a_glibc_that_counts_libraries_is_not_tuned() -> None:
    answer = first(
        "    import spam\nImportError: dlopen: cannot load any more object with static TLS"
    )
    assert "GLIBC_TUNABLES" not in said(answer) and "import spam,torch" in answer.help[0]


def test_a_windows_library_of_another_package_is_not_torchs() -> None:
    answer = first(
        'Traceback (most recent call last):\n  File "C:\\p\\site-packages\\torch\\storage.py", '
        'line 1, in <module>\n  File "C:\\p\\site-packages\\numpy\\_distributor_init.py", line '
        "26, in <module>\nOSError: [WinError 193] %1 is not a valid Win32 application"
    )
    assert answer.owner == "numpy" and "--no-cache-dir numpy" in said(answer)


def test_paddles_name_for_a_type_of_cuda_is_torch_and_paddle_in_one_process() -> None:
    """Paddle issue 56812; pybind.cc: py::class_<gpuDeviceProp>(m, "_gpuDeviceProperties")."""
    error = 'ImportError: generic_type: type "%s" is already registered!'
    alone = first(error % "_gpuDeviceProperties")
    assert alone.owner == "paddle" and "two places" not in said(alone)
    assert "process for each" in said(alone) and "paddlepaddle" in said(alone)
    named = first("importing torch and paddle together: " + error % "_CudaDeviceProperties")
    assert named.owner == "paddle" and named.confidence == "medium"
    assert first(error % "Reducer").owner != "paddle"


def test_no_relax_is_for_the_message_that_asks_for_it() -> None:
    """ld 2.40, a section of 2.3 GB: the same "truncated to fit" with the flag and without it."""
    text = "x.o:(.text+0x7): relocation truncated to fit: R_X86_64_REX_GOTPCRELX against `.nv'"
    assert "--no-relax" not in said(first(text))
