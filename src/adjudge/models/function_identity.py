"""The identity of a function: a digest by which kept answers are known to be of this very code.

It is of what runs, and not of a file that may have been edited since: byte code, constants, names, defaults, and the
values the function closes over; of the functions, classes and plain values of its own module that it names, at any
depth; for a method or a callable object, of its class and of its attributes: the plain ones, and functions. Comments
and places in the file do not count.

Not covered is what has no fixed value: other modules (they count by the names of what is used of them), lists,
dictionaries and objects (they count by their type alone), files, and the network; nor what is written in C, of which
only the name is known. If you need one of these covered, give an identity of your own. An approval is bound to the
lists and dictionaries as well (``guards/approval_digest.py``). Another minor version of Python compiles to other byte
code, and so to another digest: an answer is then asked for again, and never taken for that of other code.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import re
from collections.abc import Callable, Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, MethodWrapperType, ModuleType
from typing import Any

from adjudge.models.model import FunctionIdentity

_PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...), range)
"""Types whose values cannot change, and are written the same in every process."""

_STORES_VARIABLE = ("STORE_GLOBAL", "STORE_DEREF")

_STORES_ATTRIBUTE = ("STORE_ATTR",)

_CODE = (FunctionType, type)

_CALLED = (FunctionType, MethodType, functools.partial, BuiltinFunctionType, MethodWrapperType)

_OF_CLASSES = ("__module__", "__qualname__", "__doc__", "__firstlineno__")
"""Members that every class has, and that say nothing of what it does."""


def identify_function(function: Callable[..., Any]) -> FunctionIdentity:
    """The identity of a function, method, partial or callable object."""
    module, qualname = name_function(function)
    description = json.dumps(_Walk(module).describe_all(function), sort_keys=True)
    return FunctionIdentity(module=module, qualname=qualname, code=hashlib.sha256(description.encode()).hexdigest())


def name_function(function: Any) -> tuple[str, str]:
    """The module and the qualified name of a function; of a callable object, those of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = function if getattr(function, "__qualname__", None) else type(function)
    return str(getattr(owner, "__module__", None) or ""), str(owner.__qualname__)


