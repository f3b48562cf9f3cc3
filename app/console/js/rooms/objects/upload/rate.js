// Bytes a second over the last seconds.
const WINDOW_MS = 8000;
const STEP_MS = 250;

/** Adds up what is sent. */
export class Rate {
  constructor() {
    this.steps = [];
  }

  add(bytes) {
    const now = Date.now();
    const last = this.steps.at(-1);
    if (last && now - last.at < STEP_MS) last.bytes += bytes;
    else this.steps.push({ at: now, bytes });
    while (this.steps.length && now - this.steps[0].at > WINDOW_MS) this.steps.shift();
  }

  /** Bytes a second now; 0 when nothing was sent for a while. */
  get bytesPerSecond() {
    const now = Date.now();
    const recent = this.steps.filter((step) => now - step.at <= WINDOW_MS);
    if (!recent.length) return 0;
    const seconds = Math.max(1, (now - recent[0].at) / 1000);
    return recent.reduce((sum, step) => sum + step.bytes, 0) / seconds;
  }
}
