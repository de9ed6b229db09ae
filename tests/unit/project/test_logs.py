import json
import logging

from django.test import RequestFactory

from project.follow import important
from project.logs import JsonFormatter, WithoutProbes


def record(message: str, *, level: int = logging.INFO, **extra: object) -> logging.LogRecord:
    made = logging.makeLogRecord({"name": "x", "levelno": level, "msg": message})
    made.levelname = logging.getLevelName(level)
    vars(made).update(extra)
    return made


def test_record_is_one_line_of_json_with_its_extras() -> None:
    line = JsonFormatter().format(record("two\nlines", key="k1"))
    assert "\n" not in line
    found = json.loads(line)
    assert found["message"] == "two\nlines"
    assert found["key"] == "k1"
    assert found["level"] == "INFO"


def test_exception_is_part_of_the_line() -> None:
    try:
        raise KeyError("gone")
    except KeyError as error:
        made = record("failed", exc_info=(KeyError, error, error.__traceback__))
    line = JsonFormatter().format(made)
    assert "\n" not in line
    assert "KeyError: 'gone'" in json.loads(line)["exception"]


def test_request_is_not_written_into_the_log() -> None:
    request = RequestFactory().post("/x/", {"source": "secret"})
    assert "request" not in json.loads(JsonFormatter().format(record("m", request=request)))


def test_only_the_readiness_probe_is_left_out() -> None:
    requests = RequestFactory()
    assert not WithoutProbes().filter(record("m", request=requests.get("/readyz/")))
    assert WithoutProbes().filter(record("m", request=requests.get("/api/payments/")))
    assert WithoutProbes().filter(record("m"))


def test_terminal_shows_warnings_and_what_is_no_log_line_but_an_error() -> None:
    format_line = JsonFormatter().format
    assert important(format_line(record("all is well"))) == ""
    assert important(format_line(record("odd", level=logging.WARNING))) == "WARNING x: odd"
    declined = record("Payment Required: /api/payments/", level=logging.WARNING)
    declined.name = "django.request"
    assert important(format_line(declined)) == ""
    assert important("Traceback (most recent call last):") != ""
    assert important("ModuleNotFoundError: No module named 'x'") != ""
    assert important("127.0.0.1 - GET /errors HTTP/1.1 200") == ""
    assert important("") == ""
