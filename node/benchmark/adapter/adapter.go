// Package adapter measures proofs about adapters, and about networks and sums: their setup, the prover and the
// verifier. It is the engine of
// starling bench proof. The weights are drawn, and the setup has one contributor: the times are those of any.
package adapter

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"

	groth16 "github.com/consensys/gnark/backend/groth16/bn254"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/proof/verifier"
)

// Options configure the measurement.
type Options struct {
	Rank, In, Out int
	Tokens        int
	Widths        []uint // of a network, in place of an adapter
	Updates       int    // of a sum, in place of an adapter
	Length        int    // elements of each update
	Times         int    // that a proof is made, of which the fastest counts, and verified
	Progress      func(string)
}

// Report is the measurement. Seconds are by the clock.
type Report struct {
	Weights     int             `json:"weights"` // or elements of updates
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

// subject is one kind of proof: the keys of a shape, and a proof about drawn numbers with them.
type subject struct {
	name    string
	numbers int
	setup   func() (verifying []byte, proving *groth16.ProvingKey, constraints int, err error)
	// prover returns a function that makes one proof
	prover func(verifying []byte, pk *groth16.ProvingKey) (func() (verifier.Proof, []byte, error), error)
}

// Measure measures one shape.
func Measure(ctx context.Context, o Options) (*Report, error) {
	for name, n := range map[string]int{"rank": o.Rank, "in": o.In, "out": o.Out, "tokens": o.Tokens, "times": o.Times} {
		if err := benchmark.Positive(name, n); err != nil {
			return nil, err
		}
	}
	x := ofAdapter(o)
	switch {
	case len(o.Widths) > 0:
		x = ofNetwork(o)
	case o.Updates != 0 || o.Length != 0:
		x = ofSum(o)
	}
	r := &Report{Weights: x.numbers, Processors: kernel.Cores}
	o.Progress("makes keys for " + x.name)
	began := time.Now()
	key, pk, constraints, err := x.setup()
	if err != nil {
		return nil, err
	}
	r.Setup, r.Constraints, r.KeyBytes = time.Since(began).Seconds(), constraints, len(key)
	began = time.Now()
	k, err := verifier.ReadKey(key)
	if err != nil {
		return nil, err
	}
	r.ReadKey = milliseconds(began)
	if pk, err = again(pk); err != nil {
		return nil, err
	}
	prove, err := x.prover(key, pk)
	if err != nil {
		return nil, err
	}
	r.Load = load()
	if err := r.prove(ctx, o, k, prove); err != nil {
		return nil, err
	}
	r.Bars = []benchmark.Bar{benchmark.AtMost("prove_seconds", r.Prove, mostProve),
		benchmark.AtMost("prove_mib", r.MemoryMiB, mostMemory), benchmark.AtMost("verify_ms", r.Verify, mostVerify),
		benchmark.AtMost("proof_bytes", float64(r.ProofBytes), mostBytes)}
	return r, nil
}

// prove makes proofs, and verifies them.
func (r *Report) prove(ctx context.Context, o Options, k verifier.Key,
	prove func() (verifier.Proof, []byte, error)) error {
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
		made, file, err := prove()
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
		err = k.Verify(made)
		r.Verify = min(r.Verify, milliseconds(began))
		if err != nil {
			return err
		}
		r.ProofBytes, r.FileBytes = made.Parts(), len(file)
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
