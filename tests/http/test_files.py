"""Files over HTTP: told by their content, bounded, named by their hash, and kept for tasks."""

from __future__ import annotations

import hashlib
import io
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import redis
from PIL import Image

from fairlane import verbs
from fairlane.files import FileStore
from fairlane.services.filekeeper import delete_files
from support.eventually import eventually
from support.issuer import SECRET, issued
from support.service import Service, bearer, is_problem, served

MAC = "02:00:00:00:00:01"
TEXT = "call 138-1234-5678, 中文\r\n\t".encode()


@pytest.fixture
def service(store_url: str, tmp_path: Path) -> Iterator[Service]:
    """Give the application with an operator's token made at its start."""
    service = Service(store_url, data_dir=tmp_path, max_file_bytes=2 * 1024 * 1024)
    yield service
    service.close()


def image(kind: str, size: tuple[int, int] = (30, 20)) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", size, "white").save(out, kind)
    return out.getvalue()


def send(service: Service, content: Any, kind: str = "", **headers: str) -> httpx.Response:
    given = {"content-type": kind} if kind else {}
    return service.ask("POST", "/v1/files", content=content, headers=given | headers)


def stored(service: Service) -> list[Path]:
    folder = service.settings.files_dir
    return [path for path in folder.rglob("*") if path.is_file()]


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "WEBP", "TIFF", "BMP"])
def test_an_image_is_told_by_its_content(service: Service, kind: str) -> None:
    content = image(kind)
    name = hashlib.sha256(content).hexdigest()
    answer = send(service, content)
    assert (answer.status_code, answer.json()) == (
        201,
        {"file": name, "type": f"image/{kind.lower()}", "bytes": len(content), "width": 30,
         "height": 20},
    )  # fmt: skip
    assert FileStore.of(service.settings).get(name) == content
    again = send(service, content, f"image/{kind.lower()}")
    assert (again.status_code, again.json()) == (200, answer.json())
    assert len(stored(service)) == 1


def test_a_text_is_stored_byte_for_byte(service: Service) -> None:
    for kind in ("text/plain", 'text/plain; charset="UTF-8"', "application/octet-stream", ""):
        answer = send(service, TEXT, kind)
        assert answer.status_code in (200, 201)
        assert answer.json()["type"] == "text/plain"
        assert answer.json()["width"] is None
    (path,) = stored(service)
    assert path.read_bytes() == TEXT


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"GIF89a" + bytes(20), ""),
        (b"%PDF-1.7\n\x00", ""),
        (b"\x1f\x8b\x08" + bytes(30), ""),
        (b"PK\x03\x04" + bytes(30), ""),
        (b"\x7fELF" + bytes(30), ""),
        ("电话".encode("gbk"), ""),
        ("text".encode("utf-16"), ""),
        (b"nul \x00", ""),
        (b"escape \x1b[31m", ""),
        (b"cut \xe4\xb8", ""),
        (b"surrogate \xed\xa0\x80", ""),
        (b"\x89PNG\r\n\x1a\n" + b"no header", ""),
        (b"\xff\xd8\xff" + b"no header", ""),
        (b"II*\x00" + b"\xff" * 40, ""),
        (b"RIFF\x10\x00\x00\x00WEBPVP8 " + bytes(4), ""),
        (b"BM" + bytes(60), ""),
        (TEXT, "image/png"),
        (TEXT, "text/html"),
        (TEXT, "text/plain; charset=gbk"),
        (TEXT, "multipart/form-data; boundary=x"),
        (TEXT, "application/json"),
        (image("PNG"), "image/jpeg"),
        (image("PNG"), "text/plain"),
        (image("PNG"), "image/svg+xml"),
    ],
)
def test_what_is_no_image_and_no_text(service: Service, content: bytes, kind: str) -> None:
    assert is_problem(send(service, content, kind), 415, "UNSUPPORTED_MEDIA_TYPE")
    assert stored(service) == []


def test_an_empty_body_and_an_encoded_one(service: Service) -> None:
    assert is_problem(send(service, b""), 422, "INVALID_REQUEST")
    encoded = {"content-encoding": "gzip"}
    assert is_problem(send(service, TEXT, **encoded), 415, "UNSUPPORTED_MEDIA_TYPE")


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, *chunks: bytes) -> bytes:
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    data = chunk(b"IDAT", zlib.compress(bytes(100)))
    return b"".join((b"\x89PNG\r\n\x1a\n", chunk(b"IHDR", head), *chunks, data,
                     chunk(b"IEND", b"")))  # fmt: skip


