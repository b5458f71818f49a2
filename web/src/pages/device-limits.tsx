// What a device may do, shown and changed. The rule: what is saved is what was changed here, and only
// if nobody else has changed it meanwhile.
import { useState } from "preact/hooks";
import { body, client, type DeviceLimits, type NewLimits } from "../api";
import { doing } from "../parts/dialog";
import { type Key, t } from "../words";

const NUMBERS = [
  { name: "weight", least: 0.001, step: "any" },
  { name: "min_running", least: 0, step: "1" },
  { name: "max_running", least: 0, step: "1" },
  { name: "rate_per_s", least: 0, step: "any" },
] as const;

interface Props {
  readonly mac: string;
  readonly limits: DeviceLimits;
  readonly version: string;
  readonly mayAct: boolean;
  readonly onSaved: () => void;
}

export function Limits({ mac, limits, version, mayAct, onSaved }: Props) {
  const [changed, setChanged] = useState<NewLimits>({});
  const [seenVersion, setSeenVersion] = useState("");
  const isChanged = Object.keys(changed).length > 0;

  function change(more: NewLimits): void {
    if (!isChanged) setSeenVersion(version);
    setChanged({ ...changed, ...more });
  }

  async function save(): Promise<string> {
    const params = { path: { mac }, header: { "if-match": seenVersion } };
    await body(client.PATCH("/v1/devices/{mac}", { params, body: changed }));
    setChanged({});
    onSaved();
    return t("saved");
  }

  if (!mayAct) {
    return (
      <dl class="facts">
        {NUMBERS.map(({ name }) => <div key={name}><dt>{t(`limit.${name}`)}</dt><dd>{limits[name] || (name === "weight" ? 1 : t("no_limit"))}</dd></div>)}
        <div><dt>{t("site")}</dt><dd>{limits.site || "–"}</dd></div>
      </dl>
    );
  }
  return (
    <form
      class="limits"
      onSubmit={(event) => {
        event.preventDefault();
        void doing(save);
      }}
    >
      {NUMBERS.map(({ name, least, step }) => (
        <label key={name}>
          <span>{t(`limit.${name}` as Key)}</span>
          <input
            type="number"
            min={least}
            step={step}
            required
            value={changed[name] ?? limits[name]}
            onInput={(event) => change({ [name]: event.currentTarget.valueAsNumber })}
          />
        </label>
      ))}
      <label>
        <span>{t("site")}</span>
        <input type="text" maxLength={64} placeholder={t("by_prefix")} value={changed.site ?? limits.site} onInput={(event) => change({ site: event.currentTarget.value })} />
      </label>
      <p class="foot">
        <button type="submit" class="primary" disabled={!isChanged}>{t("save")}</button>
        {isChanged && <button type="button" onClick={() => setChanged({})}>{t("undo")}</button>}
      </p>
    </form>
  );
}
