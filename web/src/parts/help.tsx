import { KEYS } from "../keyboard";
import { type Key, t } from "../words";
import { Dialog } from "./dialog";

export function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={t("help")} onClose={onClose}>
      <dl class="keys">
        {KEYS.map((keys) => (
          <div key={keys}>
            <dt>{keys.split(" ").map((key) => <kbd key={key}>{key}</kbd>)}</dt>
            <dd>{t(`key.${keys}` as Key)}</dd>
          </div>
        ))}
      </dl>
      <div class="dialog-foot"><button type="button" onClick={onClose}>{t("close")}</button></div>
    </Dialog>
  );
}
