"""Prints what AMD's bindings for Python have in compiled form only: numbers, sizes and places.

usage: measure.py FOLDER, where the wheels lie unpacked. No ROCm library is needed.

value NAME NUMBER             a constant, or a value of an enum
size STRUCTURE BYTES          a structure or union
offset STRUCTURE FIELD BYTES  where a field of it begins, as far as its accessors show it
"""

import ctypes
import enum
import sys

sys.path.insert(0, sys.argv[1])

from rocm.bindings import hip, hiprtc  # noqa: E402

MODULES = (hip, hiprtc)


def is_enum(item):
    return isinstance(item, type) and issubclass(item, enum.IntEnum)


def values(module):
    for name, item in sorted(vars(module).items()):
        if isinstance(item, int) and not isinstance(item, bool):
            print("value", name, int(item))
        elif is_enum(item):
            for member, value in item.__members__.items():
                print("value", member, int(value))


def candidates():
    """What a field may be set to. The first byte of each is not zero, also that of the fraction in 4 and in 8 bytes."""
    yield 1
    yield -1.1
    for module in MODULES:
        for item in vars(module).values():
            if is_enum(item):
                yield from [value for value in item if value % 256][:1]


CANDIDATES = list(candidates())


def offset(structure, memory, field):
    try:
        current = getattr(structure, field)
    except ValueError:
        # An enum that has no value 0.
        current = None
    start = ctypes.addressof(memory)
    if not isinstance(current, (int, float, bytes, str, list, type(None))):
        # A structure inside this one is given by its address.
        try:
            place = int(current)
        except (TypeError, ValueError):
            place = 0
        if start <= place < start + len(memory):
            return place - start
    for value in CANDIDATES:
        if isinstance(current, float) != isinstance(value, float):
            continue
        try:
            setattr(structure, field, value)
        except Exception:
            continue
        changed = [at for at, byte in enumerate(memory.raw) if byte]
        ctypes.memset(memory, 0, len(memory))
        if changed:
            return changed[0]
    return None


def structures(module):
    for name, item in sorted(vars(module).items()):
        if not hasattr(item, "c_sizeof") or item.__name__ != name:
            continue
        structure = item()
        size = structure.c_sizeof()
        print("size", name, size)
        memory = (ctypes.c_char * size).from_address(int(structure))
        ctypes.memset(memory, 0, size)
        for field in item.PROPERTIES():
            place = offset(structure, memory, field)
            if place is not None:
                print("offset", name, field, place)


for module in MODULES:
    values(module)
    structures(module)
