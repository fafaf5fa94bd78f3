// The list of instances, which is the home page.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get } from "../api";
import { commands } from "../commands";
import { gib, isStopped, money, rate, rateNow, stateWord } from "../format";
import { DeleteDialog, StartButton } from "../parts/actions";
import { Ago, Alert, Command, Copy, Head, State } from "../parts/basics";
import { reasonOf } from "../parts/event-list";
import { Spark } from "../parts/spark";
import { usualWait } from "../parts/wait";
import { useMedia, useWindow } from "../parts/window";
import type { Happening, InstanceInList } from "../shapes";
import { instances, latest, loaded, loadError, monthCost, reload } from "../store";

type Column = "name" | "state" | "flavor" | "size" | "now" | "month";

const COLUMNS: [key: Column | null, title: string, number?: boolean][] = [
  ["name", "Name"],
  ["state", "State"],
  ["flavor", "Flavor"],
  ["size", "Size"],
  [null, "CPU"],
  [null, "Reach it"],
  ["now", "Now", true],
  ["month", "This month", true],
];

const VALUES: Record<Column, (i: InstanceInList) => string | number> = {
  name: (i) => i.name,
  state: (i) => stateWord(i.state),
  flavor: (i) => i.flavor,
  size: (i) => i.n_vcpus * 1e9 + i.mem_gib * 1e5 + i.disk_size_gib,
  now: rateNow,
  month: (i) => monthCost(i) ?? 0,
};

/** Heights of a row in pixels, as in the style sheet. */
const ROW = 60;
const NARROW_ROW = 92;
const NARROW = "(max-width: 899px)";

// The filter and the order outlive a visit to another page.
const filter = { text: "" };
const order: { by: Column | null; down: boolean } = { by: null, down: false };

/** The text that a filter searches. */
function words(i: InstanceInList): string {
  const kind = i.resource_type === "vm" ? "vm virtual machine" : "container";
  return `${i.name} ${stateWord(i.state)} ${i.state} ${i.flavor} ${kind} ${i.gpu_model ?? ""}`.toLowerCase();
}

function select(list: InstanceInList[], text: string, by: Column | null, down: boolean) {
  const parts = text.toLowerCase().split(/\s+/).filter(Boolean);
  const chosen = parts.length
    ? list.filter((i) => {
        const all = words(i);
        return parts.every((part) => all.includes(part));
      })
    : list.slice();
  if (!by) return chosen.reverse();
  const value = VALUES[by];
  const sign = down ? -1 : 1;
  return chosen.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return x === y ? 0 : x < y ? -sign : sign;
  });
}

export function Instances() {
  const text = useSignal(filter.text);
  const by = useSignal(order.by);
  const down = useSignal(order.down);
  const removing = useSignal<InstanceInList | null>(null);
  const rows = useComputed(() => select(instances.value, text.value, by.value, down.value));
  const narrow = useMedia(NARROW);
  const body = useRef<HTMLTableSectionElement>(null);
  const height = narrow ? NARROW_ROW : ROW;
  const range = useWindow(body, rows.value.length, height);
  const sort = (column: Column) => {
    const again = by.value === column;
    down.value = again ? !down.value : column === "now" || column === "month" || column === "size";
    by.value = column;
    Object.assign(order, { by: column, down: down.value });
  };
  const all = instances.value.length;
  return (
    <>
      <Head title="Instances">
        {all > 0 && (
          <input
            type="search"
            data-filter
            class="filter"
            placeholder="Filter   /"
            aria-label="Filter instances"
            aria-keyshortcuts="/"
            value={text.value}
            onInput={(event) => {
              text.value = filter.text = event.currentTarget.value;
              scrollTo(0, 0);
            }}
          />
        )}
        <a class="button primary" href="/instances/new" aria-keyshortcuts="c">
          Create instance
        </a>
      </Head>
      {loadError.value && (
        <p class="alert" role="alert">
          {loadError.value}{" "}
          <button type="button" class="small" onClick={() => void reload()}>
            Try again
          </button>
        </p>
      )}
      {all === 0 && loaded.value ? (
        <Empty />
      ) : (
        <table class="list instances" role="table" aria-rowcount={rows.value.length + 1}>
          <thead role="rowgroup">
            <tr role="row" aria-rowindex={1}>
              {COLUMNS.map(([key, title, number]) => (
                <th
                  key={title}
                  role="columnheader"
                  scope="col"
                  class={number ? "number" : undefined}
                  aria-sort={
                    key && by.value === key ? (down.value ? "descending" : "ascending") : undefined
                  }
                >
                  {key ? (
                    <button type="button" class="sort" onClick={() => sort(key)}>
                      {title}
                    </button>
                  ) : (
                    title
                  )}
                </th>
              ))}
            </tr>
          </thead>
          <tbody ref={body} role="rowgroup">
            <tr class="gap" aria-hidden="true" style={{ height: `${range.above}px` }} />
            {rows.value.slice(range.from, range.to).map((instance, n) => (
              <Row
                key={instance.uuid}
                instance={instance}
                index={range.from + n + 2}
                onDelete={() => (removing.value = instance)}
              />
            ))}
            <tr class="gap" aria-hidden="true" style={{ height: `${range.below}px` }} />
          </tbody>
        </table>
      )}
      {all > 0 && rows.value.length === 0 && (
        <p class="none" role="status">
          No instance matches “{text.value}”.{" "}
          <button type="button" class="small" onClick={() => (text.value = filter.text = "")}>
            Show all {all}
          </button>
        </p>
      )}
      {all > 0 && <Command line={commands.list} note="shows this list in a terminal." />}
      {removing.value && (
        <DeleteDialog instance={removing.value} onClose={() => (removing.value = null)} />
      )}
    </>
  );
}

