// @ts-nocheck: it runs in a browser, whose types are not part of this program.
// Shows /openapi.json. Text goes into the page as text only; nothing is loaded from anywhere else.

/** @param {string} name @param {...(Node | string)} children */
function element(name, ...children) {
  const made = document.createElement(name);
  made.append(...children);
  return made;
}

function block(title, value) {
  return [element('h4', title), element('pre', JSON.stringify(value, undefined, 2))];
}

function parameters(list) {
  const rows = list.map(({ name, in: place, required, description = '', schema }) =>
    element(
      'tr',
      element('td', element('code', name)),
      element('td', place),
      element('td', required ? 'required' : ''),
      element('td', description || JSON.stringify(schema)),
    ),
  );
  return [element('h4', 'Parameters'), element('table', ...rows)];
}

function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function curl(method, path, { parameters: list = [], requestBody }) {
  let url = path;
  const query = new URLSearchParams();
  const lines = [`curl -X ${method.toUpperCase()} -H "Authorization: Bearer $TOKEN"`];
  for (const { name, in: place, example } of list) {
    if (place === 'header' && name === 'If-Match') lines.push('-H "If-Match: $ETAG"');
    if (place === 'header' && name === 'If-None-Match') lines.push("-H 'If-None-Match: *'");
    if (example === undefined) continue;
    if (place === 'path') url = url.replace(`{${name}}`, encodeURIComponent(example));
    if (place === 'query') query.set(name, example);
  }
  const body = requestBody?.content['application/json']?.example;
  if (body !== undefined) {
    lines.push(`-H 'Content-Type: application/json' -d ${quoted(JSON.stringify(body))}`);
  }
  const search = query.size === 0 ? '' : `?${query}`;
  lines.push(`"$URL${url}${search}"`);
  return lines.join(' \\\n  ');
}

function operation(method, path, it) {
  const parts = [element('p', it.description ?? '')];
  if (it.parameters !== undefined) parts.push(...parameters(it.parameters));
  parts.push(element('h4', 'Example'), element('pre', curl(method, path, it)));
  const request = it.requestBody?.content['application/json'];
  if (request !== undefined) parts.push(...block('Request', request.schema));
  for (const [status, answer] of Object.entries(it.responses)) {
    if (status === 'default') continue;
    const [content] = Object.values(answer.content ?? {});
    parts.push(...(content === undefined ? [element('h4', `Answer ${status}`)] : block(`Answer ${status}`, content.schema)));
  }
  const title = element('summary', element('code', `${method.toUpperCase()} ${path}`), ` — ${it.summary}`);
  const made = element('details', title, ...parts);
  made.dataset.text = `${method} ${path} ${it.summary}`.toLowerCase();
  return made;
}

const answer = await fetch('/openapi.json');
const api = await answer.json();
document.querySelector('#about').textContent = api.info.description;
const groups = Map.groupBy(
  Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, it]) => ({ method, path, it })),
  ),
  ({ it }) => it.tags[0],
);
const main = document.querySelector('#operations');
main.replaceChildren(
  ...[...groups].map(([tag, list]) =>
    element('section', element('h2', tag), ...list.map(({ method, path, it }) => operation(method, path, it))),
  ),
);
document.querySelector('#filter').addEventListener('input', ({ target }) => {
  const wanted = target.value.trim().toLowerCase();
  for (const one of main.querySelectorAll('details')) one.hidden = !one.dataset.text.includes(wanted);
  for (const one of main.querySelectorAll('section')) one.hidden = !one.querySelector('details:not([hidden])');
});
