// The creation of a volume from a backup.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { go } from "../router";
import type { Backup, Volume } from "../shapes";
import { useAction } from "./action";
import { announce, Dialog } from "./basics";
import { Form, Input } from "./form";
import { NameInput } from "./instance-forms";
import { pageOf } from "./volumes";

interface Props {
  title: string;
  of: Backup;
  onClose: () => void;
}

export function VolumeFrom({ title, of, onClose }: Props) {
  const action = useAction();
  const name = useSignal("");
  const size = useSignal(String(of.disk_size_gib));
  const create = async () => {
    const gib = /^\d+$/.test(size.value.trim()) ? Number(size.value) : size.value;
    const body = { name: name.value, size_gib: gib, cpu_tier: of.cpu_tier, backup: of.id };
    const made = await send<Volume>("POST", "/api/volume/", body);
    announce(`${made.name} is being created`);
    go(pageOf(made));
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <Form
        plain
        verb="Create volume"
        action={action}
        work={create}
        ready={Boolean(name.value)}
        command={`${commands.newVolume(name.value, size.value.trim())} --backup ${of.id}`}
        fields={["name", "size_gib", "backup"]}
        onClose={onClose}
      >
        <p class="muted">Another volume begins with this content, on any host whose engine takes it.</p>
        <NameInput name={name} action={action} placeholder={of.volume_name ?? "models"} />
        <Input
          label="Size in GiB"
          value={size}
          errors={action.problem?.fields["size_gib"]}
          hint={`${of.disk_size_gib} to 2,000`}
          width="short"
          mode="numeric"
          onChange={action.clear}
        />
      </Form>
    </Dialog>
  );
}
