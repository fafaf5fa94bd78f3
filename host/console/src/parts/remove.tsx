// A dialog before something is revoked or removed.

import type { ComponentChildren } from "preact";
import { useAction } from "./action";
import { Alert, Command, Dialog } from "./basics";

interface Props {
  title: string;
  verb: string;
  command?: string;
  children: ComponentChildren;
  work: () => Promise<unknown>;
  onClose: () => void;
}

export function Confirm({ title, verb, command, children, work, onClose }: Props) {
  const action = useAction();
  const confirm = async () => {
    if (await action.run(work)) onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <div>{children}</div>
      <Alert words={action.problem?.message ?? null} />
      {command && <Command line={command} />}
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Keep
        </button>
        <button type="button" class="danger" disabled={action.busy} onClick={confirm}>
          {verb}
        </button>
      </div>
    </Dialog>
  );
}
