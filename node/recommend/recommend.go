package recommend

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/client/job/problem"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/node/losses"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/prepare/demand"
	"github.com/starling-network/starling/node/simulate"
	"github.com/starling-network/starling/protocol/market/cost"
	"github.com/starling-network/starling/role/bundle"
	"github.com/starling-network/starling/sim/forecast"
)

// Options say for what job, on what network, strategies are ranked.
type Options struct {
	Load      func(overrides ...string) (*job.Job, error) // the job, with settings as of --set
	Network   simulate.Options                            // links, speeds, verifiers and the time between blocks of it
	MostPrice float64                                     // in loss that the winner may have: 0.02 is 2 %
}

// Ranking ranks strategies for a job, the best first.
type Ranking struct {
	Parameters int         `json:"parameters"`
	Workers    int         `json:"workers"`
	MostPrice  float64     `json:"most_price"`
	Candidates []Candidate `json:"candidates"`
	Set        []string    `json:"set"`  // settings of the best; none if none is known to cost at most MostPrice
	Line       string      `json:"line"` // the same, to paste
}

// Candidate is a strategy, and what the formulas say of it. Bytes are those of one worker in one round.
type Candidate struct {
	Name      string `json:"name"`
	SyncSteps int    `json:"sync_steps"`
	Rounds    int    `json:"rounds"`
	// why jobs cannot run it; nothing but the name and the settings is known then
	Refused       string  `json:"refused,omitempty"`
	UpdateBytes   int64   `json:"update_bytes"`
	SentBytes     int64   `json:"sent_bytes"`     // updates, and, to auditors, the state that units pass on
	ReceivedBytes int64   `json:"received_bytes"` // updates: a worker keeps the state that its own units pass on
	RoundSeconds  float64 `json:"round_seconds"`  // without waiting for audits
	InnerSeconds  float64 `json:"inner_seconds"`  // of it
	StartSeconds  float64 `json:"start_seconds"`  // until all have the job
	AuditSeconds  float64 `json:"audit_seconds"`  // that training waits for audits, in all
	Seconds       float64 `json:"seconds"`        // of the run
	Utilisation   float64 `json:"utilisation"`
	TokensPerSec  float64 `json:"tokens_per_second"`
	// carried from round to round by a worker: the state of the outer optimizer, and the state that units pass on
	StateBytes int64 `json:"state_bytes"`
	// that every member needs: checkpoints and updates of the rounds that are open, and the job
	DiskBytes int64           `json:"disk_bytes"`
	MostUzen  uint64          `json:"most_uzen"`
	Fits      bool            `json:"fits"` // the exchange is less than a tenth of a round
	Waits     string          `json:"waits"`
	Price     *losses.Penalty `json:"price"` // in loss; null if it is not measured
	Own       bool            `json:"own"`   // it is what the job does as it is
	Set       []string        `json:"set"`

	spec canon.Digest // of the job's work with it
}

// strategy is a strategy that jobs can name.
type strategy struct {
	name, method, outer, compression string // as job files write them
	// rounds through which moments last, and feedback; 0: as long as the method says
	lasting      int
	contributors bool   // the mean of an element is that of the updates that have it
	overlap      bool   // rounds overlap
	price        string // what it is called in prices; "": it has none
}

// Outer optimizers of recipes. Where all that is applied is late the rate is lower.
const (
	nesterov = "{name: nesterov, lr: 0.7, momentum: 0.9}"
	gentler  = "{name: nesterov, lr: 0.6, momentum: 0.9}"
	half     = "{name: nesterov, lr: 0.5, momentum: 0.9}"
	late     = "{name: nesterov, lr: 0.4, momentum: 0.9}"
	sgd      = "{name: sgd, lr: 1}"
)

