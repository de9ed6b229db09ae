"""The body of a request as sent: read once, digested by what its media type means, left readable.

Everything here ends in a digest or a refusal; a body that cannot be read is never taken as empty.
"""

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import parse_qsl

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.core.files.uploadedfile import UploadedFile
from django.core.files.uploadhandler import FileUploadHandler
from django.http import HttpRequest, QueryDict, RawPostDataException, UnreadablePostError
from django.http.multipartparser import MultiPartParserError
from django.utils.http import parse_header_parameters
from rest_framework.exceptions import ParseError
from rest_framework.parsers import get_encoding  # type: ignore[attr-defined]
from rest_framework.request import Request

from idempotency.exceptions import Misuse
from idempotency.http.canonical import NotCanonical, canonical
from idempotency.http.problem import BodyInvalid, BodyTooLarge, BodyUnreadable, LengthRequired

_FORM = "application/x-www-form-urlencoded"
_MULTIPART = "multipart/form-data"
_CHUNK = 2**16
_CRLF = b"\r\n"


@dataclass(frozen=True, slots=True)
class Body:
    """What a fingerprint needs of a body."""

    media_type: str
    """Type and parameters, in one spelling, without what is only about transport."""
    digest: bytes
    """SHA-256 of a form that says its kind first: bodies of two kinds are never equal."""


def read_body(*, request: HttpRequest | Request) -> Body:
    """Return the media type and digest of the body; the view can still read it.

    JSON is canonical (see `canonical`). A form is its ordered pairs. A multipart form is its parts
    by name, filename, content type and content digest: the boundary does not matter, nor the order
    of parts of different names, which no view sees; the order under one name does. An uploaded
    file is digested in chunks and left at its start. Anything else is its bytes.

    Raises:
        BodyInvalid: not well formed, or not in one way only.
        BodyUnreadable: it did not arrive whole.
        BodyTooLarge: beyond Django's DATA_UPLOAD_* settings. All but uploaded files is read into
            memory, so DATA_UPLOAD_MAX_MEMORY_SIZE holds for a raw body too.
        LengthRequired: sent without a length, so that DRF would see no body.
        Misuse: something read the body before and did not keep it.
    """
    essence, parameters = parse_header_parameters(_content_type(request))
    # RFC 9110 §8.3.1: type, subtype and parameter names are compared without regard to case.
    essence = essence.strip().lower()
    try:
        length = _announced_length(request)
        if length == 0:
            _require_empty(request)
            digest = _digest(b"empty", ())
        elif essence == _MULTIPART:
            digest = _digest(b"multipart", _parts(request, length, parameters.get("boundary", "")))
        else:
            raw = request.body
            _require_whole(len(raw), length)
            digest = _digest_of_bytes(request, essence, raw)
    except UnreadablePostError as error:
        raise BodyUnreadable from error
    except (RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent) as error:
        raise BodyTooLarge(str(error)) from error
    except RawPostDataException as error:
        raise Misuse(
            "The request's body was read before its key and is gone: read `request.body`, "
            "`request.POST` or `request.data` instead of the stream."
        ) from error
    except (MultiPartParserError, ParseError, ValueError) as error:
        raise BodyInvalid(f"The body is not valid: {error}.") from error
    return Body(media_type=_spelling(essence, parameters), digest=digest)


def _content_type(request: HttpRequest | Request) -> str:
    return str(request.META.get("CONTENT_TYPE") or "")


def _announced_length(request: HttpRequest | Request) -> int:
    announced = request.META.get("CONTENT_LENGTH") or ""
    if announced == "" and request.META.get("HTTP_TRANSFER_ENCODING"):
        raise LengthRequired
    return int(announced or 0)


def _require_empty(request: HttpRequest | Request) -> None:
    # HTTP/2 needs no word of the length: under ASGI a plain view can read such a body, and DRF sees none.
    if not request.META.get("CONTENT_LENGTH") and request.body:
        raise LengthRequired


def _require_whole(received: int, announced: int) -> None:
    # A server hands on what came before the client was gone, without a word.
    if received < announced:
        raise BodyUnreadable(f"{received} of {announced} bytes arrived.")


