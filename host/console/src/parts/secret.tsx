// A secret that is shown once.

import { Copy } from "./basics";

export function Secret({ what, text, onDone }: { what: string; text: string; onDone: () => void }) {
  return (
    <section class="panel secret" role="status">
      <h2>{what}</h2>
      <p>This is the only time that it is shown. Keep it where you keep passwords.</p>
      <p class="command">
        <code data-secret>{text}</code>
        <Copy text={text} what={what.toLowerCase()} />
      </p>
      <div class="buttons">
        <button type="button" onClick={onDone}>
          I have it
        </button>
      </div>
    </section>
  );
}
