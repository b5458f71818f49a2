// Where one gets to without a session that may look.
import { useState } from "preact/hooks";
import type { Problem } from "../api";
import { Marked, Title } from "../parts/basics";
import { nextStep } from "../parts/trouble";
import { look, signIn, signOut, standing } from "../session";
import { t } from "../words";

export function SignIn() {
  const now = standing.use();
  const [problem, setProblem] = useState<Problem>();
  const [isBusy, setBusy] = useState(false);
  const found = problem ?? (now.kind === "out" ? now.problem : undefined);
  const isQuiet = found === undefined || found.code === "UNAUTHORIZED" || found.code === "SIGNED_OUT";

  async function enter(event: SubmitEvent): Promise<void> {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    try {
      await signIn(String(form.get("token") ?? "").trim());
    } catch (error) {
      setProblem(error as Problem);
    }
    setBusy(false);
  }

  return (
    <main class="sign-in">
      <Title>{t("sign_in")}</Title>
      {now.kind === "in" && (
        <div class="trouble" role="alert">
          <p class="trouble-title">{t("no_look", { role: now.session.role })}</p>
          <p><button type="button" onClick={() => void signOut()}>{t("sign_out")}</button></p>
        </div>
      )}
      {!isQuiet && found && (
        <div class="trouble" role="alert">
          <p class="trouble-title">{found.status === 0 ? t("offline") : found.detail || t("bad_token")}</p>
          <p><Marked text={nextStep(found)} /></p>
          {found.status !== 401 && <p><button type="button" onClick={() => void look()}>{t("try_again")}</button></p>}
        </div>
      )}
      <form onSubmit={(event) => void enter(event as unknown as SubmitEvent)}>
        <label for="token">{t("token")}</label>
        <input id="token" name="token" type="password" autocomplete="current-password" required spellcheck={false} />
        <button type="submit" class="primary" disabled={isBusy}>{t("sign_in")}</button>
      </form>
      <p class="note"><Marked text={t("sign_in_how")} /></p>
      <pre>fairlane token issue --role viewer</pre>
    </main>
  );
}
