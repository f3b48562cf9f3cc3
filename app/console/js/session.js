// The session of this browser: its identity and rights as the admin API says them. Its secret stays on the server.
import { signal } from "./ui.js";

/** The session, null when nobody is signed in, undefined until that is known. */
export const session = signal(undefined);

/** Why the page for signing in is shown, if there is more to say than "sign in". */
export const endReason = signal("");

/** Forgets the session, and says why. */
export function endSession(reason) {
  endReason.value = reason;
  session.value = null;
}

/** Returns whether the session may do an action of the gateway, such as "sluice:ListStores". */
export function may(action) {
  return Boolean(session.peek()?.actions.includes(action));
}
