"""The ways out: commands, other builds of the package, and where the usual ones would do harm."""
