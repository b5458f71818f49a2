// What was found in an image, drawn over it. The rule: what is found is shown masked, as the service
// tells it; the image is there only as long as the service keeps it.
import { useState } from "preact/hooks";
import type { Task } from "../api";
import { Empty, Panel } from "../parts/basics";
import { root } from "../router";
import { t } from "../words";

interface Finding {
  readonly type: string;
  readonly value: string;
  readonly rule: string;
  readonly box?: readonly (readonly [number, number])[];
}

function findingsOf(task: Task): readonly Finding[] {
  const found = task.result?.["findings"];
  return Array.isArray(found) ? (found as readonly Finding[]) : [];
}

function isBox(box: unknown): box is readonly (readonly [number, number])[] {
  return Array.isArray(box) && box.every((point) => Array.isArray(point) && point.every(Number.isFinite));
}

export function Findings({ task }: { task: Task }) {
  const [size, setSize] = useState<{ width: number; height: number }>();
  const [isGone, setGone] = useState(false);
  const [chosen, setChosen] = useState<number>();
  const found = findingsOf(task);
  const file = task.data["file"];
  const hasImage = typeof file === "string" && /^[0-9a-f]{64}$/.test(file) && found.every((one) => !one.box || isBox(one.box));
  if (found.length === 0 && !hasImage) return null;
  return (
    <Panel title={t("findings")} note={t("findings_note")}>
      {hasImage && !isGone && (
        <div class="drawn">
          <img
            src={`${root}/v1/files/${file}`}
            alt={t("image_alt", { count: found.length })}
            onLoad={(event) => setSize({ width: event.currentTarget.naturalWidth, height: event.currentTarget.naturalHeight })}
            onError={() => setGone(true)}
          />
          {size && (
            <svg viewBox={`0 0 ${size.width} ${size.height}`} aria-hidden="true">
              {found.map((one, at) => one.box && (
                <polygon key={at} class={at === chosen ? "chosen" : ""} points={one.box.map((point) => point.join(",")).join(" ")} />
              ))}
            </svg>
          )}
        </div>
      )}
      {isGone && <p class="note">{t("image_gone")}</p>}
      {found.length === 0 ? (
        <Empty title={t("nothing_found")} />
      ) : (
        <ol class="findings">
          {found.map((one, at) => (
            <li key={at} onMouseEnter={() => setChosen(at)} onMouseLeave={() => setChosen(undefined)}>
              <b>{one.type}</b> <code>{one.value}</code> <span class="note">{one.rule}</span>
            </li>
          ))}
        </ol>
      )}
    </Panel>
  );
}
