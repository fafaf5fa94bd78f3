// The page of one instance.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { asProblem, get } from "../api";
import { commands } from "../commands";
import { diskRate, duration, fullRate, gib, isStopped, money, rate, rateNow } from "../format";
import { DeleteDialog, StartButton, StopDialog } from "../parts/actions";
import { InstanceBackups } from "../parts/backups";
import { Ago, Command, Copy, Facts, Head, State } from "../parts/basics";
import { Chart } from "../parts/chart";
import { EventList, reasonOf, useInstanceEvents } from "../parts/event-list";
import { Ports, Rename, Resize } from "../parts/instance-forms";
import { InstanceVolumes } from "../parts/mounts";
import { RecreateButton } from "../parts/recreate";
import { Shares } from "../parts/shares";
import { InstanceSnapshots } from "../parts/snapshots";
import { useSamples } from "../parts/spark";
import { go } from "../router";
import type { HostKey, Instance, InstanceInList } from "../shapes";
import { find, loaded, monthCost, now, onChange, put, session } from "../store";

/** Samples for the charts, in milliseconds. */
const SAMPLE_MS = 1500;

export function InstancePage({ name }: { name: string }) {
  // The UUID stays when the instance is renamed here or elsewhere.
  const uuid = useSignal<string | null>(null);
  const missing = useSignal<string | null>(null);
  const instance = find(uuid.value ?? name);
  useEffect(() => {
    if (instance) {
      uuid.value = instance.uuid;
      if (instance.name !== name) go(`/instances/${instance.name}${location.hash}`, true);
      return;
    }
    get<Instance>(`/api/instance/${encodeURIComponent(uuid.value ?? name)}/`).then(put, (error: unknown) => {
      missing.value = asProblem(error).message;
    });
  }, [name, instance?.uuid, instance?.name, loaded.value]);
  if (instance) return <Shown instance={instance} />;
  if (!missing.value) return <Head title={name} />;
  return (
    <>
      <Head title={uuid.value ? `${name} is deleted` : `There is no instance ${name}`} />
      <p>
        {missing.value} <a href="/instances">Show your instances</a>
      </p>
    </>
  );
}

type Tab = "overview" | "events" | "volumes" | "snapshots" | "backups" | "share" | "resize" | "settings";

const TABS: [Tab, string][] = [
  ["overview", "Overview"],
  ["events", "Events"],
  ["volumes", "Volumes"],
  ["snapshots", "Snapshots"],
  ["backups", "Backups"],
  ["share", "Share"],
  ["resize", "Resize"],
  ["settings", "Settings"],
];

/** The types of events that tell of a disk that is being replaced. */
const MOVING = ["disk-growing", "restoring"];

const isTab = (text: string): text is Tab => TABS.some(([tab]) => tab === text);

