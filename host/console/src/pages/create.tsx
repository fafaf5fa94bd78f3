// The form that creates an instance, with its price while it changes.

import { type Signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { get, Problem, send } from "../api";
import { commands } from "../commands";
import { amounts, gib, perMonth, rate } from "../format";
import { rest, useAction } from "../parts/action";
import { Alert, Command, Field, Head } from "../parts/basics";
import { useData } from "../parts/data";
import { number, Select, SIZE_FIELDS, SIZE_RANGES, type SizeField, SizeInputs } from "../parts/form";
import { KeyChoice } from "../parts/key-choice";
import { chosenMounts, MountChoice } from "../parts/mounts";
import { usePrice } from "../parts/price";
import { usualWait } from "../parts/wait";
import { go } from "../router";
import type { CreateRequest, Estimate, Flavor, Instance, Offer, Shortage } from "../shapes";
import { put } from "../store";

const SIZES: [name: string, n_vcpus: number, mem_gib: number, disk_size_gib: number][] = [
  ["Small", 1, 2, 10],
  ["Medium", 2, 8, 40],
  ["Large", 8, 32, 200],
];
const SHOWN = [
  "name", "flavor", "resource_type", "n_vcpus", "mem_gib", "disk_size_gib", "cpu_tier", "gpu_model",
  "public_key", "s3_endpoint_url", "s3_access_key_id", "s3_secret_access_key", "s3_prefill_bucket",
  "ai_provider_api_key", "volumes",
];

interface Form {
  name: string;
  flavor: string;
  resource_type: "container" | "vm";
  n_vcpus: string;
  mem_gib: string;
  disk_size_gib: string;
  cpu_tier: string;
  gpu_model: string;
  public_key: string;
  s3_endpoint_url: string;
  s3_access_key_id: string;
  s3_secret_access_key: string;
  s3_prefill_bucket: string;
  ai_provider_api_key: string;
}

const EMPTY: Form = {
  name: "", flavor: "base", resource_type: "container", n_vcpus: "1", mem_gib: "2", disk_size_gib: "10",
  cpu_tier: "", gpu_model: "", public_key: "", s3_endpoint_url: "", s3_access_key_id: "",
  s3_secret_access_key: "", s3_prefill_bucket: "", ai_provider_api_key: "",
};

/** The body of the request: the filled fields that the flavor knows. */
function body(form: Form, flavor: Flavor | undefined): CreateRequest {
  const fields: Record<string, unknown> = { ...form };
  for (const field of SIZE_FIELDS) fields[field] = number(form[field]);
  const hidden = (field: string) =>
    (field.startsWith("s3_") && !flavor?.s3_prefill) || (field.startsWith("ai_") && !flavor?.ai);
  for (const [field, value] of Object.entries(fields)) {
    if (value === "" || hidden(field)) delete fields[field];
  }
  return fields as unknown as CreateRequest;
}

export function Create() {
  const form = useSignal(EMPTY);
  const listed = useData<Flavor[]>("/api/flavor/");
  const flavors = listed.value ?? [];
  const offer = useSignal<Offer | null>(null);
  const estimate = useSignal<Estimate | null>(null);
  const refused = useSignal<Problem | null>(null);
  const custom = useSignal(false);
  const action = useAction();
  const once = useRef(crypto.randomUUID?.() ?? String(Math.random()).slice(2));
  const flavor = flavors.find((f) => f.name === form.value.flavor);
  const mounts = useSignal(chosenMounts());
  const isContainer = form.value.resource_type === "container";
  const volumes = isContainer ? mounts.value.filter((mount) => mount.volume && mount.path) : [];
  const request = { ...body(form.value, flavor), ...(volumes.length > 0 && { volumes }) };
  const set = (change: Partial<Form>) => {
    form.value = { ...form.value, ...change };
    action.clear();
  };
  useEffect(() => {
    get<Offer>("/api/offer/").then((terms) => (offer.value = terms), () => {});
  }, []);
  usePrice(request, estimate, refused);
  const problem = action.problem ?? refused.value;
  const errors = problem?.fields ?? {};
  const shortage = action.problem?.shortage ?? estimate.value?.shortage ?? null;
  const create = (event: Event) => {
    event.preventDefault();
    void action.run(async () => {
      const headers = { "idempotency-key": once.current };
      try {
        const made = await send<Instance>("POST", "/api/instance/", request, { headers });
        put(made);
        go(`/instances/${made.name}`);
      } catch (error) {
        // Only an answer that got lost may be asked for again with this key.
        if (error instanceof Problem && error.status !== 0) once.current += "x";
        throw error;
      }
    });
  };
  const take = (near: Record<string, number>) => {
    const sizes = Object.entries(near).filter(([field]) => field in EMPTY);
    custom.value = true;
    set({
      ...Object.fromEntries(sizes.map(([field, n]) => [field, String(n)])),
      ...("n_gpus" in near && near["n_gpus"] === 0 ? { gpu_model: "" } : {}),
    });
  };
  return (
    <>
      <Head title="Create instance" />
      <form class="create" onSubmit={create} noValidate>
        <div class="choices">
          <Alert words={listed.error && `The flavors cannot be listed. ${listed.error}`} />
          <Flavors flavors={flavors} form={form} set={set} errors={errors["flavor"]} />
          <Kind form={form} flavor={flavor} set={set} errors={errors["resource_type"]} />
          <Size form={form} custom={custom} set={set} errors={errors} />
          <Fit estimate={estimate.value} offer={offer.value} form={form.value} />
          {shortage && <Nearest shortage={shortage} onTake={take} />}
          <Field label="Name" errors={errors["name"]} hint="Without a name, the server makes one.">
            {(attributes) => (
              <input
                {...attributes}
                class="mid"
                autocomplete="off"
                spellcheck={false}
                placeholder="calm-heron-7"
                value={form.value.name}
                onInput={(event) => set({ name: event.currentTarget.value.trim() })}
              />
            )}
          </Field>
          <KeyChoice
            value={form.value.public_key}
            errors={errors["public_key"]}
            onChange={(public_key) => set({ public_key })}
          />
          {isContainer && <MountChoice mounts={mounts} errors={errors["volumes"]} onChange={action.clear} />}
          <More form={form} flavor={flavor} offer={offer.value} set={set} errors={errors} />
        </div>
        <aside class="panel price" aria-label="Price">
          <h2>What it costs</h2>
          <Price estimate={estimate.value} form={form.value} />
          <Alert words={shortage ? null : rest(action.problem, SHOWN)} />
          <button class="primary wide" disabled={action.busy}>
            {action.busy ? "Creating" : "Create instance"}
          </button>
          <Wait flavor={form.value.flavor} />
          <Command line={commands.create(request)} />
        </aside>
      </form>
    </>
  );
}

function Wait({ flavor }: { flavor: string }) {
  const wait = usualWait(flavor);
  return wait && <p class="muted">Ready {wait}.</p>;
}

interface PartProps {
  form: Signal<Form>;
  set: (change: Partial<Form>) => void;
  errors: string[] | undefined;
}

function traits(flavor: Flavor): string {
  const parts = [
    flavor.ssh && "SSH",
    flavor.web && "Page",
    flavor.s3_prefill && "S3",
    flavor.ai && "AI",
    flavor.gpu_aware && "GPU",
  ];
  return parts.filter(Boolean).join(" · ");
}

/** The reason why a flavor cannot be chosen. */
const NO_IMAGE = "No node has its image.";

function Flavors({ flavors, form, set, errors }: PartProps & { flavors: Flavor[] }) {
  const choose = (flavor: Flavor) => {
    const least = flavor.minimum;
    const grown = (field: SizeField) =>
      Number(form.value[field]) < least[field] ? { [field]: String(least[field]) } : {};
    const kind = flavor.resource_types.includes(form.value.resource_type)
      ? {}
      : { resource_type: flavor.resource_types[0] ?? "container" };
    set({ flavor: flavor.name, ...kind, ...grown("n_vcpus"), ...grown("mem_gib"), ...grown("disk_size_gib") });
  };
  return (
    <fieldset class="tiles">
      <legend>Flavor</legend>
      {flavors.map((flavor) => (
        <label key={flavor.name} class="tile" title={flavor.available ? flavor.description : NO_IMAGE}>
          <input
            type="radio"
            name="flavor"
            disabled={!flavor.available}
            checked={form.value.flavor === flavor.name}
            onChange={() => choose(flavor)}
          />
          <b>{flavor.name}</b>
          <small class="clamp">{flavor.description}</small>
          {flavor.content.length > 0 && <small>{flavor.content.join(" or ")}</small>}
          <small>{flavor.available ? traits(flavor) : NO_IMAGE}</small>
        </label>
      ))}
      {errors && <p class="error">Flavor {errors.join("; ")}.</p>}
    </fieldset>
  );
}

function Kind({ form, set, errors, flavor }: PartProps & { flavor: Flavor | undefined }) {
  const kinds: ["container" | "vm", string][] = [
    ["container", "Container"],
    ["vm", "Virtual machine"],
  ];
  return (
    <fieldset class="segments">
      <legend>Kind</legend>
      {kinds.map(([kind, word]) => (
        <label key={kind} class="segment">
          <input
            type="radio"
            name="kind"
            checked={form.value.resource_type === kind}
            disabled={flavor && !flavor.resource_types.includes(kind)}
            onChange={() => set({ resource_type: kind, ...(kind === "vm" ? { gpu_model: "" } : {}) })}
          />
          {word}
        </label>
      ))}
      {flavor && !flavor.resource_types.includes("vm") && (
        <span class="muted">{flavor.name} runs in containers.</span>
      )}
      {errors && <p class="error">Kind {errors.join("; ")}.</p>}
    </fieldset>
  );
}

interface SizeProps {
  form: Signal<Form>;
  custom: Signal<boolean>;
  set: (change: Partial<Form>) => void;
  errors: Record<string, string[]>;
}

function Size({ form, custom, set, errors }: SizeProps) {
  const { n_vcpus, mem_gib, disk_size_gib } = form.value;
  const is = ([, cpu, mem, disk]: (typeof SIZES)[number]) =>
    n_vcpus === String(cpu) && mem_gib === String(mem) && disk_size_gib === String(disk);
  const preset = custom.value ? undefined : SIZES.find(is);
  return (
    <>
      <fieldset class="tiles">
        <legend>Size</legend>
        {SIZES.map((size) => (
          <label key={size[0]} class="tile">
            <input
              type="radio"
              name="size"
              checked={preset === size}
              onChange={() => {
                custom.value = false;
                const [, cpu, mem, disk] = size;
                set({ n_vcpus: String(cpu), mem_gib: String(mem), disk_size_gib: String(disk) });
              }}
            />
            <b>{size[0]}</b>
            <small>
              {size[1]} vCPU · {size[2]} GiB · {size[3]} GiB
            </small>
          </label>
        ))}
        <label class="tile">
          <input type="radio" name="size" checked={!preset} onChange={() => (custom.value = true)} />
          <b>Custom</b>
          <small>1–256 vCPU, 1–512 GiB</small>
        </label>
      </fieldset>
      {(!preset || SIZE_FIELDS.some((field) => errors[field])) && (
        <SizeInputs value={form.value} hints={SIZE_RANGES} errors={errors} onChange={set} />
      )}
    </>
  );
}

function Fit({ estimate, offer, form }: { estimate: Estimate | null; offer: Offer | null; form: Form }) {
  const tier = form.cpu_tier || "general-purpose";
  const free = offer?.largest_free.filter(
    (room) => room.cpu_tier === tier && (!room.resource_type || room.resource_type === form.resource_type),
  );
  const room = free?.[0];
  return (
    <p class="muted fit" aria-live="polite">
      {estimate?.fits && "Fits now. "}
      {room && `Largest that fits: ${room.n_vcpus} vCPU, ${gib(room.mem_gib)}, ${room.disk_size_gib} GiB disk.`}
    </p>
  );
}

function without(values: Record<string, number>, field: string): Record<string, number> {
  return Object.fromEntries(Object.entries(values).filter(([key]) => key !== field));
}

function Nearest({ shortage, onTake }: { shortage: Shortage; onTake: (near: Record<string, number>) => void }) {
  const near = without(shortage.nearest_available, "volumes");
  // No other size would do, or the message names the volumes whose node cannot run the instance.
  if ("flavor" in near || Object.keys(near).length === 0) return <Alert words={shortage.message} />;
  const least: Record<string, number> = { n_vcpus: 1, mem_gib: 1, disk_size_gib: 10 };
  const usable = Object.entries(near).every(([field, n]) => n >= (least[field] ?? 0)) && !("n_instances" in near);
  return (
    <div class="alert near" role="alert">
      <p>
        {shortage.message} You ask for {amounts(without(shortage.requested, "volumes"))}; the nearest that fits is {amounts(near)}.
      </p>
      {usable && (
        <button type="button" class="primary" onClick={() => onTake(near)}>
          Use {amounts(near)}
        </button>
      )}
    </div>
  );
}

function Price({ estimate, form }: { estimate: Estimate | null; form: Form }) {
  const part = (unit: number, text: string) => unit * (Number(text) || 0);
  const e = estimate;
  const rows: [string, string][] = e
    ? [
        [`${form.n_vcpus} vCPU`, rate(part(e.vcpu_cost_hourly_usd, form.n_vcpus))],
        [`${form.mem_gib} GiB RAM`, rate(part(e.ram_cost_hourly_usd, form.mem_gib))],
        [`${form.disk_size_gib} GiB disk`, rate(part(e.storage_cost_hourly_usd, form.disk_size_gib))],
        ...(form.gpu_model ? [[form.gpu_model, rate(e.gpu_cost_hourly_usd)] as [string, string]] : []),
        ["While stopped", rate(e.stopped_hourly_usd)],
      ]
    : [];
  return (
    <>
      <p class="big">
        <b class="number">{e ? rate(e.hourly_usd).replace("/h", "") : "–"}</b> per hour
      </p>
      <p class="muted">{e ? `about ${perMonth(e.hourly_usd)} for a whole month` : "for a valid size"}</p>
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd class="number">{value}</dd>
          </div>
        ))}
      </dl>
    </>
  );
}

