"""A column whose type changes gets the type that holds both, or its table stops and says which types work."""

from __future__ import annotations

import re

import pytest

from tidemark.errors import IncompatibleSchemaError
from tidemark.tables.common_types import agreed, common_type
from tidemark.values.types import declared


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ("int", "long", "long"),
        ("long", "int", "long"),
        ("int", "decimal(8, 2)", "decimal(12, 2)"),
        ("long", "string", "string"),
        ("string", "decimal(38, 10)", "string"),
        ("double", "string", "string"),
        ("boolean", "string", "string"),
        ("string", "string", "string"),
        ("boolean", "boolean", "boolean"),
        ("boolean", "int", None),
        ("decimal(5, 2)", "boolean", None),
        ("long", "double", None),
        ("decimal(38, 0)", "decimal(38, 10)", None),
        ("timestamp", "string", None),
        ("date", "timestamp", None),
        ("binary", "string", None),
        ("int", "binary", None),
    ],
)
def test_the_common_type_holds_every_value_of_both(old: str, new: str, both: str | None) -> None:
    """Numbers widen; text holds numbers or booleans. For the rest, and for both of these, a person has to choose."""
    assert common_type(old, new) == both


@pytest.mark.parametrize(
    ("old", "new", "kind"),
    [
        (None, "int", "int"),
        (None, "timestamp", None),
        ("long", "string", "string"),
        ("boolean", "string", "string"),
        ("boolean", "int", None),
        ("string", "int", "string"),
        ("long", "int", "long"),
        ("timestamp", "string", "timestamp"),
    ],
)
def test_a_declaration_of_ddl_changes_a_type_without_loss(old: str | None, new: str, kind: str | None) -> None:
    """Where the messages declare no type; a narrower declaration changes nothing, and a boolean becomes no number."""
    assert declared(old, new) == kind


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("long", "double", ["string (all values, as written)", "long (values that fit it)", "double (values"]),
        ("date", "timestamp", ["string (all values)", "timestamp (values that fit it)"]),
        ("binary", "string", ["binary (values that fit it)", "string (all values but bytes"]),
        ("timestamp", "string", ["string (all", "timestamp (values that fit it)"]),
        ("boolean", "int", ["string (all values, as written)", "boolean (values that fit it)", "int (values"]),
        ("decimal(5, 2)", "boolean", ["decimal(5, 2) (values that fit it)", "boolean (values that fit it)"]),
    ],
)
def test_what_stops_names_each_type_that_works_and_the_command(old: str, new: str, parts: list[str]) -> None:
    """The reason can be followed as it stands."""
    with pytest.raises(IncompatibleSchemaError, match=re.escape(f"changed from {old} to {new}")) as caught:
        agreed("c", old, new, source="erp", table="shop.t", is_declared=False)
    for part in (*parts, "`columns: {c: ...}`", "`tidemark rebuild erp shop.t`"):
        assert part in str(caught.value)


def test_a_type_of_the_source_file_is_never_replaced_unseen() -> None:
    """A published text that the source file declares a boolean needs the rebuild that it names."""
    with pytest.raises(
        IncompatibleSchemaError, match=r"published as string, .* says boolean.*tidemark rebuild erp shop"
    ):
        agreed("c", "string", "boolean", source="erp", table="shop.t", is_declared=True)
    assert agreed("c", "long", "string", source="erp", table="shop.t", is_declared=True) == "string"
    assert agreed("c", "long", "int", source="erp", table="shop.t", is_declared=True) == "long"
    assert agreed("c", None, "int", source="erp", table="shop.t", is_declared=True) == "int"
