// Files that were dropped or chosen, with the keys that they get.
const MAX_FILES = 50_000;

/** Returns { files: [{ file, key, handle }], truncated } of a drop, folders with all that is in them. Call it within the event. */
export async function filesOfDrop(transfer, prefix) {
  // what follows the first await sees an empty list
  const entries = [...transfer.items].filter((item) => item.kind === "file").map((item) => ({
    entry: item.webkitGetAsEntry?.(), file: item.getAsFile(), handle: item.getAsFileSystemHandle?.(),
  }));
  const files = [];
  for (const { entry, file, handle } of entries) {
    if (entry) await walk(entry, prefix, await handle?.catch?.(() => undefined), files);
    else if (file) files.push({ file, key: prefix + file.name });
  }
  return { files, truncated: files.length >= MAX_FILES };
}

async function walk(entry, prefix, handle, files) {
  if (files.length >= MAX_FILES) return;
  if (entry.isFile) {
    const file = await new Promise((resolve, reject) => entry.file(resolve, reject));
    files.push({ file, key: prefix + entry.fullPath.replace(/^\//, ""), handle });
    return;
  }
  const reader = entry.createReader();
  for (;;) {
    const children = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (!children.length) return;
    for (const child of children) await walk(child, prefix, handle, files);
  }
}

/** Returns the files of an <input type="file">, a folder's with their paths. */
export function filesOfInput(input, prefix) {
  const files = [...input.files].slice(0, MAX_FILES).map((file) => ({ file, key: prefix + (file.webkitRelativePath || file.name) }));
  return { files, truncated: input.files.length > MAX_FILES };
}

/** Finds the file of an interrupted upload below a kept handle. Returns null without permission or file. */
export async function fileOfHandle(item) {
  try {
    if ((await item.handle.requestPermission({ mode: "read" })) !== "granted") return null;
    if (item.handle.kind === "file") return await item.handle.getFile();
    return await fileBelow(item.handle, item.key);
  } catch {
    return null;
  }
}

async function fileBelow(root, key) {
  const segments = key.split("/");
  const start = segments.indexOf(root.name);
  let folder = root;
  for (const segment of segments.slice(start + 1, -1)) folder = await folder.getDirectoryHandle(segment);
  return (await folder.getFileHandle(segments.at(-1))).getFile();
}

/** Returns whether a file is that of an interrupted upload. */
export function isFileOf(item, file) {
  return file.size === item.size && file.lastModified === item.modified && item.key.endsWith(file.webkitRelativePath || file.name);
}
