// Package strategy turns the keys of a job about optimizers and about the exchange of updates into the terms of compute
// and exchange. It reads no data.
package strategy

import (
	"cmp"

	"github.com/starling-network/starling/client/job/spec"
	"github.com/starling-network/starling/compute/optimizer"
	"github.com/starling-network/starling/compute/train"
	"github.com/starling-network/starling/exchange/aggregate"
	"github.com/starling-network/starling/exchange/codec"
	"github.com/starling-network/starling/exchange/outer"
	"github.com/starling-network/starling/exchange/transform"
)

// Optimizer is that of inner steps. In a job of gradients the outer one takes its place.
func Optimizer(j spec.Spec) optimizer.Optimizer {
	if j.Strategy.OuterOptimizer.Gradients() {
		return optimizer.Descent
	}
	o := j.Training.Optimizer
	all := optimizer.Common{WeightDecay: o.WeightDecay, MaxGradNorm: j.Training.MaxGradNorm,
		Proximal: j.Strategy.ProximalMu, Storage: optimizer.Storage(o.State)}
	switch o.Name {
	case spec.SGD:
		return optimizer.SGD{Common: all, Momentum: o.Momentum, Nesterov: o.Nesterov}
	case spec.Lion:
		return optimizer.Lion{Common: all, Beta1: o.Betas[0], Beta2: o.Betas[1]}
	case spec.Adafactor:
		return optimizer.Adafactor{Common: all, Beta1: o.Betas[0], Beta2: o.Betas[1], Threshold: 1}
	}
	return optimizer.AdamW{Beta1: o.Betas[0], Beta2: o.Betas[1], Eps: o.Eps, WeightDecay: all.WeightDecay,
		MaxGradNorm: all.MaxGradNorm, Proximal: all.Proximal, Storage: all.Storage,
		Nesterov: j.Parallel.Late()}
}

// outers are the outer optimizers whose word in a job file is not their name in the specification.
var outers = map[string]string{"signsgd": outer.SignSGD, "gossip": outer.PairwiseGossip}

// codecs are the codecs by the words of a job file.
var codecs = map[string]string{"none": codec.Float32, "fp16": codec.Float16, "bf16": codec.BFloat16,
	"int8": codec.Int8, "fp4": codec.E3M0, "sign": codec.Sign}

// codecOf is the codec that a job file asks for.
func codecOf(c spec.Compression) string {
	if k, bits, sparse := c.TopK(); sparse {
		return codec.TopKName(k, bits)
	}
	return codecs[c.Quantize]
}

// Decays of the residual that error feedback adds to the next update: of pseudo-gradients (Sarfi et al. 2025), and of
// gradients, whose momentum it is (Peng et al. 2024).
const (
	feedbackDecay = 0.95
	momentumDecay = 0.999
)

// Exchange says how the updates of a job travel and are combined.
func Exchange(j spec.Spec) train.Exchange {
	st := j.Strategy
	o := st.OuterOptimizer
	x := train.Exchange{Codec: codecOf(st.Compression), Rule: st.Aggregation.Rule,
		Outer: cmp.Or(outers[o.Name], o.Name), Rate: o.LR, Momentum: o.Momentum}
	if x.Rule == aggregate.TrimmedMean {
		x.Trim = st.Aggregation.Trim
	}
	x.Carry, x.Moments = st.Group(), st.OptimizerStateRounds > 1
	if st.Compression.ErrorFeedback {
		x.Feedback = feedbackDecay
	}
	if st.Compression.Transform == transform.CosineTransform {
		x.Transform = transform.CosineTransform
	}
	if st.Replicas.Paired() {
		x.Pairs, x.Topology = uint32(st.Workers.Target), st.Replicas.Topology
	}
	if j.Rollout.Swarm() {
		x.Policies = uint32(st.Workers.Target)
	}
	x.SampleEvery, x.Fragments, x.Overlap = uint32(st.Replicas.Sample), uint32(st.Replicas.Fragments), st.Replicas.Overlap
	inner := j.Training.Optimizer
	switch {
	case o.Adaptive():
		x.Momentum, x.Decay, x.Eps = o.Betas[0], o.Betas[1], o.Eps
	case o.Name == outer.DecoupledAdam:
		x.Momentum, x.Decay, x.Eps = inner.Betas[0], inner.Betas[1], inner.Eps
	}
	if o.Gradients() {
		x.Gradients, x.WeightDecay, x.Clip = true, inner.WeightDecay, j.Training.MaxGradNorm
		if x.Feedback > 0 {
			x.Feedback = momentumDecay
		}
	}
	return x
}
