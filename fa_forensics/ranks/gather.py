"""What one rank knows of itself, as facts and as bytes that travel."""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Mapping, Sequence

from fa_forensics.compare.documents import facts_of
from fa_forensics.compare.model import Fact, Facts
from fa_forensics.compare.places import Places
from fa_forensics.env import inspect_environment
from fa_forensics.errors import UnreadableReport
from fa_forensics.facts.loaded import LoadedFile, loaded_files
from fa_forensics.render.json_env import env_document
from fa_forensics.report_compare import Compared, Value

#: Variables that launchers set anew for every rank: which GPU each one has.
PER_RANK = frozenset(
    {
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "NVIDIA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
    }
)

#: Bytes of one rank's facts, packed: some tens of thousands in a large environment.
MAX_PACKED = 4 << 20
MAX_UNPACKED = 64 << 20


def facts_of_this_rank(environ: Mapping[str, str]) -> Facts:
    """The facts of this process's own environment, and of what it has loaded.

    Raises the errors of ``env``.
    """
    try:
        # Before the look at the environment, which loads libraries of this program's own.
        loaded: Sequence[LoadedFile] | OSError = loaded_files()
    except OSError as error:
        loaded = error
    document = env_document(inspect_environment(None, environ))
    facts = facts_of(document, "this rank", PER_RANK)
    environment = document.get("environment")
    put_loaded(facts, loaded, Places(environment if isinstance(environment, Mapping) else None))
    return facts


def put_loaded(facts: Facts, loaded: Sequence[LoadedFile] | OSError, places: Places) -> None:
    """Note every library that this process has mapped, by build-id and by place.

    Python's own extension modules are left out: its version says as much.
    """
    if isinstance(loaded, OSError):
        reason = f"what this process has loaded is not listed: {loaded.strerror or loaded}"
        facts.could_not_look("libraries", "loaded files", "", reason)
        return
    for file in loaded:
        if f"{os.sep}lib-dynload{os.sep}" in file.path:
            continue
        name = file.name
        group = "python" if name.startswith(("python", "libpython")) else "libraries"
        if file.problem is not None:
            facts.could_not_look(group, name, "loaded build-id", places.name(file.problem))
        else:
            facts.put(group, name, "loaded build-id", file.build_id or "none")
        facts.put(group, name, "loaded from", places.name(os.path.dirname(file.path)))


def pack(facts: Facts) -> bytes:
    """Facts as bytes; the same facts give the same bytes."""
    plain = {
        "about": facts.report.about,
        "tool_version": facts.report.tool_version,
        "facts": [
            [*key, list(fact.value) if isinstance(fact.value, tuple) else fact.value, fact.problem]
            for key, fact in sorted(facts.facts.items())
        ],
        "speaks_of": sorted(map(list, facts.speaks_of)),
    }
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return zlib.compress(text.encode("ascii"), 6)


def digest(packed: bytes) -> str:
    """The name under which equal facts travel once."""
    return hashlib.sha256(packed).hexdigest()


def unpack(packed: bytes, name: str) -> Facts:
    """Facts from bytes, of the rank called ``name``. Raises ``UnreadableReport``."""
    try:
        decoder = zlib.decompressobj()
        text = decoder.decompress(packed, MAX_UNPACKED)
        if decoder.unconsumed_tail:
            raise UnreadableReport(f"{name} sent more than {MAX_UNPACKED >> 20} MiB of facts")
        plain = json.loads(text)
        about, version = str(plain["about"]), str(plain["tool_version"])
        facts = Facts(Compared(name, "rank", version, about))
        for group, subject, aspect, value, problem in plain["facts"]:
            facts.facts[group, subject, aspect] = Fact(_value(value), problem)
        facts.speaks_of = {(group, family) for group, family in plain["speaks_of"]}
    except (zlib.error, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UnreadableReport(f"what {name} sent cannot be read: {error}") from error
    return facts


def _value(value: object) -> Value:
    if isinstance(value, list):
        return tuple(str(member) for member in value)
    return None if value is None else str(value)
