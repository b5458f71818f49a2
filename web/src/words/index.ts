// What the dashboard says, in the language that was chosen. The rule: no word stands in a page; a
// language that lacks one does not compile.
import { Store } from "../store";
import { en } from "./en";
import { zh } from "./zh";

export type Key = keyof typeof en;
export type Language = "en" | "zh";
type Values = Readonly<Record<string, string | number>>;

const KEPT = "fairlane.language";
const WORDS: Readonly<Record<Language, Readonly<Record<Key, string>>>> = { en, zh };

function first(): Language {
  const kept = localStorage.getItem(KEPT);
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

export const language = new Store<Language>(first());

export function speak(chosen: Language): void {
  localStorage.setItem(KEPT, chosen);
  document.documentElement.lang = locale(chosen);
  language.set(chosen);
}

/** The locale for numbers and times. */
export function locale(of: Language = language.value): string {
  return of === "zh" ? "zh-CN" : "en-GB";
}

/** What is said, its `{places}` filled. */
export function t(key: Key, values: Values = {}): string {
  return WORDS[language.value][key].replace(/\{(\w+)\}/g, (whole, name: string) =>
    name in values ? String(values[name]) : whole,
  );
}

/** What is said for a word of the service, or the word itself if it is not known here. */
export function told(prefix: string, word: string): string {
  const key = `${prefix}.${word.replaceAll(" ", "_")}`;
  return key in en ? t(key as Key) : word;
}
