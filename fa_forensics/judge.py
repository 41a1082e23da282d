"""Rules over the facts, the verdict over the findings, the real load over the verdict."""

from __future__ import annotations

import os
from dataclasses import replace

from fa_forensics.confirm.model import Confirmation
from fa_forensics.facts.environment import Environment
from fa_forensics.records import dataclass
from fa_forensics.report import FAILS, LOADS, NO_GPU_CODE, Confirm, Evidence, Finding
from fa_forensics.resolve.mapped import MappedDifference, compare_mapped
from fa_forensics.resolve.target import loads_after_torch
from fa_forensics.rules.base import RANK_FILE, RANK_INITIALISER, RANK_NONE, Context, Judged
from fa_forensics.rules.every import ALL_RULES
from fa_forensics.rules.gpu_fit import no_kernel_headline
from fa_forensics.rules.remedy import remedies, remedy_notes
from fa_forensics.rules.verdict import in_loader_order, static_verdict

CONFIRMED, REFUTED, NOT_RUN = "confirmed", "refuted", "not-run"


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on one target, with all its findings and the confirmation."""

    verdict: str
    headline: str
    findings: tuple[Finding, ...]
    confirm: Confirm


def judge(ctx: Context, path: str, confirm: bool | None, timeout_s: float) -> Judgement:
    """Run every rule, then the confirmation where it is wanted, and put them together."""
    judged = [item for rule in ALL_RULES for item in rule(ctx)]
    verdict, headline = static_verdict(ctx, in_loader_order(judged))
    reason = why_not_confirmed(ctx, path, confirm)
    if reason is not None:
        return Judgement(verdict, headline, in_loader_order(judged), Confirm(NOT_RUN, reason))
    from fa_forensics.confirm.parent import confirm as load_for_real

    environment = ctx.environment
    assert environment is not None  # why_not_confirmed gives a reason otherwise
    real = load_for_real(
        path,
        environment.python,
        needs_torch=environment.torch is not None and loads_after_torch(ctx.elf, ctx.uses_torch),
        timeout_s=timeout_s,
        preload=[sibling.path for sibling in ctx.siblings] if ctx.as_package else [],
    )
    return combine(ctx, judged, verdict, headline, real)


def why_not_confirmed(ctx: Context, path: str, confirm: bool | None) -> str | None:
    """Why the file will not be loaded for real, or None when it will."""
    environment = ctx.environment
    if confirm is False:
        return "switched off by --no-confirm"
    if ctx.asked is not None and ctx.asked.judged_by == "table":
        return (
            f"torch {ctx.asked.version} need not be installed here: the file was judged by the "
            "table of what that release exports, and nothing was loaded"
        )
    if environment is None:
        return "there is no environment to load it in"
    if ctx.elf.machine != environment.machine:
        return f"the file is for {ctx.elf.machine}"
    if ctx.resolution is None:
        return "the file could not be resolved, so there is no verdict to confirm"
    if confirm is None and not lies_in(path, environment):
        return (
            "the file lies outside the inspected environment; loading runs its code, so this "
            "is done only when asked for (--confirm)"
        )
    return None


def lies_in(path: str, environment: Environment) -> bool:
    """Whether a file was installed into an environment: site-packages, dist-packages.

    Directories that PYTHONPATH or a .pth file adds do not count: what lies there was not
    put there by an installer, and nobody asked to run it.
    """
    real = os.path.realpath(path)
    return any(
        os.path.basename(directory) in ("site-packages", "dist-packages")
        and real.startswith(os.path.realpath(directory) + os.sep)
        for directory in environment.site_dirs
    )


def combine(
    ctx: Context, judged: list[Judged], verdict: str, headline: str, real: Confirmation
) -> Judgement:
    """Hold the real load against the static verdict. A contradiction is a finding."""
    steps = tuple(
        {"step": step.name, "status": step.status, "detail": step.detail, "ms": step.ms}
        for step in real.steps
    )
    extra = _mapped_elsewhere(ctx, real)
    # What dlopen can confirm is the loader's part; a wrong Python tag is beyond it.
    expected = ctx.resolution.first_failure if ctx.resolution else None
    status, detail = NOT_RUN, real.detail
    torch_called_broken = any(item.finding.code == "FA603" for item in judged)
    if real.status == "loads" and expected is None and not torch_called_broken:
        status = CONFIRMED
        if verdict not in (FAILS, NO_GPU_CODE):
            verdict, headline = LOADS, f"a real dlopen succeeded; {headline}"
    elif real.status == "loads":
        status = REFUTED
        extra.append(Judged(RANK_FILE, _unexpected_load(ctx, headline, real)))
        judged = [_contradicted(item) for item in judged]
        no_kernel = no_kernel_headline(in_loader_order(judged))
        verdict, headline = LOADS, f"a real dlopen succeeded, although {headline}"
        if no_kernel is not None:
            verdict, headline = NO_GPU_CODE, no_kernel
    elif real.status == "load-failed":
        status = CONFIRMED if expected is not None else REFUTED
        detail = _compare_texts(expected, real)
        if status == REFUTED:
            extra.append(Judged(RANK_FILE, _unexpected_failure(ctx, headline, real)))
            verdict, headline = FAILS, f"the loader refused it: {real.loader_text}"
    elif real.status in ("crashed", "hung", "exited"):
        status = CONFIRMED if expected is not None else REFUTED
        extra.append(Judged(RANK_INITIALISER, _died(ctx, real, expected)))
        verdict, headline = FAILS, real.detail
    elif real.status == "torch-import-failed" and _ran_out_of_time(real):
        detail = f"{real.detail} --timeout gives it more time."
    elif real.status == "torch-import-failed":
        extra.append(Judged(RANK_FILE, _torch_broken(ctx, real)))
        verdict, headline = FAILS, real.detail
    findings = in_loader_order([*judged, *extra])
    if real.device is not None or real.kernel_status != "not-run":
        detail = f"{detail} Kernel: {real.kernel_status}: {real.kernel_detail}"
    return Judgement(verdict, headline, findings, Confirm(status, detail, steps))


def _contradicted(item: Judged) -> Judged:
    """An error about loading, once a real load has succeeded: a note that says so."""
    finding = item.finding
    if finding.severity != "error" or item.rank >= RANK_INITIALISER:
        return item
    notes = (*finding.notes, "A real load contradicts this.")
    return Judged(RANK_NONE, replace(finding, severity="note", confidence="low", notes=notes))


def _ran_out_of_time(real: Confirmation) -> bool:
    """Whether the child was ended by the time-out: that says nothing about the file."""
    return real.exit_code is None and real.signal is None


def _compare_texts(expected: str | None, real: Confirmation) -> str:
    text = real.loader_text or ""
    if expected is None:
        return f"The loader said: {text}"
    if _same_complaint(expected, text):
        return f"A real dlopen failed with the very text that was predicted: {text}"
    return f"A real dlopen failed too, at another place first: {text} (predicted: {expected})"


def _same_complaint(expected: str, text: str) -> bool:
    """Whether two loader texts name the same thing, paths shortened to file names."""

    def short(value: str) -> list[str]:
        return [os.path.basename(word.rstrip(":,)")) for word in value.split()]

    return short(expected) == short(text)


def _unexpected_load(ctx: Context, headline: str, real: Confirmation) -> Finding:
    return Finding(
        code="FA902",
        severity="warning",
        confidence="high",
        title=f"{ctx.name} loads, although the tables say it cannot: please report this",
        evidence=(Evidence(f"predicted: {headline}"), Evidence(f"happened: {real.detail}")),
    )


def _unexpected_failure(ctx: Context, headline: str, real: Confirmation) -> Finding:
    return Finding(
        code="FA901",
        severity="error",
        confidence="high",
        title=f"{ctx.name} does not load, although every symbol was found: {real.loader_text}",
        evidence=(
            Evidence(f"the loader's text: {real.loader_text}"),
            Evidence(f"predicted: {headline}"),
        ),
        notes=(_known_text(real.loader_text or "") or _REPORT_THIS,),
    )


_REPORT_THIS = "The loader is right; the prediction missed something. Please report this."
_TEXTS = os.path.join(os.path.dirname(__file__), "data", "loader_texts.json")


def _known_text(text: str) -> str | None:
    """What a loader's text means that no table of symbols could have predicted."""
    import json

    with open(_TEXTS, encoding="utf-8") as file:
        rows = json.load(file)["texts"]
    return next((row["meaning"] for row in rows if row["contains"] in text), None)


