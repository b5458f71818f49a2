"""A proxy before a store that loses replies: what a broken network does, on demand."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Proxy:
    """Carries bytes between its own socket and a store's; one connection, one thread a way."""

    def __init__(self, store_url: str, folder: Path) -> None:
        self._target = urlsplit(store_url).path
        path = folder / "proxy.sock"
        self.url = f"unix://{path}?db=0"
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen()
        self._open: list[socket.socket] = []
        self._to_lose = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def lose_replies(self, count: int = 1) -> None:
        """Cut the connection in place of the next `count` replies: the store did the work."""
        self._to_lose = count

    def cut(self) -> None:
        """Cut every open connection."""
        for end in self._open:
            _close(end)
        self._open.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        _close(self._listener)
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            store = socket.socket(socket.AF_UNIX)
            store.connect(self._target)
            self._open += [client, store]
            for ends, lost in (((client, store), _never), ((store, client), self._loses)):
                threading.Thread(target=_carry, args=(*ends, lost), daemon=True).start()

    def _loses(self) -> bool:
        self._to_lose -= 1
        return self._to_lose >= 0


def _carry(source: socket.socket, target: socket.socket, lost: Callable[[], bool]) -> None:
    """Carry bytes until an end closes, or they are lost."""
    try:
        while (some := source.recv(65_536)) and not lost():
            target.sendall(some)
    except OSError:
        pass
    finally:
        _close(source)
        _close(target)


def _close(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    finally:
        end.close()


def _never() -> bool:
    return False
