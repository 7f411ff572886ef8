package spec

import (
	"maps"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/starling-network/starling/client/job/machine"
	"github.com/starling-network/starling/client/job/quantity"
)

// This file is the only place that knows a default: fixed ones in Fixed, those that follow from other keys in Derive.

// Fixed are the defaults that do not depend on other keys.
func Fixed() Spec {
	return Spec{
		Seed:          42,
		Task:          TaskLanguage,
		DPO:           DPO{Beta: 0.1},
		Rollout:       Rollout{Group: 8, Temperature: 1, TopP: 1, Sharing: "none", Stages: 1, Critics: "own"},
		Reward:        Reward{Exact: 1},
		Model:         Model{Config: map[string]any{}, Tokenizer: Tokenizer{Kind: ByteLevel}},
		ValSetSize:    0.05,
		SequenceLen:   512,
		SamplePacking: true,
		Training: Training{
			LearningRate: 3e-4,
			LRScheduler:  "cosine",
			MinLRRatio:   0.1,
			Optimizer:    Optimizer{Name: AdamW, State: "fp32", WeightDecay: 0.1, Betas: []float64{0.9, 0.95}, Eps: 1e-8},
			MaxGradNorm:  1, TrainOnInputs: true,
			Precision: "fp32",
			Numerics:  ExactF32,
		},
		Executor: Builtin,
		Strategy: Strategy{
			Method:               "diloco",
			OptimizerStateRounds: 1,
			Compression:          Compression{Transform: "none", FeedbackRounds: bestFeedback},
			Replicas:             Replicas{Rounds: 8, Topology: "none"},
			Aggregation:          Aggregation{Rule: "mean"},
			Workers:              Workers{Target: 4},
			RoundTimeout:         quantity.Duration(10 * time.Minute),
			Verification: Verification{Mode: "spot_check", Verifiers: 2, Fraction: 0.1, Audit: "whole",
				Tolerance: Tolerance{Distance: 0.1, Cosine: 0.99}, Attested: machine.Attested{Factor: 0.5}},
		},
		Budget:     Budget{MaxCost: 25_000_000, MaxPrice: 1_000_000_000, OnExceed: "pause"},
		Checkpoint: Checkpoint{KeepLast: 3},
		Notify: Notify{On: []string{"finished", "failed", "paused", "budget_80", "loss_rises", "member_lost",
			"pushed", "push_failed"}},
		Output: Output{Dir: "./out", Formats: []string{"safetensors"}},
	}
}

// SetDefaults implements strict.Defaulter.
func (d *Dataset) SetDefaults() {
	*d = Dataset{Format: "text", Field: "text", Split: "train", Weight: 1}
}

// SetDefaults implements strict.Defaulter.
func (e *Expert) SetDefaults() { e.Prior = 1 }

// SetDefaults implements strict.Defaulter.
func (l *LoRA) SetDefaults() { *l = LoRA{R: 16, Alpha: 32} }

// Default is a job whose file says nothing.
func Default() Spec {
	s := Fixed()
	s.Derive("", func(string) bool { return false })
	return s
}

// Profiles of numerics.
const (
	ExactF32 = "exact-f32" // the same bits everywhere: a difference is proven, and slashed
	Tolerant = "tolerant"  // a vendor's stack: a difference withholds pay
)

// Executors.
const (
	Builtin = "builtin" // the kernels
	Torch   = "torch"   // PyTorch, at workers whose owners have set it up; the others use the kernels
)

// The best values measured in docs/strategies.md, as node.TestDefaultsAreTheBestMeasured checks: the length of a round,
// where it divides the run, and the numbers of rounds through which the moments of the inner optimizer and the residual
// of error feedback are carried.
const (
	bestSyncSteps = 20
	bestMoments   = 8
	bestFeedback  = 32
)

// everySteps is how often checkpoints are kept and losses taken where a round is a step.
const everySteps = 50

