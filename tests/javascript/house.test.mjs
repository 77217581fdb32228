// The house rules of the page's scripts: small modules, no markup from text, nothing evaluated, nothing from elsewhere.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import test from "node:test";
import { fileURLToPath } from "node:url";

const STATIC = resolve(dirname(fileURLToPath(import.meta.url)), "../../src/kinfold/studio/static");
const MODULES = readdirSync(STATIC, { recursive: true }).filter((name) => name.endsWith(".js"));
const FORBIDDEN =
  /\b(innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|new Function|DOMParser|createContextualFragment)\b/;
const text = (name) => readFileSync(join(STATIC, name), "utf8");
const code = (name) => text(name).replace(/^\s*(\/\/|\/\*\*|\*).*$/gm, "");

test("there are modules to look at", () => assert.ok(MODULES.length > 20));

for (const name of MODULES) {
  test(`${name} is small`, () => {
    const lines = text(name).split("\n");
    assert.ok(lines.length <= 250, `${lines.length} lines`);
    lines.forEach((line, index) => assert.ok(line.length <= 120, `line ${index + 1} is ${line.length} long`));
  });

  test(`${name} says what it is`, () => assert.match(text(name), /^\/\/ \S/));

  test(`${name} makes no markup of text and evaluates nothing`, () => {
    const found = code(name).replace(/if \(name\.startsWith\("on"\).*\n?.*throw.*/, ""); // dom.js refuses it
    assert.doesNotMatch(found, FORBIDDEN);
    assert.doesNotMatch(found, /setAttribute\(\s*"(on|style|srcdoc)/);
  });

  test(`${name} asks this server only`, () => {
    const addresses = code(name).match(/["'`]\w+:\/\/[^"'`]*/g) ?? [];
    const known = ["http://www.w3.org/2000/svg", "postgresql://user@host/database"]; // a name space, an example
    assert.deepEqual(
      addresses.filter((address) => !known.includes(address.slice(1))),
      [],
    );
  });

  test(`${name} imports what is there, and uses it`, () => {
    const imports = [...text(name).matchAll(/^import \{([^}]*)\} from "([^"]+)";/gm)];
    for (const [, names, from] of imports) {
      const exported = text(join(dirname(name), from));
      for (const one of names
        .split(",")
        .map((part) => part.trim())
        .filter(Boolean)) {
        const [theirs, mine = theirs] = one.split(" as ");
        assert.match(
          exported,
          new RegExp(`export (async )?(function|class|const|let) ${theirs}\\b`),
          `${from} has no ${theirs}`,
        );
        const uses = code(name).match(new RegExp(`\\b${mine}\\b`, "g"));
        assert.ok(uses.length > 1, `${mine} is imported and not used`);
      }
    }
  });

  test(`${name} has no function that nobody calls`, () => {
    const own = [...code(name).matchAll(/^(?:async )?function (\w+)/gm)].map(([, one]) => one);
    for (const one of own)
      assert.ok(code(name).match(new RegExp(`\\b${one}\\b`, "g")).length > 1, `${one} is not called`);
  });

  test(`what ${name} exports somebody uses`, () => {
    const all = [
      ...MODULES.map(text),
      ...readdirSync(dirname(fileURLToPath(import.meta.url)))
        .filter((file) => file.endsWith(".test.mjs"))
        .map((file) => readFileSync(join(dirname(fileURLToPath(import.meta.url)), file), "utf8")),
    ];
    for (const [, one] of text(name).matchAll(/^export (?:async )?(?:function|class|const) (\w+)/gm)) {
      const uses = all.join("\n").match(new RegExp(`\\b${one}\\b`, "g")).length;
      assert.ok(uses > 1, `${one} is exported and not used`);
    }
  });
}
