"""A device that sends texts over HTTP, with nothing but Python's own library.

    python examples/device.py URL TOKEN MAC < texts

Each line of its input is a task. It does what every device should: a key for each task, so that a
request may be sent again; the same request again while the service is away; and a pause of the
length that the service asks for when it is told to wait.
"""

from __future__ import annotations

import json
import sys
import time
import urllib.error
import urllib.request
import uuid
from typing import Any

#: Refused, or away: the same request is good later.
LATER = (429, 503)


class Device:
    """A device by its MAC address, and who it is to the service by its token."""

    def __init__(self, url: str, token: str, mac: str) -> None:
        self._url, self._token, self._mac = url.rstrip("/"), token, mac

    def send(self, text: str) -> str:
        """Send a text, however long it takes; return the task's id."""
        task = {"mac": self._mac, "task_type": "text", "data": {"text": text}}
        # One key for all tries: if an answer is lost, the next one is about the same task.
        return str(self._ask("POST", "/v1/tasks", task, key=str(uuid.uuid4()))["task_id"])

    def wait(self, task_id: str) -> dict[str, Any]:
        """Wait for a task's end; return its record."""
        while True:
            record = self._ask("GET", f"/v1/tasks/{task_id}")
            if record["state"] in ("done", "failed", "expired", "cancelled", "dead"):
                return record
            time.sleep(0.2)

    def _ask(self, method: str, path: str, body: Any = None, *, key: str = "") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        if key:
            headers["Idempotency-Key"] = key
        content = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, content, headers, method=method)  # noqa: S310 - whose URL it is
        while True:
            try:
                with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - as above
                    found: dict[str, Any] = json.load(answer)
                    return found
            except urllib.error.HTTPError as refused:
                with refused:
                    problem = json.load(refused)
                if refused.code not in LATER:
                    raise SystemExit(f"{problem['code']}: {problem['detail']}") from None
                time.sleep(float(refused.headers.get("Retry-After", 1)))
            except OSError:
                time.sleep(1)


def main() -> None:
    """Send every line, then tell what became of each."""
    if len(sys.argv) != 4:
        raise SystemExit("usage: device.py URL TOKEN MAC < texts")
    device = Device(*sys.argv[1:])
    sent = [device.send(line.rstrip("\n")) for line in sys.stdin]
    for task_id in sent:
        record = device.wait(task_id)
        print(task_id, record["state"], json.dumps(record["result"], ensure_ascii=False))


if __name__ == "__main__":
    main()
