// The page that signs a user in.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, Problem, send } from "../api";
import icon from "../icon.svg";
import { useAction } from "../parts/action";
import { Alert } from "../parts/basics";
import { go, returnTo } from "../router";
import type { SignInOptions } from "../shapes";
import { session, start } from "../store";

/** Opens the console after a sign-in, on the page that asked for it. */
export async function enter(): Promise<void> {
  session.value = undefined;
  await start();
  go(returnTo.value ?? "/instances", true);
  returnTo.value = null;
}

export function SignIn() {
  const offers = useSignal<SignInOptions | null>(null);
  const unreachable = useSignal<string | null>(null);
  const email = useSignal("");
  const password = useSignal("");
  const action = useAction();
  useEffect(() => {
    document.title = "Sign in · Wharf";
    if (session.value) return go("/instances", true);
    get<SignInOptions>("/auth/options/").then(
      (options) => (offers.value = options),
      (error: unknown) => (unreachable.value = error instanceof Problem ? error.message : String(error)),
    );
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      await send("POST", "/auth/sign-in/", { email: email.value, password: password.value });
      await enter();
    });
  };
  const isOff = offers.value?.password === false;
  return (
    <main class="lone" id="main">
      <img src={icon} alt="" width="36" height="36" />
      <h1>Sign in to Wharf</h1>
      <Alert words={action.problem?.message ?? unreachable.value} />
      {isOff && <Alert words="Sign-in is switched off on this server. The command line and programs use API keys." />}
      <form class="panel form" hidden={isOff} onSubmit={submit}>
        <label for="email">E-mail address</label>
        <input
          id="email"
          type="email"
          autocomplete="username"
          required
          autoFocus
          value={email.value}
          onInput={(event) => (email.value = event.currentTarget.value)}
        />
        <label for="password">Password</label>
        <input
          id="password"
          type="password"
          autocomplete="current-password"
          required
          value={password.value}
          onInput={(event) => (password.value = event.currentTarget.value)}
        />
        <button class="primary wide" disabled={action.busy}>
          Sign in
        </button>
      </form>
      <p class="muted">
        No account yet? The operator invites you: <code>wharf user invite you@example.org</code>
      </p>
    </main>
  );
}
