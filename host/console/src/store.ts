// State of the server, as signals that the event stream keeps current.

import { batch, computed, signal } from "@preact/signals";
import { asProblem, get, leaving, pages, Problem, signedOut } from "./api";
import { connect, type Disconnect } from "./live/connect";
import type { List, Message, Reason } from "./live/stream";
import { rateNow } from "./format";
import { go, path, returnTo } from "./router";
import type { Happening, Instance, InstanceInList, Session, Usage } from "./shapes";

/** Instances per page of the first load. */
const PAGE = 200;
/** Events kept for the pages that show the latest. */
const RECENT = 500;
/** Events arrive in bursts; the changed instances are read together after this pause. */
const GATHER_MS = 60;
/** With more changed instances, the list is read instead. */
const SINGLY = 20;
/** Changes of lists arrive in bursts too. */
const LISTS_MS = 200;
/** The sums of the month are read again this long after a change. */
const USAGE_MS = 1500;

/** The signed-in user: undefined while unknown, null if nobody is signed in. */
export const session = signal<Session | null | undefined>(undefined);
export const instances = signal<InstanceInList[]>([]);
/** Whether the whole list has arrived. */
export const loaded = signal(false);
export const loadError = signal<string | null>(null);
/** The latest events, newest first. */
export const recent = signal<Happening[]>([]);
/** The number of the latest event at the first connection; none before it. */
export const end = signal<number | null>(null);
export const usage = signal<Usage | null>(null);
export const online = signal(true);
/** Why the user was signed out, for the page that signs in again. */
export const notice = signal<string | null>(null);
/** The words about a fault that no form or list shows. */
export const fault = signal<string | null>(null);
/** The time, twice a minute. */
export const now = signal(Date.now());

/** The hourly rate of all instances, volumes and snapshots. */
export const totalRate = computed(() => {
  const { volumes = [], snapshots = [] } = usage.value ?? {};
  const rest = [...volumes, ...snapshots].reduce((sum, other) => sum + other.hourly_usd, 0);
  return instances.value.reduce((sum, i) => sum + rateNow(i), rest);
});
/** The latest event of each instance. */
export const latest = computed(() => {
  const words = new Map<string, Happening>();
  for (const event of recent.value) {
    if (event.instance && !words.has(event.instance)) words.set(event.instance, event);
  }
  return words;
});
const usages = computed(() => new Map(usage.value?.instances.map((i) => [i.uuid, i])));

/** The cost of an instance in this month so far; none while it is unknown. */
export function monthCost(instance: InstanceInList): number | null {
  const known = usage.value;
  if (!known) return null;
  const hours = Math.max(0, now.value - Date.parse(known.to)) / 3_600_000;
  const sum = usages.value.get(instance.uuid);
  return (sum?.total_usd ?? 0) + (sum?.hourly_usd ?? 0) * hours;
}

/** The instance with this name or UUID, if the list has it. */
export function find(name: string): InstanceInList | undefined {
  return instances.value.find((i) => i.name === name || i.uuid === name);
}

let disconnect: Disconnect | null = null;

/** Learns who is signed in, and follows the event stream from then on. */
export async function start(): Promise<void> {
  try {
    session.value = await get<Session>("/api/session/");
  } catch (error) {
    const problem = asProblem(error);
    if (problem.status !== 401) loadError.value = problem.message;
    return;
  }
  loadError.value = null;
  notice.value = null;
  disconnect = connect(receive);
}

/** Forgets everything of the user, after signing out. With a reason, the other tabs do too. */
export function forget(reason: Reason | null = "tab"): void {
  disconnect?.(reason);
  disconnect = null;
  leaving.now = false;
  batch(() => {
    session.value = null;
    instances.value = [];
    recent.value = [];
    usage.value = null;
    loaded.value = false;
  });
}

const REASONS: Record<Reason, string> = {
  tab: "You signed out in another tab.",
  ended: "Your session was ended elsewhere, by a sign-out or a new password. Sign in again.",
  expired: "Your session has expired. Sign in again.",
  disabled: "The operator has disabled your account. Ask the operator.",
  unknown: "Your session is not valid any more. Sign in again.",
};

