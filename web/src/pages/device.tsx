// One device: where it stands, its queue in order, what it may do.
import { useState } from "preact/hooks";
import { answer, body, client, type Device as DeviceAnswer } from "../api";
import { count, moment, seconds } from "../format";
import { deviceReason, shares, skewOf } from "../lanes";
import { live } from "../live";
import { Badge, Countdown, Empty, Panel, Scroll, Stat, TaskLink, Title } from "../parts/basics";
import { doing } from "../parts/dialog";
import { Icon } from "../parts/icons";
import { Asked } from "../parts/trouble";
import { useQuery } from "../query";
import { useMayAct } from "../session";
import { percent } from "../format";
import { t, told } from "../words";
import { CancelTasks } from "./cancel-act";
import { Limits } from "./device-limits";
import { Queue } from "./device-queue";

interface Seen {
  readonly device: DeviceAnswer;
  readonly version: string;
}

function Where({ device }: { device: DeviceAnswer }) {
  const skew = skewOf(device.now);
  return (
    <Scroll label={t("per_lane")}>
      <table>
        <thead>
          <tr>
            <th scope="col">{t("lane")}</th>
            <th scope="col">{t("state")}</th>
            <th scope="col" class="number">{t("pending")}</th>
            <th scope="col" class="number">{t("in_work")}</th>
            <th scope="col" class="number wide">{t("rank")}</th>
            <th scope="col" class="number wide">{t("tag")}</th>
            <th scope="col" class="wide">{t("oldest_since")}</th>
            <th scope="col" class="wide">{t("served_at")}</th>
          </tr>
        </thead>
        <tbody>
          {device.lanes.map((lane) => (
            <tr key={lane.lane}>
              <th scope="row">{lane.lane}</th>
              <td>
                {lane.rank !== null ? <Badge tone="good">{t("held.going")}</Badge> : <Badge tone={lane.pending ? "warn" : "quiet"}>{told("held", lane.held_by)}</Badge>}
                {lane.until && <Countdown until={lane.until} skewMs={skew} />}
              </td>
              <td class="number">{count(lane.pending)}</td>
              <td class="number">{count(lane.leased)}</td>
              <td class="number wide">{lane.rank === null ? "–" : count(lane.rank + 1)}</td>
              <td class="number wide">{count(lane.tag)}</td>
              <td class="wide">{moment(lane.oldest_at)}</td>
              <td class="wide">{moment(lane.served_at)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Scroll>
  );
}

function Happened({ mac }: { mac: string }) {
  const events = live.use().events.filter((event) => event.mac === mac).slice(0, 20);
  if (events.length === 0) return <Empty title={t("quiet")}>{t("quiet_how")}</Empty>;
  return (
    <ol class="feed">
      {events.map((event) => (
        <li key={event.id}>
          <time>{moment(event.at)}</time>
          <span class="feed-what">{told("event", event.event)}</span>
          <span class="feed-who">{event.lane}</span>
          {event.tasks[0] && <TaskLink id={event.tasks[0].replace(/\.\d+$/, "")} />}
        </li>
      ))}
    </ol>
  );
}

export function Device({ mac }: { mac: string }) {
  const mayAct = useMayAct();
  const [isCancelling, setCancelling] = useState(false);
  const { lanes } = live.use();
  const seen = useQuery<Seen>(
    async (signal) => {
      const { data, response } = await answer(client.GET("/v1/devices/{mac}", { params: { path: { mac } }, signal }));
      return { device: data, version: response.headers.get("etag") ?? "" };
    },
    [mac],
  );

  async function pause(device: DeviceAnswer): Promise<string> {
    const paused = !device.limits.paused;
    await body(client.PATCH("/v1/devices/{mac}", { params: { path: { mac } }, body: { paused } }));
    seen.reload();
    return t(paused ? "paused_now" : "resumed_now", { mac });
  }

  return (
    <>
    {!seen.data && <Title>{mac}</Title>}
    <Asked query={seen} rows={8}>
      {({ device, version }) => {
        const reason = deviceReason(device);
        const share = shares(device, lanes);
        return (
          <>
            <Title
              note={
                <span class="title-note">
                  <Badge tone={reason.tone}>{reason.word}</Badge>
                  <span class="note">{reason.detail}</span>
                  {mayAct && (
                    <span class="actions">
                      <button type="button" onClick={() => void doing(() => pause(device))}>
                        <Icon name={device.limits.paused ? "play" : "pause"} />
                        {t(device.limits.paused ? "resume" : "pause")}
                      </button>
                      <button type="button" class="danger" disabled={device.pending === 0} onClick={() => setCancelling(true)}>
                        {t("cancel_all")}
                      </button>
                    </span>
                  )}
                </span>
              }
            >
              {device.mac}
            </Title>
            <div class="stats">
              <Stat name={t("pending")} value={count(device.pending)} testid="pending" />
              <Stat name={t("in_work")} value={count(device.leased)} />
              <Stat name={t("waited")} value={device.pending ? seconds(device.waited_seconds) : "–"} note={t("oldest_task")} />
              <Stat name="S(d, t)" value={device.score.toFixed(1)} note={t("score_note")} />
              <Stat name={t("share")} value={share ? percent(share.has) : "–"} note={share ? t("fair_share", { share: percent(share.due) }) : undefined} />
              <Stat name={t("site")} value={device.site} />
            </div>
            <Panel title={t("per_lane")}><Where device={device} /></Panel>
            <div class="columns">
              <Panel title={t("queue")} note={t("queue_note")}><Queue mac={mac} /></Panel>
              <div>
                <Panel title={t("limits")} note={t("limits_note")}>
                  <Limits mac={mac} limits={device.limits} version={version} mayAct={mayAct} onSaved={seen.reload} />
                </Panel>
                <Panel title={t("happened")}><Happened mac={mac} /></Panel>
              </div>
            </div>
            {isCancelling && (
              <CancelTasks choice={{ filter: { mac } }} onClose={() => setCancelling(false)} onDone={() => seen.reload()} />
            )}
          </>
        );
      }}
    </Asked>
    </>
  );
}
