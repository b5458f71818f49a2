// One task: what became of it, step by step, and why.
import { useState } from "preact/hooks";
import { body, client, type TaskWithTimeline } from "../api";
import { between, moment, seconds } from "../format";
import { Badge, Countdown, MacLink, Panel, Stat, Title } from "../parts/basics";
import { Confirm } from "../parts/dialog";
import { StateBadge } from "../parts/state-badge";
import { Asked } from "../parts/trouble";
import { useQuery } from "../query";
import { useMayAct } from "../session";
import { t, told } from "../words";
import { Explained } from "./task-explained";
import { Findings } from "./task-findings";

const ENDED = ["done", "failed", "expired", "cancelled", "dead"];

const BAD = ["failed", "dead", "expired"];
const GOING = { pending: "step.now_pending", leased: "step.now_leased", running: "step.now_running" } as const;

function Timeline({ task }: { task: TaskWithTimeline }) {
  const going = task.state in GOING ? GOING[task.state as keyof typeof GOING] : undefined;
  return (
    <ol class="timeline" data-testid="timeline">
      {task.timeline.map((one, at) => {
        const after = between(task.timeline[at - 1]?.at, one.at);
        const notes = [one.attempt > 0 && t("step.attempt", { attempt: one.attempt }), one.worker, one.detail];
        return (
          <li key={one.event} class={BAD.includes(one.event) ? "bad" : one.event === "due" ? "now" : "past"}>
            <span class="step-name">{told("step", one.event)}</span>
            {one.at && <time dateTime={one.at} title={one.at}>{moment(one.at)}</time>}
            {after !== null && <span class="note">{t("after", { time: seconds(after) })}</span>}
            <span class="step-note">{notes.filter(Boolean).join(" · ")}</span>
          </li>
        );
      })}
      {going && <li class="now"><span class="step-name">{t(going)}</span></li>}
    </ol>
  );
}

export function Json({ value }: { value: unknown }) {
  // A point or a box on a line of its own, not a number a line.
  const text = JSON.stringify(value, null, 2).replace(/\[[-\d.,\s]+\]/g, (numbers) => numbers.replace(/\s+/g, " "));
  return <pre class="json" tabIndex={0}>{text}</pre>;
}

export function TaskPage({ id }: { id: string }) {
  const mayAct = useMayAct();
  const [isCancelling, setCancelling] = useState(false);
  const path = { task_id: id };
  const found = useQuery((signal) => body(client.GET("/v1/tasks/{task_id}", { params: { path }, signal })), [id], {
    everyMs: 5_000,
    on: (event) => event.tasks.some((one) => one === id || one.startsWith(`${id}.`)),
  });
  return (
    <>
    {!found.data && <Title>{id}</Title>}
    <Asked query={found} rows={8}>
      {(task) => {
        const isEnded = ENDED.includes(task.state);
        const ran = between(task.started_at, task.ended_at);
        return (
          <>
            <Title
              note={
                <span class="title-note">
                  <StateBadge state={task.state} />
                  {task.state === "delayed" && task.due_at && <Countdown until={task.due_at} skewMs={0} />}
                  {mayAct && !isEnded && (
                    <span class="actions">
                      <button type="button" class="danger" onClick={() => setCancelling(true)}>{t("cancel")}</button>
                    </span>
                  )}
                </span>
              }
            >
              {task.task_id}
            </Title>
            <div class="stats">
              <div class="stat"><span class="stat-name">{t("device")}</span><span class="stat-value small"><MacLink mac={task.mac} /></span></div>
              <Stat name={t("type")} value={task.task_type} note={t("in_lane", { lane: task.lane })} />
              <Stat name={t("place")} value={task.place === null ? "–" : String(task.place + 1)} note={t("place_note")} />
              <Stat name={t("attempt")} value={String(task.attempt)} note={t("attempt_note", { failures: task.failures, defers: task.defers })} />
              <Stat name={t("waited")} value={seconds(between(task.created_at, task.started_at))} />
              <Stat name={t("ran")} value={seconds(ran)} />
            </div>
            {!isEnded && <Explained id={id} state={task.state} />}
            <div class="columns">
              <Panel title={t("timeline")}>
                <Timeline task={task} />
                {task.error && (
                  <details open={task.error.length < 2_000}>
                    <summary>{t("error")}</summary>
                    <pre class="json bad" tabIndex={0}>{task.error}</pre>
                  </details>
                )}
                <p class="foot note">{task.state === "dead" ? t("kept_dead") : t("expires_at", { time: moment(task.expires_at) })}</p>
              </Panel>
              <div>
                {task.result && <Findings task={task} />}
                <Panel title={t("data")}><Json value={task.data} /></Panel>
                {task.result && <Panel title={t("result")}><Json value={task.result} /></Panel>}
              </div>
            </div>
            {isCancelling && (
              <Confirm
                title={t("cancel")}
                act={t("cancel")}
                isDanger
                onClose={() => setCancelling(false)}
                onAct={async () => {
                  const params = { path, query: { force: task.state === "running" } };
                  await body(client.DELETE("/v1/tasks/{task_id}", { params }));
                  found.reload();
                  return t("cancelled_one");
                }}
              >
                <p>{t(task.state === "running" ? "cancel_running_ask" : "cancel_ask")}</p>
                <p><Badge>{task.task_id}</Badge></p>
              </Confirm>
            )}
          </>
        );
      }}
    </Asked>
    </>
  );
}
