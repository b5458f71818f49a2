// How many died of what. The rule: the service counts; this page only adds its pages up.
import { body, client } from "../api";
import type { components } from "../api.gen";
import { count, moment } from "../format";
import { Badge, Panel } from "../parts/basics";
import { Trouble, isMissingRoute } from "../parts/trouble";
import { useQuery } from "../query";
import { t } from "../words";
import type { Filter } from "./bulk";

type Cause = components["schemas"]["Cause"];
type Counted = components["schemas"]["Causes"];

async function causes(filter: Filter, signal: AbortSignal): Promise<readonly Cause[]> {
  const sums = new Map<string, Cause>();
  let cursor: string | null = "";
  while (cursor !== null) {
    const page: Counted = await body(
      client.GET("/v1/dead-letters/causes", { params: { query: { ...filter, cursor } }, signal }),
    );
    for (const one of page.causes) {
      const before = sums.get(one.cause);
      sums.set(one.cause, before ? { ...before, count: before.count + one.count } : one);
    }
    cursor = page.next_cursor;
  }
  return [...sums.values()].toSorted((a, b) => b.count - a.count);
}

export function Causes({ filter, onChoose }: { filter: Filter; onChoose: (cause: string) => void }) {
  const { cause: chosen = "", ...rest } = filter;
  const found = useQuery((signal) => causes(rest, signal), [JSON.stringify(rest)], {
    everyMs: 15_000,
    on: (event) => event.event === "dead" || event.event === "redriven" || event.event === "dropped",
  });
  if (found.problem && !isMissingRoute(found.problem)) return <Trouble problem={found.problem} again={found.reload} />;
  if (!found.data?.length) return null;
  const most = found.data[0]?.count ?? 1;
  return (
    <Panel title={t("by_cause")}>
      <ul class="causes" data-testid="causes">
        {found.data.map((one) => (
          <li key={one.cause}>
            <button type="button" aria-pressed={one.cause === chosen} onClick={() => onChoose(one.cause === chosen ? "" : one.cause)}>
              <span class="cause-bar" style={{ width: `${(one.count / most) * 100}%` }} />
              <span class="cause-name">{one.cause || t("no_cause")}</span>
              <Badge>{one.task_type}</Badge>
              <span class="note">{moment(one.newest_at)}</span>
              <b>{count(one.count)}</b>
            </button>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