@pytest.mark.parametrize(
    "content",
    [
        png(60_000, 60_000),
        png(2**31 - 1, 2**31 - 1),
        png(40_000_000, 1),
        png(30_001, 1),
        png(6_400, 6_400),
        b"BM" + struct.pack("<IIIIiiHH6I", 100, 0, 54, 40, 50_000, 50_000, 1, 24, *[0] * 6),
    ],
    ids=["wide and high", "largest", "a line", "a side", "a little too many", "BMP"],
)  # fmt: skip
def test_a_decompression_bomb_is_refused_by_its_header(service: Service, content: bytes) -> None:
    assert is_problem(send(service, content), 413, "IMAGE_TOO_LARGE")
    assert stored(service) == []


def test_a_bomb_in_a_chunk_of_text_is_not_unpacked(service: Service) -> None:
    bomb = chunk(b"zTXt", b"comment\0\0" + zlib.compress(bytes(200_000_000), 9))
    answer = send(service, png(10, 10, bomb))
    assert answer.status_code in (201, 415)
    packed = chunk(b"iTXt", b"k\0\1\0\0\0" + zlib.compress(bytes(900_000)))
    assert send(service, png(10, 10, packed * 200)).status_code in (201, 415)


def test_the_limit_holds_on_the_stream(service: Service) -> None:
    most = service.settings.max_file_bytes
    fits = send(service, b"x" * most)
    assert fits.status_code == 201
    declared = send(service, b"x" * (most + 1))
    assert is_problem(declared, 413, "BODY_TOO_LARGE")
    assert declared.headers["connection"] == "close"
    sent = 0

    async def endless() -> Any:
        nonlocal sent
        while sent < 100 * most:
            sent += 65_536
            yield b"x" * 65_536

    assert is_problem(send(service, endless()), 413, "BODY_TOO_LARGE")
    assert sent <= most + 2 * 65_536, "the rest is not read"
    assert len(stored(service)) == 1


def test_parts_of_a_letter_make_a_text(service: Service) -> None:
    async def parts() -> Any:
        for byte in TEXT:
            yield bytes([byte])

    answer = send(service, parts())
    assert answer.json()["file"] == hashlib.sha256(TEXT).hexdigest()
    # And where a megabyte ends is no place where a letter must end.
    long = ("x" + "中" * 600_000).encode()
    assert send(service, long).status_code == 201


def test_a_file_that_changes_its_type_on_the_way_is_what_it_begins_with(service: Service) -> None:
    """An image is one by its header: the handler finds out, and no browser is ever sent it."""
    both = image("PNG") + b"<script>alert(1)</script>"
    assert send(service, both).json()["type"] == "image/png"
    later = b"x" * 1_200_000 + b"\x00" + image("PNG")
    assert is_problem(send(service, later), 415, "UNSUPPORTED_MEDIA_TYPE")


def test_a_task_names_a_stored_file_and_no_other(service: Service) -> None:
    name = send(service, TEXT).json()["file"]
    assert service.enqueue(data={"file": name}).status_code == 202
    others: list[Any] = ["0" * 64, name.upper(), name[:-1], f"../{name}", f"{name}/..", "a/b", "",
                         7, [], {"file": name}, "\u0000", "x" * 10_000]  # fmt: skip
    for other in others:
        answer = service.enqueue(data={"file": other})
        assert is_problem(answer, 422, "FILE_NOT_FOUND"), other
    assert service.enqueue(data={"file": None}).status_code == 202
    assert service.enqueue(data={"deeper": {"file": "x"}}).status_code == 202
    assert service.store.run(verbs.InspectTotals()).pending == 3


def test_in_a_batch_each_file_is_looked_at_and_the_order_stays(service: Service) -> None:
    name = send(service, TEXT).json()["file"]
    datas: list[dict[str, Any]] = [
        {"n": 1}, {"file": name}, {"file": "0" * 64}, {"n": 2}, {"file": "x"}, {"file": name},
    ]  # fmt: skip
    items = [{"mac": MAC, "task_type": "text", "data": data} for data in datas]
    told = service.ask("POST", "/v1/tasks:batch", json=items).json()["verdicts"]
    assert [verdict["status"] for verdict in told] == [202, 202, 422, 202, 422, 202]
    ids = [verdict["task_id"] for verdict in told if verdict["status"] == 202]
    places = [service.ask("GET", f"/v1/tasks/{task}").json()["place"] for task in ids]
    assert places == [0, 1, 2, 3]


def test_a_file_goes_when_no_task_needs_it(store_url: str, tmp_path: Path) -> None:
    service = Service(store_url, data_dir=tmp_path, file_ttl_ms=1)
    try:
        name = send(service, TEXT).json()["file"]
        task_id = service.enqueue(data={"file": name}).json()["task_id"]
        assert delete_files(service.store) == 0
        assert len(stored(service)) == 1
        service.store.cancel(task_id)
        # It is due a millisecond later.
        eventually(lambda: delete_files(service.store) == 1)
        assert stored(service) == []
        assert is_problem(service.enqueue(data={"file": name}), 422, "FILE_NOT_FOUND")
        again = send(service, TEXT)
        assert (again.status_code, again.json()["file"]) == (201, name)
        assert len(stored(service)) == 1
    finally:
        service.close()


