// Volumes, and the choice of one for an instance.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Volume, VolumeMount } from "../shapes";
import { useLive } from "./data";
import { Input, Select } from "./form";

/** The volumes of the user and those shared with them. */
export const useVolumes = () => useLive<Volume[]>("/api/volume/");

/** The name that a request uses: a volume of another user may be called as one of the user. */
export const reference = (volume: Volume) => (volume.shared ? volume.id : volume.name);

/** The page of a volume. */
export const pageOf = (volume: Volume) => `/volumes/${reference(volume)}`;

/** How an instance has a volume. */
export const access = (readOnly: boolean) => (readOnly ? "read-only" : "read and write");

const label = (v: Volume) => `${v.name} · ${v.size_gib} GiB${v.shared ? ` · of ${v.owner_email}` : ""}`;

interface Props {
  mount: VolumeMount;
  volumes: Volume[];
  errors?: string[] | undefined;
  onChange: (mount: VolumeMount) => void;
}

/** A volume, its directory, and whether the instance writes it. */
export function MountFields({ mount, volumes, errors, onChange }: Props) {
  const path = useSignal(mount.path);
  const chosen = volumes.find((volume) => reference(volume) === mount.volume);
  const shared = Boolean(chosen?.shared);
  useEffect(() => {
    if (shared && !mount.read_only) onChange({ ...mount, read_only: true });
  }, [shared]);
  return (
    <div class="row">
      <Select
        label="Volume"
        width="mid"
        value={mount.volume}
        options={[["", "Choose a volume"], ...volumes.map((v) => [reference(v), label(v)] as const)]}
        onChange={(volume) => onChange({ ...mount, volume })}
      />
      <Input
        label="Directory"
        value={path}
        errors={errors}
        hint="Where the instance finds it."
        placeholder="/data"
        onChange={(text) => onChange({ ...mount, path: text.trim() })}
      />
      <fieldset class="checks">
        <legend>Access</legend>
        <label>
          <input
            type="checkbox"
            checked={Boolean(mount.read_only)}
            disabled={shared}
            onChange={(event) => onChange({ ...mount, read_only: event.currentTarget.checked })}
          />
          <span>
            Read-only <span class="muted">{shared ? "as its owner shares it" : "so that many can have it"}</span>
          </span>
        </label>
      </fieldset>
    </div>
  );
}
