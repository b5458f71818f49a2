// The last hour, minute by minute, as the service kept it. The rule: a service that keeps none yet is
// no error: charts then show what this page saw since it was opened.
import type { Line } from "./parts/chart";

export interface HistorySeries {
  readonly times: readonly number[];
  readonly rates: readonly Line[];
  readonly waits: readonly Line[];
  readonly pending: readonly Line[];
  readonly hour: {
    readonly waitP50: number | null;
    readonly waitP99: number | null;
    readonly refused: number;
    readonly jain: number | null;
  };
}

export function useHistory(): HistorySeries | undefined {
  return undefined;
}
