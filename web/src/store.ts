// A value that pages show and that changes. The rule: who shows it is drawn anew when it changes.
import { useEffect, useState } from "preact/hooks";

/** The event that asks every page to read anew. */
export const REFRESH = "fairlane-refresh";

export class Store<T> {
  private readonly watchers = new Set<(value: T) => void>();

  constructor(private current: T) {}

  get value(): T {
    return this.current;
  }

  set(value: T): void {
    if (value === this.current) return;
    this.current = value;
    for (const tell of [...this.watchers]) tell(value);
  }

  watch(tell: (value: T) => void): () => void {
    this.watchers.add(tell);
    return () => this.watchers.delete(tell);
  }

  /** The value, in a component. */
  use(): T {
    const [, setValue] = useState(this.current);
    useEffect(() => {
      setValue(() => this.current);
      return this.watch((value) => setValue(() => value));
    }, []);
    return this.current;
  }
}
