"""Forensics for CUDA extension modules: why a torch extension does not load."""

__version__ = "0.1.0"
