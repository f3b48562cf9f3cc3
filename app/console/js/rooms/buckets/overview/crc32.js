// CRC-32 of a text in UTF-8, which DeleteObjects asks for: WebCrypto has no MD5, and is missing on plain http.
const TABLE = new Uint32Array(256).map((_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit += 1) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
  return value;
});

/** Returns the checksum as S3 writes it: four bytes, the highest first, in base64. */
export function crc32Base64(text) {
  let crc = 0xffffffff;
  for (const byte of new TextEncoder().encode(text)) crc = (crc >>> 8) ^ TABLE[(crc ^ byte) & 0xff];
  crc ^= 0xffffffff;
  return btoa(String.fromCharCode((crc >>> 24) & 0xff, (crc >>> 16) & 0xff, (crc >>> 8) & 0xff, crc & 0xff));
}
