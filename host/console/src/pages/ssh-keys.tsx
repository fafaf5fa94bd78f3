// Settings → SSH keys: saved public keys for new instances.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { useAction } from "../parts/action";
import { Ago, Command, Head } from "../parts/basics";
import { useData } from "../parts/data";
import { Form, Input } from "../parts/form";
import { Listing } from "../parts/listing";
import type { SshKey } from "../shapes";

export function SshKeys() {
  const keys = useData<SshKey[]>("/api/ssh-key/", "ssh-keys");
  return (
    <>
      <Head title="SSH keys" />
      <p class="lead">A saved public key can be chosen when you create an instance.</p>
      <NewKey onMade={keys.reload} />
      <Listing
        data={keys}
        columns={["Name", "Fingerprint", "Added"]}
        cells={(key) => [key.name, <code>{key.fingerprint}</code>, <Ago at={key.created_at} />]}
        empty="There are no saved SSH keys yet."
        removal={{
          verb: "Remove",
          name: (key) => key.name,
          work: (key) => send("DELETE", `/api/ssh-key/${key.id}/`),
          command: (key) => commands.removeSshKey(key.name),
          words: () => "Instances that have the key keep it. The key is no longer offered for new ones.",
        }}
      />
      <Command line={commands.sshKeys} note="lists the keys in a terminal." />
    </>
  );
}

function NewKey({ onMade }: { onMade: () => Promise<void> }) {
  const name = useSignal("");
  const key = useSignal("");
  const action = useAction();
  const fields = action.problem?.fields ?? {};
  const save = async () => {
    await send("POST", "/api/ssh-key/", { name: name.value, public_key: key.value });
    name.value = key.value = "";
    await onMade();
  };
  // The comment of a key is most often its best name.
  const suggest = (text: string) => {
    name.value ||= text.trim().split(/\s+/)[2] ?? "";
  };
  return (
    <Form
      title="New SSH key"
      verb="Save SSH key"
      action={action}
      work={save}
      ready={Boolean(key.value.trim())}
      command={commands.newSshKey(name.value)}
      fields={["name", "public_key"]}
    >
      <Input label="Name" value={name} errors={fields["name"]} width="mid" placeholder="laptop" />
      <Input
        label="Public key"
        value={key}
        errors={fields["public_key"]}
        hint={
          <>
            One line, from a file such as <code>~/.ssh/id_ed25519.pub</code>.
          </>
        }
        width="mono"
        rows={3}
        placeholder="ssh-ed25519 AAAA… me@laptop"
        onChange={suggest}
      />
    </Form>
  );
}
