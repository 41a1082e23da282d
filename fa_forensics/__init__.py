"""Forensics for CUDA extension modules: why a torch extension does not load, read from its bytes."""

__version__ = "0.1.0"
