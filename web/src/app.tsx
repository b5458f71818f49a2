// The frame of every page: where one is, who one is, whether what is shown is live.
import { useEffect, useRef, useState } from "preact/hooks";
import { useKeys } from "./keyboard";
import { follow, live } from "./live";
import { Dead } from "./pages/dead";
import { Device } from "./pages/device";
import { Devices } from "./pages/devices";
import { Overview } from "./pages/overview";
import { SettingsPage } from "./pages/settings";
import { SignIn } from "./pages/sign-in";
import { TaskPage } from "./pages/task";
import { Tasks } from "./pages/tasks";
import { Workers } from "./pages/workers";
import { Empty, Title } from "./parts/basics";
import { Toasts } from "./parts/dialog";
import { Help } from "./parts/help";
import { Icon, type IconName } from "./parts/icons";
import { brief } from "./format";
import { href, usePlace } from "./router";
import { look, signOut, standing } from "./session";
import { theme, toggleTheme } from "./theme";
import { type Key, language, speak, t } from "./words";

const PAGES: readonly { path: string; icon: IconName; name: Key }[] = [
  { path: "/", icon: "overview", name: "overview" },
  { path: "/devices", icon: "devices", name: "devices" },
  { path: "/tasks", icon: "tasks", name: "tasks" },
  { path: "/dead-letters", icon: "dead", name: "dead_letters" },
  { path: "/workers", icon: "workers", name: "workers" },
  { path: "/settings", icon: "settings", name: "settings" },
];

function Page({ path }: { path: string }) {
  const [, first = "", second = ""] = path.split("/");
  if (first === "" || first === "overview") return <Overview />;
  if (first === "devices") return second ? <Device key={second} mac={decodeURIComponent(second)} /> : <Devices />;
  if (first === "tasks") return second ? <TaskPage key={second} id={decodeURIComponent(second)} /> : <Tasks />;
  if (first === "dead-letters") return <Dead />;
  if (first === "workers") return <Workers />;
  if (first === "settings") return <SettingsPage />;
  return (
    <>
      <Title>{t("not_here")}</Title>
      <Empty title={t("not_here_long")}><a href={href("/")}>{t("to_overview")}</a></Empty>
    </>
  );
}

function Pulse() {
  const { status, trouble } = live.use();
  const text = status === "trouble" ? `${t("live.trouble")} ${trouble}` : t(`live.${status}`);
  return (
    <span class={`pulse ${status}`} role="status" data-testid="live">
      <i aria-hidden="true" />
      {text}
    </span>
  );
}

function Nav({ path }: { path: string }) {
  const { totals } = live.use();
  const here = `/${path.split("/")[1] ?? ""}`.replace("/overview", "/");
  const badge: Record<string, number> = { "/dead-letters": totals?.dead_letters ?? 0 };
  return (
    <nav aria-label={t("pages")}>
      {PAGES.map(({ path: to, icon, name }) => (
        <a key={to} href={href(to)} aria-current={here === to ? "page" : undefined}>
          <Icon name={icon} />
          <span>{t(name)}</span>
          {badge[to] ? <b class="nav-badge">{brief(badge[to])}</b> : null}
        </a>
      ))}
    </nav>
  );
}

export function App() {
  const place = usePlace();
  const now = standing.use();
  const spoken = language.use();
  const shade = theme.use();
  const main = useRef<HTMLElement>(null);
  const [isHelped, setHelped] = useState(false);
  useKeys(() => setHelped(true));
  const isIn = now.kind === "in";
  const mayLook = isIn && (now.session.role === "viewer" || now.session.role === "operator");
  useEffect(() => (mayLook ? follow(() => void look()) : undefined), [mayLook]);

  if (now.kind === "asking") return <p class="opening" role="status">{t("loading")}</p>;
  if (!isIn || !mayLook) return <SignIn />;
  return (
    <div class="frame" key={spoken}>
      <a class="skip" href="#main" data-plain onClick={() => main.current?.focus()}>{t("skip")}</a>
      <header class="top">
        <a class="brand" href={href("/")}>
          <svg viewBox="0 0 32 32" aria-hidden="true"><rect width="32" height="32" rx="8" /><path d="M7 10h11M7 16h18M7 22h7" /></svg>
          fairlane
        </a>
        <Nav path={place.path} />
        <div class="top-foot">
          <Pulse />
          <p class="who">
            {now.session.name || t("nobody")} <span class="badge quiet">{t(`role.${now.session.role}` as Key)}</span>
          </p>
          <div class="tools">
            <button type="button" class="plain" onClick={toggleTheme} title={`${t("theme")} (t)`} aria-label={t("theme")}>
              <Icon name={shade === "dark" ? "sun" : "moon"} />
            </button>
            <button
              type="button"
              class="plain"
              onClick={() => speak(spoken === "en" ? "zh" : "en")}
              lang={spoken === "en" ? "zh" : "en"}
            >
              {spoken === "en" ? "中文" : "English"}
            </button>
            <button type="button" class="plain" onClick={() => setHelped(true)} title={`${t("help")} (?)`} aria-label={t("help")}>
              <Icon name="help" />
            </button>
            <button type="button" class="plain" onClick={() => void signOut()} title={t("sign_out")} aria-label={t("sign_out")}>
              <Icon name="out" />
            </button>
          </div>
        </div>
      </header>
      <main id="main" ref={main} tabIndex={-1}>
        <Page path={place.path} />
      </main>
      <Toasts />
      {isHelped && <Help onClose={() => setHelped(false)} />}
    </div>
  );
}
