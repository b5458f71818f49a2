// The last hour, minute by minute, as the service kept it. The rule: a service that keeps none yet is
// no error: charts then show what this page saw since it was opened.
import { body, client, type HistoryMinute } from "./api";
import { useQuery } from "./query";
import type { Line } from "./parts/chart";
import { t } from "./words";

export interface HistorySeries {
  readonly times: readonly number[];
  readonly rates: readonly Line[];
  readonly waits: readonly Line[];
  readonly pending: readonly Line[];
  readonly jain: readonly Line[];
  readonly hour: {
    readonly waitP50: number | null;
    readonly waitP99: number | null;
    readonly refused: number;
    readonly jain: number | null;
  };
}

const HUES = [3, 2, 1, 5, 4] as const;

/** The median over minutes that have a value, each by how much it stands for. */
function weighed(minutes: readonly HistoryMinute[], value: (minute: HistoryMinute) => number | null, part: number): number | null {
  const found = minutes
    .map((minute) => ({ value: value(minute), weight: Math.max(1, minute.finished) }))
    .filter((one): one is { value: number; weight: number } => one.value !== null)
    .toSorted((a, b) => a.value - b.value);
  const whole = found.reduce((sum, one) => sum + one.weight, 0);
  let below = 0;
  for (const one of found) {
    below += one.weight;
    if (below >= whole * part) return one.value;
  }
  return null;
}

export function seriesOf(minutes: readonly HistoryMinute[]): HistorySeries {
  const each = (value: (minute: HistoryMinute) => number | null): (number | null)[] => minutes.map(value);
  const perMinute = (name: "finished" | "enqueued" | "refused") => each((minute) => (minute[name] * 60) / minute.seconds);
  const lanes = [...new Set(minutes.flatMap((minute) => minute.lanes.map((lane) => lane.name)))].toSorted();
  return {
    times: minutes.map((minute) => new Date(minute.at ?? 0).getTime() / 1000),
    rates: [
      { name: t("finished"), values: perMinute("finished"), color: 1, isFilled: true },
      { name: t("accepted"), values: perMinute("enqueued"), color: 2 },
      { name: t("refused"), values: perMinute("refused"), color: 4 },
    ],
    waits: [
      { name: "p50", values: each((minute) => minute.wait_p50_seconds), color: 1 },
      { name: "p99", values: each((minute) => minute.wait_p99_seconds), color: 3 },
    ],
    pending: lanes.map((name, at) => ({
      name,
      values: each((minute) => minute.lanes.find((lane) => lane.name === name)?.pending ?? null),
      color: HUES[at % HUES.length] ?? 1,
      isFilled: lanes.length === 1,
    })),
    jain: [{ name: t("jain"), values: each((minute) => minute.jain), color: 5 }],
    hour: {
      waitP50: weighed(minutes, (minute) => minute.wait_p50_seconds, 0.5),
      // What one in a hundred waits longer than is told by the worst minutes, not by the usual one.
      waitP99: weighed(minutes, (minute) => minute.wait_p99_seconds, 0.99),
      refused: minutes.reduce((sum, minute) => sum + minute.refused, 0),
      jain: weighed(minutes, (minute) => minute.jain, 0.5),
    },
  };
}

export function useHistory(): HistorySeries | undefined {
  const found = useQuery(
    (signal) => body(client.GET("/v1/history", { params: { query: { minutes: 60 } }, signal })).then((told) => seriesOf(told.minutes)),
    [],
    { everyMs: 15_000 },
  );
  return found.data;
}