def _died(ctx: Context, real: Confirmation, expected: str | None) -> Finding:
    """FA904: the process ends while the file is loaded, by code that runs then."""
    notes = []
    if expected is None:
        notes.append(
            "The loader found every symbol; it is code that runs while loading (a static "
            "initialiser) that fails. The usual cause is another torch release than the one the "
            "file was built on: names stay, the layout of classes changes."
        )
    return Finding(
        code="FA904",
        severity="error",
        confidence="high",
        title=real.detail,
        evidence=tuple(
            Evidence(line) for line in real.stderr_tail.strip().splitlines()[-5:] if line.strip()
        ),
        notes=(*notes, *remedy_notes(ctx)),
        help=remedies(ctx) if ctx.uses_torch else (),
    )


def _torch_broken(ctx: Context, real: Confirmation) -> Finding:
    return Finding(
        code="FA905",
        severity="error",
        confidence="high",
        title="torch itself does not import in this environment, so no extension of it can",
        evidence=(Evidence(real.detail),),
    )


def _mapped_elsewhere(ctx: Context, real: Confirmation) -> list[Judged]:
    """FA903: a provider is mapped from another file than the loader's rules predict."""
    mapped = real.mapped_after or real.mapped
    if ctx.resolution is None or not mapped:
        return []
    differences = compare_mapped(ctx.resolution, mapped, bool(real.mapped_after))
    if not differences:
        return []
    lacking = [symbol for row in differences for symbol in row.lacking or ()]
    finding = Finding(
        code="FA903",
        severity="error" if lacking else "warning",
        confidence="high",
        title="a library is mapped from another file than the loader's rules predict"
        + (f", and it lacks {lacking[0]}" if lacking else ""),
        evidence=tuple(entry for row in differences for entry in _mapped_evidence(row)),
        notes=("Something loads it earlier: a preload, another package, or torch's own code.",),
    )
    return [Judged(RANK_FILE if lacking else RANK_NONE, finding)]


def _mapped_evidence(row: MappedDifference) -> tuple[Evidence, ...]:
    predicted = Evidence(f"predicted {row.predicted}")
    if row.actual is None:
        return predicted, Evidence("found no file of that name mapped")
    if row.lacking is None:
        what = f"which could not be read: {row.problem}"
    elif row.lacking:
        what = f"which lacks {len(row.lacking)} of the {row.symbols} symbols needed of it: "
        what += ", ".join(row.lacking[:5])
    else:
        what = f"which exports all {row.symbols} symbols needed of it"
    return predicted, Evidence(f"found {row.actual}, {what}")
