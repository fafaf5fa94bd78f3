// The page of one volume.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { send } from "../api";
import { commands } from "../commands";
import { money, rate, volumeRate } from "../format";
import { useAction } from "../parts/action";
import { VolumeBackups } from "../parts/backups";
import { Ago, announce, Command, Facts, Head, State } from "../parts/basics";
import { useData } from "../parts/data";
import { Form, Input } from "../parts/form";
import { NameInput } from "../parts/instance-forms";
import { Listing } from "../parts/listing";
import { Confirm } from "../parts/remove";
import { access, pageOf, reference, useVolumes } from "../parts/volumes";
import { go } from "../router";
import type { Volume, VolumeShare } from "../shapes";
import { usage } from "../store";
import { deletion } from "./volumes";

export function VolumePage({ name }: { name: string }) {
  const { value: all, error, reload } = useVolumes();
  const is = (volume: Volume) => volume.id === name || reference(volume) === name;
  const volume = all?.find(is) ?? all?.find((v) => v.name === name);
  if (volume) return <Shown volume={volume} reload={reload} />;
  if (!all && !error) return <Head title={name} />;
  return (
    <>
      <Head title={`There is no volume ${name}`} />
      <p>
        {error} <a href="/volumes">Show your volumes</a>
      </p>
    </>
  );
}

function Shown({ volume: v, reload }: { volume: Volume; reload: () => Promise<void> }) {
  const deleting = useSignal(false);
  useEffect(() => {
    if (location.pathname !== pageOf(v)) go(pageOf(v), true);
  }, [v.id, v.name]);
  const { verb, command, work, words } = deletion(() => go("/volumes"));
  return (
    <>
      <p class="crumb">
        <a href="/volumes">Volumes</a> /
      </p>
      <Head title={v.name}>
        {!v.shared && (
          <button type="button" onClick={() => (deleting.value = true)}>
            Delete
          </button>
        )}
        <a class="button primary" href={`/instances/new?volume=${reference(v)}`}>
          Create instance with it
        </a>
      </Head>
      <p class="since">
        <State state={v.state} />
        <span class="muted">{v.reason}</span>
      </p>
      <div class="overview">
        <div>
          <Attachments volume={v} />
          {v.shared ? <OwnShare volume={v} /> : <Readers volume={v} />}
          {!v.shared && <VolumeBackups volume={v} />}
          {!v.shared && <Rename volume={v} reload={reload} />}
          <Command line={commands.showVolume(v.shared ? v.id : v.name)} note="shows this in a terminal." />
        </div>
        <Costs volume={v} />
      </div>
      {deleting.value && (
        <Confirm
          title={`${verb} ${v.name}`}
          verb={`${verb} ${v.name}`}
          typed={v.name}
          command={command(v)}
          onClose={() => (deleting.value = false)}
          work={() => work(v)}
        >
          {words(v)}
        </Confirm>
      )}
    </>
  );
}

function Costs({ volume: v }: { volume: Volume }) {
  const sum = usage.value?.volumes.find((cost) => cost.id === v.id);
  return (
    <section class="panel" aria-label="Cost and size">
      <h2>{v.shared ? "Size" : "Cost"}</h2>
      {!v.shared && (
        <>
          <Facts
            rows={[
              ["Now", <span class="number">{v.state === "error" ? "not billed" : rate(volumeRate(v))}</span>],
              ["This month", <span class="number">{usage.value ? money(sum?.total_usd ?? 0) : "–"}</span>],
            ]}
          />
          <hr />
        </>
      )}
      <Facts
        rows={[
          ["Size", `${v.size_gib} GiB`],
          ["CPU tier", v.cpu_tier],
          ...(v.shared ? [["Owner", v.owner_email] as [string, string]] : []),
          ["Created", <Ago at={v.created_at} />],
        ]}
      />
    </section>
  );
}

function Attachments({ volume: v }: { volume: Volume }) {
  return (
    <section class="attached">
      <h2>Attached to</h2>
      {v.attached_to.length === 0 ? (
        <p class="none">No instance has this volume.</p>
      ) : (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Instance</th>
              <th scope="col">Directory</th>
              <th scope="col">Access</th>
            </tr>
          </thead>
          <tbody>
            {v.attached_to.map((a, n) => (
              <tr key={n}>
                <th scope="row">
                  {a.name ? <a href={`/instances/${a.name}`}>{a.name}</a> : `an instance of ${a.owner_email}`}
                </th>
                <td>{a.path ? <code>{a.path}</code> : "–"}</td>
                <td>{access(a.read_only)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </section>
  );
}

/** The users that read a volume. */
function Readers({ volume: v }: { volume: Volume }) {
  const path = `/api/volume/${v.id}/share/`;
  const shares = useData<VolumeShare[]>(path);
  const user = useSignal("");
  const action = useAction();
  const share = async () => {
    await send("POST", path, { user: user.value.trim() });
    user.value = "";
    announce("Shared");
    await shares.reload();
  };
  return (
    <>
      <Form
        title="Share"
        verb="Share it"
        action={action}
        work={share}
        ready={Boolean(user.value.trim())}
        command={commands.shareVolume(v.name, user.value.trim())}
        fields={["user"]}
      >
        <p class="muted">
          A reader attaches the volume to instances of their own, read-only. They are created on the host of
          the volume. While one reads it, no instance writes it.
        </p>
        <Input
          label="E-mail address"
          value={user}
          errors={action.problem?.fields["user"]}
          width="mid"
          placeholder="bob@example.com"
          onChange={action.clear}
        />
      </Form>
      <Listing
        data={shares}
        columns={["Reader", "Since"]}
        cells={(reader) => [reader.user, <Ago at={reader.created_at} />]}
        empty="You share this volume with nobody."
        removal={{
          verb: "Stop sharing",
          name: (reader) => `with ${reader.user}`,
          work: (reader) => send("DELETE", `${path}${reader.id}/`),
          command: (reader) => commands.unshareVolume(v.name, reader.user),
          words: (reader) =>
            `${reader.user} can attach it no more. Instances that have it keep it until they are deleted.`,
        }}
      />
    </>
  );
}

/** The share by which the user reads the volume of another one. */
function OwnShare({ volume: v }: { volume: Volume }) {
  const path = `/api/volume/${v.id}/share/`;
  const shares = useData<VolumeShare[]>(path);
  return (
    <Listing
      data={shares}
      columns={["Reader", "Since"]}
      cells={(reader) => [reader.user, <Ago at={reader.created_at} />]}
      empty="The share has ended."
      removal={{
        verb: "Stop reading",
        name: () => v.name,
        work: async (reader) => {
          await send("DELETE", `${path}${reader.id}/`);
          go("/volumes");
        },
        command: (reader) => commands.unshareVolume(v.id, reader.user),
        words: () => "You can attach it no more. Your instances that have it keep it until they are deleted.",
      }}
    />
  );
}

function Rename({ volume: v, reload }: { volume: Volume; reload: () => Promise<void> }) {
  const name = useSignal(v.name);
  const action = useAction();
  const save = async () => {
    await send("PATCH", `/api/volume/${v.id}/`, { name: name.value });
    announce(`Renamed to ${name.value}`);
    // The address of the page follows the name.
    go(`/volumes/${v.id}`, true);
    await reload();
  };
  return (
    <Form
      title="Rename"
      verb="Rename"
      action={action}
      work={save}
      ready={name.value !== v.name && Boolean(name.value)}
      command={commands.renameVolume(v.name, name.value === v.name ? "" : name.value)}
      fields={["name"]}
    >
      <NameInput name={name} action={action} />
    </Form>
  );
}
