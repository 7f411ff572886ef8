package reinforce

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/starling-network/starling/node/benchmark"
	"github.com/starling-network/starling/node/folder"
)

// parts are the parts of a measurement that are done, in a file, so that one that was ended continues with the next.
// They do not depend on the machine, but for the seconds of a model.
type parts struct {
	path    string
	Steps   int                `json:"steps"` // of learning from rewards
	Runs    map[uint64]Run     `json:"runs"`
	Numbers map[string]float64 `json:"numbers"`
}

// openParts reads the parts of a measurement with options.
func openParts(o Options) (*parts, error) {
	p := &parts{path: o.Parts, Steps: o.Steps, Runs: map[uint64]Run{}, Numbers: map[string]float64{}}
	if p.path == "" {
		return p, nil
	}
	text, err := os.ReadFile(p.path)
	if errors.Is(err, os.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(text, p)
	}
	if err == nil && p.Steps != o.Steps {
		err = fmt.Errorf("it is of %d steps of rewards, and %d are asked for", p.Steps, o.Steps)
	}
	if err != nil {
		return nil, fmt.Errorf("benchmark: %s: %w", o.Parts, err)
	}
	return p, nil
}

// save writes the file, if there is one.
func (p *parts) save() error {
	if p.path == "" {
		return nil
	}
	return folder.WriteJSON(p.path, p)
}

// number is one that was measured before this, or is measured now.
func (p *parts) number(name string, measure func() (float64, error)) (x float64, err error) {
	if x, known := p.Numbers[name]; known {
		return x, nil
	}
	if x, err = measure(); err != nil {
		return 0, err
	}
	p.Numbers[name] = x
	return x, p.save()
}

// learnt has a learner learn. One that was measured before learns from right answers alone, as further parts begin
// there.
func (p *parts) learnt(ctx context.Context, l *learner) error {
	before, known := p.Runs[l.run.Seed]
	if !known {
		if err := l.learn(ctx); err != nil {
			return err
		}
		l.run.Seconds = benchmark.Rounded(time.Since(l.begun).Seconds(), 1)
		p.Runs[l.run.Seed] = l.run
		return p.save()
	}
	if err := l.show(ctx); err != nil {
		return err
	}
	l.shown, l.run = cloned(l.weights), before
	return nil
}
