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

_PLAIN_TYPES = (type(None), bool, int, float, complex, str, bytes, type(...), range)
"""Types whose values cannot change, and are written the same in every process."""

_VARIABLE_STORES = ("STORE_GLOBAL", "STORE_DEREF")
"""Instructions of byte code that set a global variable, or one of a closure."""

_ATTRIBUTE_STORES = ("STORE_ATTR",)
"""Instructions of byte code that set an attribute."""

_CODE_TYPES = (FunctionType, type)

_CALLABLE_TYPES = (FunctionType, MethodType, functools.partial, BuiltinFunctionType, MethodWrapperType)

_MEMBERS_OF_EVERY_CLASS = ("__module__", "__qualname__", "__doc__", "__firstlineno__")
"""Members that every class has, and that say nothing of what it does."""


def identify_function(function: Callable[..., Any]) -> FunctionIdentity:
    """Return the identity of a function, method, partial or callable object."""
    module, qualname = name_function(function)
    description = json.dumps(_FunctionDescriber(module).describe_all(function), sort_keys=True)
    return FunctionIdentity(module=module, qualname=qualname, code=hashlib.sha256(description.encode()).hexdigest())


def name_function(function: Any) -> tuple[str, str]:
    """Return the module and the qualified name of a function; of a callable object, those of its class."""
    while isinstance(function, functools.partial):
        function = function.func
    owner = function if getattr(function, "__qualname__", None) else type(function)
    return str(getattr(owner, "__module__", None) or ""), str(owner.__qualname__)


