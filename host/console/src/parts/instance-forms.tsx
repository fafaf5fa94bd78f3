// The forms on an instance's page: resize, rename, ports.

import { useSignal } from "@preact/signals";
import { send } from "../api";
import { commands } from "../commands";
import { amounts, fullRate, isStopped, perMonth, rate } from "../format";
import type { InstanceInList } from "../shapes";
import { put } from "../store";
import { rest, useAction } from "./action";
import { patch } from "./actions";
import { Alert, announce, Command, Field } from "./basics";

type SizeField = "n_vcpus" | "mem_gib" | "disk_size_gib";
const FIELDS: [SizeField, string, string][] = [
  ["n_vcpus", "vCPU", "1 to 256"],
  ["mem_gib", "RAM in GiB", "1 to 512"],
  ["disk_size_gib", "Disk in GiB", "It can only grow."],
];

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
  const changed = FIELDS.filter(([field]) => size[field] !== i[field]);
  const next = fullRate({ ...i, ...size });
  const save = (event: Event) => {
    event.preventDefault();
    // Text that is no number goes to the server as it is, which explains it.
    const value = (text: string) => (/^\d+$/.test(text.trim()) ? Number(text) : text);
    const body = Object.fromEntries(changed.map(([field]) => [field, value(form.value[field])]));
    void action.run(async () => {
      await patch(i, body);
      announce(`Resized ${i.name}`);
    });
  };
  const shortage = action.problem?.shortage;
  const near = Object.entries(shortage?.nearest_available ?? {}).filter(([field]) => field in form.value);
  const stopped = isStopped(i.state);
  return (
    <form class="panel form" onSubmit={save} noValidate>
      <h2>Resize</h2>
      <p class="muted">
        {stopped
          ? "The new size holds from the next start."
          : "The container keeps running. Its processes see the new size at once."}
      </p>
      <div class="row">
        {FIELDS.map(([field, label, hint]) => (
          <Field key={field} label={label} hint={hint} errors={action.problem?.fields[field]}>
            {(attributes) => (
              <input
                {...attributes}
                name={field}
                class="short"
                inputMode="numeric"
                value={form.value[field]}
                onInput={(event) => {
                  form.value = { ...form.value, [field]: event.currentTarget.value };
                  action.clear();
                }}
              />
            )}
          </Field>
        ))}
      </div>
      {shortage ? (
        <div class="alert near" role="alert">
          <p>
            {shortage.message} The nearest that fits is {amounts(shortage.nearest_available)}.
          </p>
          <button
            type="button"
            class="primary"
            onClick={() => {
              form.value = { ...form.value, ...Object.fromEntries(near.map(([f, n]) => [f, String(n)])) };
              action.clear();
            }}
          >
            Use {amounts(Object.fromEntries(near))}
          </button>
        </div>
      ) : (
        <Alert words={rest(action.problem, FIELDS.map(([field]) => field))} />
      )}
      <p>
        <b class="number">{Number.isFinite(next) ? rate(next) : "–"}</b>
        {stopped ? " when it runs" : ""} instead of <span class="number">{rate(fullRate(i))}</span>
        {Number.isFinite(next) && <span class="muted">, about {perMonth(next)} for a whole month</span>}
      </p>
      <Command line={commands.resize(i.name, size)} />
      <div class="buttons">
        <button class="primary" disabled={action.busy || changed.length === 0}>
          {action.busy ? "Resizing" : "Resize"}
        </button>
      </div>
    </form>
  );
}

export function Rename({ instance: i }: { instance: InstanceInList }) {
  const name = useSignal(i.name);
  const action = useAction();
  const save = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      await patch(i, { name: name.value });
      announce(`Renamed to ${name.value}`);
    });
  };
  return (
    <form class="panel form" onSubmit={save} noValidate>
      <h2>Rename</h2>
      <Field label="Name" errors={action.problem?.fields["name"]} hint="Lowercase letters, digits and hyphens.">
        {(attributes) => (
          <input
            {...attributes}
            class="mid"
            autocomplete="off"
            spellcheck={false}
            value={name.value}
            onInput={(event) => {
              name.value = event.currentTarget.value.trim();
              action.clear();
            }}
          />
        )}
      </Field>
      <Alert words={rest(action.problem, ["name"])} />
      <Command line={commands.rename(i.name, name.value === i.name ? "" : name.value)} />
      <div class="buttons">
        <button class="primary" disabled={action.busy || name.value === i.name || !name.value}>
          Rename
        </button>
      </div>
    </form>
  );
}

/** Opens and closes the ports of a virtual machine. */
export function Ports({ instance: i }: { instance: InstanceInList }) {
  const port = useSignal("");
  const action = useAction();
  const change = (which: "add-port" | "remove-port", n: number | string) =>
    action.run(async () => {
      const { wan_ports } = await send<{ wan_ports: number[] }>("POST", `/api/instance/${i.uuid}/${which}/`, {
        port: n,
      });
      put({ ...i, wan_ports });
      announce(which === "add-port" ? `Opened port ${n}` : `Closed port ${n}`);
      port.value = "";
    });
  const open = (event: Event) => {
    event.preventDefault();
    void change("add-port", /^\d+$/.test(port.value) ? Number(port.value) : port.value);
  };
  return (
    <form class="panel form" onSubmit={open} noValidate>
      <h2>Open ports</h2>
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
                onClick={() => void change("remove-port", n)}
              >
                Close
              </button>
            )}
          </li>
        ))}
      </ul>
      <Field label="Port" errors={action.problem?.fields["port"]} hint="1 to 65535">
        {(attributes) => (
          <input
            {...attributes}
            class="short"
            inputMode="numeric"
            value={port.value}
            onInput={(event) => {
              port.value = event.currentTarget.value.trim();
              action.clear();
            }}
          />
        )}
      </Field>
      <Alert words={rest(action.problem, ["port"])} />
      <Command line={commands.openPort(i.name, port.value)} />
      <div class="buttons">
        <button class="primary" disabled={action.busy || !port.value}>
          Open port
        </button>
      </div>
    </form>
  );
}
