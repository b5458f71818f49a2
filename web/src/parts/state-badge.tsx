import { type Key, t } from "../words";
import { Badge, type Tone } from "./basics";

const TONES: Readonly<Record<string, Tone>> = {
  pending: "quiet", leased: "info", running: "info", delayed: "warn",
  done: "good", failed: "bad", dead: "bad", expired: "warn", cancelled: "quiet",
};

export function StateBadge({ state }: { state: string }) {
  return <Badge tone={TONES[state] ?? "quiet"}>{state in TONES ? t(`task.${state}` as Key) : state}</Badge>;
}