class _FunctionDescriber:
    """Describes a function and everything that belongs to it, in an order that is the same in every process.

    Functions, classes and objects refer to each other, and a module may hold a long chain of them. So each gets a
    number when it is first referred to, and they are described one after the other, without recursion.
    """

    def __init__(self, module: str) -> None:
        self._module = module
        """The module of the function: classes of another that it holds are known by their names alone."""
        self._numbers: dict[int, int] = {}
        self._objects: list[Any] = []
        """The functions, classes and objects that were referred to, by their numbers."""

    def describe_all(self, function: Callable[..., Any]) -> Any:
        """Describe a function, and all functions, classes and objects that it refers to at any depth, as plain data."""
        return [self._describe_callable(function), *self._describe_objects()]

    def _describe_objects(self) -> Iterator[Any]:
        """Yield the description of each value that was referred to, in the order of their numbers."""
        for value in self._objects:  # the list grows in this loop: a description may refer to more
            if issubclass(type(value), type):
                yield self._describe_class(value)
            elif type(value) is FunctionType:
                yield self._describe_function(value)
            else:
                yield self._describe_object(value)

    def _refer_to_value(self, value: Any) -> list[Any]:
        """Return a reference to a value by its number; it gets one here, and is described later."""
        if id(value) not in self._numbers:
            self._numbers[id(value)] = len(self._objects)
            self._objects.append(value)
        return ["met", self._numbers[id(value)]]

    def _describe_callable(self, function: Any) -> Any:
        """Describe a callable by its parts; functions, classes and objects among them by reference.

        A callable written in C is described by its name alone, and by the object that it is a method of.
        """
        if issubclass(type(function), functools.partial):
            arguments = [self._describe_value(value) for value in function.args]
            keywords = {name: self._describe_value(value) for name, value in function.keywords.items()}
            return {"partial": self._describe_callable(function.func), "args": arguments, "keywords": keywords}
        wrapped, call = _find_wrapped(function), type(function).__call__
        has_python_call = isinstance(call, FunctionType)
        if type(function) is FunctionType or (issubclass(type(function), type) and not has_python_call):
            return self._refer_to_value(function)
        if type(function) is MethodType:
            return {
                "method": self._describe_callable(function.__func__),
                "self": self._describe_owner(function.__self__),
            }
        wrapper: dict[str, Any] = {}
        if wrapped is not None:
            wrapper = {"wrapper": type(function).__qualname__, "wrapped": self._describe_callable(wrapped)}
        if isinstance(call, FunctionType):  # also of a wrapper, which may do anything with the function inside it
            return wrapper | {"call": self._refer_to_value(call), "self": self._refer_to_value(function)}
        if wrapper:
            return wrapper
        # Written in C: only its name and the object that it is a method of can be seen.
        return {"named": name_function(function), "self": self._describe_value(getattr(function, "__self__", None))}

    def _describe_function(self, function: FunctionType) -> Any:
        """Describe everything that decides what a function does.

        Variables and attributes that the function sets itself are left out: a counter does not make it another
        function.
        """
        code = function.__code__
        stored_variables = _list_stored(code, _VARIABLE_STORES)
        cells = zip(code.co_freevars, function.__closure__ or (), strict=True)
        keywords = function.__kwdefaults__ or {}
        stored_attributes = _list_stored(code, _ATTRIBUTE_STORES)
        attributes = {
            name: value for name, value in vars(function).items() if name not in {*stored_attributes, "__wrapped__"}
        }
        return {
            "name": name_function(function),
            "code": _describe_code(code),
            "defaults": [self._describe_value(default) for default in function.__defaults__ or ()],
            "keywords": {name: self._describe_value(default) for name, default in keywords.items()},
            "closed": {
                name: self._describe_value(read_cell(cell)) for name, cell in cells if name not in stored_variables
            },
            "globals": self._describe_globals(function, stored_variables),
            "attributes": {name: self._describe_value(value) for name, value in sorted(attributes.items())},
        }

    def _describe_globals(self, function: FunctionType, stored_variables: set[str]) -> dict[str, Any]:
        """Describe the globals that a function reads and does not set itself, each by its name.

        Globals are looked up in the function's own module, which differs from the described one for a decorator's
        wrapper.
        """
        values = function.__globals__
        names = sorted((set(_list_names(function.__code__)) - stored_variables) & values.keys())
        return {name: self._describe_global(values[name], function.__module__) for name in names}

    def _describe_global(self, value: Any, module: str) -> Any:
        """Describe the value of a global; a module, and code of another module, by name alone."""
        kind = type(value)
        if kind is ModuleType:
            return ["module", value.__name__]
        if issubclass(kind, _CODE_TYPES) and value.__module__ != module:
            return ["named", *name_function(value)]
        return self._refer_to_value(value) if issubclass(kind, type) else self._describe_value(value)

    def _describe_owner(self, owner: Any) -> Any:
        """Describe the object that a method is bound to; a class where it is a class method."""
        return self._describe_value(owner) if issubclass(type(owner), type) else self._refer_to_value(owner)

    def _describe_object(self, owner: Any) -> Any:
        """Describe an object by its class and its attributes, without the attributes that its methods set later."""
        kind = type(owner)
        stored_attributes = _list_stored_attributes(kind)
        attributes = {name: _read_attribute(owner, name) for base in kind.__mro__ for name in _list_slots(base)}
        attributes |= _read_attribute(owner, "__dict__") or {}
        attributes = {
            name: value for name, value in attributes.items() if name not in stored_attributes and name != "__wrapped__"
        }
        described = {name: self._describe_value(value) for name, value in sorted(attributes.items())}
        return {"class": self._refer_to_value(kind), "attributes": described}

    def _describe_class(self, kind: type[Any]) -> Any:
        """Describe a class by its functions, classes and plain values, with those of its bases in the same module."""
        stored_attributes = _list_stored_attributes(kind)
        members = {name: value for name, value in sorted(_list_members(kind).items()) if name not in stored_attributes}
        described = {
            name: self._describe_value(value)
            for name, value in members.items()
            if issubclass(type(value), (*_CODE_TYPES, *_CALLABLE_TYPES))
            or _find_wrapped(value) is not None
            or _is_plain(value)
        }
        return {"class": f"{kind.__module__}.{kind.__qualname__}", "members": described}

    def _describe_value(self, value: Any) -> Any:
        """Describe a value: code and plain values by content, a class of another module by name, others by type."""
        kind = type(value)  # not isinstance, which may raise for a proxy of an object that does not exist
        if issubclass(kind, type):
            if value.__module__ == self._module:
                return self._refer_to_value(value)
            return ["class", f"{value.__module__}.{value.__qualname__}"]
        is_callable_object = kind.__module__ == self._module and isinstance(kind.__call__, FunctionType)
        if is_callable_object or issubclass(kind, _CALLABLE_TYPES) or _find_wrapped(value) is not None:
            return self._describe_callable(value)
        if kind in (tuple, frozenset):
            items = [self._describe_value(member) for member in value]
            # A set is sorted, because its order differs between processes.
            return [kind.__name__, items if kind is tuple else sorted(map(json.dumps, items))]
        return _describe_plain(value)


def _describe_plain(value: Any) -> Any:
    """Describe a pattern, a member of an enumeration and a plain value by what it is; any other value by its type."""
    if type(value) is re.Pattern:
        return ["pattern", repr(value.pattern), value.flags]
    if issubclass(type(value), Enum):
        return [f"{type(value).__module__}.{type(value).__qualname__}", value._name_, _describe_plain(value._value_)]
    name = f"{type(value).__module__}.{type(value).__qualname__}"
    return [name, repr(value)] if type(value) in _PLAIN_TYPES else ["of type", name]


