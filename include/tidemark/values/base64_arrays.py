"""Base64 in whole arrays, and the numbers that its bytes are.

Spark's workers import this module, so it imports nothing slow.
"""

from __future__ import annotations

import string
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Sure = npt.NDArray[np.bool_]
"""Of which values of an array something is known."""

_BAD, _PADDING = 255, ord("=")
_ALPHABET = string.ascii_uppercase + string.ascii_lowercase + string.digits
_CODES = np.full(256, _BAD, dtype=np.uint8)
for _code, _character in enumerate(_ALPHABET):
    _CODES[ord(_character)] = _code
for _character, _code in (("+", 62), ("-", 62), ("/", 63), ("_", 63)):
    _CODES[ord(_character)] = _code


class Octets(NamedTuple):
    """Byte strings, one after another."""

    data: npt.NDArray[np.uint8]
    ends: npt.NDArray[np.int64]
    """End of each in ``data``, with a 0 in front."""

    def array(self) -> pa.Array:
        """Return them as an array of ``binary``."""
        ends = pa.py_buffer(self.ends.astype(np.int32))
        return pa.Array.from_buffers(pa.binary(), len(self.ends) - 1, [None, ends, pa.py_buffer(self.data)])

    def numbers(self) -> tuple[npt.NDArray[np.int64], Sure]:
        """Return the numbers that the bytes are, big-endian in two's complement, and which have one to eight bytes."""
        sizes = np.diff(self.ends)
        short = (sizes > 0) & (sizes <= 8)
        first = np.where(short, self.ends[:-1], 0)
        known = self.data if len(self.data) else np.zeros(1, dtype=np.uint8)
        found = np.where(known[first] >= 128, -1, 0).astype(np.int64)
        for place in range(8):
            within = short & (place < sizes)
            byte = known[np.where(within, first + place, 0)]
            found = np.where(within, (found << 8) | byte, found)
        return found, short


def decoded(texts: pa.Array) -> tuple[Octets, Sure]:
    """Return the bytes of texts that are surely Base64 with its padding, and which texts these are.

    Others (null, without padding, with line breaks, not Base64) are not among the bytes.
    """
    sizes = pc.fill_null(pc.binary_length(texts), 1).to_numpy(zero_copy_only=False)
    sure: Sure = sizes % 4 == 0
    if not sure.any():
        return Octets(np.empty(0, dtype=np.uint8), np.zeros(1, dtype=np.int64)), sure
    whole = texts.filter(pa.array(sure))
    ends = np.frombuffer(whole.buffers()[1], dtype=np.int32, count=len(whole) + 1).astype(np.int64)
    characters = np.frombuffer(whole.buffers()[2] or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    ends = ends - ends[0]
    codes, paddings = _codes(characters, ends)
    bad = np.concatenate([[0], np.cumsum(codes == _BAD)])
    good = bad[ends[1:]] == bad[ends[:-1]]
    if not good.all():
        sure[np.flatnonzero(sure)[~good]] = False
        return decoded(pc.if_else(pa.array(sure), texts, None))
    return _octets(codes, ends, paddings), sure


def _codes(
    characters: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]
) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.int64]]:
    """Return what each character stands for, and how many at the end of each text are padding."""
    codes = _CODES[characters]
    some = np.flatnonzero(np.diff(ends))
    last = ends[1:][some] - 1
    one = characters[last] == _PADDING
    two = one & (characters[last - 1] == _PADDING)
    codes[last[one]] = 0
    codes[last[two] - 1] = 0
    paddings = np.zeros(len(ends) - 1, dtype=np.int64)
    paddings[some] = one.astype(np.int64) + two
    return codes, paddings


def _octets(codes: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64], paddings: npt.NDArray[np.int64]) -> Octets:
    quads = codes.reshape(-1, 4)
    octets = np.empty((len(quads), 3), dtype=np.uint8)
    octets[:, 0] = (quads[:, 0] << 2) | (quads[:, 1] >> 4)
    octets[:, 1] = (quads[:, 1] << 4) | (quads[:, 2] >> 2)
    octets[:, 2] = (quads[:, 2] << 6) | quads[:, 3]
    full = ends // 4 * 3
    kept = np.ones(octets.size, dtype=np.bool_)
    kept[full[1:][paddings >= 1] - 1] = False
    kept[full[1:][paddings == 2] - 2] = False
    sizes = np.diff(full) - paddings
    return Octets(octets.reshape(-1)[kept], np.concatenate([[0], np.cumsum(sizes)]))
