// Numbers, money and times in words.

import type { InstanceInList, Snapshot, Volume } from "./shapes";

const HOURS_PER_MONTH = 730;

/** An hourly rate: four decimals, more for amounts that would show as nothing. */
export function rate(usd: number): string {
  return `${dollars(usd, 4)}/h`;
}

/** A sum of money. */
export function money(usd: number): string {
  return dollars(usd, 2);
}

/** The cost of a rate for a whole month. */
export function perMonth(usd: number): string {
  return money(usd * HOURS_PER_MONTH);
}

function dollars(usd: number, digits: number): string {
  const size = Math.abs(usd);
  const least = 10 ** -digits;
  if (size > 0 && size < least / 2) return `${usd < 0 ? "−" : ""}<$${least.toFixed(digits)}`;
  const text = size.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${usd < 0 ? "−" : ""}$${text}`;
}

/** The hourly rate of an instance while its disk alone is billed. */
export function diskRate(i: InstanceInList): number {
  return i.storage_cost_hourly_usd * i.disk_size_gib;
}

/** The hourly rate of an instance while it runs. */
export function fullRate(i: InstanceInList): number {
  return (
    i.vcpu_cost_hourly_usd * i.n_vcpus +
    i.ram_cost_hourly_usd * i.mem_gib +
    i.gpu_cost_hourly_usd * i.n_gpus +
    diskRate(i)
  );
}

/** The hourly rate of an instance in its state. */
export function rateNow(i: InstanceInList): number {
  switch (i.state) {
    case "provisioning":
    case "running":
      return fullRate(i);
    case "shut_off":
    case "exited":
      return diskRate(i);
    default:
      return 0;
  }
}

const STATES: Record<string, string> = {
  provisioning: "Starting",
  running: "Running",
  shut_off: "Stopped",
  exited: "Stopped",
  error: "Error",
  deleted: "Deleted",
  creating: "Creating",
  ready: "Ready",
  deleting: "Deleted",
  sending: "Sending",
  done: "Done",
  failed: "Failed",
};

/** Names with commas and an "and" between. */
export function listed(names: string[]): string {
  return names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** The hourly rate of a volume. */
export function volumeRate(v: Volume): number {
  return v.state === "error" ? 0 : v.storage_cost_hourly_usd * v.size_gib;
}

/** The hourly rate of a snapshot. */
export function snapshotRate(s: Snapshot): number {
  return s.state === "ready" ? s.storage_cost_hourly_usd * (s.size_gib ?? 0) : 0;
}

/** The word for a state. */
export function stateWord(state: string): string {
  return STATES[state] ?? state;
}

export function isStopped(state: string): boolean {
  return state === "shut_off" || state === "exited";
}

/** An amount of GiB without needless decimals. */
export function gib(amount: number): string {
  return `${Number.isInteger(amount) ? amount : amount.toFixed(1)} GiB`;
}

const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

/** A number of bytes, such as "1.4 GiB". */
export function bytes(n: number): string {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, n)) / 10));
  const amount = n / 1024 ** step;
  return `${step === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)}\u00a0${UNITS[step]}`;
}

/** The short form of an id: its end, since ids begin with the time of their creation. */
export function shortId(id: string): string {
  return id.slice(-8);
}

/** A size, such as "1 vCPU, 2 GiB, 10 GiB". */
export function size(i: { n_vcpus: number | null; mem_gib: number | null; disk_size_gib: number | null }): string {
  return i.n_vcpus === null ? "–" : `${i.n_vcpus} vCPU, ${gib(i.mem_gib ?? 0)}, ${gib(i.disk_size_gib ?? 0)}`;
}

const FIELDS: Record<string, string> = {
  n_vcpus: "vCPU",
  mem_gib: "GiB RAM",
  disk_size_gib: "GiB disk",
  n_gpus: "GPU",
  n_instances: "instances",
  n_ports: "ports",
  size_gib: "GiB",
  n_volumes: "volumes",
  volume_gib: "GiB of volumes",
  n_snapshots: "snapshots",
  snapshot_gib: "GiB of snapshots",
};

/** Amounts by field, such as "4 vCPU, 8 GiB RAM". */
export function amounts(values: Record<string, number>): string {
  const parts = Object.entries(values).map(([field, n]) => `${n} ${FIELDS[field] ?? field}`.replaceAll(" ", "\u00a0"));
  return parts.join(", ");
}

const STEPS: [number, string][] = [
  [86_400, "day"],
  [3_600, "hour"],
  [60, "minute"],
  [1, "second"],
];

/** A duration in its largest unit, such as "3 hours". */
export function duration(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000));
  for (const [size, unit] of STEPS) {
    const n = Math.floor(seconds / size);
    if (n >= 1) return `${n} ${unit}${n === 1 ? "" : "s"}`;
  }
  return "now";
}

/** How long ago a time was. */
export function ago(at: string, now: number): string {
  const text = duration(now - Date.parse(at));
  return text === "now" ? text : `${text} ago`;
}

/** A time in the reader's zone, exact to the second. */
export function exact(at: string): string {
  return new Date(at).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

/** The time of day of an event, with its date if it was on another day. */
export function clock(at: string, now: number): string {
  const time = new Date(at);
  const today = new Date(now).toDateString() === time.toDateString();
  const day = time.toLocaleDateString(undefined, { day: "numeric", month: "short" });
  const hour = time.toLocaleTimeString(undefined, { hour12: false });
  return today ? hour : `${day}, ${hour}`;
}

/** A month such as 2026-11 in words. */
export function monthWord(month: string): string {
  const [year, number] = month.split("-").map(Number);
  const date = new Date(Date.UTC(year ?? 1970, (number ?? 1) - 1, 1));
  return date.toLocaleDateString("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });
}
