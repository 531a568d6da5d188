"""Tables of the shop. All formats can express their types, and must publish them exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tidemark.demo.story.model import Column, Schema


def _column(name: str, type_: str, mysql_type: str, *marks: str) -> Column:
    return Column(name=name, type=type_, mysql_type=mysql_type, nullable="null" in marks, key="key" in marks)


def _replaced(schema: Schema, old: str, new: Column) -> Schema:
    return replace(schema, columns=tuple(new if column.name == old else column for column in schema.columns))


def _with(schema: Schema, new: Column, *, without: str | None = None) -> Schema:
    return replace(schema, columns=(*(column for column in schema.columns if column.name != without), new))


CUSTOMERS = Schema(
    table="customers",
    columns=(
        _column("customer_number", "long", "bigint", "key"),
        _column("name", "string", "varchar(200)"),
        _column("email", "string", "varchar(200)", "null"),
        _column("is_active", "int", "tinyint(1)"),
        _column("credit_limit", "decimal(18, 2)", "decimal(18,2)"),
        _column("lifetime_value", "decimal(38, 10)", "decimal(38,10)", "null"),
        _column("born_on", "date", "date", "null"),
        _column("registered_at", "timestamp", "datetime(6)"),
        _column("badge", "binary", "varbinary(16)", "null"),
        _column("notes", "string", "text", "null"),
    ),
)

ORDERS = Schema(
    table="orders",
    columns=(
        _column("order_id", "long", "bigint", "key"),
        _column("customer_number", "long", "bigint"),
        _column("status", "string", "varchar(20)"),
        _column("order_date", "date", "date"),
        _column("placed_at", "timestamp", "datetime(6)"),
        _column("shipped_at", "timestamp", "datetime(6)", "null"),
        _column("total", "decimal(18, 2)", "decimal(18,2)"),
        _column("quantity_total", "int", "int"),
        _column("external_reference", "decimal(20, 0)", "bigint unsigned"),
        _column("weight_kg", "double", "double", "null"),
        _column("remark", "string", "text", "null"),
    ),
)

ORDER_LINES = Schema(
    table="order_lines",
    columns=(
        _column("order_id", "long", "bigint", "key"),
        _column("line_number", "int", "int", "key"),
        _column("sku", "string", "varchar(40)"),
        _column("quantity", "int", "int"),
        _column("unit_price", "decimal(18, 2)", "decimal(18,2)"),
        _column("discount_rate", "double", "double", "null"),
        _column("gift_note", "string", "text", "null"),
    ),
)

PAYMENTS = Schema(
    table="payments",
    columns=(
        _column("payment_id", "long", "bigint", "key"),
        _column("order_id", "long", "bigint"),
        _column("method", "string", "varchar(20)"),
        _column("amount", "decimal(18, 2)", "decimal(18,2)"),
        _column("is_refund", "int", "tinyint(1)"),
        _column("paid_at", "timestamp", "datetime(6)"),
        _column("receipt", "binary", "varbinary(32)", "null"),
    ),
)

STOCK_SCANS = Schema(
    table="stock_scans",
    columns=(
        _column("sku", "string", "varchar(40)"),
        _column("shelf", "string", "varchar(20)", "null"),
        _column("pieces", "int", "int"),
        _column("price", "decimal(18, 2)", "decimal(18,2)"),
        _column("scanned_on", "date", "date"),
        _column("note", "string", "text", "null"),
    ),
)
"""Scans of the stockroom, one row for each. The table has no key: two equal rows are two scans."""

CUSTOMERS_LEVELLED = _with(CUSTOMERS, _column("loyalty_level", "int", "int", "null"))

ORDERS_WIDENED = _replaced(ORDERS, "quantity_total", _column("quantity_total", "long", "bigint"))

PAYMENTS_BY_CHANNEL = _replaced(PAYMENTS, "method", _column("channel", "string", "varchar(20)"))

PAYMENTS_OF_ANY_CURRENCY = _with(PAYMENTS_BY_CHANNEL, _column("currency", "string", "varchar(3)"), without="receipt")

STOCK_SCANS_LOCATED = _replaced(STOCK_SCANS, "shelf", _column("location", "string", "varchar(20)", "null"))

STOCK_SCANS_BY_SCANNER = _with(STOCK_SCANS_LOCATED, _column("scanner", "string", "varchar(20)"), without="note")

SCHEMAS: Mapping[str, tuple[Schema, ...]] = {
    "customers": (CUSTOMERS, CUSTOMERS_LEVELLED),
    "orders": (ORDERS, ORDERS_WIDENED),
    "order_lines": (ORDER_LINES,),
    "payments": (PAYMENTS, PAYMENTS_BY_CHANNEL, PAYMENTS_OF_ANY_CURRENCY),
    "stock_scans": (STOCK_SCANS, STOCK_SCANS_LOCATED, STOCK_SCANS_BY_SCANNER),
}


def create_table(schema: Schema) -> str:
    """Return the statement that creates the table, in MySQL's dialect."""
    columns = [
        f"`{column.name}` {column.mysql_type} {'NULL' if column.nullable else 'NOT NULL'}" for column in schema.columns
    ]
    if schema.key:
        columns.append(f"PRIMARY KEY ({', '.join(f'`{name}`' for name in schema.key)})")
    return f"CREATE TABLE `shop`.`{schema.table}` ({', '.join(columns)})"