/** Leads to the page that signs in, which says why. `told` are the other tabs already. */
function leave(reason: Reason, told: boolean): void {
  if (leaving.now) return;
  const was = session.value;
  forget(told ? null : reason);
  const open = ["/sign-in", "/invite"];
  if (open.includes(path.value)) return;
  if (was) notice.value = REASONS[reason];
  returnTo.value = location.pathname + location.search + location.hash;
  go("/sign-in", true);
}

signedOut.handler = () => leave("unknown", false);

function receive(message: Message): void {
  switch (message.kind) {
    case "ready":
      end.value = message.id;
      void reload();
      void readRecent(message.id);
      break;
    case "event":
      learn(message.event);
      break;
    case "reset":
      void reload();
      break;
    case "changed":
      for (const list of message.lists) changedLists.add(list);
      listing ??= setTimeout(tellOfLists, LISTS_MS);
      break;
    case "online":
      online.value = message.online;
      break;
    case "signed-out":
      leave(message.reason, true);
  }
}

/** Reads the whole list again, page by page; the first page shows at once. */
export async function reload(): Promise<void> {
  try {
    const all = new Map<string, InstanceInList>();
    for await (const page of pages<InstanceInList>(`/api/instance/?limit=${PAGE}`)) {
      for (const instance of page) all.set(instance.uuid, instance);
      if (!loaded.value) instances.value = [...all.values()];
    }
    batch(() => {
      instances.value = [...all.values()];
      loaded.value = true;
      loadError.value = null;
    });
  } catch (error) {
    loadError.value = asProblem(error).message;
  }
  await readUsage();
}

async function readRecent(last: number): Promise<void> {
  const after = Math.max(0, last - RECENT);
  const events = await get<Happening[]>(`/api/event/?after=${after}&limit=${RECENT}`).catch(() => []);
  remember(events.filter((event) => event.type !== "reset"));
}

/** Adds events to the latest ones, each once. */
function remember(events: Happening[]): void {
  const known = new Map(recent.value.map((event) => [event.id, event]));
  for (const event of events) known.set(event.id, event);
  recent.value = [...known.values()].sort((a, b) => b.id - a.id).slice(0, RECENT);
}

const changed = new Set<string>();
let gathering: ReturnType<typeof setTimeout> | undefined;
let summing: ReturnType<typeof setTimeout> | undefined;
const listeners = new Set<(event: Happening) => void>();

/** Runs `listener` for each new event until the returned function is called. */
export function onEvent(listener: (event: Happening) => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

const changedLists = new Set<List>();
let listing: ReturnType<typeof setTimeout> | undefined;
const listListeners = new Map<() => void, List[]>();

/** Runs `listener` when one of `lists` has changed, until the returned function is called. */
export function onChange(lists: List[], listener: () => void): () => void {
  listListeners.set(listener, lists);
  return () => void listListeners.delete(listener);
}

function tellOfLists(): void {
  listing = undefined;
  const changed = new Set(changedLists);
  changedLists.clear();
  for (const [listener, lists] of [...listListeners]) if (lists.some((list) => changed.has(list))) listener();
}

function learn(event: Happening): void {
  remember([event]);
  for (const listener of listeners) listener(event);
  clearTimeout(summing);
  summing = setTimeout(() => void readUsage(), USAGE_MS);
  if (!event.instance) return;
  changed.add(event.instance);
  gathering ??= setTimeout(() => void refresh(), GATHER_MS);
}

async function refresh(): Promise<void> {
  gathering = undefined;
  const uuids = [...changed];
  changed.clear();
  if (uuids.length > SINGLY) return reload();
  await Promise.all(uuids.map(readOne));
}

/** Reads one instance and puts it into the list. */
export async function readOne(uuid: string): Promise<void> {
  try {
    put(await get<Instance>(`/api/instance/${uuid}/`));
  } catch (error) {
    if (error instanceof Problem && error.status === 404) remove(uuid);
  }
}

/** Puts a newer version of an instance into the list. */
export function put(instance: InstanceInList): void {
  const list = instances.value;
  const at = list.findIndex((i) => i.uuid === instance.uuid);
  instances.value = at < 0 ? [...list, instance] : list.with(at, instance);
}

/** Takes an instance out of the list. */
export function remove(uuid: string): void {
  instances.value = instances.value.filter((i) => i.uuid !== uuid);
}

async function readUsage(): Promise<void> {
  const sums = await get<Usage>("/api/usage/").catch(() => null);
  if (sums) usage.value = sums;
}

setInterval(() => (now.value = Date.now()), 15_000);
