"""What is true of one file in one environment: what serves a soname, what a symbol."""
