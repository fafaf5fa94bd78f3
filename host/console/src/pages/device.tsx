// The page that lets `wharf login` in a terminal act for the user.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { useAction } from "../parts/action";
import { Command, Field, Head } from "../parts/basics";
import { Expires, expiresAt, USUAL } from "../parts/expiry";
import { Refused } from "../parts/sign-ins";
import type { Scope } from "../shapes";
import { session } from "../store";

const SCOPES: [Scope, string][] = [
  ["read", "Read: show instances, usage and events"],
  ["write", "Write: create, change and delete"],
];

export function Device() {
  const code = useSignal(decodeURIComponent(location.hash.slice(1)));
  const scopes = useSignal<Scope[]>(["read", "write"]);
  const days = useSignal<number | null>(USUAL);
  const done = useSignal<"approved" | "denied" | null>(null);
  const action = useAction();
  const answer = (deny: boolean) => (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      const user_code = code.value.trim().toUpperCase();
      // A sign-in that the server asks for comes back to this code.
      history.replaceState(null, "", `#${encodeURIComponent(user_code)}`);
      const body = { user_code, scopes: scopes.value, expires_at: expiresAt(days.value), deny };
      await send("POST", "/auth/device/approve/", body);
      done.value = deny ? "denied" : "approved";
    });
  };
  if (done.value) {
    return (
      <>
        <Head title={done.value === "approved" ? "The terminal is signed in" : "The terminal is refused"} />
        <p role="status">
          {done.value === "approved"
            ? "Go back to the terminal. Its key is in Settings → API Key, where you can revoke it."
            : "The code can no longer be used."}
        </p>
        <p>
          <a href="/instances">Show your instances</a>
        </p>
      </>
    );
  }
  const toggle = (scope: Scope, on: boolean) => {
    scopes.value = on ? [...scopes.value, scope] : scopes.value.filter((s) => s !== scope);
  };
  return (
    <>
      <Head title="Sign a terminal in" />
      <form class="panel form" onSubmit={answer(false)} noValidate>
        <p>
          A terminal asks for an API key of <b>{session.value?.email}</b>. Approve only the code that your own
          terminal shows.
        </p>
        <Field label="Code" errors={action.problem?.fields["user_code"]} hint="Eight letters, such as ABCD-EFGH.">
          {(attributes) => (
            <input
              {...attributes}
              class="mid mono code"
              autocomplete="off"
              spellcheck={false}
              value={code.value}
              onInput={(event) => (code.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <fieldset class="checks">
          <legend>Scope</legend>
          {SCOPES.map(([scope, words]) => (
            <label key={scope}>
              <input
                type="checkbox"
                checked={scopes.value.includes(scope)}
                onChange={(event) => toggle(scope, event.currentTarget.checked)}
              />
              {words}
            </label>
          ))}
        </fieldset>
        <Expires days={days} errors={action.problem?.fields["expires_at"]} />
        <Refused action={action} fields={["user_code", "expires_at"]} />
        <div class="buttons">
          <button type="button" disabled={action.busy || !code.value} onClick={answer(true)}>
            Refuse
          </button>
          <button class="primary" disabled={action.busy || !code.value || scopes.value.length === 0}>
            Approve
          </button>
        </div>
      </form>
      <Command line={commands.login(location.origin)} note="shows a code in a terminal." />
    </>
  );
}
