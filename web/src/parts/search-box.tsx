import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../words";
import { Icon } from "./icons";

interface Props {
  readonly label: string;
  readonly value: string;
  readonly onSearch: (text: string) => void;
  /** What Enter does; else it only searches at once. */
  readonly onEnter?: (text: string) => void;
}

/** A search that begins when one stops typing. */
export function SearchBox({ label, value, onSearch, onEnter }: Props) {
  const [text, setText] = useState(value);
  const timer = useRef(0);
  useEffect(() => setText(value), [value]);
  function typed(given: string): void {
    setText(given);
    clearTimeout(timer.current);
    timer.current = window.setTimeout(() => onSearch(given.trim()), 250);
  }
  function enter(event: Event): void {
    event.preventDefault();
    clearTimeout(timer.current);
    (onEnter ?? onSearch)(text.trim());
  }
  return (
    <form class="search" role="search" onSubmit={enter}>
      <Icon name="search" />
      <input
        type="search"
        value={text}
        aria-label={label}
        placeholder={label}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => typed(event.currentTarget.value)}
      />
      <kbd title={t("key./")}>/</kbd>
    </form>
  );
}
