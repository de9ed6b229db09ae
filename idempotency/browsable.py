"""DRF's browsable API with a key in each form: made when the form is rendered, not when it is sent (E13).

    REST_FRAMEWORK = {"DEFAULT_RENDERER_CLASSES": [..., "idempotency.browsable.BrowsableAPIRenderer"]}

A second click, or a repeat after a lost answer, sends the key of the form again. It takes JavaScript: a plain HTML form
cannot send a header, and is answered 400 `key-missing` where a key is required.
"""

import uuid
from typing import Any

from django import forms
from django.utils.html import format_html
from rest_framework import renderers
from rest_framework.request import Request
from rest_framework.views import APIView

from idempotency.decorated import config_of
from idempotency.http.header import NAME
from idempotency.http.route import handler_of


class BrowsableAPIRenderer(renderers.BrowsableAPIRenderer):
    """Adds a field for the key to every form that leads to an `@idempotent` handler."""

    template = "idempotency/api.html"

    def get_rendered_html_form(
        self, data: Any, view: APIView, method: str, request: Request
    ) -> Any:
        """Return the form's fields as HTML."""
        form = super().get_rendered_html_form(data, view, method, request)
        if not isinstance(form, str) or not _counts(view, method):
            return form
        return format_html(
            '{}<div class="form-group"><label class="col-sm-2 control-label">{}</label>'
            '<div class="col-sm-10"><input name="{}" class="form-control" value="{}" readonly></div></div>',
            form,
            NAME,
            NAME,
            _key_for(request, data),
        )

    def get_raw_data_form(self, data: Any, view: APIView, method: str, request: Request) -> Any:
        """Return the form for any content."""
        form = super().get_raw_data_form(data, view, method, request)
        if form is not None and _counts(view, method):
            form.fields[NAME] = forms.CharField(
                initial=_key_for(request, data),
                widget=forms.TextInput(attrs={"readonly": True}),
                help_text="Made with this form: sending it twice is one operation.",
            )
        return form


def _counts(view: APIView, method: str) -> bool:
    actions = getattr(view, "action_map", None) or {}
    config = config_of(handler_of(type(view), actions.get(method.lower(), method.lower())))
    return config is not None and method in config.methods


def _key_for(request: Request, data: Any) -> str:
    """Return a new key; or the request's own, while its operation is not over."""
    told = data if isinstance(data, dict) else {}
    sent = request.headers.get(NAME, "")
    if sent and told.get("code") and told.get("safe_new_key") is not True:
        return sent
    return str(uuid.uuid4())
