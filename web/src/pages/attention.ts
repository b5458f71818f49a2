// What the person on call should look at now. The rule: each says the next step.
import type { Readiness } from "../api";
import { count } from "../format";
import { laneReason } from "../lanes";
import type { Live } from "../live";
import type { Query } from "../query";
import { t } from "../words";

export interface Note {
  readonly key: string;
  readonly tone: "bad" | "warn";
  readonly what: string;
  readonly step: string;
  readonly to?: string;
}

interface Check {
  readonly name: string;
  readonly verdict: string;
  readonly found: string;
  readonly next_step: string;
}

export function attention(now: Live, ready: Query<Readiness>): readonly Note[] {
  const notes: Note[] = [];
  if (now.status === "trouble") {
    notes.push({ key: "store", tone: "bad", what: t("note.store"), step: t("note.store_how"), to: "/settings?show=health" });
  }
  const told = ready.problem?.members["checks"] ?? ready.data?.checks;
  for (const check of Array.isArray(told) ? (told as readonly Check[]) : []) {
    if (check.verdict === "ok" || check.name.startsWith("consumers of")) continue;
    const tone = check.verdict === "fail" ? "bad" : "warn";
    notes.push({ key: `check ${check.name}`, tone, what: `${check.name}: ${check.found}`, step: check.next_step, to: "/settings?show=health" });
  }
  for (const lane of now.lanes ?? []) {
    const reason = laneReason(lane, now.workers);
    if (reason.tone !== "bad") continue;
    const what = t("note.lane", { lane: lane.name, pending: count(lane.pending) });
    notes.push({ key: `lane ${lane.name}`, tone: "bad", what, step: `${reason.word}. ${reason.detail}`, to: "/workers" });
  }
  if (now.totals?.overloaded) {
    notes.push({ key: "overload", tone: "warn", what: t("note.overload"), step: t("note.overload_how"), to: "/devices" });
  }
  if (now.totals && now.totals.dead_letters > 0) {
    const what = t("note.dead", { count: count(now.totals.dead_letters) });
    notes.push({ key: "dead", tone: "warn", what, step: t("note.dead_how"), to: "/dead-letters" });
  }
  return notes;
}
