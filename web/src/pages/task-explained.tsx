// Why a task waits, and when it will probably start, as the service tells it.
import { body, client } from "../api";
import { seconds } from "../format";
import { skewOf } from "../lanes";
import { Badge, Countdown, Marked, Panel } from "../parts/basics";
import { isMissingRoute, Trouble } from "../parts/trouble";
import { useQuery } from "../query";
import { t } from "../words";

export function Explained({ id, state }: { id: string; state: string }) {
  const path = { task_id: id };
  const found = useQuery((signal) => body(client.GET("/v1/tasks/{task_id}/explain", { params: { path }, signal })), [id, state], {
    everyMs: 3_000,
  });
  if (found.problem && !isMissingRoute(found.problem)) return <Trouble problem={found.problem} again={found.reload} />;
  const told = found.data;
  if (!told || state === "running") return null;
  return (
    <Panel title={t("why")}>
      <p class="why" data-testid="why">
        <Badge tone="info">{told.reason.replaceAll("_", " ")}</Badge>
        <span><Marked text={told.detail} /></span>
        {told.until && <Countdown until={told.until} skewMs={skewOf(told.now)} />}
        {told.start_p50_seconds !== null && (
          <span class="note">{t("likely_start", { p50: seconds(told.start_p50_seconds), p90: seconds(told.start_p90_seconds) })}</span>
        )}
      </p>
    </Panel>
  );
}