interface MoreProps {
  form: Signal<Form>;
  set: (change: Partial<Form>) => void;
  errors: Record<string, string[]>;
  flavor: Flavor | undefined;
  offer: Offer | null;
}

function More({ form, flavor, offer, set, errors }: MoreProps) {
  const text = (field: keyof Form, label: string, hint: string, secret = false) => (
    <Field key={field} label={label} errors={errors[field]} hint={hint}>
      {(attributes) => (
        <input
          {...attributes}
          class="mid"
          {...(secret ? ({ type: "password" } as const) : ({ type: "text" } as const))}
          autocomplete={secret ? "new-password" : "off"}
          spellcheck={false}
          value={form.value[field]}
          onInput={(event) => set({ [field]: event.currentTarget.value.trim() })}
        />
      )}
    </Field>
  );
  const s3: (keyof Form)[] = ["s3_endpoint_url", "s3_access_key_id", "s3_secret_access_key", "s3_prefill_bucket"];
  const choice = (field: "cpu_tier" | "gpu_model", label: string, none: string, options: [string, string][]) => (
    <Select
      label={label}
      errors={errors[field]}
      width="mid"
      value={form.value[field]}
      options={none ? [["", none], ...options] : options}
      onChange={(value) => set({ [field]: value })}
    />
  );
  const tiers = offer?.cpu_tiers ?? [];
  const gpus = offer?.gpu_models ?? [];
  return (
    <div class="more">
      {flavor?.s3_prefill && (
        <details open={s3.some((field) => errors[field])}>
          <summary>S3 prefill</summary>
          <p class="muted">A copy of a bucket is in the home directory at the first start.</p>
          {text("s3_endpoint_url", "Endpoint URL", "Such as https://s3.example.org.")}
          {text("s3_access_key_id", "Access key ID", "")}
          {text("s3_secret_access_key", "Secret access key", "Encrypted, and never shown again.", true)}
          {text("s3_prefill_bucket", "Bucket", "A bucket, or a bucket and a path.")}
        </details>
      )}
      {flavor?.ai && (
        <details open={Boolean(errors["ai_provider_api_key"])}>
          <summary>AI assistant</summary>
          {text("ai_provider_api_key", "API key of the AI provider", "Encrypted, and never shown again.", true)}
        </details>
      )}
      {gpus.length > 0 && form.value.resource_type === "container" && (
        <details open={Boolean(errors["gpu_model"])}>
          <summary>GPU</summary>
          {choice(
            "gpu_model",
            "GPU model",
            "No GPU",
            gpus.map((gpu) => [gpu.name, `${gpu.name} · ${rate(gpu.gpu_cost_hourly_usd)}`]),
          )}
        </details>
      )}
      {tiers.length > 1 && (
        <details open={Boolean(errors["cpu_tier"])}>
          <summary>CPU tier</summary>
          {choice(
            "cpu_tier",
            "CPU tier",
            "",
            tiers.map((tier) => [
              tier.name === "general-purpose" ? "" : tier.name,
              `${tier.name} · ${rate(tier.vcpu_cost_hourly_usd)} per vCPU`,
            ]),
          )}
        </details>
      )}
    </div>
  );
}
