// Light or dark. The rule: as the system is, until somebody says otherwise.
import { Store } from "./store";

export type Theme = "light" | "dark";
const KEPT = "fairlane.theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function wanted(): Theme {
  const kept = localStorage.getItem(KEPT);
  return kept === "light" || kept === "dark" ? kept : system.matches ? "dark" : "light";
}

export const theme = new Store<Theme>(wanted());

function show(): void {
  document.documentElement.dataset["theme"] = wanted();
  theme.set(wanted());
}

export function toggleTheme(): void {
  localStorage.setItem(KEPT, theme.value === "dark" ? "light" : "dark");
  show();
}

system.addEventListener("change", show);
show();
