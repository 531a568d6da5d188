"""What a source file checks of a table: expectations of Great Expectations."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    ModelWrapValidatorHandler,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import InitErrorDetails

from tidemark.sources.check_arguments import SET, wrong_arguments
from tidemark.sources.choices import Deletes, OnFail, Severity
from tidemark.sources.expectation_names import EXPECTATIONS, NOT_ROW_WISE, REFUSED, ROW_WISE
from tidemark.sources.fields import again, error_at, wrong
from tidemark.text import nearest


class Check(BaseModel):
    """One expectation of Great Expectations for one table, with its own name and arguments."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str
    severity: Severity = Severity.BLOCK
    """``block``: a failed check holds the cut back. ``warn``: it is reported, and the cut is published."""
    on_fail: OnFail | None = None
    """``block`` and ``warn`` as ``severity``. ``quarantine``: a row that fails is not published. ``keep_last_good``: it
    stays as it was. Both set the event aside, for expectations that each row passes or fails by itself."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the expectation, as the file gives them, but for a null among the values of a set.

        A null passes anyway. In SQL nothing is outside of a set with a null, so each row would pass.
        """
        given = dict(self.model_extra or {})
        if self.type == "expect_column_values_to_be_in_set" and isinstance(given.get(SET), list):
            given[SET] = [value for value in given[SET] if value is not None]
        return given

    @property
    def judged_as(self) -> Severity:
        """Return what follows if Great Expectations finds it broken; a row that should have been kept back blocks."""
        if self.on_fail is None:
            return self.severity
        return Severity.WARN if self.on_fail is OnFail.WARN else Severity.BLOCK

    @property
    def keeps_back(self) -> bool:
        """Return whether rows that fail it are kept back."""
        return self.on_fail in {OnFail.QUARANTINE, OnFail.KEEP_LAST_GOOD}

    @field_validator("type")
    @classmethod
    def _known(cls, name: str) -> str:
        if name in REFUSED:
            raise wrong(f"{name} cannot be checked: {REFUSED[name]}")
        if name not in EXPECTATIONS:
            hint = nearest(name, EXPECTATIONS)
            raise wrong(f"unknown expectation '{name}'.{hint} Allowed: the expect_... names of Great Expectations.")
        return name

    @model_validator(mode="wrap")
    @classmethod
    def _whole(cls, given: object, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Return the check. What is wrong with its own keys and with its arguments is reported together."""
        arguments = list(wrong_arguments(given, own=cls.model_fields)) if isinstance(given, Mapping) else []
        try:
            found = handler(given)
        except ValidationError as error:
            arguments += [again(each) for each in error.errors()]
        else:
            arguments += found._unfit()  # noqa: SLF001  its own
            if not arguments:
                return found
        raise ValidationError.from_exception_data("Check", arguments)

    def _unfit(self) -> Iterator[InitErrorDetails]:
        """Yield what contradicts ``on_fail``."""
        if self.on_fail is not None and "severity" in self.model_fields_set:
            yield error_at(("on_fail",), "on_fail says what severity says: leave one of them out.")
        if not self.keeps_back:
            return
        if self.type not in ROW_WISE:
            names = ", ".join(sorted(ROW_WISE))
            text = f"{self.type} is not judged row by row, so it can only block or warn. Row by row: {names}."
            yield error_at(("on_fail",), text)
        for name in sorted(self.arguments.keys() & NOT_ROW_WISE):
            yield error_at((name,), f"a check with `on_fail: {self.on_fail}` judges each row: leave {name} out.")


def columns_in(arguments: Mapping[str, Any]) -> list[str]:
    """Return the names of the columns that a check with these arguments looks at."""
    return [arguments[name] for name in ("column", "column_A", "column_B") if name in arguments]


def problems(
    checks: Sequence[Check], key: Sequence[str] | None, deletes: Deletes, derived: Container[str]
) -> Iterator[InitErrorDetails]:
    """Yield what is wrong with checks that keep rows back, in a table that cannot have them."""
    for number, check in enumerate(checks):
        if check.keeps_back and (key == () or deletes is Deletes.SOFT):
            why = (
                "without a key nothing tells rows apart" if key == () else "with `deletes: soft` it would look deleted"
            )
            yield error_at(("checks", number, "on_fail"), f"no row can be kept back: {why}. Use block or warn.")
        made = [each for each in columns_in(check.arguments) if each in derived]
        if check.keeps_back and made:
            text = f"'{made[0]}' is derived, and rows are kept back before columns are. Use block or warn."
            yield error_at(("checks", number, "on_fail"), text)
