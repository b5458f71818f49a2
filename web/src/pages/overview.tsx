// Who is waiting, why, and what to do: in ten seconds.
import { body, client, type Device, type Readiness } from "../api";
import { brief, count, moment, rate, seconds } from "../format";
import { type HistorySeries, useHistory } from "../history";
import { deviceReason, laneReason } from "../lanes";
import { type Live, live, rateOver, refused, samples } from "../live";
import { Badge, Empty, MacLink, Marked, Meter, Panel, Scroll, Skeleton, Stat, TaskLink, Title } from "../parts/basics";
import { Chart } from "../parts/chart";
import { Asked } from "../parts/trouble";
import { useQuery } from "../query";
import { href } from "../router";
import { t, told } from "../words";
import { attention } from "./attention";

function Figures({ now, history, oldest }: { now: Live; history: HistorySeries | undefined; oldest: number | null }) {
  samples.use();
  const { totals, workers } = now;
  if (!totals) return <Skeleton rows={2} />;
  const running = (workers ?? []).reduce((sum, worker) => sum + worker.active, 0);
  const slots = (now.lanes ?? []).reduce((sum, lane) => Math.max(sum, lane.slots), 0);
  const throughput = rateOver("ended", 60);
  const refusing = rateOver("refused", 60) ?? 0;
  const hour = history?.hour;
  return (
    <div class="stats eight">
      <Stat name={t("pending")} value={count(totals.pending)} testid="pending" note={t("pending_note", { delayed: count(totals.delayed) })} to="/devices" />
      <Stat name={t("running")} value={count(running)} note={t("running_note", { leased: count(totals.leased), slots: count(slots) })} to="/workers" />
      <Stat name={t("throughput")} value={throughput === null ? "…" : rate(throughput)} note={t("throughput_note", { accepted: rate(rateOver("accepted", 60) ?? 0) })} />
      <Stat name={t("wait_p50")} value={seconds(hour?.waitP50)} note={t("last_hour")} />
      <Stat name={t("wait_p99")} value={seconds(hour?.waitP99)} note={t("last_hour")} />
      <Stat name={t("oldest_wait")} value={seconds(oldest)} note={t("oldest_note")} to="/devices" />
      <Stat
        name={t("refused")}
        value={count(hour?.refused ?? refused(totals))}
        note={refusing ? t("refusing_note", { rate: rate(refusing) }) : hour ? t("last_hour") : t("since_start")}
        tone={totals.overloaded || refusing ? "warn" : undefined}
      />
      <Stat name={t("jain")} value={hour?.jain === null || hour?.jain === undefined ? "–" : hour.jain.toFixed(3)} note={t("jain_note")} />
    </div>
  );
}

