"""A package that was linked without a library of CUDA: where a build of it with that one is got."""

from __future__ import annotations

from dataclasses import replace

from fa_forensics.patterns import lazily
from fa_forensics.report_why import Answer
from fa_forensics.why.seen import Seen
from fa_forensics.why.shell import quoted
from fa_forensics.why.texts.clues import raw_python
from fa_forensics.why.texts.libraries.needing import package_needing
from fa_forensics.why.ways.builds import clean_build, in_source_tree

#: The directory of one extension that torch compiled when it was first needed.
_CACHE = lazily(r"(?P<folder>(?:/|~/)[\w./+@-]{0,300}torch_extensions/[\w./+@-]{1,200})/\w+\.so")


def linked_again(answer: Answer, seen: Seen) -> Answer:
    """The answer with the package's newer release, or its build where the file itself lies."""
    name = package_needing(seen)
    module = seen.mention.detail.get("import", "")
    helps = [text.replace("import MODULE", f"import {module or 'MODULE'}") for text in answer.help]
    file = seen.mention.file or ""
    notes = (*answer.notes, *_afterwards(name))
    cache = _CACHE.fullmatch(file)
    if cache is not None:
        helps.insert(-1, f"rm -rf {quoted(cache['folder'])}")
        notes = (
            *notes,
            *_kept_for(cache["folder"]),
            "torch compiled the file itself when the program needed it: that directory is removed, "
            "and the next start compiles it again, with the flags of the package as it is then.",
        )
    elif in_source_tree(file):
        helps.insert(-1, _build_there(seen, name, file))
        notes = (
            *notes,
            "The file lies in a source tree, and a release that pip installs does not replace it: "
            "the tree is brought to a newer release (git pull, or the tag of one) and built again.",
        )
    if name is not None:
        newer = f"{seen.pip} install --upgrade --no-deps --no-cache-dir {name}"
        helps[-1:-1] = [] if in_source_tree(file) else [newer]
    return replace(answer, help=tuple(helps), notes=notes)


#: The directory of the cache that torch names by Python and CUDA: py38_cu111.
_KEY = lazily(r"/(?P<key>py3\d{1,2}_c(?:u\d{2,3}|pu))/")


def _kept_for(folder: str) -> tuple[str, ...]:
    """That the cache does not tell one torch from another (torch.utils.cpp_extension)."""
    key = _KEY.search(folder)
    if key is None:
        return (
            "The cache is not kept by torch's release: after a change of torch the build of the "
            "one before can be taken up again, which counted on what that torch brought along.",
        )
    return (
        f"The cache is not kept by torch's release ({key['key']} names Python and CUDA alone): "
        "after a change of torch the build of the one before can be taken up again, which counted "
        "on what that torch brought along.",
    )


def _build_there(seen: Seen, name: str | None, file: str) -> str:
    """Compile the package in the directory above the one that it is imported from."""
    from fa_forensics.rules.remedy import row_of

    row = row_of(name) if name else None
    top = str(row["import"]).split(".")[0] if row is not None else ""
    root = file.partition(f"/{top}/")[0] if top and f"/{top}/" in file else ""
    environment = str(row.get("environment") or "") if row is not None else ""
    steps = clean_build(raw_python(seen), file).split(" && ")
    if environment:
        steps[-1] = f"{environment} {steps[-1]}"
    return " && ".join(([f"cd {quoted(root)}"] if root else []) + steps)


def _afterwards(name: str | None) -> tuple[str, ...]:
    """DeepSpeed's optimizer, which was not made, is destroyed all the same (its __del__)."""
    if name != "deepspeed":
        return ()
    return (
        "An AttributeError of DeepSpeedCPUAdam (ds_opt_adam) only follows from this: the extension "
        "was never loaded, and the object that is given up looks for it.",
    )
