"""``python -m fa_forensics``."""

from fa_forensics.cli import main

main(prog_name="fa-forensics")
