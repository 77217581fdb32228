// Light, dark, or as the system says; and the colours of the page as a chart needs them.

const CHOICES = ["auto", "light", "dark"];
const KEY = "kinfold-theme";

/** The theme chosen on this machine. */
export function chosen() {
  const kept = readKept();
  return CHOICES.includes(kept) ? kept : "auto";
}

/** The theme that comes after this one. */
export function nextOf(theme) {
  return CHOICES[(CHOICES.indexOf(theme) + 1) % CHOICES.length];
}

/** Dress the page. */
export function wear(theme) {
  document.documentElement.classList.remove("light", "dark");
  if (theme !== "auto") document.documentElement.classList.add(theme);
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // a browser that keeps nothing: the theme lasts as long as the page
  }
}

function readKept() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

/** Whether the page is dark now. */
export function isDark() {
  const { classList } = document.documentElement;
  return (
    classList.contains("dark") || (!classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches)
  );
}

/** The page's colours by their names (ink, soft, accent, …), as the browser has resolved them. */
export function colours() {
  const probe = document.createElement("i");
  document.body.append(probe);
  const names = [
    "ink",
    "soft",
    "line",
    "edge",
    "paper",
    "accent",
    "before",
    "before-edge",
    "before-text",
    "after",
    "alarm",
    "quasi",
  ];
  const found = {};
  for (const name of names) {
    probe.style.setProperty("color", `var(--${name})`);
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}
