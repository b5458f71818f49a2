"""Who is let in: the published rules of admission, in plain Python.

The rule: under `fair` a task is refused when all pending tasks, those of its site or those of its
device are at their limit, and a limit that was met holds until the count has fallen to its low
mark. What another device has waiting matters only through what is left of all: half of it to a
device, four times it to a site. Under `system` everybody is refused while G > G_max or any device
is over its limit (section 4.4).
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from fairlane.settings import Settings

DEFAULT: Final = "default"


class Gate:
    """The limits, and which of them were met and hold still."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.full_macs: set[str] = set()
        self.full_sites: set[str] = set()
        self._is_full = False

    def refuses(self, mac: str, site: str, waiting: Counter[tuple[str, str]]) -> str:
        """Return why a task is refused, or nothing; `waiting` counts by (device, its site)."""
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
