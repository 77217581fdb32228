// Roles of columns. Units and households are keys of [privacy]; on the page they are roles like the others. Pure.

import { ROLES } from "./texts.js";

const KEYS = ["unit", "household"]; // of [privacy]: each names one column

/** Return the role of a column as the page shows it; an empty text without one. */
export function getRole(column, privacy) {
  return KEYS.find((key) => privacy?.[key] === column.name) ?? column.role ?? "";
}

/** Return the changes of the policy that give columns a role: a list of [path, value]. */
export function listRoleChanges(names, role, privacy) {
  const left = KEYS.filter((key) => key !== role && names.includes(privacy?.[key]));
  const own = KEYS.includes(role) ? [[["privacy", role], names[0]]] : [];
  const written = KEYS.includes(role) ? "identifier" : role;
  return [
    ...left.map((key) => [["privacy", key], null]),
    ...own,
    ...names.map((name) => [["columns", name, "role"], written]),
  ];
}

/** Return the role of a key, or null. */
export function getRoleByKey(key) {
  return ROLES.find((role) => role.letter === key.toLowerCase())?.id ?? null;
}

/** Return the columns that a filter keeps: a part of their name, and a role. */
export function filterColumns(columns, { text = "", role = "" }, privacy) {
  const part = text.trim().toLowerCase();
  return columns.filter(
    (column) => (!part || column.name.toLowerCase().includes(part)) && (!role || getRole(column, privacy) === role),
  );
}
