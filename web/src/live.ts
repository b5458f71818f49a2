// The live feed: levels and events as they change. The rule: one stream for all pages; a stream that
// was cut comes back by itself with a snapshot, and the page says so meanwhile.
import { useEffect, useRef } from "preact/hooks";
import type { Lane, Worker } from "./api";
import { root } from "./router";
import { REFRESH, Store } from "./store";

export interface Totals {
  readonly counts: Readonly<Record<string, number>>;
  readonly pending: number;
  readonly leased: number;
  readonly delayed: number;
  readonly dead_letters: number;
  readonly overloaded: boolean;
}

export interface LiveEvent {
  readonly id: string;
  readonly event: string;
  readonly at: string | null;
  readonly mac: string;
  readonly lane: string;
  readonly tasks: readonly string[];
  readonly detail: string;
}

/** The cumulative counts at a moment of this browser's clock. */
export interface Sample {
  readonly at: number;
  readonly accepted: number;
  readonly ended: number;
  readonly refused: number;
  readonly pending: number;
}

export interface Live {
  readonly status: "connecting" | "live" | "trouble" | "lost";
  readonly trouble: string;
  readonly totals: Totals | null;
  readonly lanes: readonly Lane[] | null;
  readonly workers: readonly Worker[] | null;
  readonly events: readonly LiveEvent[];
}

const KEPT_EVENTS = 200;
const SAMPLE_MS = 1_000;
const KEPT_SAMPLES = 900;
const ENDS = ["done", "failed", "expired", "cancelled", "dead"];

const nothing: Live = { status: "connecting", trouble: "", totals: null, lanes: null, workers: null, events: [] };
export const live = new Store<Live>(nothing);
export const samples = new Store<readonly Sample[]>([]);
type Listener = (events: readonly LiveEvent[]) => void;
const listeners = new Set<Listener>();

interface Message extends Partial<Pick<Live, "totals" | "lanes" | "workers">> {
  readonly events?: readonly LiveEvent[];
  readonly code?: string;
}

/** All tasks that were refused, for whatever reason. */
export function refused(totals: Totals): number {
  const named = Object.entries(totals.counts).filter(([name]) => name.startsWith("refused"));
  return named.reduce((sum, [, value]) => sum + value, 0);
}

/** All tasks that have ended. */
export function ended(totals: Totals): number {
  return ENDS.reduce((sum, name) => sum + (totals.counts[name] ?? 0), 0);
}

/** Follow the feed; returns what ends it. `refusedWith` is told when it must not come back. */
export function follow(refusedWith: () => void): () => void {
  let source: EventSource | null = null;
  let waiting = 0;

  function take(event: MessageEvent<string>): void {
    const message = JSON.parse(event.data) as Message;
    const before = live.value;
    if (event.type === "snapshot" && before.totals) dispatchEvent(new Event(REFRESH));
    if (event.type === "trouble") {
      live.set({ ...before, status: "trouble", trouble: message.code ?? "" });
      return;
    }
    const events = message.events ?? [];
    live.set({
      status: "live",
      trouble: "",
      totals: message.totals ?? before.totals,
      lanes: message.lanes ?? before.lanes,
      workers: message.workers ?? before.workers,
      events: events.length ? [...events.toReversed(), ...before.events].slice(0, KEPT_EVENTS) : before.events,
    });
    for (const listener of listeners) listener(event.type === "snapshot" ? [] : events);
  }

  function open(): void {
    source = new EventSource(`${root}/v1/events`);
    for (const kind of ["snapshot", "delta", "trouble"]) source.addEventListener(kind, take as EventListener);
    source.onerror = () => {
      live.set({ ...live.value, status: "lost" });
      // Closed is for good, as after a 401 or a 503: ask who we are, and come back if we may.
      if (source?.readyState === EventSource.CLOSED) refusedWith();
      // Never on from the last id: what was missed would come, but not the levels that changed.
      again();
    };
  }

  function again(): void {
    source?.close();
    clearTimeout(waiting);
    waiting = window.setTimeout(open, 2_000);
  }

  const sampling = window.setInterval(() => {
    const { totals, status } = live.value;
    if (!totals || status !== "live") return;
    const sample: Sample = {
      at: Date.now(),
      accepted: totals.counts["accepted"] ?? 0,
      ended: ended(totals),
      refused: refused(totals),
      pending: totals.pending,
    };
    samples.set([...samples.value, sample].slice(-KEPT_SAMPLES));
  }, SAMPLE_MS);

  open();
  return () => {
    source?.close();
    clearTimeout(waiting);
    clearInterval(sampling);
  };
}

/** Call `listener` with each batch of events, while the component is shown. */
export function useEvents(listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => {
    const tell: Listener = (events) => latest.current(events);
    listeners.add(tell);
    return () => void listeners.delete(tell);
  }, []);
}

/** What happened each second over the last `overS` seconds; null until two samples are there. */
export function rateOver(name: "accepted" | "ended" | "refused", overS: number): number | null {
  const all = samples.value;
  const last = all.at(-1);
  if (!last) return null;
  const first = all.find((sample) => sample.at >= last.at - overS * 1000);
  if (!first || last.at - first.at < 1_500) return null;
  return Math.max(0, ((last[name] - first[name]) * 1000) / (last.at - first.at));
}
