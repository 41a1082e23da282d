"""The maintainer's tools that write the shipped tables. Nothing here is imported at run time."""