var recipes = []strategy{
	{name: "diloco int8", method: "diloco", outer: gentler, compression: "{quantize: int8}", lasting: 8, price: "int8"},
	{name: "diloco fp4", method: "diloco", outer: nesterov, compression: "{quantize: fp4}", lasting: 8, price: "fp4"},
	{name: "diloco int8, moments of zero", method: "diloco", outer: nesterov, compression: "{quantize: int8}", lasting: 1,
		price: "zero"},
	{name: "diloco int8, overlapping", method: "diloco", outer: late, compression: "{quantize: int8}", overlap: true,
		price: "late int8"},
	{name: "async_diloco int8, paces of the machines", method: "async_diloco", outer: half,
		compression: "{quantize: int8}", lasting: 8, price: "paced"},
	{name: "diloco signs of the largest third", method: "diloco", outer: half,
		compression: "{topk_ratio: 0.3333, quantize: sign, error_feedback: true}", lasting: 32, price: "third"},
	{name: "diloco float32", method: "diloco", outer: nesterov, compression: "{quantize: none}", lasting: 8,
		price: "float32"},
	{name: "sparseloco 96 of 4096, int2", method: "sparseloco", outer: sgd,
		compression: "{topk_ratio: 0.0234, quantize: int2, error_feedback: true}", lasting: 32, contributors: true,
		price: "top96"},
	{name: "sparta_diloco 1 of 32, int8", method: "sparta_diloco", outer: nesterov, compression: "{quantize: int8}",
		price: "random"},
	{name: "streaming_diloco 2 fragments, fp4, overlapping", method: "streaming_diloco", outer: nesterov,
		compression: "{quantize: fp4}", overlap: true, price: "late fragments"},
	{name: "streaming_diloco 2 fragments, fp4", method: "streaming_diloco", outer: nesterov,
		compression: "{quantize: fp4}", price: "fragments"},
	{name: "sparseloco 66 of 4096, sign", method: "sparseloco", outer: sgd,
		compression: "{topk_ratio: 0.0161, quantize: sign, error_feedback: true}", lasting: 32, contributors: true,
		price: "top66"},
}

// dataParallel is what strategies are compared with.
var dataParallel = strategy{name: "data parallel", method: "allreduce", outer: "{name: adamw, lr: 1}",
	compression: "{quantize: none}", lasting: 1}

// ofGradients are those that exchange after every step.
var ofGradients = []strategy{
	dataParallel,
	{name: "demo 32 of 4096 frequencies, bf16", method: "demo", outer: "{name: signsgd, lr: 1}",
		compression: "{topk_ratio: 0.0078, quantize: bf16, transform: dct, error_feedback: true}", lasting: 1,
		contributors: true, price: "waves"},
	{name: "distro 32 of 4096 frequencies, sign", method: "demo", outer: "{name: signsgd, lr: 1}",
		compression: "{topk_ratio: 0.0078, quantize: sign, transform: dct, error_feedback: true}", lasting: 1,
		contributors: true, price: "signs of waves"},
}

// roundLengths are the numbers of inner steps of a round that are tried in addition to the job's own, where they
// divide the run.
var roundLengths = []int{10, 20, 50, 100, 200, 500}

// Recommend ranks strategies for a job by the formulas of sim, and starts nothing. The best is the one that trains
// the most tokens a second among those whose price in loss is known and allowed; differences below 3 % do not count,
// and then the lower price counts, then fewer bytes.
func Recommend(ctx context.Context, opt Options) (*Ranking, error) {
	own, err := opt.Load()
	if err != nil {
		return nil, err
	}
	b, err := prepare.New(own)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	shipped, err := bundle.ShippedBytes(ctx, b.JobID(), prepare.TaskOf(b, nil), b.Genesis)
	if err != nil {
		return nil, err
	}
	shipped -= b.Size().Outer() // candidates have other states
	a := &Ranking{Parameters: b.Model.Parameters(), Workers: own.Strategy.Workers.Target, MostPrice: opt.MostPrice}
	var all []Candidate
	for _, r := range ofGradients {
		all = append(all, candidate(b, opt, r, 1, shipped))
	}
	for _, steps := range feasibleRounds(b) {
		for _, r := range recipes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if r.paced() && opt.Network.Paces(a.Workers) == nil {
				continue // it would be the same as without
			}
			all = append(all, candidate(b, opt, r, steps, shipped))
		}
	}
	a.Candidates = a.rank(withOwn(b, all, own, opt.Network, shipped))
	if best := a.Candidates[0]; a.class(best) == 0 {
		a.Set = best.Set
		for _, s := range best.Set {
			a.Line += fmt.Sprintf(" --set '%s'", s)
		}
		a.Line = a.Line[1:]
	}
	return a, nil
}

// alike is how much more tokens a second are no difference: the formulas are no better.
const alike = 1.03

// asItIs is the name of the unchanged strategy of a job, if it is no candidate.
const asItIs = "the job as it is"

// withOwn marks the candidate that does what the job does as it is, and adds it if there is none.
func withOwn(b *prepare.CompiledJob, all []Candidate, own *job.Job, n simulate.Options, shipped int64) []Candidate {
	c := Candidate{Name: asItIs, SyncSteps: own.Strategy.SyncSteps, Rounds: own.Rounds(), Own: true, Set: []string{}}
	if err := weigh(b, &c, own, n, shipped); err != nil {
		c.Refused = reason(err)
	}
	for i := range all {
		if all[i].Refused == "" && all[i].spec == c.spec {
			all[i].Own = true
			return all
		}
	}
	return append(all, c)
}

