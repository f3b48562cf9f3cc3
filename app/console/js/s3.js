// S3 from the browser: the admin API signs a URL for the session's key, and the browser sends the request to the S3 listener.
import { callApi } from "./api.js";
import { parseXml, textOf } from "./xml.js";

const BATCH = 1000;
const ATTEMPTS = 4;
const FIRST_DELAY_MS = 250;

/** An error answer of S3, or none at all (`status` 0). */
export class S3Error extends Error {
  constructor(status, code, message, requestId) {
    super(message);
    this.name = "S3Error";
    this.status = status;
    this.code = code;
    this.requestId = requestId;
  }
}

let pending = [];

/** Returns a presigned URL. Requests of the same moment are signed together. `expires` is seconds. */
export function presign(request, expires) {
  return new Promise((resolve, reject) => {
    if (!pending.length) queueMicrotask(signPending);
    pending.push({ request, expires, resolve, reject });
  });
}

async function signPending() {
  const waiting = pending;
  pending = [];
  const groups = Map.groupBy ? Map.groupBy(waiting, (one) => one.expires) : groupByExpires(waiting);
  for (const [expires, group] of groups) {
    for (let start = 0; start < group.length; start += BATCH) await signBatch(group.slice(start, start + BATCH), expires);
  }
}

function groupByExpires(waiting) {
  const groups = new Map();
  for (const one of waiting) groups.set(one.expires, [...(groups.get(one.expires) ?? []), one]);
  return groups;
}

async function signBatch(batch, expires) {
  try {
    const body = { requests: batch.map((one) => one.request), ...(expires ? { expires } : {}) };
    const { urls } = await callApi("POST", "signatures", { body });
    batch.forEach((one, index) => one.resolve(urls[index]));
  } catch (error) {
    batch.forEach((one) => one.reject(error));
  }
}

/**
 * Sends a request to S3 and returns the Response of a success. Throws S3Error, ApiError, or AbortError.
 * `headers` are signed; `query` of a subresource is { policy: "" }. A request that may be sent twice is, after 503 or no answer.
 */
export async function callS3({ method = "GET", bucket, key, query = {}, headers = {}, body, signal, repeat = method !== "POST" }) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await sendOnce({ method, bucket, key, query, headers, body, signal });
    } catch (error) {
      const passing = error.status === 503 || error.status === 0 || error.status === 502;
      if (!repeat || !passing || attempt >= ATTEMPTS || signal?.aborted) throw error;
      await new Promise((resolve) => setTimeout(resolve, FIRST_DELAY_MS * 2 ** attempt));
    }
  }
}

async function sendOnce({ method, bucket, key, query, headers, body, signal }) {
  const url = await presign({ method, bucket, key, query, headers });
  let response;
  try {
    response = await fetch(url, { method, headers, body, signal, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const advice = "Behind a proxy the gateway needs SLUICE_PUBLIC_URL and SLUICE_CONSOLE_URL.";
    throw new S3Error(0, "NoAnswer", `${new URL(url).origin} does not answer. Is the S3 port reachable from this browser? ${advice}`, "");
  }
  if (response.ok || response.status === 304) return response;
  throw await readError(response);
}

async function readError(response) {
  const requestId = response.headers.get("x-amz-request-id") ?? "";
  try {
    const root = parseXml(await response.text());
    return new S3Error(response.status, textOf(root, "Code") ?? "", textOf(root, "Message") ?? "", requestId);
  } catch {
    return new S3Error(response.status, String(response.status), `S3 answered ${response.status}.`, requestId);
  }
}

/** Sends a request and returns the root of the XML that answers it. */
export async function callS3Xml(request) {
  return parseXml(await (await callS3(request)).text());
}

/** Returns what a setting's GET has, or null for the error codes that say that there is none. */
export async function readSetting(request, ...absent) {
  try {
    return await callS3Xml(request);
  } catch (error) {
    if (error instanceof S3Error && absent.includes(error.code)) return null;
    throw error;
  }
}

