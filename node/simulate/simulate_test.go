package simulate

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/starling-network/starling/client/job"
	"github.com/starling-network/starling/internal/jobtest"
	"github.com/starling-network/starling/node/rundir"
	"github.com/starling-network/starling/sim"
	"github.com/starling-network/starling/sim/link"
)

func simulate(t *testing.T, opt Options) *Simulation {
	t.Helper()
	opt.Gflops, opt.Validators, opt.BlockTime, opt.Threads = []float64{1}, 2, time.Second, 1
	if len(opt.Links) == 0 {
		opt.Links = []link.Link{link.Profiles["home"]}
	}
	s, err := Run(t.Context(), opt)
	if err != nil {
		t.Fatal(err)
	}
	if s.BudgetUzen != s.PaidUzen+s.FeeUzen+s.RefundedUzen {
		t.Errorf("budget %d is not paid %d + fee %d + refunded %d", s.BudgetUzen, s.PaidUzen, s.FeeUzen, s.RefundedUzen)
	}
	return s
}

// Every method and every compression that a job can name trains, and a liar changes nothing.
func TestMethods(t *testing.T) {
	for method, quantize := range map[string]string{"diloco": "fp4", "fedavg": "none", "fedprox": "int8",
		"fedadam": "bf16", "fedyogi": "fp16", "sparseloco": "int2", "sparta": "int8", "sparta_diloco": "int8",
		"streaming_diloco": "fp4", "gossip": "none", "async_diloco": "int8", "allreduce": "none", "demo": "sign"} {
		if variants := []string{"fedprox", "fedadam", "fedyogi", "sparta", "sparta_diloco", "gossip", "fedavg",
			"sparseloco", "allreduce", "diloco", "demo"}; !*long &&
			slices.Contains(variants, method) {
			continue
		}
		t.Run(method, func(t *testing.T) {
			set := []string{"strategy.optimizer_state_rounds=null", "strategy.method=" + method,
				"strategy.compression.quantize=" + quantize, "training.max_steps=8"}
			if method == "allreduce" || method == "demo" {
				set = append(set, "strategy.sync_steps=1")
			}
			if method == "async_diloco" {
				set = append(set, "strategy.workers={target: 3, relative_speeds: [0.5, 1, 0.5]}")
			}
			j, err := job.Load(jobtest.Small(t).Path, set...)
			if err != nil {
				t.Fatal(err)
			}
			if j.Strategy.Replicas.On() { // with a group that ends before the run does
				if j, err = job.Load(j.Path, append(set, "strategy.replicas.rounds=3", "strategy.sync_steps=2")...); err != nil {
					t.Fatal(err)
				}
			}
			honest := simulate(t, Options{Job: j, Seed: 1})
			liar := simulate(t, Options{Job: j, Seed: 2, Acts: map[string]string{"worker-2": "skips"}})
			if honest.StateRoot != liar.StateRoot || honest.SlashedUzen != 0 || liar.SlashedUzen == 0 {
				t.Errorf("an honest run ends in %v and slashes %d, one with a liar in %v and slashes %d", honest.StateRoot,
					honest.SlashedUzen, liar.StateRoot, liar.SlashedUzen)
			}
			if !(honest.FinalEvalLoss < honest.FirstEvalLoss) {
				t.Errorf("the loss goes from %v to %v", honest.FirstEvalLoss, honest.FinalEvalLoss)
			}
		})
	}
}

