"""Dataclasses that cost little to define: the records this package is made of.

``dataclasses.dataclass`` compiles up to seven methods for each class, one after the other
(until Python 3.13), which took a fifth of the time of a short command. Here one method, the
``__init__``, is compiled; the others are closures. Everything else is the standard library's:
fields, defaults, slots, ``replace``, ``fields``, ``is_dataclass`` and FrozenInstanceError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:
    import dataclasses
    from operator import attrgetter

    def dataclass(*, slots, frozen=False):
        """``dataclasses.dataclass(slots=True, frozen=...)`` with eq and repr, sooner done.

        Not taken over: fields that are keyword-only, left out of ``__init__``, or left out
        of comparison; ``__post_init__`` and InitVar. None of the records has one.
        """
        plain = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)
        return lambda cls: _with_methods(plain(cls), frozen)

    def _with_methods(cls, frozen):
        names = tuple(cls.__dataclass_fields__)
        cls.__init__ = _initialiser(cls)
        cls.__repr__ = _representation
        cls.__eq__ = _equality(cls, names)
        cls.__hash__ = _hash(names) if frozen else None
        cls.__getstate__ = _state
        cls.__setstate__ = _set_state
        if frozen:
            cls.__setattr__ = _refuse_setting
            cls.__delattr__ = _refuse_deletion
        return cls

    def _initialiser(cls):
        """``__init__`` of the class, which writes each slot by its descriptor."""
        space = {"MISSING": dataclasses.MISSING}
        parameters, body = [], []
        for name, field in cls.__dataclass_fields__.items():
            space[f"set_{name}"] = getattr(cls, name).__set__
            value = name
            if field.default_factory is not dataclasses.MISSING:
                space[f"make_{name}"] = field.default_factory
                parameters.append(f"{name}=MISSING")
                value = f"make_{name}() if {name} is MISSING else {name}"
            elif field.default is not dataclasses.MISSING:
                space[f"default_{name}"] = field.default
                parameters.append(f"{name}=default_{name}")
            else:
                parameters.append(name)
            body.append(f"    set_{name}(self, {value})\n")
        lines = "".join(body) or "    pass\n"
        exec(f"def __init__(self, {', '.join(parameters)}):\n{lines}", space)
        made = space["__init__"]
        made.__qualname__ = f"{cls.__qualname__}.__init__"
        made.__module__ = cls.__module__
        return made

    def _equality(cls, names):
        values = attrgetter(*names)

        def __eq__(self, other):
            if other.__class__ is self.__class__:
                return values(self) == values(other)
            return NotImplemented

        return __eq__

    def _hash(names):
        values = attrgetter(*names)
        return lambda self: hash(values(self))

    def _representation(self):
        shown = (f"{name}={getattr(self, name)!r}" for name in self.__dataclass_fields__)
        return f"{self.__class__.__qualname__}({', '.join(shown)})"

    def _state(self):
        return [getattr(self, name) for name in self.__dataclass_fields__]

    def _set_state(self, state):
        for name, value in zip(self.__dataclass_fields__, state, strict=True):
            object.__setattr__(self, name, value)

    def _refuse_setting(self, name, value):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _refuse_deletion(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
