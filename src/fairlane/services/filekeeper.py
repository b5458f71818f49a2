"""The file keeper: deletes stored files that no task needs any more.

The rule: chosen, deleted, forgotten, in this order; a step that ends half way is taken up by a
later one.
"""

from __future__ import annotations

import logging
from functools import lru_cache

from fairlane.client import Client
from fairlane.errors import InvalidSettings
from fairlane.files import FileStore
from fairlane.verbs import DoomFiles, ForgetFiles

log = logging.getLogger("fairlane.files")

_AT_ONCE = 50
_MAX_ROUNDS = 20

_store_of = lru_cache(maxsize=4)(FileStore.of)


def delete_files(client: Client) -> int:
    """Delete the files that are due; return how many. What cannot be deleted is tried again."""
    deleted = 0
    for _ in range(_MAX_ROUNDS):
        names = client.run(DoomFiles(_AT_ONCE))
        if not names:
            break
        gone = _deleted(client, names)
        if gone:
            client.run(ForgetFiles(gone))
        deleted += len(gone)
        if len(names) < _AT_ONCE:
            break
    return deleted


def _deleted(client: Client, names: tuple[str, ...]) -> list[str]:
    """Delete files; return the names of those that are gone."""
    gone = []
    try:
        store = _store_of(client.settings)
        for name in names:
            store.delete(name)
            gone.append(name)
    except (OSError, InvalidSettings) as error:
        log.warning("%d files wait to be deleted: %s", len(names) - len(gone), error)
    return gone