function Shown({ instance: i }: { instance: InstanceInList }) {
  const hash = location.hash.slice(1);
  const tab = useSignal<Tab>(isTab(hash) ? hash : "overview");
  const dialog = useSignal<"stop" | "delete" | null>(null);
  const events = useInstanceEvents(i.uuid);
  const since = events.value.find((e) => ["ready", "restarted", "stopped", "failed", "died", "moving", "lost"].includes(e.type))?.at;
  const open = (to: Tab) => {
    tab.value = to;
    history.replaceState(null, "", to === "overview" ? location.pathname : `#${to}`);
  };
  const close = () => (dialog.value = null);
  const isVm = i.resource_type === "vm";
  return (
    <>
      <p class="crumb">
        <a href="/instances">Instances</a> /
      </p>
      <Head title={i.name}>
        {i.state === "running" && (
          <button type="button" onClick={() => (dialog.value = "stop")}>
            Stop
          </button>
        )}
        <button type="button" onClick={() => (dialog.value = "delete")}>
          Delete
        </button>
        {isStopped(i.state) && <StartButton instance={i} />}
        {i.state === "error" && reasonOf(i.state, events.value)?.type === "lost" && (
          <RecreateButton instance={i} />
        )}
        {i.state === "running" && i.webapp_url && (
          <a class="button primary" href={i.webapp_url} target="_blank" rel="noreferrer">
            Open page ↗
          </a>
        )}
        {i.state === "running" && (
          <a class={i.webapp_url ? "button" : "button primary"} href={`/instances/${i.name}/terminal`}>
            Open terminal
          </a>
        )}
        {i.state === "running" && session.value && (
          <a class="button" href={editorLink(i.name, session.value.login_user)}>
            Open in VS Code
          </a>
        )}
      </Head>
      <p class="since">
        <State state={i.state} />
        {since && i.state !== "provisioning" && (
          <span class="muted">{forTime(now.value - Date.parse(since))}</span>
        )}
        {(i.state === "error" || i.state === "provisioning" || MOVING.includes(events.value[0]?.type ?? "")) && (
          <span class="muted">{reasonOf(i.state, events.value)?.message}</span>
        )}
      </p>
      <Reach instance={i} />
      <div class="tabs" role="tablist" aria-label={`Parts of ${i.name}`}>
        {TABS.map(([key, word]) => (
          <button
            key={key}
            id={`tab-${key}`}
            type="button"
            role="tab"
            aria-selected={tab.value === key}
            aria-controls="tab-panel"
            tabIndex={tab.value === key ? 0 : -1}
            onClick={() => open(key)}
            onKeyDown={(event) => step(event, key, open)}
          >
            {word}
          </button>
        ))}
      </div>
      <div id="tab-panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`}>
        {tab.value === "overview" && (
          <>
            <Overview instance={i} lately={<EventList events={events.value.slice(0, 5)} named={false} />} />
            <Command line={commands.editors} note={`lets VS Code, ssh, scp and rsync reach ${i.name}.wharf.`} />
          </>
        )}
        {tab.value === "volumes" && <InstanceVolumes instance={i} />}
        {tab.value === "snapshots" && <InstanceSnapshots instance={i} />}
        {tab.value === "backups" && <InstanceBackups instance={i} />}
        {tab.value === "share" && <Shares instance={i} changed={events.value[0]?.id} />}
        {tab.value === "events" && (
          <>
            <EventList events={events.value} named={false} />
            <Command line={commands.eventsOf(i.name)} note="lists these events in a terminal." />
          </>
        )}
        {tab.value === "resize" && <Resize instance={i} />}
        {tab.value === "settings" && (
          <>
            <Rename instance={i} />
            {isVm && <Ports instance={i} />}
          </>
        )}
      </div>
      {dialog.value === "stop" && <StopDialog instance={i} onClose={close} />}
      {dialog.value === "delete" && (
        <DeleteDialog instance={i} onClose={close} onDone={() => go("/instances")} />
      )}
    </>
  );
}

/** The home directory in VS Code, over the SSH entry that `wharf config-ssh` writes on the user's computer. */
function editorLink(name: string, user: string): string {
  return `vscode://vscode-remote/ssh-remote+${name}.wharf/home/${user}`;
}

function forTime(ms: number): string {
  const text = duration(ms);
  return text === "now" ? "just now" : `for ${text}`;
}

/** Moves between tabs with the arrow keys. */
function step(event: KeyboardEvent, from: Tab, open: (tab: Tab) => void): void {
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  const at = TABS.findIndex(([tab]) => tab === from);
  const next = TABS[(at + by + TABS.length) % TABS.length];
  if (!by || !next) return;
  open(next[0]);
  document.getElementById(`tab-${next[0]}`)?.focus();
}

