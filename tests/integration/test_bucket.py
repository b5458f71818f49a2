"""Files in a bucket of an S3-compatible server (moto's), instead of a folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from moto.server import ThreadedMotoServer

from fairlane import Settings
from fairlane.errors import FileNotKnown, InvalidSettings
from fairlane.files import FileStore
from fairlane.services.filekeeper import delete_files
from support.service import Service, is_problem

URL = "s3://files/of/fairlane"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadedMotoServer]:
    """Give a server with the bucket, named by the environment as a real one would be."""
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        for name, value in (
            ("AWS_ENDPOINT_URL", endpoint),
            ("AWS_ACCESS_KEY_ID", "id"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
        ):
            monkeypatch.setenv(name, value)
        httpx.post(f"{endpoint}/moto-api/reset").raise_for_status()
        httpx.put(f"{endpoint}/files").raise_for_status()
        yield server
    finally:
        server.stop()


def test_a_bucket_is_as_good_as_a_folder(bucket: ThreadedMotoServer) -> None:
    files = FileStore.of(Settings(files_url=URL))
    name = files.put(b"content")
    assert files.put(b"content") == name
    assert files.get(name) == b"content"
    assert files.has(name)
    large = bytes(range(256)) * 12_000
    assert files.get(files.put(large)) == large
    files.delete(name)
    files.delete(name)
    assert not files.has(name)
    with pytest.raises(FileNotKnown, match="not stored here"):
        files.get(name)
    for hostile in ("../x", "", "0" * 63 + "/"):
        with pytest.raises(FileNotKnown):
            files.get(hostile)


def test_what_is_sent_over_http_is_there_until_no_task_needs_it(
    bucket: ThreadedMotoServer, store_url: str, tmp_path: Path
) -> None:
    service = Service(store_url, files_url=URL, data_dir=tmp_path, file_ttl_ms=1)
    try:
        sent = service.ask("POST", "/v1/files", content=b"a text")
        name = sent.json()["file"]
        assert sent.status_code == 201
        assert service.ask("POST", "/v1/files", content=b"a text").status_code == 200
        files = FileStore.of(service.settings)
        task_id = service.enqueue(data={"file": name}).json()["task_id"]
        assert (delete_files(service.store), files.has(name)) == (0, True)
        service.store.cancel(task_id)
        assert (delete_files(service.store), files.has(name)) == (1, False)
        assert not (tmp_path / "files").exists()
    finally:
        service.close()


def test_a_bucket_that_is_not_there(
    bucket: ThreadedMotoServer, store_url: str, tmp_path: Path
) -> None:
    service = Service(store_url, files_url="s3://nobodys", data_dir=tmp_path)
    try:
        answer = service.ask("POST", "/v1/files", content=b"a text")
        assert is_problem(answer, 503, "FILE_STORE_UNAVAILABLE")
        assert "nobodys" not in answer.text
    finally:
        service.close()


def test_a_url_that_is_none() -> None:
    for url in ("ftp://x/y", "file:///tmp", "s3://", "S3://x"):
        with pytest.raises(InvalidSettings, match="files_url"):
            FileStore.of(Settings(files_url=url))
