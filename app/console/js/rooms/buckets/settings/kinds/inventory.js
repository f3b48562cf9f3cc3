// Inventories of a bucket: lists of its objects, delivered daily or weekly.
import { formatPlural } from "../../../../format.js";
import { InventoryPage, readInventories } from "../inventory/inventory-page.js";

export default {
  name: "inventory",
  title: "Inventory",
  about: "A list of all objects, as CSV or Parquet files in another bucket, with a manifest: to compare, count or audit without listing.",
  query: { inventory: "" },
  describe: async (bucket, signal) => {
    const found = await readInventories(bucket.name, signal);
    return found.length ? formatPlural(found.length, "inventory", "inventories") : "none";
  },
  Page: InventoryPage,
};
