// What eslint asks of the page's scripts: its own recommendations, and a few habits of this house.
import { existsSync } from "node:fs";

const recommended = new URL("../../build/node_modules/@eslint/js/src/index.js", import.meta.url);
const js = existsSync(recommended) ? (await import(recommended)).default : { configs: { recommended: {} } };

const known = (names) => Object.fromEntries(names.split(" ").map((name) => [name, "readonly"]));
const BROWSER = known(
  "window document location history navigator fetch requestAnimationFrame setTimeout clearTimeout matchMedia innerWidth " +
    "innerHeight queueMicrotask scrollTo getComputedStyle getSelection addEventListener removeEventListener dispatchEvent localStorage " +
    "sessionStorage BroadcastChannel " +
    "Event EventSource XMLHttpRequest ResizeObserver URL Blob File FormData Node Element HTMLElement CSS structuredClone",
);
const RUNNER = known("process console setTimeout URL");

export default [
  js.configs.recommended,
  {
    languageOptions: { ecmaVersion: 2024, sourceType: "module", globals: BROWSER },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      "array-callback-return": "error",
      "consistent-return": "off", // a handler may end early
      eqeqeq: ["error", "always"],
      "max-depth": ["error", 3],
      "max-lines": ["error", 250],
      "max-params": ["error", 5],
      "no-alert": "error",
      "no-console": "error",
      "no-eval": "error",
      "no-implied-eval": "error",
      "no-implicit-globals": "error",
      "no-new-func": "error",
      "no-script-url": "error",
      "no-shadow": "error",
      "no-throw-literal": "error",
      "no-unused-expressions": ["error", { allowShortCircuit: false, allowTernary: false }],
      "no-use-before-define": ["error", { functions: false, variables: false }],
      "no-useless-concat": "error",
      "no-var": "error",
      "object-shorthand": "error",
      "prefer-const": "error",
      "prefer-template": "error",
    },
  },
  { files: ["**/*.test.mjs", "**/eslint.config.mjs"], languageOptions: { globals: RUNNER } },
];
