// Keys that work everywhere: undo, redo, and the steps by Alt and their number.

import { redo, undo } from "./actions.js";
import { go } from "./store.js";
import { STEPS } from "./words.js";

/** Whether a key belongs to what is being typed. */
export function isTyping(target) {
  return (
    target.matches?.("textarea, select, [contenteditable]") ||
    (target.matches?.("input") && !target.matches("[type=checkbox], [type=radio], [type=button], [type=range]"))
  );
}

/** Which shortcut a key event is, as a word; null where it is none. */
export function shortcutOf(event) {
  const command = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (event.altKey && !command && /^Digit[1-5]$/.test(event.code)) return `step ${event.code.at(-1)}`;
  if (!command || event.altKey) return null;
  if (key === "z") return event.shiftKey ? "redo" : "undo";
  return key === "y" ? "redo" : null;
}

/** Hear a key. */
export function shortcuts(event) {
  const word = shortcutOf(event);
  if (!word) return;
  if (word.startsWith("step")) go(STEPS[Number(word.at(-1)) - 1].id);
  else if (isTyping(event.target))
    return; // the field has an undo of its own
  else if (word === "undo") undo();
  else redo();
  event.preventDefault();
}
