// Actions on an instance: stop, start, delete, each with its cost.

import { send } from "../api";
import { commands } from "../commands";
import { amounts, diskRate, fullRate, listed, rate, rateNow } from "../format";
import type { InstanceInList } from "../shapes";
import { put, readOne, remove } from "../store";
import { useAction } from "./action";
import { Alert, announce, Command, Dialog } from "./basics";
import { Confirm } from "./remove";
import { useSnapshots } from "./snapshots";

const path = (i: InstanceInList, action = "") => `/api/instance/${i.uuid}/${action}`;

/** Stops an instance, after a look at the cost. */
export function StopDialog({ instance, onClose }: { instance: InstanceInList; onClose: () => void }) {
  const action = useAction();
  const stop = () =>
    action.run(async () => {
      await send("POST", path(instance, "stop/"));
      await readOne(instance.uuid);
      announce(`Stopped ${instance.name}`);
      onClose();
    });
  return (
    <Dialog title={`Stop ${instance.name}`} onClose={onClose}>
      <p>
        The processes end, the disk stays. From then on the disk alone is billed:{" "}
        <b class="number">{rate(diskRate(instance))}</b> instead of{" "}
        <span class="number">{rate(fullRate(instance))}</span>.
      </p>
      <Alert words={action.problem?.message ?? null} />
      <Command line={commands.stop(instance.name)} />
      <div class="buttons">
        <button type="button" onClick={onClose}>
          Keep running
        </button>
        <button type="button" class="primary" onClick={stop} disabled={action.busy}>
          Stop
        </button>
      </div>
    </Dialog>
  );
}

/** A button that starts a stopped instance. */
export function StartButton({ instance, small = false }: { instance: InstanceInList; small?: boolean }) {
  const action = useAction();
  const start = () =>
    action.run(async () => {
      await send("POST", path(instance, "restart/"));
      await readOne(instance.uuid);
      announce(`Started ${instance.name}`);
    });
  const shortage = action.problem?.shortage;
  return (
    <>
      <button
        type="button"
        class={small ? "small" : "primary"}
        onClick={start}
        disabled={action.busy}
        title={`Start ${instance.name} for ${rate(fullRate(instance))}`}
      >
        Start
      </button>
      {action.problem && (
        <Dialog title={`${instance.name} was not started`} onClose={action.clear}>
          <Alert words={action.problem.message} />
          {shortage && (
            <p>
              Its node has {amounts(shortage.nearest_available)} free. Stop another instance there, or
              choose a smaller size.
            </p>
          )}
          <div class="buttons">
            <button type="button" onClick={action.clear}>
              Close
            </button>
            {shortage && instance.resource_type === "container" && (
              <a class="button primary" href={`/instances/${instance.name}#resize`}>
                Choose another size
              </a>
            )}
          </div>
        </Dialog>
      )}
    </>
  );
}

interface DeleteProps {
  instance: InstanceInList;
  onClose: () => void;
  onDone?: () => void;
}

/** Deletes an instance, once its name was typed. */
export function DeleteDialog({ instance, onClose, onDone }: DeleteProps) {
  const volumes = instance.volumes.map((volume) => volume.name);
  const snapshots = useSnapshots(instance).value?.length ?? 0;
  return (
    <Confirm
      title={`Delete ${instance.name}`}
      verb={`Delete ${instance.name}`}
      typed={instance.name}
      command={commands.remove(instance.name)}
      onClose={onClose}
      work={async () => {
        await send("DELETE", path(instance));
        remove(instance.uuid);
        announce(`Deleted ${instance.name}`);
        onDone?.();
      }}
    >
      <p>
        Its disk of {instance.disk_size_gib} GiB and everything on it is lost, and nobody can bring it
        back. {volumes.length > 0 && `The data on ${listed(volumes)} stays. `}Afterwards nothing is billed for
        it, instead of <b class="number">{rate(rateNow(instance))}</b>.
      </p>
      {snapshots > 0 && (
        <p>
          <b>{snapshots === 1 ? "Its snapshot is" : `Its ${snapshots} snapshots are`} deleted with it.</b> Clones stay.
        </p>
      )}
    </Confirm>
  );
}

/** Renames an instance and puts the new version into the list. */
export async function patch(instance: InstanceInList, body: object): Promise<InstanceInList> {
  const changed = await send<InstanceInList>("PATCH", path(instance), body);
  put(changed);
  return changed;
}
