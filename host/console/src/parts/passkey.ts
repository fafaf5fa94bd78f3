// Passkeys of the browser.

import { asProblem, Problem, send } from "../api";
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
  if (!answer) throw new Problem(0, CANCELLED);
  try {
    return json(answer as PublicKeyCredential);
  } catch (error) {
    throw asProblem(error);
  }
}

/**
 * The JSON form of a credential, from its parts. Password managers are extensions that make objects of
 * their own, without the methods of the browser's.
 */
function json(credential: PublicKeyCredential): Credential {
  const { response } = credential;
  const made = response as AuthenticatorAttestationResponse;
  const used = response as AuthenticatorAssertionResponse;
  const parts: Record<string, unknown> = { clientDataJSON: base64url(response.clientDataJSON) };
  if (made.attestationObject) {
    parts["attestationObject"] = base64url(made.attestationObject);
    parts["transports"] = typeof made.getTransports === "function" ? made.getTransports() : [];
  } else {
    parts["authenticatorData"] = base64url(used.authenticatorData);
    parts["signature"] = base64url(used.signature);
    if (used.userHandle) parts["userHandle"] = base64url(used.userHandle);
  }
  const rawId = base64url(credential.rawId);
  const results =
    typeof credential.getClientExtensionResults === "function" ? credential.getClientExtensionResults() : {};
  return {
    id: rawId,
    rawId,
    type: credential.type ?? "public-key",
    authenticatorAttachment: credential.authenticatorAttachment ?? null,
    clientExtensionResults: results,
    response: parts,
  };
}

/** Bytes as base64url; text of that form stays. */
function base64url(bytes: BufferSource | string): string {
  if (typeof bytes === "string") return bytes;
  const view = ArrayBuffer.isView(bytes)
    ? new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : new Uint8Array(bytes);
  const text = btoa(String.fromCharCode(...view));
  return text.replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

function words(error: unknown): string {
  const name = error instanceof Error ? error.name : "";
  if (name === "InvalidStateError") return "This device has a passkey of the account already.";
  if (name === "SecurityError") {
    return "Passkeys work at the address of the console only, which is the one in its configuration.";
  }
  return CANCELLED;
}
