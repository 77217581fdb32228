// The page as a value: h() describes an element, render() changes the document to match. It changes only what differs,
// so focus, selection and scrolling are kept. Texts are never parsed as markup.

const SVG = "http://www.w3.org/2000/svg";
const PROPERTIES = new Set(["value", "checked", "indeterminate", "disabled", "open", "selected", "hidden", "readOnly"]);

/** Describe an element. Children are elements, texts, numbers, or lists of these; null and false are skipped. */
export function h(tag, props, ...children) {
  return { tag, props: props ?? {}, children: flatten(children), key: props?.key };
}

/** Change the children of an element to those described. */
export function render(parent, children) {
  const wanted = flatten(Array.isArray(children) ? children : [children]);
  patchChildren(parent, parent.described ?? [], wanted);
  parent.described = wanted;
}

function flatten(children) {
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
  for (const old of before) if (!kept.has(old)) removeNode(old);
  let place = parent.firstChild;
  after.forEach((wanted, index) => {
    const old = matches[index];
    const node = old ? patchNode(old, wanted) : createNode(wanted, parent);
    if (node === place) place = place.nextSibling;
    else parent.insertBefore(node, place);
    wanted.node = node;
  });
  after.forEach(mountNode);
}

function removeNode(old) {
  unmount(old);
  old.node.remove();
}

function unmount(old) {
  old.props?.hook?.unmount?.(old.node);
  old.children?.forEach(unmount);
}

function createNode(wanted, parent) {
  if (wanted.text !== undefined) return document.createTextNode(wanted.text);
  const inside = parent.namespaceURI === SVG && parent.localName !== "foreignObject";
  const node =
    wanted.tag === "svg" || inside ? document.createElementNS(SVG, wanted.tag) : document.createElement(wanted.tag);
  wanted.node = node;
  render(node, wanted.children);
  for (const [name, value] of Object.entries(wanted.props)) setProperty(node, name, undefined, value);
  return node;
}

// A hook manages the content of an element itself (a chart, a long table). It is mounted when the page is complete.
function mountNode(wanted) {
  if (!wanted.props?.hook || wanted.node.hooked) return;
  wanted.node.hooked = true;
  queueMicrotask(() => wanted.props.hook.mount?.(wanted.node));
}

function patchNode(old, wanted) {
  const node = old.node;
  if (wanted.text !== undefined) {
    if (old.text !== wanted.text) node.data = wanted.text;
    return node;
  }
  render(node, wanted.children);
  const removed = Object.keys(old.props).filter((name) => !(name in wanted.props));
  for (const name of removed) setProperty(node, name, old.props[name], undefined);
  for (const [name, value] of Object.entries(wanted.props)) setProperty(node, name, old.props[name], value);
  if (node.hooked) wanted.props.hook?.update?.(node);
  return node;
}

function setProperty(node, name, before, value) {
  if (name === "key" || name === "hook") return;
  if (name === "on") return setListeners(node, before, value);
  if (name === "style") return setStyle(node, before, value);
  if (name.startsWith("on") || name === "innerHTML" || name === "srcdoc") throw new Error(`no ${name} on this page`);
  if (before === value) return; // keep what is being typed
  if (PROPERTIES.has(name) && name in node) node[name] = value ?? (name === "value" ? "" : false);
  else if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

function setStyle(node, before, value) {
  for (const name of Object.keys(before ?? {})) if (!(name in (value ?? {}))) node.style.removeProperty(name);
  for (const [name, text] of Object.entries(value ?? {})) node.style.setProperty(name, String(text));
}

function setListeners(node, before, value) {
  node.listeners ??= {};
  for (const name of Object.keys(value ?? {})) {
    if (!(name in node.listeners)) node.addEventListener(name, (event) => node.listeners[name]?.(event));
    node.listeners[name] = value[name];
  }
  for (const name of Object.keys(before ?? {})) if (!(name in (value ?? {}))) node.listeners[name] = undefined;
}