interface RowProps {
  instance: InstanceInList;
  index: number;
  onDelete: () => void;
}

function Row({ instance: i, index, onDelete }: RowProps) {
  const cost = monthCost(i);
  const now = rateNow(i);
  return (
    <tr role="row" aria-rowindex={index} data-name={i.name}>
      <th role="rowheader" scope="row" class="name">
        <a href={`/instances/${i.name}`}>{i.name}</a>
        <small>
          <Ago at={i.created_at} bare />
        </small>
      </th>
      <td role="cell" class="at-state">
        <State state={i.state} />
        <Reason instance={i} />
      </td>
      <td role="cell" class="flavor">
        {i.flavor}
        {i.resource_type === "vm" && " · VM"}
      </td>
      <td role="cell" class="size">
        {i.n_vcpus} vCPU{i.n_gpus > 0 && ` · ${i.gpu_model}`}
        <small>
          {gib(i.mem_gib)} · {i.disk_size_gib} GiB disk
        </small>
      </td>
      <td role="cell" class="cpu">
        <Spark
          uuid={i.uuid}
          vcpus={i.n_vcpus}
          active={i.state === "running" && i.resource_type === "container"}
        />
      </td>
      <td role="cell" class="reach">
        <Next instance={i} onDelete={onDelete} />
      </td>
      <td role="cell" class="number now">
        {i.state === "error" ? "not billed" : rate(now)}
        {isStopped(i.state) && <small>disk only</small>}
      </td>
      <td role="cell" class="number month">
        {cost === null ? "–" : money(cost)}
      </td>
    </tr>
  );
}

/** Why an instance is in error, or what it waits for. */
function Reason({ instance }: { instance: InstanceInList }) {
  const older = useSignal<string | null>(null);
  const failed = instance.state === "error";
  const last = latest.value.get(instance.uuid);
  const event = last && reasonOf(instance.state, [last]);
  useEffect(() => {
    if (!failed || event) return;
    const path = `/api/event/?instance=${instance.uuid}&limit=1000`;
    get<Happening[]>(path).then(
      (events) => (older.value = reasonOf("error", events.reverse())?.message ?? null),
      () => {},
    );
  }, [failed, Boolean(event)]);
  if (!failed && instance.state !== "provisioning") return null;
  const text = event?.message ?? older.value;
  return text ? <small title={text}>{text}</small> : null;
}

/** The one thing to do next. */
function Next({ instance: i, onDelete }: { instance: InstanceInList; onDelete: () => void }) {
  // A narrow row has no room for the command itself.
  const label = useMedia(NARROW) ? "Copy SSH" : "Copy";
  if (i.state === "error") {
    return (
      <button type="button" class="small" onClick={onDelete} aria-label={`Delete ${i.name}`}>
        Delete
      </button>
    );
  }
  if (isStopped(i.state)) return <StartButton instance={i} small />;
  if (i.state === "provisioning") return <span class="muted">{usualWait(i.flavor) ?? "not yet"}</span>;
  return (
    <>
      {i.webapp_url && (
        <a class="button small" href={i.webapp_url} target="_blank" rel="noreferrer">
          Open page ↗
        </a>
      )}
      {i.ssh_command && (
        <span class="ssh">
          <code title={i.ssh_command}>{i.ssh_command}</code>
          <Copy text={i.ssh_command} label={label} what={`the SSH command of ${i.name}`} />
        </span>
      )}
    </>
  );
}

function Empty() {
  return (
    <section class="panel empty">
      <h2>No instances yet</h2>
      <p>An instance is a container or a virtual machine of yours, ready in seconds.</p>
      <a class="button primary" href="/instances/new">
        Create the first instance
      </a>
      <Command line="wharf create --wait" note="does it in a terminal." />
      <Alert words={loadError.value} />
    </section>
  );
}
