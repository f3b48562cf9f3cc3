// Bounds what runs at once.
/** Lets `size` holders in; the others wait in order. */
export class Slots {
  constructor(size) {
    this.free = size;
    this.waiting = [];
  }

  /** Runs `work` once there is a slot. Throws AbortError when the signal ends the wait. */
  async run(signal, work) {
    await this.take(signal);
    try {
      return await work();
    } finally {
      const next = this.waiting.shift();
      if (next) next();
      else this.free += 1;
    }
  }

  async take(signal) {
    signal.throwIfAborted();
    if (this.free > 0) {
      this.free -= 1;
      return;
    }
    await new Promise((resolve, reject) => {
      const stop = () => {
        this.waiting = this.waiting.filter((one) => one !== enter);
        reject(signal.reason);
      };
      const enter = () => {
        signal.removeEventListener("abort", stop);
        resolve();
      };
      this.waiting.push(enter);
      signal.addEventListener("abort", stop, { once: true });
    });
  }
}
