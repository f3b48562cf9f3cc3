// Whether a person is there: pages that ask by themselves do not keep a session from ending.
const AWAY_AFTER_MS = 60_000;

let seen = Date.now();
const note = () => {
  seen = Date.now();
};
for (const type of ["keydown", "pointerdown", "wheel", "touchstart"]) addEventListener(type, note, { capture: true, passive: true });

/** Returns whether nobody has touched this page for a minute. */
export function isUnattended() {
  return Date.now() - seen > AWAY_AFTER_MS;
}
