// Bring dead letters back, or drop them. The rule: first a dry run by the service says how many are
// meant; then the same choice is sent again, without the dry run.
import { useEffect, useState } from "preact/hooks";
import { body, client, Problem } from "../api";
import { count } from "../format";
import { Confirm } from "../parts/dialog";
import { Trouble } from "../parts/trouble";
import { t } from "../words";

export interface DeadFilter {
  readonly cause?: string;
  readonly task_type?: string;
  readonly mac?: string;
  readonly after?: string;
  readonly before?: string;
}

export type Action = "redrive" | "drop";
export type Choice = { readonly filter: DeadFilter } | { readonly ids: readonly string[] };

const PATHS = { redrive: "/v1/dead-letters:redrive", drop: "/v1/dead-letters:drop" } as const;
/** The service takes so many ids a call. */
const MOST_IDS = 1_000;

interface Sum {
  matched: number;
  done: number;
}

/** Send a choice until the service says that there is no more. Throws a Problem. */
async function send(action: Action, choice: Choice, isDry: boolean, told: (sum: Sum) => void): Promise<Sum> {
  const sum: Sum = { matched: 0, done: 0 };
  if ("ids" in choice) {
    for (let at = 0; at < choice.ids.length; at += MOST_IDS) {
      const part = { task_ids: choice.ids.slice(at, at + MOST_IDS), all: false, cursor: "", dry_run: isDry };
      const done = await body(client.POST(PATHS[action], { body: part }));
      add(sum, done, told);
    }
    return sum;
  }
  let cursor: string | null = "";
  while (cursor !== null) {
    // To drop everything is said twice.
    const all = action === "drop" && !Object.values(choice.filter).some((value) => value !== undefined);
    const part: { filter: DeadFilter; all: boolean; cursor: string; dry_run: boolean } = { filter: choice.filter, all, cursor, dry_run: isDry };
    const done = await body(client.POST(PATHS[action], { body: part }));
    add(sum, done, told);
    cursor = done.next_cursor;
  }
  return sum;
}

function add(sum: Sum, more: Sum, told: (sum: Sum) => void): void {
  sum.matched += more.matched;
  sum.done += more.done;
  told(sum);
}

interface Props {
  readonly action: Action;
  readonly choice: Choice;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ActOnDead({ action, choice, onClose, onDone }: Props) {
  const [matched, setMatched] = useState<number>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    send(action, choice, true, () => {}).then(
      (sum) => setMatched(sum.matched),
      (error: unknown) => setProblem(error instanceof Problem ? error : new Problem(0, "FAULT", String(error))),
    );
  }, []);
  const filter = "filter" in choice ? Object.entries(choice.filter) : [];
  return (
    <Confirm
      title={t(action === "redrive" ? "redrive_title" : "drop_title")}
      act={matched === undefined ? t(action) : t(action === "redrive" ? "redrive_act" : "drop_act", { count: count(matched) })}
      isDanger={action === "drop"}
      isReady={matched !== undefined && matched > 0}
      onClose={onClose}
      onAct={async (progress) => {
        const sum = await send(action, choice, false, (now) => progress(now.matched / Math.max(1, matched ?? 1)));
        onDone();
        return t(action === "redrive" ? "redriven_now" : "dropped_now", { count: count(sum.done) });
      }}
    >
      {problem && <Trouble problem={problem} />}
      <p data-testid="matched">{matched === undefined ? t("counting") : t("dry_run_says", { count: count(matched) })}</p>
      {"filter" in choice && <p class="note">{filter.length ? filter.map(([name, value]) => `${name} = ${value}`).join(", ") : t("all_of_them")}</p>}
      <p>{t(action === "redrive" ? "redrive_ask" : "drop_ask")}</p>
    </Confirm>
  );
}
