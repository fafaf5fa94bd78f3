// Keys for the whole console, and the dialog that lists them.

import { signal } from "@preact/signals";
import { Dialog } from "./parts/basics";
import { go } from "./router";

const help = signal(false);

const PLACES: Record<string, [to: string, words: string]> = {
  i: ["/instances", "Go to instances"],
  v: ["/volumes", "Go to volumes"],
  u: ["/usage", "Go to usage"],
  e: ["/events", "Go to events"],
  a: ["/audit", "Go to the audit log"],
  s: ["/settings/keys", "Go to settings"],
};
/** A second key must follow `g` within this time, in milliseconds. */
const PAIR_MS = 1200;

/** Listens to keys until the returned function is called. */
export function listen(): () => void {
  let prefixed = 0;
  const press = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    const target = event.target as HTMLElement;
    if (target.closest("input, textarea, select, .xterm")) {
      if (event.key === "Escape") target.blur();
      return;
    }
    const place = PLACES[event.key];
    if (place && event.timeStamp - prefixed < PAIR_MS) go(place[0]);
    else if (event.key === "c") go("/instances/new");
    else if (event.key === "?") help.value = true;
    else if (event.key === "/") document.querySelector<HTMLElement>("[data-filter]")?.focus();
    else {
      prefixed = event.key === "g" ? event.timeStamp : 0;
      return;
    }
    prefixed = 0;
    event.preventDefault();
  };
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

/** Opens the list of keys. */
export function showHelp(): void {
  help.value = true;
}

export function Help() {
  if (!help.value) return null;
  const rows: [string[], string][] = [
    [["/"], "Filter the list"],
    [["c"], "Create an instance"],
    ...Object.entries(PLACES).map(([key, [, words]]): [string[], string] => [["g", key], words]),
    [["?"], "Show these keys"],
    [["Esc"], "Close a dialog, leave a field"],
  ];
  return (
    <Dialog title="Keyboard" onClose={() => (help.value = false)}>
      <dl class="facts">
        {rows.map(([keys, words]) => (
          <div key={words}>
            <dt>{words}</dt>
            <dd>
              {keys.map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dd>
          </div>
        ))}
      </dl>
      <form method="dialog" class="buttons">
        <button>Close</button>
      </form>
    </Dialog>
  );
}
