import assert from "node:assert/strict";
import test from "node:test";
import { bytes, count, digits, duration, plural, share } from "../../src/kinfold/studio/static/numbers.js";

test("counts have their thousands apart, and their noun", () => {
  assert.equal(count(1234567), "1,234,567");
  assert.equal(plural(1, "class", "classes"), "1 class");
  assert.equal(plural(0, "record"), "0 records");
});

test("a share has three digits and never claims more than it is", () => {
  assert.equal(share(0.18234), "18.2%");
  assert.equal(share(0.00042), "0.042%");
  assert.equal(share(1), "100%");
  assert.equal(share(0.99999), "above 99.9%");
  assert.equal(share(0), "0%");
  assert.equal(share(null), "–");
});

test("numbers have sensible digits", () => {
  assert.equal(digits(0.290312), "0.2903");
  assert.equal(digits(5.025125), "5.025");
  assert.equal(digits(12345.678), "12,346");
  assert.equal(digits(3), "3");
});

test("durations are words", () => {
  assert.equal(duration(0.41), "0.41 s");
  assert.equal(duration(12.4), "12 s");
  assert.equal(duration(59.7), "1 min");
  assert.equal(duration(200), "3 min 20 s");
  assert.equal(duration(7500), "2 h 5 min");
  assert.equal(duration(null), "–");
  assert.equal(duration(Infinity), "–");
});

test("bytes are words", () => {
  assert.equal(bytes(999), "999 bytes");
  assert.equal(bytes(12_340), "12.3 KB");
  assert.equal(bytes(5e9), "5 GB");
});
