// The creation of a lost instance again, from its newest backup or with an empty disk.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { duration, exact, fullRate, listed, rate } from "../format";
import type { InstanceInList, Recreation } from "../shapes";
import { put } from "../store";
import { useAction } from "./action";
import { Alert, announce, Dialog } from "./basics";
import { useData } from "./data";
import { Form, Select } from "./form";

/** A button that creates a lost instance again. */
export function RecreateButton({ instance }: { instance: InstanceInList }) {
  const open = useSignal(false);
  return (
    <>
      <button type="button" class="primary" onClick={() => (open.value = true)}>
        Create again
      </button>
      {open.value && <RecreateDialog instance={instance} onClose={() => (open.value = false)} />}
    </>
  );
}

function RecreateDialog({ instance: i, onClose }: { instance: InstanceInList; onClose: () => void }) {
  const path = `/api/instance/${i.uuid}/recreate/`;
  const offer = useData<Recreation>(path);
  const disk = useSignal("backup");
  const withVolumes = useSignal(true);
  const action = useAction();
  const { backup = null, missing_s = null, volumes = [], volumes_lost = [] } = offer.value ?? {};
  const from = disk.value === "backup" ? backup : null;
  const lost = withVolumes.value ? volumes_lost : [...volumes.map((v) => v.name), ...volumes_lost];
  const recreate = async () => {
    put(await send<InstanceInList>("POST", path, { backup: from?.id ?? null, volumes: withVolumes.value }));
    announce(`${i.name} is being created again`);
  };
  return (
    <Dialog title={`Create ${i.name} again`} onClose={onClose}>
      <Form
        plain
        verb={from ? "Create from the backup" : "Create with an empty disk"}
        action={action}
        work={recreate}
        ready={Boolean(offer.value)}
        command={commands.recreate(i.name, from?.id ?? null, withVolumes.value)}
        fields={["backup", "volumes"]}
        onClose={onClose}
      >
        <Alert words={offer.error} />
        {backup && (
          <Select
            label="Disk"
            value={disk.value}
            options={[
              ["backup", `The newest backup, of ${exact(backup.created_at)}`],
              ["empty", "An empty one"],
            ]}
            errors={action.problem?.fields["backup"]}
            onChange={(value) => {
              disk.value = value;
              action.clear();
            }}
          />
        )}
        {volumes.length > 0 && (
          <Select
            label="Volumes"
            value={withVolumes.value ? "with" : "without"}
            options={[
              ["with", `With ${listed(volumes.map((v) => v.name))}`],
              ["without", "Without volumes"],
            ]}
            errors={action.problem?.fields["volumes"]}
            onChange={(value) => {
              withVolumes.value = value === "with";
              action.clear();
            }}
          />
        )}
        {withVolumes.value && volumes.length > 0 && (
          <ul>
            {volumes.map((v) => (
              <li key={v.volume}>
                {v.name} at {v.path}:{" "}
                {v.backup
                  ? `made again from its backup of ${exact(v.backup.created_at)}`
                  : "on a host, and attached again"}
              </li>
            ))}
          </ul>
        )}
        {offer.value && (
          <p>
            {from ? (
              <>
                The disk becomes that of the backup in {from.bucket_name}.{" "}
                {missing_s !== null && (
                  <>
                    The host was lost {duration(Math.max(1, missing_s) * 1000)} later, and{" "}
                    <b>all changes in between are missing</b>.
                  </>
                )}
              </>
            ) : (
              <b>{backup ? "Nothing of the backup is used." : "There is no backup, so the disk begins empty."}</b>
            )}{" "}
            {lost.length > 0 && `It comes back without ${lost.length > 1 ? "the volumes" : "the volume"} ${listed(lost)}. `}
            It costs <span class="number">{rate(fullRate(i))}</span> while it runs.
          </p>
        )}
      </Form>
    </Dialog>
  );
}
