"""Which wheel an environment takes, and whether a given wheel is one, before it is installed."""

from fa_forensics.wheels.run import WheelOptions, wheels

__all__ = ["WheelOptions", "wheels"]
