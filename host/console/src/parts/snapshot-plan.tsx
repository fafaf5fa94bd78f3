// The plan by which snapshots of an instance are taken.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, Problem, send } from "../api";
import { commands } from "../commands";
import { exact } from "../format";
import type { InstanceInList, SnapshotPlan } from "../shapes";
import { onEvent } from "../store";
import { useAction } from "./action";
import { announce } from "./basics";
import { Form, Input, number } from "./form";

/** Without a plan, nothing shows where snapshots are not `possible`. */
export function Plan({ instance: i, possible }: { instance: InstanceInList; possible: boolean }) {
  const path = `/api/instance/${i.uuid}/snapshot-plan/`;
  const plan = useSignal<SnapshotPlan | null>(null);
  const [every, keep, days] = [useSignal("24"), useSignal("7"), useSignal("")];
  const action = useAction();
  const show = (next: SnapshotPlan | null) => {
    plan.value = next;
    if (!next) return;
    every.value = String(next.every_h);
    keep.value = String(next.keep);
    days.value = next.keep_days === null ? "" : String(next.keep_days);
  };
  const read = (then: (next: SnapshotPlan | null) => void) =>
    get<SnapshotPlan>(path).then(then, (error: unknown) => {
      // There is none.
      if (error instanceof Problem && error.status === 404) then(null);
    });
  useEffect(() => {
    void read(show);
    // The time of the next snapshot moves with each one. The fields may be in use.
    return onEvent((event) => event.type.startsWith("snapshot-") && void read((next) => (plan.value = next)));
  }, [path]);
  const set = async () => {
    const body = { every_h: number(every.value), keep: number(keep.value), keep_days: number(days.value) };
    show(await send<SnapshotPlan>("PUT", path, body));
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
  return (
    <Form
      title="Plan"
      verb={plan.value ? "Change the plan" : "Set the plan"}
      action={action}
      work={set}
      ready={Boolean(every.value.trim() && keep.value.trim())}
      command={commands.plan(i.name, every.value.trim(), keep.value.trim(), days.value.trim())}
      fields={["every_h", "keep", "keep_days"]}
    >
      <p class="muted">
        A plan takes snapshots by the clock. It deletes the oldest of its own once a newer one is ready, and none
        that you took.
      </p>
      {plan.value && (
        <p>
          The next snapshot is due on <b>{exact(plan.value.next_at)}</b>.{" "}
          <button type="button" class="small" disabled={action.busy} onClick={() => void end()}>
            End the plan
          </button>
        </p>
      )}
      <div class="row">
        {input("Every, in hours", "every_h", every, "1 to 8,760")}
        {input("Keep", "keep", keep, "1 to 32 snapshots.")}
        {input("Keep days", "keep_days", days, "Empty for any age.")}
      </div>
    </Form>
  );
}
