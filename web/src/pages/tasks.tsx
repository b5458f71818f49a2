// Tasks by id, device, type, state, cause and time. The rule: the service searches; the address keeps
// the search, so it can be sent on.
import { useEffect, useState } from "preact/hooks";
import { findTasks, type FoundTask } from "../api";
import { between, count, moment, seconds } from "../format";
import { live } from "../live";
import { Empty, MacLink, Panel, Scroll, TaskLink, Title } from "../parts/basics";
import { SearchBox } from "../parts/search-box";
import { StateBadge } from "../parts/state-badge";
import { Asked, isMissingRoute } from "../parts/trouble";
import { useQuery } from "../query";
import { go, usePlace } from "../router";
import { useMayAct } from "../session";
import { type Key, t } from "../words";
import type { Filter } from "./bulk";
import { CancelTasks, OPEN } from "./cancel-act";

const STATES = ["pending", "leased", "running", "delayed", "done", "failed", "dead", "expired", "cancelled"] as const;
const SINCE = { "15m": 900, "1h": 3_600, "24h": 86_400 } as const;
const NAMES = ["q", "state", "mac", "task_type", "cause", "since"] as const;
const TASK_ID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

function took(task: FoundTask): string {
  const waited = between(task.created_at, task.started_at);
  const ran = between(task.started_at, task.ended_at);
  return `${seconds(waited)} + ${seconds(ran)}`;
}

interface Marks {
  readonly chosen: ReadonlySet<string>;
  readonly isAll: boolean;
  readonly onChoose: (chosen: ReadonlySet<string>) => void;
}

const isOpen = (state: string): boolean => OPEN.some((name) => name === state);
/** By its id alone, what runs is not cancelled. */
const mayMark = (task: FoundTask): boolean => isOpen(task.state) && task.state !== "running";

function Mark({ task, marks }: { task: FoundTask; marks: Marks }) {
  function toggle(): void {
    const next = new Set(marks.chosen);
    if (!next.delete(task.task_id)) next.add(task.task_id);
    marks.onChoose(next);
  }
  return (
    <td class="check">
      <input type="checkbox" aria-label={task.task_id} checked={marks.isAll || marks.chosen.has(task.task_id)} disabled={marks.isAll || !mayMark(task)} onChange={toggle} />
    </td>
  );
}

