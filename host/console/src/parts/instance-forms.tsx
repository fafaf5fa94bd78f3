// The forms on an instance's page: resize, rename, ports.

import { type Signal, useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { amounts, fullRate, isStopped, perMonth, rate } from "../format";
import type { InstanceInList } from "../shapes";
import { put } from "../store";
import { type Action, useAction } from "./action";
import { patch } from "./actions";
import { announce } from "./basics";
import { Form, Input, number, SIZE_FIELDS, SIZE_RANGES, SizeInputs } from "./form";

const HINTS = { ...SIZE_RANGES, disk_size_gib: "It can only grow." };

/** Changes the size of a container, with the rate before and after. */
export function Resize({ instance: i }: { instance: InstanceInList }) {
  const form = useSignal({
    n_vcpus: String(i.n_vcpus),
    mem_gib: String(i.mem_gib),
    disk_size_gib: String(i.disk_size_gib),
  });
  const action = useAction();
  if (i.resource_type === "vm") {
    return <p class="none">The size of a virtual machine is fixed when it is created.</p>;
  }
  const size = {
    n_vcpus: Number(form.value.n_vcpus),
    mem_gib: Number(form.value.mem_gib),
    disk_size_gib: Number(form.value.disk_size_gib),
  };
  const changed = SIZE_FIELDS.filter((field) => size[field] !== i[field]);
  const next = fullRate({ ...i, ...size });
  const save = async () => {
    await patch(i, Object.fromEntries(changed.map((field) => [field, number(form.value[field])])));
    announce(`Resized ${i.name}`);
  };
  const shortage = action.problem?.shortage;
  const near = Object.entries(shortage?.nearest_available ?? {}).filter(([field]) => field in form.value);
  const set = (change: object) => {
    form.value = { ...form.value, ...change };
    action.clear();
  };
  const stopped = isStopped(i.state);
  return (
    <Form
      title="Resize"
      verb={action.busy ? "Resizing" : "Resize"}
      action={action}
      work={save}
      ready={changed.length > 0}
      command={commands.resize(i.name, size)}
      fields={SIZE_FIELDS}
      refusal={
        shortage && (
          <div class="alert near" role="alert">
            <p>
              {shortage.message} The nearest that fits is {amounts(shortage.nearest_available)}.
            </p>
            <button
              type="button"
              class="primary"
              onClick={() => set(Object.fromEntries(near.map(([field, n]) => [field, String(n)])))}
            >
              Use {amounts(Object.fromEntries(near))}
            </button>
          </div>
        )
      }
    >
      <p class="muted">
        {stopped
          ? "The new size holds from the next start."
          : "The container keeps running. Its processes see the new size at once."}
      </p>
      <SizeInputs value={form.value} hints={HINTS} errors={action.problem?.fields ?? {}} onChange={set} />
      <p>
        <b class="number">{Number.isFinite(next) ? rate(next) : "–"}</b>
        {stopped ? " when it runs" : ""} instead of <span class="number">{rate(fullRate(i))}</span>
        {Number.isFinite(next) && <span class="muted">, about {perMonth(next)} for a whole month</span>}
      </p>
    </Form>
  );
}

export function Rename({ instance: i }: { instance: InstanceInList }) {
  const name = useSignal(i.name);
  const action = useAction();
  return (
    <Form
      title="Rename"
      verb="Rename"
      action={action}
      work={async () => {
        await patch(i, { name: name.value });
        announce(`Renamed to ${name.value}`);
      }}
      ready={name.value !== i.name && Boolean(name.value)}
      command={commands.rename(i.name, name.value === i.name ? "" : name.value)}
      fields={["name"]}
    >
      <NameInput name={name} action={action} />
    </Form>
  );
}

/** The name of an instance or a volume. */
export function NameInput({ name, action, placeholder }: { name: Signal<string>; action: Action; placeholder?: string }) {
  return (
    <Input
      label="Name"
      value={name}
      errors={action.problem?.fields["name"]}
      hint="Lowercase letters, digits and hyphens."
      width="mid"
      {...(placeholder && { placeholder })}
      onChange={(text) => {
        name.value = text.trim();
        action.clear();
      }}
    />
  );
}

/** Opens and closes the ports of a virtual machine. */
export function Ports({ instance: i }: { instance: InstanceInList }) {
  const port = useSignal("");
  const action = useAction();
  const change = async (which: "add-port" | "remove-port", n: number | string) => {
    const { wan_ports } = await send<{ wan_ports: number[] }>("POST", `/api/instance/${i.uuid}/${which}/`, {
      port: n,
    });
    put({ ...i, wan_ports });
    announce(which === "add-port" ? `Opened port ${n}` : `Closed port ${n}`);
    port.value = "";
  };
  const open = () => change("add-port", /^\d+$/.test(port.value) ? Number(port.value) : port.value);
  return (
    <Form
      title="Open ports"
      verb="Open port"
      action={action}
      work={open}
      ready={Boolean(port.value)}
      command={commands.openPort(i.name, port.value)}
      fields={["port"]}
    >
      <p class="muted">
        Ports of {i.public_ipv4 ? <code>{i.public_ipv4}</code> : "its public address"} that the internet can
        reach. Port 22 stays open.
      </p>
      <ul class="chips">
        {i.wan_ports.map((n) => (
          <li key={n}>
            <code>{n}</code>
            {n !== 22 && (
              <button
                type="button"
                class="small"
                aria-label={`Close port ${n}`}
                disabled={action.busy}
                onClick={() => void action.run(() => change("remove-port", n))}
              >
                Close
              </button>
            )}
          </li>
        ))}
      </ul>
      <Input
        label="Port"
        value={port}
        errors={action.problem?.fields["port"]}
        hint="1 to 65535"
        width="short"
        mode="numeric"
        onChange={(text) => {
          port.value = text.trim();
          action.clear();
        }}
      />
    </Form>
  );
}