// Derive sets the keys that follow from others, in a job of the file of that name. A key that is given is left alone.
func (j *Spec) Derive(file string, given func(path string) bool) {
	if j.Name == "" {
		base := filepath.Base(file)
		j.Name = strings.TrimSuffix(base, filepath.Ext(base))
	}
	if j.Expert != "" {
		j.Name += "-" + j.Expert
		j.Output.Dir = filepath.Join(j.Output.Dir, j.Expert)
	}
	j.deriveTask(given)
	j.deriveSwarm(given)
	if j.Model.BaseModel != "" && !given("model.tokenizer") {
		j.Model.Tokenizer = Tokenizer{Kind: TokenizerFile,
			Path: path.Join(filepath.ToSlash(j.Model.BaseModel), "tokenizer.json")}
	}
	if j.Kind == FederatedJob {
		j.deriveFederated(given)
	}
	s, t := &j.Strategy, &j.Training
	j.deriveParallel(given)
	if s.Workers.Min == 0 {
		s.Workers.Min = s.Workers.Target
	}
	if s.Workers.Max == 0 {
		s.Workers.Max = s.Workers.Target
	}
	if t.GlobalBatchSize == 0 {
		t.GlobalBatchSize = 8 * s.Workers.Target
	}
	if t.WarmupRatio > 0 && !given("training.warmup_steps") {
		t.WarmupSteps = int(math.Ceil(t.WarmupRatio * float64(t.MaxSteps)))
	}
	t.Optimizer.derive(given)
	j.deriveScaffold(given)
	if t.LRScheduler == "wsd" && t.LRDecayRatio == 0 {
		t.LRDecayRatio = 0.2
	}
	s.derive(given)
	every := DivisorBelow(j.marked(given), recipes[s.Method].length())
	if s.OuterOptimizer.Gradients() {
		every = DivisorBelow(j.marked(given), everySteps)
	}
	switch {
	case s.SyncSteps == 0 && s.OuterOptimizer.Gradients():
		s.SyncSteps = 1
	case s.SyncSteps == 0 && t.MaxSteps > 0:
		s.SyncSteps = every
	}
	if !s.OuterOptimizer.Gradients() {
		every = s.SyncSteps
	}
	if !given("strategy.optimizer_state_rounds") && (t.Numerics == Tolerant && !s.Replicas.carried() &&
		!s.Compression.ErrorFeedback || !t.Optimizer.Remembers() || j.Rollout.Apart() || j.Parallel.On() ||
		j.Kind == FederatedJob) {
		// the carried state would differ from worker to worker, or be empty; or others draw the answers; or owners come
		// and go; or stages pass on none
		s.OptimizerStateRounds = 1
	}
	if !given("strategy.aggregation.trim") && s.Aggregation.Rule == "trimmed_mean" {
		s.Aggregation.Trim = 0.2
	}
	if s.Verification.Screen == "" {
		s.Verification.Screen = map[bool]string{false: "updates", true: "losses"}[t.Numerics == Tolerant]
	}
	if j.Checkpoint.EverySteps == 0 {
		j.Checkpoint.EverySteps = every
	}
	if j.Eval.EverySteps == 0 {
		j.Eval.EverySteps = every
	}
}

// derive fills what is left of the settings of an optimizer, as those who published it have them.
func (o *Optimizer) derive(given func(path string) bool) {
	const at = "training.optimizer."
	if !given(at+"weight_decay") && (o.Name == SGD || o.Name == Adafactor) {
		o.WeightDecay = 0
	}
	if !given(at+"momentum") && o.Name == SGD {
		o.Momentum = 0.9
	}
	own := map[string][]float64{Lion: {0.9, 0.99}, Adafactor: {0, 0.999}}
	if betas, has := own[o.Name]; has && !given(at+"betas") {
		o.Betas = betas
	}
}

// marked is what a round has to divide: the run, and what happens every so many steps, if the file says so.
func (j *Spec) marked(given func(path string) bool) int {
	n := max(1, j.Training.MaxSteps)
	for path, every := range map[string]int{"checkpoint.every_steps": j.Checkpoint.EverySteps,
		"eval.every_steps": j.Eval.EverySteps} {
		for given(path) && every > 0 {
			n, every = every, n%every
		}
	}
	return n
}

// MostOpen bounds the units in the rounds through which a state is carried: these are open together.
const MostOpen = 16 << 10

// open is as many rounds, of which the units may be open together.
func (s *Strategy) open(rounds int) int {
	return max(1, min(rounds, MostOpen/max(1, s.Workers.Target)))
}

// recipe is what a method sets unless the file does.
type recipe struct {
	optimizer string
	rate      float64
	quantize  string
	steps     int // of a round; 0: bestSyncSteps
}

func (r recipe) length() int {
	if r.steps > 0 {
		return r.steps
	}
	return bestSyncSteps
}

