// The page as a value: h() describes an element, render() makes the document so, touching only what differs, so that
// focus, selection and scrolling stay where they are. Text is only ever text: there is no way to give markup.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "indeterminate", "disabled", "open", "selected", "hidden", "readOnly"]);

/** Describe an element. Children are elements, texts, numbers, or lists of these; null and false are left out. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: flattened(children), key: props?.key };
}

/** Make the children of an element those described. */
export function render(parent, children) {
  const wanted = flattened(Array.isArray(children) ? children : [children]);
  patchChildren(parent, parent.described ?? [], wanted);
  parent.described = wanted;
}

function flattened(children) {
  const flat = children
    .flat(Infinity)
    .filter((child) => child !== null && child !== undefined && child !== false && child !== true);
  return flat.map((child) => (typeof child === "object" ? child : { text: String(child) }));
}

function patchChildren(parent, before, after) {
  const keyed = new Map(before.filter((old) => old.key !== undefined).map((old) => [old.key, old]));
  const rest = before.filter((old) => old.key === undefined);
  const kept = new Set();
  let next = 0;
  const matches = after.map((wanted) => {
    const old = wanted.key !== undefined ? keyed.get(wanted.key) : rest[next++];
    const fits = old && !kept.has(old) && old.tag === wanted.tag;
    if (fits) kept.add(old);
    return fits ? old : null;
  });
  for (const old of before) if (!kept.has(old)) discard(old);
  let place = parent.firstChild;
  after.forEach((wanted, index) => {
    const old = matches[index];
    const node = old ? patched(old, wanted) : created(wanted, parent);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
    wanted.node = node;
  });
  after.forEach(mounted);
}

function discard(old) {
  forget(old);
  old.node.remove();
}

function forget(old) {
  old.props?.hook?.unmount?.(old.node);
  old.children?.forEach(forget);
}

function created(wanted, parent) {
  if (wanted.text !== undefined) return document.createTextNode(wanted.text);
  const inside = parent.namespaceURI === SVG && parent.localName !== "foreignObject";
  const node =
    wanted.tag === "svg" || inside ? document.createElementNS(SVG, wanted.tag) : document.createElement(wanted.tag);
  wanted.node = node;
  render(node, wanted.children);
  for (const [name, value] of Object.entries(wanted.props)) put(node, name, undefined, value);
  return node;
}

// A hook looks after what is inside an element by itself (a chart, a long table). It begins when the page is complete.
function mounted(wanted) {
  if (!wanted.props?.hook || wanted.node.hooked) return;
  wanted.node.hooked = true;
  queueMicrotask(() => wanted.props.hook.mount?.(wanted.node));
}

function patched(old, wanted) {
  const node = old.node;
  if (wanted.text !== undefined) {
    if (old.text !== wanted.text) node.data = wanted.text;
    return node;
  }
  render(node, wanted.children);
  for (const name of Object.keys(old.props)) if (!(name in wanted.props)) put(node, name, old.props[name], undefined);
  for (const [name, value] of Object.entries(wanted.props)) put(node, name, old.props[name], value);
  if (node.hooked) wanted.props.hook?.update?.(node);
  return node;
}

function put(node, name, before, value) {
  if (name === "key" || name === "hook") return;
  if (name === "on") return listen(node, before, value);
  if (name === "style") return dress(node, before, value);
  if (name.startsWith("on") || name === "innerHTML" || name === "srcdoc") throw new Error(`no ${name} on this page`);
  if (before === value) return; // what somebody is typing stays
  if (PROPERTIES.has(name) && name in node) node[name] = value ?? (name === "value" ? "" : false);
  else if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

function dress(node, before, value) {
  for (const name of Object.keys(before ?? {})) if (!(name in (value ?? {}))) node.style.removeProperty(name);
  for (const [name, text] of Object.entries(value ?? {})) node.style.setProperty(name, String(text));
}

function listen(node, before, value) {
  node.heard ??= {};
  for (const name of Object.keys(value ?? {})) {
    if (!(name in node.heard)) node.addEventListener(name, (event) => node.heard[name]?.(event));
    node.heard[name] = value[name];
  }
  for (const name of Object.keys(before ?? {})) if (!(name in (value ?? {}))) node.heard[name] = undefined;
}
