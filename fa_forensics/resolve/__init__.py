"""What is true of one file in one environment: which file serves a soname, who provides a symbol."""
