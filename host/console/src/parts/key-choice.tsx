// The choice of an SSH public key: a saved one, a pasted one, or none.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { SshKey } from "../shapes";
import { Field } from "./basics";
import { useData } from "./data";
import { Select } from "./form";

interface Props {
  value: string;
  errors: string[] | undefined;
  onChange: (key: string) => void;
}

const NONE = "none";
const PASTE = "paste";

/** Label of a saved key: its name, its kind, and the beginning of its fingerprint. */
function label(key: SshKey): string {
  const kind = key.public_key.split(" ")[0]?.replace("ssh-", "") ?? "";
  return `${key.name} · ${kind} · ${key.fingerprint.slice(0, 15)}…`;
}

export function KeyChoice({ value, errors, onChange }: Props) {
  const saved = useData<SshKey[]>("/api/ssh-key/", "ssh-keys").value;
  const choice = useSignal(NONE);
  useEffect(() => {
    const first = saved?.[0];
    if (!first || value) return;
    choice.value = first.id;
    onChange(first.public_key);
  }, [saved]);
  const choose = (id: string) => {
    choice.value = id;
    onChange(saved?.find((key) => key.id === id)?.public_key ?? "");
  };
  return (
    <>
      <Select
        label="SSH key"
        width="mid"
        value={choice.value}
        options={[
          ...(saved ?? []).map((key) => [key.id, label(key)] as const),
          [PASTE, "Paste another key"],
          [NONE, "No key, password only"],
        ]}
        onChange={choose}
        errors={choice.value === PASTE ? undefined : errors}
        hint={
          choice.value === NONE ? (
            "You log in with the password that the instance shows."
          ) : (
            <>
              Saved keys are in <a href="/settings/ssh-keys">Settings → SSH keys</a>.
            </>
          )
        }
      />
      {choice.value === PASTE && (
        <Field label="Public key" errors={errors} hint="One line, from a file such as ~/.ssh/id_ed25519.pub.">
          {(attributes) => (
            <textarea
              {...attributes}
              class="mono"
              rows={3}
              spellcheck={false}
              placeholder="ssh-ed25519 AAAA… me@laptop"
              value={value}
              onInput={(event) => onChange(event.currentTarget.value.trim())}
            />
          )}
        </Field>
      )}
    </>
  );
}
