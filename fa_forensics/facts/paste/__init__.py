"""Pasted text: which failure it tells of, about which file, under which versions."""

from fa_forensics.facts.paste.model import Mention, Paste
from fa_forensics.facts.paste.reader import read_paste

__all__ = ["Mention", "Paste", "read_paste"]
