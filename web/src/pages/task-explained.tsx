// Why a task waits, and when it will probably start.
export function Explained(_: { id: string; state: string }) {
  return null;
}
