// Settings → Buckets: object stores of the user, with the backups in them.

import { type Signal, useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { useAction } from "../parts/action";
import { BackupList, useBackups, useBuckets } from "../parts/backups";
import { Ago, announce, Command, Facts, Head } from "../parts/basics";
import { Form, Input } from "../parts/form";
import { NameInput } from "../parts/instance-forms";
import { Listing } from "../parts/listing";
import { Confirm } from "../parts/remove";
import { Refused } from "../parts/sign-ins";
import { go } from "../router";
import type { Bucket } from "../shapes";

const pageOf = (bucket: Bucket) => `/settings/buckets/${bucket.name}`;

export function Buckets() {
  const buckets = useBuckets();
  return (
    <>
      <Head title="Buckets" />
      <p class="lead">
        A bucket of yours keeps backups of instances, in an object store that speaks S3. They outlive the
        instances, their hosts and this server.
      </p>
      <NewBucket onMade={buckets.reload} />
      <Listing
        data={buckets}
        columns={["Name", "Object store", "Backups", "Added"]}
        cells={(b) => [
          <a href={pageOf(b)}>{b.name}</a>,
          <>
            <code>{b.endpoint}</code>
            <small>
              {b.bucket}/{b.prefix}
            </small>
          </>,
          <span class="number">{b.n_backups}</span>,
          <Ago at={b.created_at} />,
        ]}
        empty="There are no buckets yet."
        removal={FORGET}
      />
      <Command line={commands.buckets} note="lists the buckets in a terminal." />
    </>
  );
}

const FORGET = {
  verb: "Forget",
  name: (bucket: Bucket) => bucket.name,
  command: (bucket: Bucket) => commands.forgetBucket(bucket.name),
  work: async (bucket: Bucket) => {
    await send("DELETE", `/api/bucket/${bucket.id}/`);
    announce(`Forgot ${bucket.name}`);
  },
  words: () => (
    <p>
      Its keys and the list of its backups go. <b>The backups stay in it</b>, and show again once you add it with their
      passphrase.
    </p>
  ),
};

/** One bucket, with its backups. */
export function BucketPage({ name }: { name: string }) {
  const { value: all, error } = useBuckets();
  const bucket = all?.find((b) => b.name === name || b.id === name);
  if (bucket) return <Shown bucket={bucket} />;
  if (!all && !error) return <Head title={name} />;
  return (
    <>
      <Head title={`There is no bucket ${name}`} />
      <p>
        {error} <a href="/settings/buckets">Show your buckets</a>
      </p>
    </>
  );
}

function Shown({ bucket: b }: { bucket: Bucket }) {
  const backups = useBackups("bucket", b.id);
  const forgetting = useSignal(false);
  return (
    <>
      <p class="crumb">
        <a href="/settings/buckets">Buckets</a> /
      </p>
      <Head title={b.name}>
        <button type="button" onClick={() => (forgetting.value = true)}>
          Forget
        </button>
      </Head>
      <section class="panel form" aria-label="Address">
        <Facts
          rows={[
            ["Endpoint", <code>{b.endpoint}</code>],
            ["Region", b.region],
            ["Bucket", b.bucket],
            ["Prefix", b.prefix],
            ["Added", <Ago at={b.created_at} />],
          ]}
        />
      </section>
      <BackupList backups={backups} empty="There are no backups in this bucket." inBucket />
      <Command line={commands.bucketContents(b.name)} note="lists these backups in a terminal." />
      {forgetting.value && (
        <Confirm
          title={`Forget ${b.name}`}
          verb="Forget"
          command={FORGET.command(b)}
          onClose={() => (forgetting.value = false)}
          work={async () => {
            await FORGET.work(b);
            go("/settings/buckets");
          }}
        >
          {FORGET.words()}
        </Confirm>
      )}
    </>
  );
}

const FIELDS = ["name", "endpoint", "region", "bucket", "prefix", "access_key_id", "secret_access_key", "passphrase"] as const;
type BucketField = (typeof FIELDS)[number];

function NewBucket({ onMade }: { onMade: () => Promise<void> }) {
  const values = Object.fromEntries(FIELDS.map((field) => [field, useSignal("")])) as Record<BucketField, Signal<string>>;
  const again = useSignal("");
  const action = useAction();
  const { name, endpoint, region, bucket, prefix, access_key_id, secret_access_key, passphrase } = values;
  const filled = FIELDS.flatMap((field) => {
    const text = values[field].value;
    const kept = field === "passphrase" ? text : text.trim();
    return kept ? [[field, kept] as const] : [];
  });
  const make = async () => {
    try {
      const made = await send<Bucket>("POST", "/api/bucket/", Object.fromEntries(filled));
      announce(`Added ${made.name}`);
      await onMade();
      go(pageOf(made));
    } finally {
      // The page forgets them also if they were refused.
      secret_access_key.value = passphrase.value = again.value = "";
    }
  };
  const errors = action.problem?.fields ?? {};
  const input = (label: string, field: BucketField, more: Partial<Parameters<typeof Input>[0]> = {}) => (
    <Input label={label} value={values[field]} errors={errors[field]} width="mid" onChange={action.clear} {...more} />
  );
  return (
    <Form
      title="Add a bucket"
      verb={action.busy ? "Looking into it" : "Add bucket"}
      action={action}
      work={make}
      ready={
        [name, endpoint, bucket, access_key_id, secret_access_key].every((text) => text.value.trim()) &&
        passphrase.value !== "" &&
        passphrase.value === again.value
      }
      command={commands.newBucket({
        name: name.value,
        endpoint: endpoint.value.trim(),
        bucket: bucket.value.trim(),
        region: region.value.trim(),
        prefix: prefix.value.trim(),
      })}
      fields={[...FIELDS]}
      refusal={<Refused action={action} fields={[...FIELDS]} />}
    >
      <div class="row">
        <NameInput name={name} action={action} placeholder="offsite" />
        {input("Endpoint", "endpoint", {
          mode: "url",
          hint: "The URL of the object store, without a path.",
          placeholder: "https://s3.example.org",
        })}
        {input("Bucket", "bucket", { hint: "Its name in the object store.", placeholder: "wharf-backups" })}
        {input("Region", "region", { width: "short", placeholder: "us-east-1" })}
        {input("Prefix", "prefix", { width: "short", placeholder: "wharf" })}
      </div>
      <div class="row">
        {input("Access key", "access_key_id", { hint: "It reads, writes, lists and deletes objects." })}
        {input("Secret of the access key", "secret_access_key", { secret: true })}
        {input("Passphrase", "passphrase", { secret: true, hint: "At least 12 characters." })}
        <Input
          label="Passphrase again"
          value={again}
          errors={passphrase.value.startsWith(again.value) ? undefined : ["must be the same"]}
          width="mid"
          secret
        />
      </div>
      <p class="muted">
        If the bucket has backups, the passphrase is theirs. <b>Keep it elsewhere.</b> Wharf does not store it, and no
        other server can read the backups without it.
      </p>
    </Form>
  );
}
