// Settings → SSH keys: saved public keys for new instances.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { rest, useAction } from "../parts/action";
import { Ago, Alert, Command, Field, Head } from "../parts/basics";
import { useData } from "../parts/data";
import { Confirm } from "../parts/remove";
import type { SshKey } from "../shapes";

export function SshKeys() {
  const keys = useData<SshKey[]>("/api/ssh-key/", "ssh-keys");
  const removing = useSignal<SshKey | null>(null);
  return (
    <>
      <Head title="SSH keys" />
      <p class="lead">A saved public key can be chosen when you create an instance.</p>
      <NewKey onMade={keys.reload} />
      <Alert words={keys.error} />
      {keys.value && keys.value.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Fingerprint</th>
              <th scope="col">Added</th>
              <th scope="col">
                <span class="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {keys.value.map((key) => (
              <tr key={key.id}>
                <th scope="row">{key.name}</th>
                <td>
                  <code>{key.fingerprint}</code>
                </td>
                <td>
                  <Ago at={key.created_at} />
                </td>
                <td class="number">
                  <button
                    type="button"
                    class="small"
                    aria-label={`Remove ${key.name}`}
                    onClick={() => (removing.value = key)}
                  >
                    Remove
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {keys.value?.length === 0 && <p class="none">There are no saved SSH keys yet.</p>}
      <Command line={commands.sshKeys} note="lists the keys in a terminal." />
      {removing.value && (
        <Confirm
          title={`Remove ${removing.value.name}`}
          verb="Remove"
          command={commands.removeSshKey(removing.value.name)}
          onClose={() => (removing.value = null)}
          work={async () => {
            await send("DELETE", `/api/ssh-key/${removing.value?.id}/`);
            await keys.reload();
          }}
        >
          Instances that have the key keep it. The key is no longer offered for new ones.
        </Confirm>
      )}
    </>
  );
}

function NewKey({ onMade }: { onMade: () => Promise<void> }) {
  const name = useSignal("");
  const key = useSignal("");
  const action = useAction();
  const save = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      await send("POST", "/api/ssh-key/", { name: name.value, public_key: key.value });
      name.value = key.value = "";
      await onMade();
    });
  };
  const fields = action.problem?.fields ?? {};
  return (
    <form class="panel form" onSubmit={save} noValidate>
      <h2>New SSH key</h2>
      <Field label="Name" errors={fields["name"]}>
        {(attributes) => (
          <input
            {...attributes}
            class="mid"
            autocomplete="off"
            placeholder="laptop"
            value={name.value}
            onInput={(event) => (name.value = event.currentTarget.value)}
          />
        )}
      </Field>
      <Field
        label="Public key"
        errors={fields["public_key"]}
        hint={
          <>
            One line, from a file such as <code>~/.ssh/id_ed25519.pub</code>.
          </>
        }
      >
        {(attributes) => (
          <textarea
            {...attributes}
            class="mono"
            rows={3}
            spellcheck={false}
            placeholder="ssh-ed25519 AAAA… me@laptop"
            value={key.value}
            onInput={(event) => {
              key.value = event.currentTarget.value;
              // The comment of a key is most often its best name.
              const comment = key.value.trim().split(/\s+/)[2];
              if (!name.value && comment) name.value = comment;
            }}
          />
        )}
      </Field>
      <Alert words={rest(action.problem, ["name", "public_key"])} />
      <Command line={commands.newSshKey(name.value)} />
      <div class="buttons">
        <button class="primary" disabled={action.busy || !key.value.trim()}>
          Save SSH key
        </button>
      </div>
    </form>
  );
}
