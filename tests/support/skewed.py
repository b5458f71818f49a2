"""The tests' worker on a host whose clock is wrong."""

from __future__ import annotations

from support.clocks import skew

skew()

from support.deeds import app as app  # noqa: E402 - the clock goes wrong before anything runs
