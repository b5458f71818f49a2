"""A bucket of an S3-compatible object store as the place of files, through obstore.

The rule: the URL names bucket and folder; who one is, and where the server is, the usual `AWS_…`
variables say (`AWS_ENDPOINT_URL`, …), so no secret stands in a setting.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import IO, TYPE_CHECKING, Final

from fairlane.errors import InvalidSettings

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig

_IN_MEMORY_BYTES: Final = 1024 * 1024
#: Below what a handler's task or an upload may take.
_PATIENCE: Final[ClientConfig] = {
    "timeout": "20s",
    "connect_timeout": "5s",
    # The endpoint says whether it is TLS.
    "allow_http": True,
}
_RETRIES: Final[RetryConfig] = {"max_retries": 2, "retry_timeout": timedelta(seconds=20)}


class Bucket:
    """Files in a bucket, each an object of its own. Raises InvalidSettings for an odd URL."""

    def __init__(self, url: str) -> None:
        scheme = url.partition("://")[0]
        if scheme != "s3":
            raise InvalidSettings(
                f"files_url: {ascii(scheme)[:40]}:// is not known; write s3://bucket/folder, or a "
                "folder, or leave it empty for data_dir/files"
            )
        try:
            from obstore.exceptions import BaseError
            from obstore.store import S3Store
        except ModuleNotFoundError:
            raise InvalidSettings(
                "files_url: this needs obstore, which is not installed; pip install 'fairlane[s3]'"
            ) from None
        try:
            self._store: ObjectStore = S3Store.from_url(
                url, client_options=_PATIENCE, retry_config=_RETRIES
            )
        except (BaseError, ValueError) as error:
            raise InvalidSettings(f"files_url: {error}") from error

    def temporary(self) -> IO[bytes]:
        """Return a file that is in memory while it is small."""
        return tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)

    def keep(self, name: str, written: IO[bytes]) -> None:
        """Put what was written as one object."""
        import obstore

        written.seek(0)
        with _as_os_error():
            obstore.put(self._store, name, written.read(), use_multipart=False)

    def read(self, name: str) -> bytes:
        """Return an object's bytes."""
        import obstore

        with _as_os_error():
            return bytes(obstore.get(self._store, name).bytes())

    def has(self, name: str) -> bool:
        """Whether an object is there."""
        import obstore

        try:
            with _as_os_error():
                obstore.head(self._store, name)
        except FileNotFoundError:
            return False
        return True

    def delete(self, name: str) -> None:
        """Delete an object, if it is there."""
        import obstore

        try:
            with _as_os_error():
                obstore.delete(self._store, name)
        except FileNotFoundError:
            return


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Let every error of the object store be an OSError, as a folder's are."""
    from obstore.exceptions import BaseError, NotFoundError

    try:
        yield
    except NotFoundError as error:
        raise FileNotFoundError(str(error)) from error
    except BaseError as error:
        raise OSError(f"object store: {error}") from error