// class is 0 for what may be advised, and more for what may be less.
func (a *Ranking) class(c Candidate) int {
	switch {
	case c.Refused != "":
		return 3
	// which costs no loss, and is to be advised for near machines only
	case c.Price == nil, c.Name == dataParallel.name && !c.Fits:
		return 2
	case c.Price.Loss > a.MostPrice:
		return 1
	}
	return 0
}

// rank puts the best first.
func (a *Ranking) rank(all []Candidate) []Candidate {
	class := a.class
	loss := func(c Candidate) float64 {
		if c.Price == nil {
			return 0
		}
		return c.Price.Loss
	}
	slices.SortStableFunc(all, func(x, y Candidate) int {
		byPrice := 0
		if class(x) == 1 { // none of these is cheap enough
			byPrice = cmp.Compare(loss(x), loss(y))
		}
		return cmp.Or(cmp.Compare(class(x), class(y)), byPrice, cmp.Compare(y.TokensPerSec, x.TokensPerSec))
	})
	if class(all[0]) == 1 {
		return all
	}
	first := all[:0:0]
	for _, c := range all {
		if class(c) == class(all[0]) && c.TokensPerSec*alike >= all[0].TokensPerSec {
			first = append(first, c)
		}
	}
	slices.SortStableFunc(first, func(x, y Candidate) int {
		return cmp.Or(cmp.Compare(loss(x), loss(y)), cmp.Compare(x.ReceivedBytes, y.ReceivedBytes))
	})
	return append(first, all[len(first):]...)
}

