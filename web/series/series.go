// Package series makes the curves of a run that a page draws: quantities of its metrics, receipts and lineage over its
// steps, thinned to as many points as are seen. It computes them from a History and asks no source.
package series

import (
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/compute/train/swarm"
	"github.com/starling-network/starling/web/source"
	"github.com/starling-network/starling/web/totals"
)

// Points of a series that is drawn: more are not seen.
const (
	DefaultPoints = 1000
	MaxPoints     = 20_000
)

// quantity is something that a run has a series of.
type quantity struct {
	name, label, unit, of string
	value                 func(m api.Metric) (float64, bool) // of a metric of its kind
}

func positive(x float64) (float64, bool) { return x, x > 0 }

func optional(x *float64) (float64, bool) {
	if x == nil {
		return 0, false
	}
	return *x, true
}

// quantities are the series of metrics, in the order in which they are shown.
var quantities = []quantity{
	{"loss", "Training loss", "nats a token", "step", func(m api.Metric) (float64, bool) { return m.Loss, true }},
	{"eval_loss", "Eval loss", "nats a token", "round",
		func(m api.Metric) (float64, bool) { return optional(m.EvalLoss) }},
	{"bits_per_byte", "Eval loss in bits a byte", "bits a byte", "round",
		func(m api.Metric) (float64, bool) { return optional(m.BitsPerByte) }},
	{"accuracy", "Accuracy on held-out examples", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("accuracy")) }},
	{"recall_at_1", "Recall at 1 of held-out pairs", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("recall_at_1")) }},
	{"margin", "Margin of preferred answers", "nats", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("margin")) }},
	{"reward", "Reward of answers", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("reward")) }},
	{"drawn_reward", "Reward of drawn answers", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("drawn_reward")) }},
	{"resolve_reward", "Reward of final answers", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("resolve_reward")) }},
	{"drawn_resolve_reward", "Reward of drawn final answers", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("drawn_resolve_reward")) }},
	{"answer_length", "Length of drawn answers", "tokens", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("answer_length")) }},
	{"kl", "Divergence of drawn answers from the base model", "nats a token", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("kl")) }},
	{"staleness", "Age of the policy that drew", "rounds", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("staleness")) }},
	{"equal_groups", "Groups of answers with equal rewards", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Measurement("equal_groups")) }},
	{"grad_norm", "Gradient norm before clipping", "", "step",
		func(m api.Metric) (float64, bool) { return optional(m.GradNorm) }},
	{"agreement", "Mean cosine with the combined update", "", "round",
		func(m api.Metric) (float64, bool) { return optional(m.Agreement) }},
	{"learning_rate", "Learning rate", "", "step",
		func(m api.Metric) (float64, bool) { return positive(m.LearningRate) }},
	{"tokens_per_second", "Throughput", "tokens a second", "round",
		func(m api.Metric) (float64, bool) { return positive(m.TokensPerSecond) }},
	{"round_seconds", "Time of a round", "seconds", "round",
		func(m api.Metric) (float64, bool) { return positive(m.Seconds) }},
	{"workers", "Active workers", "", "round",
		func(m api.Metric) (float64, bool) { return positive(float64(m.Workers)) }},
	{"bytes_up", "Sent in a round", "bytes", "round",
		func(m api.Metric) (float64, bool) { return float64(m.BytesUp), m.BytesUp+m.BytesDown > 0 }},
	{"bytes_down", "Received in a round", "bytes", "round",
		func(m api.Metric) (float64, bool) { return float64(m.BytesDown), m.BytesUp+m.BytesDown > 0 }},
}

// nodes are the rewards of the models of a swarm, as many as one may have.
var nodes = func() (list []quantity) {
	for k := range swarm.MaxModels {
		name := fmt.Sprintf("node_%d_reward", k)
		list = append(list, quantity{name, fmt.Sprintf("Reward of node %d", k), "", "round",
			func(m api.Metric) (float64, bool) { return optional(m.Measurement(name)) }})
	}
	return list
}()

// points lists what a run has of a quantity, between two steps.
func (q quantity) points(h *source.History, from, to float64) (x, y []float64) {
	for _, m := range h.Metrics {
		if m.Kind != q.of || float64(m.Step) < from || float64(m.Step) > to {
			continue
		}
		if v, ok := q.value(m); ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
			x, y = append(x, float64(m.Step)), append(y, v)
		}
	}
	return x, y
}

// Of returns the named series of a run, or all, each of at most n points between two steps.
func Of(h *source.History, names []string, n int, from, to float64) api.Metrics {
	out := api.Metrics{Axis: axis(h, n), Series: []api.Series{}, Coin: h.Job.Coin}
	if len(h.Metrics) > 0 {
		out.Steps = int(h.Metrics[len(h.Metrics)-1].Step)
	}
	wanted := func(name string) bool { return len(names) == 0 || slices.Contains(names, name) }
	add := func(q quantity, x, y []float64) {
		if len(x) > 0 {
			tx, ty := thin(x, y, n)
			out.Series = append(out.Series, api.Series{Name: q.name, Label: q.label, Unit: q.unit, Of: q.of, Count: len(x),
				Step: tx, Value: ty})
		}
	}
	cost, unitless, paid := totals.Spending(h), unitless(h), api.CoinOf(h.Job.Coin)
	for _, q := range append(slices.Concat(quantities, nodes),
		quantity{"cost", "Cost so far", paid.Name(), "round", func(m api.Metric) (float64, bool) {
			grains, known := cost(m)
			return paid.Float(grains), known
		}}) {
		if wanted(q.name) {
			if unitless && (q.name == "loss" || q.name == "eval_loss") {
				q.unit = ""
			}
			x, y := q.points(h, from, to)
			add(q, x, y)
		}
	}
	byRound := countByRound(h)
	for _, q := range append(slices.Clone(counted),
		quantity{name: "earned", label: "Earned in a round", unit: paid.Name(), of: "round"}) {
		if wanted(q.name) {
			x, y := byRound.points(q.name, h, from, to)
			add(q, x, y)
		}
	}
	return out
}

