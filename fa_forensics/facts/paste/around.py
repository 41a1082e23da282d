"""What the lines around a message say: the import that failed, the code that called, the file."""

from __future__ import annotations

import re

from fa_forensics.facts.paste.lines import Line
from fa_forensics.facts.paste.tokens import path_before
from fa_forensics.patterns import lazily

_IMPORT = lazily(
    r"(?:-+>\s?)?(?:\[?\d{1,5}\]?\s*)?(?:>>>\s?)?(?:import\s+(?P<module>[A-Za-z_][\w.]{0,200})(?![\w-])"
    r"|from\s+(?P<package>\.{0,3}[\w.]{0,200})\s+import\s+(?P<names>[\w, ().*]{1,200}))",
    re.ASCII,
)
_FRAME = lazily(
    r"(?:File |in file )?[\"']?(?P<path>[^\"'\n]{1,500}?\.(?:py|pyx|ipynb))[\"']?,?\s?"
    r"(?:(?:line |:)\s?\d{1,7}|(?=in [\w.<>]{1,100}))(?:,?\s?(?:in )?(?P<function>[\w.<>]{1,100}))?"
)
_INSTALLED = lazily(r"(?:site|dist)-packages[/\\][\w./\\-]{1,200}\.py\b")
#: Steps through which torch calls an operator; what they call is the step above.
_PASSED_THROUGH = ("torch/_ops.py", "torch/_compile.py", "ctypes/__init__.py")
#: Where a line of a log names the file that wrote it: "WARN launcher: flash_attn.py:111 Unable".
_LOGGED = lazily(r"\b(?:WARN(?:ING)?|INFO|DEBUG)\b")
#: The last line of another traceback.
_ENDED = lazily(r"(?:[A-Za-z_][\w.]{0,80})?(?:Error|Exception|StopIteration)(?::|$)")
#: ``python -c 'import torch; import x_cuda'``
_COMMAND = lazily(
    r"(?:-c\s+['\"]|;\s*)(?:import|from)\s+"
    r"([A-Za-z_][\w.]{0,200}(?:\s?,\s?[A-Za-z_][\w.]{0,60}){0,6})"
)
_LOADED = lazily(r"(?:CDLL|load_library|load_dynamic|dlopen|LoadLibrary)\(")


#: IPython marks the line that failed, ``---> 42``, and shows lines around it: ``44``, ``[44]``.
_ARROW = lazily(r"-+>\s?\[?\d")
_NUMBERED = lazily(r"\[?\d{1,5}\]?\s*(?:$|[A-Za-z@#])")


#: ``File ".../site-packages/nunchaku/models/linear.py"``: the package below, and its directories.
_PACKAGE_FRAME = lazily(r"(?:site|dist)-packages/(?P<path>[\w/]{1,200})/[\w.]{1,80}\.py\b")


def importing(line: Line) -> str:
    """The module that the nearest import statement above names, or "".

    A relative one (``from ..._C.ops import``) is that of the step's own file, where it shows.
    """
    module = _importing(line)
    if not module.startswith("."):
        return module
    frames = (_PACKAGE_FRAME.search(above.body) for above in line.above(8) if above.body)
    found = next((one for one in frames if one is not None), None)
    rest = module.lstrip(".")
    up = len(module) - len(rest) - 1
    folders = found["path"].split("/") if found is not None else []
    kept = folders[: len(folders) - up] if len(folders) > up else folders[:1]
    return ".".join((*kept, rest)) if kept and rest else module


#: ``File "/home/u/MapTR/mmdet3d/ops/pool.py"``: the whole directory of a step's own file.
_WHOLE_FRAME = lazily(r"File \"(?P<directory>/[^\"\s]{1,300})/[\w.]{1,80}\.py\"")


def whole_path(line: Line, file: str | None) -> str | None:
    """A path whose beginning was left out (``.../MapTR/ops/_ext.so``), by the step that loads it.

    As it is where no step above lies in a directory of the same end.
    """
    if file is None or not file.startswith((".../", "\u2026/")):
        return file
    directory, _, name = file.partition("/")[2].rpartition("/")
    frames = (_WHOLE_FRAME.search(above.body) for above in line.above(4) if above.body)
    found = next((one for one in frames if one is not None), None)
    if found is None or not directory or not found["directory"].endswith(f"/{directory}"):
        return file
    return f"{found['directory']}/{name}"


_IMPORT_MODULE = lazily(r"\bimport_module\(\s?['\"](?P<name>[A-Za-z_]\w{0,60})[\w.]{0,99}['\"]")


