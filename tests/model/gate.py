"""Who is let in: the published rules of admission, in plain Python.

The rule: under `fair` a task is refused when all pending tasks, those of its site or those of its
device are at their limit, and a limit that was met holds until the count has fallen to its low
mark. What another device has waiting matters only through what is left of all: half of it to a
device, four times it to a site. Under `system` everybody is refused while G > G_max or any device
is over its limit (section 4.4). Nobody is let in while the store's memory was measured as too full.
An idempotency key stands for one task and its body for its time; while as many are kept as may be,
a task with another key is refused.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Final

from fairlane.settings import Settings

DEFAULT: Final = "default"


@dataclass(frozen=True)
class Kept:
    """What an idempotency key stands for, and until when."""

    task_id: str
    body: object
    created_at: int
    until: int


class Gate:
    """The limits, and which of them were met and hold still."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.full_macs: set[str] = set()
        self.full_sites: set[str] = set()
        self.receipts: dict[str, Kept] = {}
        #: Until when the store counts as too full; 0 when it does not.
        self.store_full_until = 0
        self._is_full = False

    def receipt(self, key: str, now: int) -> Kept | None:
        """Return what a key stands for now."""
        kept = self.receipts.get(key)
        return kept if kept and now < kept.until else None

    def lacks_room_for(self, key: str, now: int) -> bool:
        """Whether no more keys may be kept; two that are over make room."""
        if not key:
            return False
        self.reap(2, now)
        return len(self.receipts) >= self.settings.idempotency_cap and key not in self.receipts

    def keep(self, key: str, task_id: str, body: object, created_at: int, now: int) -> None:
        """Keep what a key stands for."""
        if key:
            until = now + self.settings.idempotency_ttl_ms
            self.receipts[key] = Kept(task_id, body, created_at, until)

    def reap(self, limit: int, now: int) -> None:
        """Forget keys that are over, the oldest first."""
        over = sorted((k.until, key) for key, k in self.receipts.items() if k.until <= now)
        for _, key in over[: max(0, limit)]:
            del self.receipts[key]

    def measure(self, percent: int, until: int) -> bool:
        """Note how full the store is; return whether it is too full."""
        high = self.settings.store_full_percent
        low = high * self.settings.low_mark_percent // 100
        is_full = percent > high or (self.store_full_until > 0 and percent > low)
        self.store_full_until = until if is_full else 0
        return is_full

    def refuses(self, mac: str, site: str, waiting: Counter[tuple[str, str]], now: int) -> str:
        """Return why a task is refused, or nothing; `waiting` counts by (device, its site)."""
        if now < self.store_full_until:
            return "store_full"
        by_site: Counter[str] = Counter()
        by_mac: Counter[str] = Counter()
        for (device, its), count in waiting.items():
            by_site[its] += count
            by_mac[device] += count
        total, settings = waiting.total(), self.settings
        if settings.admission == "system":
            if total > settings.max_total_pending:
                return "global_full"
            over = [count for count in by_mac.values() if count > settings.max_per_mac_pending]
            return "device_full" if over else ""
        self._is_full = self._holds(total, settings.max_total_pending, self._is_full)
        if self._is_full:
            return "global_full"
        left = settings.max_total_pending - total
        if total > by_site[DEFAULT] or settings.max_per_site_pending:
            most = settings.max_per_site_pending or settings.max_total_pending
            if total > by_site[site]:
                most = min(most, max(1, 4 * left))
            was = site in self.full_sites
            if _mark(self.full_sites, site, self._holds(by_site[site], most, was)):
                return "site_full"
        most = min(settings.max_per_mac_pending, max(1, left // 2))
        if _mark(self.full_macs, mac, self._holds(by_mac[mac], most, mac in self.full_macs)):
            return "device_full"
        return ""

    def forget_sites(self, waiting: Counter[tuple[str, str]]) -> None:
        """A site without tasks is under no mark."""
        self.full_sites &= {site for (_, site), count in waiting.items() if count} | {DEFAULT}

    def _holds(self, count: int, limit: int, was_full: bool) -> bool:
        low = min(limit - 1, limit * self.settings.low_mark_percent // 100)
        return count >= limit or (was_full and count > low)


def _mark(marked: set[str], name: str, is_full: bool) -> bool:
    (marked.add if is_full else marked.discard)(name)
    return is_full
