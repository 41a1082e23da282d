"""Answers to what a pasted text says, one module a subject; ``ANSWERERS`` in each is its table.

``index.py`` says which module has which words, so that ``pasted.py`` loads what a text needs.
The modules here judge by the text, the place and the tables; what they share about GPU, driver
and package stands in ``clues.py``.
"""
