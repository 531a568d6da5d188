"""The expectations of Great Expectations and their arguments.

They stand here because importing Great Expectations takes more than five seconds. A test compares them with the
library, and another one judges a table by each. An argument with an exclamation mark is required: by the library, or
because each table passes without it.
"""

from __future__ import annotations

from collections.abc import Mapping

_ROWS = "row_condition condition_parser"

_COLUMN = "column! row_condition condition_parser"

_VALUES = "column! row_condition condition_parser mostly"

_MANY = "column_list! row_condition condition_parser ignore_row_if mostly"

_PAIR = "column_A! column_B! row_condition condition_parser ignore_row_if mostly"

_RANGE = "min_value max_value strict_min strict_max"

_TABLE = {
    "expect_column_distinct_values_to_be_in_set": f"{_COLUMN} value_set!",
    "expect_column_distinct_values_to_contain_set": f"{_COLUMN} value_set!",
    "expect_column_distinct_values_to_equal_set": f"{_COLUMN} value_set!",
    "expect_column_kl_divergence_to_be_less_than": (
        f"{_COLUMN} partition_object! threshold! internal_weight_holdout tail_weight_holdout bucketize_data"
        " min_value max_value"
    ),
    "expect_column_max_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_mean_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_median_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_min_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_most_common_value_to_be_in_set": f"{_COLUMN} value_set! ties_okay",
    "expect_column_pair_values_a_to_be_greater_than_b": f"{_PAIR} or_equal",
    "expect_column_pair_values_to_be_equal": _PAIR,
    # Without a condition: with one, Great Expectations counts all rows of the table for it, and fails.
    "expect_column_pair_values_to_be_in_set": "column_A! column_B! ignore_row_if mostly value_pairs_set!",
    "expect_column_proportion_of_non_null_values_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_proportion_of_unique_values_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_quantile_values_to_be_between": f"{_COLUMN} quantile_ranges! allow_relative_error",
    "expect_column_stdev_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_sum_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_to_exist": "column! column_index",
    "expect_column_type_to_be": "column! type_!",
    "expect_column_unique_value_count_to_be_between": f"{_COLUMN} {_RANGE}",
    "expect_column_value_lengths_to_be_between": f"{_VALUES} {_RANGE}",
    "expect_column_value_lengths_to_equal": f"{_VALUES} value!",
    "expect_column_value_z_scores_to_be_less_than": f"{_VALUES} threshold! double_sided!",
    "expect_column_values_to_be_between": f"{_VALUES} {_RANGE}",
    "expect_column_values_to_be_in_set": f"{_VALUES} value_set!",
    "expect_column_values_to_be_in_type_list": f"{_VALUES} type_list!",
    "expect_column_values_to_be_json_parseable": _VALUES,
    "expect_column_values_to_be_null": _VALUES,
    "expect_column_values_to_be_of_type": f"{_VALUES} type_!",
    "expect_column_values_to_be_unique": _VALUES,
    "expect_column_values_to_match_json_schema": f"{_VALUES} json_schema!",
    "expect_column_values_to_match_regex": f"{_VALUES} regex!",
    "expect_column_values_to_match_regex_list": f"{_VALUES} regex_list! match_on",
    "expect_column_values_to_match_strftime_format": f"{_VALUES} strftime_format!",
    "expect_column_values_to_not_be_in_set": f"{_VALUES} value_set!",
    "expect_column_values_to_not_be_null": _VALUES,
    "expect_column_values_to_not_be_outliers": f"{_VALUES} method multiplier",
    "expect_column_values_to_not_match_regex": f"{_VALUES} regex!",
    "expect_column_values_to_not_match_regex_list": f"{_VALUES} regex_list!",
    "expect_compound_columns_to_be_unique": _MANY,
    "expect_multicolumn_sum_to_equal": f"{_MANY} sum_total!",
    "expect_multicolumn_values_to_be_equal": _MANY,
    "expect_select_column_values_to_be_unique_within_record": _MANY,
    "expect_table_column_count_to_be_between": "min_value max_value",
    "expect_table_column_count_to_equal": "value!",
    "expect_table_columns_to_match_ordered_list": "column_list!",
    "expect_table_columns_to_match_set": "column_set! exact_match",
    "expect_table_row_count_to_be_between": f"{_ROWS} {_RANGE}",
    "expect_table_row_count_to_equal": f"{_ROWS} value!",
}

EXPECTATIONS: Mapping[str, frozenset[str]] = {
    name: frozenset(arguments.replace("!", "").split()) for name, arguments in _TABLE.items()
}
"""Expectation type -> the arguments that a check may give."""

REQUIRED: Mapping[str, frozenset[str]] = {
    name: frozenset(argument[:-1] for argument in arguments.split() if argument.endswith("!"))
    for name, arguments in _TABLE.items()
}
"""Expectation type -> the arguments that a check must give."""

BOUNDED = frozenset(
    name for name, arguments in EXPECTATIONS.items() if name.endswith("_between") and "min_value" in arguments
)
"""Expectations that need ``min_value`` or ``max_value``: each table passes without both."""

_NO_ORDER = "rows of a table have no order, so the verdict would be one about the order of its files."

_NO_LIKE = "Great Expectations has it for databases, and not for Spark. Use expect_column_values_to_{}match_regex{}."

_OTHER_TABLES = (
    "it needs a second table or a query, and a check sees one table. `tidemark reconcile` compares with the source."
)

REFUSED: Mapping[str, str] = {
    "expect_column_values_to_be_dateutil_parseable": (
        "Great Expectations has it for pandas, and not for Spark. Use expect_column_values_to_match_strftime_format."
    ),
    "expect_column_values_to_be_decreasing": _NO_ORDER,
    "expect_column_values_to_be_increasing": _NO_ORDER,
    "expect_column_values_to_match_like_pattern": _NO_LIKE.format("", ""),
    "expect_column_values_to_match_like_pattern_list": _NO_LIKE.format("", "_list"),
    "expect_column_values_to_not_match_like_pattern": _NO_LIKE.format("not_", ""),
    "expect_column_values_to_not_match_like_pattern_list": _NO_LIKE.format("not_", "_list"),
    "expect_query_results_to_match_comparison": _OTHER_TABLES,
    "expect_table_row_count_to_equal_other_table": _OTHER_TABLES,
    "unexpected_rows_expectation": _OTHER_TABLES,
}
"""Expectation type that no check can have -> why, and what to use instead."""

ROW_WISE = frozenset(
    {
        "expect_column_pair_values_a_to_be_greater_than_b",
        "expect_column_pair_values_to_be_equal",
        "expect_column_value_lengths_to_be_between",
        "expect_column_value_lengths_to_equal",
        "expect_column_values_to_be_between",
        "expect_column_values_to_be_in_set",
        "expect_column_values_to_be_null",
        "expect_column_values_to_match_regex",
        "expect_column_values_to_not_be_in_set",
        "expect_column_values_to_not_be_null",
        "expect_column_values_to_not_match_regex",
    }
)
"""Expectations that each row passes or fails by itself, and that can keep a row back (``folding.row_checks``)."""

NOT_ROW_WISE = frozenset({"mostly", "row_condition", "condition_parser", "ignore_row_if"})
"""Arguments that a check which keeps rows back cannot have."""
