// CRC-32C (Castagnoli), eight bytes a step.
const POLYNOMIAL = 0x82f63b78;
const SLICES = 8;
const TABLES = makeTables();

function makeTables() {
  const tables = Array.from({ length: SLICES }, () => new Int32Array(256));
  for (let byte = 0; byte < 256; byte += 1) {
    let value = byte;
    for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ POLYNOMIAL : value >>> 1;
    tables[0][byte] = value;
  }
  for (let slice = 1; slice < SLICES; slice += 1) {
    for (let byte = 0; byte < 256; byte += 1) {
      const before = tables[slice - 1][byte];
      tables[slice][byte] = (before >>> 8) ^ tables[0][before & 255];
    }
  }
  return tables;
}

/** Returns the checksum of `bytes` after those that gave `crc` (0 at first). */
export function crc32c(bytes, crc = 0) {
  const [t0, t1, t2, t3, t4, t5, t6, t7] = TABLES;
  const end = bytes.length - (bytes.length % SLICES);
  let value = ~crc;
  let at = 0;
  for (; at < end; at += SLICES) {
    const low = value ^ (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24));
    value = t7[low & 255] ^ t6[(low >>> 8) & 255] ^ t5[(low >>> 16) & 255] ^ t4[low >>> 24]
      ^ t3[bytes[at + 4]] ^ t2[bytes[at + 5]] ^ t1[bytes[at + 6]] ^ t0[bytes[at + 7]];
  }
  for (; at < bytes.length; at += 1) value = (value >>> 8) ^ t0[(value ^ bytes[at]) & 255];
  return ~value >>> 0;
}

/** Returns a checksum as S3's headers have it: base64 of four bytes, the highest first. */
export function toHeader(crc) {
  return btoa(String.fromCharCode(crc >>> 24, (crc >>> 16) & 255, (crc >>> 8) & 255, crc & 255));
}
