package memory

import (
	"context"
	"math"
	"os"
	"path/filepath"

	"github.com/starling-network/starling/compute/kernel"
	"github.com/starling-network/starling/node/benchmark"
)

// offPlan is how far a run may be from its plan, as a part of the plan. startWork are the processor seconds that the
// start and the end of a process take, besides the work of its job.
const (
	offPlan   = 0.2
	startWork = 1.0
)

// planned are the models whose plans are compared with runs: the first three with --quick.
var planned = []Size{
	{"0.2M", 64, 176, 3, 4, 512, 64, 8, 3, nil},
	{"0.6M", 128, 344, 3, 4, 512, 64, 8, 3, nil},
	{"2M", 192, 512, 4, 4, 1024, 64, 8, 3, nil},
	{"5M", 256, 688, 6, 4, 2048, 128, 4, 3, nil},
	{"9M", 320, 864, 7, 5, 4096, 128, 4, 3, nil},
	{"30M", 512, 1376, 9, 8, 4096, 128, 2, 2, nil},
	{"88M", 768, 2048, 12, 12, 4096, 128, 2, 2, nil},
	{"300M", 1024, 2816, 22, 16, 8192, 128, 2, 2, nil},
}

// Planned is a job, its plan and its run.
type Planned struct {
	Name       string  `json:"name"`
	Parameters uint64  `json:"parameters"`
	Plan       Figures `json:"plan"`
	Run        Figures `json:"run"`
}

// Figures are what a job takes.
type Figures struct {
	Memory    uint64  `json:"memory_bytes"`
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_seconds"` // of all processors, which other processes on the machine do not change
}

// PlanReport compares plans with runs.
type PlanReport struct {
	Jobs []Planned       `json:"jobs"`
	Bars []benchmark.Bar `json:"bars"`
}

// Plans plans jobs, and runs each on an embedded network.
func Plans(ctx context.Context, o Options) (*PlanReport, error) {
	m, err := newMeasurement(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(m.dir)
	sizes := planned
	if o.Quick {
		sizes = planned[:3]
	}
	r := &PlanReport{}
	for _, z := range sizes {
		p, err := m.planned(ctx, z)
		if err != nil {
			return nil, err
		}
		r.Jobs = append(r.Jobs, p)
		off := func(run, plan float64) float64 { return math.Abs(run/max(plan, 1e-9) - 1) }
		r.Bars = append(r.Bars,
			benchmark.AtMost(z.Name+" memory off its plan", off(float64(p.Run.Memory), float64(p.Plan.Memory)), offPlan),
			benchmark.AtMost(z.Name+" seconds off their plan", off(p.Run.Seconds, p.Plan.Seconds), offPlan),
			benchmark.AtMost(z.Name+" processor seconds off their plan", off(p.Run.Processor, p.Plan.Processor), offPlan))
	}
	return r, nil
}

// planned plans a job and runs it.
func (m *measurement) planned(ctx context.Context, z Size) (p Planned, err error) {
	path, out := filepath.Join(m.dir, z.Name+".yaml"), filepath.Join(m.dir, z.Name)
	defer os.RemoveAll(out)
	if err := os.WriteFile(path, []byte(z.job()), 0o600); err != nil {
		return p, err
	}
	plan, err := m.plan(ctx, z.Name, path)
	if err != nil {
		return p, err
	}
	r, err := m.run(ctx, "network of "+z.Name, nil, "train", path, "--dir", out, "--no-web", "--no-input")
	if err != nil {
		return p, err
	}
	work := startWork + (plan.Seconds-plan.Work.Chain-plan.Work.Challenges)*float64(kernel.Cores)
	return Planned{Name: z.Name, Parameters: plan.Parameters,
		Plan: Figures{plan.Placement.Memory, benchmark.Rounded(plan.Seconds, 1), benchmark.Rounded(work, 1)},
		Run:  Figures{r.Peak, r.Seconds, benchmark.Rounded(r.processor, 1)}}, nil
}
