export interface Sorting {
  readonly by: string;
  readonly isDown: boolean;
}

interface Props {
  readonly by: string;
  readonly name: string;
  readonly now: Sorting;
  readonly onSort: (sorting: Sorting) => void;
  readonly isNumber?: boolean;
}

/** The head of a column that sorts: down, up, and as it came. */
export function Sortable({ by, name, now, onSort, isNumber = false }: Props) {
  const isHere = now.by === by;
  const next = (): Sorting => (!isHere ? { by, isDown: true } : now.isDown ? { by, isDown: false } : { by: "", isDown: true });
  return (
    <th scope="col" class={isNumber ? "number" : ""} aria-sort={isHere ? (now.isDown ? "descending" : "ascending") : "none"}>
      <button type="button" class="sort" onClick={() => onSort(next())}>
        {name}
        <span aria-hidden="true">{isHere ? (now.isDown ? "↓" : "↑") : ""}</span>
      </button>
    </th>
  );
}

export function sorted<T>(rows: readonly T[], by: Sorting, values: Readonly<Record<string, (row: T) => number | string>>): readonly T[] {
  const value = values[by.by];
  if (!value) return rows;
  const sign = by.isDown ? -1 : 1;
  return rows.toSorted((a, b) => {
    const [left, right] = [value(a), value(b)];
    return sign * (left < right ? -1 : left > right ? 1 : 0);
  });
}