def failing_import(line: Line) -> str:
    """The module whose import ends in an error of the loader, by all that the traceback shows.

    ``import_module("cv2")``, an import statement, or the package of the last step's own file.
    """
    for above in line.above(3):
        if (found := _IMPORT_MODULE.search(above.body)) is not None:
            return found["name"]
    module = importing(line)
    if module.startswith("."):  # a step of a package whose name no step shows
        said = (_COMMAND.findall(above.body) for above in line.above(8) if "python" in above.body)
        last = next((str(found[-1]).rpartition(",")[2].strip() for found in said if found), "")
        module = last or module
    if module.strip("."):
        return module
    frames = (_PACKAGE_FRAME.search(above.body) for above in line.above(4) if above.body)
    step = next((one for one in frames if one is not None), None)
    return step["path"].split("/")[0] if step is not None else ""


def _importing(line: Line) -> str:
    """The module as the statement has it."""
    bodies = [above.body for above in line.above(8)]
    arrow = any(_ARROW.match(body) for body in bodies)
    for body in bodies:
        if arrow and _NUMBERED.match(body):
            continue
        if _LOADED.search(body) or _ENDED.match(body):
            return ""
        match = _IMPORT.match(body)
        if match is None:
            said = _COMMAND.findall(body) if "python" in body else []
            if said:
                return str(said[-1]).rpartition(",")[2].strip()
            continue
        if match["module"]:
            return match["module"]
        first = match["names"].strip("() ").split(",")[0].split()
        name = first[0] if first else ""
        if name in ("", "*"):
            return match["package"]
        if name.startswith("_") or name.endswith(("_cuda", "_C", "_ext", "_ops")):
            return f"{match['package']}.{name}" if match["package"].strip(".") else name
        return match["package"] if match["package"].strip(".") else name
    return ""


def fails_itself(line: Line) -> bool:
    """Whether the import right above is a traceback's last step: its module is what fails.

    A module of Python that failed further down would have a step of its own.
    """
    statement = False
    for above in line.above(6):
        body = above.body
        if not body or set(body) <= set("^~ "):
            continue
        if statement:
            return _FRAME.search(body) is not None
        if _ARROW.match(body):
            return _IMPORT.match(body) is not None
        if _NUMBERED.match(body):
            continue
        statement = _IMPORT.match(body) is not None
        if not statement:
            return False
    return False


def frame(line: Line) -> tuple[str, str, str]:
    """(file, function, code) of the traceback's last step above a message, "" where not told."""
    code = ""
    for above in line.above(12):
        body = above.body
        if body.startswith("Traceback ") or _ENDED.match(body):
            break
        match = _FRAME.search(body) if ".py" in body else None
        if match is not None and _LOGGED.search(match["path"]):
            continue
        if match is not None and match["path"].endswith(_PASSED_THROUGH):
            code = ""
            continue
        if match is not None:
            return match["path"].split('"')[-1], match["function"] or "", code
        if body and not code and not set(body) <= set("^~ "):
            code = body[:200]
    return "", "", ""


def package_file_near(line: Line) -> str:
    """The installed Python file that is named nearest to a message, above it or just below."""
    for other in (*line.above(14), *line.below(2)):
        found = _INSTALLED.search(other.body) if "-packages" in other.body else None
        if found is not None:
            return found[0]
    return ""


def path_of_line_above(line: Line) -> str | None:
    """A path at the end of the line above, which a narrow window parted from its message."""
    for above in line.above(1):
        body = above.body.rstrip()
        # The message begins with the colon that the path's line lost.
        lost = line.body.lstrip().startswith(":")
        if body.endswith(".so") or re.search(r"\.so(?:\.\d+)*" + ("" if lost else ":") + "$", body):
            return path_before(body, len(body))
    return None


_WINDOWS_STEP = lazily(r"File \"([A-Za-z]:\\[^\"\n]{1,400}\.py)\"")
_STEP = lazily(r"File \"((?:~|\.{3})?/[^\"\n]{1,400}\.py)\"")


def source_tree(line: Line, top: str) -> str:
    """The directory, outside of site-packages, whose Python files of the package were imported."""
    for other in (line, *line.above(20), *line.below(20)):
        step = _STEP.search(other.body) if f"/{top}/" in other.body else None
        windows = _WINDOWS_STEP.search(other.body) if f"\\{top}\\" in other.body else None
        if windows is not None and "-packages" not in windows[1]:
            return windows[1].rpartition(f"\\{top}\\")[0].partition(f"\\{top}\\{top}\\")[0]
        if step is not None and "-packages/" not in step[1] and ".egg/" not in step[1]:
            tree = step[1].rpartition(f"/{top}/")[0].partition(f"/{top}/{top}/")[0]
            if tree != "...":  # which stands for anything, site-packages too
                return tree
    return ""
