// Sends a body to S3 with progress, which fetch does not tell.
import { presign, S3Error } from "../../../s3.js";
import { parseXml, textOf } from "../../../xml.js";

const SIGN_WINDOW_MS = 8;
let gathering = null;

/** Returns a presigned URL; requests of some milliseconds are signed together. */
export async function presignSoon(request) {
  gathering ??= new Promise((resolve) => {
    setTimeout(() => {
      gathering = null;
      resolve();
    }, SIGN_WINDOW_MS);
  });
  await gathering;
  return presign(request);
}

/** PUTs a Blob to a presigned URL. Returns the XMLHttpRequest of a success. Throws S3Error, AbortError. */
export function put({ url, headers, body, signal, onProgress }) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const request = new XMLHttpRequest();
    const abort = () => request.abort();
    request.open("PUT", url);
    for (const [name, value] of Object.entries(headers)) request.setRequestHeader(name, value);
    request.upload.onprogress = (event) => onProgress(Math.min(event.loaded, body.size));
    request.onload = () => (request.status < 300 ? resolve(request) : reject(readError(request)));
    request.onerror = () => reject(new S3Error(0, "NoAnswer", "The gateway does not answer, or the connection broke.", ""));
    request.onabort = () => reject(signal.reason);
    request.onloadend = () => signal.removeEventListener("abort", abort);
    signal.addEventListener("abort", abort, { once: true });
    request.send(body);
  });
}

function readError(request) {
  const id = request.getResponseHeader("x-amz-request-id") ?? "";
  try {
    const root = parseXml(request.responseText);
    return new S3Error(request.status, textOf(root, "Code") ?? "", textOf(root, "Message") ?? "", id);
  } catch {
    return new S3Error(request.status, String(request.status), `S3 answered ${request.status}.`, id);
  }
}
