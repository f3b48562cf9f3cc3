// Tries again what may succeed later: while the gateway restarts, is overloaded, or the network is away.
const FIRST_MS = 500;
const MAX_MS = 20_000;
const ATTEMPTS = 16;
const PASSING = new Set([0, 408, 429, 500, 502, 503, 504]);

/** Returns whether an error may pass by itself. */
export function isPassing(error) {
  return error.name !== "AbortError" && PASSING.has(error.status);
}

/** Waits, or throws AbortError; the network's return ends the wait. */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const end = (settle) => () => {
      clearTimeout(timer);
      window.removeEventListener("online", online);
      signal.removeEventListener("abort", abort);
      settle();
    };
    const online = end(resolve);
    const abort = end(() => reject(signal.reason));
    const timer = setTimeout(end(resolve), milliseconds);
    window.addEventListener("online", online);
    signal.addEventListener("abort", abort);
  });
}

/** Runs `work` until it succeeds; `onWait(error, milliseconds)` is called before each wait, and with null after a success that follows one. */
export async function persist(work, signal, onWait) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const result = await work();
      if (attempt > 1) onWait(null, 0);
      return result;
    } catch (error) {
      if (!isPassing(error) || attempt >= ATTEMPTS) throw error;
      const own = Math.min(MAX_MS, FIRST_MS * 2 ** (attempt - 1)) * (0.75 + Math.random() / 2);
      const wait = Math.max(own, (error.retryAfterSeconds ?? 0) * 1000);
      onWait(error, wait);
      await pause(wait, signal);
    }
  }
}
