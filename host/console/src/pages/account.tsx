// Settings → Account: the ways to sign in, sessions.

import { useSignal } from "@preact/signals";
import { get, send } from "../api";
import { commands } from "../commands";
import { useAction } from "../parts/action";
import { Ago, Alert, Command, Facts, Field, Head } from "../parts/basics";
import { useData } from "../parts/data";
import { Confirm } from "../parts/remove";
import { Identities, Passkeys, Refused } from "../parts/sign-ins";
import { go } from "../router";
import type { Preferences, Session } from "../shapes";
import { forget, session } from "../store";

/** The API keys that signing out everywhere revokes too, by the time since which they were made. */
const REVOKED: [string, (signedIn: string | null) => string | null][] = [
  ["Keep all API keys", () => null],
  ["Revoke those made since this sign-in", (signedIn) => signedIn],
  ["Revoke those of the last day", () => daysAgo(1)],
  ["Revoke those of the last 30 days", () => daysAgo(30)],
  ["Revoke all API keys", () => new Date(0).toISOString()],
];

const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000).toISOString();

const readSession = async () => {
  session.value = await get<Session>("/api/session/");
};

export function Account() {
  const me = session.value;
  const everywhere = useSignal(false);
  const revoked = useSignal(0);
  const action = useAction();
  if (!me) return null;
  const leave = (path: string, body?: () => unknown) => async () => {
    await send("POST", path, body?.());
    forget();
    go("/sign-in");
  };
  const bySession = me.kind === "session";
  return (
    <>
      <Head title="Account">
        {bySession && (
          <button type="button" disabled={action.busy} onClick={() => void action.run(leave("/auth/sign-out/"))}>
            Sign out
          </button>
        )}
      </Head>
      <Alert words={action.problem?.message ?? null} />
      <section class="panel form">
        <h2>You</h2>
        <Facts
          rows={[
            ["E-mail address", me.email],
            ["Signed in", me.created_at ? <Ago at={me.created_at} /> : "by API key"],
            ["Server", `${location.host} · Wharf ${me.version}`],
            ["User in instances", <code>{me.login_user}</code>],
          ]}
        />
        <Command line={commands.login(location.origin)} note="signs a terminal in." />
      </section>
      <Moves />
      {bySession && <Password has={me.has_password} />}
      {bySession && <Passkeys />}
      {bySession && <Identities all={me.identities} onChange={readSession} />}
      {bySession && (
        <section class="panel form">
          <h2>Sessions</h2>
          <p class="muted">Signing out everywhere ends this session and those in other browsers.</p>
          <div class="buttons">
            <button type="button" onClick={() => (everywhere.value = true)}>
              Sign out everywhere
            </button>
          </div>
        </section>
      )}
      {everywhere.value && (
        <Confirm
          title="Sign out everywhere"
          verb="Sign out everywhere"
          onClose={() => (everywhere.value = false)}
          work={leave("/auth/sign-out-everywhere/", () => ({
            revoke_keys_since: REVOKED[revoked.value]?.[1](me.created_at) ?? null,
          }))}
        >
          All of your sessions end, this one too. If someone else was signed in, that person may have made API keys.
          <Field label="API keys">
            {(attributes) => (
              <select
                {...attributes}
                value={revoked.value}
                onChange={(event) => (revoked.value = Number(event.currentTarget.value))}
              >
                {REVOKED.map(([words], at) => (
                  <option key={words} value={at}>
                    {words}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </Confirm>
      )}
    </>
  );
}

function Moves() {
  const preferences = useData<Preferences>("/api/preferences/");
  const action = useAction();
  const change = (allowed: boolean) =>
    action.run(async () => {
      await send("PATCH", "/api/preferences/", { allow_moves: allowed });
      await preferences.reload();
    });
  return (
    <section class="panel form">
      <h2>Maintenance</h2>
      <fieldset class="checks">
        <legend>When the host of a running instance is emptied</legend>
        <label>
          <input
            type="checkbox"
            checked={preferences.value?.allow_moves ?? false}
            disabled={action.busy || !preferences.value}
            onChange={(event) => void change(event.currentTarget.checked)}
          />
          <span>
            Stop it, move it and start it again{" "}
            <span class="muted">Otherwise it stays until you stop it. Stopped instances move in any case.</span>
          </span>
        </label>
      </fieldset>
      <Alert words={action.problem?.message ?? preferences.error} />
      <Command line={commands.allowMoves(!preferences.value?.allow_moves)} />
    </section>
  );
}

function Password({ has }: { has: boolean }) {
  const current = useSignal("");
  const next = useSignal("");
  const done = useSignal(false);
  const action = useAction();
  const save = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      await send("POST", "/auth/password/", { current: has ? current.value : null, new: next.value });
      current.value = next.value = "";
      done.value = true;
      await readSession();
    });
  };
  const fields = action.problem?.fields ?? {};
  const input = (value: typeof next, autocomplete: "current-password" | "new-password") =>
    (attributes: object) => (
      <input
        {...attributes}
        class="mid"
        type="password"
        autocomplete={autocomplete}
        value={value.value}
        onInput={(event) => {
          value.value = event.currentTarget.value;
          done.value = false;
        }}
      />
    );
  return (
    <form class="panel form" onSubmit={save} noValidate>
      <h2>{has ? "Change the password" : "Set a password"}</h2>
      <input class="unseen" type="text" autocomplete="username" value={session.value?.email} readOnly tabIndex={-1} aria-hidden="true" />
      {has && (
        <Field label="Current password" errors={fields["current"]}>
          {input(current, "current-password")}
        </Field>
      )}
      <Field label="New password" errors={fields["new"]} hint="A sentence of several words is good and easy to keep.">
        {input(next, "new-password")}
      </Field>
      <Refused action={action} fields={["current", "new"]} />
      {done.value && <p role="status">The password is changed.</p>}
      <div class="buttons">
        <button class="primary" disabled={action.busy || !next.value || (has && !current.value)}>
          {has ? "Change password" : "Set password"}
        </button>
      </div>
    </form>
  );
}
