"""The orders of a lane in plain Python: who stands where, and what moves a tag.

The rule: what stands here is said in `fair_oracle.py`; an entrant of an order is a site of the
lane, or a device of a site.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

from model.cost_oracle import Job

DEFAULT: Final = "default"


@dataclass
class Entrant:
    """Somebody in an order: `tag` is None when v says it all."""

    name: str
    tag: int | None = None
    is_scheduled: bool = False
    leases: int = 0
    weight: float = 1.0


@dataclass
class Flow(Entrant):
    """A device; its limits are 0 when it has none."""

    site: str = DEFAULT
    own_site: str = ""
    joined_site: str = DEFAULT
    is_paused: bool = False
    min_running: int = 0
    max_running: int = 0
    rate: float = 0.0
    tokens: float | None = None
    tokens_at: int = 0
    token_due: int = 0
    backoff_until: int = 0
    queue: list[Job] = field(default_factory=list)
    served_at: int = 0
    turn: int = 0

    @property
    def waits_since(self) -> int:
        """The later of its oldest task's arrival and its last turn."""
        return max(self.served_at, min(job.created_at for job in self.queue))

    @property
    def is_below_floor(self) -> bool:
        """Whether less runs than is promised."""
        return self.leases < self.min_running

    def tokens_left(self, now: int) -> float:
        """Return the tokens, a second's worth at most."""
        most = max(1.0, self.rate)
        if self.tokens is None:
            return most
        return min(most, self.tokens + max(0, now - self.tokens_at) * self.rate / 1000)

    def allowance(self, now: int) -> int:
        """Return how many more tasks it may have now."""
        most = self.max_running - self.leases if self.max_running else 10**9
        if self.rate:
            most = min(most, math.floor(self.tokens_left(now) + 1e-6))
        return max(0, most)

    def price(self, cost: int) -> int:
        """Return what a cost moves the tag by: by its weight, and never nothing."""
        if cost > 0:
            return max(1, math.floor(cost / self.weight))
        return math.ceil(cost / self.weight)


class Order:
    """Entrants by their tags."""

    def __init__(self) -> None:
        self.v = 0
        self.work = 0
        self.entrants: dict[str, Entrant] = {}
        self._newest = 0

    def schedule(self) -> list[Entrant]:
        """Return who can go, the next one first."""
        there = [entrant for entrant in self.entrants.values() if entrant.is_scheduled]
        return sorted(there, key=lambda entrant: entrant.tag or 0)

    def enter(self, entrant: Entrant) -> None:
        """Let somebody in who can go again."""
        self.entrants[entrant.name] = entrant
        tag = entrant.tag
        if tag is None or tag <= self.v:
            tag = self._newest = max(self.v, self._newest + 1)
        entrant.tag, entrant.is_scheduled = self._free(tag, entrant), True

    def charge(self, entrant: Entrant, cost: int) -> None:
        """Move a tag on, or back when the cost is below 0: then never behind v."""
        self.entrants[entrant.name] = entrant
        tag = entrant.tag
        if cost == 0 or (tag is None and cost < 0):
            return
        to = (self.v if tag is None else tag) + cost
        if tag is not None and cost < 0:
            to = max(to, min(tag, self.v))
        self.put(entrant, to)

    def put(self, entrant: Entrant, tag: int) -> None:
        """Give somebody a tag, in the schedule the next free one."""
        entrant.tag = self._free(tag, entrant) if entrant.is_scheduled else tag

    def count_work(self, used: int) -> None:
        """Work was done: where v would be if all that is served moved it."""
        weights = sum(round(1_000_000 * entrant.weight) for entrant in self.schedule())
        if weights:
            self.work += used * 1_000_000 // weights

    def progress(self) -> int:
        """Return how far the order has come, by its tags or by its work."""
        self.work = max(self.v, self.work)
        return self.work

    def follow(self, tag: int) -> None:
        """Move v to the tag of a turn in order."""
        self.v = max(self.v, tag)

    def tidy(self) -> None:
        """Forget what says no more than v does, or everything when the order is idle."""
        everybody = self.entrants.values()
        if not any(entrant.is_scheduled or entrant.leases for entrant in everybody):
            self.v = self.work = self._newest = 0
            for entrant in everybody:
                entrant.tag = None
        for entrant in everybody:
            behind = entrant.tag is not None and entrant.tag <= self.v
            if behind and not entrant.is_scheduled and not entrant.leases:
                entrant.tag = None

    def _free(self, tag: int, entrant: Entrant) -> int:
        taken = {e.tag for e in self.entrants.values() if e.is_scheduled and e is not entrant}
        while tag in taken:
            tag += 1
        return tag


