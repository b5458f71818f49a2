// The public API, typed by its own description. The rule: whatever is not an answer is a `Problem`
// with a code, also a network that is gone, so that every error can name its next step.
import createClient, { type Client } from "openapi-fetch";
import type { components, paths } from "./api.gen";
import { root } from "./router";

type Schemas = components["schemas"];
export type Device = Schemas["Device"];
export type DeviceLane = Schemas["DeviceLane"];
export type DeviceLimits = Schemas["DeviceLimits"];
export type NewLimits = Schemas["NewLimits"];
export type Lane = Schemas["Lane"];
export type Worker = Schemas["Worker"];
export type Task = Schemas["Task"];
export type TaskWithTimeline = Schemas["TaskWithTimeline"];
export type FoundTask = Schemas["FoundTask"];
export type FoundTasks = Schemas["FoundTasks"];
export type Session = Schemas["Session"];
export type Readiness = Schemas["Readiness"];
export type Watermark = Schemas["Watermark"];

/** Something that went wrong, as the service tells it (RFC 9457), or as we found it. */
export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    readonly detail: string,
    readonly members: Readonly<Record<string, unknown>> = {},
  ) {
    super(detail);
  }
}

export const client: Client<paths> = createClient<paths>({
  baseUrl: root || "/",
  credentials: "same-origin",
  headers: { Accept: "application/json" },
});

interface Got<T> {
  data?: T | undefined;
  error?: unknown;
  response: Response;
}

/** Return what a call answers, and its response. Throws a Problem. */
export async function answer<T>(call: Promise<Got<T>>): Promise<{ data: T; response: Response }> {
  let got: Got<T>;
  try {
    got = await call;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Problem(0, "OFFLINE", String(error instanceof Error ? error.message : error));
  }
  if (got.response.ok) return { data: got.data as T, response: got.response };
  throw problemOf(got.response.status, got.error);
}

/** Return the body of an answer. Throws a Problem. */
export async function body<T>(call: Promise<Got<T>>): Promise<T> {
  return (await answer(call)).data;
}

function problemOf(status: number, told: unknown): Problem {
  if (told && typeof told === "object") {
    const members = told as Record<string, unknown>;
    if (typeof members["code"] === "string") {
      return new Problem(status, members["code"], String(members["detail"] ?? ""), members);
    }
  }
  return new Problem(status, `HTTP_${status}`, typeof told === "string" ? told.slice(0, 200) : "");
}

type Query = Readonly<Record<string, string | number>>;

/** Ask a route that the description does not have yet; a 404 of it is a plain word on the page. */
export async function get<T>(path: string, query: Query, signal?: AbortSignal): Promise<T> {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const rest = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  const init = { credentials: "same-origin", headers: { Accept: "application/json" }, ...(signal ? { signal } : {}) } as const;
  return body(
    fetch(root + path + (rest && `?${rest}`), init).then(async (response) => {
      const told: unknown = await response.json().catch(() => "");
      return response.ok ? { data: told as T, response } : { error: told, response };
    }),
  );
}

/** Search tasks. Throws a Problem. */
export function findTasks(query: Query, signal?: AbortSignal): Promise<FoundTasks> {
  return get<FoundTasks>("/v1/tasks", query, signal);
}
