// Which page is shown. The rule: the address says it all, below wherever the service is mounted, so
// a page can be reloaded, kept and sent on.
import { useEffect, useState } from "preact/hooks";

/** Where the service is mounted, without a slash at its end. */
export const root = document.querySelector<HTMLMetaElement>("meta[name=fairlane-root]")?.content ?? "";

export interface Place {
  readonly path: string;
  readonly query: URLSearchParams;
}

function here(): Place {
  const path = location.pathname.startsWith(root) ? location.pathname.slice(root.length) : location.pathname;
  return { path: path || "/", query: new URLSearchParams(location.search) };
}

/** The address of a page below the root. */
export function href(path: string, query: Readonly<Record<string, string>> = {}): string {
  const given = Object.entries(query).filter(([, value]) => value !== "");
  const rest = new URLSearchParams(given).toString();
  return root + path + (rest && `?${rest}`);
}

/** Show another page. */
export function go(path: string, query: Readonly<Record<string, string>> = {}, replace = false): void {
  const to = href(path, query);
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  dispatchEvent(new PopStateEvent("popstate"));
}

/** The place that is shown, now and from now on. */
export function usePlace(): Place {
  const [place, setPlace] = useState(here);
  useEffect(() => {
    const changed = (): void => setPlace(here());
    const clicked = (event: MouseEvent): void => {
      const link = (event.target as Element | null)?.closest?.("a");
      if (!link || link.target || link.origin !== location.origin || link.hasAttribute("download")) return;
      if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
      if (link.dataset["plain"] !== undefined || link.getAttribute("href")?.startsWith("#")) return;
      event.preventDefault();
      history.pushState(null, "", link.href);
      changed();
      scrollTo(0, 0);
      document.querySelector<HTMLElement>("main")?.focus();
    };
    addEventListener("popstate", changed);
    document.addEventListener("click", clicked);
    return () => {
      removeEventListener("popstate", changed);
      document.removeEventListener("click", clicked);
    };
  }, []);
  return place;
}

/** Take a token out of the address bar: it must not stay in the history, nor be sent on. */
export function dropToken(): boolean {
  const query = new URLSearchParams(location.search);
  if (!query.has("token")) return false;
  query.delete("token");
  const rest = query.toString();
  history.replaceState(null, "", location.pathname + (rest && `?${rest}`));
  return true;
}
