"""What gunicorn's processes refuse at their start."""

from types import SimpleNamespace

import pytest
from django.core.exceptions import ImproperlyConfigured

from project import gunicorn


@pytest.mark.parametrize(
    "name", ["gevent", "eventlet", "gevent_pywsgi", "gunicorn.workers.ggevent.GeventWorker"]
)
def test_a_worker_that_replaces_threads_after_django_is_loaded_is_refused(name: str) -> None:
    worker = SimpleNamespace(cfg=SimpleNamespace(worker_class_str=name))
    with pytest.raises(ImproperlyConfigured, match="Use gthread"):
        gunicorn.post_worker_init(worker)


@pytest.mark.parametrize("name", ["gthread", "sync"])
def test_threads_and_processes_are_served(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    required: list[str] = []
    monkeypatch.setattr("project.warm.load", lambda: None)
    monkeypatch.setattr("project.ready.require", lambda: required.append(name))
    gunicorn.post_worker_init(SimpleNamespace(cfg=SimpleNamespace(worker_class_str=name)))
    assert required == [name]
