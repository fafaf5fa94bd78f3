// The volumes of an instance: of a new one in its form, and of one that exists on its page.

import { type Signal, useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import type { InstanceInList, MountedVolume, VolumeMount } from "../shapes";
import { put } from "../store";
import { useAction } from "./action";
import { announce } from "./basics";
import { Form } from "./form";
import { Listing } from "./listing";
import { access, MountFields, useVolumes } from "./volumes";

/** The most volumes of an instance. */
const MOST = 8;
const EMPTY: VolumeMount = { volume: "", path: "", read_only: false };

/** The volume of the address, such as `?volume=genome`. */
export function chosenMounts(): VolumeMount[] {
  const volume = new URLSearchParams(location.search).get("volume");
  return volume ? [{ ...EMPTY, volume, path: "/data" }] : [];
}

interface ChoiceProps {
  mounts: Signal<VolumeMount[]>;
  errors: string[] | undefined;
  onChange: () => void;
}

/** The volumes of a new instance; nothing for a user without volumes. */
export function MountChoice({ mounts, errors, onChange }: ChoiceProps) {
  const volumes = useVolumes().value ?? [];
  if (volumes.length === 0) return null;
  const set = (all: VolumeMount[]) => {
    mounts.value = all;
    onChange();
  };
  return (
    <details open={Boolean(errors) || mounts.value.length > 0}>
      <summary>Volumes</summary>
      <p class="muted">A volume outlives the instance. The instance is created on the host of its volumes.</p>
      {mounts.value.map((mount, n) => (
        <div key={n} class="mount">
          <MountFields
            mount={mount}
            volumes={volumes}
            onChange={(changed) => set(mounts.value.with(n, changed))}
          />
          <button
            type="button"
            class="small"
            aria-label={`Leave out volume ${mount.volume || n + 1}`}
            onClick={() => set(mounts.value.toSpliced(n, 1))}
          >
            Leave out
          </button>
        </div>
      ))}
      {errors && <p class="error">Volumes {errors.join("; ")}.</p>}
      {mounts.value.length < MOST && (
        <button type="button" class="small" onClick={() => set([...mounts.value, EMPTY])}>
          Add a volume
        </button>
      )}
    </details>
  );
}

/** The volumes of an instance. */
export function InstanceVolumes({ instance: i }: { instance: InstanceInList }) {
  const volumes = useVolumes().value ?? [];
  const mount = useSignal(EMPTY);
  const attached = useSignal(0);
  const action = useAction();
  if (i.resource_type === "vm") return <p class="none">Virtual machines have no volumes.</p>;
  const change = async (which: "attach" | "detach", body: object, done: string) => {
    const path = `/api/instance/${i.uuid}/${which}-volume/`;
    const changed = await send<{ volumes: MountedVolume[] }>("POST", path, body);
    put({ ...i, volumes: changed.volumes });
    announce(done);
  };
  const attach = async () => {
    await change("attach", mount.value, "Attached");
    mount.value = EMPTY;
    attached.value++;
  };
  const fields = action.problem?.fields ?? {};
  return (
    <>
      <Form
        title="Attach a volume"
        verb="Attach"
        action={action}
        work={attach}
        ready={Boolean(mount.value.volume && mount.value.path)}
        command={commands.attach(i.name, mount.value)}
        fields={["path"]}
      >
        <p class="muted">
          Only some hosts attach volumes to an instance that exists. Elsewhere, choose them when you create it.
        </p>
        <MountFields
          key={attached.value}
          mount={mount.value}
          volumes={volumes}
          errors={fields["path"]}
          onChange={(changed) => {
            mount.value = changed;
            action.clear();
          }}
        />
      </Form>
      <Listing
        data={{
          value: i.volumes.map((volume) => ({ ...volume, id: volume.volume })),
          error: null,
          reload: async () => {},
        }}
        columns={["Volume", "Directory", "Access"]}
        cells={(volume) => [
          <a href={`/volumes/${volume.id}`}>{volume.name}</a>,
          <code>{volume.path}</code>,
          access(volume.read_only),
        ]}
        empty="This instance has no volumes."
        removal={{
          verb: "Detach",
          name: (volume) => volume.name,
          work: (volume) => change("detach", { volume: volume.id }, "Detached"),
          command: (volume) => commands.detach(i.name, volume.name),
          words: (volume) => `The directory ${volume.path} disappears from the instance. The data of the volume stays.`,
        }}
      />
    </>
  );
}
