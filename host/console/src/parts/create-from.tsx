// The creation of an instance from a snapshot or a backup.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { send } from "../api";
import { rate } from "../format";
import { go } from "../router";
import type { CloneRequest, CreateRequest, Estimate, Instance, VolumeMount } from "../shapes";
import { put } from "../store";
import { useAction } from "./action";
import { announce, Dialog } from "./basics";
import { Form, number, SIZE_RANGES, SizeInputs } from "./form";
import { NameInput } from "./instance-forms";
import { KeyChoice } from "./key-choice";
import { MountChoice } from "./mounts";
import { usePrice } from "./price";

interface Props {
  title: string;
  /** The instance whose disk it was. */
  of: Required<Pick<CreateRequest, "n_vcpus" | "mem_gib" | "disk_size_gib" | "flavor" | "cpu_tier">>;
  path: string;
  command: (body: CloneRequest) => string;
  children: ComponentChildren;
  onClose: () => void;
}

export function CreateFrom({ title, of, path, command, children, onClose }: Props) {
  const action = useAction();
  const name = useSignal("");
  const key = useSignal("");
  const mounts = useSignal<VolumeMount[]>([]);
  const size = useSignal({
    n_vcpus: String(of.n_vcpus),
    mem_gib: String(of.mem_gib),
    disk_size_gib: String(of.disk_size_gib),
  });
  const estimate = useSignal<Estimate | null>(null);
  const volumes = mounts.value.filter((mount) => mount.volume && mount.path);
  const body = {
    n_vcpus: number(size.value.n_vcpus),
    mem_gib: number(size.value.mem_gib),
    disk_size_gib: number(size.value.disk_size_gib),
    ...(name.value && { name: name.value }),
    ...(key.value && { public_key: key.value }),
    ...(volumes.length > 0 && { volumes }),
  } as CloneRequest;
  usePrice({ ...body, flavor: of.flavor, resource_type: "container", cpu_tier: of.cpu_tier }, estimate, useSignal(null));
  const create = async () => {
    const made = await send<Instance>("POST", path, body);
    put(made);
    announce(`${made.name} is being created`);
    go(`/instances/${made.name}`);
  };
  const errors = action.problem?.fields ?? {};
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        plain
        verb="Create instance"
        action={action}
        work={create}
        command={command(body)}
        fields={["name", ...Object.keys(size.value), "public_key", "volumes"]}
        onClose={onClose}
      >
        <p class="muted">
          {children} It has a password and SSH host keys of its own. Secrets that you put on the disk are copied.
        </p>
        <NameInput name={name} action={action} placeholder="calm-heron-7" />
        <SizeInputs
          value={size.value}
          hints={{ ...SIZE_RANGES, disk_size_gib: `${of.disk_size_gib} to 2,000` }}
          errors={errors}
          onChange={(change) => {
            size.value = { ...size.value, ...change };
            action.clear();
          }}
        />
        <KeyChoice value={key.value} errors={errors["public_key"]} onChange={(text) => (key.value = text)} />
        <MountChoice mounts={mounts} errors={errors["volumes"]} onChange={action.clear} />
        <p>
          <b class="number">{estimate.value ? rate(estimate.value.hourly_usd) : "–"}</b> while it runs
        </p>
      </Form>
    </Dialog>
  );
}
