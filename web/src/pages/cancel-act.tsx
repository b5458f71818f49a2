// Cancel tasks: those that were marked, or all that match.
import { body, client } from "../api";
import { count } from "../format";
import { t } from "../words";
import { ActOnMany, type Choice } from "./bulk";

/** The states that can be cancelled; without one the service means what waits. */
export const OPEN = ["pending", "delayed", "leased", "running"] as const;
type Open = (typeof OPEN)[number];

interface Props {
  readonly choice: Choice;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function CancelTasks({ choice, ...rest }: Props) {
  const runs = "filter" in choice && choice.filter["state"] === "running";
  return (
    <ActOnMany
      {...rest}
      choice={choice}
      title={t("cancel_many")}
      send={(part) =>
        body(client.POST("/v1/tasks:cancel", { body: "filter" in part ? { ...part, filter: part.filter as Readonly<{ state?: Open }> } : part }))
      }
      saysAll
      isDanger
      act={(matched) => (matched === undefined ? t("cancel_many") : t("cancel_all_act", { count: count(matched) }))}
      everything={t("all_that_waits")}
      question={t(runs ? "cancel_running_many_ask" : "cancel_many_ask")}
      said={(sum) => t("cancelled_many", { count: count(sum.done), matched: count(sum.matched) })}
    />
  );
}
