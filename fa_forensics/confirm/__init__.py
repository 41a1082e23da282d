"""The confirmation: a child process that really loads the file, and the parent that watches it.

`parent.confirm` is the entry point. `child.py` is never imported here: it is run as a file by the
interpreter of the inspected environment.
"""
