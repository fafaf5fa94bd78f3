// A dialog before something is revoked, removed or deleted.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useAction } from "./action";
import { Alert, Command, Dialog } from "./basics";

interface Props {
  title: string;
  verb: string;
  /** The name to type, where data is lost. */
  typed?: string;
  command?: string | undefined;
  children: ComponentChildren;
  work: () => Promise<unknown>;
  onClose: () => void;
}

export function Confirm({ title, verb, typed, command, children, work, onClose }: Props) {
  const action = useAction();
  const text = useSignal("");
  const confirm = async (event: Event) => {
    event.preventDefault();
    if (await action.run(work)) onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form onSubmit={(event) => void confirm(event)}>
        <div>{children}</div>
        {typed && (
          <>
            <label for="typed">
              Type <b>{typed}</b> to confirm
            </label>
            <input
              id="typed"
              autoFocus
              autocomplete="off"
              spellcheck={false}
              value={text.value}
              onInput={(event) => (text.value = event.currentTarget.value)}
            />
          </>
        )}
        <Alert words={action.problem?.message ?? null} />
        {command && <Command line={command} />}
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Keep
          </button>
          <button class="danger" disabled={action.busy || (Boolean(typed) && text.value !== typed)}>
            {verb}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
