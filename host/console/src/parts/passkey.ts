// Passkeys of the browser.

import { Problem, send } from "../api";
import type { Credential, PasskeyOptions } from "../shapes";

/** Whether the browser knows passkeys and their JSON forms. */
export const knowsPasskeys =
  typeof PublicKeyCredential === "function" &&
  typeof PublicKeyCredential.parseCreationOptionsFromJSON === "function" &&
  typeof PublicKeyCredential.parseRequestOptionsFromJSON === "function";

const CANCELLED = "The browser has finished without a passkey: it was cancelled, or took too long.";

/** Makes a passkey with the options of a path. */
export async function makePasskey(path: string, body?: unknown): Promise<Credential> {
  const options = await send<PasskeyOptions>("POST", path, body);
  return ask(() => {
    const json = options as unknown as PublicKeyCredentialCreationOptionsJSON;
    return navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(json) });
  });
}

/** Signs in with a passkey that the user chooses. */
export async function usePasskey(): Promise<void> {
  const options = await send<PasskeyOptions>("POST", "/auth/passkey/sign-in/options/");
  const credential = await ask(() => {
    const json = options as unknown as PublicKeyCredentialRequestOptionsJSON;
    return navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(json) });
  });
  await send("POST", "/auth/passkey/sign-in/", { credential });
}

/** The words of a problem, where the server may have refused the passkey. */
export function passkeyWords(problem: Problem | null): string | null {
  const messages = problem?.fields["credential"];
  return messages ? `The passkey ${messages.join("; ")}.` : (problem?.message ?? null);
}

async function ask(dialog: () => Promise<unknown>): Promise<Credential> {
  let answer: unknown;
  try {
    answer = await dialog();
  } catch (error) {
    throw new Problem(0, words(error));
  }
  if (!(answer instanceof PublicKeyCredential)) throw new Problem(0, CANCELLED);
  return { ...answer.toJSON() };
}

function words(error: unknown): string {
  const name = error instanceof Error ? error.name : "";
  if (name === "InvalidStateError") return "This device has a passkey of the account already.";
  if (name === "SecurityError") {
    return "Passkeys work at the address of the console only, which is the one in its configuration.";
  }
  return CANCELLED;
}
