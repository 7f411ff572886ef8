// Package adapter measures proofs about adapters: their setup, the prover and the verifier. It is the engine of
// starling bench proof. The weights are drawn, and the setup has one contributor: the times are those of any.
package adapter

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/proof"
	"github.com/starling-network/starling/proof/circuit"
)

// Options configure the measurement.
type Options struct {
	Rank, In, Out int
	Tokens        int
	Times         int // that a proof is made, of which the fastest counts, and verified
	Progress      func(string)
}

// Report is the measurement. Seconds are by the clock.
type Report struct {
	Weights     int             `json:"weights"`
	Constraints int             `json:"constraints"`
	Processors  int             `json:"processors"`
	Load        float64         `json:"load"` // of the machine in the minute before the proofs; 0: not known
	Setup       float64         `json:"setup_seconds"`
	Prove       float64         `json:"prove_seconds"`
	ProveCPU    float64         `json:"prove_cpu_seconds"` // of all processors together; 0: not known
	MemoryMiB   float64         `json:"prove_mib"`         // most memory of the process while it proves
	Verify      float64         `json:"verify_ms"`
	ReadKey     float64         `json:"read_key_ms"`
	ProofBytes  int             `json:"proof_bytes"`
	KeyBytes    int             `json:"key_bytes"`
	FileBytes   int             `json:"file_bytes"` // of the proof with its statement
	Bars        []benchmark.Bar `json:"bars"`
}

// The bars: of 24,576 weights on two processors.
const (
	mostProve  = 1.5  // seconds
	mostMemory = 1024 // MiB
	mostVerify = 20   // milliseconds
	mostBytes  = 1024
)

// Measure measures one shape.
func Measure(ctx context.Context, o Options) (*Report, error) {
	for name, n := range map[string]int{"rank": o.Rank, "in": o.In, "out": o.Out, "tokens": o.Tokens, "times": o.Times} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	shape := proof.Shape{Rank: uint32(o.Rank), In: uint32(o.In), Out: uint32(o.Out)}
	r := &Report{Weights: shape.Weights(), Processors: kernel.Cores}
	o.Progress(fmt.Sprintf("makes keys for %s", shape))
	began := time.Now()
	key, pk, constraints, err := circuit.Setup(shape)
	if err != nil {
		return nil, err
	}
	r.Setup, r.Constraints, r.KeyBytes = time.Since(began).Seconds(), constraints, len(key)
	began = time.Now()
	v, err := proof.NewVerifier(key)
	if err != nil {
		return nil, err
	}
	r.ReadKey = milliseconds(began)
	w, s, err := drawn(shape, o.Tokens)
	if err != nil {
		return nil, err
	}
	if pk, err = again(pk); err != nil {
		return nil, err
	}
	r.Load = load()
	if err := r.prove(ctx, o, v, pk, w, s); err != nil {
		return nil, err
	}
	r.Bars = []benchmark.Bar{benchmark.AtMost("prove_seconds", r.Prove, mostProve),
		benchmark.AtMost("prove_mib", r.MemoryMiB, mostMemory), benchmark.AtMost("verify_ms", r.Verify, mostVerify),
		benchmark.AtMost("proof_bytes", float64(r.ProofBytes), mostBytes)}
	return r, nil
}

// prove makes proofs, and verifies them.
func (r *Report) prove(ctx context.Context, o Options, v *proof.Verifier, pk *groth16.ProvingKey, w proof.Weights,
	s proof.Statement) error {
	p, err := circuit.NewProver(v, pk)
	if err != nil {
		return err
	}
	r.Prove, r.Verify = math.Inf(1), math.Inf(1)
	for i := range o.Times {
		if err := ctx.Err(); err != nil {
			return err
		}
		o.Progress(fmt.Sprintf("proof %d of %d", i+1, o.Times))
		debug.FreeOSMemory()
		peak := watch()
		before, _ := benchmark.Usage()
		began := time.Now()
		made, err := p.Prove(s, w, circuit.Secret{1})
		r.Prove = min(r.Prove, time.Since(began).Seconds())
		after, _ := benchmark.Usage()
		if spent := (after - before).Seconds(); i == 0 || spent < r.ProveCPU {
			r.ProveCPU = spent
		}
		r.MemoryMiB = max(r.MemoryMiB, peak())
		if err != nil {
			return err
		}
		began = time.Now()
		err = v.Verify(made)
		r.Verify = min(r.Verify, milliseconds(began))
		if err != nil {
			return err
		}
		r.ProofBytes, r.FileBytes = len(made.Points)+len(made.Commitment), len(made.Encode())
	}
	return nil
}

func milliseconds(began time.Time) float64 { return time.Since(began).Seconds() * 1000 }

// again writes and reads a proving key, so that the memory of the setup is free.
func again(pk *groth16.ProvingKey) (*groth16.ProvingKey, error) {
	var file bytes.Buffer
	if _, err := pk.WriteRawTo(&file); err != nil {
		return nil, err
	}
	read := new(groth16.ProvingKey)
	_, err := read.UnsafeReadFrom(&file)
	return read, err
}

// drawn are an adapter and a statement with normal numbers.
func drawn(shape proof.Shape, tokens int) (w proof.Weights, s proof.Statement, err error) {
	rng := rand.New(rand.NewPCG(1, 2))
	numbers := func(n uint32, std float64) proof.Fixed {
		list := make([]float32, n)
		for i := range list {
			list[i] = float32(rng.NormFloat64() * std)
		}
		f, e := proof.Quantise(list)
		if e != nil {
			err = e
		}
		return f
	}
	w = proof.Weights{Shape: shape, A: numbers(shape.Rank*shape.In, 0.02), B: numbers(shape.Rank*shape.Out, 0.01)}
	s = proof.Statement{Base: canon.Sum("bench"), Adapter: canon.Sum("bench"), Module: "layer",
		Factor: math.Float64bits(2), Tokens: make([]uint32, tokens)}
	x := numbers(uint32(tokens)*shape.In, 1)
	if err == nil {
		err = s.Apply(w, x)
	}
	return w, s, err
}

// watch samples the memory that the process has from the system, until the function that it returns is called, which
// returns the most in MiB.
func watch() (peak func() float64) {
	done, most := make(chan struct{}), make(chan float64)
	go func() {
		sample := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
		highest, tick := uint64(0), time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for {
			metrics.Read(sample)
			highest = max(highest, sample[0].Value.Uint64()-sample[1].Value.Uint64())
			select {
			case <-done:
				most <- float64(highest) / (1 << 20)
				return
			case <-tick.C:
			}
		}
	}()
	return func() float64 { close(done); return <-most }
}

// load is the load of the machine in the last minute.
func load() float64 {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(text), " ")
	x, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return x
}