/** How to log in, or to see the page. */
function Reach({ instance: i }: { instance: InstanceInList }) {
  const shown = useSignal(false);
  const keys = useSignal<HostKey[]>([]);
  const running = i.state === "running";
  useEffect(() => {
    if (!running) return;
    const path = `/api/instance/${i.uuid}/host-key/`;
    const read = () => void get<HostKey[]>(path).then((list) => (keys.value = list), () => {});
    read();
    // The first key may be noted after the instance became reachable.
    return onChange(["host-keys"], read);
  }, [i.uuid, running]);
  const password = i.original_service_password;
  const key = keys.value.find((k) => k.type === "ssh-ed25519") ?? keys.value[0];
  if (!i.ssh_command && !i.webapp_url) return null;
  return (
    <section class="panel reach-it" aria-label="Reach it">
      {i.ssh_command && (
        <span class="ssh">
          <code>{i.ssh_command}</code>
          <Copy text={i.ssh_command} what="the SSH command" />
        </span>
      )}
      {i.webapp_url && (
        <span class="ssh">
          <code>{i.webapp_url}</code>
          <Copy text={i.webapp_url} what="the address of the page" />
        </span>
      )}
      {password && (
        <span class="ssh">
          <button type="button" class="small" aria-pressed={shown.value} onClick={() => (shown.value = !shown.value)}>
            {shown.value ? "Hide password" : "Show password"}
          </button>
          {shown.value && <code>{password}</code>}
          <Copy text={password} label="Copy password" what="the password" />
        </span>
      )}
      {key && (
        <span class="muted host-key">
          host key <code title={`${key.type} ${key.fingerprint}`}>{key.fingerprint}</code>
        </span>
      )}
    </section>
  );
}

function Overview({ instance: i, lately }: { instance: InstanceInList; lately: ComponentChildren }) {
  const cost = monthCost(i);
  const measured = i.state === "running" && i.resource_type === "container";
  useSamples(i.uuid, SAMPLE_MS, measured);
  const rows: [string, ComponentChildren][] = [
    ["Flavor", i.flavor],
    ["Kind", i.resource_type === "vm" ? "virtual machine" : "container"],
    ["vCPU", `${i.n_vcpus} · ${i.cpu_tier}`],
    ["RAM", gib(i.mem_gib)],
    ["Disk", `${i.disk_size_gib} GiB`],
    ...(i.gpu_model ? [["GPU", i.gpu_model] as [string, string]] : []),
    ["Private address", <code>{i.lan_ipv4}</code>],
    ...(i.public_ipv4 ? [["Public address", <code>{i.public_ipv4}</code>] as [string, ComponentChildren]] : []),
    ...(i.resource_type === "vm"
      ? [["Open ports", i.wan_ports.join(", ")] as [string, string]]
      : []),
    ...i.volumes.map((v): [string, ComponentChildren] => [
      "Volume",
      <>
        <a href={`/volumes/${v.volume}`}>{v.name}</a> at <code>{v.path}</code>
      </>,
    ]),
    ["Created", <Ago at={i.created_at} />],
  ];
  return (
    <div class="overview">
      <div class="charts">
        {measured ? (
          <>
            <Chart uuid={i.uuid} label="CPU" value={(s) => s.cpu_percent} top={i.n_vcpus * 100} unit="%" />
            <Chart uuid={i.uuid} label="Memory" value={(s) => s.mem_used_gib} top={i.mem_gib} unit="GiB" />
            <Chart uuid={i.uuid} label="Disk" value={(s) => s.disk_used_gib} top={i.disk_size_gib} unit="GiB" />
          </>
        ) : (
          <section class="panel empty">
            <h2>No measurements</h2>
            <p>
              {i.resource_type === "vm"
                ? "The usage of a virtual machine is seen from inside it."
                : "The usage shows while the container runs."}
            </p>
          </section>
        )}
        <section class="lately">
          <h2>Lately</h2>
          {lately}
        </section>
        {isStopped(i.state) ? (
          <Command line={commands.start(i.name)} note="starts it in a terminal." />
        ) : (
          <Command line={commands.show(i.name)} note="shows this in a terminal." />
        )}
      </div>
      <section class="panel" aria-label="Cost and size">
        <h2>Cost</h2>
        <Facts
          rows={[
            ["Now", <span class="number">{i.state === "error" ? "not billed" : rate(rateNow(i))}</span>],
            isStopped(i.state)
              ? ["If started", <span class="number">{rate(fullRate(i))}</span>]
              : ["If stopped", <span class="number">{rate(diskRate(i))}</span>],
            ["This month", <span class="number">{cost === null ? "–" : money(cost)}</span>],
          ]}
        />
        <hr />
        <Facts rows={rows} />
      </section>
    </div>
  );
}
