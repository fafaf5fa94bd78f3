// A request of a form or a button: whether it is on its way, and why it was refused.

import { useSignal } from "@preact/signals";
import { asProblem, type Problem } from "../api";

export interface Action {
  busy: boolean;
  problem: Problem | null;
  /** Runs `work` unless it already runs; returns whether it succeeded. */
  run: (work: () => Promise<unknown>) => Promise<boolean>;
  clear: () => void;
}

/** State of one action of a component. */
export function useAction(): Action {
  const busy = useSignal(false);
  const problem = useSignal<Problem | null>(null);
  return {
    busy: busy.value,
    problem: problem.value,
    clear: () => (problem.value = null),
    run: async (work) => {
      if (busy.peek()) return false;
      busy.value = true;
      problem.value = null;
      try {
        await work();
        return true;
      } catch (error) {
        problem.value = asProblem(error);
        return false;
      } finally {
        busy.value = false;
      }
    },
  };
}

/** The words of a problem that belong to no field of the form. */
export function rest(problem: Problem | null, fields: string[]): string | null {
  if (!problem) return null;
  const named = Object.keys(problem.fields);
  if (named.length === 0) return problem.message;
  const others = named.filter((field) => !fields.includes(field));
  return others.length === 0
    ? null
    : others.map((field) => `${field} ${problem.fields[field]?.join("; ")}`).join(". ");
}
