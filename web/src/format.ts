// Numbers and times as people read them. The rule: a unit always stands beside its number.
import { locale } from "./words";

const MINUS_TO_ZERO = (value: number): number => (Number.isFinite(value) ? value : 0);

/** A count, grouped by thousands. */
export function count(value: number): string {
  return new Intl.NumberFormat(locale()).format(MINUS_TO_ZERO(value));
}

/** A count in a narrow place: 12.3k. */
export function brief(value: number): string {
  const form = { notation: "compact", maximumFractionDigits: 1 } as const;
  return new Intl.NumberFormat("en", form).format(MINUS_TO_ZERO(value)).toLowerCase();
}

/** A duration in seconds, two units at most. */
export function seconds(value: number | null | undefined): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value < 0) return "0 s";
  if (value < 1) return `${Math.round(value * 1000)} ms`;
  if (value < 10) return `${value.toFixed(1)} s`;
  if (value < 60) return `${Math.round(value)} s`;
  const whole = Math.round(value);
  if (value < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
  if (value < 86400) return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  return `${Math.floor(whole / 86400)} d ${Math.floor((whole % 86400) / 3600)} h`;
}

/** A rate per second. */
export function rate(value: number): string {
  if (value === 0) return "0 /s";
  return value < 10 ? `${value.toFixed(value < 1 ? 2 : 1)} /s` : `${count(Math.round(value))} /s`;
}

/** A part of one as percent. */
export function percent(part: number): string {
  const value = part * 100;
  return `${value > 0 && value < 10 ? value.toFixed(1) : Math.round(value)} %`;
}

/** A moment: the time of today, or with its day. */
export function moment(text: string | null | undefined): string {
  if (!text) return "–";
  const at = new Date(text);
  if (Number.isNaN(at.getTime())) return text;
  const isToday = at.toDateString() === new Date().toDateString();
  const time = { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false } as const;
  const day = isToday ? {} : ({ month: "2-digit", day: "2-digit" } as const);
  return new Intl.DateTimeFormat(locale(), { ...time, ...day }).format(at);
}

/** Seconds from one moment to another, or null when one is missing. */
export function between(from: string | null | undefined, to: string | null | undefined): number | null {
  if (!from || !to) return null;
  return (new Date(to).getTime() - new Date(from).getTime()) / 1000;
}

/** A long id, cut in the middle; the whole is in the title. */
export function short(id: string, most = 18): string {
  return id.length <= most ? id : `${id.slice(0, Math.ceil(most / 2))}…${id.slice(-Math.floor(most / 2) + 1)}`;
}
