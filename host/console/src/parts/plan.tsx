// The plan by which snapshots of an instance are taken, or backups of an instance or a volume are made.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, Problem, send } from "../api";
import { exact } from "../format";
import type { BackupPlan, Bucket, SnapshotPlan } from "../shapes";
import { onEvent } from "../store";
import { type Action, useAction } from "./action";
import { announce } from "./basics";
import { Form, Input, number, Select } from "./form";

type AnyPlan = SnapshotPlan & Partial<BackupPlan>;

interface Props {
  what: "snapshot" | "backup";
  /** The path of the plan. */
  path: string;
  command: (bucket: string, every: string, keep: string, days: string) => string;
  /** Without a plan, nothing shows where there can be none. */
  possible: boolean;
  /** The places of backups. */
  buckets?: Bucket[];
}

export function Plan({ what, path, command, possible, buckets }: Props) {
  const plan = useSignal<AnyPlan | null>(null);
  const chosen = useSignal("");
  const bucket = chosen.value || (buckets?.[0]?.name ?? "");
  const [every, keep, days] = [useSignal("24"), useSignal("7"), useSignal("")];
  const action = useAction();
  const show = (next: AnyPlan | null) => {
    plan.value = next;
    if (!next) return;
    chosen.value = next.bucket_name ?? "";
    every.value = String(next.every_h);
    keep.value = String(next.keep);
    days.value = next.keep_days === null ? "" : String(next.keep_days);
  };
  const read = (then: (next: AnyPlan | null) => void) =>
    get<AnyPlan>(path).then(then, (error: unknown) => {
      // There is none.
      if (error instanceof Problem && error.status === 404) then(null);
    });
  useEffect(() => {
    void read(show);
    // The time of the next one moves with each. The fields may be in use.
    return onEvent((event) => event.type.startsWith(`${what}-`) && void read((next) => (plan.value = next)));
  }, [path]);
  const set = async () => {
    const times = { every_h: number(every.value), keep: number(keep.value), keep_days: number(days.value) };
    show(await send<AnyPlan>("PUT", path, buckets ? { bucket, ...times } : times));
    announce("The plan is set");
  };
  const end = () =>
    action.run(async () => {
      await send("DELETE", path);
      show(null);
      announce("The plan has ended");
    });
  const errors = action.problem?.fields ?? {};
  const input = (label: string, field: string, value: typeof every, hint: string) => (
    <Input label={label} value={value} errors={errors[field]} hint={hint} width="short" mode="numeric" onChange={action.clear} />
  );
  if (!possible && !plan.value) return null;
  const times = [every.value.trim(), keep.value.trim(), days.value.trim()] as const;
  return (
    <Form
      title="Plan"
      verb={plan.value ? "Change the plan" : "Set the plan"}
      action={action}
      work={set}
      ready={Boolean(every.value.trim() && keep.value.trim())}
      command={command(bucket, ...times)}
      fields={["bucket", "every_h", "keep", "keep_days"]}
    >
      <p class="muted">
        {buckets
          ? "A plan makes backups by the clock. It deletes the oldest of its own once a newer one is done, and none that you made."
          : "A plan takes snapshots by the clock. It deletes the oldest of its own once a newer one is ready, and none that you took."}
      </p>
      {plan.value && (
        <p>
          The next {what} is due on <b>{exact(plan.value.next_at)}</b>.{" "}
          <button type="button" class="small" disabled={action.busy} onClick={() => void end()}>
            End the plan
          </button>
        </p>
      )}
      <div class="row">
        {buckets && <BucketChoice value={bucket} buckets={buckets} action={action} onChange={(to) => (chosen.value = to)} />}
        {input("Every, in hours", "every_h", every, "1 to 8,760")}
        {input("Keep", "keep", keep, `1 to 32 ${what}s.`)}
        {input("Keep days", "keep_days", days, "Empty for any age.")}
      </div>
    </Form>
  );
}

interface ChoiceProps {
  value: string;
  buckets: Bucket[];
  action: Action;
  onChange: (name: string) => void;
}

/** The bucket of a backup. */
export function BucketChoice({ value, buckets, action, onChange }: ChoiceProps) {
  return (
    <Select
      label="Bucket"
      value={value}
      options={buckets.map(({ name }) => [name, name] as const)}
      errors={action.problem?.fields["bucket"]}
      onChange={(name) => {
        onChange(name);
        action.clear();
      }}
    />
  );
}