class _Walk:
    """One way through everything that belongs to a function, in an order that is the same in every process.

    Functions and classes are numbered as they are met and described one after the other: they name each other, and a
    module may hold a long chain of them.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        """The module of the function: classes of another that it holds are known by their names alone."""
        self._numbers: dict[int, int] = {}
        self._met: list[Any] = []

    def describe_all(self, function: Callable[..., Any]) -> Any:
        """The function, and everything that was met on the way, as JSON."""
        return [self._describe_callable(function), *self._describe_met()]

    def _describe_met(self) -> Iterator[Any]:
        for value in self._met:  # it grows meanwhile
            if issubclass(type(value), type):
                yield self._describe_class(value)
            else:
                yield self._describe_function(value) if type(value) is FunctionType else self._describe_object(value)

    def _refer_to_value(self, value: Any) -> list[Any]:
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._met)
            self._met.append(value)
        return ["met", self._numbers[id(value)]]

    def _describe_callable(self, function: Any) -> Any:
        """Describe the parts of a callable that are its identity."""
        if issubclass(type(function), functools.partial):
            arguments = [self._describe_value(value) for value in function.args]
            keywords = {name: self._describe_value(value) for name, value in function.keywords.items()}
            return {"partial": self._describe_callable(function.func), "args": arguments, "keywords": keywords}
        inner, call = _find_wrapped(function), type(function).__call__
        if type(function) is FunctionType or (issubclass(type(function), type) and not isinstance(call, FunctionType)):
            return self._refer_to_value(function)
        if type(function) is MethodType:
            return {
                "method": self._describe_callable(function.__func__),
                "self": self._describe_owner(function.__self__),
            }
        wrapper: dict[str, Any] = {}
        if inner is not None:
            wrapper = {"wrapper": type(function).__qualname__, "wrapped": self._describe_callable(inner)}
        if isinstance(call, FunctionType):  # a wrapper may do anything with what it wraps
            return wrapper | {"call": self._refer_to_value(call), "self": self._refer_to_value(function)}
        if wrapper:
            return wrapper
        # Written in C: nothing but its name can be seen, and what it is a method of.
        return {"named": name_function(function), "self": self._describe_value(getattr(function, "__self__", None))}

    def _describe_function(self, function: FunctionType) -> Any:
        """Describe all that decides what a function does; variables that it changes itself are left out."""
        code = function.__code__
        stored = _list_stored(code, _STORES_VARIABLE)
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        keywords = function.__kwdefaults__ or {}
        counters = _list_stored(code, _STORES_ATTRIBUTE)
        attributes = {name: value for name, value in vars(function).items() if name not in {*counters, "__wrapped__"}}
        return {
            "name": name_function(function),
            "code": _describe_code(code),
            "defaults": [self._describe_value(default) for default in function.__defaults__ or ()],
            "keywords": {name: self._describe_value(default) for name, default in keywords.items()},
            "closed": {name: self._describe_value(read_cell(cell)) for name, cell in cells if name not in stored},
            "globals": self._describe_globals(function, stored),
            "attributes": {name: self._describe_value(value) for name, value in sorted(attributes.items())},
        }

    def _describe_globals(self, function: FunctionType, stored: set[str]) -> dict[str, Any]:
        """Describe the globals that a function reads and does not set; of another module the name alone.

        By the function's own module: a decorator of another one stands around it.
        """
        values = function.__globals__
        names = sorted((set(_list_names(function.__code__)) - stored) & values.keys())
        return {name: self._describe_global(values[name], function.__module__) for name in names}

    def _describe_global(self, value: Any, module: str) -> Any:
        kind = type(value)
        if kind is ModuleType:
            return ["module", value.__name__]
        if issubclass(kind, _CODE) and value.__module__ != module:
            return ["named", *name_function(value)]
        return self._refer_to_value(value) if issubclass(kind, type) else self._describe_value(value)

    def _describe_owner(self, owner: Any) -> Any:
        """The object of a method; a class has methods as well."""
        return self._describe_value(owner) if issubclass(type(owner), type) else self._refer_to_value(owner)

    def _describe_object(self, owner: Any) -> Any:
        """Describe an object by its class, and its attributes but those that its methods set."""
        kind = type(owner)
        stored = _list_stored_by(kind)
        attributes = {name: _read_attribute(owner, name) for base in kind.__mro__ for name in _list_slots(base)}
        attributes |= _read_attribute(owner, "__dict__") or {}
        attributes = {name: value for name, value in attributes.items() if name not in stored and name != "__wrapped__"}
        described = {name: self._describe_value(value) for name, value in sorted(attributes.items())}
        return {"class": self._refer_to_value(kind), "attributes": described}

    def _describe_class(self, kind: type[Any]) -> Any:
        """Describe a class by its functions, classes and plain values, and those of the bases in its module."""
        stored = _list_stored_by(kind)
        members = {name: value for name, value in sorted(_list_members(kind).items()) if name not in stored}
        described = {
            name: self._describe_value(value)
            for name, value in members.items()
            if issubclass(type(value), (*_CODE, *_CALLED)) or _find_wrapped(value) is not None or _is_plain(value)
        }
        return {"class": f"{kind.__module__}.{kind.__qualname__}", "members": described}

    def _describe_value(self, value: Any) -> Any:
        """Describe a value: code and plain values by what they hold, a foreign class by name, other objects by type."""
        kind = type(value)  # not isinstance: a proxy for something that is not there raises where it is asked
        if issubclass(kind, type):
            is_ours = value.__module__ == self._module
            return self._refer_to_value(value) if is_ours else ["class", f"{value.__module__}.{value.__qualname__}"]
        is_ours = kind.__module__ == self._module and isinstance(kind.__call__, FunctionType)
        if is_ours or issubclass(kind, _CALLED) or _find_wrapped(value) is not None:
            return self._describe_callable(value)
        if kind in (tuple, frozenset):
            items = [self._describe_value(member) for member in value]
            # A set in one order, whatever the process.
            return [kind.__name__, items if kind is tuple else sorted(map(json.dumps, items))]
        return _describe_plain(value)


def _describe_plain(value: Any) -> Any:
    if type(value) is re.Pattern:
        return ["pattern", repr(value.pattern), value.flags]
    if issubclass(type(value), Enum):
        return [f"{type(value).__module__}.{type(value).__qualname__}", value._name_, _describe_plain(value._value_)]
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return [name, repr(value)] if type(value) in _PLAIN else ["of type", name]


def _describe_code(code: CodeType) -> Any:
    """Describe what runs of some code; its file and lines are left out, for they change nothing of what it does."""
    return {
        "bytes": code.co_code.hex(),
        "caught": code.co_exceptiontable.hex(),  # what stands in a try, and what after it
        "names": [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars],
        "arguments": [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags],
        "constants": [_describe_constant(constant) for constant in code.co_consts],
    }


def _describe_constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _describe_code(value)
    if type(value) in (tuple, frozenset):
        items = [_describe_constant(member) for member in value]
        return [type(value).__name__, items if type(value) is tuple else sorted(map(json.dumps, items))]
    return _describe_plain(value)


def _is_plain(value: Any) -> bool:
    if type(value) in (tuple, frozenset):
        return all(map(_is_plain, value))
    return type(value) in (*_PLAIN, re.Pattern) or issubclass(type(value), Enum)


def _find_wrapped(value: Any) -> Any:
    """The callable that something which is no function stands around, as ``functools.lru_cache`` leaves it."""
    if issubclass(type(value), (*_CODE, *_CALLED)):
        return None
    inner = inspect.getattr_static(value, "__wrapped__", None)
    return inner if issubclass(type(inner), _CALLED) else None


def read_cell(cell: Any) -> Any:
    """Return what a variable of a closure holds; ``None`` where it is not filled yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _read_attribute(owner: Any, name: str) -> Any:
    """An attribute without asking the object, which may raise anything; ``None`` where there is none."""
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        return None


