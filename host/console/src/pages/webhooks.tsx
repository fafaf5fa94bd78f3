// Settings → Webhooks: addresses that get each event.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { useAction } from "../parts/action";
import { Ago, Alert, announce, Command, Head } from "../parts/basics";
import { useData } from "../parts/data";
import { Form, Input } from "../parts/form";
import { Confirm } from "../parts/remove";
import { Secret } from "../parts/secret";
import type { Webhook, WebhookDelivery } from "../shapes";

export function Webhooks() {
  const hooks = useData<Webhook[]>("/api/webhook/", "webhooks");
  const secret = useSignal<string | null>(null);
  const removing = useSignal<Webhook | null>(null);
  const open = useSignal<string | null>(null);
  return (
    <>
      <Head title="Webhooks" />
      <p class="lead">
        A webhook gets each event by POST, signed as Standard Webhooks describes, and again until it answers.
      </p>
      {secret.value && (
        <Secret what="Signing secret" text={secret.value} onDone={() => (secret.value = null)} />
      )}
      <NewHook
        onMade={(hook) => {
          secret.value = hook.secret ?? null;
          void hooks.reload();
        }}
      />
      <Alert words={hooks.error} />
      {hooks.value?.map((hook) => (
        <section class="panel hook" key={hook.id} aria-label={hook.url}>
          <div class="hook-head">
            <div>
              <code>{hook.url}</code>
              <small class="muted">
                {hook.types?.length ? hook.types.join(", ") : "all events"} · added <Ago at={hook.created_at} />
                {hook.disabled_at && <span class="error"> · turned off after failures</span>}
              </small>
            </div>
            <HookActions
              hook={hook}
              isOpen={open.value === hook.id}
              onToggle={() => (open.value = open.value === hook.id ? null : hook.id)}
              onSecret={(text) => (secret.value = text)}
              onRemove={() => (removing.value = hook)}
            />
          </div>
          {open.value === hook.id && <Deliveries hook={hook} />}
        </section>
      ))}
      {hooks.value?.length === 0 && <p class="none">There are no webhooks yet.</p>}
      <Command line={commands.webhooks} note="lists the webhooks in a terminal." />
      {removing.value && (
        <Confirm
          title="Remove the webhook"
          verb="Remove"
          command={commands.removeWebhook(removing.value.id)}
          onClose={() => (removing.value = null)}
          work={async () => {
            await send("DELETE", `/api/webhook/${removing.value?.id}/`);
            await hooks.reload();
          }}
        >
          <code>{removing.value.url}</code> gets no more events, and pending deliveries are dropped.
        </Confirm>
      )}
    </>
  );
}

interface ActionsProps {
  hook: Webhook;
  isOpen: boolean;
  onToggle: () => void;
  onSecret: (secret: string) => void;
  onRemove: () => void;
}

function HookActions({ hook, isOpen, onToggle, onSecret, onRemove }: ActionsProps) {
  const action = useAction();
  const test = () =>
    action.run(async () => {
      await send("POST", `/api/webhook/${hook.id}/test/`);
      announce("A test event is on its way");
    });
  const rotate = () =>
    action.run(async () => {
      const { secret } = await send<Webhook>("POST", `/api/webhook/${hook.id}/rotate/`);
      if (secret) onSecret(secret);
    });
  return (
    <div class="actions">
      <button type="button" class="small" disabled={action.busy} onClick={test}>
        Send a test
      </button>
      <button type="button" class="small" disabled={action.busy} onClick={rotate}>
        New secret
      </button>
      <button type="button" class="small" aria-expanded={isOpen} onClick={onToggle}>
        Deliveries
      </button>
      <button type="button" class="small" onClick={onRemove}>
        Remove
      </button>
      <Alert words={action.problem?.message ?? null} />
    </div>
  );
}

function Deliveries({ hook }: { hook: Webhook }) {
  const list = useData<WebhookDelivery[]>(`/api/webhook/${hook.id}/delivery/?limit=20`, "webhooks");
  const action = useAction();
  const again = (delivery: WebhookDelivery) =>
    action.run(async () => {
      await send("POST", `/api/webhook/${hook.id}/delivery/${delivery.id}/redeliver/`);
      await list.reload();
    });
  return (
    <>
      <Alert words={list.error ?? action.problem?.message ?? null} />
      <ul class="lines">
        {list.value?.map((delivery) => (
          <li key={`${delivery.id}-${delivery.attempt}`}>
            <span class="number">{delivery.event === null ? "test" : `event ${delivery.event}`}</span>
            <span class={delivery.state === "failed" ? "error" : ""}>
              {delivery.state}
              {delivery.status ? ` · ${delivery.status}` : ""}
              {delivery.error ? ` · ${delivery.error}` : ""}
            </span>
            <span class="muted">
              {delivery.attempt > 0 && `attempt ${delivery.attempt}, `}
              <Ago at={delivery.at} />
            </span>
            <button type="button" class="small" disabled={action.busy} onClick={() => void again(delivery)}>
              Send again
            </button>
          </li>
        ))}
      </ul>
      {list.value?.length === 0 && <p class="muted">Nothing was delivered yet.</p>}
    </>
  );
}

function NewHook({ onMade }: { onMade: (hook: Webhook) => void }) {
  const url = useSignal("");
  const types = useSignal("");
  const action = useAction();
  const chosen = types.value.split(/[\s,]+/).filter(Boolean);
  const body = { url: url.value.trim(), ...(chosen.length ? { types: chosen } : {}) };
  const make = async () => {
    onMade(await send<Webhook>("POST", "/api/webhook/", body));
    url.value = types.value = "";
  };
  const fields = action.problem?.fields ?? {};
  return (
    <Form
      title="New webhook"
      verb="Add webhook"
      action={action}
      work={make}
      ready={Boolean(url.value.trim())}
      command={commands.newWebhook({ ...body, url: body.url || "https://example.org/wharf" })}
      fields={["url", "types"]}
    >
      <Input
        label="URL"
        value={url}
        errors={fields["url"]}
        hint="An HTTPS address that answers POST with a 2xx status."
        width="long"
        mode="url"
        placeholder="https://example.org/wharf"
      />
      <Input
        label="Types"
        value={types}
        errors={fields["types"]}
        hint="Such as ready, failed. Without types it gets all events."
        width="long"
      />
    </Form>
  );
}
