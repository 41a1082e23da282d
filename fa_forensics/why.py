"""``why``: one symbol explained: whose it is, who exports it here, what that means."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from fa_forensics import __version__
from fa_forensics.errors import ForensicsError, UsageError
from fa_forensics.facts.demangle import mentions_cxx11, mentions_old_string, readable
from fa_forensics.facts.dependents import files_that_need
from fa_forensics.facts.elf.dynamic import gnu_hash
from fa_forensics.facts.environment import Environment, find_environment
from fa_forensics.facts.owner import (
    OWN,
    PYTHON,
    STABLE,
    is_torch,
    libraries_of,
    owner_of,
    owner_of_library,
    title_of,
)
from fa_forensics.facts.symbol_text import (
    SymbolText,
    mangled_scope,
    mangled_special,
    parse_symbol,
)
from fa_forensics.report import Answer, Overload, WhyReport
from fa_forensics.resolve.link import Linker
from fa_forensics.resolve.nearest import OTHER_FLAVOUR, SAME_NAME, NameIndex, Near
from fa_forensics.resolve.process import LoadedObject
from fa_forensics.resolve.target import open_linker, torch_names
from fa_forensics.views import environment_view

#: Symbol versions and the answer's kind: GLIBC_2.38 is a matter of glibc, whoever owns it.
_VERSION_KINDS = (("GLIBCXX_", "libstdcxx"), ("CXXABI_", "libstdcxx"), ("GLIBC_", "glibc"))

#: Owners whose libraries only CUDA builds of torch have.
_CUDA_OWNERS = ("torch/c10_cuda", "torch/torch_cuda")


def explain(
    texts: Sequence[str], python: str | None, environ: Mapping[str, str] | None = None
) -> WhyReport:
    """Explain symbols in an environment.

    Raises ``UsageError`` when a text is no symbol name, ``EnvironmentNotFound`` as
    ``find_environment`` does.
    """
    symbols = []
    for text in texts:
        symbol = parse_symbol(text)
        if symbol is None:
            raise UsageError(
                f"{text[:200]!r} is no symbol name",
                'paste the name that follows "undefined symbol:" in the error, whole; for an error '
                "without a symbol, inspect the file itself: fa-forensics inspect FILE_OR_PACKAGE",
            )
        symbols.append(symbol)
    environment = find_environment(python, None, os.environ if environ is None else environ)
    linker = None
    problem = environment.torch_problem if environment.torch is None else None
    try:
        linker = open_linker(environment)
    except ForensicsError as error:
        problem = error.message
    try:
        answers = tuple(_answer(symbol, environment, linker, problem) for symbol in symbols)
    finally:
        if linker is not None:
            linker.close()
    return WhyReport(__version__, environment_view(environment), answers, problem)


def _answer(
    symbol: SymbolText, environment: Environment, linker: Linker | None, problem: str | None
) -> Answer:
    name = symbol.name or ""
    owner = owner_of(name or "_Z", symbol.version, symbol.demangled)
    torch = environment.torch
    provider: LoadedObject | None = None
    near: tuple[Near, ...] = ()
    if linker is not None:
        if symbol.name is None:
            name = mangled_special(symbol.demangled) or ""
        if not name:
            near = _by_readable_name(symbol, linker, environment)
            exact = next((n for n in near if _same_text(n, symbol)), None)
            if exact is not None:
                name = exact.symbol
        provider = _provider(name, symbol.version, linker) if name else None
        if provider is None and torch is not None and not near:
            near = torch_names(linker, torch.path).nearest(name, libraries_of(owner))
    return _compose(symbol, name, owner, provider, near, environment, linker, problem)


def _provider(name: str, version: str | None, linker: Linker) -> LoadedObject | None:
    raw = name.encode("utf-8", "surrogateescape")
    hashed = gnu_hash(raw)
    for loaded in linker.process.objects:
        if loaded.dynamic.lookup(raw, hashed, version) is not None:
            return loaded
    return None


def _by_readable_name(
    symbol: SymbolText, linker: Linker, environment: Environment
) -> tuple[Near, ...]:
    prefix = mangled_scope(symbol.demangled)
    if prefix is None or environment.torch is None:
        return ()
    index: NameIndex = torch_names(linker, environment.torch.path)
    return index.with_scope(prefix, symbol.demangled)


def _same_text(near: Near, symbol: SymbolText) -> bool:
    return _plain(near.demangled) == _plain(symbol.demangled)


def _plain(demangled: str) -> str:
    """A readable name without spaces; std::string written short, as c++filt -i does."""
    short = readable(demangled).replace(
        "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string"
    )
    return short.replace(" ", "")


def _compose(
    symbol: SymbolText,
    name: str,
    owner: str,
    provider: LoadedObject | None,
    near: tuple[Near, ...],
    environment: Environment,
    linker: Linker | None,
    problem: str | None,
) -> Answer:
    torch = environment.torch
    here = f"torch {torch.version}" if torch else "this environment"
    kind, code, direction = _kind(symbol, owner, near, provider)
    if provider is None and _lacks_cuda(owner, environment):
        kind, code = "wrong-torch", "FA601"
    loaded = _loaded_of(owner, linker)
    if provider is None and _other_soname(symbol, loaded) is not None:
        kind, code = "missing-library", "FA602"
    overloads = tuple(
        Overload(n.symbol, n.demangled, (torch.release,) if torch else ())
        for n in near
        if n.relation != SAME_NAME
    )
    looked = linker is not None and (torch is not None or not is_torch(owner))
    cause, notes = _cause(symbol, owner, provider, near, here, environment, linker, looked)
    needed_by = files_that_need(name, environment.site_dirs) if name else []
    notes = (*notes, *(f"Needed by {path}." for path in needed_by[:5]))
    if not looked and problem:
        notes = (*notes, f"Could not look: {problem}.")
    return Answer(
        kind=kind,
        code=code,
        symbol=name or None,
        demangled=symbol.demangled,
        owner=owner,
        provider=None if provider is None else provider.path,
        cause=cause,
        direction=direction if provider is None else "none",
        confidence=_confidence(symbol, provider, looked),
        exported_by=(torch.release,) if provider is not None and torch and is_torch(owner) else (),
        overloads=overloads,
        help=_help(owner, provider, environment, needed_by),
        notes=notes,
        source_line=None,
        looked_here=looked and (symbol.name is not None or _could_be_spelt(symbol)),
        releases_looked_up=False,
    )


def _confidence(symbol: SymbolText, provider: LoadedObject | None, looked: bool) -> str:
    """A readable name that was not found may only be written otherwise than c++filt does."""
    if symbol.name is None and provider is None:
        return "medium" if _could_be_spelt(symbol) else "low"
    return "high" if looked else "medium"


def _kind(
    symbol: SymbolText, owner: str, near: tuple[Near, ...], provider: LoadedObject | None
) -> tuple[str, str, str]:
    for prefix, kind in _VERSION_KINDS:
        if symbol.version and symbol.version.startswith(prefix):
            return kind, "FA203", "file-newer" if provider is None else "none"
    if is_torch(owner):
        if any(n.relation == OTHER_FLAVOUR for n in near):
            return "cxx11-abi", "FA301", "other-flavour"
        # torch's stable interface is meant only to grow: what is missing comes with a newer one.
        newer = owner == STABLE and provider is None
        return "symbol-drift", "FA201", "file-newer" if newer else "unknown"
    if owner == PYTHON:
        return "python-abi", "FA402", "unknown"
    if owner == OWN:
        return "own-symbol", "FA205", "unknown"
    if owner == "cuda-driver":
        return "gpu-driver", "FA209", "unknown"
    if owner == "hip":
        return "rocm", "FA204", "unknown"
    return "versioned-symbol", "FA204", "unknown"


def _cause(
    symbol: SymbolText,
    owner: str,
    provider: LoadedObject | None,
    near: tuple[Near, ...],
    here: str,
    environment: Environment,
    linker: Linker | None,
    looked: bool,
) -> tuple[str, tuple[str, ...]]:
    title = title_of(owner)
    if not looked:
        return f"It belongs to {title}; who exports it could not be looked up here.", ()
    if symbol.name is None and provider is None and not _could_be_spelt(symbol):
        return (
            "A readable name of this sort (a template, an operator, a name of std) can be spelt in "
            "many ways and was not looked up; paste the mangled name, which starts with _Z.",
            (),
        )
    if provider is not None:
        library = os.path.basename(provider.path)
        return (
            f"{library} in this environment exports it, so here it is not missing.",
            (
                "An error that names it comes from another environment, from another torch found "
                "first, or from a file that does not list this library among its needs: "
                "inspect the file itself.",
            ),
        )
    if is_torch(owner):
        return _torch_cause(symbol, owner, near, here, environment)
    if owner == OWN:
        return (
            "No known library owns such a name: it is the extension's own, or one of a library "
            "of its package. A source file was left out of the build, or that library is missing.",
            (),
        )
    loaded = _loaded_of(owner, linker)
    other_major = _other_soname(symbol, loaded)
    if other_major is not None:
        return (
            f"{here} brings {other_major}; the file needs {symbol.version}, which is another "
            "major version and not here.",
            (),
        )
    if loaded:
        return f"{title} is here ({loaded[0]}) but does not export it: it is another release.", ()
    return f"It belongs to {title}, which is not loaded with {here}.", ()


def _loaded_of(owner: str, linker: Linker | None) -> list[str]:
    """The loaded libraries of an owner, by path."""
    return [
        loaded.path
        for loaded in (linker.process.objects if linker else ())
        if owner_of_library(os.path.basename(loaded.path)) == owner
    ]


def _other_soname(symbol: SymbolText, loaded: Sequence[str]) -> str | None:
    """The loaded library when the symbol's version names it with another major version."""
    version = symbol.version or ""
    names = [os.path.basename(path) for path in loaded]
    if ".so." not in version or not names or version in names:
        return None
    return names[0]


