// The beginning of an object as text.
import { callS3 } from "../../../s3.js";

/** Returns { text, isWhole } of at most `bytes`. Throws for bytes that are no text. */
export async function readText(bucket, key, size, bytes, signal) {
  const isWhole = size <= bytes;
  const headers = isWhole ? {} : { range: `bytes=0-${bytes - 1}` };
  const buffer = await (await callS3({ bucket, key, headers, signal })).arrayBuffer();
  const content = new Uint8Array(buffer).subarray(0, bytes);
  if (content.includes(0)) throw new Error("This is no text, though its type or name says so.");
  const text = new TextDecoder("utf-8").decode(content, { stream: !isWhole });
  return { text, isWhole };
}
