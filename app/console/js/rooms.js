// The rooms of the console. A room's module is loaded when it is first opened; its default export renders every page of it.
import { may } from "./session.js";

/** The pages of the room Operations. */
export const OPERATIONS = [
  { name: "requests", label: "Requests", action: "sluice:ListRequests" },
  { name: "jobs", label: "Jobs", action: "sluice:ListJobs" },
  { name: "gateways", label: "Gateways", action: "sluice:ListGateways" },
  { name: "settings", label: "Settings", action: "sluice:GetSettings" },
  { name: "audit", label: "Audit log", action: "sluice:ListAuditEvents" },
];

/**
 * `action`: the right without which the room is not shown, or one of several; none: everybody who signed in has it.
 * `pages` are those that the palette knows before the room is loaded.
 */
export const ROOMS = [
  { name: "overview", label: "Overview", icon: "pulse", action: "sluice:GetOverview", load: () => import("./rooms/overview/overview.js") },
  { name: "buckets", label: "Buckets", icon: "bucket", load: () => import("./rooms/buckets/buckets.js") },
  { name: "people", label: "People", icon: "people", load: () => import("./rooms/people/people.js") },
  { name: "stores", label: "Stores", icon: "disk", action: "sluice:ListStores", load: () => import("./rooms/stores/stores.js") },
  { name: "load-tests", label: "Load tests", icon: "gauge", action: "sluice:ListLoadTests", load: () => import("./rooms/load-tests/load-tests.js") },
  { name: "operations", label: "Operations", icon: "list", action: OPERATIONS.map((one) => one.action), pages: OPERATIONS, load: () => import("./rooms/operations/operations.js") },
];

/** Returns the rooms that the session may open. */
export function openRooms() {
  return ROOMS.filter((room) => !room.action || [room.action].flat().some(may));
}
