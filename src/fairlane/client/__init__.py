"""The two clients: the only room that talks to the store.

The rule: `run(verb)` is everything. The clients carry the messages of a conversation
(`conversation.py`) and turn the driver's errors into ours; connections never re-send by themselves,
since a lost reply may belong to a script that ran. The everyday methods are one line over `run`.
"""

from fairlane.client.asynchronous import AsyncClient
from fairlane.client.synchronous import Client

__all__ = ["AsyncClient", "Client"]
