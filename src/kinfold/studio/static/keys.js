// Shortcuts: undo, redo, and Alt with the number of a step.

import { redo, undo } from "./actions.js";
import { go } from "./store.js";
import { STEPS } from "./texts.js";

/** Return whether a key goes into a field that has an undo of its own. */
export function isTyping(target) {
  return (
    target.matches?.("textarea, [contenteditable]") ||
    (target.matches?.("input") && !target.matches("[type=checkbox], [type=radio], [type=button], [type=range]"))
  );
}

/** Return the name of the shortcut of a key event, or null. */
export function getShortcut(event) {
  const command = event.ctrlKey || event.metaKey;
  const key = event.key.toLowerCase();
  if (event.altKey && !command && /^Digit[1-5]$/.test(event.code)) return `step ${event.code.at(-1)}`;
  if (!command || event.altKey) return null;
  if (key === "z") return event.shiftKey ? "redo" : "undo";
  return key === "y" ? "redo" : null;
}

/** Handle a key event. */
export function handleKey(event) {
  const word = getShortcut(event);
  if (!word) return;
  if (word.startsWith("step")) go(STEPS[Number(word.at(-1)) - 1].id);
  else if (isTyping(event.target))
    return; // the field has its own undo
  else if (word === "undo") undo();
  else redo();
  event.preventDefault();
}
