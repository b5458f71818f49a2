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
export type HistoryMinute = Schemas["HistoryMinute"];
export type Setting = Schemas["Setting"];
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

type TaskQuery = NonNullable<paths["/v1/tasks"]["get"]["parameters"]["query"]>;

/** Search tasks; what is empty does not matter. Throws a Problem. */
export function findTasks(asked: Readonly<Record<string, string | number>>, signal?: AbortSignal): Promise<FoundTasks> {
  const given = Object.fromEntries(Object.entries(asked).filter(([, value]) => value !== "")) as TaskQuery;
  return body(client.GET("/v1/tasks", { params: { query: given }, ...(signal ? { signal } : {}) }));
}
