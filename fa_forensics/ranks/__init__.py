"""``python -m fa_forensics.ranks``: every rank of a job held against all others.

The ranks meet in the key-value store that torch.distributed's own process groups start from
(env:// rendezvous), and use no collective: a collective with a rank that is lost hangs or
fails on all of them, and cannot say which one it was.
"""
