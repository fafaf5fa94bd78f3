// The page of an invitation. Its token is in the fragment, and a click spends it.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { asProblem, get, send } from "../api";
import { exact } from "../format";
import icon from "../icon.svg";
import { rest, useAction } from "../parts/action";
import { Alert, Field } from "../parts/basics";
import { knowsPasskeys, makePasskey, passkeyWords } from "../parts/passkey";
import type { SignInOptions } from "../shapes";
import { enter } from "./sign-in";

export function Invite() {
  const token = useRef(location.hash.slice(1));
  const invitation = useSignal<{ email: string; expires_at: string } | null>(null);
  const refused = useSignal<string | null>(null);
  const password = useSignal("");
  const offersPasskey = useSignal(false);
  const action = useAction();
  const passkey = useAction();
  const busy = action.busy || passkey.busy;
  useEffect(() => {
    document.title = "Invitation · Wharf";
    // The token leaves the address, so that no history keeps it.
    history.replaceState(null, "", location.pathname);
    send<{ email: string; expires_at: string }>("POST", "/auth/invite/", { token: token.current }).then(
      (found) => (invitation.value = found),
      (error: unknown) => (refused.value = asProblem(error).message),
    );
    get<SignInOptions>("/auth/options/").then(
      (options) => (offersPasskey.value = options.passkey && knowsPasskeys),
      // Without the options, the password is left.
      () => {},
    );
  }, []);
  const accept = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      await send("POST", "/auth/invite/accept/", { token: token.current, password: password.value });
      await enter();
    });
  };
  const acceptWithPasskey = () =>
    void passkey.run(async () => {
      const body = { token: token.current };
      const credential = await makePasskey("/auth/invite/passkey/options/", body);
      await send("POST", "/auth/invite/passkey/", { ...body, credential });
      await enter();
    });
  const found = invitation.value;
  return (
    <main class="lone" id="main">
      <img src={icon} alt="" width="36" height="36" />
      <h1>{refused.value ? "This invitation cannot be used" : "Welcome to Wharf"}</h1>
      <Alert words={refused.value} />
      {refused.value && (
        <p>
          Ask the operator for a new one, or <a href="/sign-in">sign in</a> if you have used it before.
        </p>
      )}
      {found && (
        <form class="panel form" onSubmit={accept}>
          <p>
            You are invited as <b>{found.email}</b>. The invitation is valid until {exact(found.expires_at)}.
          </p>
          {offersPasskey.value && (
            <>
              <button type="button" class="primary wide" disabled={busy} onClick={acceptWithPasskey}>
                Accept with a passkey
              </button>
              <p class="note">
                A passkey signs you in with the lock of this device or a security key. There is no password to
                keep.
              </p>
              <Alert words={passkeyWords(passkey.problem)} />
              <p class="muted">Or choose a password:</p>
            </>
          )}
          <input class="unseen" type="text" autocomplete="username" value={found.email} readOnly tabIndex={-1} aria-hidden="true" />
          <Field
            label="Choose a password"
            errors={action.problem?.fields["password"]}
            hint="A sentence of several words is good and easy to keep."
          >
            {(attributes) => (
              <input
                {...attributes}
                type="password"
                autocomplete="new-password"
                autoFocus
                value={password.value}
                onInput={(event) => (password.value = event.currentTarget.value)}
              />
            )}
          </Field>
          <Alert words={rest(action.problem, ["password"])} />
          <button class={offersPasskey.value ? "wide" : "primary wide"} disabled={busy || !password.value}>
            Accept the invitation
          </button>
        </form>
      )}
    </main>
  );
}
