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
	Disk      int64   `json:"disk_bytes"`     // of all parties, without a name too
	Received  int64   `json:"received_bytes"` // by the worker that receives most
	Cost      uint64  `json:"cost_uzen"`      // expected, and paid with all fees
	Seconds   float64 `json:"seconds"`
	Processor float64 `json:"processor_seconds"` // of all processors, which other processes on the machine do not change
}

// off are the bars of a run: by how much of its plan it is off, in each figure. A draw decides how many audits a run
// has, each of which is a part of the cost: a short run may be off its expected cost by that of an audit or two.
func (p Planned) off() (bars []benchmark.Bar) {
	add := func(what string, run, plan float64) {
		bars = append(bars, benchmark.AtMost(p.Name+" "+what+" off its plan", math.Abs(run/max(plan, 1e-9)-1), offPlan))
	}
	add("memory", float64(p.Run.Memory), float64(p.Plan.Memory))
	add("disk", float64(p.Run.Disk), float64(p.Plan.Disk))
	bars = append(bars, benchmark.AtMost(p.Name+" traffic above its plan",
		max(0, ratio(uint64(p.Run.Received), uint64(p.Plan.Received))-1), offPlan))
	add("cost", float64(p.Run.Cost), float64(p.Plan.Cost))
	add("time", p.Run.Seconds, p.Plan.Seconds)
	add("processor time", p.Run.Processor, p.Plan.Processor)
	return bars
}

// PlanReport compares plans with runs.
type PlanReport struct {
	Jobs []Planned       `json:"jobs"`
	Bars []benchmark.Bar `json:"bars"`
	// Skipped are the jobs that do not fit on this machine.
	Skipped []string `json:"skipped,omitempty"`
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
		if p == nil {
			r.Skipped = append(r.Skipped, z.Name)
			continue
		}
		r.Jobs, r.Bars = append(r.Jobs, *p), append(r.Bars, p.off()...)
	}
	return r, nil
}

// planned plans a job and runs it; nil: it does not fit on this machine.
func (m *measurement) planned(ctx context.Context, z Size) (*Planned, error) {
	path, out := filepath.Join(m.dir, z.Name+".yaml"), filepath.Join(m.dir, z.Name)
	defer os.RemoveAll(out)
	if err := os.WriteFile(path, []byte(z.job()), 0o600); err != nil {
		return nil, err
	}
	plan, err := m.plan(ctx, z.Name, path)
	if err != nil || !plan.fits() {
		return nil, err
	}
	var paid struct {
		Paid uint64 `json:"paid_uzen"`
		Fee  uint64 `json:"fee_uzen"`
	}
	m.counted = out
	r, err := m.run(ctx, "network of "+z.Name, &paid, "train", path, "--dir", out, "--no-web", "--no-input")
	m.counted = ""
	if err != nil {
		return nil, err
	}
	got, err := received(out)
	if err != nil {
		return nil, err
	}
	work := startWork + (plan.Seconds-plan.Work.Chain-plan.Work.Challenges)*float64(kernel.Cores)
	return &Planned{Name: z.Name, Parameters: plan.Parameters,
		Plan: Figures{plan.Placement.Memory, plan.Disk, plan.Begin + plan.Rounds*plan.Received, plan.Expected,
			benchmark.Rounded(plan.Seconds, 1), benchmark.Rounded(work, 1)},
		Run: Figures{r.Peak, r.files, got, paid.Paid + paid.Fee, r.Seconds, benchmark.Rounded(r.processor, 1)}}, nil
}