def test_a_file_that_is_sent_while_it_is_deleted_is_stored_again(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Forced: it is chosen before it comes, deleted after it was written, forgotten at the end."""
    service = Service(store_url, data_dir=tmp_path, file_ttl_ms=1)
    store = FileStore.of(service.settings)
    try:
        name = send(service, TEXT).json()["file"]
        assert service.store.run(verbs.DoomFiles()) == (name,)
        gate, tries = service.app.state.gate, []
        run = gate.run

        async def slowly(verb: Any) -> Any:
            kept = await run(verb)
            if isinstance(verb, verbs.KeepFile):
                tries.append(kept)
                if len(tries) == 1:
                    store.delete(name)
                    await run(verbs.ForgetFiles([name]))
            return kept

        monkeypatch.setattr(gate, "run", slowly)
        answer = send(service, TEXT)
        assert answer.status_code == 201
        assert [int(kept) for kept in tries] == [-1, 1]
        assert store.get(name) == TEXT
    finally:
        service.close()


def test_a_file_whose_deletion_does_not_end_is_a_503(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = send(service, TEXT).json()["file"]
    monkeypatch.setattr("fairlane.http.files._WAIT_S", 0.01)
    client = service.store
    client.run(verbs.KeepFile(name))
    # The clock cannot be moved here; the file's time can.
    raw = redis.Redis.from_url(service.settings.store_url)
    raw.zadd(client.keys.name("FILES"), {name: 1})
    raw.close()
    assert client.run(verbs.DoomFiles()) == (name,)
    assert is_problem(send(service, TEXT), 503, "FILE_STORE_UNAVAILABLE")


def test_a_full_disk_is_a_503_and_leaves_nothing(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device", "/secret/folder")

    monkeypatch.setattr("fairlane.files.Folder.keep", full)
    answer = send(service, TEXT)
    assert is_problem(answer, 503, "FILE_STORE_UNAVAILABLE")
    assert "/secret" not in answer.text
    monkeypatch.undo()
    assert send(service, TEXT).status_code == 201


def test_who_may_send_files(store_url: str, tmp_path: Path) -> None:
    service = Service(store_url, data_dir=tmp_path, token_secret=SECRET)
    try:
        for role in ("device", "producer", "operator"):
            token = issued(service, role, MAC if role == "device" else "")
            assert send(service, role.encode(), **bearer(token)).status_code == 201
        answer = send(service, b"x", **bearer(issued(service, "viewer")))
        assert is_problem(answer, 403, "FORBIDDEN")
        assert is_problem(send(service, b"x"), 401, "UNAUTHORIZED")
    finally:
        service.close()


def test_a_real_server_stops_reading_what_is_too_large(store_url: str, tmp_path: Path) -> None:
    with served(store_url, tmp_path, max_file_bytes=100_000) as http:
        sent = 0

        def endless() -> Iterator[bytes]:
            nonlocal sent
            while sent < 2_000_000_000:
                sent += 65_536
                yield b"x" * 65_536

        try:
            answer = http.post("/v1/files", content=endless())
            assert answer.status_code == 413
        except httpx.HTTPError:
            pass  # it was still sending when the server hung up
        assert sent < 100_000_000
        assert http.post("/v1/files", content=TEXT).status_code == 201
        bad = http.post("/v1/files", content=b"\x00", headers={"x-filename": "../../etc/passwd"})
        assert bad.status_code == 415
        assert str(tmp_path) not in bad.text
        assert "Traceback" not in (tmp_path / "api.log").read_text()


def test_a_file_is_given_back_as_what_it_is_to_who_sees_tasks(
    store_url: str, tmp_path: Path
) -> None:
    service = Service(store_url, data_dir=tmp_path, token_secret=SECRET)
    try:
        viewer, producer = (bearer(issued(service, role)) for role in ("viewer", "producer"))
        for content, kind in (
            (image("PNG"), "image/png"),
            (b"<script>alert(1)</script>", "text/plain"),
        ):
            name = service.ask("POST", "/v1/files", content=content, headers=producer).json()[
                "file"
            ]
            answer = service.ask("GET", f"/v1/files/{name}", headers=viewer)
            assert (answer.status_code, answer.content) == (200, content)
            assert answer.headers["content-type"].startswith(kind)
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert "default-src 'none'" in answer.headers["content-security-policy"]
            refused = service.ask("GET", f"/v1/files/{name}", headers=producer)
            assert is_problem(refused, 403, "FORBIDDEN")
        for name in ("0" * 64, "x", "..%2f..%2fetc%2fpasswd"):
            answer = service.ask("GET", f"/v1/files/{name}", headers=viewer)
            assert answer.status_code == 404, name
    finally:
        service.close()
