// A device's queue in the order in which it is served.
import { findTasks } from "../api";
import { count, moment } from "../format";
import { Empty, Scroll, TaskLink } from "../parts/basics";
import { Asked } from "../parts/trouble";
import { useQuery } from "../query";
import { href } from "../router";
import { t } from "../words";

const SHOWN = 20;

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
