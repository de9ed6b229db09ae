"""What the cells of a list look like."""

from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

from idempotency.admin.detail import Look
from idempotency.admin.moments import Moment
from idempotency.ledger import moment


def two_lines(first: str, second: str) -> SafeString:
    """Show what matters, and below it what may be read too."""
    return format_html(
        '<span class="idem-cell"><span class="idem-about">{}</span><span class="idem-standing">{}</span></span>',
        first,
        second,
    )


def headline(seen: Look) -> SafeString:
    """Show the line to read aloud, in two, and who called."""
    return format_html(
        '{}<span class="idem-standing idem-caller">{}</span>',
        two_lines(seen.subject, seen.standing),
        seen.caller,
    )


def badge(seen: Look) -> SafeString:
    """Show the situation in two words, and its colour."""
    return format_html(
        '<span class="idem-badge idem-{}">{}</span>', seen.advice.tone, seen.advice.label
    )


def since(at: datetime) -> SafeString:
    """Show when it was, and how long ago that is."""
    seen = Moment.of(at, now=moment.counted())
    return format_html(
        '<time datetime="{}" class="idem-cell"><span>{}</span> <span class="idem-standing">{}</span></time>',
        seen.iso,
        seen.text,
        seen.ago,
    )
