"""What staff fill in: always a reason, and a key of the form's own, made when it is rendered."""

import uuid
from collections.abc import Mapping
from typing import Any

from django import forms


class ActionForm(forms.Form):
    """A reason, and nothing else."""

    form = forms.UUIDField(widget=forms.HiddenInput)
    reason = forms.CharField(
        label="Reason",
        help_text="Kept for good, with your name: what you know and from where, a ticket’s number.",
        min_length=5,
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
    )

    def __init__(self, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(data, initial={"form": uuid.uuid4()}, label_suffix="")

    def evidence(self) -> dict[str, Any]:
        """Return what is recorded beside the reason."""
        return {
            name: value
            for name, value in self.cleaned_data.items()
            if name not in ("form", "reason") and value not in ("", None)
        }


class SettleForm(ActionForm):
    """What was found at the other side."""

    happened = forms.ChoiceField(
        label="What do the gateway’s own records say?",
        choices=[
            ("yes", "It happened: the gateway shows it"),
            ("no", "It did not happen: the gateway has no trace of it, or shows it as failed"),
        ],
        widget=forms.RadioSelect,
    )
    reference = forms.CharField(
        label="The gateway’s id of it",
        help_text="As its console shows it, e.g. pi_3N… — needed where it happened.",
        max_length=200,
        required=False,
    )
    seen_where = forms.CharField(
        label="Where did you see that?",
        help_text="E.g. “gateway dashboard, search for order 881, 14:20”.",
        min_length=5,
        max_length=200,
    )
    field_order = ["happened", "reference", "seen_where", "reason"]

    def clean(self) -> dict[str, Any]:
        """Require the gateway's id where it happened."""
        data = super().clean() or {}
        if data.get("happened") == "yes" and not data.get("reference"):
            self.add_error(
                "reference", "Without the gateway’s id there is no proof that it happened."
            )
        return data


class BreakerForm(ActionForm):
    """What a breaker is told."""

    force = forms.ChoiceField(
        label="The breaker is",
        choices=[
            ("open", "Held open: every call is refused at once, nothing is charged"),
            ("closed", "Held closed: calls go through whatever happens"),
            ("clear", "Let go: it starts closed and decides by itself again"),
        ],
        widget=forms.RadioSelect,
    )
    field_order = ["force", "reason"]
