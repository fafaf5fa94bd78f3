// Small parts of every page.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useLayoutEffect, useRef } from "preact/hooks";
import { ago, duration, exact, stateWord } from "../format";
import { now } from "../store";

/** A word for screen readers alone, about something that just happened. */
export function announce(words: string): void {
  const place = document.getElementById("announcer");
  if (place) place.textContent = words;
}

/** A button that copies text and says so. */
export function Copy({ text, label = "Copy", what }: { text: string; label?: string; what: string }) {
  const done = useSignal(false);
  const copy = async () => {
    await writeClipboard(text);
    done.value = true;
    announce(`Copied ${what}`);
    setTimeout(() => (done.value = false), 1500);
  };
  const words = done.value ? "Copied" : label;
  return (
    <button
      type="button"
      class="small"
      onClick={copy}
      aria-label={words === "Copy" ? `Copy ${what}` : undefined}
    >
      {words}
    </button>
  );
}

async function writeClipboard(text: string): Promise<void> {
  // The clipboard's interface needs HTTPS or loopback; the older way works everywhere.
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

/** The command that does what the page does. */
export function Command({ line, note }: { line: string; note?: string }) {
  return (
    <p class="command">
      <code>
        {line.split(" ").map((word, n) => (
          <>
            {n > 0 && " "}
            <span class="word">{word}</span>
          </>
        ))}
      </code>
      <Copy text={line} what="the command" />
      {note && <span class="muted">{note}</span>}
    </p>
  );
}

/** The state as a dot and a word. */
export function State({ state }: { state: string }) {
  return (
    <span class={`state ${state}`}>
      <i aria-hidden="true" />
      {stateWord(state)}
    </span>
  );
}

/** How long ago, with the exact time on hover. */
export function Ago({ at, bare = false }: { at: string; bare?: boolean }) {
  const text = bare ? duration(now.value - Date.parse(at)) : ago(at, now.value);
  return (
    <time dateTime={at} title={exact(at)}>
      {text}
    </time>
  );
}

/** The title of a page and its actions. */
export function Head({ title, children }: { title: string; children?: ComponentChildren }) {
  useEffect(() => {
    document.title = `${title} · Wharf`;
  }, [title]);
  return (
    <header class="head">
      <h1 tabIndex={-1}>{title}</h1>
      <div class="actions">{children}</div>
    </header>
  );
}

/** A message about something that failed. */
export function Alert({ words }: { words: string | null }) {
  return words ? (
    <p class="alert" role="alert">
      {words}
    </p>
  ) : null;
}

interface FieldProps {
  label: string;
  errors?: string[] | undefined;
  hint?: ComponentChildren;
  children: (attributes: {
    id: string;
    "aria-describedby": string;
    "aria-invalid": boolean;
  }) => ComponentChildren;
}

/** A labelled control with its hint and its errors. */
export function Field({ label, errors, hint, children }: FieldProps) {
  const id = useId();
  return (
    <div class={errors?.length ? "field wrong" : "field"}>
      <label for={id}>{label}</label>
      {children({ id, "aria-describedby": `${id}-note`, "aria-invalid": Boolean(errors?.length) })}
      <p class="note" id={`${id}-note`}>
        {errors?.length ? (
          <span class="error">
            {label} {errors.join("; ")}.
          </span>
        ) : (
          hint
        )}
      </p>
    </div>
  );
}

interface DialogProps {
  title: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** A modal dialog that is open as long as it is part of the page. */
export function Dialog({ title, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useLayoutEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      ref={dialog}
      aria-labelledby={id}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && dialog.current?.close()}
    >
      <div class="dialog">
        <h2 id={id}>{title}</h2>
        {children}
      </div>
    </dialog>
  );
}

/** Pairs of a name and a value. */
export function Facts({ rows }: { rows: [string, ComponentChildren][] }) {
  return (
    <dl class="facts">
      {rows.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  );
}
