// Bring dead letters back, or drop them.
import { body, client } from "../api";
import { count } from "../format";
import { t } from "../words";
import { ActOnMany, type Choice } from "./bulk";

export type Action = "redrive" | "drop";

const PATHS = { redrive: "/v1/dead-letters:redrive", drop: "/v1/dead-letters:drop" } as const;

interface Props {
  readonly action: Action;
  readonly choice: Choice;
  readonly onClose: () => void;
  readonly onDone: () => void;
}

export function ActOnDead({ action, ...rest }: Props) {
  return (
    <ActOnMany
      {...rest}
      title={t(action === "redrive" ? "redrive_title" : "drop_title")}
      send={(part) => body(client.POST(PATHS[action], { body: part }))}
      saysAll={action === "drop"}
      isDanger={action === "drop"}
      act={(matched) => (matched === undefined ? t(action) : t(action === "redrive" ? "redrive_act" : "drop_act", { count: count(matched) }))}
      everything={t("all_of_them")}
      question={t(action === "redrive" ? "redrive_ask" : "drop_ask")}
      said={(sum) => t(action === "redrive" ? "redriven_now" : "dropped_now", { count: count(sum.done) })}
    />
  );
}
