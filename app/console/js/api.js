// The admin API: JSON under /api/v1, with the session's cookie and, on a change, its token.
import { isUnattended } from "./presence.js";
import { endSession, session } from "./session.js";

/** An answer of the admin API that is no success. `status` is 0 when there was no answer; `code` is AWS's, of an operation of IAM. */
export class ApiError extends Error {
  constructor(status, message, { requestId = "", retryAfterSeconds = null, code = "" } = {}) {
    super(message);
    this.name = "ApiError";
    this.status = status;
    this.requestId = requestId;
    this.code = code;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

const UNREACHABLE = "The gateway does not answer. It may be restarting; this page goes on when it is back.";

/** Sends a request to the admin API and returns its JSON (null for 204). Throws ApiError, or AbortError. */
export async function callApi(method, path, { body, query, signal, keepSession = false } = {}) {
  const response = await send(method, path, { body, query, signal });
  if (response.ok) return response.status === 204 ? null : response.json();
  const error = await readError(response);
  if (response.status === 401 && !keepSession) endSession("Your session ended. Sign in to go on where you were.");
  throw error;
}

async function send(method, path, { body, query, signal }) {
  const headers = {};
  if (body !== undefined) headers["content-type"] = "application/json";
  if (method === "GET" && isUnattended()) headers["x-sluice-unattended"] = "yes";
  if (method !== "GET" && session.peek()) headers["x-sluice-csrf"] = session.peek().csrf;
  const search = query ? `?${new URLSearchParams(query)}` : "";
  try {
    return await fetch(`/api/v1/${path}${search}`, {
      method, headers, signal, credentials: "same-origin", cache: "no-store",
      body: body === undefined ? undefined : JSON.stringify(body),
    });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(0, UNREACHABLE);
  }
}

async function readError(response) {
  let message = "";
  let code = "";
  try {
    const answer = await response.json();
    const { detail } = answer;
    code = answer.code ?? "";
    message = typeof detail === "string" ? detail : (detail ?? []).map(describeField).join("; ");
  } catch {
    // no JSON: a proxy's page, or nothing
  }
  return new ApiError(response.status, message || `The gateway answered ${response.status}.`, {
    code,
    requestId: response.headers.get("x-request-id") ?? "",
    retryAfterSeconds: Number(response.headers.get("retry-after")) || null,
  });
}

function describeField(problem) {
  const field = (problem.loc ?? []).filter((part) => part !== "body").join(".");
  return field ? `${field}: ${problem.msg}` : problem.msg;
}