// feasibleRounds are the lengths of rounds to try, rising.
func feasibleRounds(b *prepare.CompiledJob) []int {
	own := b.Job.Strategy.SyncSteps
	list := []int{own}
	for _, n := range roundLengths {
		if n != own && b.Job.Training.MaxSteps%n == 0 {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return list
}

// paced reports whether units are made for the speeds of the machines.
func (r strategy) paced() bool { return r.method == "async_diloco" }

// settings make a job use the strategy, and keep the steps at which something else happens multiples of its rounds.
func (r strategy) settings(j *job.Job, n simulate.Options, steps int) []string {
	set := []string{
		fmt.Sprintf("strategy.sync_steps=%d", steps), "strategy.method=" + r.method,
		"strategy.outer_optimizer=" + r.outer, "strategy.compression=" + r.compression,
	}
	switch {
	case r.overlap:
		set = append(set, "strategy.replicas.overlap=1")
	case j.Strategy.Replicas.Overlap > 0:
		set = append(set, "strategy.replicas.overlap=0")
	}
	switch w := j.Strategy.Workers; {
	case r.paced():
		set = append(set, fmt.Sprintf("strategy.workers={min: %d, target: %d, max: %d, relative_speeds: [%s]}",
			w.Min, w.Target, w.Max,
			strings.Join(n.Paces(w.Target), ", ")))
	case w.RelativeSpeeds != nil && slices.Contains(ofGradients, r): // of whose units each counts the same
		set = append(set, fmt.Sprintf("strategy.workers={min: %d, target: %d, max: %d}", w.Min, w.Target, w.Max))
	}
	if r.lasting > 0 {
		set = append(set, fmt.Sprintf("strategy.optimizer_state_rounds=%d", r.lasting))
	}
	switch {
	case r.contributors:
		set = append(set, "strategy.aggregation.rule=contributor_mean")
	case j.Strategy.Aggregation.Rule == "contributor_mean":
		set = append(set, "strategy.aggregation.rule=mean")
	}
	for key, every := range map[string]int{"checkpoint.every_steps": j.Checkpoint.EverySteps,
		"eval.every_steps": j.Eval.EverySteps} {
		if j.Given(key) && every%steps != 0 {
			set = append(set, fmt.Sprintf("%s=%d", key, (every+steps-1)/steps*steps))
		}
	}
	slices.Sort(set[4:])
	return set
}

// candidate computes the figures of a strategy, or the reason why the job cannot have it.
func candidate(b *prepare.CompiledJob, opt Options, r strategy, steps int, shipped int64) Candidate {
	c := Candidate{Name: r.name, SyncSteps: steps, Rounds: b.Job.Training.MaxSteps / steps,
		Set: r.settings(b.Job, opt.Network, steps)}
	rule := b.Job.Strategy.Aggregation.Rule
	if r.contributors && rule != "mean" && rule != "contributor_mean" {
		c.Refused = "the job asks for the rule " + rule + ", to which what an update leaves out is a vote for zero"
		return c
	}
	j, err := opt.Load(c.Set...)
	if err == nil {
		err = weigh(b, &c, j, opt.Network, shipped)
	}
	if err != nil {
		c.Refused = reason(err)
		return c
	}
	c.Price = losses.Measured(r.price, b.Model.Parameters(), steps, c.Rounds)
	if r == dataParallel {
		c.Price = &losses.Penalty{Source: "what the others are compared with"}
	}
	return c
}

// reason is why the first thing that is wrong with a job is wrong.
func reason(err error) string {
	if list, ok := err.(*problem.ErrorList); ok && len(list.Errors) > 0 {
		return list.Errors[0].What + ": " + list.Errors[0].Why
	}
	return err.Error()
}

// under is the blueprint of a job that has another strategy and is otherwise the same.
func under(b *prepare.CompiledJob, j *job.Job) (*prepare.CompiledJob, error) {
	other := &prepare.CompiledJob{
		Job: j, Model: b.Model, Language: b.Language, Tokenizer: b.Tokenizer, Corpus: b.Corpus, Manifest: b.Manifest,
		Example: b.Example, Step: b.Step, Eval: b.Eval, EvalBatch: b.EvalBatch,
		Spec: b.Spec, Frozen: b.Frozen, FrozenRoots: b.FrozenRoots, Ignored: b.Ignored, Trained: b.Trained,
	}
	state, err := outer.State(other.Exchange())
	if err != nil {
		return nil, err
	}
	genesis := *b.Genesis
	genesis.Outer = train.Zeros(genesis.Params, state)
	other.Genesis = &genesis
	return other, other.Specify()
}

// weigh fills in what the formulas say of a job that has another strategy than the blueprint's.
func weigh(b *prepare.CompiledJob, c *Candidate, j *job.Job, n simulate.Options, shipped int64) error {
	b, err := under(b, j)
	if err != nil {
		return err
	}
	c.spec = b.Spec.Digest()
	order, err := b.LocalOrder()
	if err != nil {
		return err
	}
	_, c.MostUzen = cost.Quote(order.Terms, demand.LocalPrice(order), order.Verifiers)
	update, err := b.Size().Update()
	if err != nil {
		return err
	}
	course, err := simulate.RunModel(b, n, order, update)
	if err != nil {
		return err
	}
	c.DiskBytes = bundle.Footprint(b.Spec, b.Step, b.Manifest, order.Terms, b.Job.Checkpoint.KeepLast)
	c.StateBytes = b.Size().Outer()
	course.Job = shipped + c.StateBytes
	round := &course.Round
	c.UpdateBytes, c.ReceivedBytes = round.Update, int64(round.Workers-1)*round.Update
	c.SentBytes = c.ReceivedBytes + int64(round.Verifiers)*round.Update
	if round.Sliced > 0 {
		c.SentBytes, c.ReceivedBytes = round.Sliced, round.Sliced
	}
	f := course.Forecast()
	c.SentBytes += f.Fetched / int64(round.Workers*c.Rounds)
	c.StateBytes += course.Handed
	took := f.Inner + f.Exchange + f.Chain
	c.RoundSeconds, c.InnerSeconds, c.StartSeconds, c.AuditSeconds = took.Seconds(), f.Inner.Seconds(), f.Start.Seconds(),
		f.Audits.Seconds()
	c.Seconds, c.Utilisation = f.Total.Seconds(), f.Utilisation
	c.TokensPerSec = float64(b.Tokens(b.Job.Training.MaxSteps)) / c.Seconds
	c.Fits = 10*f.Exchange < took
	c.Waits = waits(f, c.Rounds)
	return nil
}

// waits names the part that takes most of the time apart from inner steps.
func waits(f forecast.Durations, rounds int) string {
	parts := []struct {
		name string
		took time.Duration
	}{
		{"the exchange of updates", time.Duration(rounds) * f.Exchange},
		{"blocks and messages", time.Duration(rounds) * f.Chain},
		{"audits", f.Audits}, {"the job at the start", f.Start},
	}
	most := slices.MaxFunc(parts, func(x, y struct {
		name string
		took time.Duration
	}) int {
		return cmp.Compare(x.took, y.took)
	})
	return fmt.Sprintf("%.0f %% for %s", 100*most.took.Seconds()/f.Total.Seconds(), most.name)
}
