// The volumes of the user, and those that others share.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { get, send } from "../api";
import { commands } from "../commands";
import { perMonth, rate, volumeRate } from "../format";
import { useAction } from "../parts/action";
import { announce, Command, Head, State } from "../parts/basics";
import { Form, Input, Select } from "../parts/form";
import { NameInput } from "../parts/instance-forms";
import { Listing } from "../parts/listing";
import { pageOf, useVolumes } from "../parts/volumes";
import { go } from "../router";
import type { Offer, Volume } from "../shapes";

export function Volumes() {
  const volumes = useVolumes();
  return (
    <>
      <Head title="Volumes" />
      <p class="lead">
        A volume is a disk with a name of its own. It stays when instances go. One instance writes it, or
        many read it, also those of others.
      </p>
      <NewVolume onMade={volumes.reload} />
      <Listing
        data={volumes}
        columns={["Name", "State", "Size", "Attached to", "Now"]}
        cells={(volume) => [
          <>
            <a href={pageOf(volume)}>{volume.name}</a>
            {volume.shared && <small>of {volume.owner_email}</small>}
          </>,
          <>
            <State state={volume.state} />
            {volume.reason && <small>{volume.reason}</small>}
          </>,
          <span class="number">{volume.size_gib} GiB</span>,
          <Attached volume={volume} />,
          <span class="number">{volume.shared ? "–" : rate(volumeRate(volume))}</span>,
        ]}
        empty="There are no volumes yet."
        removal={deletion()}
      />
      <Command line={commands.volumes} note="lists the volumes in a terminal." />
    </>
  );
}

/** The removal of a volume, which needs its name. */
export function deletion(onDone?: () => void) {
  return {
    verb: "Delete",
    typed: true,
    of: (volume: Volume) => !volume.shared,
    name: (volume: Volume) => volume.name,
    command: (volume: Volume) => commands.removeVolume(volume.name),
    work: async (volume: Volume) => {
      await send("DELETE", `/api/volume/${volume.id}/`);
      announce(`Deleted ${volume.name}`);
      onDone?.();
    },
    words: (volume: Volume) => (
      <p>
        Everything on its {volume.size_gib} GiB is lost, and nobody can bring it back. Afterwards nothing is
        billed for it, instead of <b class="number">{rate(volumeRate(volume))}</b>.
      </p>
    ),
  };
}

/** The instances that have a volume. Of those of others only the users are known. */
function Attached({ volume }: { volume: Volume }) {
  const own = volume.attached_to.filter((a) => a.instance !== null);
  const others = new Set(volume.attached_to.filter((a) => a.instance === null).map((a) => a.owner_email));
  if (volume.attached_to.length === 0) return <span class="muted">none</span>;
  return (
    <>
      {own.map((a, n) => (
        <>
          {n > 0 && ", "}
          <a href={`/instances/${a.name}`}>{a.name}</a>
        </>
      ))}
      {others.size > 0 && <small>instances of {[...others].join(", ")}</small>}
    </>
  );
}

function NewVolume({ onMade }: { onMade: () => Promise<void> }) {
  const name = useSignal("");
  const size = useSignal("20");
  const tier = useSignal("");
  const offer = useSignal<Offer | null>(null);
  const action = useAction();
  useEffect(() => {
    get<Offer>("/api/offer/").then((terms) => (offer.value = terms), () => {});
  }, []);
  const tiers = offer.value?.cpu_tiers ?? [];
  const chosen = tiers.find((t) => t.name === tier.value) ?? tiers[0];
  const gib = /^\d+$/.test(size.value.trim()) ? Number(size.value) : null;
  const hourly = chosen && gib !== null ? chosen.storage_cost_hourly_usd * gib : null;
  const fields = action.problem?.fields ?? {};
  const make = async () => {
    // Text that is no number goes to the server as it is, which explains it.
    const body = { name: name.value, size_gib: gib ?? size.value, ...(tier.value && { cpu_tier: tier.value }) };
    const made = await send<Volume>("POST", "/api/volume/", body);
    name.value = "";
    announce("Created");
    await onMade();
    go(pageOf(made));
  };
  return (
    <Form
      title="New volume"
      verb="Create volume"
      action={action}
      work={make}
      ready={Boolean(name.value)}
      command={commands.newVolume(name.value, size.value.trim()) + (tier.value && ` --tier ${tier.value}`)}
      fields={["name", "size_gib", "cpu_tier"]}
    >
      <div class="row">
        <NameInput name={name} action={action} placeholder="reference-genome" />
        <Input
          label="Size in GiB"
          value={size}
          errors={fields["size_gib"]}
          hint="It stays as it is."
          width="short"
          mode="numeric"
          onChange={action.clear}
        />
        {tiers.length > 1 && (
          <Select
            label="CPU tier"
            value={tier.value || (tiers[0]?.name ?? "")}
            options={tiers.map((t) => [t.name, t.name] as const)}
            errors={fields["cpu_tier"]}
            hint="Of the instances that will have it."
            onChange={(value) => (tier.value = value)}
          />
        )}
      </div>
      <p>
        <b class="number">{hourly === null ? "–" : rate(hourly)}</b>
        {hourly !== null && <span class="muted">, about {perMonth(hourly)} for a whole month</span>}
      </p>
    </Form>
  );
}
