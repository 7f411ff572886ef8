// The models that finished runs left, and where they come from.

import { h, fill, word, local, count, loss, bytes, zen, table, empty, link, card, copyable, short, plural } from '../dom.js';
import { get } from '../api.js';

export async function models({ root, signal }) {
  const { models: list } = await get('/v1/models', signal);
  fill(root, h('div.head', {}, h('h1', {}, 'Models')), h('p.lead', {}, 'What finished runs left, in the form that Hugging Face libraries and llama.cpp load, each with the checkpoints and the signatures behind it.'),
    list.length ? list.map(one) : h('section.card', {}, empty('No run has finished yet.', 'starling train examples/quickstart.yaml')));
}

function one(m) {
  return h('section.card', {}, h('div.head', {}, h('h2', {}, link('/jobs/' + encodeURIComponent(m.id), m.name)), m.name !== m.id && h('span.soft', {}, m.id)),
    h('div.columns', {}, h('div', {},
      h('dl.facts', {}, (m.facts ?? []).slice(0, 2).map(f => [h('dt', {}, f.name), h('dd', {}, f.value)]), h('dt', {}, 'Eval loss'), h('dd', {}, loss(m.eval_loss), m.eval_loss !== undefined && h('span.soft', {}, `, perplexity ${Math.exp(m.eval_loss).toFixed(2)}`)),
        h('dt', {}, 'Trained'), h('dd', {}, `${count(m.steps)} steps, ${count(m.tokens)} tokens`), h('dt', {}, 'State root'), h('dd', {}, copyable(m.state_root, 20, 8)),
        h('dt', {}, 'Provenance'), h('dd', {}, link(`/jobs/${encodeURIComponent(m.id)}/lineage`, `${plural(m.rounds, 'checkpoint')}, the last signed by ${m.signers}`))),
      h('h3', {}, 'Who trained it'), m.contributors.length ? table('Contributors', [
        { head: 'Worker', cell: c => link('/workers/' + encodeURIComponent(c.id), short(c.id, 14, 6)) }, { head: 'Units', number: true, cell: c => count(c.units) }, { head: 'Earned, ZEN', number: true, cell: c => zen(c.uzen) },
      ], m.contributors) : h('p.soft', {}, 'Its receipts name nobody.')),
    h('div', {}, h('h3', {}, 'Files'), table('Files', [{ head: 'File', cell: f => h('code', {}, f.name) }, { head: 'Size', number: true, cell: f => bytes(f.bytes) }], m.files),
      h('h3', {}, 'Use it'), h('pre.sample', {}, `starling verify ${word(m.folder)}\nstarling generate ${word(m.folder)} --prompt "..." --tokens 100\n\n# Python\nfrom transformers import pipeline\npipeline("text-generation", ${JSON.stringify(local(m.folder))})`))));
}
