"""The runtime below the packages: torch, interpreter, system, driver, toolkits, variables."""

from fa_forensics.runtime.look import runtime_lines as runtime_lines