def _describe_code(code: CodeType) -> Any:
    """Describe code by everything that runs; its file and line numbers are left out, since they change nothing."""
    return {
        "bytes": code.co_code.hex(),
        "caught": code.co_exceptiontable.hex(),  # which instructions are in a ``try``, and where its handlers are
        "names": [code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars],
        "arguments": [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags],
        "constants": [_describe_constant(constant) for constant in code.co_consts],
    }


def _describe_constant(value: Any) -> Any:
    """Describe a constant of code: inner code, a tuple or frozenset of constants, or a plain value."""
    if isinstance(value, CodeType):
        return _describe_code(value)
    if type(value) in (tuple, frozenset):
        items = [_describe_constant(member) for member in value]
        return [type(value).__name__, items if type(value) is tuple else sorted(map(json.dumps, items))]
    return _describe_plain(value)


def _is_plain(value: Any) -> bool:
    """Return whether a value cannot change, with everything in it, and is written the same in every process."""
    if type(value) in (tuple, frozenset):
        return all(map(_is_plain, value))
    return type(value) in (*_PLAIN_TYPES, re.Pattern) or issubclass(type(value), Enum)


def _find_wrapped(value: Any) -> Any:
    """Find the callable inside a wrapper object, such as that of ``functools.lru_cache``; else ``None``."""
    if issubclass(type(value), (*_CODE_TYPES, *_CALLABLE_TYPES)):
        return None
    wrapped = inspect.getattr_static(value, "__wrapped__", None)
    return wrapped if issubclass(type(wrapped), _CALLABLE_TYPES) else None


def read_cell(cell: Any) -> Any:
    """Return the value of a closure's variable; ``None`` if it has none yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


def _read_attribute(owner: Any, name: str) -> Any:
    """Read an attribute without calling the object's own code, which may raise anything; ``None`` if there is none."""
    try:
        return object.__getattribute__(owner, name)
    except AttributeError:
        return None


def _list_slots(kind: type[Any]) -> tuple[str, ...]:
    """List the slots of a class itself, without those of its bases, by the names under which objects have them."""
    slots = kind.__dict__.get("__slots__", ())
    class_name = kind.__name__.lstrip("_")
    names = []
    for name in (slots,) if isinstance(slots, str) else slots:
        is_private = name.startswith("__") and not name.endswith("__")
        if name not in ("__dict__", "__weakref__"):
            names.append(f"_{class_name}{name}" if is_private else name)  # Python adds the class to a private name
    return tuple(names)


def _list_members(kind: type[Any]) -> dict[str, Any]:
    """List the members of a class and its bases in the same module; of a property and the like its function."""
    members: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__ == kind.__module__:
            members |= {name: value for name, value in vars(base).items() if name not in _MEMBERS_OF_EVERY_CLASS}
    return {name: _unwrap_member(value) for name, value in members.items()}


def _unwrap_member(value: Any) -> Any:
    """Return the function inside a property, class method or the like; return any other member as it is."""
    kind = type(value)
    if kind is property:
        return value.fget
    if kind in (functools.cached_property, functools.singledispatchmethod):
        return value.func
    if kind is functools.partialmethod:
        return functools.partial(_unwrap_member(value.func), *value.args, **value.keywords)
    return _unwrap_member(value.__func__) if kind in (staticmethod, classmethod) else value


def _list_stored_attributes(kind: type[Any]) -> set[str]:
    """List the attributes that methods of a class set, except for methods that make an object.

    An attribute that is set while an object is made belongs to its identity; one that is set later may be a counter.
    """
    stored: set[str] = set()
    for name, value in _list_members(kind).items():
        if isinstance(value, FunctionType) and name not in ("__init__", "__new__", "__post_init__"):
            stored |= _list_stored(value.__code__, _ATTRIBUTE_STORES)
    return stored


def _walk_code(code: CodeType) -> Iterator[CodeType]:
    """Yield code, and the code of all functions and classes that are defined inside it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _walk_code(constant)


def _list_names(code: CodeType) -> Iterator[str]:
    """Yield the names of globals and attributes that code uses."""
    for inner in _walk_code(code):
        yield from inner.co_names


def _list_stored(code: CodeType, stores: tuple[str, ...]) -> set[str]:
    """List the names that code sets with the given instructions of byte code (``stores``), also in functions inside it.

    Variables and attributes are listed apart, because setting ``result.limit`` must not hide a variable ``limit``.
    """
    import dis

    return {
        str(instruction.argval)
        for inner in _walk_code(code)
        for instruction in dis.get_instructions(inner)
        if instruction.opname in stores
    }
