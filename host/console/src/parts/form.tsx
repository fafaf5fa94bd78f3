// The controls that most forms consist of.

import type { Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { rest, type Action } from "./action";
import { Alert, Command, Field } from "./basics";

interface FormProps {
  action: Action;
  /** Sends the request. */
  work: () => Promise<unknown>;
  title?: string;
  verb: string;
  /** Whether the form can be sent. */
  ready?: boolean;
  command?: string;
  /** The fields that show their own errors. */
  fields: string[];
  /** The place of the other errors, if it is not an alert. */
  refusal?: ComponentChildren;
  /** Leaves the form; with it there is a button that does. */
  onClose?: () => void;
  plain?: boolean;
  children: ComponentChildren;
}

/** A form with a title, its errors, its command and its button. */
export function Form(props: FormProps) {
  const { action, work, title, verb, ready = true, command, fields, refusal, onClose, plain, children } = props;
  const submit = async (event: Event) => {
    event.preventDefault();
    if (await action.run(work)) onClose?.();
  };
  return (
    <form class={plain ? undefined : "panel form"} onSubmit={(event) => void submit(event)} noValidate>
      {title && <h2>{title}</h2>}
      {children}
      {refusal ?? <Alert words={rest(action.problem, fields)} />}
      {command && <Command line={command} />}
      <div class="buttons">
        {onClose && (
          <button type="button" onClick={onClose}>
            Keep
          </button>
        )}
        <button class="primary" disabled={action.busy || !ready}>
          {verb}
        </button>
      </div>
    </form>
  );
}

interface InputProps {
  label: string;
  value: Signal<string>;
  errors?: string[] | undefined;
  hint?: ComponentChildren;
  placeholder?: string;
  /** The width; the whole one without it. */
  width?: "short" | "mid" | "long" | "mono";
  /** The lines of a text, or one line. */
  rows?: number;
  /** Whether the text is hidden. */
  secret?: boolean;
  /** The keyboard of a phone. */
  mode?: "numeric" | "url";
  /** Runs with each change. */
  onChange?: (text: string) => void;
}

/** A labelled text. */
export function Input({ label, value, errors, hint, placeholder, width, rows, secret, mode, onChange }: InputProps) {
  return (
    <Field label={label} errors={errors} hint={hint}>
      {(attributes) => {
        const all = {
          ...attributes,
          class: width,
          // Browsers offer saved passwords in a hidden field without this.
          autocomplete: secret ? "new-password" : "off",
          spellcheck: false,
          placeholder,
          value: value.value,
          onInput: (event: Event) => {
            value.value = (event.currentTarget as HTMLInputElement).value;
            onChange?.(value.value);
          },
        };
        if (rows) return <textarea {...all} rows={rows} />;
        return secret ? <input {...all} type="password" /> : <input {...all} inputMode={mode} />;
      }}
    </Field>
  );
}

export type SizeField = "n_vcpus" | "mem_gib" | "disk_size_gib";
export type SizeTexts = Record<SizeField, string>;

/** The hints of an instance that is created. */
export const SIZE_RANGES: SizeTexts = { n_vcpus: "1 to 256", mem_gib: "1 to 512", disk_size_gib: "10 to 2,000" };
const SIZE_LABELS: SizeTexts = { n_vcpus: "vCPU", mem_gib: "RAM in GiB", disk_size_gib: "Disk in GiB" };
export const SIZE_FIELDS = Object.keys(SIZE_LABELS) as SizeField[];

interface SizeProps {
  value: SizeTexts;
  hints: SizeTexts;
  errors: Record<string, string[]>;
  onChange: (change: Partial<SizeTexts>) => void;
}

/** The size of an instance. */
export function SizeInputs({ value, hints, errors, onChange }: SizeProps) {
  return (
    <div class="row">
      {SIZE_FIELDS.map((field) => (
        <Field key={field} label={SIZE_LABELS[field]} errors={errors[field]} hint={hints[field]}>
          {(attributes) => (
            <input
              {...attributes}
              name={field}
              class="short"
              inputMode="numeric"
              value={value[field]}
              onInput={(event) => onChange({ [field]: event.currentTarget.value })}
            />
          )}
        </Field>
      ))}
    </div>
  );
}

/** A number if the text is one; else the text, which the server refuses with words. */
export const number = (text: string) => (/^\d+$/.test(text.trim()) ? Number(text) : text.trim() || null);

interface SelectProps {
  label: string;
  value: string;
  options: readonly (readonly [value: string, words: string])[];
  errors?: string[] | undefined;
  hint?: ComponentChildren;
  width?: "mid";
  onChange: (value: string) => void;
}

/** A labelled choice. */
export function Select({ label, value, options, errors, hint, width, onChange }: SelectProps) {
  return (
    <Field label={label} errors={errors} hint={hint}>
      {(attributes) => (
        <select {...attributes} class={width} value={value} onChange={(event) => onChange(event.currentTarget.value)}>
          {options.map(([key, words]) => (
            <option key={key} value={key}>
              {words}
            </option>
          ))}
        </select>
      )}
    </Field>
  );
}