def _digest_of_bytes(request: HttpRequest | Request, essence: str, raw: bytes) -> bytes:
    if _is_json(essence):
        # The charset in which the view will read it.
        encoding = get_encoding({"encoding": request.encoding or settings.DEFAULT_CHARSET})
        return _digest(b"json", (canonical(body=raw, encoding=encoding),))
    if essence == _FORM:
        # Latin-1 there and back keeps each byte, whatever charset the form is in.
        try:
            pairs = parse_qsl(
                raw.decode("latin-1"),
                keep_blank_values=True,
                encoding="latin-1",
                max_num_fields=settings.DATA_UPLOAD_MAX_NUMBER_FIELDS,
            )
        except ValueError as error:
            raise TooManyFieldsSent("The form has too many fields.") from error
        return _digest(b"form", (text.encode("latin-1") for pair in pairs for text in pair))
    return _digest(b"bytes", (raw,))


def _parts(request: HttpRequest | Request, announced: int, boundary: str) -> Iterator[bytes]:
    # Parsed by Django and DRF, once: what they keep, on disk or in memory, is there for the view.
    http: HttpRequest = getattr(request, "_request", request)
    nothing = f"--{boundary}--".encode()
    is_short = announced <= len(nothing) + len(_CRLF)
    if is_short:
        with suppress(RawPostDataException):
            http.body  # noqa: B018 - kept from here on, so that it can be compared
    handlers = request.upload_handlers
    if isinstance(handlers, list):
        handlers.insert(0, _EndOfLastPart())
    try:
        fields, files = request.POST, request.FILES
    finally:
        _require_whole(_received(request, announced), announced)
    if not isinstance(fields, QueryDict):
        raise Misuse("A decorated view's multipart parser must give a QueryDict, as DRF's does.")
    if not fields and not files:
        # A form without parts is its last delimiter alone: browsers and DRF's test client send that. Of one that was
        # parsed before its key the length is left, which can hold no part. Whatever else has none is of another
        # boundary, or failed before, and Django says nothing of it.
        kept: bytes = getattr(http, "_body", nothing)
        if not is_short or kept.removesuffix(_CRLF) != nothing:
            raise NotCanonical("no part of it could be read")
    for name, values in sorted(fields.lists()):
        for value in values:
            yield from (b"field", _text(name), _text(str(value)))
    for name, uploads in sorted(files.lists(), key=lambda item: item[0]):
        for upload in uploads:
            yield from (b"file", _text(name), *_file(upload))


def _file(upload: "UploadedFile[bytes]") -> Iterator[bytes]:
    yield _text(upload.name or "")
    yield _text(upload.content_type or "")
    # The parameters of the content type, charset included.
    parameters = sorted((upload.content_type_extra or {}).items())
    yield _digest(b"parameters", (_text(text) for pair in parameters for text in pair))
    content = hashlib.sha256()
    for chunk in upload.chunks():
        content.update(chunk)
    upload.seek(0)
    yield content.digest()


def _text(text: str | bytes) -> bytes:
    if isinstance(text, bytes):
        return text
    # The parser puts U+FFFD for each byte it cannot read, which would make different bodies equal.
    if "\ufffd" in text:
        raise NotCanonical("a part is not text in its charset")
    return text.encode()


class _EndOfLastPart(FileUploadHandler):
    """Refuse a body that ends within a file: Django would leave that file out, without a word."""

    chunk_size = None  # type: ignore[assignment]

    def receive_data_chunk(self, raw_data: bytes, start: int) -> bytes:
        return raw_data

    def file_complete(self, file_size: int) -> None:
        return None

    def upload_interrupted(self) -> None:
        raise MultiPartParserError("the last part does not end")


def _received(request: HttpRequest | Request, announced: int) -> int:
    """Return how many bytes of a body arrived, as far as it can be told."""
    http: HttpRequest = getattr(request, "_request", request)
    kept = getattr(http, "_body", None)
    if kept is not None:
        return len(kept)
    while http.read(_CHUNK):
        # A parser that gave up left the rest.
        pass
    # Django's stream under WSGI counts what it gave; under ASGI a body is whole or never seen.
    return int(getattr(getattr(http, "_stream", None), "_pos", announced))


def _is_json(essence: str) -> bool:
    return essence == "application/json" or essence.endswith("+json")


def _spelling(essence: str, parameters: dict[str, str]) -> str:
    kept = {name: value for name, value in parameters.items() if name != "boundary"}
    if _is_json(essence) or kept.get("charset", "").lower() in ("utf-8", "utf8"):
        # JSON was decoded, and UTF-8 is what is meant where nothing is said.
        kept.pop("charset", None)
    return ";".join((essence, *(f"{name}={kept[name]!r}" for name in sorted(kept))))


def _digest(kind: bytes, parts: Iterable[bytes]) -> bytes:
    digest = hashlib.sha256(kind)
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.digest()