def _list_slots(kind: type[Any]) -> tuple[str, ...]:
    """List the slots of a class itself, without those of its bases, by the names under which objects have them."""
    slots = kind.__dict__.get("__slots__", ())
    class_name = kind.__name__.lstrip("_")
    # Python keeps a private one under the name of its class as well.
    return tuple(
        f"_{class_name}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in ((slots,) if isinstance(slots, str) else slots)
        if name not in ("__dict__", "__weakref__")
    )


def _list_members(kind: type[Any]) -> dict[str, Any]:
    """The members of a class and of its bases in the same module; of properties and the like the function."""
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ == kind.__module__:
            members |= {name: value for name, value in vars(base).items() if name not in _OF_CLASSES}
    return {name: _open_member(value) for name, value in members.items()}


def _open_member(value: Any) -> Any:
    """Return the function inside a property, a class method or the like, whose code can be seen; others as they are."""
    kind = type(value)
    if kind is property:
        return value.fget
    if kind in (functools.cached_property, functools.singledispatchmethod):
        return value.func
    if kind is functools.partialmethod:
        return functools.partial(_open_member(value.func), *value.args, **value.keywords)
    return _open_member(value.__func__) if kind in (staticmethod, classmethod) else value


def _list_stored_by(kind: type[Any]) -> set[str]:
    """The attributes that methods of a class set, but those that make an object: they say what it was made with."""
    methods = {name: value for name, value in _list_members(kind).items() if isinstance(value, FunctionType)}
    later = [value.__code__ for name, value in methods.items() if name not in ("__init__", "__new__", "__post_init__")]
    return {name for code in later for name in _list_stored(code, _STORES_ATTRIBUTE)}


def _walk_code(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _walk_code(constant)


def _list_names(code: CodeType) -> Iterator[str]:
    for inner in _walk_code(code):
        yield from inner.co_names


def _list_stored(code: CodeType, stores: tuple[str, ...]) -> set[str]:
    """List the names that a function sets outside itself: a counter does not make it another function.

    Variables and attributes apart: to set ``found.limit`` must not hide a variable that is called ``limit``.
    """
    import dis

    return {
        str(step.argval) for inner in _walk_code(code) for step in dis.get_instructions(inner) if step.opname in stores
    }
