// A device's queue in the order in which it is served, and all of it cancelled.
import { body, client, findTasks, type FoundTask, Problem } from "../api";
import { count, moment } from "../format";
import { Empty, Scroll, TaskLink } from "../parts/basics";
import { Asked, isMissingRoute } from "../parts/trouble";
import { useQuery } from "../query";
import { href } from "../router";
import { t } from "../words";

const SHOWN = 20;
/** Requests that are under way at once: the service serves others, too. */
const AT_ONCE = 6;

export function Queue({ mac }: { mac: string }) {
  const found = useQuery((signal) => findTasks({ mac, state: "pending", limit: SHOWN }, signal), [mac], {
    everyMs: 5_000,
    on: (event) => event.mac === mac,
  });
  return (
    <Asked query={found}>
      {({ tasks, finished }) =>
        tasks.length === 0 ? (
          <Empty title={t("queue_empty")} />
        ) : (
          <>
            <Scroll label={t("queue")}>
              <table>
                <thead>
                  <tr>
                    <th scope="col" class="number">#</th>
                    <th scope="col">{t("task")}</th>
                    <th scope="col">{t("type")}</th>
                    <th scope="col">{t("created")}</th>
                    <th scope="col">{t("expires")}</th>
                  </tr>
                </thead>
                <tbody>
                  {tasks.map((task, place) => (
                    <tr key={task.task_id}>
                      <td class="number">{place + 1}</td>
                      <th scope="row"><TaskLink id={task.task_id} /></th>
                      <td>{task.task_type}</td>
                      <td>{moment(task.created_at)}</td>
                      <td>{moment(task.expires_at)}</td>
                    </tr>
                  ))}
                </tbody>
              </table>
            </Scroll>
            {!finished && <p class="foot"><a href={href("/tasks", { mac, state: "pending" })}>{t("all_of_queue", { count: count(SHOWN) })}</a></p>}
          </>
        )
      }
    </Asked>
  );
}

/** Cancel what waits of a device; returns how many were. Throws a Problem. */
export async function cancelAll(mac: string, pending: number, progress: (part: number) => void): Promise<number> {
  const seen = new Set<string>();
  let cancelled = 0;
  for (;;) {
    const waiting = await waitingOf(mac);
    const fresh = waiting.filter((task) => !seen.has(task.task_id));
    if (fresh.length === 0) return cancelled;
    for (let at = 0; at < fresh.length; at += AT_ONCE) {
      const part = fresh.slice(at, at + AT_ONCE);
      for (const task of part) seen.add(task.task_id);
      const done = await Promise.all(part.map((task) => cancel(task.task_id)));
      cancelled += done.filter(Boolean).length;
      progress(Math.min(1, cancelled / Math.max(1, pending)));
    }
  }
}

async function waitingOf(mac: string): Promise<readonly FoundTask[]> {
  try {
    const states = ["pending", "delayed"];
    const pages = await Promise.all(states.map((state) => findTasks({ mac, state, limit: 200 })));
    return pages.flatMap((page) => page.tasks);
  } catch (error) {
    if (error instanceof Problem && isMissingRoute(error)) throw new Problem(404, error.code, t("missing_route"));
    throw error;
  }
}

/** Whether a task is cancelled now; one that has begun or ended meanwhile is left alone. */
async function cancel(id: string): Promise<boolean> {
  try {
    await body(client.DELETE("/v1/tasks/{task_id}", { params: { path: { task_id: id } } }));
    return true;
  } catch (error) {
    if (error instanceof Problem && (error.status === 409 || error.status === 404)) return false;
    throw error;
  }
}
