"""Names that are not torch's: Python's, the system's, another project's, the extension's own."""
