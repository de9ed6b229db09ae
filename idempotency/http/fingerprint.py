"""What makes two requests the same request: parts, each as sent, under one keyed digest (R7)."""

import hmac
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from django.http import HttpRequest
from rest_framework.request import Request

from idempotency.conf import conf
from idempotency.exceptions import LedgerUnavailable
from idempotency.http.body import read_body

VERSION = 1
PARTS = ("method", "route", "path arguments", "query", "media type", "body", "headers")
_PART_BYTES = 4


class Incomparable(LedgerUnavailable):
    """The row's fingerprint was made with a secret or version that this process does not have.

    It is neither a match nor a mismatch: nothing may run, and the caller is asked to come back.
    """


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The parts of one request, to be digested under any secret: an old row is compared by its own.

    `contents` follows PARTS: method, route, path arguments, query, media type, body, headers.
    """

    contents: tuple[bytes, ...]

    @property
    def current(self) -> tuple[int, str, bytes]:
        """Return what a new row stores: version, name of the secret, digest."""
        name = next(iter(conf.FINGERPRINT_SECRETS))
        return VERSION, name, self.digest(name)

    def digest(self, secret_name: str | None = None, version: int | None = None) -> bytes:
        """Return 32 bytes: HMAC-SHA-256 over the version and the length-prefixed parts.

        Raises: Incomparable, for a secret or version that is not known here.
        """
        secret = _secret(secret_name, version)
        return hmac.digest(secret, bytes([VERSION]) + _joined(self.contents), "sha256")

    def matches(self, *, version: int, secret_name: str, digest: bytes) -> bool:
        """Say whether a row's digest is of this request, under the row's own version and secret.

        Takes the same time for every digest. Raises: Incomparable.
        """
        return hmac.compare_digest(self.digest(secret_name, version), digest)

    def parts(self, secret_name: str | None = None, version: int | None = None) -> bytes:
        """Return a few bytes of each part's own digest: enough to say what differs, not what it is.

        Raises: Incomparable.
        """
        secret = _secret(secret_name, version)
        return b"".join(
            hmac.digest(secret, label + _framed(content), "sha256")[:_PART_BYTES]
            for label, content in zip(_LABELS, self.contents, strict=True)
        )

    def differing(
        self, parts: bytes, *, secret_name: str | None = None, version: int | None = None
    ) -> list[str]:
        """Return the names of the parts that differ from a row's, in the order of PARTS.

        Raises: Incomparable.
        """
        own = self.parts(secret_name, version)
        starts = range(0, len(own), _PART_BYTES)
        return [
            name
            for name, start in zip(PARTS, starts, strict=True)
            if own[start : start + _PART_BYTES] != parts[start : start + _PART_BYTES]
        ]


def fingerprint(
    *,
    request: HttpRequest | Request,
    route: str,
    path_args: Mapping[str, object],
    headers: Sequence[str] = (),
) -> Fingerprint:
    """Return the fingerprint of a request, before anything of it is validated or filled in.

    `headers` are names that count for this endpoint, besides `conf.FINGERPRINT_HEADERS`.
    The view can still read the body.

    Raises: the refusals of `read_body`; the key has not been touched.
    """
    body = read_body(request=request)
    return Fingerprint(
        (
            (request.method or "").encode(),
            route.encode(),
            _joined(
                _bytes(text) for name in sorted(path_args) for text in (name, str(path_args[name]))
            ),
            _query(str(request.META.get("QUERY_STRING", ""))),
            _bytes(body.media_type),
            body.digest,
            _headers(request, (*conf.FINGERPRINT_HEADERS, *headers)),
        )
    )


def _query(text: str) -> bytes:
    # Sorted by name only: a view that reads `?a=1&a=2` gets the last value, so their order counts.
    # Latin-1 there and back keeps each byte, whatever charset it is in.
    pairs = parse_qsl(text, keep_blank_values=True, encoding="latin-1")
    return _joined(
        _bytes(text) for pair in sorted(pairs, key=lambda pair: pair[0]) for text in pair
    )


def _headers(request: HttpRequest | Request, names: Sequence[str]) -> bytes:
    parts = []
    for name in sorted({name.lower() for name in names}):
        value = request.headers.get(name)
        # An absent header is not an empty one.
        parts += [_bytes(name), b"" if value is None else b"=" + _bytes(value)]
    return _joined(parts)


def _secret(name: str | None, version: int | None) -> bytes:
    secrets = conf.FINGERPRINT_SECRETS
    if version not in (None, VERSION):
        raise Incomparable(f"Fingerprints of version {version} are not known to this process.")
    if name is None:
        name = next(iter(secrets))
    if name not in secrets:
        raise Incomparable(
            f"The fingerprint secret {name!r} is not configured any more: keep an old secret in "
            "FINGERPRINT_SECRETS (or SECRET_KEY_FALLBACKS) for KEY_TTL."
        )
    return secrets[name]


def _joined(parts: Iterable[bytes]) -> bytes:
    # With their lengths in front, no two lists of parts give the same bytes.
    return b"".join(map(_framed, parts))


def _framed(part: bytes) -> bytes:
    return len(part).to_bytes(8, "big") + part


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


_LABELS = tuple(_framed(name.encode()) for name in PARTS)
