"""A producer as a program: enqueues tasks one by one, and says which of them it got a receipt for.

The rule: its ids are given, so a re-send after its death is the same task. Run as
`python -m support.sender '{"ids": […], "mac": …, "data": {…}}'`; a receipt is a line with the id.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from fairlane import Client, Settings
from support.clocks import skew


def main(given: dict[str, Any]) -> None:
    """Enqueue every task, and print its id once there is a receipt."""
    with Client(Settings.from_env()) as client:
        for task_id in given["ids"]:
            client.enqueue(given["mac"], "text", given["data"], task_id=task_id)
            print(task_id, flush=True)


if __name__ == "__main__":
    skew()
    main(json.loads(sys.argv[1]))