// recipes are the methods.
var recipes = map[string]recipe{
	"diloco":  {optimizer: "nesterov", rate: 0.6, quantize: "int8"},
	"fedavg":  {optimizer: "sgd", rate: 1, quantize: "none"},
	"fedprox": {optimizer: "sgd", rate: 1, quantize: "none"},
	"fedadam": {optimizer: "adam", rate: 0.01, quantize: "none"},
	"fedyogi": {optimizer: "yogi", rate: 0.01, quantize: "none"},

	"sparseloco": {optimizer: "sgd", rate: 1, quantize: "int2", steps: 10},

	"allreduce": {optimizer: "adamw", rate: 1, quantize: "none"},
	"demo":      {optimizer: "signsgd", rate: 1, quantize: "bf16"},

	"sparta":           {optimizer: "sgd", rate: 1, quantize: "int8"},
	"sparta_diloco":    {optimizer: "nesterov", rate: 0.7, quantize: "int8"},
	"streaming_diloco": {optimizer: "nesterov", rate: 0.7, quantize: "fp4"},
	"gossip":           {optimizer: "gossip", rate: 0.7, quantize: "none"},
	"async_diloco":     {optimizer: "nesterov", rate: 0.5, quantize: "int8"},
}

// lateRate is the outer rate of DiLoCo whose rounds overlap: all that is applied is late.
const lateRate = 0.4

// Methods are the strategies that strategy.method stands for, in order of their names, with every key that a method
// sets.
func Methods() []Strategy {
	var all []Strategy
	for _, name := range slices.Sorted(maps.Keys(recipes)) {
		s := Fixed().Strategy
		s.Method = name
		s.derive(func(string) bool { return false })
		all = append(all, s)
	}
	return all
}

func (s *Strategy) derive(given func(path string) bool) {
	r, o := recipes[s.Method], &s.OuterOptimizer
	if o.Name == "" {
		o.Name = r.optimizer
	}
	if o.LR == 0 {
		o.LR = r.rate
		if (s.Method == "diloco" || s.Method == "async_diloco") && s.Replicas.Overlap > 0 && s.Replicas.Fragments == 0 {
			o.LR = lateRate
		}
	}
	if o.Name == "nesterov" && !given("strategy.outer_optimizer.momentum") {
		o.Momentum = 0.9
	}
	if o.Name == "gossip" && !given("strategy.outer_optimizer.momentum") {
		o.Momentum = 0.5
	}
	if o.Adaptive() && o.Betas == nil {
		o.Betas = []float64{0.9, 0.99}
	}
	if o.Adaptive() && o.Eps == 0 {
		o.Eps = 1e-3
	}
	switch s.Method {
	case "sparseloco":
		s.sparse(given, 96)
	case "demo":
		s.sparse(given, 32)
		// frequencies are not sliced
		if c := &s.Compression; c.TopKRatio > 0 && s.Aggregation.Slices <= 1 && !given("strategy.compression.transform") {
			c.Transform = "dct"
		}
	}
	if !given("strategy.compression.feedback_rounds") {
		s.Compression.FeedbackRounds = max(2, s.open(bestFeedback))
		if s.OptimizerStateRounds > 1 {
			s.Compression.FeedbackRounds = s.OptimizerStateRounds
		}
	}
	if s.OptimizerStateRounds > 1 && !given("strategy.replicas.rounds") {
		s.Replicas.Rounds = s.OptimizerStateRounds
	}
	switch s.Method {
	case "sparta", "sparta_diloco":
		if !given("strategy.replicas.sample") {
			s.Replicas.Sample = 32
		}
	case "gossip":
		if !given("strategy.replicas.topology") {
			s.Replicas.Topology = "complete"
		}
	case "streaming_diloco":
		if !given("strategy.replicas.fragments") {
			s.Replicas.Fragments = 2
		}
	}
	if s.Method == "fedprox" && !given("strategy.proximal_mu") {
		s.ProximalMu = 0.01
	}
	if s.Compression.Quantize == "" {
		s.Compression.Quantize = r.quantize
	}
	if given("strategy.optimizer_state_rounds") || o.Gradients() || o.Name == "gossip" {
		return
	}
	s.OptimizerStateRounds = s.open(bestMoments)
	if s.Replicas.carried() || s.Compression.ErrorFeedback {
		s.OptimizerStateRounds = int(s.Group())
	}
}

// sparse is what else SparseLoCo (Sarfi et al. 2025) and DeMo (Peng et al. 2024) set, which send the k largest of 4096.
func (s *Strategy) sparse(given func(path string) bool, k float64) {
	if !given("strategy.compression.topk_ratio") {
		s.Compression.TopKRatio = k / 4096
	}
	if !given("strategy.compression.error_feedback") {
		s.Compression.ErrorFeedback = true
	}
	if !given("strategy.aggregation.rule") {
		s.Aggregation.Rule = "contributor_mean"
	}
}

// RoundLength is the default of sync_steps.
func (s Strategy) RoundLength() int { return recipes[s.Method].length() }

// DivisorBelow is the largest divisor of n that is at most limit.
func DivisorBelow(n, limit int) int {
	for d := min(n, limit); d > 1; d-- {
		if n%d == 0 {
			return d
		}
	}
	return 1
}
