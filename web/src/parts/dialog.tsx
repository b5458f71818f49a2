// A question that must be answered before something is changed, and words on what became of it.
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { Problem } from "../api";
import { Store } from "../store";
import { t } from "../words";
import { Marked } from "./basics";
import { nextStep } from "./trouble";

interface DialogProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly onClose: () => void;
}

export function Dialog({ title, children, onClose }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => ref.current?.showModal(), []);
  return (
    <dialog ref={ref} onClose={onClose} aria-labelledby="dialog-title">
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

interface ConfirmProps {
  readonly title: string;
  readonly children: ComponentChildren;
  readonly act: string;
  readonly isDanger?: boolean;
  readonly isReady?: boolean;
  /** Does it; what it returns is said to the user. */
  readonly onAct: (progress: (part: number) => void) => Promise<string>;
  readonly onClose: () => void;
}

/** Ask, do, say. A failure stays in the dialog, with its next step. */
export function Confirm(props: ConfirmProps) {
  const [problem, setProblem] = useState<Problem>();
  const [part, setPart] = useState<number | null>(null);
  async function act(): Promise<void> {
    setProblem(undefined);
    setPart(0);
    try {
      say(await props.onAct(setPart));
      props.onClose();
    } catch (error) {
      setProblem(error instanceof Problem ? error : new Problem(0, "FAULT", String(error)));
      setPart(null);
    }
  }
  const isBusy = part !== null;
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <div class="dialog-body">{props.children}</div>
      {problem && (
        <div class="trouble" role="alert">
          <p class="trouble-title">{problem.detail || problem.code}</p>
          <p><Marked text={nextStep(problem)} /></p>
        </div>
      )}
      {isBusy && <progress max={1} {...(part > 0 ? { value: part } : {})} aria-label={props.act} />}
      <div class="dialog-foot">
        <button type="button" onClick={props.onClose} disabled={isBusy}>{t("leave")}</button>
        <button
          type="button"
          class={props.isDanger ? "danger" : "primary"}
          disabled={isBusy || props.isReady === false}
          onClick={() => void act()}
        >
          {props.act}
        </button>
      </div>
    </Dialog>
  );
}

interface Said {
  readonly id: number;
  readonly text: string;
  readonly isBad: boolean;
}

const said = new Store<readonly Said[]>([]);
let number = 0;

/** Tell the user what became of what he did. */
export function say(text: string, isBad = false): void {
  const id = ++number;
  said.set([...said.value.slice(-2), { id, text, isBad }]);
  setTimeout(() => said.set(said.value.filter((one) => one.id !== id)), isBad ? 10_000 : 5_000);
}

/** Do something at once, and say what became of it. */
export async function doing(action: () => Promise<string>): Promise<void> {
  try {
    say(await action());
  } catch (error) {
    const problem = error instanceof Problem ? error : new Problem(0, "FAULT", String(error));
    say(`${problem.detail || problem.code} — ${nextStep(problem)}`, true);
  }
}

export function Toasts() {
  return (
    <div class="toasts" role="status" aria-live="polite">
      {said.use().map((one) => <p key={one.id} class={one.isBad ? "toast bad" : "toast"}>{one.text}</p>)}
    </div>
  );
}
