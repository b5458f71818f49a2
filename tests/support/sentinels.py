"""A store that sentinels watch over: two servers and three sentinels, on free loopback ports.

The rule: a server keeps its port when it is killed and started again; everything is gone when the
block is left, however that happens.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import redis
from redis.sentinel import Sentinel

from support.eventually import eventually, eventually_passes
from support.node import Node, command_of
from support.ports import free_ports
from support.processes import Program

SERVICE: Final = "store"
#: A sentinel takes a silent server for dead after this.
DOWN_MS: Final = 1_500
_OPTIONS: Final = (
    "--bind 127.0.0.1 --protected-mode no --appendonly yes --appendfsync everysec "
    "--repl-diskless-sync-delay 0 --repl-ping-replica-period 1 --enable-debug-command local"
)


class Watched:
    """Two servers, of which one follows the other, and the sentinels that decide which."""

    def __init__(self, kind: str, folder: Path, password: str, sentinel_password: str) -> None:
        ports = free_ports(5)
        self.nodes = [Node(kind, folder / f"server{port}", port, password) for port in ports[:2]]
        self._password, self._sentinel_password = password, sentinel_password
        self._sentinel_ports = ports[2:]
        self._kind, self.folder = kind, folder
        self._sentinels: list[Program] = []
        places = ",".join(f"127.0.0.1:{port}" for port in ports[2:])
        login = f":{quote(password)}@" if password else ""
        more = f"?sentinel_password={quote(sentinel_password)}" if sentinel_password else ""
        self.url: Final = f"redis+sentinel://{login}{places}/{SERVICE}/0{more}"

        #: The same service, in database 1.
        self.broker_url: Final = self.url.replace(f"/{SERVICE}/0", f"/{SERVICE}/1")

    def raw(self, db: int = 0) -> Any:
        """Return a connection to a database of whoever is the primary."""
        login = {"password": self._password or None}
        sentinels: Any = Sentinel(  # type: ignore[no-untyped-call]
            [("127.0.0.1", port) for port in self._sentinel_ports],
            sentinel_kwargs={"password": self._sentinel_password or None},
        )
        return sentinels.master_for(
            SERVICE, db=db, decode_responses=True, encoding_errors="surrogateescape", **login
        )

    def start(self) -> None:
        """Start all, and wait until the sentinels know each other and the replica."""
        first, second = self.nodes
        first.start()
        second.start()
        second.redis.replicaof("127.0.0.1", first.port)
        for port in self._sentinel_ports:
            self._start_sentinel(port, first.port)
        eventually_passes(self._is_whole, 60.0)

    def sentinel(self, at: int = 0) -> Any:
        """Return a connection to a sentinel."""
        return redis.Redis(
            port=self._sentinel_ports[at],
            password=self._sentinel_password or None,
            decode_responses=True,
        )

    def primary(self) -> Node:
        """Return the server that the sentinels name."""
        with self.sentinel() as sentinel:
            _, port = sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", SERVICE)
        return next(node for node in self.nodes if node.port == int(port))

    def replica(self) -> Node:
        """Return the other server."""
        primary = self.primary()
        return next(node for node in self.nodes if node is not primary)

    def fails_over(self) -> None:
        """Ask a sentinel for a failover, as soon as it finds the replica good enough."""

        def is_taken() -> None:
            try:
                with self.sentinel() as sentinel:
                    sentinel.execute_command("SENTINEL", "FAILOVER", SERVICE)
            except redis.ResponseError as error:
                if "NOGOODSLAVE" in str(error):
                    raise AssertionError(str(error)) from error
                raise

        eventually_passes(is_taken, 60.0)

    def becomes_primary(self, node: Node, timeout_s: float = 60.0) -> None:
        """Wait until the sentinels name a server, and it is one."""
        eventually(lambda: self.primary() is node and node.role() == "master", timeout_s)

    def replicated(self, timeout_s: float = 30.0) -> None:
        """Wait until the replica has all that the primary has."""
        primary, replica = self.primary(), self.replica()

        def has_all() -> None:
            info = replica.replication()
            assert info["role"] == "slave", info
            assert info["master_link_status"] == "up", info
            ours = primary.replication()["master_repl_offset"]
            assert info["slave_repl_offset"] == ours, info

        eventually_passes(has_all, timeout_s)

    def end(self) -> None:
        """End all."""
        for sentinel in self._sentinels:
            sentinel.end()
        for node in self.nodes:
            node.end()

    def _start_sentinel(self, port: int, primary_port: int) -> None:
        folder = self.folder / f"sentinel{port}"
        folder.mkdir()
        conf = folder / "sentinel.conf"
        passwords = ""
        if self._password:
            passwords = (
                f'sentinel auth-pass {SERVICE} "{self._password}"\n'
                f'requirepass "{self._sentinel_password}"\n'
                f'sentinel sentinel-pass "{self._sentinel_password}"\n'
            )
        conf.write_text(
            f"port {port}\nbind 127.0.0.1\nprotected-mode no\ndir {folder}\n"
            f"sentinel monitor {SERVICE} 127.0.0.1 {primary_port} 2\n"
            f"sentinel down-after-milliseconds {SERVICE} {DOWN_MS}\n"
            f"sentinel failover-timeout {SERVICE} 6000\n{passwords}"
        )
        command = command_of(self._kind, str(conf), "--sentinel")
        self._sentinels.append(Program(command, folder / "sentinel.log", {}))

    def _is_whole(self) -> None:
        for at in range(len(self._sentinel_ports)):
            try:
                with self.sentinel(at) as sentinel:
                    (known,) = sentinel.execute_command("SENTINEL", "MASTERS")
            except redis.RedisError as error:
                raise AssertionError(str(error)) from error
            if not isinstance(known, dict):
                known = dict(zip(known[::2], known[1::2], strict=True))
            assert int(known["num-other-sentinels"]) == len(self._sentinel_ports) - 1, known
            assert int(known["num-slaves"]) == 1, known
        self.replicated(5.0)


@contextmanager
def watched(
    kind: str, folder: Path, *, password: str = "", sentinel_password: str = ""
) -> Iterator[Watched]:
    """Give a store under sentinels; gone with all of it."""
    store = Watched(kind, folder, password, sentinel_password)
    try:
        store.start()
        yield store
    finally:
        store.end()
