// What pages are put together from.
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { seconds } from "../format";
import { href } from "../router";
import { language, t } from "../words";

export type Tone = "good" | "warn" | "bad" | "info" | "quiet";

export function Badge({ tone = "quiet", children, title }: { tone?: Tone; children: ComponentChildren; title?: string }) {
  return (
    <span class={`badge ${tone}`} {...(title ? { title } : {})}>
      {children}
    </span>
  );
}

export function Panel(props: { title?: string; note?: string; actions?: ComponentChildren; children: ComponentChildren; id?: string }) {
  return (
    <section class="panel" {...(props.id ? { id: props.id } : {})}>
      {props.title && (
        <header>
          <h2>{props.title}</h2>
          {props.note && <p class="note">{props.note}</p>}
          {props.actions && <div class="actions">{props.actions}</div>}
        </header>
      )}
      {props.children}
    </section>
  );
}

/** Words in which `code` stands between backticks. */
export function Marked({ text }: { text: string }) {
  return <>{text.split("`").map((part, at) => (at % 2 ? <code key={at}>{part}</code> : part))}</>;
}

/** A figure with its name; `note` puts it into proportion. */
export function Stat(props: { name: string; value: string; note?: string | undefined; tone?: Tone | undefined; to?: string; testid?: string }) {
  const inner = (
    <>
      <span class="stat-name">{props.name}</span>
      <span class="stat-value" data-testid={props.testid}>{props.value}</span>
      <span class="stat-note">{props.note ?? " "}</span>
    </>
  );
  const tone = props.tone ? ` ${props.tone}` : "";
  return props.to ? <a class={`stat${tone}`} href={href(props.to)}>{inner}</a> : <div class={`stat${tone}`}>{inner}</div>;
}

/** How full something is; `label` says it in words. */
export function Meter({ part, label, tone = "info" }: { part: number; label: string; tone?: Tone }) {
  const filled = Math.max(0, Math.min(1, Number.isFinite(part) ? part : 0));
  return (
    <span class="meter-row">
      <span class="meter" role="img" aria-label={label}>
        <span class={`meter-fill ${tone}`} style={{ width: `${filled * 100}%` }} />
      </span>
      <span class="meter-label" aria-hidden="true">{label}</span>
    </span>
  );
}

/** A wide table that scrolls in its own frame, also by the keyboard. */
export function Scroll({ label, children }: { label: string; children: ComponentChildren }) {
  return (
    <div class="scroll" role="region" aria-label={label} tabIndex={0}>
      {children}
    </div>
  );
}

export function MacLink({ mac }: { mac: string }) {
  return <a class="mono" href={href(`/devices/${mac}`)}>{mac}</a>;
}

export function TaskLink({ id }: { id: string }) {
  return <a class="mono id" href={href(`/tasks/${encodeURIComponent(id)}`)} title={id}>{id}</a>;
}

/** A moment counted down to, by the service's clock: `skewMs` is how far ahead ours is. */
export function Countdown({ until, skewMs }: { until: string; skewMs: number }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 500);
    return () => clearInterval(timer);
  }, []);
  const left = (new Date(until).getTime() - (now - skewMs)) / 1000;
  return <span class="countdown">{left > 0 ? t("in", { time: seconds(left) }) : t("due")}</span>;
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children && <p>{children}</p>}
    </div>
  );
}

/** What stands where an answer will: the page does not jump when it comes. */
export function Skeleton({ rows = 5 }: { rows?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={t("loading")}>
      {Array.from({ length: rows }, (_, row) => <span key={row} />)}
    </div>
  );
}

/** The title of the window and of the page. */
export function Title({ children, note }: { children: string; note?: ComponentChildren }) {
  const spoken = language.use();
  useEffect(() => {
    document.title = `${children} · fairlane`;
  }, [children, spoken]);
  return (
    <div class="title">
      <h1>{children}</h1>
      {note}
    </div>
  );
}
