// Dead letters: grouped by cause, brought back or dropped. The rule: all that match are chosen by the
// service and not by this page, and what an action means is counted before it is done.
import { useEffect, useState } from "preact/hooks";
import { body, client, type Task } from "../api";
import { count, moment } from "../format";
import { live } from "../live";
import { Empty, MacLink, Panel, Scroll, TaskLink, Title } from "../parts/basics";
import { Asked } from "../parts/trouble";
import { useQuery } from "../query";
import { go, usePlace } from "../router";
import { useMayAct } from "../session";
import { t } from "../words";
import type { Choice, Filter } from "./bulk";
import { type Action, ActOnDead } from "./dead-act";
import { Causes } from "./dead-causes";

const NAMES = ["cause", "task_type", "mac", "after", "before"] as const;
const PAGE = 50;

interface Loaded {
  readonly letters: readonly Task[];
  readonly next: string | null;
}

async function load(filter: Filter, most: number, signal: AbortSignal): Promise<Loaded> {
  const letters: Task[] = [];
  let cursor = "";
  // Each call looks at 1,000 letters, and the list has 10,000 at most.
  for (let calls = 0; calls < 12; calls++) {
    const query = { ...filter, cursor, limit: Math.min(200, most - letters.length) };
    const page = await body(client.GET("/v1/dead-letters", { params: { query }, signal }));
    letters.push(...page.dead_letters);
    if (page.next_cursor === null || letters.length >= most) return { letters, next: page.next_cursor };
    cursor = page.next_cursor;
  }
  return { letters, next: cursor };
}

interface RowsProps {
  readonly letters: readonly Task[];
  readonly chosen: ReadonlySet<string>;
  readonly isAll: boolean;
  readonly mayAct: boolean;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
}

function Rows({ letters, chosen, isAll, mayAct, onChoose }: RowsProps) {
  const isEvery = letters.every((letter) => chosen.has(letter.task_id));
  function toggle(id: string): void {
    const next = new Set(chosen);
    if (!next.delete(id)) next.add(id);
    onChoose(next);
  }
  return (
    <Scroll label={t("dead_letters")}>
      <table data-testid="dead">
        <thead>
          <tr>
            {mayAct && (
              <th scope="col" class="check">
                <input
                  type="checkbox"
                  aria-label={t("choose_page")}
                  checked={isAll || isEvery}
                  onChange={() => onChoose(new Set(isEvery || isAll ? [] : letters.map((letter) => letter.task_id)))}
                />
              </th>
            )}
            <th scope="col">{t("task")}</th>
            <th scope="col">{t("cause")}</th>
            <th scope="col">{t("type")}</th>
            <th scope="col">{t("device")}</th>
            <th scope="col">{t("died")}</th>
            <th scope="col" class="number">{t("failures")}</th>
            <th scope="col" class="wide">{t("error")}</th>
          </tr>
        </thead>
        <tbody>
          {letters.map((letter) => (
            <tr key={letter.task_id}>
              {mayAct && (
                <td class="check">
                  <input type="checkbox" aria-label={letter.task_id} checked={isAll || chosen.has(letter.task_id)} disabled={isAll} onChange={() => toggle(letter.task_id)} />
                </td>
              )}
              <th scope="row"><TaskLink id={letter.task_id} /></th>
              <td class="cut" title={letter.cause}>{letter.cause}</td>
              <td>{letter.task_type}</td>
              <td>{letter.mac ? <MacLink mac={letter.mac} /> : "–"}</td>
              <td>{moment(letter.ended_at)}</td>
              <td class="number">{letter.failures}</td>
              <td class="wide cut" title={letter.error}>{letter.error.trim().split("\n").at(-1) || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

export function Dead() {
  const { query } = usePlace();
  const mayAct = useMayAct();
  const [most, setMost] = useState(PAGE);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  const [acting, setActing] = useState<Action>();
  const total = live.use().totals?.dead_letters;
  const given = Object.entries(Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""])));
  const filter: Filter = Object.fromEntries(given.filter(([, value]) => value !== ""));
  const key = query.toString();
  const choose = (ids: ReadonlySet<string>): void => {
    setAll(false);
    setChosen(ids);
  };
  useEffect(() => {
    choose(new Set());
    setMost(PAGE);
  }, [key]);
  const found = useQuery((signal) => load(filter, most, signal), [key, most], {
    everyMs: 10_000,
    on: (event) => event.event === "dead" || event.event === "redriven" || event.event === "dropped",
  });
  const change = (more: Record<string, string>): void => go("/dead-letters", { ...filter, ...more }, true);
  const choice: Choice = isAll ? { filter } : { ids: [...chosen] };
  const isChosen = isAll || chosen.size > 0;
  return (
    <>
      <Title note={total === undefined ? null : <span class="note">{t("in_all", { count: count(total) })}</span>}>{t("dead_letters")}</Title>
      <Causes filter={filter} onChoose={(cause) => change({ cause })} />
      <Panel>
        <div class="toolbar">
          <label>
            <span>{t("cause")}</span>
            <input type="search" size={22} value={filter["cause"] ?? ""} onChange={(event) => change({ cause: event.currentTarget.value.trim() })} />
          </label>
          <label>
            <span>{t("type")}</span>
            <input type="text" size={10} value={filter["task_type"] ?? ""} onChange={(event) => change({ task_type: event.currentTarget.value.trim() })} />
          </label>
          <label>
            <span>{t("device")}</span>
            <input type="text" size={17} value={filter["mac"] ?? ""} placeholder="aa:bb:cc:…" onChange={(event) => change({ mac: event.currentTarget.value.trim() })} />
          </label>
          {Object.keys(filter).length > 0 && <button type="button" class="plain" onClick={() => go("/dead-letters", {}, true)}>{t("clear")}</button>}
        </div>
        <Asked query={found} rows={10}>
          {({ letters, next }) =>
            letters.length === 0 ? (
              <Empty title={Object.keys(filter).length ? t("no_match") : t("no_dead")}>{t("no_dead_how")}</Empty>
            ) : (
              <>
                {mayAct && (
                  <div class="chosen" role="group" aria-label={t("chosen")}>
                    <span>{isAll ? t("all_matching_chosen") : t("some_chosen", { count: count(chosen.size) })}</span>
                    {!isAll && <button type="button" onClick={() => setAll(true)}>{t("choose_all")}</button>}
                    {isChosen && <button type="button" class="plain" onClick={() => choose(new Set())}>{t("choose_none")}</button>}
                    <span class="actions">
                      <button type="button" class="primary" disabled={!isChosen} onClick={() => setActing("redrive")}>{t("redrive")}…</button>
                      <button type="button" class="danger" disabled={!isChosen} onClick={() => setActing("drop")}>{t("drop")}…</button>
                    </span>
                  </div>
                )}
                <Rows letters={letters} chosen={chosen} isAll={isAll} mayAct={mayAct} onChoose={choose} />
                <p class="foot">
                  <span>{t(next ? "shown_of_more" : "shown_all", { count: count(letters.length) })}</span>
                  {next && <button type="button" onClick={() => setMost(most + 150)}>{t("more")}</button>}
                </p>
              </>
            )
          }
        </Asked>
      </Panel>
      {acting && (
        <ActOnDead
          action={acting}
          choice={choice}
          onClose={() => setActing(undefined)}
          onDone={() => {
            choose(new Set());
            found.reload();
          }}
        />
      )}
    </>
  );
}
