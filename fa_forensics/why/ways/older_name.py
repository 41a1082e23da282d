"""The name that a package had at the time of a text."""

from __future__ import annotations

from collections.abc import Mapping


def name_then(name: str, torch: str | None, python: str | None, told: Mapping[str, str]) -> str:
    """The name that a package had at the time of a torch, a Python and the versions of a text.

    ``told`` has the versions by ``pkg:NAME``. mmcv with compiled operations was mmcv-full.
    """
    from fa_forensics.rules.remedy import row_of
    from fa_forensics.why.torch_names.history import order_key

    before = (row_of(name) or {}).get("before")
    if not isinstance(before, Mapping):
        return name
    own = told.get(f"pkg:{name}", "")
    # A pre-release of the first one under the new name has that name too: mmcv 2.0.0rc4.
    old = bool(own) and order_key(own)[:3] < order_key(before["first"])[:3]
    old = old or f"pkg:{before['distribution']}" in told
    old = old or (torch is not None and order_key(torch) < order_key(before["torch"]))
    old = old or (python or "").startswith(("2.", "3.5", "3.6"))
    old = old or (torch is None and not own and (python or "").startswith("3.7"))
    return str(before["distribution"]) if old or _with_old_partner(before, told) else name


def _with_old_partner(before: Mapping[str, object], told: Mapping[str, str]) -> bool:
    """Whether the text has a release of another package that takes the old name alone."""
    from fa_forensics.why.torch_names.history import order_key

    partners = before.get("partners")
    rows = partners.items() if isinstance(partners, Mapping) else ()
    having = ((told.get(f"pkg:{name}", ""), str(first)) for name, first in rows)
    return any(v and order_key(v)[:3] < order_key(first)[:3] for v, first in having)
