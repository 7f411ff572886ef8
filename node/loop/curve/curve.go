// Package curve writes run.json and the metrics of each step into the folder of a run that a client leads, for readers
// of runs. It computes no loss.
package curve

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/starling-network/starling/client/api"
	"github.com/starling-network/starling/node/rundir"
)

// Begin says which run a folder has, in a version of the numerics.
func Begin(dir, order string, numerics uint32) error {
	o := rundir.OutDir{Path: dir, Run: rundir.RunFile{Format: 1, ID: order, Numerics: numerics}}
	return o.WriteRun()
}

// End says that the run is over.
func End(dir string) error {
	o := rundir.OutDir{Path: dir}
	if err := o.ReadRun(); err != nil {
		return err
	}
	o.Run.Finished = true
	return o.WriteRun()
}

// Step is a step that was taken: it is the round of a run. Loss is the mean over the targets that count.
type Step struct {
	Round  uint32
	Loss   float64
	Rate   float64
	Tokens int // of the step
	Time   time.Time
}

// Note adds a step to the metrics of a folder, as a step and as a round.
func Note(dir string, s Step) (err error) {
	path := (&rundir.OutDir{Path: dir}).File(rundir.FileMetrics)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	m := api.Metric{Kind: "step", Round: s.Round, Step: s.Round, Loss: s.Loss, LearningRate: s.Rate,
		Tokens: uint64(s.Round) * uint64(s.Tokens)}
	of := m
	of.Kind, of.Time = "round", s.Time
	e := json.NewEncoder(f)
	return errors.Join(e.Encode(m), e.Encode(of))
}
