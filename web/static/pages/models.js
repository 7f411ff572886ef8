// The models that finished runs left, and where they come from.

import { h, fill, word, local, count, loss, perByte, bytes, column, many, table, empty, link, card, copyable, plural, facts, tile, person } from '../dom.js';
import { get } from '../api.js';

const address = m => '/models/' + encodeURIComponent(m.id), run = m => '/jobs/' + encodeURIComponent(m.id);
const size = m => m.files.reduce((n, f) => n + f.bytes, 0);

export async function models({ root, signal }) {
  const { models: list } = await get('/v1/trained-models', signal);
  fill(root, h('div.head', {}, h('h1', {}, 'Models')), h('p.lead', {}, 'What finished runs left, in the form that Hugging Face libraries and llama.cpp load, each with the checkpoints and the signatures behind it.'),
    h('section.card', {}, list.length ? table('Models', [
      { head: 'Model', wide: true, plain: true, cell: m => [h('div', {}, link(address(m), m.name)), m.name !== m.id && h('div', {}, h('code.soft', {}, m.id))] },
      { head: 'Architecture', cell: m => m.facts?.[0]?.value ?? '–' },
      { head: 'Eval loss', number: true, cell: m => loss(m.eval_loss) },
      { head: 'Tokens', number: true, cell: m => many(m.tokens) },
      { head: 'Checkpoints', number: true, cell: m => count(m.rounds) },
      { head: 'Workers', number: true, cell: m => count(m.contributors.length) },
      { head: 'Size', number: true, cell: m => bytes(size(m)) },
      { head: 'State root', cell: m => copyable(m.state_root, 10, 6) },
    ], list, m => m.id) : empty('No run has finished yet.', 'starling train examples/quickstart.yaml')));
}

export async function model({ root, params: [id], signal }) {
  const m = (await get('/v1/trained-models', signal)).models.find(m => m.id === id);
  const crumb = h('p.crumb', {}, link('/models', 'Models'), ' / ' + id);
  if (!m) return fill(root, crumb, h('h1', {}, 'Model'), h('section.card', {}, empty('No finished run of this name left a model here.')));
  document.title = m.name + ' · Starling';
  const write = column(m.contributors, c => c.uzen);
  fill(root, crumb, h('div.head', {}, h('h1', {}, m.name)), h('p.lead', {}, 'Left by ', link(run(m), 'its run'), `, which ${plural(m.contributors.length, 'worker')} trained.`),
    h('div.tiles', {}, tile('Eval loss', loss(m.eval_loss), m.eval_loss === undefined ? 'nothing held out' : m.bits_per_byte === undefined ? '' : `${perByte(m)}perplexity ${Math.exp(m.eval_loss).toFixed(2)}`), tile('Tokens', many(m.tokens), `${count(m.steps)} steps`),
      tile('Checkpoints', count(m.rounds), `the last signed by ${m.signers}`), tile('Size', bytes(size(m)), plural(m.files.length, 'file'))),
    h('div.columns', {}, h('div', {},
      card('Use it', h('pre.sample', { tabindex: 0, 'aria-label': 'Commands' }, `starling job verify ${word(m.folder)}\nstarling model generate ${word(m.folder)} --prompt "..." --tokens 100\nstarling model serve ${word(m.folder)}\n\n# Python\nfrom transformers import pipeline\npipeline("text-generation", ${JSON.stringify(local(m.folder))})`)),
      card('Who trained it', m.contributors.length ? table('Contributors', [
        { head: 'Worker', cell: c => person(c.id) }, { head: 'Units', number: true, cell: c => count(c.units) }, { head: m.contributors.some(c => c.coin) ? 'Earned' : 'Earned, ZEN', number: true, cell: write },
      ], m.contributors) : h('p.soft', {}, 'Its receipts name nobody.'))),
    h('div', {},
      card('Where it comes from', facts([...(m.facts ?? []).slice(0, 2).map(f => [f.name, f.value]), ['State root', copyable(m.state_root, 14, 8)], ['Provenance', link(run(m) + '/lineage', plural(m.rounds, 'checkpoint'))]])),
      card('Files', table('Files', [{ head: 'File', wide: true, cell: f => h('code', {}, f.name) }, { head: 'Size', number: true, cell: f => bytes(f.bytes) }], m.files)))));
}
