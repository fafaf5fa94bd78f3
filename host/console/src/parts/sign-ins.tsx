// The passkeys of the account, and its identities at providers.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { go, returnTo } from "../router";
import type { Identity, Passkey, SignInOptions } from "../shapes";
import { forget } from "../store";
import { rest, useAction, type Action } from "./action";
import { Ago, Alert, Dialog } from "./basics";
import { useData } from "./data";
import { Form, Input } from "./form";
import { Listing } from "./listing";
import { knowsPasskeys, makePasskey } from "./passkey";

const NAME = "Name of the passkey";

/** A refused change; one that needs a recent sign-in has a button for it, which comes back to the page. */
export function Refused({ action, fields }: { action: Action; fields: string[] }) {
  const leaving = useAction();
  const again = () =>
    leaving.run(async () => {
      await send("POST", "/auth/sign-out/");
      forget();
      returnTo.value = location.pathname + location.search + location.hash;
      go("/sign-in");
    });
  return (
    <>
      <Alert words={leaving.problem?.message ?? rest(action.problem, fields)} />
      {action.problem?.status === 403 && (
        <div class="buttons">
          <button type="button" onClick={() => void again()}>
            Sign in again
          </button>
        </div>
      )}
    </>
  );
}

export function Passkeys() {
  const offers = useData<SignInOptions>("/auth/options/");
  const passkeys = useData<Passkey[]>("/auth/passkey/");
  const renaming = useSignal<Passkey | null>(null);
  const name = useSignal("");
  const action = useAction();
  const add = async () => {
    const credential = await makePasskey("/auth/passkey/options/");
    await send("POST", "/auth/passkey/", { name: name.value || null, credential });
    name.value = "";
    await passkeys.reload();
  };
  const canAdd = offers.value?.passkey && knowsPasskeys;
  return (
    <section class="panel form">
      <h2>Passkeys</h2>
      <p class="muted">A passkey signs you in with the lock of a device or a security key, without a password.</p>
      <Listing
        data={passkeys}
        columns={["Name", "Last used"]}
        cells={(passkey) => [
          <>
            {passkey.name}
            {!passkey.usable && <span class="muted"> (of an earlier address of the console)</span>}
          </>,
          passkey.last_used_at ? <Ago at={passkey.last_used_at} /> : "never",
        ]}
        buttons={(passkey) => (
          <button
            type="button"
            class="small"
            aria-label={`Rename ${passkey.name}`}
            onClick={() => (renaming.value = passkey)}
          >
            Rename
          </button>
        )}
        empty="There are no passkeys yet."
        removal={{
          verb: "Remove",
          name: (passkey) => passkey.name,
          work: (passkey) => send("DELETE", `/auth/passkey/${passkey.id}/`),
          words: () =>
            "The passkey no longer signs you in. Your device may offer it until you delete it there, too.",
        }}
      />
      {canAdd && (
        <Form
          plain
          verb="Add a passkey"
          action={action}
          work={add}
          fields={[]}
          refusal={<Refused action={action} fields={["name"]} />}
        >
          <Input label={NAME} value={name} errors={action.problem?.fields["name"]} width="mid" placeholder="Laptop" />
        </Form>
      )}
      {offers.value && !canAdd && (
        <p class="muted">
          {offers.value.passkey
            ? "This browser knows no passkeys."
            : "Passkeys need an address of the console with a host name, and https unless it is localhost."}
        </p>
      )}
      {renaming.value && <Rename passkey={renaming.value} onDone={passkeys.reload} onClose={() => (renaming.value = null)} />}
    </section>
  );
}

function Rename({ passkey, onDone, onClose }: { passkey: Passkey; onDone: () => Promise<void>; onClose: () => void }) {
  const name = useSignal(passkey.name);
  const action = useAction();
  const save = async () => {
    await send("PATCH", `/auth/passkey/${passkey.id}/`, { name: name.value });
    await onDone();
  };
  return (
    <Dialog title={`Rename ${passkey.name}`} onClose={onClose}>
      <Form
        plain
        verb="Rename"
        action={action}
        work={save}
        ready={Boolean(name.value)}
        fields={["name"]}
        onClose={onClose}
      >
        <Input label={NAME} value={name} errors={action.problem?.fields["name"]} />
      </Form>
    </Dialog>
  );
}

/** The identities; nothing without any. */
export function Identities({ all, onChange }: { all: Identity[]; onChange: () => Promise<void> }) {
  if (all.length === 0) return null;
  return (
    <section class="panel form">
      <h2>Linked accounts</h2>
      <p class="muted">The account at a provider that signs you in.</p>
      <Listing
        data={{ value: all, error: null, reload: onChange }}
        columns={["Provider", "Address", "Linked"]}
        cells={(identity) => [host(identity.issuer), identity.email, <Ago at={identity.linked_at} />]}
        empty=""
        removal={{
          verb: "Unlink",
          name: (identity) => host(identity.issuer),
          work: (identity) => send("DELETE", `/auth/identity/${identity.id}/`),
          words: ({ email }) =>
            `The account ${email} no longer signs you in. Its next sign-in links it again.`,
        }}
      />
    </section>
  );
}

function host(issuer: string): string {
  try {
    return new URL(issuer).host;
  } catch {
    return issuer;
  }
}
