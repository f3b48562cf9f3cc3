// A setting of a bucket: read by S3, kept as a draft, written back only if nobody else changed it meanwhile.
import { useEffect, useState } from "../../../ui.js";
import { useAction, useResource } from "../../../resource.js";
import { leaveQuestion } from "../../../router.js";
import { callS3, S3Error } from "../../../s3.js";
import { session } from "../../../session.js";
import { parseXml } from "../../../xml.js";
import { isSameDocument } from "./shape.js";

const CHANGED = "This setting was changed by somebody else, or in another window, since you opened it. Copy what you need, then load it again.";
/** Drafts of pages that the end of a session took away, by bucket and setting: they are there again after signing in. */
const interrupted = new Map();
const LEAVE = "This setting has changes that are not saved. Leave, and lose them?";

/** Reads a setting: { source (null: there is none), value, shown, note }. `shown` false: only its text can show it whole. */
export async function readSource(kind, bucket, signal) {
  let response;
  try {
    response = await callS3({ bucket, query: kind.query, signal });
  } catch (error) {
    if (error instanceof S3Error && kind.absent?.includes(error.code)) return { source: null, value: kind.empty(), shown: !kind.json, note: null };
    throw error;
  }
  const source = await response.text();
  const note = kind.readHeaders?.(response.headers) ?? null;
  if (kind.json) return { source, value: null, shown: false, note };
  const value = kind.read(parseXml(source));
  return { source, value, shown: isSameDocument(source, kind.write(value)), note };
}

/** Writes a setting; null removes it. */
export async function writeSource(kind, bucket, source, note = null) {
  if (source === null) return callS3({ method: "DELETE", bucket, query: kind.query });
  return callS3({ method: "PUT", bucket, query: kind.query, headers: kind.writeHeaders?.(note) ?? {}, body: source });
}

/**
 * Returns { loaded, error, reload, draft, setDraft, dirty, save, saving, saveError } of a setting. A draft is
 * { mode: "form" | "text", value, text, note }.
 */
export function useSetting(kind, bucket) {
  const { data, error, reload } = useResource((signal) => readSource(kind, bucket, signal), [kind.name, bucket]);
  const [saved, setSaved] = useState(null);
  const loaded = saved && saved.of === data ? saved.loaded : data;
  const [kept, setKept] = useState(null);
  const draft = kept && kept.of === loaded ? kept.draft : null; // what was read again has no draft yet
  const setDraft = (next) => setKept(next && { of: loaded, draft: next });
  const current = draft ?? (loaded && firstDraft(kind, loaded));
  const dirty = Boolean(draft) && JSON.stringify(contentOf(draft)) !== JSON.stringify(contentOf(firstDraft(kind, loaded, draft.mode)));
  const place = `${bucket}/${kind.name}`;
  useEffect(() => {
    const before = loaded && interrupted.get(place);
    if (before?.source === loaded?.source && before) setDraft(before.draft);
    if (loaded) interrupted.delete(place);
  }, [loaded]);
  useEffect(() => () => {
    if (dirty && session.peek() === null) interrupted.set(place, { source: loaded.source, draft });
  }, [dirty, draft]);
  useEffect(() => {
    leaveQuestion.value = dirty ? () => LEAVE : null;
    return () => {
      leaveQuestion.value = null;
    };
  }, [dirty]);
  const [save, { busy: saving, error: saveError, clear }] = useAction(async (source) => {
    const now = await readSource(kind, bucket);
    if (!isUnchanged(kind, now, loaded)) throw new Error(CHANGED);
    await writeSource(kind, bucket, source, current.note);
    leaveQuestion.value = null;
    setSaved({ of: data, loaded: await readSource(kind, bucket) });
    return true;
  });
  return { loaded, error, reload, draft: current, setDraft, dirty, save, saving, saveError, clear };
}

/** Returns the draft of what was read, as a form where it can be shown, else as text. */
export function firstDraft(kind, loaded, mode = loaded.shown ? "form" : "text") {
  return { mode, value: loaded.value, text: kind.render(loaded), note: loaded.note };
}

function contentOf(draft) {
  return draft.mode === "form" ? [draft.value, draft.note] : [draft.text, draft.note];
}

function isUnchanged(kind, now, before) {
  if (JSON.stringify(now.note) !== JSON.stringify(before.note)) return false;
  if (now.source === null || before.source === null || kind.json) return now.source === before.source;
  return isSameDocument(now.source, before.source);
}