def _lacks_cuda(owner: str, environment: Environment) -> bool:
    """Whether a symbol of torch's CUDA libraries meets a torch that was built without."""
    torch = environment.torch
    return torch is not None and not torch.has_cuda_libs and owner in _CUDA_OWNERS


def _could_be_spelt(symbol: SymbolText) -> bool:
    """Whether the mangled form of a readable name is known well enough to look for it."""
    return (
        mangled_special(symbol.demangled) is not None or mangled_scope(symbol.demangled) is not None
    )


def _torch_cause(
    symbol: SymbolText,
    owner: str,
    near: tuple[Near, ...],
    here: str,
    environment: Environment,
) -> tuple[str, tuple[str, ...]]:
    twin = next((n for n in near if n.relation == OTHER_FLAVOUR), None)
    torch = environment.torch
    if _lacks_cuda(owner, environment):
        return (
            f"{here} has no CUDA, so it has no {libraries_of(owner)[0]}, which exports such names: "
            "the file needs a CUDA build of torch.",
            (),
        )
    if twin is not None:
        flavour = torch.cxx11_abi if torch else "the other flavour"
        return (
            f"{here} has the same function in the other std::string flavour "
            f"({readable(twin.demangled)}): this torch is {flavour}, the file was built for the "
            "other one.",
            (),
        )
    other = [n for n in near if n.relation != SAME_NAME]
    if owner == STABLE:
        return (
            f"{here} does not have this part of torch's stable interface yet: the file needs a "
            "newer torch.",
            (),
        )
    if other and "(" not in symbol.demangled:
        return (
            f"{here} exports functions of that name ({readable(other[0].demangled)}); without its "
            "parameters nobody can say whether one is missing. Was the end of the name cut off?",
            (),
        )
    notes: tuple[str, ...] = ()
    mentions = mentions_cxx11(symbol.name or "", symbol.demangled)
    old = mentions_old_string(symbol.demangled)
    if torch and (
        (mentions and torch.cxx11_abi == "pre-cxx11") or (old and torch.cxx11_abi == "cxx11")
    ):
        notes = ("Its std::string flavour is not that of this torch either.",)
    if other:
        return (
            f"your torch has {readable(other[0].demangled)} instead: the signature differs, so the "
            f"file was built against another release than {here}.",
            notes,
        )
    return (
        f"{here} exports nothing of that name: the file was built against another release, or "
        "the name is misspelt.",
        notes,
    )


def _help(
    owner: str, provider: LoadedObject | None, environment: Environment, needed_by: Sequence[str]
) -> tuple[str, ...]:
    import shlex

    python = shlex.quote(environment.python)
    if provider is None and environment.torch is None and is_torch(owner):
        return ("fa-forensics why --python /path/to/env/bin/python SYMBOL",)
    files = [shlex.quote(path) for path in needed_by[:1]] or ["/path/to/the/failing.so"]
    return (f"fa-forensics inspect --python {python} {files[0]}",)
