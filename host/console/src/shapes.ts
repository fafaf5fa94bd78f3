// Names for the types that openapi.yaml defines, and narrower ones where the console knows more.

import type { Event } from "./generated";

export type {
  Amounts,
  AuditRecord,
  Backup,
  BackupPlan,
  Bucket,
  CloneRequest,
  CreateRequest,
  CreatedKey,
  CpuTier,
  Credential,
  Estimate,
  Flavor,
  HostKey,
  Identity,
  Instance,
  InstanceInList,
  MountedVolume,
  Key,
  Offer,
  Passkey,
  PasskeyOptions,
  Preferences,
  Quota,
  Recreation,
  Scope,
  Session,
  Share,
  ShareRequest,
  Shortage,
  SignInOptions,
  Snapshot,
  SnapshotEstimate,
  SnapshotPlan,
  SshKey,
  State,
  Stats,
  Usage,
  Volume,
  VolumeMount,
  VolumeShare,
  Webhook,
  WebhookDelivery,
} from "./generated";

/** An event; elements of the type `reset`, which lack these fields, are left out. */
export type Happening = Event & { at: string; message: string };

