// The shares of an instance: its page, and ports inside it, for other visitors.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { send } from "../api";
import { commands } from "../commands";
import type { InstanceInList, Share, ShareRequest } from "../shapes";
import { rest, useAction } from "./action";
import { Alert, announce, Command, Copy, Field } from "./basics";
import { useData } from "./data";
import { Expiry } from "./expiry";
import { Confirm } from "./remove";

type Access = ShareRequest["access"];

const VISITORS: [Access, string][] = [
  ["users", "Users with these e-mail addresses"],
  ["signed_in", "All users of this service"],
  ["owner", "Only you"],
  ["public", "Everyone, without an account"],
];

const DAY = 86_400_000;
const ENDS: [string, number | null][] = [
  ["Never", null],
  ["In a day", 1],
  ["In 7 days", 7],
  ["In 30 days", 30],
];

const FIELDS = ["port", "access", "users", "expires_at"];

const what = (share: Share) => (share.port === null ? "Page" : `Port ${share.port}`);

function visitors(share: Share): string {
  if (share.access === "users") return share.users.join(", ");
  return share.access === "signed_in" ? "all users" : share.access === "public" ? "everyone" : "only you";
}

/** `changed` is a number that grows with each event of the instance. */
export function Shares({ instance: i, changed }: { instance: InstanceInList; changed: number | undefined }) {
  const path = `/api/instance/${i.uuid}/share/`;
  const shares = useData<Share[]>(path);
  const removing = useSignal<Share | null>(null);
  useEffect(() => void shares.reload(), [changed]);
  return (
    <>
      <NewShare instance={i} path={path} onMade={shares.reload} />
      <Alert words={shares.error} />
      {shares.value && shares.value.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Shared</th>
              <th scope="col">Visitors</th>
              <th scope="col">Ends</th>
              <th scope="col">Address</th>
              <th scope="col">
                <span class="unseen">Action</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {shares.value.map((share) => (
              <tr key={share.id}>
                <th scope="row">{what(share)}</th>
                <td>{visitors(share)}</td>
                <td>{share.expires_at ? <Expiry at={share.expires_at} /> : "never"}</td>
                <td>
                  {share.url && (
                    <>
                      <a href={share.url} target="_blank" rel="noreferrer">
                        {share.url}
                      </a>{" "}
                      <Copy text={share.url} label="Copy link" what="the link" />
                    </>
                  )}
                </td>
                <td class="number">
                  <button
                    type="button"
                    class="small"
                    aria-label={`Stop sharing ${what(share)}`}
                    onClick={() => (removing.value = share)}
                  >
                    Stop sharing
                  </button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {shares.value?.length === 0 && <p class="none">Nothing of this instance is shared.</p>}
      {removing.value && (
        <Confirm
          title={`Stop sharing ${what(removing.value)}`}
          verb="Stop sharing"
          command={commands.withdraw(i.name, removing.value.port)}
          onClose={() => (removing.value = null)}
          work={async () => {
            await send("DELETE", `${path}${removing.value?.id}/`);
            await shares.reload();
          }}
        >
          Its visitors lose their connections at once.
        </Confirm>
      )}
    </>
  );
}

function NewShare({ instance: i, path, onMade }: { instance: InstanceInList; path: string; onMade: () => Promise<void> }) {
  const hasPage = Boolean(i.webapp_url);
  const port = useSignal("");
  const access = useSignal<Access>("users");
  const users = useSignal("");
  const days = useSignal<number | null>(null);
  const action = useAction();
  const isPage = hasPage && port.value.trim() === "";
  const emails = users.value.split(/[\s,;]+/).filter(Boolean);
  const save = (event: Event) => {
    event.preventDefault();
    const text = port.value.trim();
    void action.run(async () => {
      await send<Share>("POST", path, {
        // Text that is no number goes to the server as it is, which explains it.
        ...(text && { port: /^\d+$/.test(text) ? Number(text) : text }),
        access: access.value,
        ...(access.value === "users" && { users: emails }),
        ...(days.value && { expires_at: new Date(Date.now() + days.value * DAY).toISOString() }),
      });
      port.value = users.value = "";
      announce("Shared");
      await onMade();
    });
  };
  const fields = action.problem?.fields ?? {};
  return (
    <form class="panel form" onSubmit={save} noValidate>
      <h2>Share</h2>
      <div class="row">
        <Field
          label="Port"
          errors={fields["port"]}
          hint={hasPage ? `Empty for the page of ${i.flavor}.` : "The port of a server inside the instance."}
        >
          {(attributes) => (
            <input
              {...attributes}
              class="short"
              inputMode="numeric"
              placeholder={hasPage ? "" : "8000"}
              value={port.value}
              onInput={(event) => (port.value = event.currentTarget.value)}
            />
          )}
        </Field>
        <Field label="Visitors" errors={fields["access"]}>
          {(attributes) => (
            <select
              {...attributes}
              value={access.value}
              onChange={(event) => (access.value = event.currentTarget.value as Access)}
            >
              {VISITORS.map(([value, words]) => (
                <option key={value} value={value}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
        <Field label="Ends" errors={fields["expires_at"]}>
          {(attributes) => (
            <select
              {...attributes}
              value={days.value ?? ""}
              onChange={(event) => (days.value = Number(event.currentTarget.value) || null)}
            >
              {ENDS.map(([words, n]) => (
                <option key={words} value={n ?? ""}>
                  {words}
                </option>
              ))}
            </select>
          )}
        </Field>
      </div>
      {access.value === "users" && (
        <Field label="E-mail addresses" errors={fields["users"]} hint="Separated by commas or spaces.">
          {(attributes) => (
            <textarea
              {...attributes}
              rows={2}
              spellcheck={false}
              placeholder="bob@example.com"
              value={users.value}
              onInput={(event) => (users.value = event.currentTarget.value)}
            />
          )}
        </Field>
      )}
      {isPage && access.value !== "owner" && (
        <p class="alert" role="note">
          A visitor of this page may run programs as you, with your files and your secrets.
        </p>
      )}
      <Alert words={rest(action.problem, FIELDS)} />
      <Command line={commands.share(i.name, port.value.trim(), access.value, emails, days.value)} />
      <div class="buttons">
        <button class="primary" disabled={action.busy}>
          Share it
        </button>
      </div>
    </form>
  );
}