function Lanes({ now }: { now: Live }) {
  if (!now.lanes) return <Skeleton rows={3} />;
  return (
    <Scroll label={t("lanes")}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("lane")}</th>
            <th scope="col">{t("state")}</th>
            <th scope="col" class="number">{t("pending")}</th>
            <th scope="col" class="number wide">{t("can_go")}</th>
            <th scope="col">{t("in_work")}</th>
            <th scope="col" class="number wide">{t("credits")}</th>
            <th scope="col" class="number wide">{t("held.backoff")}</th>
            <th scope="col" class="number wide">{t("held.rate")}</th>
            <th scope="col" class="wide">{t("next")}</th>
          </tr>
        </thead>
        <tbody>
          {now.lanes.map((lane) => {
            const reason = laneReason(lane, now.workers);
            return (
              <tr key={lane.name}>
                <th scope="row">{lane.name}</th>
                <td><Badge tone={reason.tone}>{reason.word}</Badge> <span class="note">{reason.detail}</span></td>
                <td class="number">{count(lane.pending)}</td>
                <td class="number wide">{count(lane.scheduled)}</td>
                <td><Meter part={lane.leased / Math.max(1, lane.slots)} label={`${lane.leased} / ${lane.slots}`} tone={lane.slots ? "info" : "bad"} /></td>
                <td class="number wide">{count(lane.credits)}</td>
                <td class="number wide">{count(lane.backoffs)}</td>
                <td class="number wide">{count(lane.throttled)}</td>
                <td class="wide">{lane.next_mac ? <MacLink mac={lane.next_mac} /> : "–"}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  );
}

function Longest({ devices }: { devices: readonly Device[] }) {
  if (devices.length === 0) return <Empty title={t("nobody_waits")}>{t("nobody_waits_how")}</Empty>;
  return (
    <Scroll label={t("longest")}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("device")}</th>
            <th scope="col">{t("state")}</th>
            <th scope="col" class="number">{t("pending")}</th>
            <th scope="col" class="number">{t("waited")}</th>
          </tr>
        </thead>
        <tbody>
          {devices.map((device) => {
            const reason = deviceReason(device);
            return (
              <tr key={device.mac}>
                <th scope="row"><MacLink mac={device.mac} /></th>
                <td><Badge tone={reason.tone} title={reason.detail}>{reason.word}</Badge></td>
                <td class="number">{count(device.pending)}</td>
                <td class="number">{seconds(device.waited_seconds)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
    </Scroll>
  );
}

function Happened({ now }: { now: Live }) {
  if (now.events.length === 0) return <Empty title={t("quiet")}>{t("quiet_how")}</Empty>;
  return (
    <ol class="feed">
      {now.events.slice(0, 14).map((event) => {
        const id = (event.tasks[0] ?? "").replace(/\.\d+$/, "");
        return (
          <li key={event.id}>
            <time>{moment(event.at)}</time>
            <span class="feed-what">{told("event", event.event)}{event.tasks.length > 1 && ` ×${event.tasks.length}`}</span>
            <span class="feed-who">{event.mac ? <MacLink mac={event.mac} /> : <span class="mono">{event.detail.slice(0, 60)}</span>}</span>
            {id && <TaskLink id={id} />}
          </li>
        );
      })}
    </ol>
  );
}

function Charts({ history }: { history: HistorySeries | undefined }) {
  const recent = samples.use();
  if (history && history.times.length > 1) {
    return (
      <div class="charts">
        <Chart title={t("chart.rates")} times={history.times} lines={history.rates} format={brief} />
        <Chart title={t("chart.waits")} times={history.times} lines={history.waits} format={(value) => seconds(value)} />
        <Chart title={t("chart.pending")} times={history.times} lines={history.pending} format={brief} />
        <Chart title={t("chart.jain")} times={history.times} lines={history.jain} format={(value) => value.toFixed(2)} />
      </div>
    );
  }
  if (recent.length < 3) return <Empty title={t("chart.soon")} />;
  const times = recent.map((sample) => sample.at / 1000);
  const each = (name: "accepted" | "ended" | "refused") =>
    recent.map((sample, at) => {
      const before = recent[Math.max(0, at - 5)];
      return before && sample.at > before.at ? ((sample[name] - before[name]) * 1000) / (sample.at - before.at) : null;
    });
  return (
    <div class="charts">
      <Chart
        title={t("chart.rates_live")}
        times={times}
        lines={[
          { name: t("finished"), values: each("ended"), color: 1, isFilled: true },
          { name: t("accepted"), values: each("accepted"), color: 2 },
          { name: t("refused"), values: each("refused"), color: 4 },
        ]}
        format={brief}
      />
      <Chart title={t("chart.pending_live")} times={times} lines={[{ name: t("pending"), values: recent.map((s) => s.pending), color: 3, isFilled: true }]} format={brief} />
    </div>
  );
}

export function Overview() {
  const now = live.use();
  const history = useHistory();
  const longest = useQuery(
    (signal) => body(client.GET("/v1/devices", { params: { query: { limit: 8 } }, signal })),
    [],
    { everyMs: 5_000, on: (event) => event.event === "accepted" || event.event === "claimed" },
  );
  const ready = useQuery<Readiness>((signal) => body(client.GET("/readyz", { signal })), [], { everyMs: 20_000 });
  const devices = longest.data?.devices ?? [];
  const oldest = longest.data ? Math.max(0, ...devices.map((device) => device.waited_seconds)) : null;
  const notes = attention(now, ready);
  return (
    <>
      <Title>{t("overview")}</Title>
      {notes.length > 0 && (
        <section class="attention" aria-label={t("attention")}>
          {notes.map((note) => (
            <p key={note.key} class={note.tone}>
              <Badge tone={note.tone}>{note.what}</Badge>
              <span><Marked text={note.step} /></span>
              {note.to && <a href={href(note.to)}>{t("look")}</a>}
            </p>
          ))}
        </section>
      )}
      <Figures now={now} history={history} oldest={oldest} />
      <Panel title={t("lanes")} note={t("lanes_note")}><Lanes now={now} /></Panel>
      <Panel title={history && history.times.length > 1 ? t("last_hour") : t("since_opened")}><Charts history={history} /></Panel>
      <div class="columns">
        <Panel title={t("longest")} actions={<a href={href("/devices")}>{t("all_devices")}</a>}>
          <Asked query={longest}>{(data) => <Longest devices={data.devices} />}</Asked>
        </Panel>
        <Panel title={t("happened")}><Happened now={now} /></Panel>
      </div>
    </>
  );
}
