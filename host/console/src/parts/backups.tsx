// The backups of an instance, of a volume or in a bucket: sending, verifying, restoring, and the plan that makes them.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { send } from "../api";
import { commands } from "../commands";
import { bytes, exact } from "../format";
import type { Backup, Bucket, InstanceInList, Volume } from "../shapes";
import { find } from "../store";
import { useAction } from "./action";
import { Ago, Alert, announce, Command, State } from "./basics";
import { CreateFrom } from "./create-from";
import { type Data, useData } from "./data";
import { Form } from "./form";
import { Listing } from "./listing";
import { BucketChoice, Plan } from "./plan";
import { VolumeFrom } from "./volume-from";

/** Progress changes no list, so it is read this often. */
const PROGRESS_MS = 5000;

/** The buckets of the user. Their numbers of backups change with these. */
export const useBuckets = () => useData<Bucket[]>("/api/bucket/", "buckets", "backups");

/** The backups of an instance or of a volume, or those in a bucket. */
export function useBackups(of: "instance" | "volume" | "bucket", id: string): Data<Backup[]> {
  const data = useData<Backup[]>(`/api/backup/?${of}=${id}`, "backups");
  const busy = Boolean(data.value?.some((b) => b.state === "running" || b.verifying));
  useEffect(() => {
    if (!busy) return;
    const timer = setInterval(() => void data.reload(), PROGRESS_MS);
    return () => clearInterval(timer);
  }, [id, busy]);
  return data;
}

export function InstanceBackups({ instance: i }: { instance: InstanceInList }) {
  const backups = useBackups("instance", i.uuid);
  const { value: buckets, error } = useBuckets();
  if (i.resource_type === "vm") return <p class="none">Virtual machines have no backups.</p>;
  if (!buckets) return <Alert words={error} />;
  if (buckets.length === 0) return <NoBuckets />;
  return (
    <>
      <Make
        path={`/api/instance/${i.uuid}/backup/`}
        command={(bucket) => commands.backup(i.name, bucket)}
        buckets={buckets}
        onMade={backups.reload}
      >
        A backup is a copy of the disk, without volumes, in a bucket of yours. It outlives the instance and its host.
        Wharf takes a snapshot for it, and deletes that at the end.
      </Make>
      <BackupList backups={backups} empty="This instance has no backups." />
      <Plan
        what="backup"
        path={`/api/instance/${i.uuid}/backup-plan/`}
        command={(...plan) => commands.backupPlan(i.name, ...plan)}
        possible
        buckets={buckets}
      />
      <Command line={commands.backups(i.name)} note="lists these backups in a terminal." />
    </>
  );
}

export function VolumeBackups({ volume: v }: { volume: Volume }) {
  const backups = useBackups("volume", v.id);
  const { value: buckets, error } = useBuckets();
  return (
    <section>
      <h2 class="section">Backups</h2>
      {!buckets ? (
        <Alert words={error} />
      ) : buckets.length === 0 ? (
        <NoBuckets />
      ) : (
        <Make
          path={`/api/volume/${v.id}/backup/`}
          command={(bucket) => commands.volumeBackup(v.name, bucket)}
          buckets={buckets}
          onMade={backups.reload}
        >
          A backup is a copy of the volume in a bucket of yours. It outlives the volume and its host. Some hosts copy a
          volume only while the instance that writes it is stopped.
        </Make>
      )}
      <BackupList backups={backups} empty="This volume has no backups." />
      {buckets && buckets.length > 0 && (
        <Plan
          what="backup"
          path={`/api/volume/${v.id}/backup-plan/`}
          command={(...plan) => `${commands.backupPlan(v.name, ...plan)} --volume`}
          possible
          buckets={buckets}
        />
      )}
    </section>
  );
}

function NoBuckets() {
  return (
    <p class="none">
      A backup goes into a bucket of yours. <a href="/settings/buckets">Add a bucket</a>
    </p>
  );
}

interface MakeProps {
  path: string;
  command: (bucket: string) => string;
  buckets: Bucket[];
  children: ComponentChildren;
  onMade: () => Promise<void>;
}

function Make({ path, command, buckets, children, onMade }: MakeProps) {
  const chosen = useSignal("");
  const action = useAction();
  const bucket = chosen.value || (buckets[0]?.name ?? "");
  const make = async () => {
    await send("POST", path, { bucket });
    announce("The backup is being made");
    await onMade();
  };
  return (
    <Form
      title="Back up now"
      verb="Back up"
      action={action}
      work={make}
      command={command(bucket)}
      fields={["bucket"]}
    >
      <p class="muted">{children}</p>
      <div class="row">
        <BucketChoice value={bucket} buckets={buckets} action={action} onChange={(name) => (chosen.value = name)} />
      </div>
    </Form>
  );
}

