// The page of an address, within the frame of the console.

import type { ComponentChild } from "preact";
import { useEffect } from "preact/hooks";
import { Help, listen } from "./keyboard";
import { Account } from "./pages/account";
import { Audit } from "./pages/audit";
import { BucketPage, Buckets } from "./pages/buckets";
import { Create } from "./pages/create";
import { Device } from "./pages/device";
import { Events } from "./pages/events";
import { InstancePage } from "./pages/instance";
import { Instances } from "./pages/instances";
import { Invite } from "./pages/invite";
import { Keys } from "./pages/keys";
import { EnterPage } from "./pages/page";
import { SignIn } from "./pages/sign-in";
import { SshKeys } from "./pages/ssh-keys";
import { TerminalPage } from "./pages/terminal";
import { UsagePage } from "./pages/usage";
import { VolumePage } from "./pages/volume";
import { Volumes } from "./pages/volumes";
import { Webhooks } from "./pages/webhooks";
import { Settings, Shell } from "./shell";
import { Head } from "./parts/basics";
import { go, path, returnTo } from "./router";
import { fault, loadError, notice, session, start } from "./store";

const FIXED: Record<string, () => ComponentChild> = {
  "/": () => <Instances />,
  "/instances": () => <Instances />,
  "/instances/new": () => <Create />,
  "/device": () => <Device />,
  "/volumes": () => <Volumes />,
  "/usage": () => <UsagePage />,
  "/events": () => <Events />,
  "/settings/keys": () => (
    <Settings>
      <Keys />
    </Settings>
  ),
  "/settings/ssh-keys": () => (
    <Settings>
      <SshKeys />
    </Settings>
  ),
  "/settings/account": () => (
    <Settings>
      <Account />
    </Settings>
  ),
  "/settings/webhooks": () => (
    <Settings>
      <Webhooks />
    </Settings>
  ),
  "/settings/buckets": () => (
    <Settings>
      <Buckets />
    </Settings>
  ),
  "/audit": () => <Audit />,
};

function page(at: string): ComponentChild {
  const fixed = FIXED[at.length > 1 ? at.replace(/\/$/, "") : at];
  if (fixed) return fixed();
  const [, name, rest] = at.match(/^\/instances\/([^/]+)(\/terminal)?$/) ?? [];
  if (name && rest) return <TerminalPage key={name} name={decodeURIComponent(name)} />;
  const volume = at.match(/^\/volumes\/([^/]+)$/)?.[1];
  if (volume) return <VolumePage key={volume} name={decodeURIComponent(volume)} />;
  const bucket = at.match(/^\/settings\/buckets\/([^/]+)$/)?.[1];
  if (bucket) {
    return (
      <Settings>
        <BucketPage key={bucket} name={decodeURIComponent(bucket)} />
      </Settings>
    );
  }
  if (name) return <InstancePage key={name} name={decodeURIComponent(name)} />;
  return <Nowhere />;
}

export function App() {
  useEffect(listen, []);
  return (
    <>
      {fault.value && (
        <aside class="notice" aria-label="A fault of this page">
          <p class="bar" role="alert">
            {fault.value}{" "}
            <button type="button" class="small" onClick={() => (fault.value = null)}>
              Close
            </button>
          </p>
        </aside>
      )}
      <Place />
    </>
  );
}

/** The page of the address, or the sign-in. */
function Place() {
  const at = path.value;
  if (at === "/invite") return <Invite />;
  if (session.value === undefined) return <Waiting />;
  if (session.value === null || at === "/sign-in") {
    if (at !== "/sign-in") return <Away />;
    return (
      <>
        {notice.value && (
          <aside class="notice" aria-label="Why you are signed out">
            <p class="bar" role="status">
              {notice.value}
            </p>
          </aside>
        )}
        <SignIn />
      </>
    );
  }
  if (at === "/page") return <EnterPage />;
  return (
    <>
      <Shell>{page(at)}</Shell>
      <Help />
    </>
  );
}

/** Before the first response: nothing, unless it fails. */
function Waiting() {
  if (!loadError.value) return null;
  return (
    <main class="lone">
      <h1>Wharf is out of reach</h1>
      <p role="alert">{loadError.value}</p>
      <button type="button" class="primary" onClick={() => void start()}>
        Try again
      </button>
    </main>
  );
}

function Away() {
  useEffect(() => {
    returnTo.value ??= location.pathname + location.search + location.hash;
    go("/sign-in", true);
  }, []);
  return null;
}

function Nowhere() {
  return (
    <>
      <Head title="This page does not exist" />
      <p>
        <a href="/instances">Show your instances</a>
      </p>
    </>
  );
}
