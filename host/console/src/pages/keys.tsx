// Settings → API Key: the keys of the user.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { useAction } from "../parts/action";
import { Ago, Alert, Command, Field, Head } from "../parts/basics";
import { useData } from "../parts/data";
import { Expires, Expiry, expiresAt, USUAL } from "../parts/expiry";
import { Refused } from "../parts/sign-ins";
import { Confirm } from "../parts/remove";
import { Secret } from "../parts/secret";
import type { CreatedKey, Key, Scope } from "../shapes";

const SCOPES: [Scope, string, string][] = [
  ["read", "Read", "show instances, usage and events"],
  ["write", "Write", "create, change and delete"],
];
export function Keys() {
  const keys = useData<Key[]>("/api/key/", "keys");
  const made = useSignal<CreatedKey | null>(null);
  const revoking = useSignal<Key | null>(null);
  return (
    <>
      <Head title="API Key" />
      <p class="lead">
        A program sends a key with each request: <code>Authorization: Bearer wharf_…</code>. The{" "}
        <a href="/api/docs/" target="_blank" rel="noreferrer">
          documentation of the interface
        </a>{" "}
        lets you try it.
      </p>
      {made.value && (
        <Secret
          what={made.value.name ? `API key ${made.value.name}` : "API key"}
          text={made.value.key}
          onDone={() => (made.value = null)}
        />
      )}
      <NewKey
        onMade={(key) => {
          made.value = key;
          void keys.reload();
        }}
      />
      <Alert words={keys.error} />
      {keys.value && keys.value.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Scope</th>
              <th scope="col">Last used</th>
              <th scope="col">Expires</th>
              <th scope="col">Created</th>
              <th scope="col">
                <span class="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {keys.value.map((key) => (
              <tr key={key.id}>
                <th scope="row">
                  {key.name || "without a name"}
                  <small>
                    <code>{key.id}</code>
                  </small>
                </th>
                <td>{key.scopes.join(", ")}</td>
                <td>{key.last_used_at ? <Ago at={key.last_used_at} /> : <span class="muted">never</span>}</td>
                <td>{key.expires_at ? <Expiry at={key.expires_at} /> : <span class="muted">never</span>}</td>
                <td>
                  <Ago at={key.created_at} />
                </td>
                <td class="number">
                  <button
                    type="button"
                    class="small"
                    aria-label={`Revoke ${key.name || key.id}`}
                    onClick={() => (revoking.value = key)}
                  >
                    Revoke
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {keys.value?.length === 0 && <p class="none">There are no API keys yet.</p>}
      <Command line={commands.keys} note="lists the keys in a terminal." />
      {revoking.value && (
        <Confirm
          title={`Revoke ${revoking.value.name || revoking.value.id}`}
          verb="Revoke"
          command={commands.revokeKey(revoking.value.id)}
          onClose={() => (revoking.value = null)}
          work={async () => {
            await send("DELETE", `/api/key/${revoking.value?.id}/`);
            await keys.reload();
          }}
        >
          Programs with this key are refused from then on. A revoked key cannot be brought back.
        </Confirm>
      )}
    </>
  );
}

function NewKey({ onMade }: { onMade: (key: CreatedKey) => void }) {
  const name = useSignal("");
  const scopes = useSignal<Scope[]>(["read", "write"]);
  const days = useSignal<number | null>(USUAL);
  const action = useAction();
  const make = (event: Event) => {
    event.preventDefault();
    const body = { name: name.value, scopes: scopes.value, expires_at: expiresAt(days.value) };
    void action.run(async () => {
      onMade(await send<CreatedKey>("POST", "/api/key/", body));
      name.value = "";
    });
  };
  const toggle = (scope: Scope, on: boolean) => {
    scopes.value = on ? [...scopes.value, scope] : scopes.value.filter((s) => s !== scope);
  };
  const fields = action.problem?.fields ?? {};
  return (
    <form class="panel form" onSubmit={make} noValidate>
      <h2>New API key</h2>
      <div class="row">
        <Field label="Name" errors={fields["name"]} hint="So that you know it again.">
          {(attributes) => (
            <input
              {...attributes}
              class="mid"
              autocomplete="off"
              placeholder="ci"
              value={name.value}
              onInput={(event) => (name.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Expires days={days} errors={fields["expires_at"]} />
      </div>
      <fieldset class="checks">
        <legend>Scope</legend>
        {SCOPES.map(([scope, word, note]) => (
          <label key={scope}>
            <input
              type="checkbox"
              checked={scopes.value.includes(scope)}
              onChange={(event) => toggle(scope, event.currentTarget.checked)}
            />
            <span>
              {word} <span class="muted">{note}</span>
            </span>
          </label>
        ))}
        {fields["scopes"] && <p class="error">Scope {fields["scopes"].join("; ")}.</p>}
      </fieldset>
      <Refused action={action} fields={["name", "expires_at", "scopes"]} />
      <Command line={commands.newKey(name.value, scopes.value, days.value ? expiresAt(days.value).replace(/T.*/, "T00:00:00Z") : null)} />
      <div class="buttons">
        <button class="primary" disabled={action.busy || scopes.value.length === 0}>
          Create API key
        </button>
      </div>
    </form>
  );
}
