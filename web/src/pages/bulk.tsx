// Many things acted on at once, chosen by the service. The rule: first a dry run says how many are
// meant; then the same choice is sent again, call by call, until the service says that there is no more.
import { useEffect, useState } from "preact/hooks";
import { Problem } from "../api";
import { count } from "../format";
import { Confirm } from "../parts/dialog";
import { Trouble } from "../parts/trouble";
import { t } from "../words";

export type Filter = Readonly<Record<string, string>>;
export type Choice = { readonly filter: Filter } | { readonly ids: readonly string[] };
/** What a call is sent: ids, or a filter and where to go on. */
export type Part =
  | { readonly task_ids: string[]; readonly dry_run: boolean; readonly cursor: ""; readonly all: false }
  | { readonly filter: Filter; readonly dry_run: boolean; readonly cursor: string; readonly all: boolean };

export interface Sum {
  readonly matched: number;
  readonly done: number;
}

interface Done extends Sum {
  readonly next_cursor: string | null;
}

/** The service takes so many ids a call. */
const MOST_IDS = 1_000;

/** Send a choice until the service says that there is no more. Throws a Problem. */
async function sendAll(
  send: (part: Part) => Promise<Done>,
  choice: Choice,
  isDry: boolean,
  saysAll: boolean,
  told: (sum: Sum) => void,
): Promise<Sum> {
  let sum: Sum = { matched: 0, done: 0 };
  const add = (part: Sum): void => {
    sum = { matched: sum.matched + part.matched, done: sum.done + part.done };
    told(sum);
  };
  if ("ids" in choice) {
    for (let at = 0; at < choice.ids.length; at += MOST_IDS) {
      add(await send({ task_ids: choice.ids.slice(at, at + MOST_IDS), dry_run: isDry, cursor: "", all: false }));
    }
    return sum;
  }
  // What takes everything away is said twice.
  const all = saysAll && Object.keys(choice.filter).length === 0;
  let cursor: string | null = "";
  while (cursor !== null) {
    const done: Done = await send({ filter: choice.filter, dry_run: isDry, cursor, all });
    add(done);
    cursor = done.next_cursor;
  }
  return sum;
}

interface Props {
  readonly title: string;
  readonly choice: Choice;
  readonly send: (part: Part) => Promise<Done>;
  /** Whether a filter without a word has to be confirmed by `all`. */
  readonly saysAll: boolean;
  readonly isDanger: boolean;
  /** What the button says, before and after the count is there. */
  readonly act: (matched: number | undefined) => string;
  readonly everything: string;
  readonly question: string;
  readonly said: (sum: Sum) => string;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ActOnMany({ choice, send, saysAll, ...props }: Props) {
  const [matched, setMatched] = useState<number>();
  const [problem, setProblem] = useState<Problem>();
  useEffect(() => {
    sendAll(send, choice, true, saysAll, () => {}).then(
      (sum) => setMatched(sum.matched),
      (error: unknown) => setProblem(error instanceof Problem ? error : new Problem(0, "FAULT", String(error))),
    );
  }, []);
  const filter = "filter" in choice ? Object.entries(choice.filter) : [];
  return (
    <Confirm
      title={props.title}
      act={props.act(matched)}
      isDanger={props.isDanger}
      isReady={matched !== undefined && matched > 0}
      onClose={props.onClose}
      onAct={async (progress) => {
        const sum = await sendAll(send, choice, false, saysAll, (now) => progress(now.matched / Math.max(1, matched ?? 1)));
        props.onDone();
        return props.said(sum);
      }}
    >
      {problem && <Trouble problem={problem} />}
      <p data-testid="matched">{matched === undefined ? t("counting") : t("dry_run_says", { count: count(matched) })}</p>
      {"filter" in choice && <p class="note">{filter.length ? filter.map(([name, value]) => `${name} = ${value}`).join(", ") : props.everything}</p>}
      <p>{props.question}</p>
    </Confirm>
  );
}
