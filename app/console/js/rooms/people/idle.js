// Keys that are a risk: the same bounds as of the overview (app/admin/people/idle_keys.py).
const DAY_MS = 86_400_000;
const UNUSED_DAYS = 90;
const OLD_DAYS = 365;

/** Returns what is wrong with an active key, "" for nothing. `since`: when recording of uses began, if that is known. */
export function idleReason({ active, created, used }, since) {
  const age = (moment) => (Date.now() - new Date(moment)) / DAY_MS;
  if (!active) return "";
  if (used && age(used) > UNUSED_DAYS) return `not used for ${UNUSED_DAYS} days`;
  if (!used && since && age(since) > UNUSED_DAYS && age(created) > UNUSED_DAYS) return `not used for ${UNUSED_DAYS} days`;
  return age(created) > OLD_DAYS ? "older than a year" : "";
}
