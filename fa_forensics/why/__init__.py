"""``why``: one symbol explained: whose it is, who exported it when, who does here, what to do."""

from fa_forensics.why.answer import explain

__all__ = ["explain"]
