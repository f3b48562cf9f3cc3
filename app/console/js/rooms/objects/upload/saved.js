// What is being uploaded, in IndexedDB, so that a reload can go on with it: keys, sizes and upload ids, nothing secret.
const DATABASE = "sluice-uploads";
const STORE = "uploads";

let opened = null;

function open() {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open(DATABASE, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(STORE, { keyPath: "id" });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function inStore(mode, work) {
  try {
    const store = (await open()).transaction(STORE, mode).objectStore(STORE);
    return await new Promise((resolve, reject) => {
      const request = work(store);
      store.transaction.oncomplete = () => resolve(request?.result);
      store.transaction.onerror = () => reject(store.transaction.error);
      store.transaction.onabort = () => reject(store.transaction.error);
    });
  } catch {
    return undefined; // private windows may have none: uploads work, but no reload goes on with them
  }
}

/** Saves records, each with an `id`. */
export function save(records) {
  return inStore("readwrite", (store) => records.forEach((record) => store.put(record)));
}

/** Removes records. */
export function forget(ids) {
  return inStore("readwrite", (store) => ids.forEach((id) => store.delete(id)));
}

/** Returns all records. */
export async function readAll() {
  return (await inStore("readonly", (store) => store.getAll())) ?? [];
}
