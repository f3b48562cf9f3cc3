// Signing in and out by the admin API, which keeps the session in a cookie that no script can read.
import { ApiError, callApi } from "./api.js";
import { endReason, endSession, session } from "./session.js";

/** Reads the session of the cookie. Throws ApiError when the gateway does not answer. */
export async function loadSession() {
  try {
    session.value = await callApi("GET", "session", { keepSession: true });
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 401) throw error;
    session.value = null;
  }
}

/** Signs in. Throws ApiError with what to do. */
export async function signIn(accessKey, secretKey) {
  const body = { access_key: accessKey, secret_key: secretKey };
  session.value = await callApi("POST", "session", { body, keepSession: true });
  endReason.value = "";
}

/** Signs out, on the server as well. */
export async function signOut() {
  try {
    await callApi("DELETE", "session", { keepSession: true });
  } finally {
    endSession("");
  }
}
