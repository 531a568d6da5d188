"""The entry of a source file that names a notifier of Airflow."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field


class Notifier(BaseModel):
    """One class of Airflow's notifiers, by its full name, with its own arguments. Only Airflow knows them."""

    model_config = ConfigDict(extra="allow", frozen=True)

    notifier: Annotated[str, Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)+$")]
    """``airflow.providers.smtp.notifications.smtp.SmtpNotifier``, for example."""

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of the notifier, as the file gives them."""
        return dict(self.model_extra or {})
