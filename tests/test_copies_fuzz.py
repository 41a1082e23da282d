"""Damaged copies anywhere in an environment: lines come out, and nothing is raised."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from support.mutate import mutate, regions
from support.torch_trees import VERSION_12, Tree, build, variables

from fa_forensics.copies import copies_lines
from fa_forensics.facts.environment import find_environment
from fa_forensics.report_env import COULD_NOT_LOOK, STATES

ROUNDS = 60


@pytest.mark.parametrize("which", ["front", "own", "needer", "deps"])
def test_damage_is_told_or_passed_over(which: str, tmp_path: Path) -> None:
    tree = build(tmp_path)
    path = file_of(tree, which)
    whole = tmp_path / "whole"
    shutil.copy(path, whole)
    places = regions(whole)
    environ = variables(LD_LIBRARY_PATH=tree.old)
    environment = find_environment(str(tree.prefix), None, environ)
    for seed in range(ROUNDS):
        shutil.copy(whole, path)
        done = mutate(path, places, seed)
        lines = copies_lines(environment, environ)
        assert lines, done
        for line in lines:
            assert line.state in STATES and line.text, done
            assert (line.state == COULD_NOT_LOOK) <= (line.finding is None), done
            json.dumps(dict(line.facts))


def file_of(tree: Tree, which: str) -> Path:
    nvidia = tree.site / "nvidia"
    return {
        "front": tree.old / VERSION_12,
        "own": tree.nvjitlink,
        "needer": nvidia / "cusparse" / "lib" / "libcusparse.so.12",
        "deps": tree.global_deps,
    }[which]
