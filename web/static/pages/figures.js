// The charts of a run. One colour means one thing on all of them: blue is training, orange is held-out data (or the second of two),
// teal is money, green is verified, red is a fault or work that was not paid, grey is neither.

import { h, count, card, coinOf } from '../dom.js';
import { chart, mapping, axisOf, constant, value } from '../chart.js';

// [title, unit, [[series, colour, label]], note]; the first group is what a run is about.
const groups = [
  ['Training', [
    ['Loss', 'nats a token', [['loss', 'a', 'training'], ['eval_loss', 'b', 'held-out']]],
    ['Accuracy', '', [['accuracy', 'b']], 'share of held-out examples that are right'],
    ['Recall', '', [['recall_at_1', 'b']], 'share of held-out texts whose partner is the closest of all'],
    ['Margin', 'nats', [['margin', 'b']], 'by how much held-out preferred answers gained more than the others'],
    ['Reward', '', [['drawn_reward', 'a', 'drawn'], ['reward', 'b', 'held-out']], 'mean of drawn answers, and of the most likely answers to held-out prompts'],
    ['Reward of final answers', '', [['drawn_resolve_reward', 'a', 'drawn'], ['resolve_reward', 'b', 'held-out']], 'of a game: mean of drawn final answers, and of the most likely ones to held-out prompts'],
    ['Reward of each node', '', Array.from({ length: 16 }, (_, k) => [`node_${k}_reward`, 'b', `node ${k}`]), 'of a swarm: mean of the most likely answers of its model to held-out prompts'],
    ['Length of answers', 'tokens', [['answer_length', 'a']], 'mean over drawn answers, up to their ends'],
    ['Divergence from the base model', 'nats a token', [['kl', 'a']], 'mean over the tokens of drawn answers'],
    ['Staleness', 'rounds', [['staleness', 'a']], 'by how many rounds the policy is older that drew the answers of a round'],
    ['Groups without signal', '', [['equal_groups', 'b']], 'share of prompts whose drawn answers have equal rewards'],
    ['Perplexity', '', [['perplexity', 'b']], 'on held-out data'],
    ['Bits a byte', '', [['bits_per_byte', 'b']], 'loss on held-out data, whatever the tokens are'],
    ['Gradient norm', '', [['grad_norm', 'a']], 'before clipping, mean over the workers that tell it'],
    ['Learning rate', '', [['learning_rate', 'a']]],
    ['Agreement between workers', '', [['agreement', 'a']], 'mean cosine of their updates with the combined one'],
  ]],
  ['Speed', [
    ['Throughput', 'tokens a second', [['tokens_per_second', 'a']]],
    ['Time of a round', 'seconds', [['round_seconds', 'a']]],
    ['Bytes of a round', 'bytes', [['bytes_up', 'a', 'sent'], ['bytes_down', 'b', 'received']]],
    ['Active workers', '', [['workers', 'a']]],
  ]],
  ['Verification and money', [
    ['Audits', '', [['audits_passed', 'i', 'same bits'], ['audits_failed', 'e', 'a fault found'], ['audits_moot', 'f', 'moot'], ['audits_missed', 'g', 'not answered']], 'of the units of a round'],
    ['Signatures under a checkpoint', '', [['signatures', 'i']]],
    ['Work that was not paid', '', [['rejected', 'e']], 'receipts of zero'],
    ['Cost so far', 'ZEN', [['cost', 'd']], 'of rounds that are final'],
    ['Earned in a round', 'ZEN', [['earned', 'd']]],
  ]],
];
export const lossChart = groups[0][1][0];

const whole = new Set(['Active workers', 'Signatures under a checkpoint', 'Audits', 'Work that was not paid']);
const apart = new Set(['Loss', 'Perplexity', 'Bits a byte']); // whose axis does not begin at 0

// figures(state) draws charts of a run and draws them again: state has job, data (its metrics), view, and zoom(from, to).
export function figures(state) {
  let shown = [];
  const { view } = state;
  function series([name, color, label]) {
    const s = state.data.series.find(s => s.name === (name === 'perplexity' ? 'eval_loss' : name));
    if (!s || name === 'perplexity' && (!s.unit || state.data.series.some(s => s.name === 'accuracy' || s.name === 'recall_at_1'))) return null; // no loss of text
    const to = mapping(state.data, view.x);
    return { label: label ?? s.label, color, x: view.x === 'step' ? s.step : s.step.map(to), y: name === 'perplexity' ? s.value.map(Math.exp) : s.value, dots: s.of === 'round' };
  }
  function options([title, unit, list, note], more) {
    const [xLabel, xUnit] = axisOf(view.x, [state.data]);
    let all = list.map(series).filter(Boolean);
    if (title === 'Audits') all = all.filter((s, i) => i === 0 || s.y.some(v => v > 0));
    const loss = state.data.series.find(s => s.name === 'loss' || s.name === 'eval_loss');
    if (unit === 'ZEN') unit = coinOf(state.data).name;
    if (title === 'Loss' && loss) unit = loss.unit ?? ''; // of rewards and of noise it has none
    return { title, unit, note, series: all, xLabel, xUnit, log: view.log && title === 'Loss', whole: whole.has(title), zero: !apart.has(title),
      weight: title === 'Loss' || title === 'Throughput' ? view.weight : 0, name: `${state.job().name} ${title}`, onzoom: state.zoom, ...more };
  }
  function make(c, more, kind = '') {
    const o = options(c, more);
    if (!o.series.length) return null;
    const figure = chart(o);
    shown.push([figure, c, more]);
    return h('section.card' + kind, {}, figure);
  }
  // What is drawn, and what is only said: it changes when a constant begins to vary.
  const kinds = () => groups.flatMap(([, list]) => list).map(c => { const o = options(c); return !o.series.length ? '-' : constant(o.series) === undefined ? 'c' : 's'; }).join('');
  let drawn = '';
  return {
    one: (c, more) => make(c, more),
    any: () => shown.length > 0,
    redraw() { for (const [figure, c, more] of shown) figure.update(options(c, more)); },
    stale: () => drawn !== kinds(),
    all() {
      shown = [];
      drawn = kinds();
      return groups.map(([name, list]) => {
        const still = [], moving = [];
        for (const c of list) {
          const o = options(c), v = constant(o.series);
          if (v !== undefined) still.push([c[0], value(v, c[1] || '')]);
          else moving.push(c[0] === 'Loss' ? make(c, { height: 280, legend: true }, '.wide') : make(c, { height: 170 }));
        }
        const cards = moving.filter(Boolean);
        if (!cards.length && !still.length) return null;
        return h('section', { 'aria-label': name }, h('h2.group', {}, name),
          still.length > 0 && h('p.still', {}, 'The same all along: ', still.map(([n, v], i) => [i > 0 && ', ', n.toLowerCase(), ' ', h('b', {}, v)])),
          cards.length > 0 && h('div.grid2', {}, cards));
      }).filter(Boolean);
    },
    values: () => count(Math.max(...state.data.series.map(s => s.count))),
  };
}
