"""``python -m fa_forensics``."""

from fa_forensics.cli import entry

entry()
