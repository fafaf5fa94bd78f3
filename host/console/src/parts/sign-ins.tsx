// The passkeys of the account, and its identities at providers.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { send } from "../api";
import { go, returnTo } from "../router";
import type { Identity, Passkey, SignInOptions } from "../shapes";
import { forget } from "../store";
import { rest, useAction, type Action } from "./action";
import { Ago, Alert, Dialog, Field } from "./basics";
import { useData } from "./data";
import { knowsPasskeys, makePasskey } from "./passkey";
import { Confirm } from "./remove";

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
  const removing = useSignal<Passkey | null>(null);
  const name = useSignal("");
  const action = useAction();
  const add = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      const credential = await makePasskey("/auth/passkey/options/");
      await send("POST", "/auth/passkey/", { name: name.value || null, credential });
      name.value = "";
      await passkeys.reload();
    });
  };
  const canAdd = offers.value?.passkey && knowsPasskeys;
  return (
    <section class="panel form">
      <h2>Passkeys</h2>
      <p class="muted">A passkey signs you in with the lock of a device or a security key, without a password.</p>
      <Alert words={passkeys.error} />
      {passkeys.value && passkeys.value.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Last used</th>
              <th scope="col">
                <span class="unseen">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {passkeys.value.map((passkey) => (
              <tr key={passkey.id}>
                <th scope="row">
                  {passkey.name}
                  {!passkey.usable && <span class="muted"> (of an earlier address of the console)</span>}
                </th>
                <td>{passkey.last_used_at ? <Ago at={passkey.last_used_at} /> : "never"}</td>
                <td class="number">
                  <button
                    type="button"
                    class="small"
                    aria-label={`Rename ${passkey.name}`}
                    onClick={() => (renaming.value = passkey)}
                  >
                    Rename
                  </button>{" "}
                  <button
                    type="button"
                    class="small"
                    aria-label={`Remove ${passkey.name}`}
                    onClick={() => (removing.value = passkey)}
                  >
                    Remove
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {passkeys.value?.length === 0 && <p class="none">There are no passkeys yet.</p>}
      {canAdd && (
        <form onSubmit={add} noValidate>
          <Field label={NAME} errors={action.problem?.fields["name"]}>
            {(attributes) => (
              <input
                {...attributes}
                class="mid"
                autocomplete="off"
                placeholder="Laptop"
                value={name.value}
                onInput={(event) => (name.value = event.currentTarget.value)}
              />
            )}
          </Field>
          <Refused action={action} fields={["name"]} />
          <div class="buttons">
            <button class="primary" disabled={action.busy}>
              Add a passkey
            </button>
          </div>
        </form>
      )}
      {offers.value && !canAdd && (
        <p class="muted">
          {offers.value.passkey
            ? "This browser knows no passkeys."
            : "Passkeys need an address of the console with a host name, and https unless it is localhost."}
        </p>
      )}
      {renaming.value && <Rename passkey={renaming.value} onDone={passkeys.reload} onClose={() => (renaming.value = null)} />}
      {removing.value && (
        <Confirm
          title={`Remove ${removing.value.name}`}
          verb="Remove"
          onClose={() => (removing.value = null)}
          work={async () => {
            await send("DELETE", `/auth/passkey/${removing.value?.id}/`);
            await passkeys.reload();
          }}
        >
          The passkey no longer signs you in. Your device may offer it until you delete it there, too.
        </Confirm>
      )}
    </section>
  );
}

function Rename({ passkey, onDone, onClose }: { passkey: Passkey; onDone: () => Promise<void>; onClose: () => void }) {
  const name = useSignal(passkey.name);
  const action = useAction();
  const save = async (event: Event) => {
    event.preventDefault();
    const done = await action.run(async () => {
      await send("PATCH", `/auth/passkey/${passkey.id}/`, { name: name.value });
      await onDone();
    });
    if (done) onClose();
  };
  return (
    <Dialog title={`Rename ${passkey.name}`} onClose={onClose}>
      <form onSubmit={(event) => void save(event)} noValidate>
        <Field label={NAME} errors={action.problem?.fields["name"]}>
          {(attributes) => (
            <input
              {...attributes}
              autocomplete="off"
              value={name.value}
              onInput={(event) => (name.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Alert words={rest(action.problem, ["name"])} />
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Keep
          </button>
          <button class="primary" disabled={action.busy || !name.value}>
            Rename
          </button>
        </div>
      </form>
    </Dialog>
  );
}

/** The identities; nothing without any. */
export function Identities({ all, onChange }: { all: Identity[]; onChange: () => Promise<void> }) {
  const removing = useSignal<Identity | null>(null);
  if (all.length === 0) return null;
  return (
    <section class="panel form">
      <h2>Linked accounts</h2>
      <p class="muted">The account at a provider that signs you in.</p>
      <table class="list">
        <thead>
          <tr>
            <th scope="col">Provider</th>
            <th scope="col">Address</th>
            <th scope="col">Linked</th>
            <th scope="col">
              <span class="unseen">Action</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {all.map((identity) => (
            <tr key={identity.id}>
              <th scope="row">{host(identity.issuer)}</th>
              <td>{identity.email}</td>
              <td>
                <Ago at={identity.linked_at} />
              </td>
              <td class="number">
                <button
                  type="button"
                  class="small"
                  aria-label={`Unlink ${host(identity.issuer)}`}
                  onClick={() => (removing.value = identity)}
                >
                  Unlink
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {removing.value && (
        <Confirm
          title={`Unlink ${host(removing.value.issuer)}`}
          verb="Unlink"
          onClose={() => (removing.value = null)}
          work={async () => {
            await send("DELETE", `/auth/identity/${removing.value?.id}/`);
            await onChange();
          }}
        >
          {words(removing.value)}
        </Confirm>
      )}
    </section>
  );
}

function words(identity: Identity): ComponentChildren {
  return `The account ${identity.email} no longer signs you in. Its next sign-in links it again.`;
}

function host(issuer: string): string {
  try {
    return new URL(issuer).host;
  } catch {
    return issuer;
  }
}
