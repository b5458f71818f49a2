// The settings in force and where each came from; whether the system is well.
import { useState } from "preact/hooks";
import { body, client, type Setting } from "../api";
import { Badge, Empty, Marked, Panel, Scroll, Title, type Tone } from "../parts/basics";
import { SearchBox } from "../parts/search-box";
import { Asked, Trouble } from "../parts/trouble";
import { useQuery } from "../query";
import { t } from "../words";

interface Check {
  readonly name: string;
  readonly verdict: string;
  readonly found: string;
  readonly next_step: string;
}

const TONES: Readonly<Record<string, Tone>> = { ok: "good", warn: "warn", fail: "bad" };

function Health() {
  const ready = useQuery((signal) => body(client.GET("/readyz", { signal })), [], { everyMs: 10_000 });
  const told = ready.problem?.members["checks"] ?? ready.data?.checks;
  const checks = Array.isArray(told) ? (told as readonly Check[]) : [];
  return (
    <Panel title={t("health")} note={t("health_note")} id="health">
      {ready.problem && checks.length === 0 && <Trouble problem={ready.problem} again={ready.reload} />}
      {checks.length > 0 && (
        <Scroll label={t("health")}>
          <table>
            <thead><tr><th scope="col">{t("check")}</th><th scope="col">{t("verdict")}</th><th scope="col">{t("found")}</th><th scope="col">{t("next_step")}</th></tr></thead>
            <tbody>
              {checks.map((check) => (
                <tr key={check.name}>
                  <th scope="row">{check.name}</th>
                  <td><Badge tone={TONES[check.verdict] ?? "quiet"}>{check.verdict}</Badge></td>
                  <td>{check.found}</td>
                  <td><Marked text={check.next_step || "–"} /></td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Panel>
  );
}

export function SettingsPage() {
  const [wanted, setWanted] = useState("");
  const found = useQuery((signal) => body(client.GET("/v1/settings", { signal })), [], { everyMs: 0 });
  const isMeant = (one: Setting): boolean => `${one.setting} ${one.about}`.toLowerCase().includes(wanted.toLowerCase());
  return (
    <>
      <Title>{t("settings")}</Title>
      <Health />
      <Panel title={t("settings")} note={t("settings_note")}>
        <div class="toolbar"><SearchBox label={t("search_settings")} value={wanted} onSearch={setWanted} /></div>
        <Asked query={found} rows={12}>
          {({ settings }) => {
            const meant = settings.filter(isMeant);
            if (meant.length === 0) return <Empty title={t("no_match")} />;
            return (
              <Scroll label={t("settings")}>
                <table>
                  <thead><tr><th scope="col">{t("setting")}</th><th scope="col">{t("value")}</th><th scope="col">{t("from")}</th><th scope="col" class="wide">{t("about")}</th></tr></thead>
                  <tbody>
                    {meant.map((one) => (
                      <tr key={one.setting}>
                        <th scope="row"><code>{one.setting}</code></th>
                        <td class="mono">{one.value || "–"}</td>
                        <td>
                          <Badge tone={one.source === "default" ? "quiet" : "info"}>{one.source}</Badge>
                          {one.shared && <Badge title={t("shared_note")}>{t("shared")}</Badge>}
                        </td>
                        <td class="wide note">{one.about}</td>
                      </tr>
                    ))}
                  </tbody>
                </table>
              </Scroll>
            );
          }}
        </Asked>
      </Panel>
    </>
  );
}
