// The snapshots of an instance: taking, restoring, cloning, and the plan that takes them.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { rate, snapshotRate } from "../format";
import type { Instance, InstanceInList, Snapshot, SnapshotEstimate } from "../shapes";
import { put } from "../store";
import { useAction } from "./action";
import { Ago, Alert, announce, Command, Dialog, State } from "./basics";
import { CreateFrom } from "./create-from";
import { type Data, useLive } from "./data";
import { Form } from "./form";
import { NameInput } from "./instance-forms";
import { Listing } from "./listing";
import { Plan } from "./plan";
import { Confirm } from "./remove";

/** The snapshots of an instance. */
export const useSnapshots = (i: InstanceInList) => useLive<Snapshot[]>(`/api/snapshot/?instance=${i.uuid}`);

export function InstanceSnapshots({ instance: i }: { instance: InstanceInList }) {
  const snapshots = useSnapshots(i);
  const estimate: Data<SnapshotEstimate> = useLive(`/api/instance/${i.uuid}/snapshot-estimate/`);
  const open = useSignal<{ of: Snapshot; way: "restore" | "clone" } | null>(null);
  const { of, way } = open.value ?? {};
  const close = () => (open.value = null);
  if (i.resource_type === "vm") return <p class="none">Virtual machines have no snapshots.</p>;
  return (
    <>
      {estimate.error ? (
        <p class="none">{estimate.error}</p>
      ) : (
        <Take instance={i} estimate={estimate.value} onMade={snapshots.reload} />
      )}
      <Listing
        data={snapshots}
        columns={["Name", "State", "Size", "Taken", "Now"]}
        cells={(s) => [
          <>
            {s.name}
            {s.planned && <small>by the plan</small>}
          </>,
          <>
            <State state={s.state} />
            {(s.reason || s.progress) && <small>{s.reason ?? s.progress}</small>}
          </>,
          <span class="number">{s.size_gib === null ? "–" : `${s.size_gib} GiB`}</span>,
          <Ago at={s.created_at} />,
          <span class="number">{s.state === "ready" ? rate(snapshotRate(s)) : "–"}</span>,
        ]}
        empty="This instance has no snapshots."
        buttons={(s) =>
          s.state === "ready" && (
            <>
              <button
                type="button"
                class="small"
                aria-label={`Restore ${s.name}`}
                onClick={() => (open.value = { of: s, way: "restore" })}
              >
                Restore
              </button>{" "}
              {s.clonable && (
                <button
                  type="button"
                  class="small"
                  aria-label={`Clone ${s.name}`}
                  onClick={() => (open.value = { of: s, way: "clone" })}
                >
                  Clone
                </button>
              )}
            </>
          )
        }
        removal={{
          verb: "Delete",
          name: (s) => s.name,
          work: (s) => send("DELETE", `/api/snapshot/${s.id}/`),
          command: commands.removeSnapshot,
          words: (s) => (
            <p>
              The copy is lost, and nobody can bring it back. The instance and clones stay. Afterwards nothing is
              billed for it, instead of <b class="number">{rate(snapshotRate(s))}</b>.
            </p>
          ),
        }}
      />
      <Plan
        what="snapshot"
        path={`/api/instance/${i.uuid}/snapshot-plan/`}
        command={(_, ...times) => commands.plan(i.name, ...times)}
        possible={!estimate.error}
      />
      <Command line={commands.snapshots(i.name)} note="lists these snapshots in a terminal." />
      {of && way === "restore" && (
        <RestoreDialog instance={i} of={of} estimate={estimate.value} onClose={close} />
      )}
      {of && way === "clone" && (
        <CreateFrom
          title={`Clone ${of.name}`}
          of={{ ...i, disk_size_gib: of.disk_size_gib }}
          path={`/api/snapshot/${of.id}/clone/`}
          command={(body) => commands.clone(of, body)}
          onClose={close}
        >
          Another instance begins with this disk, on the host of {i.name}.
        </CreateFrom>
      )}
    </>
  );
}

const time = (e: SnapshotEstimate) => (e.seconds < 2 ? "a second" : `${e.seconds} s`);

interface TakeProps {
  instance: InstanceInList;
  estimate: SnapshotEstimate | null;
  onMade: () => Promise<void>;
}

/** Takes a snapshot, after a look at its time and its cost. */
function Take({ instance: i, estimate: e, onMade }: TakeProps) {
  const name = useSignal("");
  const action = useAction();
  const take = async () => {
    await send("POST", `/api/instance/${i.uuid}/snapshot/`, name.value ? { name: name.value } : {});
    name.value = "";
    announce("The snapshot is being taken");
    await onMade();
  };
  return (
    <Form
      title="Take a snapshot"
      verb="Take it"
      action={action}
      work={take}
      ready={Boolean(e)}
      command={commands.takeSnapshot(i.name, name.value)}
      fields={["name"]}
    >
      <p class="muted">
        A snapshot is a copy of the disk, without volumes. Restore the instance from it, or create others. It is
        deleted with the instance.
      </p>
      {e && (
        <p>
          It takes <b>about {time(e)}</b>, and {i.name}{" "}
          <b>{e.frozen ? "stands still meanwhile" : "is not interrupted"}</b>. Its {e.size_gib} GiB cost about{" "}
          <b class="number">{rate(e.hourly_usd)}</b>.
        </p>
      )}
      <NameInput name={name} action={action} placeholder="before-the-upgrade" />
    </Form>
  );
}

interface DialogProps {
  instance: InstanceInList;
  of: Snapshot;
  /** That of the snapshot before. */
  estimate: SnapshotEstimate | null;
  onClose: () => void;
}

/** Replaces the disk of a stopped instance, once its name was typed. */
function RestoreDialog({ instance: i, of, estimate: e, onClose }: DialogProps) {
  const first = useSignal(true);
  if (i.state !== "exited") {
    return (
      <Dialog title={`Restore ${of.name}`} onClose={onClose}>
        <Alert words={`Stop ${i.name} first. Its disk is replaced while it is stopped.`} />
        <div class="buttons">
          <button type="button" onClick={onClose}>
            Close
          </button>
        </div>
      </Dialog>
    );
  }
  return (
    <Confirm
      title={`Restore ${of.name}`}
      verb={`Restore ${i.name}`}
      typed={i.name}
      command={commands.restore(of, first.value)}
      onClose={onClose}
      work={async () => {
        put(await send<Instance>("POST", `/api/snapshot/${of.id}/restore/`, { snapshot_first: first.value }));
        announce(`${i.name} is being restored`);
      }}
    >
      <p>
        The disk of {i.name} becomes that of the snapshot (<Ago at={of.created_at} />).{" "}
        <b>All changes since then are lost</b>
        {first.value ? ", but for the snapshot that is taken first" : ", and nobody can bring them back"}. Volumes stay as
        they are.
      </p>
      <fieldset class="checks">
        <legend>Before the restore</legend>
        <label>
          <input
            type="checkbox"
            checked={first.value}
            onChange={(event) => (first.value = event.currentTarget.checked)}
          />
          <span>Take a snapshot of the present disk</span>
        </label>
      </fieldset>
      {first.value && e && (
        <p>
          It takes <b>about {time(e)}</b>, and {i.name} <b>starts only after it</b>. Its {e.size_gib} GiB cost{" "}
          about <b class="number">{rate(e.hourly_usd)}</b>.
        </p>
      )}
    </Confirm>
  );
}
