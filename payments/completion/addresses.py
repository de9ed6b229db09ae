"""Which addresses of merchants are sent to: none from which somebody else's network could be reached (SSRF).

A name is judged by nothing but what it means at the moment of connecting, and what was judged is connected to: a name
that means something else the next moment (DNS rebinding) gains nothing.
"""

import ipaddress

import httpx2

from payments.conf import conf

IPAddress = ipaddress.IPv4Address | ipaddress.IPv6Address

LONGEST = 500
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
# Which of these Python counts as global differs by its version, or is not what is meant here.
_REFUSED = [
    ipaddress.ip_network(network)
    for network in (
        "0.0.0.0/8",
        "100.64.0.0/10",
        "168.63.129.16/32",  # the metadata service of Azure, at a public address
        "192.0.0.0/24",
        "192.88.99.0/24",
        "198.18.0.0/15",
        "::/96",
        "64:ff9b:1::/48",
        "100::/64",
        "2001::/23",
        "2002::/16",
        "3fff::/20",
        "5f00::/16",
        "fec0::/10",
    )
]


def admitted(address: str) -> bool:
    """Return whether an IP address may be connected to under the live settings."""
    return conf.ENDPOINT_PRIVATE or is_public(address)


def is_public(address: str) -> bool:
    """Return whether an IP address is one of the public internet; an IPv4 one inside an IPv6 one is judged itself."""
    try:
        found: IPAddress = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            found = found.ipv4_mapped
        elif found in _NAT64:
            found = ipaddress.IPv4Address(int(found) & 0xFFFF_FFFF)
    special = found.is_multicast or found.is_reserved or not found.is_global
    return not special and not any(
        found in network for network in _REFUSED if network.version == found.version
    )


def refusal_of(url: str) -> str:
    """Return why an address cannot be an endpoint's, or "". A name is not resolved here: it is judged at each try.

    It is read by the very client that sends: two readers could find two hosts in it.
    """
    if len(url) > LONGEST or not url.isascii() or not url.isprintable() or " " in url:
        return f"An address of at most {LONGEST} visible ASCII characters is wanted."
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        return "This is no address."
    if parts.scheme != "https" and not (conf.ENDPOINT_PRIVATE and parts.scheme == "http"):
        return "An address that begins with https:// is wanted."
    if not parts.host or (parts.port is not None and not 0 < parts.port < 65_536):
        return "An address with a host, and a port that there is, is wanted."
    if parts.userinfo or "#" in url or "\\" in url:
        return "An address without login and fragment is wanted."
    if _is_literal(parts.host) and not admitted(parts.host):
        return "This address is not one of the public internet."
    return ""


def _is_literal(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
