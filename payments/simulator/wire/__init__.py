"""HTTP/1.1 as bytes on a socket: requests read, answers framed, both broken on purpose."""
