// Why a lane or a device does or does not go, in words. The rule: a reason names what would help.
import type { Device, DeviceLane, Lane, Worker } from "./api";
import { seconds } from "./format";
import type { Tone } from "./parts/basics";
import { t, told } from "./words";

export interface Reason {
  readonly tone: Tone;
  readonly word: string;
  readonly detail: string;
}

/** Why a lane is held, or that it flows. */
export function laneReason(lane: Lane, workers: readonly Worker[] | null): Reason {
  const here = (workers ?? []).filter((worker) => worker.lanes.includes(lane.name));
  if (lane.slots === 0) {
    const why = (workers ?? []).find((worker) => worker.reason)?.reason;
    const none = here.length === 0 && !why;
    const detail = none ? t("lane.no_worker_how", { lane: lane.name }) : (why ?? "");
    return { tone: lane.pending ? "bad" : "warn", word: t(none ? "lane.no_worker" : "lane.no_slots"), detail };
  }
  if (lane.pending === 0) return { tone: "quiet", word: t("lane.idle"), detail: t("lane.idle_how") };
  if (lane.scheduled === 0) {
    const detail = t("lane.held_how", { backoffs: lane.backoffs, throttled: lane.throttled });
    return { tone: "warn", word: t("lane.held"), detail };
  }
  if (lane.credits <= 0) {
    return { tone: "info", word: t("lane.full"), detail: t("lane.full_how", { slots: lane.slots }) };
  }
  return { tone: "good", word: t("lane.flows"), detail: t("lane.flows_how", { credits: lane.credits }) };
}

/** The lane of a device that says most about it: where it has most pending. */
export function mainLane(device: Device): DeviceLane | undefined {
  return [...device.lanes].sort((a, b) => b.pending - a.pending || b.leased - a.leased)[0];
}

/** What holds a device: the same in all its lanes, or in the one with most pending. */
export function deviceReason(device: Device): Reason {
  if (device.limits.paused) return { tone: "warn", word: t("held.paused"), detail: t("held.paused_how") };
  const lanes = device.lanes.filter((lane) => lane.pending > 0);
  const going = lanes.find((lane) => lane.rank !== null);
  if (going) return { tone: "good", word: t("held.going"), detail: t("held.going_how", { rank: (going.rank ?? 0) + 1 }) };
  const held = mainLane(device);
  if (!held || lanes.length === 0) {
    const word = t(device.leased ? "held.running" : "held.idle");
    return { tone: device.leased ? "info" : "quiet", word, detail: "" };
  }
  return { tone: "warn", word: told("held", held.held_by), detail: told("held_how", held.held_by) };
}

/** How far this browser's clock is ahead of the service's, by an answer that was just made. */
export function skewOf(now: string | null): number {
  return now ? Date.now() - new Date(now).getTime() : 0;
}

/** A device's share of the places in work of a lane, and the share that is its due. */
export function shares(device: Device, lanes: readonly Lane[] | null): { has: number; due: number } | null {
  const mine = mainLane(device);
  const lane = lanes?.find((one) => one.name === mine?.lane);
  if (!mine || !lane) return null;
  // Whoever has work in this lane, as far as levels tell: who waits, and who is only being worked for.
  const others = Math.max(lane.scheduled - (mine.rank === null ? 0 : 1), 0);
  const due = device.limits.weight / (device.limits.weight + others);
  return { has: lane.leased ? mine.leased / lane.leased : 0, due };
}

export function waited(device: Device): string {
  return device.pending ? seconds(device.waited_seconds) : "–";
}