function Rows({ tasks, marks }: { tasks: readonly FoundTask[]; marks: Marks | null }) {
  const all = tasks.filter(mayMark).map((task) => task.task_id);
  const isEvery = all.length > 0 && all.every((id) => marks?.chosen.has(id));
  return (
    <Scroll label={t("tasks")}>
      <table data-testid="tasks">
        <thead>
          <tr>
            {marks && (
              <th scope="col" class="check">
                <input
                  type="checkbox"
                  aria-label={t("choose_page")}
                  checked={marks.isAll || isEvery}
                  onChange={() => marks.onChoose(new Set(isEvery || marks.isAll ? [] : all))}
                />
              </th>
            )}
            <th scope="col">{t("task")}</th>
            <th scope="col">{t("state")}</th>
            <th scope="col">{t("type")}</th>
            <th scope="col">{t("device")}</th>
            <th scope="col">{t("created")}</th>
            <th scope="col" title={t("took_note")}>{t("took")}</th>
            <th scope="col" class="number">{t("attempt")}</th>
            <th scope="col" class="wide">{t("cause")}</th>
          </tr>
        </thead>
        <tbody>
          {tasks.map((task) => (
            <tr key={task.task_id}>
              {marks && <Mark task={task} marks={marks} />}
              <th scope="row"><TaskLink id={task.task_id} /></th>
              <td><StateBadge state={task.state} /></td>
              <td>{task.task_type}</td>
              <td><MacLink mac={task.mac} /></td>
              <td>{moment(task.created_at)}</td>
              <td class="nowrap">{took(task)}</td>
              <td class="number">{task.attempt}</td>
              <td class="wide cut" title={task.error || task.cause}>{task.cause || task.error.split("\n").at(-1) || "–"}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

export function Tasks() {
  const { query } = usePlace();
  const given = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""])) as Record<(typeof NAMES)[number], string>;
  const [cursors, setCursors] = useState<readonly string[]>([]);
  const cursor = cursors.at(-1) ?? "";
  const lanes = live.use().lanes ?? [];
  const mayAct = useMayAct();
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [isAll, setAll] = useState(false);
  const [isCancelling, setCancelling] = useState(false);
  const choose = (ids: ReadonlySet<string>): void => {
    setAll(false);
    setChosen(ids);
  };
  useEffect(() => choose(new Set()), [query.toString(), cursor]);
  function asked(): Filter {
    const { since, ...rest } = given;
    const back = SINCE[since as keyof typeof SINCE];
    const after = back ? new Date(Date.now() - back * 1000).toISOString() : "";
    return Object.fromEntries(Object.entries({ ...rest, created_after: after }).filter(([, value]) => value !== ""));
  }
  const found = useQuery(
    (signal) => findTasks({ ...asked(), limit: 50, cursor }, signal),
    [query.toString(), cursor],
    { everyMs: cursor ? 0 : 5_000, on: (event) => event.tasks.length > 0 },
  );
  function change(more: Partial<typeof given>): void {
    setCursors([]);
    go("/tasks", { ...given, ...more }, true);
  }
  // An id leads to its task also where the service cannot search yet.
  const open = (text: string): void => {
    if (TASK_ID.test(text) || (isMissingRoute(found.problem) && text)) go(`/tasks/${encodeURIComponent(text)}`);
    else change({ q: text });
  };
  const isFiltered = NAMES.some((name) => given[name]);
  const isChosen = isAll || chosen.size > 0;
  const marks = mayAct && (given.state === "" || isOpen(given.state)) ? { chosen, isAll, onChoose: choose } : null;
  return (
    <>
      <Title>{t("tasks")}</Title>
      <Panel>
        <div class="toolbar">
          <SearchBox label={t("search_tasks")} value={given.q} onSearch={(q) => change({ q })} onEnter={open} />
          <label>
            <span>{t("state")}</span>
            <select value={given.state} onChange={(event) => change({ state: event.currentTarget.value })}>
              <option value="">{t("any")}</option>
              {STATES.map((state) => <option key={state} value={state}>{t(`task.${state}` as Key)}</option>)}
            </select>
          </label>
          <label>
            <span>{t("device")}</span>
            <input type="text" size={17} value={given.mac} placeholder="aa:bb:cc:…" onChange={(event) => change({ mac: event.currentTarget.value.trim() })} />
          </label>
          <label>
            <span>{t("type")}</span>
            <input type="text" size={8} list="types" value={given.task_type} onChange={(event) => change({ task_type: event.currentTarget.value.trim() })} />
            <datalist id="types">{lanes.map((lane) => <option key={lane.name} value={lane.name} />)}</datalist>
          </label>
          <label>
            <span>{t("cause")}</span>
            <input type="text" size={12} value={given.cause} onChange={(event) => change({ cause: event.currentTarget.value.trim() })} />
          </label>
          <label>
            <span>{t("created")}</span>
            <select value={given.since} onChange={(event) => change({ since: event.currentTarget.value })}>
              <option value="">{t("any")}</option>
              {Object.keys(SINCE).map((since) => <option key={since} value={since}>{t(`since.${since}` as Key)}</option>)}
            </select>
          </label>
          {isFiltered && <button type="button" class="plain" onClick={() => go("/tasks", {}, true)}>{t("clear")}</button>}
        </div>
        <Asked query={found} rows={10}>
          {({ tasks, finished, next_cursor: next, looked, ended_since: since }) => (
            <>
              {marks && tasks.some((task) => isOpen(task.state)) && (
                <div class="chosen" role="group" aria-label={t("chosen")}>
                  <span>{isAll ? t("all_matching_chosen") : t("some_chosen", { count: count(chosen.size) })}</span>
                  {!isAll && <button type="button" onClick={() => setAll(true)}>{t(given.state ? "choose_all" : "choose_all_waiting")}</button>}
                  {isChosen && <button type="button" class="plain" onClick={() => choose(new Set())}>{t("choose_none")}</button>}
                  <span class="actions">
                    <button type="button" class="danger" disabled={!isChosen} onClick={() => setCancelling(true)}>{t("cancel_many")}…</button>
                  </span>
                </div>
              )}
              {tasks.length === 0 ? <Empty title={t(isFiltered ? "no_match" : "no_tasks")}>{t(isFiltered ? "no_match_tasks" : "no_tasks_how")}</Empty> : <Rows tasks={tasks} marks={marks} />}
              <p class="foot">
                <span>{t("looked", { shown: count(tasks.length), looked: count(looked) })}</span>
                {since && <span class="note">{t("ended_since", { time: moment(since) })}</span>}
                {cursors.length > 0 && <button type="button" onClick={() => setCursors(cursors.slice(0, -1))}>{t("back")}</button>}
                {!finished && next && <button type="button" onClick={() => setCursors([...cursors, next])}>{t("go_on")}</button>}
              </p>
            </>
          )}
        </Asked>
      </Panel>
      {isCancelling && (
        <CancelTasks
          choice={isAll ? { filter: asked() } : { ids: [...chosen] }}
          onClose={() => setCancelling(false)}
          onDone={() => {
            choose(new Set());
            found.reload();
          }}
        />
      )}
    </>
  );
}