// unitless reports whether losses are no nats: they are 1 less the reward, or the mean square error of noise.
func unitless(h *source.History) bool {
	return slices.ContainsFunc(h.Metrics, func(m api.Metric) bool {
		return m.Measurement("reward") != nil || m.Measurement("mse") != nil
	})
}

// counted are the series that come of receipts and the lineage.
var counted = []quantity{
	{name: "signatures", label: "Signatures under a checkpoint", of: "round"},
	{name: "audits_passed", label: "Audits passed", of: "round"},
	{name: "audits_failed", label: "Audits that found a fault", of: "round"},
	{name: "audits_moot", label: "Audits settled otherwise", of: "round"},
	{name: "audits_missed", label: "Audits not answered", of: "round"},
	{name: "rejected", label: "Work that was not paid", unit: "receipts", of: "round"},
}

// counts are values by the name of a series and by round.
type counts map[string]map[int]float64

func countByRound(h *source.History) counts {
	t, paid := counts{}, api.CoinOf(h.Job.Coin)
	add := func(name string, round int, v float64) {
		if t[name] == nil {
			t[name] = map[int]float64{}
		}
		t[name][round] += v
	}
	for _, c := range h.Lineage {
		add("signatures", c.Round, float64(len(c.Signers)))
	}
	for _, r := range h.Receipts {
		switch r.Kind {
		case "audit":
			var c api.AuditCounts
			totals.CountAudit(&c, r.Reason)
			add("audits_passed", r.Round, float64(c.Passed))
			add("audits_failed", r.Round, float64(c.Failed))
			add("audits_moot", r.Round, float64(c.Moot))
			add("audits_missed", r.Round, float64(c.Missed))
			add("earned", r.Round, paid.Float(r.Amount))
		case "work":
			add("rejected", r.Round, count(r.Amount == 0 && r.Reason != "below_one_uzen"))
			add("earned", r.Round, paid.Float(r.Amount))
		}
	}
	return t
}

func count(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// points of counts lie at the last step of each round.
func (t counts) points(name string, h *source.History, from, to float64) (x, y []float64) {
	of := t[name]
	if len(of) == 0 {
		return nil, nil
	}
	for _, m := range h.Metrics {
		if m.Kind == "round" && m.Round > 0 && float64(m.Step) >= from && float64(m.Step) <= to {
			x, y = append(x, float64(m.Step)), append(y, of[int(m.Round)])
		}
	}
	return x, y
}

// axis lists what steps stand for in tokens, seconds and cost, at no more than n rounds.
func axis(h *source.History, n int) api.Axis {
	a := api.Axis{Step: []float64{}, Tokens: []float64{}, Seconds: []float64{}, Uzen: []float64{}}
	rounds, seen := 0, 0
	for _, m := range h.Metrics {
		if m.Kind == "round" {
			rounds++
		}
	}
	every := (rounds + n - 1) / max(n, 1)
	var seconds float64
	cost := totals.Spending(h)
	for _, m := range h.Metrics {
		if m.Kind != "round" {
			continue
		}
		seconds += m.Seconds
		if seen++; every <= 1 || seen == 1 || seen == rounds || seen%every == 0 {
			a.Step, a.Tokens = append(a.Step, float64(m.Step)), append(a.Tokens, float64(m.Tokens))
			grains, _ := cost(m)
			a.Seconds, a.Uzen = append(a.Seconds, seconds), append(a.Uzen, float64(grains))
		}
	}
	return a
}

// thin keeps n points of a curve, its first and its last among them, that look like it: of each of n-2 equal parts the
// point that spans the largest triangle with the one kept before it and the mean of the next part (Steinarsson,
// "Downsampling Time Series for Visual Representation", 2013: largest triangle, three buckets). x ascends.
func thin(x, y []float64, n int) (tx, ty []float64) {
	if len(x) <= n || n < 3 {
		return x, y
	}
	tx, ty = append(make([]float64, 0, n), x[0]), append(make([]float64, 0, n), y[0])
	width := float64(len(x)-2) / float64(n-2)
	at := func(part int) int { return 1 + int(float64(part)*width) }
	kept := 0
	for part := range n - 2 {
		from, to, next := at(part), at(part+1), min(at(part+2), len(x))
		if part == n-3 {
			to, next = len(x)-1, len(x)
		}
		var mx, my float64
		for i := to; i < next; i++ {
			mx, my = mx+x[i], my+y[i]
		}
		mx, my = mx/float64(next-to), my/float64(next-to)
		best, largest := from, -1.0
		for i := from; i < to; i++ {
			area := math.Abs((x[kept]-mx)*(y[i]-y[kept]) - (x[kept]-x[i])*(my-y[kept]))
			if area > largest {
				best, largest = i, area
			}
		}
		kept = best
		tx, ty = append(tx, x[best]), append(ty, y[best])
	}
	return append(tx, x[len(x)-1]), append(ty, y[len(y)-1])
}

// Spark is the curve of a run's training loss as a thumbnail: at most 48 points.
func Spark(metrics []api.Metric) []float64 {
	x, y := quantities[0].points(&source.History{Metrics: metrics}, 0, math.Inf(1))
	_, y = thin(x, y, 48)
	return y
}
