"""The view from the hotel as a picture: drawn line by line, and written as PNG. Pure."""

import struct
import zlib
from functools import cache

WIDTH, HEIGHT = 480, 270
_HORIZON = 150
_SUN_X, _SUN_Y, _SUN_RADIUS = 350, 120, 34
_BOAT_X, _BOAT_Y, _SAIL = 150, 190, 60
_GROUND = 232

Colour = tuple[int, int, int]
_SKY: tuple[Colour, Colour] = ((255, 176, 92), (255, 232, 196))
_SEA: tuple[Colour, Colour] = ((70, 132, 158), (22, 62, 96))
_SUN, _SAIL_COLOUR, _HULL, _SAND = (255, 246, 214), (250, 248, 242), (122, 62, 38), (222, 190, 140)


@cache
def sea_view() -> bytes:
    """Return the picture: the sun above the sea, and a boat on it."""
    lines = b"".join(b"\x00" + _line(row) for row in range(HEIGHT))
    head = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", head), (b"IDAT", zlib.compress(lines, 9)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _line(row: int) -> bytes:
    line = bytearray(bytes(_ground(row)) * WIDTH)
    for start, end, colour in _shapes(row):
        line[3 * start : 3 * end] = bytes(colour) * (end - start)
    return bytes(line)


def _ground(row: int) -> Colour:
    if row >= _GROUND:
        return _SAND
    if row < _HORIZON:
        return _between(*_SKY, row / _HORIZON)
    return _between(*_SEA, (row - _HORIZON) / (_GROUND - _HORIZON))


def _between(one: Colour, other: Colour, part: float) -> Colour:
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(one, other, strict=True))
    return red, green, blue


def _shapes(row: int) -> list[tuple[int, int, Colour]]:
    """Return what stands out in a row, each from one column to another."""
    shapes: list[tuple[int, int, Colour]] = []
    above = _SUN_RADIUS**2 - (row - _SUN_Y) ** 2
    if row < _HORIZON and above > 0:
        half = int(above**0.5)
        shapes.append((_SUN_X - half, _SUN_X + half, _SUN))
    if _HORIZON <= row < _GROUND and row % 9 < 2:
        half = 8 + (row * 7) % 30
        shapes.append((_SUN_X - half, _SUN_X + half, _between(_SUN, _ground(row), 0.55)))
    if _BOAT_Y - _SAIL <= row < _BOAT_Y:
        shapes.append((_BOAT_X, _BOAT_X + 1 + (row - _BOAT_Y + _SAIL) * 2 // 3, _SAIL_COLOUR))
    if _BOAT_Y <= row < _BOAT_Y + 12:
        inset = (row - _BOAT_Y) * 2
        shapes.append((_BOAT_X - 26 + inset, _BOAT_X + 50 - inset, _HULL))
    return shapes
