"""Answers to what a pasted text says, one module a subject; ``ANSWERERS`` in each is its table.

``pasted.py`` gathers the tables. The modules here judge by the text, the place and the tables;
what they share about GPU, driver and package stands in ``clues.py``.
"""