func TestSimulationIsReproducible(t *testing.T) {
	j := jobtest.Small(t)
	var dirs [2]string
	for i := range dirs {
		dirs[i] = t.TempDir()
		s := simulate(t, Options{Job: j, Seed: 7,
			Links: []link.Link{{Latency: time.Second / 5, Up: 1e5, Down: 1e6, Loss: 0.1}}})
		jobtest.CheckMetrics(t, s.ending.Metrics)
		if err := s.Write(dirs[i]); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{fileSimulation, rundir.FileReport, fileRounds, rundir.FileMetrics, rundir.FileReceipts,
		rundir.FileLineage, "loss.svg", "loss-by-bytes.svg", "loss-by-time.svg", "bytes.svg"} {
		a, err := os.ReadFile(filepath.Join(dirs[0], name))
		b, err2 := os.ReadFile(filepath.Join(dirs[1], name))
		if err := errors.Join(err, err2); err != nil {
			t.Fatal(err)
		}
		if len(a) == 0 || !bytes.Equal(a, b) {
			t.Errorf("%s: %d bytes, then %d, and not the same", name, len(a), len(b))
		}
	}
}

func TestSimulateKnowsItsParties(t *testing.T) {
	opt := Options{
		Job: jobtest.Small(t), Links: []link.Link{link.Profiles["lan"]}, Gflops: []float64{1}, BlockTime: time.Second,
		Threads: 1,
		Faults:  []sim.Fault{{Who: "worker-0", From: "worker-9"}},
	}
	if _, err := Run(t.Context(), opt); !errors.Is(err, ErrNoParty) {
		t.Errorf("a fault of an unknown party: %v", err)
	}
	opt.Faults, opt.Acts = nil, map[string]string{"worker-3": "skips"}
	if _, err := Run(t.Context(), opt); !errors.Is(err, ErrNoParty) {
		t.Errorf("an attack by an unknown party: %v", err)
	}
	opt.Acts = map[string]string{"worker-2": "dances"}
	if _, err := Run(t.Context(), opt); !errors.Is(err, ErrNoAct) {
		t.Errorf("an unknown attack: %v", err)
	}
}

// A sweep reports for each variant its result, the members that broke the rules, and when they had to leave.
func TestSweep(t *testing.T) {
	w := Sweep{Keys: []string{"strategy.sync_steps"}}
	restored := w // as the folders of the variants hold it
	for i, steps := range []string{"2", "4"} {
		j, err := job.Load(jobtest.Small(t).Path, "strategy.sync_steps="+steps, "training.max_steps=8")
		if err != nil {
			t.Fatal(err)
		}
		s := simulate(t, Options{Job: j, Seed: 1, Acts: map[string]string{"worker-2": "skips"}})
		for _, p := range s.Parties {
			if liar := p.Name == "worker-2"; liar != (p.Act == "skips") || liar != (p.OutSeconds > 0) ||
				p.OutSeconds > s.Seconds {
				t.Errorf("%+v of %v s", p, s.Seconds)
			}
		}
		alone := t.TempDir()
		if err := s.Write(alone); err != nil {
			t.Fatal(err)
		}
		if disputes, err := rundir.ReadLines[rundir.DisputeRecord](filepath.Join(alone, rundir.FileDisputes)); err != nil ||
			len(s.Disputes) == 0 || len(disputes) != len(s.Disputes)+s.Plants.Caught {
			t.Errorf("%d disputes, of which %d are left: %v", len(s.Disputes), len(disputes), err)
		}
		opt := Options{Job: j, Seed: 1, Acts: map[string]string{"worker-2": "skips"}, Validators: 2,
			Gflops: []float64{1}, BlockTime: time.Second, Threads: 7, Links: []link.Link{link.Profiles["home"]}}
		again, err := Read(alone, opt)
		if err != nil {
			t.Fatal(err)
		}
		opt.Seed++
		if _, err := Read(alone, opt); !errors.Is(err, ErrOther) {
			t.Errorf("a simulation with another seed: %v", err)
		}
		opt.Seed, opt.Job = 1, jobtest.Small(t)
		if _, err := Read(alone, opt); !errors.Is(err, ErrOther) {
			t.Errorf("a simulation of another job: %v", err)
		}
		if _, err := Read(t.TempDir(), opt); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a folder without one: %v", err)
		}
		restored.Variants = append(restored.Variants, SweepVariant{Name: fmt.Sprintf("%03d", i), Settings: []string{steps},
			Simulation: again})
		w.Variants = append(w.Variants, SweepVariant{Name: fmt.Sprintf("%03d", i), Settings: []string{steps}, Simulation: s})
	}
	dir := filepath.Join(t.TempDir(), "sweep")
	if err := w.Write(dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, fileSweep))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil || len(rows) != 3 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for i, v := range w.Variants {
		for column, want := range map[string]string{
			"variant": v.Name, "strategy.sync_steps": v.Settings[0], "steps": "8", "broke_rules": "1", "had_to_leave": "1",
			"state_root": v.StateRoot.String(),
		} {
			if k := slices.Index(rows[0], column); k < 0 || rows[i+1][k] != want {
				t.Errorf("variant %d: %s is in column %d of %v, want %s", i, column, k, rows[i+1], want)
			}
		}
	}
	other := t.TempDir()
	if err := restored.Write(other); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fileSweep, rundir.FileReport, "loss.svg", "loss-by-bytes.svg", "loss-by-time.svg"} {
		a, err := os.ReadFile(filepath.Join(dir, name))
		b, err2 := os.ReadFile(filepath.Join(other, name))
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not the same after reading: %v", name, err)
		}
	}
	for name, want := range map[string]string{rundir.FileReport: "1 of 1", "loss.svg": "sync_steps=4",
		"loss-by-bytes.svg": "sync_steps=2", "loss-by-time.svg": "<path"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err != nil || !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s: %d bytes without %q, %v", name, len(text), want, err)
		}
	}
}
