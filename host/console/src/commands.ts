// The commands of the program `wharf` for the actions of each page.

import type { CloneRequest, CreateRequest, Snapshot, VolumeMount } from "./shapes";

const quote = (text: string) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

/** A volume at a directory, as options take it. */
const mounted = ({ volume, path, read_only }: VolumeMount) =>
  quote(`${volume || "VOLUME"}:${path || "/data"}${read_only ? ":ro" : ""}`);

/** A snapshot as arguments take it. */
const snapshot = ({ instance_name, name }: Snapshot) => `${instance_name}/${name}`;

/** The options of each way to create an instance. */
function options(body: CloneRequest): string {
  const parts = [`--vcpus ${body.n_vcpus} --mem ${body.mem_gib} --disk ${body.disk_size_gib}`];
  if (body.cpu_tier && body.cpu_tier !== "general-purpose") parts.push(`--tier ${body.cpu_tier}`);
  if (body.gpu_model) parts.push(`--gpu ${quote(body.gpu_model)}`);
  for (const mount of body.volumes ?? []) parts.push(`--volume ${mounted(mount)}`);
  parts.push("--wait");
  return parts.join(" ");
}

/** The options of a plan. */
const planned = (every: string, keep: string, days: string) =>
  `--every ${quote(every || "24")} --keep ${quote(keep || "7")}${days && ` --keep-days ${quote(days)}`}`;

export const commands = {
  list: "wharf ls",
  show: (name: string) => `wharf show ${name}`,
  stop: (name: string) => `wharf stop ${name}`,
  start: (name: string) => `wharf restart ${name}`,
  remove: (name: string) => `wharf rm ${name}`,
  rename: (name: string, to: string) => `wharf rename ${name} ${to || "NEW-NAME"}`,
  resize: (name: string, size: { n_vcpus: number; mem_gib: number; disk_size_gib: number }) =>
    `wharf resize ${name} --vcpus ${size.n_vcpus} --mem ${size.mem_gib} --disk ${size.disk_size_gib}`,
  openPort: (name: string, port: string) => `wharf port add ${name} ${port || "8080"}`,
  terminal: (name: string) => `wharf ssh ${name}`,
  editors: "wharf config-ssh",
  share: (name: string, port: string, access: string, users: string[], days: number | null) => {
    const to = { signed_in: " --signed-in", public: " --public", owner: "" }[access];
    const visitors = to ?? ` --with ${quote(users.join(",") || "bob@example.com")}`;
    return `wharf share add ${name}${port && ` --port ${quote(port)}`}${visitors}${days ? ` --expires ${days}d` : ""}`;
  },
  withdraw: (name: string, port: number | null) => `wharf share rm ${name}${port === null ? "" : ` --port ${port}`}`,
  usage: "wharf cost",
  events: "wharf events --follow",
  eventsOf: (name: string) => `wharf events ${name}`,
  volumes: "wharf volume ls",
  newVolume: (name: string, size: string) => `wharf volume create ${name || "NAME"} --size ${quote(size || "20")}`,
  showVolume: (name: string) => `wharf volume show ${name}`,
  renameVolume: (name: string, to: string) => `wharf volume rename ${name} ${to || "NEW-NAME"}`,
  removeVolume: (name: string) => `wharf volume rm ${name}`,
  shareVolume: (name: string, user: string) => `wharf volume share ${name} ${quote(user || "bob@example.com")}`,
  unshareVolume: (name: string, user: string) => `wharf volume unshare ${name} ${quote(user)}`,
  attach: (name: string, mount: VolumeMount) => `wharf attach ${name} ${mounted(mount)}`,
  detach: (name: string, volume: string) => `wharf detach ${name} ${volume}`,
  snapshots: (name: string) => `wharf snapshot ls ${name}`,
  takeSnapshot: (name: string, called: string) => `wharf snapshot create ${name}${called && ` --name ${called}`}`,
  removeSnapshot: (s: Snapshot) => `wharf snapshot rm ${snapshot(s)}`,
  restore: (s: Snapshot, first: boolean) => `wharf snapshot restore ${snapshot(s)}${first ? " --snapshot-first" : ""}`,
  clone: (s: Snapshot, body: CloneRequest) =>
    `wharf snapshot clone ${snapshot(s)}${body.name ? ` ${body.name}` : ""} ${options(body)}`,
  plan: (name: string, every: string, keep: string, days: string) =>
    `wharf snapshot plan set ${name} ${planned(every, keep, days)}`,
  backups: (name: string) => `wharf bucket contents --instance ${name}`,
  backup: (name: string, bucket: string) => `wharf bucket send ${name} ${bucket} --wait`,
  volumeBackup: (name: string, bucket: string) => `wharf bucket send --volume ${name} ${bucket} --wait`,
  backupPlan: (name: string, bucket: string, every: string, keep: string, days: string) =>
    `wharf bucket plan set ${name} ${bucket} ${planned(every, keep, days)}`,
  removeBackup: (id: string) => `wharf bucket discard ${id}`,
  recover: (id: string, body: CloneRequest) =>
    `wharf bucket recover ${id}${body.name ? ` ${body.name}` : ""} ${options(body)}`,
  buckets: "wharf bucket ls",
  newBucket: ({ name, endpoint, bucket, region, prefix }: Record<string, string>) =>
    `wharf bucket add ${quote(name || "NAME")} --endpoint ${quote(endpoint || "URL")} --bucket ${quote(bucket || "BUCKET")}${region ? ` --region ${quote(region)}` : ""}${prefix ? ` --prefix ${quote(prefix)}` : ""}`,
  bucketContents: (name: string) => `wharf bucket contents --bucket ${name}`,
  forgetBucket: (name: string) => `wharf bucket forget ${name}`,
  recreate: (name: string, backup: string | null, volumes: boolean) =>
    `wharf recreate ${name} ${backup ? `--backup ${backup}` : "--empty"}${volumes ? "" : " --without-volumes"}`,
  audit: "wharf api GET /api/audit/",
  keys: "wharf keys ls",
  newKey: (name: string, scopes: string[], expires: string | null) => {
    const of = scopes.map((scope) => ` --scope ${scope}`).join("");
    return `wharf keys create${name && ` ${quote(name)}`}${of}${expires ? ` --expires ${expires}` : ""}`;
  },
  revokeKey: (id: string) => `wharf keys rm ${id}`,
  allowMoves: (allowed: boolean) => `wharf preferences --allow-moves ${allowed}`,
  login: (server: string) => `wharf login ${server}`,
  sshKeys: "wharf ssh-keys ls",
  newSshKey: (name: string) => `wharf ssh-keys add ${quote(name || "laptop")} ~/.ssh/id_ed25519.pub`,
  removeSshKey: (name: string) => `wharf ssh-keys rm ${quote(name)}`,
  webhooks: "wharf api GET /api/webhook/",
  newWebhook: (body: object) => `wharf api POST /api/webhook/ --data ${quote(JSON.stringify(body))}`,
  removeWebhook: (id: string) => `wharf api DELETE /api/webhook/${id}/`,
  create: (body: CreateRequest) => {
    const parts = ["wharf create"];
    if (body.name) parts.push(body.name);
    parts.push(`--flavor ${body.flavor ?? "base"}`);
    if (body.resource_type === "vm") parts.push("--type vm");
    return [...parts, options(body)].join(" ");
  },
};
