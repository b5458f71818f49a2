// Asking the API again and again while a page is shown. The rule: what was last answered stays on
// the screen while it is asked again or fails; nothing is asked twice at once, nor by a hidden page.
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "./api";
import { type LiveEvent, useEvents } from "./live";
import { REFRESH } from "./store";

export interface Query<T> {
  readonly data: T | undefined;
  readonly problem: Problem | undefined;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

interface Options {
  /** Milliseconds between two times; 0 asks once. */
  readonly everyMs?: number;
  /** Which events say that there is something new. */
  readonly on?: (event: LiveEvent) => boolean;
}

/** What changes all the time is asked for so often at most. */
const SOON_MS = 700;

export function useQuery<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  dependencies: readonly unknown[],
  { everyMs = 5_000, on }: Options = {},
): Query<T> {
  const [state, setState] = useState<Omit<Query<T>, "reload">>({ data: undefined, problem: undefined, isLoading: true });
  const latest = useRef({ ask, soon: () => {}, now: () => {} });
  latest.current.ask = ask;

  useEffect(() => {
    const aborter = new AbortController();
    let isAsking = false;
    let isWanted = false;
    let timer = 0;
    let askedAt = 0;
    setState({ data: undefined, problem: undefined, isLoading: true });

    async function run(): Promise<void> {
      if (isAsking) {
        isWanted = true;
        return;
      }
      isAsking = true;
      isWanted = false;
      askedAt = performance.now();
      try {
        const data = await latest.current.ask(aborter.signal);
        if (!aborter.signal.aborted) setState({ data, problem: undefined, isLoading: false });
      } catch (error) {
        if (aborter.signal.aborted) return;
        const problem = error instanceof Problem ? error : new Problem(0, "FAULT", String(error));
        setState((before) => ({ ...before, problem, isLoading: false }));
      } finally {
        isAsking = false;
        if (!aborter.signal.aborted) plan(isWanted ? SOON_MS : everyMs);
      }
    }

    function plan(ms: number): void {
      clearTimeout(timer);
      if (ms > 0) timer = window.setTimeout(() => (document.hidden ? plan(1_000) : void run()), ms);
    }

    latest.current.now = () => void run();
    latest.current.soon = () => {
      if (isAsking) isWanted = true;
      else plan(Math.max(1, SOON_MS - (performance.now() - askedAt)));
    };
    const refresh = (): void => void run();
    addEventListener(REFRESH, refresh);
    void run();
    return () => {
      aborter.abort();
      clearTimeout(timer);
      removeEventListener(REFRESH, refresh);
    };
  }, dependencies as unknown[]);

  useEvents((events) => {
    if (on && events.some(on)) latest.current.soon();
  });
  return { ...state, reload: () => latest.current.now() };
}
