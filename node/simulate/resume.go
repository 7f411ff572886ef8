package simulate

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"

	"github.com/starling-network/starling/node/ending"
	"github.com/starling-network/starling/node/prepare"
	"github.com/starling-network/starling/node/rundir"
)

// ErrOther is returned by Read of a folder that holds another simulation than the one that was asked for.
var ErrOther = errors.New("it holds the simulation of another job, or on another network")

// Conditions determine, with the job, the outcome of a simulation.
type Conditions struct {
	Seed         uint64            `json:"seed"`
	Links        []string          `json:"links"` // as --link takes them
	Gflops       []float64         `json:"gflops"`
	Verifiers    int               `json:"verifiers"` // in addition to those of the job
	Validators   int               `json:"validators"`
	BlockSeconds float64           `json:"block_seconds"`
	Acts         map[string]string `json:"acts,omitempty"`   // by party
	Faults       []string          `json:"faults,omitempty"` // PARTY@AT+FOR, or PARTY/PARTY@AT+FOR
	Modelled     bool              `json:"modelled,omitempty"`
}

// conditions are those of a simulation with these options.
func (o Options) conditions() Conditions {
	c := Conditions{Seed: o.Seed, Gflops: o.Gflops, Verifiers: o.Verifiers, Validators: max(1, o.Validators),
		BlockSeconds: o.BlockTime.Seconds(), Modelled: o.Modelled}
	for _, l := range o.Links {
		c.Links = append(c.Links, l.String())
	}
	if len(o.Acts) > 0 {
		c.Acts = o.Acts
	}
	for _, f := range o.Faults {
		who := f.Who
		if f.From != "" {
			who += "/" + f.From
		}
		c.Faults = append(c.Faults, fmt.Sprintf("%s@%v+%v", who, f.At, f.For))
	}
	return c
}

// Read returns the simulation that a folder holds, which Write has left whole, if it is the one that the options ask
// for: of the same job, with the same data, under the same conditions. It is fit to be compared, and not to be written
// again. fs.ErrNotExist: the folder holds none, or one that was cut off; ErrOther: it holds another one.
func Read(dir string, opt Options) (*Simulation, error) {
	text, err := os.ReadFile(filepath.Join(dir, fileSimulation))
	if err != nil {
		return nil, err
	}
	s := &Simulation{}
	if err := json.Unmarshal(text, s); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, fileSimulation), err)
	}
	if !reflect.DeepEqual(s.Conditions, opt.conditions()) {
		return nil, fmt.Errorf("%w: %s", ErrOther, dir)
	}
	b, err := prepare.Outline(opt.Job)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	if s.Job != b.JobID() {
		return nil, fmt.Errorf("%w: %s", ErrOther, dir)
	}
	var metrics []rundir.Metric // of a modelled job there are none
	metrics, err = rundir.ReadLines[rundir.Metric](filepath.Join(dir, rundir.FileMetrics))
	if err != nil && !(s.Modelled && errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	r := ending.BriefReport(&s.Summary, s.Halted, metrics)
	s.complete(&r)
	return s, nil
}
