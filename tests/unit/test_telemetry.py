"""The event bus: a published catalogue, few-valued labels, listeners that cannot do harm."""

import dataclasses
import logging

import pytest

from idempotency import telemetry
from idempotency.telemetry import CallEnded, CallRefused, Event, catalogue, emit, subscribe


def test_a_listener_hears_its_kind_only_and_until_it_unsubscribes() -> None:
    heard: list[Event] = []
    unsubscribe = subscribe(CallRefused, heard.append)
    refused = CallRefused(guard="g", reason="no-time")
    emit(refused)
    emit(CallEnded(guard="g", ending="success", attempts=1, seconds=0.1))
    unsubscribe()
    emit(refused)
    assert heard == [refused]


def test_a_failing_listener_is_logged_and_harms_neither_the_code_nor_its_siblings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    heard: list[Event] = []

    def fails(event: Event) -> None:
        raise ValueError("no")

    ends = [subscribe(Event, fails), subscribe(Event, heard.append)]
    with caplog.at_level(logging.ERROR):
        emit(CallRefused(guard="g", reason="no-time"))
    for end in ends:
        end()
    assert len(heard) == 1
    assert "CallRefused" in caplog.text


def test_every_event_is_frozen_documented_and_labelled_by_its_own_text_fields() -> None:
    assert len(catalogue()) == len(set(catalogue()))
    for kind in catalogue():
        fields = {field.name: field for field in dataclasses.fields(kind)}
        assert not (kind.__doc__ or "").startswith(kind.__name__ + "("), kind
        assert set(kind.LABELS) <= set(fields), kind
        assert all(fields[name].type is str for name in kind.LABELS), kind
        assert {"seconds", "error", "actor", "detail"}.isdisjoint(kind.LABELS), kind
    assert telemetry.CallRefused in catalogue()


def test_labels_are_the_named_fields_as_text() -> None:
    event = CallEnded(guard="stripe", ending="unknown", attempts=3, seconds=1.5)
    assert event.labels() == {"guard": "stripe", "ending": "unknown"}
