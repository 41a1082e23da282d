"""Names of CUDA's libraries: which version has them, which copy is here, what puts it right."""