class Site(Entrant):
    """A site: an entrant of the lane, and the order of its devices."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.inner = Order()

    @property
    def flows(self) -> list[Flow]:
        """Its devices that can go, the next one first."""
        return [flow for flow in self.inner.schedule() if isinstance(flow, Flow)]


class Lane:
    """The orders of one lane, and how entrants come, pay and go."""

    def __init__(self, now: int) -> None:
        self.now = now
        self.order = Order()
        self.sites: dict[str, Site] = {}
        self.flows: dict[str, Flow] = {}

    def flow(self, mac: str) -> Flow:
        """Return a device, also one that was never heard of."""
        return self.flows.setdefault(mac, Flow(mac))

    def site(self, name: str) -> Site:
        """Return a site."""
        return self.sites.setdefault(name, Site(name))

    def schedule(self) -> list[Site]:
        """Return the sites that can go, the next one first."""
        return [site for site in self.order.schedule() if isinstance(site, Site)]

    def waiting(self) -> list[Flow]:
        """Return all devices that can go."""
        return [flow for site in self.schedule() for flow in site.flows]

    def seat(self, flow: Flow) -> None:
        """Let a device into the schedule or out of it."""
        site = self.site(flow.site)
        if not self._can_go(flow):
            if flow.is_scheduled:
                flow.is_scheduled = False
                site.is_scheduled = bool(site.flows)
        elif not flow.is_scheduled:
            if not site.is_scheduled:
                self.order.enter(site)
            site.inner.enter(flow)

    def pay(self, flow: Flow, cost: int, used: int = 0) -> None:
        """Charge a device and its site, or give them back; `used` is what a lease used in all."""
        site = self.site(flow.site)
        site.inner.charge(flow, flow.price(cost))
        site.inner.count_work(used)
        if self.schedule() != [site]:
            self.order.charge(site, cost)
            self.order.count_work(used)

    def count_leases(self, flow: Flow, n: int) -> None:
        """Leases began, or ended."""
        flow.leases += n
        self.site(flow.site).leases += n
        self.site(flow.site).inner.entrants[flow.name] = flow
        self.order.entrants[flow.site] = self.site(flow.site)

    def tidy(self) -> None:
        """Forget what need not be known; a site without a device that can go starts anew."""
        for site in self.sites.values():
            self._tidy_site(site)
        self.order.tidy()

    def move(self, flow: Flow, name: str) -> None:
        """Move a device to another site with its leases and what it is ahead of v."""
        if name == flow.site:
            return
        old, new, leases = self.site(flow.site), self.site(name), flow.leases
        flow.is_scheduled = False
        old.is_scheduled = bool(old.flows)
        self.tidy()
        ahead = None if flow.tag is None else max(0, flow.tag - old.inner.v)
        self.count_leases(flow, -leases)
        flow.tag = None
        del old.inner.entrants[flow.name]
        self._tidy_site(old)
        self.settle_in(flow, name)
        self.count_leases(flow, leases)
        if ahead is not None:
            flow.tag = max(flow.tag or 0, new.inner.v + ahead)

    def settle_in(self, flow: Flow, name: str) -> None:
        """A device is in a site from now on; what it is ahead of in another stays there."""
        there = self.site(name).inner.entrants
        left = self.site(flow.site).inner.entrants
        if flow.name in left:
            left[flow.name] = Entrant(flow.name, flow.tag)
        flow.tag = there[flow.name].tag if flow.name in there else None
        flow.site, there[flow.name] = name, flow

    def _tidy_site(self, site: Site) -> None:
        site.inner.tidy()
        if site.name != DEFAULT and not site.is_scheduled and not site.leases:
            site.inner = Order()

    def _can_go(self, flow: Flow) -> bool:
        if flow.is_paused or not flow.queue or flow.backoff_until:
            return False
        if flow.max_running and flow.leases >= flow.max_running:
            return False
        missing = 1 - flow.tokens_left(self.now) if flow.rate else 0.0
        waits = missing > 1e-6
        flow.token_due = self.now + math.ceil(missing * 1000 / flow.rate) if waits else 0
        return not waits
