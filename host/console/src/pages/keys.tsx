// Settings → API Key: the keys of the user.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { useAction } from "../parts/action";
import { Ago, Command, Head } from "../parts/basics";
import { useData } from "../parts/data";
import { Expires, Expiry, expiresAt, USUAL } from "../parts/expiry";
import { Form, Input } from "../parts/form";
import { Listing } from "../parts/listing";
import { Secret } from "../parts/secret";
import { Refused } from "../parts/sign-ins";
import type { CreatedKey, Key, Scope } from "../shapes";

const SCOPES: [Scope, string, string][] = [
  ["read", "Read", "show instances, usage and events"],
  ["write", "Write", "create, change and delete"],
];
const NEVER = <span class="muted">never</span>;

export function Keys() {
  const keys = useData<Key[]>("/api/key/", "keys");
  const made = useSignal<CreatedKey | null>(null);
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
      <Listing
        data={keys}
        columns={["Name", "Scope", "Last used", "Expires", "Created"]}
        cells={(key) => [
          <>
            {key.name || "without a name"}
            <small>
              <code>{key.id}</code>
            </small>
          </>,
          key.scopes.join(", "),
          key.last_used_at ? <Ago at={key.last_used_at} /> : NEVER,
          key.expires_at ? <Expiry at={key.expires_at} /> : NEVER,
          <Ago at={key.created_at} />,
        ]}
        empty="There are no API keys yet."
        removal={{
          verb: "Revoke",
          name: (key) => key.name || key.id,
          work: (key) => send("DELETE", `/api/key/${key.id}/`),
          command: (key) => commands.revokeKey(key.id),
          words: () =>
            "Programs with this key are refused from then on. A revoked key cannot be brought back.",
        }}
      />
      <Command line={commands.keys} note="lists the keys in a terminal." />
    </>
  );
}

function NewKey({ onMade }: { onMade: (key: CreatedKey) => void }) {
  const name = useSignal("");
  const scopes = useSignal<Scope[]>(["read", "write"]);
  const days = useSignal<number | null>(USUAL);
  const action = useAction();
  const make = async () => {
    const body = { name: name.value, scopes: scopes.value, expires_at: expiresAt(days.value) };
    onMade(await send<CreatedKey>("POST", "/api/key/", body));
    name.value = "";
  };
  const toggle = (scope: Scope, on: boolean) => {
    scopes.value = on ? [...scopes.value, scope] : scopes.value.filter((s) => s !== scope);
  };
  const fields = action.problem?.fields ?? {};
  const end = days.value ? expiresAt(days.value).replace(/T.*/, "T00:00:00Z") : null;
  return (
    <Form
      title="New API key"
      verb="Create API key"
      action={action}
      work={make}
      ready={scopes.value.length > 0}
      command={commands.newKey(name.value, scopes.value, end)}
      fields={[]}
      refusal={<Refused action={action} fields={["name", "expires_at", "scopes"]} />}
    >
      <div class="row">
        <Input
          label="Name"
          value={name}
          errors={fields["name"]}
          hint="So that you know it again."
          width="mid"
          placeholder="ci"
        />
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
    </Form>
  );
}
