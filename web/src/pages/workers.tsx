// The workers: what each offers, how loaded it is, what it runs, and why it offers nothing.
import { findTasks, type Worker } from "../api";
import { seconds } from "../format";
import { live } from "../live";
import { Badge, Empty, MacLink, Meter, Panel, Skeleton, TaskLink, Title, type Tone } from "../parts/basics";
import { isMissingRoute, Trouble } from "../parts/trouble";
import { useQuery } from "../query";
import { href } from "../router";
import { t } from "../words";

/** Tasks of a worker that its card names. */
const SHOWN = 8;

interface Gpu {
  readonly name: string;
  readonly utilisation: number | null;
  readonly memory: number | null;
}

function gpusOf(worker: Worker): readonly Gpu[] {
  try {
    const told: unknown = JSON.parse(worker.report["gpus"] || "[]");
    return Array.isArray(told) ? (told as readonly Gpu[]) : [];
  } catch {
    return [];
  }
}

function Load({ name, told }: { name: string; told: string | number | null | undefined }) {
  const value = told === "" || told === null || told === undefined ? null : Number(told);
  if (value === null || !Number.isFinite(value)) return <div><dt>{name}</dt><dd class="note">{t("not_known")}</dd></div>;
  const tone: Tone = value >= 75 ? "bad" : value >= 65 ? "warn" : "info";
  return <div><dt>{name}</dt><dd><Meter part={value / 100} label={`${Math.round(value)} %`} tone={tone} /></dd></div>;
}

function Card({ worker, tasks }: { worker: Worker; tasks: readonly { task_id: string; mac: string; started_at: string | null }[] | undefined }) {
  const age = worker.last_heartbeat ? (Date.now() - new Date(worker.last_heartbeat).getTime()) / 1000 : null;
  const isOff = worker.slots === 0 || worker.lanes.length === 0;
  return (
    <article class={`card${isOff ? " off" : ""}`} data-testid="worker">
      <header>
        <h3>{worker.report["name"] || worker.report["hostname"] || worker.worker_id}</h3>
        {isOff ? <Badge tone="warn">{t("offers_nothing")}</Badge> : <Badge tone="good">{t("offers", { slots: worker.slots })}</Badge>}
      </header>
      <p class="mono id" title={worker.worker_id}>{worker.worker_id}</p>
      {worker.reason && <p class="reason">{worker.reason}</p>}
      <dl class="facts">
        <div><dt>{t("slots")}</dt><dd><Meter part={worker.active / Math.max(1, worker.slots)} label={`${worker.active} / ${worker.slots}`} /></dd></div>
        <Load name="CPU" told={worker.report["cpu"]} />
        <Load name={t("memory")} told={worker.report["memory"]} />
        {gpusOf(worker).map((gpu, at) => (
          <>
            <Load key={`u${at}`} name={`GPU ${at} ${gpu.name}`} told={gpu.utilisation} />
            <Load key={`m${at}`} name={`GPU ${at} ${t("memory")}`} told={gpu.memory} />
          </>
        ))}
        <div><dt>{t("lanes")}</dt><dd>{worker.lanes.join(", ") || t("none")}</dd></div>
        <div><dt>{t("heartbeat")}</dt><dd>{age === null ? "–" : t("ago", { time: seconds(Math.max(0, age)) })}</dd></div>
      </dl>
      {tasks && tasks.length > 0 && (
        <ul class="runs">
          {tasks.slice(0, SHOWN).map((task) => <li key={task.task_id}><TaskLink id={task.task_id} /> <MacLink mac={task.mac} /></li>)}
          {tasks.length > SHOWN && <li><a href={href("/tasks", { state: "running" })}>{t("and_more", { count: tasks.length - SHOWN })}</a></li>}
        </ul>
      )}
    </article>
  );
}

export function Workers() {
  const { workers } = live.use();
  const running = useQuery((signal) => findTasks({ state: "running", limit: 200 }, signal), [], {
    everyMs: 4_000,
    on: (event) => event.event === "started" || event.event === "done",
  });
  return (
    <>
      <Title>{t("workers")}</Title>
      {running.problem && !isMissingRoute(running.problem) && <Trouble problem={running.problem} again={running.reload} />}
      {workers === null ? (
        <Panel><Skeleton rows={4} /></Panel>
      ) : workers.length === 0 ? (
        <Panel><Empty title={t("no_workers")}>{t("no_workers_how")} <code>fairlane worker</code></Empty></Panel>
      ) : (
        <div class="cards">
          {workers.map((worker) => (
            <Card key={worker.worker_id} worker={worker} tasks={running.data?.tasks.filter((task) => task.worker === worker.worker_id)} />
          ))}
        </div>
      )}
    </>
  );
}
