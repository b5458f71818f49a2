// Keys that do something anywhere. The rule: none does anything while somebody types.
import { useEffect } from "preact/hooks";
import { go } from "./router";
import { REFRESH } from "./store";
import { toggleTheme } from "./theme";

/** What the keys are, for the help. */
export const KEYS = ["/", "r", "t", "?", "g o", "g d", "g t", "g l", "g w", "g s"] as const;
const PLACES: Readonly<Record<string, string>> = {
  o: "/", d: "/devices", t: "/tasks", l: "/dead-letters", w: "/workers", s: "/settings",
};

function isTyping(event: KeyboardEvent): boolean {
  const target = event.target as HTMLElement;
  return /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable;
}

function search(): void {
  const box = document.querySelector<HTMLInputElement>("main input[type=search]");
  if (box) {
    box.focus();
    box.select();
  } else {
    go("/tasks");
    setTimeout(() => document.querySelector<HTMLInputElement>("main input[type=search]")?.focus(), 50);
  }
}

export function useKeys(help: () => void): void {
  useEffect(() => {
    let isGoing = false;
    let timer = 0;
    function pressed(event: KeyboardEvent): void {
      if (event.key === "Escape" && isTyping(event)) (event.target as HTMLElement).blur();
      if (isTyping(event) || event.metaKey || event.ctrlKey || event.altKey) return;
      if (document.querySelector("dialog[open]")) return;
      const place = PLACES[event.key];
      if (isGoing && place) go(place);
      else if (event.key === "/") search();
      else if (event.key === "r") dispatchEvent(new Event(REFRESH));
      else if (event.key === "t") toggleTheme();
      else if (event.key === "?") help();
      else if (event.key !== "g") return;
      clearTimeout(timer);
      isGoing = event.key === "g" && !isGoing;
      timer = window.setTimeout(() => { isGoing = false; }, 1_200);
      event.preventDefault();
    }
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  }, []);
}
