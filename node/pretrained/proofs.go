package pretrained

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/starling-network/starling/compute/cpu"
	"github.com/starling-network/starling/compute/model"
	"github.com/starling-network/starling/compute/tensor"
	"github.com/starling-network/starling/compute/toploc"
	"github.com/starling-network/starling/compute/train"
)

// Answer is a continuation of a prompt, as tokens, with the proofs of its activations: one for each toploc.Tokens
// tokens of the answer and the last of the prompt.
type Answer struct {
	Prompt []int32  `json:"prompt"`
	Answer []int32  `json:"answer"`
	Proofs [][]byte `json:"proofs,omitempty"` // base64
}

// ErrAnswer is wrapped by every reason why an answer cannot be computed again with a model.
var ErrAnswer = errors.New("not an answer of this model")

// Prover computes the activations of answers in one pass over each.
type Prover struct {
	model   *Model
	threads int
	in      map[string]*tensor.Tensor
	passes  map[int]*cpu.Exec // by length
}

// maxPasses is how many programs a prover keeps.
const maxPasses = 16

// NewProver returns a prover of a model.
func NewProver(m *Model, threads int) *Prover {
	p := &Prover{model: m, threads: threads, in: map[string]*tensor.Tensor{}, passes: map[int]*cpu.Exec{}}
	for name, t := range m.Tensors {
		p.in[train.Param+name] = t
	}
	return p
}

// passLength rounds the length of a pass up: later tokens change nothing before them.
const passLength = 32

// parts are the activations of an answer, in the parts that have a proof: the inputs of the output layer at the last
// token of the prompt and at every token of the answer.
func (p *Prover) parts(a Answer) ([][]float32, error) {
	all := slices.Concat(a.Prompt, a.Answer)
	if len(a.Prompt) == 0 || len(a.Answer) == 0 || len(all) > p.model.Config.Context() {
		return nil, fmt.Errorf("%w: %d tokens of a prompt and %d of an answer; the context has %d", ErrAnswer,
			len(a.Prompt), len(a.Answer), p.model.Config.Context())
	}
	for _, id := range all {
		if id < 0 || int(id) >= p.model.Config.VocabSize() {
			return nil, fmt.Errorf("%w: token %d of %d", ErrAnswer, id, p.model.Config.VocabSize())
		}
	}
	length := min((len(all)+passLength-1)/passLength*passLength, p.model.Config.Context())
	exec, err := p.pass(length)
	if err != nil {
		return nil, err
	}
	p.in["tokens"] = tensor.FromI32(append(all, make([]int32, length-len(all))...), 1, length)
	out, err := exec.Run(p.in)
	if err != nil {
		return nil, err
	}
	hidden := out["hidden"]
	width := hidden.Shape.Dims[2]
	rows := slices.Clone(hidden.F32()[(len(a.Prompt)-1)*width : (len(a.Prompt)+len(a.Answer))*width])
	var parts [][]float32
	for part := range slices.Chunk(rows, toploc.Tokens*width) {
		parts = append(parts, part)
	}
	return parts, nil
}

// pass is the program for sequences of a length.
func (p *Prover) pass(length int) (*cpu.Exec, error) {
	if x := p.passes[length]; x != nil {
		return x, nil
	}
	h, err := model.Hidden(p.model.Config, 1, length)
	if err != nil {
		return nil, err
	}
	x, err := cpu.Compile(h, p.threads)
	if err != nil {
		return nil, err
	}
	if len(p.passes) == maxPasses {
		clear(p.passes)
	}
	p.passes[length] = x
	return x, nil
}

// Prove returns the proofs of an answer.
func (p *Prover) Prove(a Answer) (proofs [][]byte, err error) {
	parts, err := p.parts(a)
	if err != nil {
		return nil, err
	}
	for _, part := range parts {
		proof, err := toploc.Prove(part)
		if err != nil {
			return nil, err
		}
		proofs = append(proofs, proof)
	}
	return proofs, nil
}

// Verdict is what comes of the check of an answer.
type Verdict struct {
	Holds bool              `json:"holds"`
	Why   string            `json:"why,omitempty"` // it does not
	Worst toploc.Difference `json:"worst"`         // of the largest values of all proofs
}

// Check compares the proofs of an answer, by a stack of a precision, with its activations. An answer of a stranger with
// too few proofs, or none that can be read, does not hold; an error says that it cannot be computed.
func (p *Prover) Check(a Answer, made toploc.Precision) (Verdict, error) {
	parts, err := p.parts(a)
	if err != nil {
		return Verdict{}, err
	}
	if len(a.Proofs) != len(parts) {
		return Verdict{Why: fmt.Sprintf("%d proofs, and not %d", len(a.Proofs), len(parts))}, nil
	}
	v := Verdict{Holds: true}
	for i, part := range parts {
		d, err := toploc.Compare(a.Proofs[i], part)
		switch {
		case errors.Is(err, toploc.ErrProof):
			return Verdict{Why: err.Error()}, nil
		case err != nil:
			return Verdict{}, err
		case v.Holds && !d.Holds(made):
			v.Holds, v.Why = false, fmt.Sprintf("the activations of part %d are those of another model, prompt or text", i)
		}
		v.Worst = toploc.Difference{Exponents: max(v.Worst.Exponents, d.Exponents), Mean: math.Max(v.Worst.Mean, d.Mean),
			Median: math.Max(v.Worst.Median, d.Median), Other: max(v.Worst.Other, d.Other)}
	}
	return v, nil
}
