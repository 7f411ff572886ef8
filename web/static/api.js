// The server's API: questions, and streams of what is new.

let token = sessionStorage.getItem('starling-token') ?? '';
export function setToken(t) { token = t; sessionStorage.setItem('starling-token', t); }

export class Failure extends Error {
  constructor(problem) { super(problem.detail ?? 'no answer'); this.problem = problem; }
}

function headers(more) { return token ? { Authorization: 'Bearer ' + token, ...more } : more ?? {}; }

export async function get(path, signal) {
  let answer;
  try {
    answer = await fetch(path, { headers: headers(), signal });
  } catch (e) {
    if (signal?.aborted) throw e;
    throw new Failure({ status: 0, code: 'SERVER_GONE', detail: 'The server does not answer.', fix: 'Start it again: starling web' });
  }
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Failure(body.code ? body : { status: answer.status, code: 'HTTP_' + answer.status, detail: answer.statusText });
  return body;
}

// Everything of a paged list, up to a limit.
export async function all(path, key, signal, limit = 5000) {
  const list = [];
  for (let after = ''; ;) {
    const page = await get(`${path}${path.includes('?') ? '&' : '?'}limit=1000&after=${after}`, signal);
    list.push(...page[key]);
    if (!page.has_more || list.length >= limit) return list;
    after = page.after;
  }
}

const listeners = new Set();
let connection = 'idle';
export function onConnection(f) { listeners.add(f); f(connection); }
function report(state) { connection = state; for (const f of listeners) f(state); }

// stream follows events until the signal: handlers are by the name of the event. It comes back by itself, after ever longer
// waits, and with the id of the last event that it saw.
export async function stream(path, handlers, signal) {
  let last = '', wait = 500;
  report('connecting');
  signal.addEventListener('abort', () => report('idle'), { once: true });
  while (!signal.aborted) {
    try {
      const answer = await fetch(path, { headers: headers(last ? { 'Last-Event-ID': last } : {}), signal, cache: 'no-store' });
      if (answer.status === 404 || answer.status === 401) { report('refused'); return; }
      if (!answer.ok) throw new Error(answer.statusText);
      report('live');
      wait = 500;
      for await (const e of parse(answer.body)) {
        if (e.id) last = e.id;
        handlers[e.event]?.(JSON.parse(e.data));
      }
    } catch (e) {
      if (signal.aborted) return;
      if (e instanceof SyntaxError || e instanceof TypeError && !/fetch|network/i.test(e.message)) console.error(e);
    }
    if (signal.aborted) return;
    report('reconnecting');
    await new Promise(done => { const t = setTimeout(done, wait + Math.random() * 250); signal.addEventListener('abort', () => { clearTimeout(t); done(); }, { once: true }); });
    wait = Math.min(wait * 2, 8000);
  }
}

async function* parse(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '', event = { event: 'message', data: '' };
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += value;
    for (let end; (end = text.indexOf('\n')) >= 0;) {
      const line = text.slice(0, end);
      text = text.slice(end + 1);
      if (line === '') {
        if (event.data) yield event;
        event = { event: 'message', data: '' };
      } else if (!line.startsWith(':')) {
        const at = line.indexOf(':'), name = line.slice(0, at), rest = line.slice(at + 1).replace(/^ /, '');
        if (name === 'data') event.data += (event.data ? '\n' : '') + rest;
        else if (name === 'event' || name === 'id') event[name] = rest;
      }
    }
  }
}
