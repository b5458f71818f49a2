// What went wrong, and what to do now. The rule: an error without a next step is not shown.
import type { Problem } from "../api";
import type { Query } from "../query";
import { href } from "../router";
import { type Key, t } from "../words";
import { en } from "../words/en";
import { Marked, Skeleton } from "./basics";
import type { ComponentChildren } from "preact";

/** What to do about a problem: by its code, else by its status. */
export function nextStep(problem: Problem): string {
  const seconds = problem.members["retry_after_seconds"];
  for (const name of [problem.code, `HTTP_${problem.status}`]) {
    const key = `next.${name}`;
    if (key in en) return t(key as Key, { seconds: typeof seconds === "number" ? seconds : 2 });
  }
  return t(problem.status >= 500 ? "next.HTTP_503" : "next.other");
}

/** Whether the service is older than this page and has no such route. */
export function isMissingRoute(problem: Problem | undefined): boolean {
  return problem?.code === "PATH_NOT_FOUND" || problem?.code === "METHOD_NOT_ALLOWED";
}

export function Trouble({ problem, again }: { problem: Problem; again?: () => void }) {
  if (isMissingRoute(problem)) {
    return (
      <div class="trouble quiet" role="status">
        <p>{t("missing_route")}</p>
      </div>
    );
  }
  return (
    <div class="trouble" role="alert">
      <p class="trouble-title">{problem.status === 0 ? t("offline") : problem.detail || problem.code}</p>
      <p><Marked text={nextStep(problem)} /></p>
      <p class="trouble-foot">
        <code>{problem.code}</code>
        {again && <button type="button" onClick={again}>{t("try_again")}</button>}
        {problem.status === 503 && <a href={href("/settings", { show: "health" })}>{t("see_health")}</a>}
      </p>
    </div>
  );
}

/** Show an answer: a skeleton before it is there, what went wrong above what is still known. */
export function Asked<T>(props: { query: Query<T>; rows?: number; children: (data: T) => ComponentChildren }) {
  const { data, problem, isLoading, reload } = props.query;
  return (
    <>
      {problem && <Trouble problem={problem} again={reload} />}
      {data !== undefined ? props.children(data) : isLoading && !problem ? <Skeleton rows={props.rows ?? 5} /> : null}
    </>
  );
}
