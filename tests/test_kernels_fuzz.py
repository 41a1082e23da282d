"""The kernel inventory of damaged files: nothing raises, whatever bytes are overwritten."""

from __future__ import annotations

import random
from pathlib import Path

from support.cubins import Function, container, cubin, kernels, packed
from test_fatbin_containers import host

from fa_forensics.facts.elf.image import ElfImage
from fa_forensics.facts.fatbin.kernels import read_kernels
from fa_forensics.facts.fatbin.reader import read_device_code

FUNCTIONS = [*kernels("_Z1av", "_Z1bIiEvT_"), Function("_Z6helperv", kernel=False)]
PTX = b".version 8.4\n.target sm_80\n.visible .entry _Z1av(\n)\n{\n ret;\n}\n" * 20


def test_random_damage_never_raises(tmp_path: Path) -> None:
    randomness = random.Random(7)
    entries = [packed(2, 80, cubin(FUNCTIONS), how) for how in (None, "lz4", "zstd")]
    whole = host({".nv_fatbin": container(*entries, packed(1, 80, PTX, "lz4"))})
    path = tmp_path / "file.so"
    outcomes = set()
    for _ in range(600):
        content = bytearray(whole)
        for _ in range(randomness.randint(1, 6)):
            content[randomness.randrange(200, len(content))] = randomness.randrange(256)
        path.write_bytes(content)
        with ElfImage(str(path)) as image:
            found = read_kernels(image, read_device_code(image))
        outcomes.add((len(found.kernels), len(found.problems)))
    assert len(outcomes) > 5
