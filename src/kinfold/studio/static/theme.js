// The theme (light, dark, or as the system), and the colours of the page for charts.

const CHOICES = ["auto", "light", "dark"];
const STORAGE_KEY = "kinfold-theme";

/** Return the theme chosen on this machine. */
export function getTheme() {
  const saved = readTheme();
  return CHOICES.includes(saved) ? saved : "auto";
}

/** Return the theme that follows this one. */
export function getNextTheme(theme) {
  return CHOICES[(CHOICES.indexOf(theme) + 1) % CHOICES.length];
}

/** Apply a theme to the page, and save it. */
export function applyTheme(theme) {
  document.documentElement.classList.remove("light", "dark");
  if (theme !== "auto") document.documentElement.classList.add(theme);
  try {
    localStorage.setItem(STORAGE_KEY, theme);
  } catch {
    // the browser stores nothing: the theme lasts as long as the page
  }
}

function readTheme() {
  try {
    return localStorage.getItem(STORAGE_KEY);
  } catch {
    return null;
  }
}

/** Return whether the page is dark now. */
export function isDark() {
  const { classList } = document.documentElement;
  return (
    classList.contains("dark") || (!classList.contains("light") && matchMedia("(prefers-color-scheme: dark)").matches)
  );
}

/** Return the page's colours by name (ink, soft, accent, …), as the browser resolves them. */
export function getColours() {
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
  const result = {};
  for (const name of names) {
    probe.style.setProperty("color", `var(--${name})`);
    result[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return result;
}
