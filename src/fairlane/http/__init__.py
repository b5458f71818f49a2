"""The HTTP service: a verb a route, for devices and operators that are no Python programs.

The rule: only this room knows FastAPI and pydantic, and it decides nothing. A route checks what was
sent, runs its verb, and tells what the verb returned; the summary of a route is its verb's
sentence.
"""

from fairlane.http.app import create_app
from fairlane.http.caller import Caller

__all__ = ["Caller", "create_app"]