/** What the deletion of a backup ends, by its state. */
const LOST: Record<Backup["state"], string> = {
  running: "It ends, and what was sent of it is deleted.",
  done: "The copy in the bucket is lost, and nobody can bring it back.",
  failed: "Nothing of it is in the bucket.",
};

interface ListProps {
  backups: Data<Backup[]>;
  empty: string;
  /** Whether they are those in one bucket, of anything. */
  inBucket?: boolean;
}

/** Backups, with what can be done with each. */
export function BackupList({ backups, empty, inBucket = false }: ListProps) {
  const action = useAction();
  const restoring = useSignal<Backup | null>(null);
  const of = restoring.value;
  const verify = (b: Backup) =>
    action.run(async () => {
      await send("POST", `/api/backup/${b.id}/verify/`);
      announce("The backup is being verified");
      await backups.reload();
    });
  const named = (b: Backup) =>
    `the backup${inBucket ? ` of ${b.instance_name ?? b.volume_name}` : ""} of ${exact(b.created_at)}`;
  return (
    <>
      <Alert words={action.problem?.message ?? null} />
      <Listing
        data={backups}
        columns={["Made", "State", inBucket ? "Of" : "Bucket", "Size", "Verified"]}
        cells={(b) => [
          <>
            <Ago at={b.created_at} />
            {b.planned && <small>by the plan</small>}
          </>,
          <>
            <State state={b.state === "running" ? "sending" : b.state} />
            {(b.reason || b.progress) && <small>{b.reason ?? b.progress}</small>}
          </>,
          inBucket ? <Source backup={b} /> : <a href={`/settings/buckets/${b.bucket_name}`}>{b.bucket_name}</a>,
          <>
            <span class="number">{b.object_bytes === null ? "–" : bytes(b.object_bytes)}</span>
            {b.content_bytes !== null && <small>of&nbsp;{bytes(b.content_bytes)}</small>}
          </>,
          b.verifying ? "under way" : b.verified_at ? <Ago at={b.verified_at} /> : "–",
        ]}
        empty={empty}
        buttons={(b) =>
          b.state === "done" && (
            <>
              <button
                type="button"
                class="small"
                aria-label={`Restore ${named(b)}`}
                onClick={() => (restoring.value = b)}
              >
                Restore
              </button>{" "}
              <button
                type="button"
                class="small"
                aria-label={`Verify ${named(b)}`}
                disabled={action.busy || b.verifying}
                onClick={() => void verify(b)}
              >
                Verify
              </button>
            </>
          )
        }
        removal={{
          verb: "Delete",
          name: named,
          work: (b) => send("DELETE", `/api/backup/${b.id}/`),
          command: (b) => commands.removeBackup(b.id),
          words: (b) => <p>{LOST[b.state]} {b.volume === null ? "Instances stay." : "Volumes stay."}</p>,
        }}
      />
      {of?.volume && (
        <VolumeFrom title={`Restore ${named(of)}`} of={of} onClose={() => (restoring.value = null)} />
      )}
      {of?.instance && (
        <CreateFrom
          title={`Restore ${named(of)}`}
          of={ofInstance(of)}
          path={`/api/backup/${of.id}/restore/`}
          command={(body) => commands.recover(of.id, body)}
          onClose={() => (restoring.value = null)}
        >
          Another instance begins with this disk, on any host whose engine takes it.
        </CreateFrom>
      )}
    </>
  );
}

/** The flavor and the size that an instance had. */
const ofInstance = ({ flavor, cpu_tier, n_vcpus, mem_gib, disk_size_gib }: Backup) => ({
  flavor: flavor ?? "",
  cpu_tier,
  n_vcpus: n_vcpus ?? 0,
  mem_gib: mem_gib ?? 0,
  disk_size_gib,
});

/** The instance or the volume of a backup, which may be gone. */
function Source({ backup: { instance, instance_name: name, flavor, volume_name: volume } }: { backup: Backup }) {
  if (instance === null) {
    return (
      <>
        <a href={`/volumes/${volume}`}>{volume}</a>
        <small>volume</small>
      </>
    );
  }
  const present = find(instance);
  return (
    <>
      {present ? <a href={`/instances/${present.name}#backups`}>{present.name}</a> : name}
      <small>{present ? flavor : `${flavor} · gone`}</small>
    </>
  );
}
