// The shares of an instance: its page, and ports inside it, for other visitors.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { send } from "../api";
import { commands } from "../commands";
import type { InstanceInList, Share, ShareRequest } from "../shapes";
import { useAction } from "./action";
import { announce, Copy } from "./basics";
import { useData } from "./data";
import { Expires, Expiry, inDays } from "./expiry";
import { Form, Input, Select } from "./form";
import { Listing } from "./listing";

type Access = ShareRequest["access"];

const VISITORS: [Access, string][] = [
  ["users", "Users with these e-mail addresses"],
  ["signed_in", "All users of this service"],
  ["owner", "Only you"],
  ["public", "Everyone, without an account"],
];

const ENDS: [string, number | null][] = [
  ["Never", null],
  ["In a day", 1],
  ["In 7 days", 7],
  ["In 30 days", 30],
];

const what = (share: Share) => (share.port === null ? "Page" : `Port ${share.port}`);

function visitors(share: Share): string {
  if (share.access === "users") return share.users.join(", ");
  return share.access === "signed_in" ? "all users" : share.access === "public" ? "everyone" : "only you";
}

/** `changed` is a number that grows with each event of the instance. */
export function Shares({ instance: i, changed }: { instance: InstanceInList; changed: number | undefined }) {
  const path = `/api/instance/${i.uuid}/share/`;
  const shares = useData<Share[]>(path);
  useEffect(() => void shares.reload(), [changed]);
  return (
    <>
      <NewShare instance={i} path={path} onMade={shares.reload} />
      <Listing
        data={shares}
        columns={["Shared", "Visitors", "Ends", "Address"]}
        cells={(share) => [
          what(share),
          visitors(share),
          share.expires_at ? <Expiry at={share.expires_at} /> : "never",
          share.url && (
            <>
              <a href={share.url} target="_blank" rel="noreferrer">
                {share.url}
              </a>{" "}
              <Copy text={share.url} label="Copy link" what="the link" />
            </>
          ),
        ]}
        empty="Nothing of this instance is shared."
        removal={{
          verb: "Stop sharing",
          name: what,
          work: (share) => send("DELETE", `${path}${share.id}/`),
          command: (share) => commands.withdraw(i.name, share.port),
          words: () => "Its visitors lose their connections at once.",
        }}
      />
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
  const save = async () => {
    const text = port.value.trim();
    await send<Share>("POST", path, {
      // Text that is no number goes to the server as it is, which explains it.
      ...(text && { port: /^\d+$/.test(text) ? Number(text) : text }),
      access: access.value,
      ...(access.value === "users" && { users: emails }),
      ...(days.value && { expires_at: inDays(days.value) }),
    });
    port.value = users.value = "";
    announce("Shared");
    await onMade();
  };
  const fields = action.problem?.fields ?? {};
  return (
    <Form
      title="Share"
      verb="Share it"
      action={action}
      work={save}
      command={commands.share(i.name, port.value.trim(), access.value, emails, days.value)}
      fields={["port", "access", "users", "expires_at"]}
    >
      <div class="row">
        <Input
          label="Port"
          value={port}
          errors={fields["port"]}
          hint={hasPage ? `Empty for the page of ${i.flavor}.` : "The port of a server inside the instance."}
          width="short"
          mode="numeric"
          placeholder={hasPage ? "" : "8000"}
        />
        <Select
          label="Visitors"
          value={access.value}
          options={VISITORS}
          errors={fields["access"]}
          onChange={(value) => (access.value = value as Access)}
        />
        <Expires label="Ends" days={days} spans={ENDS} errors={fields["expires_at"]} />
      </div>
      {access.value === "users" && (
        <Input
          label="E-mail addresses"
          value={users}
          errors={fields["users"]}
          hint="Separated by commas or spaces."
          rows={2}
          placeholder="bob@example.com"
        />
      )}
      {isPage && access.value !== "owner" && (
        <p class="alert" role="note">
          A visitor of this page may run programs as you, with your files and your secrets.
        </p>
      )}
    </Form>
  );
}
