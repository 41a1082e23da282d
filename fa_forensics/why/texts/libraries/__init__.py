"""Answers about shared libraries that are not found, too old, or of another CUDA."""
