// Every device with something pending. The rule: the service searches and filters; what is sorted
// here is what was loaded, and the page says so.
import { useEffect, useState } from "preact/hooks";
import { body, client, type Device } from "../api";
import { count, percent, seconds } from "../format";
import { deviceReason, mainLane, shares, skewOf } from "../lanes";
import { live } from "../live";
import { Badge, Countdown, Empty, MacLink, Meter, Panel, Scroll, Title } from "../parts/basics";
import { SearchBox } from "../parts/search-box";
import { Sortable, type Sorting, sorted } from "../parts/sortable";
import { Asked } from "../parts/trouble";
import { useQuery } from "../query";
import { go, usePlace } from "../router";
import { type Key, t } from "../words";

const STATES = ["going", "paused", "backoff", "rate", "max_running", "turn"] as const;
const PAGE = 50;
type State = (typeof STATES)[number];

interface Page {
  readonly devices: readonly Device[];
  readonly next_cursor: string | null;
}

const VALUES: Readonly<Record<string, (device: Device) => number | string>> = {
  mac: (device) => device.mac,
  pending: (device) => device.pending,
  waited: (device) => device.waited_seconds,
  score: (device) => device.score,
  rank: (device) => mainLane(device)?.rank ?? Number.MAX_SAFE_INTEGER,
  leased: (device) => device.leased,
};

/** Ask page after page until `most` devices are there, or no more. */
async function load(q: string, state: string, most: number, signal: AbortSignal): Promise<Page> {
  let cursor = "";
  const devices: Device[] = [];
  // A page may be short: the service looks at so many devices a call.
  for (let calls = 0; calls < 40; calls++) {
    const limit = Math.min(200, most - devices.length);
    const query = { limit, cursor, q, ...(state ? { state: state as State } : {}) };
    const page = await body(client.GET("/v1/devices", { params: { query }, signal }));
    devices.push(...page.devices);
    if (page.next_cursor === null || devices.length >= most) return { devices, next_cursor: page.next_cursor };
    cursor = page.next_cursor;
  }
  return { devices, next_cursor: cursor };
}

function Row({ device }: { device: Device }) {
  const { lanes } = live.value;
  const reason = deviceReason(device);
  const main = mainLane(device);
  const share = shares(device, lanes);
  const skew = skewOf(device.now);
  return (
    <tr>
      <th scope="row"><MacLink mac={device.mac} /></th>
      <td>
        <Badge tone={reason.tone} title={reason.detail}>{reason.word}</Badge>
        {main?.until && main.held_by && <Countdown until={main.until} skewMs={skew} />}
      </td>
      <td class="number">{count(device.pending)}</td>
      <td class="wide">{device.lanes.filter((lane) => lane.pending || lane.leased).map((lane) => `${lane.lane} ${count(lane.pending)}`).join(" · ") || "–"}</td>
      <td class="number">{device.pending ? seconds(device.waited_seconds) : "–"}</td>
      <td class="number">{device.score.toFixed(1)}</td>
      <td class="number">{main && main.rank !== null ? count(main.rank + 1) : "–"}</td>
      <td class="number wide" title={t("tag_note")}>{main ? count(main.tag) : "–"}</td>
      <td class="number">{count(device.leased)}</td>
      <td>
        {share ? <Meter part={share.has} label={`${percent(share.has)} / ${percent(share.due)}`} tone={share.has > share.due * 1.5 + 0.05 ? "warn" : "info"} /> : "–"}
      </td>
      <td class="wide">{device.site}</td>
    </tr>
  );
}

export function Devices() {
  const { query } = usePlace();
  const q = query.get("q") ?? "";
  const state = query.get("state") ?? "";
  const [most, setMost] = useState(PAGE);
  const [sorting, setSorting] = useState<Sorting>({ by: "", isDown: true });
  useEffect(() => setMost(PAGE), [q, state]);
  live.use();
  const found = useQuery((signal) => load(q, state, most, signal), [q, state, most], {
    everyMs: 4_000,
    on: (event) => event.mac !== "",
  });
  const change = (more: Record<string, string>): void => go("/devices", { q, state, ...more }, true);
  return (
    <>
      <Title>{t("devices")}</Title>
      <Panel>
        <div class="toolbar">
          <SearchBox label={t("search_devices")} value={q} onSearch={(text) => change({ q: text })} />
          <label>
            <span>{t("state")}</span>
            <select value={state} onChange={(event) => change({ state: event.currentTarget.value })}>
              <option value="">{t("any")}</option>
              {STATES.map((name) => <option key={name} value={name}>{t(`held.${name}` as Key)}</option>)}
            </select>
          </label>
        </div>
        <Asked query={found} rows={10}>
          {(data) =>
            data.devices.length === 0 ? (
              <Empty title={q || state ? t("no_match") : t("nobody_waits")}>{q || state ? t("no_match_devices") : t("nobody_waits_how")}</Empty>
            ) : (
              <>
                <Scroll label={t("devices")}>
                  <table data-testid="devices">
                    <thead>
                      <tr>
                        <Sortable by="mac" name={t("device")} now={sorting} onSort={setSorting} />
                        <th scope="col">{t("state")}</th>
                        <Sortable by="pending" name={t("pending")} now={sorting} onSort={setSorting} isNumber />
                        <th scope="col" class="wide">{t("per_lane")}</th>
                        <Sortable by="waited" name={t("waited")} now={sorting} onSort={setSorting} isNumber />
                        <Sortable by="score" name="S(d, t)" now={sorting} onSort={setSorting} isNumber />
                        <Sortable by="rank" name={t("rank")} now={sorting} onSort={setSorting} isNumber />
                        <th scope="col" class="number wide">{t("tag")}</th>
                        <Sortable by="leased" name={t("in_work")} now={sorting} onSort={setSorting} isNumber />
                        <th scope="col" title={t("share_note")}>{t("share")}</th>
                        <th scope="col" class="wide">{t("site")}</th>
                      </tr>
                    </thead>
                    <tbody>
                      {sorted(data.devices, sorting, VALUES).map((device) => <Row key={device.mac} device={device} />)}
                    </tbody>
                  </table>
                </Scroll>
                <p class="foot">
                  <span>{t(data.next_cursor ? "shown_of_more" : "shown_all", { count: count(data.devices.length) })}</span>
                  {sorting.by && data.next_cursor && <span class="note">{t("sorted_loaded")}</span>}
                  {data.next_cursor && <button type="button" onClick={() => setMost(most + 150)}>{t("more")}</button>}
                </p>
              </>
            )
          }
        </Asked>
      </Panel>
    </>
  );
}
