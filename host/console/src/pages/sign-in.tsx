// The page that signs a user in.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { asProblem, get, send } from "../api";
import icon from "../icon.svg";
import { useAction } from "../parts/action";
import { Alert } from "../parts/basics";
import { knowsPasskeys, passkeyWords, usePasskey } from "../parts/passkey";
import { keep } from "../part";
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

/** The place in which the page to return to survives a visit at the provider. */
const RETURN_TO = "return-to";
/** The place that tells whether this tab is at the provider. */
const VISIT = "at-provider";
/** The beginning of the fragment with which a sign-in over plain HTTP comes back. */
const GIVEN = "#session=";

/** The reasons why a sign-in with the provider fails, by the word in the fragment. */
const REASONS: Record<string, string> = {
  unreachable: "The provider is out of reach. Try again later, or sign in another way.",
  expired: "The sign-in took too long, or began in another browser. Try again.",
  denied: "The sign-in was refused at the provider.",
  untrusted: "The certificate of the provider is not trusted. The operator finds the reason in the log.",
  unusable: "The provider answers in a way that Wharf cannot use. The operator finds the reason in the log.",
  "other-issuer": "The provider is another one than in the configuration. The operator finds the reason in the log.",
  client: "The provider does not accept the id or the secret of Wharf. Tell the operator.",
  failed: "The provider reports an error. Try again later, or sign in another way.",
  code: "The provider does not accept the code of this sign-in. Try again.",
  "no-address": "The provider gives no e-mail address of your account. The operator finds the reason in the log.",
  token: "The answer of the provider is not valid. The operator finds the reason in the log.",
  unverified: "The provider has not verified the e-mail address of your account.",
  "not-allowed": "Accounts with your e-mail address may not sign in here.",
  "no-user": "No user has your e-mail address. Ask the operator for an invitation.",
  "other-identity": "Your user is linked to another account of the provider. Unlink it in Settings → Account.",
  disabled: "Your user is disabled.",
  internal: "The sign-in failed. The operator finds the reason in the log.",
};

/** Opens the page of the provider. */
function visitProvider(): void {
  sessionStorage.setItem(VISIT, "yes");
  if (returnTo.value) sessionStorage.setItem(RETURN_TO, returnTo.value);
  location.assign("/auth/oidc/");
}

/** Keeps the part of a new session. A link elsewhere must not give one, so this tab was at the provider. */
export function backFromProvider(): void {
  if (location.pathname !== "/sign-in" || !location.hash.startsWith(GIVEN)) return;
  const was = sessionStorage.getItem(VISIT);
  sessionStorage.removeItem(VISIT);
  if (was) keep(location.hash.slice(GIVEN.length));
  history.replaceState(null, "", was ? location.pathname : `${location.pathname}#expired`);
}

/** The page that asked for the sign-in, if it was at the provider. */
function returned(): string {
  const page = sessionStorage.getItem(RETURN_TO);
  sessionStorage.removeItem(RETURN_TO);
  return page?.startsWith("/") && !page.startsWith("//") ? page : "/instances";
}

export function SignIn() {
  const offers = useSignal<SignInOptions | null>(null);
  const unreachable = useSignal<string | null>(null);
  const email = useSignal("");
  const password = useSignal("");
  const refused = useSignal<string | null>(null);
  const action = useAction();
  useEffect(() => {
    document.title = "Sign in · Wharf";
    if (session.value) return go(returned(), true);
    const reason = location.hash.slice(1);
    if (reason) {
      refused.value = REASONS[reason] ?? null;
      history.replaceState(null, "", location.pathname);
    }
    get<SignInOptions>("/auth/options/").then(
      (options) => (offers.value = options),
      (error: unknown) => (unreachable.value = asProblem(error).message),
    );
  }, []);
  const submit = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      await send("POST", "/auth/sign-in/", { email: email.value, password: password.value });
      await enter();
    });
  };
  const withPasskey = () =>
    void action.run(async () => {
      refused.value = null;
      await usePasskey();
      await enter();
    });
  const offersPasskey = offers.value?.passkey && knowsPasskeys;
  const isOff = offers.value?.password === false;
  return (
    <main class="lone" id="main">
      <img src={icon} alt="" width="36" height="36" />
      <h1>Sign in to Wharf</h1>
      <Alert words={passkeyWords(action.problem) ?? refused.value ?? unreachable.value} />
      {isOff && <Alert words="Sign-in is switched off on this server. The command line and programs use API keys." />}
      {(offersPasskey || offers.value?.provider) && (
        <div class="panel form">
          {offersPasskey && (
            <button type="button" class="wide" disabled={action.busy} onClick={withPasskey}>
              Sign in with a passkey
            </button>
          )}
          {offers.value?.provider && (
            <button type="button" class="wide" disabled={action.busy} onClick={visitProvider}>
              Sign in with {offers.value.provider}
            </button>
          )}
        </div>
      )}
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
