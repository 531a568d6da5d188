"""Avro's binary form: numbers, texts, and the blocks of arrays and maps.

https://avro.apache.org/docs/1.12.0/specification/#binary-encoding. Every function takes (bytes, place). It returns
what stands at the place, and the place behind it. Reading past the end raises an IndexError. Bytes that are not Avro
raise a ValueError.
"""

from __future__ import annotations


def varint(buffer: bytes, place: int) -> tuple[int, int]:
    """Read an int or a long: zigzag coded, seven bits in each byte, the lowest bits first."""
    byte = buffer[place]
    place += 1
    number, shift = byte & 0x7F, 7
    while byte >= 0x80:
        byte = buffer[place]
        place += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if shift > 70:
            raise ValueError("a number of more than ten bytes")
    return (number >> 1) ^ -(number & 1), place


def chunk(buffer: bytes, place: int) -> tuple[bytes, int]:
    """Read a string or bytes: the length, then that number of bytes."""
    size = buffer[place]
    if size < 0x80 and not size & 1:
        place += 1
        end = place + (size >> 1)
    else:
        size, place = varint(buffer, place)
        end = place + size
        if size < 0:
            raise ValueError("a negative length")
    if end > len(buffer):
        raise IndexError("a text is longer than what is left")
    return buffer[place:end], end


def block(buffer: bytes, place: int) -> tuple[int, int]:
    """Read the number of items in the next block; 0 is the end. The block's size in bytes follows a negative number."""
    count = buffer[place]
    if count < 0x80 and not count & 1:
        return count >> 1, place + 1
    count, place = varint(buffer, place)
    if count < 0:
        _, place = varint(buffer, place)
    return abs(count), place
