"""Maintainers' measurements and generated documentation; never imported by the package."""
