"""Character sets by their names in databases, as Python codecs. The list is closed, because the names are hostile.

A name is listed only if Python's codec, or a table here, has every character of the database's set. Sets that Python
lacks (``dec8``, ``hp8``, ``swe7``, ``geostd8``, ``armscii8``, ``keybcs2``, ``eucjpms``) and unknown sets are refused.
Sources of the names: for MySQL https://dev.mysql.com/doc/refman/8.4/en/charset-charsets.html, for Oracle its
Globalization Support Guide, for PostgreSQL https://www.postgresql.org/docs/current/multibyte.html.
"""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from typing import Final

from tidemark.errors import UnreadableValueError

_UNDEFINED: Final = "\ufffe"
"""Stands in a table for a byte that is no character."""


def _table(codec: str, own: Mapping[int, str]) -> str:
    """Return the characters of all bytes: of a codec, but for those that MySQL has otherwise."""
    return "".join(own.get(byte) or bytes([byte]).decode(codec, "ignore") or _UNDEFINED for byte in range(256))


_BY_MARK: Final = "utf-16 by its mark"
"""The set UTF-16. A mark at the beginning says the order of the bytes. Without one it is big-endian (RFC 2781, 4.3), as
in Java, in which DTS's SDK is written. Python's codec takes the order of the machine."""

_MARKS: Final = frozenset({codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE})

_OF_MYSQL: Final[Mapping[str, str]] = {
    # Windows leaves five bytes undefined; MySQL keeps them.
    "mysql latin1": _table("cp1252", {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)}),
    # MySQL has the marks of ISO 8859-7:1987, where Python has quotation marks.
    "mysql greek": _table("iso8859_7", {0xA1: "\u02bd", 0xA2: "\u02bc"}),
    "mysql koi8u": _table("koi8_u", {0x95: "\u2022"}),
    "mysql hebrew": _table("iso8859_8", {0xAF: "\u203e"}),
}
"""Sets of MySQL with characters that no codec of Python has at their bytes: see its share/charsets/*.xml."""

MYSQL: Mapping[str, str] = {
    **dict.fromkeys(("utf8", "utf8mb3", "utf8mb4"), "utf-8"),
    "ascii": "ascii", "big5": "big5", "cp1250": "cp1250", "cp1251": "cp1251", "cp1256": "cp1256", "cp1257": "cp1257",
    "cp850": "cp850", "cp852": "cp852", "cp866": "cp866", "cp932": "cp932", "euckr": "euc_kr", "gb18030": "gb18030",
    "gb2312": "gb2312", "gbk": "gbk", "greek": "mysql greek", "hebrew": "mysql hebrew", "koi8r": "koi8_r",
    "koi8u": "mysql koi8u", "latin1": "mysql latin1", "latin2": "iso8859_2", "latin5": "iso8859_9",
    "latin7": "iso8859_13", "macce": "mac_latin2", "macroman": "mac_roman", "sjis": "shift_jis", "tis620": "tis_620",
    "ucs2": "utf_16_be", "ujis": "euc_jp", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be",
}  # fmt: skip

OTHERS: Mapping[str, str] = {
    # Oracle
    **dict.fromkeys(("al32utf8", "utf8"), "utf-8"),
    "al16utf16": "utf_16_be", "us7ascii": "ascii", "zhs16gbk": "gbk", "zhs32gb18030": "gb18030",
    "zhs16cgb231280": "gb2312", "zht16big5": "big5", "zht16mswin950": "cp950", "ja16sjis": "shift_jis",
    "ja16euc": "euc_jp", "ko16ksc5601": "euc_kr", "ko16mswin949": "cp949", "we8iso8859p1": "latin_1",
    "we8iso8859p15": "iso8859_15", "we8mswin1252": "cp1252", "ee8mswin1250": "cp1250", "cl8mswin1251": "cp1251",
    # PostgreSQL, SQL Server and the registry of IANA
    "utf-8": "utf-8", "ascii": "ascii", "us-ascii": "ascii", "latin1": "latin_1", "iso-8859-1": "latin_1",
    "iso_8859_1": "latin_1", "latin9": "iso8859_15", "win1250": "cp1250", "win1251": "cp1251", "win1252": "cp1252",
    "windows-1252": "cp1252", "euc_cn": "gb2312", "euc_jp": "euc_jp", "euc_kr": "euc_kr", "sjis": "shift_jis",
    "big5": "big5", "gbk": "gbk", "gb2312": "gb2312", "gb18030": "gb18030", "cp936": "gbk", "cp950": "cp950",
    "utf-16": _BY_MARK, "utf-16le": "utf_16_le", "utf-16be": "utf_16_be", "utf8mb4": "utf-8",
}  # fmt: skip


def names_of(source: str) -> Mapping[str, str]:
    """Return the names for a source. In MySQL, ``latin1`` is the Windows code page; elsewhere it is ISO 8859-1."""
    return MYSQL if source in {"MySQL", "DRDS"} else OTHERS


def decode(content: bytes, charset: str, names: Mapping[str, str]) -> str:
    """Return the text of ``content``.

    Raises:
        UnreadableValueError: the character set is not known, or the bytes are not in it.
    """
    codec = names.get(charset) or names.get(charset.lower())
    if codec is None:
        known = ", ".join(sorted(names))
        named = f"the character set '{charset[:40]}'" if charset else "no character set"
        raise UnreadableValueError(f"text in {named}, and these are known: {known}")
    if codec == _BY_MARK:
        codec = "utf_16" if content[:2] in _MARKS else "utf_16_be"
    try:
        if codec in _OF_MYSQL:
            return codecs.charmap_decode(content, "strict", _OF_MYSQL[codec])[0]
        return content.decode(codec)
    except UnicodeDecodeError as error:
        raise UnreadableValueError(fault(error, charset)) from error


def fault(error: UnicodeDecodeError, charset: str = "UTF-8") -> str:
    """Return a text that says which bytes are not valid, and where."""
    return f"{error.object[:40].hex(' ')} is no {charset}: {error.reason} at byte {error.start}"
