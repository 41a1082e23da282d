"""The Python package layer of ``env``: what is installed, by whom, whole or not, what wins."""
